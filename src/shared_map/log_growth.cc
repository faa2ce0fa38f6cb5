// How log and index of a map's changes grow: a new segment, and an index with more words, or both.
//
// A map on a full disk must accept deletes, because its user frees space with them. So the file
// RESERVE keeps space for the deletes of many entries. Log and index grow for puts only while the
// reserve is whole. A delete that finds no other space takes the reserve. Puts are then refused
// until the reserve is whole again. A compaction that lacks space may use the reserve, too.

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/coding.h"
#include "shared_map/new_files.h"
#include "shared_map/writer.h"

namespace basalt::shared_map {
namespace {

constexpr uint64_t kSegmentBytesMin = uint64_t{64} << 10;
constexpr uint64_t kSegmentBytesMax = uint64_t{1} << 30;
constexpr uint64_t kPageBytes = 4096;

// The reserve has space for each deleted entry: its change, and its part of the index, which exists
// twice while it grows.
constexpr uint64_t kReserveMin = uint64_t{32} << 10;
constexpr uint64_t kReserveForEntry = 128;
constexpr uint64_t kReserveOfSmallMax = uint64_t{8} << 20;
constexpr uint64_t kReservePart =
    16;  ///< The reserve is at most so much of a larger map's records.
/// A new log takes at most so much of the free space beside a compaction that has the reserve's. It
/// is not the least possible, because a change set has at most 64 logs.
constexpr uint64_t kPartBesideLoan = 16;
/// Most lists of files are smaller.
constexpr uint64_t kListBytes = uint64_t{16} << 10;

uint64_t Room(const ChangeIndex& index) noexcept { return index.capacity() / 8 * 5; }

uint64_t BytesOf(std::span<const Writer::Operation> operations) {
  uint64_t bytes = 0;
  for (const Writer::Operation& operation : operations) {
    bytes += kChangeHeaderBytes + PaddedRecordBytes(operation.key.size(), operation.value.size());
  }
  return bytes;
}

}  // namespace

uint64_t Writer::UsualSegmentBytes(const ChangeSetEntry* set) const {
  const uint64_t usual =
      set == nullptr ? std::bit_ceil(std::min(uint64_t{end_.end} * kLogUnit, compaction_bytes_))
                     : 2 * set->segments.back().capacity_bytes;
  return std::clamp(usual, kSegmentBytesMin, kSegmentBytesMax);
}

Status Writer::AddSegment(VersionFiles* next, uint64_t capacity, NewFiles* files) {
  std::vector<SegmentEntry>& segments = next->change_sets.front().segments;
  const uint64_t first =
      segments.empty() ? 0 : segments.back().first + segments.back().capacity_bytes / kLogUnit;
  if (first + capacity / kLogUnit > kLocationMax || segments.size() == VersionFiles::kSegmentsMax) {
    return Status(StatusCode::kResourceExhausted,
                  core_->directory() + ": the log of changes cannot grow beyond 32 GiB and " +
                      std::to_string(VersionFiles::kSegmentsMax) +
                      " files; Compact makes it short");
  }
  SegmentEntry& segment = segments.emplace_back();
  segment.file = NewFileNumber();
  segment.capacity_bytes = capacity;
  segment.first = static_cast<Location>(first);
  return LogSegment::Create(fs_, files->Add(FileKind::kLog, segment.file), segment.first, capacity);
}

Status Writer::AddChangeSet(VersionFiles* next, uint64_t log_bytes, NewFiles* files) {
  next->change_sets.insert(next->change_sets.begin(), ChangeSetEntry{});
  BASALT_RETURN_IF_ERROR(AddSegment(next, log_bytes, files));
  const uint64_t file = NewFileNumber();
  BASALT_ASSIGN_OR_RETURN(const auto index, NewIndex(file, ChangeIndex::kCapacityMin, files));
  next->change_sets.front().index_file = file;
  next->entries = entries_;
  next->counted = kLogHeaderBytes / kLogUnit;
  index->StoreState({.visible_end = next->counted, .entries = entries_, .changes = 0, .keys = 0});
  return Status();
}

uint64_t Writer::ReserveBytes() const {
  const uint64_t most = std::max(kReserveOfSmallMax, StoredBytes() / kReservePart);
  return base::RoundUp(std::min(kReserveMin + kReserveForEntry * entries_, most), kPageBytes);
}

bool Writer::FillReserve() {
  const uint64_t bytes = ReserveBytes();
  const bool has_room = reserve_.Fill(bytes);
  if (reserve_.Has(bytes)) reserve_is_owed_ = false;
  return has_room && !reserve_is_owed_;
}

Status Writer::MakeRoom(std::span<const Operation> operations) {
  const bool only_deletes = std::ranges::all_of(
      operations, [](const Operation& operation) { return operation.kind == RecordKind::kDelete; });
  // Until the reserve is whole, the rest of log and index is for deletes.
  if (!only_deletes && reserve_is_owed_ && !FillReserve()) return NoRoomBesideReserve();
  const uint64_t bytes = BytesOf(operations);
  if (!only_deletes) return Grow(bytes, operations.size(), GrowthRoom::kBesideReserve);
  Status room = Grow(bytes, operations.size(), GrowthRoom::kSome);
  if (!io::IsDiskFull(room) || !failed_.ok()) return room;
  if (reserve_.Release()) reserve_is_owed_ = true;
  return reserve_is_owed_ ? Grow(bytes, operations.size(), GrowthRoom::kAll) : room;
}

Status Writer::NoRoomBesideReserve() {
  lacks_room_ = true;
  return Status(StatusCode::kResourceExhausted,
                core_->directory() +
                    ": the disk is full; the rest of its space is kept for deletes; free space, or "
                    "delete keys and call Compact, then try again");
}

Status Writer::Grow(uint64_t bytes, uint64_t keys, GrowthRoom where) {
  const ChangeIndex& index = version_->newest().index();
  const LogSegment& segment = *version_->newest().segments().back();
  const bool log_is_full = end_.end + bytes / kLogUnit > segment.limit();
  const bool index_is_full = keys_ + keys > Room(index);
  if (!log_is_full && !index_is_full) return Status();
  if (where == GrowthRoom::kBesideReserve && !FillReserve()) return NoRoomBesideReserve();
  Growth growth{.log_bytes = 0, .index_capacity = index.capacity()};
  Growth least = growth;
  // A later log would need space for another copy of the index.
  const bool adds_log = log_is_full || where == GrowthRoom::kAll;
  if (adds_log) {
    BASALT_RETURN_IF_ERROR(SyncLog());
    least.log_bytes = base::RoundUp(kLogHeaderBytes + bytes, kPageBytes);
    growth.log_bytes = std::max(UsualSegmentBytes(&list_.change_sets.front()), least.log_bytes);
  }
  if (index_is_full) {
    growth.index_capacity = ChangeIndex::CapacityFor(2 * (keys_ + keys));
    least.index_capacity = ChangeIndex::CapacityFor(keys_ + keys);
  }
  const uint64_t usual = growth.log_bytes;
  if (const auto free = fs_->FreeBytes(core_->directory())) {
    // The space of a reserve that is lent is for the compaction that has the loan.
    const bool is_lent = reserve_.IsLent();
    if (is_lent) growth.index_capacity = least.index_capacity;
    if (where == GrowthRoom::kAll && !is_lent) {
      growth = GrowthInto(*free, least);
    } else if (adds_log) {
      // Half of the free space is left to a later compaction.
      const uint64_t part = *free / (is_lent ? kPartBesideLoan : 2);
      growth.log_bytes =
          std::max(std::min(usual, base::RoundUp(part, kPageBytes)), least.log_bytes);
    }
  }
  lacks_room_ = growth.log_bytes < usual;
  for (;;) {
    Status status = PublishGrown(growth);
    const bool disk_is_full = status.code() == StatusCode::kResourceExhausted && failed_.ok();
    if (!disk_is_full) return status;
    lacks_room_ = true;
    if (growth == least) return status;
    growth.log_bytes = std::max(base::RoundUp(growth.log_bytes / 2, kPageBytes), least.log_bytes);
    growth.index_capacity = least.index_capacity;
  }
}

Writer::Growth Writer::GrowthInto(uint64_t free, const Growth& least) const {
  Growth growth = least;
  const auto fits = [&](uint64_t capacity) { return ChangeIndex::BytesFor(capacity) <= free / 2; };
  const uint64_t wanted = ChangeIndex::CapacityFor(keys_ + entries_);
  while (growth.index_capacity < wanted && fits(2 * growth.index_capacity)) {
    growth.index_capacity *= 2;
  }
  const uint64_t others = ChangeIndex::BytesFor(growth.index_capacity) + kListBytes;
  const uint64_t log_bytes = free - std::min(free, others);
  growth.log_bytes = std::clamp(log_bytes / kPageBytes * kPageBytes, least.log_bytes,
                                std::max(least.log_bytes, kSegmentBytesMax));
  return growth;
}

Status Writer::PublishGrown(const Growth& growth) {
  const ChangeIndex& index = version_->newest().index();
  const bool log_is_full = growth.log_bytes != 0;
  NewFiles files(core_);
  VersionFiles next = list_;
  if (log_is_full) {
    SealLog(&next);
    BASALT_RETURN_IF_ERROR(AddSegment(&next, growth.log_bytes, &files));
  }
  // Also for a log alone: the old index must not lead readers of the old list to a new segment.
  const uint64_t file = NewFileNumber();
  BASALT_ASSIGN_OR_RETURN(const auto grown, NewIndex(file, growth.index_capacity, &files));
  if (growth.index_capacity != index.capacity()) {
    // A word does not have its key's whole hash, so that each change is read.
    BASALT_RETURN_IF_ERROR(
        version_->newest().WalkNewest([&](Location location, const Change& change) {
          const uint64_t hash = version_->hash_of()(change.record.key());
          uint64_t position = grown->FirstPosition(hash);
          while (grown->WordAt(position) != 0) position = grown->NextPosition(position);
          grown->StoreWord(hash, position, location);
        }));
  } else {
    grown->CopyWords(index);
  }
  next.change_sets.front().index_file = file;
  Location visible_end = end_.end;
  if (log_is_full) {
    const SegmentEntry& last = next.change_sets.front().segments.back();
    visible_end = last.first + static_cast<Location>(kLogHeaderBytes / kLogUnit);
  }
  grown->StoreState(
      {.visible_end = visible_end, .entries = entries_, .changes = changes_, .keys = keys_});
  return log_is_full ? PublishWithFreshLog(std::move(next), &files)
                     : Publish(std::move(next), &files);
}

}  // namespace basalt::shared_map
