#include <algorithm>
#include <optional>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/out_of_memory.h"
#include "db/edit.h"
#include "db/tree_key.h"

// The space that is reserved on the disk. It allows to open a database on a full disk, to delete
// from it, and to write to it again, if no other program fills the disk.
//
// The log may grow only while there is room for what follows: for flushing the log that is not in
// tables, which may take as much, and for the manifest and deletes with their log file. Up to
// kReserveMax of this room is kept in a file, the reserve. For the rest the file system is asked
// how much is free. If a file system cannot report that, only the reserve is guaranteed.
//
// A flush that finds no room uses the reserve, and restores it when it removes the log. A refused
// delete also uses it to have the log flushed, and is then written into the room that this made.
// Puts are refused until the reserve is whole again. A closed database keeps kReserveOfClosedMax.
//
// A database without tables and with little log has no reserve: it is too small.

namespace basalt::db {
namespace {

/// In tables a log may be larger than it was, by a little.
constexpr uint64_t kMarginShare = 8;

/// Whether a table of the level lies in [begin, end) as a whole.
bool HoldsATable(const Tree& tree, size_t level, std::string_view begin, std::string_view end) {
  const TableFiles& files = tree.levels[level];
  const auto lies_inside = [&](const std::shared_ptr<TableFile>& file) {
    const table::TableProperties& table = file->properties();
    return table.smallest_key >= begin && table.largest_key < end;
  };
  if (level == 0) return std::ranges::any_of(files, lies_inside);
  // They are in key order: if one does, then also the first that begins there.
  const auto first = std::ranges::lower_bound(files, begin, {}, [](const auto& file) {
    return std::string_view(file->properties().smallest_key);
  });
  return first != files.end() && lies_inside(*first);
}

}  // namespace

/// While it lives, the log may grow without the reserve, and into its room.
class Core::ReserveUse {
 public:
  explicit ReserveUse(Core* core) : core_(core), loan_(std::in_place, core->reserve_.get()) {
    ++core_->reserve_uses_;
  }
  ~ReserveUse() {
    --core_->reserve_uses_;
    loan_.reset();
    static_cast<void>(core_->FillReserve(core_->LogAhead()));
  }
  ReserveUse(const ReserveUse&) = delete;
  ReserveUse& operator=(const ReserveUse&) = delete;

 private:
  Core* const core_;
  std::optional<io::ReserveFile::Loan> loan_;
};

uint64_t Core::ReserveFor(uint64_t log_bytes) const noexcept {
  const uint64_t for_deletes = 2 * LogStep();  // what they log, and its flush
  return base::RoundUp(log_bytes + log_bytes / kMarginShare + for_deletes +
                           2 * manifest_bytes_.load(std::memory_order_relaxed),
                       LogStep());
}

bool Core::FillReserve(uint64_t more) noexcept {
  const uint64_t log_bytes = log_->live_bytes();
  const bool is_small = log_bytes <= LogStep() / 4 && more <= LogAhead();
  const bool keeps_nothing = is_small && State()->version->trees().empty();
  const uint64_t needed = ReserveFor(log_bytes + more);
  const uint64_t kept = std::min(needed, kReserveMax);
  // The log takes its own bytes out of what is free.
  const bool is_filled =
      keeps_nothing || (reserve_->Fill(kept) && (kept == needed || IsFree(needed - kept + more)));
  if (is_filled) {
    write_stops_.fetch_and(~kReserveIsOwed, std::memory_order_release);
  } else {
    write_stops_.fetch_or(kReserveIsOwed, std::memory_order_release);
  }
  return is_filled;
}

bool Core::IsFree(uint64_t bytes) const noexcept {
  if (!reserve_->is_wanted()) return true;
  const auto free = base::OrOutOfMemory([&] { return Result(environment_.fs->FreeBytes(path_)); });
  return !free || !*free || **free >= bytes;
}

void Core::TrimReserve(uint64_t most) noexcept {
  reserve_->Trim([&] {
    const uint64_t granted = log_granted_.load(std::memory_order_seq_cst);
    return std::min(most, ReserveFor(log_->live_bytes() + std::max(granted, LogAhead())));
  });
}

Status Core::NoRoomForReserve() const {
  return Status(
      StatusCode::kResourceExhausted,
      "write to the database " + path_ +
          ": the rest of its disk is reserved for flushes of the log and for deletes; free space, "
          "or delete keys (DB::DeleteRange), then retry",
      SubCode::kDiskFull);
}

Status Core::BeforeLogGrows(uint64_t bytes) {
  log_granted_.store(bytes, std::memory_order_seq_cst);
  if (reserve_uses_.load(std::memory_order_relaxed) > 0 || FillReserve(bytes)) return {};
  return NoRoomForReserve();
}

Status Core::ResolveWriteStops(const LogForm& form) {
  const uint32_t stops = write_stops_.load(std::memory_order_acquire);
  if ((stops & kManifestIsUnsure) != 0) BASALT_RETURN_IF_ERROR(Install(Edit{}));
  if ((stops & kReserveIsOwed) == 0 || form.deletes_only) return {};
  // The file that a refused record was on its way to may have been flushed meanwhile. What is kept
  // for readers of changes goes too: writes need the space.
  static_cast<void>(log_->RemoveObsolete(flushed_lsn_.load(std::memory_order_acquire)));
  return FillReserve(LogAhead()) ? Status() : NoRoomForReserve();
}

// Returns only when the log's files are gone, too, which is after the memtable is.
bool Core::FlushWithLog() {
  if (!Flush().ok()) return false;
  std::unique_lock lock(mutex_);
  WaitUntil(lock, [&] { return !flushing_; });
  return true;
}

// A flush that has the reserve fills it again when it ends, if there is room.
bool Core::AwaitReserve() {
  std::unique_lock lock(mutex_);
  WaitUntil(lock, [&] { return !flushing_; });
  return (write_stops_.load(std::memory_order_acquire) & kReserveIsOwed) == 0;
}

// The log of what is flushed goes, which gives back at least what that took. Deletes do with less
// than puts have to leave.
bool Core::FlushFromReserve() {
  return FlushWithLog() && reserve_->Fill(std::min(ReserveFor(log_->live_bytes()), kReserveMax)) &&
         reserve_->Release();
}

// Without tables all there is to delete is in the log.
bool Core::MakesRoom(const LogForm& form) const {
  const std::shared_ptr<const ReadState> state = State();
  if (form.range_deletes == 0) return false;
  if (state->version->trees().empty()) return true;
  for (base::BatchCursor cursor(form.bytes); cursor.Next();) {
    const Tree* const tree = state->version->tree(cursor.keyspace());
    if (cursor.kind() != RecordKind::kDeleteRange || tree == nullptr) continue;
    const std::string begin = TreeKey(cursor.keyspace(), cursor.key());
    const std::string end = TreeKey(cursor.keyspace(), cursor.value());
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      if (HoldsATable(*tree, level, begin, end)) return true;
    }
  }
  return false;
}

Status Core::WriteToFullDisk(PendingWrite* write, Status refused) {
  if (!write->form.deletes_only) {
    // A flush may let the log grow again, and is not worth it for a little.
    const bool may_help = log_->live_bytes() > LogAhead() ? FlushWithLog() : AwaitReserve();
    return may_help ? WriteUnsynced(write) : refused;
  }
  const std::scoped_lock one_at_a_time(full_disk_mutex_);
  if (!FlushFromReserve() && !MakesRoom(write->form)) return refused;
  const ReserveUse use(this);
  Status written = WriteUnsynced(write);
  // Behind puts that asked for the reserve before this, it was refused with them.
  if (written.code() != StatusCode::kResourceExhausted) return written;
  return WriteUnsynced(write);
}

}  // namespace basalt::db
