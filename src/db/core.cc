#include "db/core.h"

#include <algorithm>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/fork_generation.h"
#include "base/hash.h"

namespace basalt::db {

/// Registered with its core for as long as a Snapshot lives.
class Core::SnapshotState {
 public:
  explicit SnapshotState(std::shared_ptr<Core> core) : core_(std::move(core)) {
    const std::scoped_lock lock(core_->mutex_);
    sequence_ = core_->visible();
    core_->snapshots_.insert(sequence_);
  }
  ~SnapshotState() {
    if (core_->fork_generation_ != base::ForkGeneration()) return;
    const std::scoped_lock lock(core_->mutex_);
    core_->snapshots_.erase(core_->snapshots_.find(sequence_));
  }
  SnapshotState(const SnapshotState&) = delete;
  SnapshotState& operator=(const SnapshotState&) = delete;

  const Core* core() const noexcept { return core_.get(); }
  base::SequenceNumber sequence() const noexcept { return sequence_; }

 private:
  const std::shared_ptr<Core> core_;
  base::SequenceNumber sequence_ = 0;
};

Status Core::CheckUsable() const {
  if (fork_generation_ != base::ForkGeneration()) {
    return Status(
        StatusCode::kFailedPrecondition,
        "the database " + path_ +
            " was opened before fork(): the child must not use the parent's handle; close "
            "it before fork(), or open the database in the process that uses it");
  }
  if (closed_.load(std::memory_order_acquire)) {
    return Status(StatusCode::kFailedPrecondition, "the database " + path_ + " is closed");
  }
  return {};
}

Status Core::CheckKeyspace(KeyspaceId keyspace) const {
  if (keyspace == KeyspaceId::kDefault) return {};
  return Status(StatusCode::kNotFound, "the database " + path_ + " has no keyspace " +
                                           std::to_string(static_cast<uint32_t>(keyspace)));
}

std::shared_ptr<const ReadState> Core::State() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

// Writing

Status Core::CheckWrite(size_t bytes, const WriteOptions& options, Durability* durability) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  *durability = options.durability.value_or(options_.durability);
  if (*durability == Durability::kMemory) {
    return Status(StatusCode::kInvalidArgument,
                  "WriteOptions::durability: kMemory is a property of a store, not of one write");
  }
  if (*durability == Durability::kInterval) {
    return Status(StatusCode::kUnsupported,
                  "WriteOptions::durability: kInterval is not built yet; use kProcess or kPower");
  }
  if (bytes > memory_budget_ / 8) {
    return Status(StatusCode::kResourceExhausted,
                  "a batch of " + std::to_string(bytes) +
                      " bytes exceeds an eighth of DBOptions::memory_budget (" +
                      std::to_string(memory_budget_) + "): split it, or raise memory_budget");
  }
  return {};
}

Status Core::Write(std::string_view batch, size_t count, const WriteOptions& options) {
  Durability durability = Durability::kProcess;
  BASALT_RETURN_IF_ERROR(CheckWrite(batch.size(), options, &durability));
  if (count == 0) return durability == Durability::kPower ? Sync() : Status();
  return WriteSequenced(batch, count, nullptr, durability);
}

Status Core::WriteSequenced(std::string_view batch, size_t count,
                            const std::function<Status()>* precondition, Durability durability) {
  while (true) {
    const std::shared_ptr<Generation> generation = State()->active;
    auto reservation = generation->table->Reserve(batch, count);
    if (!reservation) {
      if (reservation.error().code() != StatusCode::kResourceExhausted) return reservation.error();
      BASALT_RETURN_IF_ERROR(MakeRoom(generation));
      continue;
    }

    std::unique_lock commit(commit_mutex_);
    Status refused = CheckUsable();
    if (refused.ok() && !generation->sealed && precondition != nullptr) refused = (*precondition)();
    if (!refused.ok() || generation->sealed) {
      commit.unlock();
      generation->table->Abandon(std::move(*reservation));
      if (!refused.ok()) return refused;
      continue;
    }
    const base::SequenceNumber first = last_sequence_ + 1;
    const CommitQueue::Ticket place = queue_->Push(last_sequence_ + count);
    wal::Log::Ticket ticket = log_->Stage(first, static_cast<uint32_t>(count), batch);
    last_sequence_ += count;
    generation->in_flight.fetch_add(1, std::memory_order_relaxed);
    ++writes_;
    records_written_ += count;
    bytes_written_ += batch.size() - count * base::kBatchRecordHeaderBytes;
    commit.unlock();

    Status logged = log_->Wait(ticket);
    if (logged.ok()) {
      generation->table->Insert(std::move(*reservation), first);
      wal::Lsn last = generation->last_lsn.load(std::memory_order_relaxed);
      while (last < ticket.lsn() && !generation->last_lsn.compare_exchange_weak(
                                        last, ticket.lsn(), std::memory_order_relaxed)) {
      }
    } else {
      generation->table->Abandon(std::move(*reservation));
    }
    if (generation->in_flight.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
        State()->active != generation) {
      const std::scoped_lock lock(mutex_);
      changed_.notify_all();  // a flush may wait for this
    }
    queue_->Finish(place);
    if (!logged.ok()) {
      // An empty memtable takes any batch, so that one to which every write fails has to go in
      // time.
      const memtable::Generation& table = *generation->table;
      if (table.empty() && table.memory_bytes() > memtable_bytes_) {
        static_cast<void>(MakeRoom(generation));
      }
      return logged;
    }
    return durability == Durability::kPower ? log_->Sync(ticket.lsn()) : Status();
  }
}

Status Core::Update(std::string_view key, const UpdateFunction& fn) {
  while (true) {
    BASALT_RETURN_IF_ERROR(CheckUsable());
    const std::shared_ptr<const ReadState> state = State();
    BASALT_ASSIGN_OR_RETURN(const Found before, Find(*state, key, visible(), true));
    const bool present = before.tag != 0 && base::TagKind(before.tag) == RecordKind::kPut;
    std::optional<std::string_view> current;
    if (present) current = before.value.view();
    auto changed = fn(current);
    if (!changed) return changed.error();

    WriteBatch batch;
    if (*changed) {
      batch.Put(key, **changed);
    } else {
      batch.Delete(key);
    }
    BASALT_RETURN_IF_ERROR(batch.status());
    Durability durability = Durability::kProcess;
    BASALT_RETURN_IF_ERROR(CheckWrite(batch.byte_size(), {}, &durability));
    // Inside the commit section: nobody may have written the key since it was read. What is queued
    // becomes visible without that section, so that waiting for it here ends.
    const std::function<Status()> unchanged = [&]() -> Status {
      queue_->Drain();
      BASALT_ASSIGN_OR_RETURN(const Found now, Find(*State(), key, visible(), true));
      if (now.tag == before.tag) return {};
      return Status(StatusCode::kAborted, "the key was changed meanwhile");
    };
    Status written = WriteSequenced(batch.bytes(), 1, &unchanged, durability);
    if (written.code() != StatusCode::kAborted) return written;
  }
}

Status Core::MakeRoom(const std::shared_ptr<Generation>& full) {
  const uint64_t start = environment_.clock->MonotonicMicros();
  bool waited = false;
  while (true) {
    std::shared_ptr<Generation> blocking;
    {
      const std::scoped_lock commit(commit_mutex_);
      BASALT_RETURN_IF_ERROR(CheckUsable());
      const std::shared_ptr<const ReadState> state = State();
      if (state->active != full) break;
      if (state->sealed == nullptr) {
        Seal();
        break;
      }
      blocking = state->sealed;
    }
    waited = true;
    BASALT_RETURN_IF_ERROR(WaitForFlushOf(blocking));
  }
  const std::scoped_lock lock(mutex_);
  ScheduleFlush();
  if (waited) {
    ++counters_.write_waits;
    counters_.write_wait_us += environment_.clock->MonotonicMicros() - start;
  }
  return {};
}

Status Core::Sync() {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  return log_->Sync(log_->last_lsn());
}

Status Core::Close() {
  {
    const std::scoped_lock commit(commit_mutex_);
    if (fork_generation_ != base::ForkGeneration()) return CheckUsable();
    if (closed_.exchange(true, std::memory_order_acq_rel)) return {};
  }
  queue_->Drain();
  {
    std::unique_lock lock(mutex_);
    changed_.notify_all();
    WaitUntil(lock, [&] { return !flushing_ && !compacting_; });
  }
  jobs_->WaitForAll(environment_.executor);
  Status closed = log_->Close();
  lock_.reset();
  return closed;
}

// Reading

Result<Core::Found> Core::Find(const ReadState& state, std::string_view key,
                               base::SequenceNumber at, bool fill_cache) const {
  const uint64_t hash = base::Hash(key);
  memtable::FoundRecord record;
  if (state.active->table->Get(0, key, hash, at, &record) ||
      (state.sealed != nullptr && state.sealed->table->Get(0, key, hash, at, &record))) {
    return Found{record.tag, std::move(record.value)};
  }
  return FindInTables(*state.version, key, hash, at, fill_cache);
}

Result<Core::Found> Core::FindInTables(const Version& version, std::string_view key, uint64_t hash,
                                       base::SequenceNumber at, bool fill_cache) const {
  const auto find_in = [&](const TableFile& file, table::TableRead* read) -> Result<bool> {
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file.Open());
    return table->Get(key, hash, at, fill_cache, read);
  };
  table::TableRead read;
  for (const std::shared_ptr<TableFile>& file : version.level(0)) {
    const table::TableProperties& properties = file->properties();
    if (key < properties.smallest_key || key > properties.largest_key) continue;
    BASALT_ASSIGN_OR_RETURN(const bool found, find_in(*file, &read));
    if (found) return Found{read.tag, std::move(read.value)};
  }
  if (const TableFile* file = version.FindInLevel1(key); file != nullptr) {
    BASALT_ASSIGN_OR_RETURN(const bool found, find_in(*file, &read));
    if (found) return Found{read.tag, std::move(read.value)};
  }
  return Found{};
}

Result<MaybeValue> Core::Get(std::string_view key, const ReadOptions& options) const {
  Result<MaybeValue> result;
  BASALT_RETURN_IF_ERROR(MultiGet({&key, 1}, {&result, 1}, options));
  return result;
}

Status Core::MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                      const ReadOptions& options) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  BASALT_RETURN_IF_ERROR(CheckKeyspace(options.keyspace));
  if (keys.size() != results.size()) {
    return Status(StatusCode::kInvalidArgument, "MultiGet: " + std::to_string(keys.size()) +
                                                    " keys, but room for " +
                                                    std::to_string(results.size()) + " results");
  }
  const std::shared_ptr<const ReadState> state = State();
  base::SequenceNumber at = visible();
  if (options.snapshot != nullptr) {
    BASALT_ASSIGN_OR_RETURN(at, SnapshotSequence(*options.snapshot));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    auto found = Find(*state, keys[i], at, options.fill_cache);
    if (!found) {
      results[i] = found.error();
    } else if (found->tag != 0 && base::TagKind(found->tag) == RecordKind::kPut) {
      results[i] = MaybeValue(std::move(found->value));
    } else {
      results[i] = MaybeValue();
    }
  }
  return {};
}

Result<Snapshot> Core::TakeSnapshot() {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  auto state = std::make_shared<const SnapshotState>(shared_from_this());
  const base::SequenceNumber sequence = state->sequence();
  return Snapshot(std::move(state), sequence);
}

Result<base::SequenceNumber> Core::SnapshotSequence(const Snapshot& snapshot) const {
  const auto* state = static_cast<const SnapshotState*>(snapshot.state().get());
  if (state == nullptr || state->core() != this) {
    return Status(StatusCode::kInvalidArgument,
                  "the snapshot was taken from another store than " + path_);
  }
  return snapshot.sequence();
}

DBStats Core::GetStats() const {
  const std::shared_ptr<const ReadState> state = State();
  DBStats stats;
  {
    const std::scoped_lock lock(mutex_);
    stats = counters_;
    stats.snapshots = snapshots_.size();
    stats.oldest_snapshot = snapshots_.empty() ? 0 : *snapshots_.begin();
    if (!background_error_.ok()) stats.background_error = background_error_.ToString();
  }
  {
    const std::scoped_lock commit(commit_mutex_);
    stats.writes = writes_;
    stats.records_written = records_written_;
    stats.bytes_written = bytes_written_;
  }
  stats.last_sequence = visible();
  stats.last_lsn = log_->last_lsn();
  stats.durable_lsn = log_->durable_lsn();
  stats.flushed_lsn = flushed_lsn_.load(std::memory_order_relaxed);
  stats.log_bytes = log_->live_bytes();
  stats.log_bytes_written = log_->bytes_written();
  stats.syncs = log_->syncs();
  stats.memory_budget = memory_budget_;
  stats.memtable_bytes = state->active->table->memory_bytes() +
                         (state->sealed ? state->sealed->table->memory_bytes() : 0);
  const CacheStats cache = cache_->GetStats();
  stats.cache_bytes = cache.bytes;
  stats.cache_capacity = cache.capacity_bytes;
  stats.cache_hits = cache.hits;
  stats.cache_misses = cache.misses;
  for (size_t level = 0; level < Version::kLevels; ++level) {
    LevelStats& of_level = stats.levels.emplace_back();
    for (const std::shared_ptr<TableFile>& file : state->version->level(level)) {
      const table::TableProperties& properties = file->properties();
      ++of_level.tables;
      of_level.bytes += properties.file_bytes;
      of_level.records += properties.records;
      of_level.deletes += properties.deletes;
      if (const table::Table* table = file->OpenedTable(); table != nullptr) {
        stats.table_metadata_bytes += table->metadata_bytes();
      }
    }
  }
  return stats;
}

}  // namespace basalt::db
