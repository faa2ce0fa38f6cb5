#include "db/core.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/arena.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "db/edit.h"

namespace basalt::db {
namespace {

/// What Close leaves to the log: some milliseconds of replay.
constexpr uint64_t kReplayedBytesMax = uint64_t{2} << 20;

/// Whose job this thread is running.
thread_local const Core* job_of = nullptr;

void AddTables(const Version& version, DBStats* stats) {
  stats->levels.resize(Tree::kLevels);
  for (const auto& tree : version.trees()) {
    stats->range_deletes += tree->range_deletes.size();
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      LevelStats& of_level = stats->levels[level];
      for (const std::shared_ptr<TableFile>& file : tree->levels[level]) {
        const table::TableProperties& properties = file->properties();
        ++of_level.tables;
        of_level.bytes += properties.file_bytes;
        of_level.records += properties.records;
        of_level.deletes += properties.deletes;
        if (const table::Table* table = file->OpenedTable(); table != nullptr) {
          stats->table_metadata_bytes += table->metadata_bytes();
          stats->tables_in_parts += table->is_in_parts() ? 1 : 0;
        }
      }
    }
  }
}

}  // namespace

/// Registered with its core for as long as a Snapshot lives.
class Core::SnapshotState {
 public:
  explicit SnapshotState(std::shared_ptr<Core> core) : core_(std::move(core)) {
    const std::scoped_lock lock(core_->mutex_);
    sequence_ = core_->visible();
    time_ms_ = core_->WallMillis();
    core_->snapshots_.emplace(sequence_, time_ms_);
  }
  ~SnapshotState() {
    if (core_->IsInherited()) return;
    const std::scoped_lock lock(core_->mutex_);
    core_->snapshots_.erase(core_->snapshots_.find({sequence_, time_ms_}));
    // What it kept may go now.
    if (sequence_ <= core_->last_boundary_) core_->ScheduleCompaction();
  }
  SnapshotState(const SnapshotState&) = delete;
  SnapshotState& operator=(const SnapshotState&) = delete;

  const Core* core() const noexcept { return core_.get(); }
  base::SequenceNumber sequence() const noexcept { return sequence_; }
  uint64_t time_ms() const noexcept { return time_ms_; }

 private:
  const std::shared_ptr<Core> core_;
  base::SequenceNumber sequence_ = 0;
  uint64_t time_ms_ = 0;
};

// Readers in other threads may be inside an epoch still, for some moments.
Core::~Core() {
  current_.store(nullptr, std::memory_order_release);
  Retire(std::exchange(state_, nullptr));
  while (retired_.bytes() > 0) {
    std::this_thread::yield();
    retired_.Collect();
  }
  // Close has done the same; the lock is null then, and the files may be another opening's.
  if (lock_ != nullptr && log_ != nullptr) TrimReserve(kReserveOfClosedMax);
  if (obsolete_ != nullptr) obsolete_->End();
  base::ChunkPool::Process()->KeepMore(-static_cast<int64_t>(2 * memtable_bytes_));
}

Status Core::CheckUsable() const {
  if (IsUsable()) [[likely]]
    return {};
  if (IsInherited()) {
    return Status(
        StatusCode::kFailedPrecondition,
        "the database " + path_ +
            " was opened before fork(): the child must not use the parent's handle; close "
            "it before fork(), or open the database in the process that uses it",
        SubCode::kForked);
  }
  return Status(StatusCode::kFailedPrecondition,
                "the database " + path_ + " is closed: open it again", SubCode::kClosed);
}

Status Core::CheckWritable() const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  if (mode_ == Mode::kWrite) return {};
  return Status(StatusCode::kFailedPrecondition,
                "the database " + path_ + " was opened read-only: open it with DB::Open to write",
                SubCode::kReadOnly);
}

Status Core::CheckKeyspace(const ReadState& state, KeyspaceId keyspace) {
  const auto id = static_cast<uint32_t>(keyspace);
  if (state.keyspaces->Contains(id)) return {};
  return Status(StatusCode::kNotFound,
                "there is no keyspace " + std::to_string(id) +
                    "; it was never created (CreateKeyspace), or it was dropped",
                SubCode::kKeyspace);
}

std::shared_ptr<const ReadState> Core::State() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

Result<Snapshot> Core::TakeSnapshot() {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  auto state = std::make_shared<const SnapshotState>(shared_from_this());
  const base::SequenceNumber sequence = state->sequence();
  const WallTime time(std::chrono::milliseconds(static_cast<int64_t>(state->time_ms())));
  return Snapshot(std::move(state), sequence, time);
}

Status Core::CheckSnapshot(const Snapshot& snapshot) const {
  const auto* state = static_cast<const SnapshotState*>(snapshot.state().get());
  if (state == nullptr || state->core() != this) {
    return Status(
        StatusCode::kInvalidArgument,
        "read from " + path_ + ": the snapshot is of another store; take one from this store");
  }
  return {};
}

Status Core::Close() {
  if (IsInherited()) return CheckUsable();
  const std::scoped_lock lock(close_mutex_);
  if (!close_answer_) close_answer_ = CloseOnce();
  return *close_answer_;
}

Status Core::CloseOnce() {
  // What has no log is kept by tables alone. What has one would be replayed by the next opening: of
  // more than a little, a table is opened sooner.
  Status kept;
  if (mode_ == Mode::kWrite && CheckUsable().ok()) {
    const std::shared_ptr<const ReadState> state = State();
    const bool has_unlogged = HasUnlogged(*state);
    const bool is_large = state->active->table->memory_bytes() > kReplayedBytesMax;
    if (has_unlogged || is_large) kept = base::OrOutOfMemory([&] { return Flush(); });
    if (!has_unlogged) kept = Status();  // the log has it
  }
  CommitQueue::Tail queued;
  {
    const std::scoped_lock commit(commit_.lock);
    closed_.store(true, std::memory_order_release);
    queued = commit_.queue;
  }
  queue_->Drain(queued);
  {
    std::unique_lock lock(mutex_);
    CancelTimer();
    changed_.notify_all();
    WaitUntil(lock, [&] { return !flushing_ && running_.empty(); });
  }
  jobs_->WaitForAll(environment_.executor);
  if (mode_ == Mode::kWrite && log_ != nullptr) RecordClosing();
  if (log_ != nullptr) TrimReserve(kReserveOfClosedMax);
  ++reserve_uses_;  // the closing record is written in any case
  Status closed = log_ != nullptr ? log_->Close() : Status();
  if (obsolete_ != nullptr) obsolete_->End();
  lock_.reset();
  return kept.ok() ? closed : kept;
}

// The manifest vouches for all that the log has, so that a log that is deleted or cut after this is
// missed. It also has the time: the next opening's would else begin where the last manifest was
// written. Where it cannot be written, the database is as after a kill.
void Core::RecordClosing() {
  const bool is_synced = log_->Sync(log_->last_lsn()).ok();
  const std::scoped_lock install(install_mutex_);
  const bool is_behind = is_synced && manifest_.durable_lsn < log_->durable_lsn();
  if (is_behind || time_.IsAhead()) static_cast<void>(InstallLocked({}));
}

DBStats Core::GetStats() const {
  if (IsInherited()) return {};
  const std::shared_ptr<const ReadState> state = State();
  DBStats stats;
  CompactionLimits limits;
  {
    const std::scoped_lock lock(mutex_);
    stats = counters_;
    stats.snapshots = snapshots_.size();
    stats.oldest_snapshot = snapshots_.empty() ? 0 : snapshots_.begin()->first;
    stats.compactions_running = running_.size();
    if (!background_error_.ok()) stats.background_error = background_error_.ToString();
    limits = Limits();
  }
  {
    const std::scoped_lock commit(commit_.lock);
    stats.writes = commit_.writes;
    stats.records_written = commit_.records_written;
    stats.bytes_written = commit_.bytes_written;
  }
  stats.last_sequence = visible();
  if (log_ != nullptr) {
    stats.last_lsn = log_->last_lsn();
    stats.durable_lsn = log_->durable_lsn();
    stats.log_bytes = log_->live_bytes();
    stats.log_bytes_written = log_->bytes_written();
    stats.syncs = log_->syncs();
  }
  stats.flushed_lsn = flushed_lsn_.load(std::memory_order_relaxed);
  stats.memory_budget = memory_budget_;
  stats.keyspaces = 1 + state->keyspaces->entries().size();
  stats.memtable_bytes = state->active->table->memory_bytes();
  for (const auto& sealed : state->sealed) stats.memtable_bytes += sealed->table->memory_bytes();
  const CacheStats cache = cache_->GetStats();
  stats.cache_bytes = cache.bytes;
  stats.cache_capacity = cache.capacity_bytes;
  stats.cache_hits = cache.hits;
  stats.cache_misses = cache.misses;
  stats.compaction_debt = CompactionDebt(*state->version, limits);
  AddTables(*state->version, &stats);
  return stats;
}

std::function<void()> Core::JobOf(void (Core::*job)()) {
  return [self = shared_from_this(), jobs = jobs_, job]() mutable {
    const Core* const outer = std::exchange(job_of, self.get());
    // Where it finds no memory even to begin, the next flush or job looks again.
    static_cast<void>(base::OrOutOfMemory([&] {
      ((*self).*job)();
      return Status();
    }));
    job_of = outer;
    // Whoever waits for this job's end may count on its reference being gone.
    self.reset();
    jobs->End();
  };
}

bool Core::Schedule(void (Core::*job)()) noexcept {
  jobs_->Begin();
  try {
    environment_.executor->Schedule(JobOf(job));
  } catch (const std::bad_alloc&) {
    jobs_->End();
    return false;
  }
  return true;
}

void Core::ReleaseHandle() {
  if (IsInherited()) return;
  handle_gone_.store(true, std::memory_order_release);
  {
    const std::scoped_lock lock(mutex_);
    CancelTimer();
  }
  if (job_of != this) jobs_->WaitForAll(environment_.executor);
}

void Core::Notify(const Event& event) const {
  if (!options_.on_event) return;
  const std::scoped_lock lock(event_mutex_);
  options_.on_event(event);
}

}  // namespace basalt::db
