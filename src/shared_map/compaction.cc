#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "shared_map/base_writer.h"
#include "shared_map/new_files.h"
#include "shared_map/record_spool.h"
#include "shared_map/writer.h"

namespace basalt::shared_map {
namespace {

/// Compactions begin with so many changed keys or bytes of changes at least, and otherwise with
/// these parts of what the base has: a compaction writes all of the base anew.
constexpr uint64_t kCompactionKeysMin = uint64_t{64} << 10;
constexpr uint64_t kCompactionBytesMin = uint64_t{16} << 20;
constexpr uint64_t kCompactionKeysPart = 10;
constexpr uint64_t kCompactionBytesPart = 4;

/// Where the disk lacks room, only the parts count, and that a compaction is worth its files.
constexpr uint64_t kCompactionBytesLacking = uint64_t{32} << 10;

/// With so many times what a compaction begins with, writes wait for the one that is under way.
constexpr uint64_t kCompactionsBehindMax = 2;

/// A fresh log of a full disk, which leaves the room that there is to the bases.
constexpr uint64_t kLogBytesMin = 4096;

struct BaseTotals {
  uint64_t records = 0;
  uint64_t bytes = 0;
};

BaseTotals TotalsOf(const Version& version) {
  BaseTotals totals;
  const BaseFile* counted = nullptr;  // Shards that share a base stand side by side.
  for (const auto& base : version.bases()) {
    if (base == nullptr || base.get() == counted) continue;
    counted = base.get();
    totals.records += base->figures().records;
    totals.bytes += base->figures().data_bytes;
  }
  return totals;
}

}  // namespace

/// What one compaction has to do, as of its begin.
class Writer::CompactionWork {
 public:
  /// `synced`: what lies before it in the newest changes survives a power cut.
  CompactionWork(std::shared_ptr<const Version> version, Location synced)
      : version_(std::move(version)),
        replaced_{.end = synced},
        changes_(version_->bases().size()) {}

  /// Finds the newest change of every key, by shard.
  Status Gather() {
    return compacting().WalkNewest([this](Location, const Change& change) {
      const uint64_t shard = version_->ShardOf(version_->hash_of()(change.record.key()));
      if (IsLeft(shard)) changes_[shard].push_back(change.record.address() - kChangeHeaderBytes);
    });
  }

  bool IsLeft(uint64_t shard) const { return version_->list().shards[shard].change_sets > 1; }
  uint64_t shards() const { return changes_.size(); }
  uint64_t records() const {
    uint64_t records = 0;
    for (uint64_t shard = 0; shard < shards(); ++shard) {
      if (IsLeft(shard)) records += changes_[shard].size() + BaseRecords(shard);
    }
    return records;
  }
  uint64_t BaseRecords(uint64_t shard) const {
    const BaseFile* const base = version_->bases()[shard].get();
    return base == nullptr ? 0 : base->figures().records;
  }
  /// Whether the shard's base can stay as it is.
  bool IsUnchanged(uint64_t shard) const {
    return changes_[shard].empty() && !version_->list().shards[shard].mixed;
  }
  uint64_t hash_seed() const { return version_->list().hash_seed(); }
  uint64_t BaseFileOf(uint64_t shard) const { return version_->list().shards[shard].base_file; }

  /// The addresses of the records that the shard's next base holds. Records that a newer synced
  /// change replaces are left out, so a compaction that found no space finds it after deletes.
  Result<std::vector<const char*>> Collect(uint64_t shard) const {
    std::vector<const char*> records;
    records.reserve(BaseRecords(shard) + changes_[shard].size());
    const BaseFile* const base = version_->bases()[shard].get();
    for (uint64_t slot = 0; slot < BaseRecords(shard); ++slot) {
      BASALT_ASSIGN_OR_RETURN(const RecordRef record, base->At(slot));
      const uint64_t hash = version_->hash_of()(record.key());
      if (version_->ShardOf(hash) != shard) continue;
      RecordRef change;
      const Found found = compacting().Find(hash, record.key(), &change);
      if (found == Found::kCorrupt) return version_->WhyCorrupt(hash, record.key(), {});
      if (found == Found::kAbsent && !IsReplaced(hash, record.key())) {
        records.push_back(record.address());
      }
    }
    for (const char* const change : changes_[shard]) {
      const RecordRef record(change + kChangeHeaderBytes);
      if (!record.is_put() || IsReplaced(version_->hash_of()(record.key()), record.key())) {
        continue;
      }
      records.push_back(record.address());
    }
    return records;
  }

 private:
  const ChangeSet& compacting() const { return version_->change_sets()[1]; }
  bool IsReplaced(uint64_t hash, std::string_view key) const {
    if (!version_->newest().index().HasChanges()) return false;
    ReadLimit limit = replaced_;
    RecordRef newer;
    return version_->newest().Find(hash, key, &limit, &newer) == Found::kPresent;
  }

  const std::shared_ptr<const Version> version_;
  const ReadLimit replaced_;
  std::vector<std::vector<const char*>> changes_;  // Addresses in the log, by shard.
};

uint64_t Writer::StoredBytes() const {
  return TotalsOf(*version_).bytes + uint64_t{end_.end} * kLogUnit;
}

uint32_t Writer::WantedShardBits() const {
  const BaseTotals totals = TotalsOf(*version_);
  const uint32_t wanted = RecordSpool::ShardBits(totals.records + keys_, StoredBytes());
  return std::max(list_.shard_bits, wanted);
}

Result<bool> Writer::BeginCompaction() {
  if (list_.compacting()) return true;
  if (changes_ == 0) return false;
  BASALT_RETURN_IF_ERROR(SyncLog());
  Status begun = PublishCompacting(lacks_room_ ? kLogBytesMin : UsualSegmentBytes(nullptr));
  if (begun.code() == StatusCode::kResourceExhausted && failed_.ok()) {
    begun = PublishCompacting(kLogBytesMin);
  }
  BASALT_RETURN_IF_ERROR(begun);
  changes_ = 0;
  keys_ = 0;
  compaction_moved_.notify_all();
  return true;
}

Status Writer::PublishCompacting(uint64_t log_bytes) {
  NewFiles files(core_);
  VersionFiles next = list_;
  SealLog(&next);
  BASALT_RETURN_IF_ERROR(AddChangeSet(&next, log_bytes, &files));
  const uint32_t bits = WantedShardBits();
  const uint32_t split_bits = bits - list_.shard_bits;
  next.shard_bits = bits;
  next.shards.resize(size_t{1} << bits);
  for (size_t shard = 0; shard < next.shards.size(); ++shard) {
    const ShardEntry& whole = list_.shards[shard >> split_bits];
    next.shards[shard] = {
        .base_file = whole.base_file, .change_sets = 2, .mixed = whole.mixed || split_bits != 0};
  }
  return PublishWithFreshLog(std::move(next), &files);
}

Status Writer::InstallShards(std::span<const CompactedShard> compacted) {
  const std::lock_guard guard(mutex_);
  NewFiles files(core_);
  for (const CompactedShard& shard : compacted) {
    const bool is_new =
        shard.base_file != 0 && shard.base_file != list_.shards[shard.shard].base_file;
    if (is_new) files.Add(FileKind::kBase, shard.base_file);
  }
  BASALT_RETURN_IF_ERROR(Refusal());
  VersionFiles next = list_;
  for (const CompactedShard& shard : compacted) {
    next.shards[shard.shard] = {.base_file = shard.base_file, .change_sets = 1, .mixed = false};
  }
  const bool done = std::all_of(next.shards.begin(), next.shards.end(),
                                [](const ShardEntry& shard) { return shard.change_sets == 1; });
  if (done) next.change_sets.pop_back();
  return Publish(std::move(next), &files);
}

Status Writer::CompactShards(const SharedMapProgressFunction& on_progress) {
  std::shared_ptr<const Version> version;
  Location synced = 0;
  {
    const std::lock_guard guard(mutex_);
    BASALT_RETURN_IF_ERROR(Refusal());
    if (changes_ != 0) BASALT_RETURN_IF_ERROR(SyncLog());
    version = version_;
    synced = synced_;
  }
  CompactionWork work(std::move(version), synced);
  BASALT_RETURN_IF_ERROR(work.Gather());
  const uint64_t total = work.records();
  uint64_t done = 0;
  const auto go_on = [&](uint64_t records_of_shard) {
    if (cancel_compactions_.load()) return false;
    return on_progress == nullptr ||
           on_progress(
               {.done_records = std::min(done + records_of_shard, total), .total_records = total});
  };
  Status cancelled(
      StatusCode::kCancelled,
      core_->directory() + ": the compaction was cancelled; the next one continues it");

  std::vector<CompactedShard> unchanged;
  for (uint64_t shard = 0; shard < work.shards(); ++shard) {
    if (!work.IsLeft(shard) || !work.IsUnchanged(shard)) continue;
    unchanged.push_back({.shard = shard, .base_file = work.BaseFileOf(shard)});
    done += work.BaseRecords(shard);
  }
  if (!unchanged.empty()) BASALT_RETURN_IF_ERROR(InstallShards(unchanged));
  for (uint64_t shard = 0; shard < work.shards(); ++shard) {
    if (!work.IsLeft(shard) || work.IsUnchanged(shard)) continue;
    if (!go_on(0)) return cancelled;
    BASALT_ASSIGN_OR_RETURN(const std::vector<const char*> records, work.Collect(shard));
    CompactedShard compacted{.shard = shard, .base_file = 0};
    if (!records.empty()) {
      {
        const std::lock_guard guard(mutex_);
        compacted.base_file = NewFileNumber();
      }
      const BaseWriteOptions options{.layout = options_.layout,
                                     .threads = options_.threads,
                                     .hash_seed = work.hash_seed(),
                                     .go_on = go_on};
      BASALT_RETURN_IF_ERROR(
          WriteBaseFile(fs_, core_->PathOf(NameOf(FileKind::kBase, compacted.base_file)), records,
                        options)
              .status());
    }
    BASALT_RETURN_IF_ERROR(InstallShards(std::span(&compacted, 1)));
    done += records.size();
  }
  return go_on(0) ? Status() : cancelled;
}

/// Writes meanwhile do not take the compaction for one that was broken off.
class Writer::CompactionUnderWay {
 public:
  explicit CompactionUnderWay(Writer* writer) : writer_(writer) { Set(true); }
  ~CompactionUnderWay() { Set(false); }
  CompactionUnderWay(const CompactionUnderWay&) = delete;
  CompactionUnderWay& operator=(const CompactionUnderWay&) = delete;

 private:
  void Set(bool under_way) {
    const std::lock_guard guard(writer_->mutex_);
    writer_->compaction_under_way_ = under_way;
  }
  Writer* const writer_;
};

Status Writer::Compact(const SharedMapProgressFunction& on_progress, CompactionReason reason) {
  BASALT_RETURN_IF_ERROR(RefuseFork());
  const std::lock_guard compaction_guard(compaction_mutex_);
  const CompactionUnderWay under_way(this);
  std::optional<io::ReserveFile::Loan> reserve;
  uint64_t before = 0;
  {
    const std::lock_guard guard(mutex_);
    // The reserve of a closed map may already be that of another process. The map stays open until
    // this returns, because Close takes compaction_mutex_.
    BASALT_RETURN_IF_ERROR(Refusal());
    if (reserve_is_owed_) TakeReserve(&reserve);
    before = compactions_;
  }
  Status compacted = CompactAll(on_progress, reason);
  if (!reserve && io::IsDiskFull(compacted)) {
    {
      const std::lock_guard guard(mutex_);
      TakeReserve(&reserve);
    }
    compacted = CompactAll(on_progress, reason);
  }
  reserve.reset();
  const std::lock_guard guard(mutex_);
  if (compactions_ != before) lacks_room_ = false;
  static_cast<void>(FillReserve());
  return compacted;
}

void Writer::TakeReserve(std::optional<io::ReserveFile::Loan>* loan) {
  loan->emplace(&reserve_);
  reserve_is_owed_ = true;
  lacks_room_ = true;
}

Status Writer::CompactAll(const SharedMapProgressFunction& on_progress, CompactionReason reason) {
  // One that was broken off comes first, and then the changes made since.
  for (bool again = true; again;) {
    {
      const std::lock_guard guard(mutex_);
      BASALT_RETURN_IF_ERROR(Refusal());
      again = list_.compacting() && changes_ != 0;
      // Another compaction may have come first.
      if (reason == CompactionReason::kDue && !list_.compacting() && !ChangesPileUp())
        return Status();
      BASALT_ASSIGN_OR_RETURN(const bool any, BeginCompaction());
      if (!any) return Status();
    }
    BASALT_RETURN_IF_ERROR(CompactShards(on_progress));
    const std::lock_guard guard(mutex_);
    ++compactions_;
    compaction_error_ = Status();
  }
  return Status();
}

void Writer::SetCompactionThresholds() {
  const BaseTotals totals = TotalsOf(*version_);
  compaction_keys_ = std::max(kCompactionKeysMin, totals.records / kCompactionKeysPart);
  compaction_bytes_ = std::max(kCompactionBytesMin, totals.bytes / kCompactionBytesPart);
}

bool Writer::ChangesPileUp() const {
  const uint64_t bytes = uint64_t{end_.end} * kLogUnit;
  if (keys_ >= compaction_keys_ || bytes >= compaction_bytes_) return true;
  // It cannot grow, however much room there is.
  if (list_.change_sets.front().segments.size() == VersionFiles::kSegmentsMax) return true;
  if (!lacks_room_ || bytes < kCompactionBytesLacking) return false;
  const BaseTotals totals = TotalsOf(*version_);
  return keys_ >= totals.records / kCompactionKeysPart ||
         bytes >= totals.bytes / kCompactionBytesPart;
}

bool Writer::CompactionIsDue() const {
  if (!options_.compact_in_background || core_->environment().executor == nullptr ||
      compaction_scheduled_ || changes_ < compaction_changes_min_) {
    return false;
  }
  const bool is_broken_off = list_.compacting() && !compaction_under_way_;
  return is_broken_off || ChangesPileUp();
}

void Writer::CompactForRoom() noexcept {
  if (compaction_changes_min_ != 0) --compaction_changes_min_;
  if (CompactionIsDue()) ScheduleCompaction();
}

void Writer::ScheduleCompaction() noexcept {
  // Where there is no memory for it, the next write tries again.
  const Status scheduled = base::OrOutOfMemory([this] {
    core_->environment().executor->Schedule(
        [core = core_->shared_from_this()] { core->writer()->CompactInBackground(); });
    return Status();
  });
  compaction_scheduled_ = scheduled.ok();
}

bool Writer::MustWaitForCompaction() const {
  // What room there is, is left to a compaction that gives some back.
  return compaction_scheduled_ &&
         (lacks_room_ || keys_ >= kCompactionsBehindMax * compaction_keys_ ||
          uint64_t{end_.end} * kLogUnit >= kCompactionsBehindMax * compaction_bytes_);
}

void Writer::WaitForCompaction(std::unique_lock<std::mutex>* lock) {
  if (!MustWaitForCompaction()) return;
  ++compaction_waits_;
  do {
    lock->unlock();
    const bool ran = core_->environment().executor->RunOne();
    lock->lock();
    if (!ran) compaction_moved_.wait(*lock, [this] { return !MustWaitForCompaction(); });
  } while (MustWaitForCompaction());
}

void Writer::CompactInBackground() {
  const Status status =
      base::OrOutOfMemory([this] { return Compact(nullptr, CompactionReason::kDue); },
                          "out of memory while compacting");
  const std::lock_guard guard(mutex_);
  compaction_scheduled_ = false;
  compaction_moved_.notify_all();
  compaction_changes_min_ = 0;
  if (status.ok() || closed_ || status.code() == StatusCode::kCancelled) return;
  compaction_error_ = status;
  compaction_changes_min_ = changes_ + changes_ / 4 + 1000;
}

}  // namespace basalt::shared_map
