#include <algorithm>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/option_value.h"
#include "base/short_hash.h"
#include "base/thread_kept.h"
#include "db/core.h"

// The path of a write, and what is built on it: Update and PutIfAbsent.

namespace basalt::db {
namespace {

/// A buffer that grew larger for one batch is not kept.
constexpr size_t kKeptFormBytes = size_t{1} << 20;

/// For a batch that the log has in another form.
struct FormBuffer {
  std::string bytes;
};

/// Range deletes of a batch, with their places in it. Those that are not finished are dropped.
class PreparedRanges {
 public:
  explicit PreparedRanges(memtable::Generation* table) : table_(table) {}
  ~PreparedRanges() {
    for (const auto& [range, place] : ranges_) table_->Finish(range, 0);
  }
  PreparedRanges(const PreparedRanges&) = delete;
  PreparedRanges& operator=(const PreparedRanges&) = delete;

  /// False: the memtable has no room for them.
  bool Prepare(const LogForm& form, size_t count, bool within_limit) {
    ranges_.reserve(form.range_deletes);
    base::BatchCursor cursor(form.bytes);
    for (size_t place = 0; cursor.Next(); ++place) {
      if (cursor.kind() != RecordKind::kDeleteRange) continue;
      memtable::RangeDelete* const range = table_->PrepareRangeDelete(
          cursor.keyspace(), cursor.key(), cursor.value(), count > 1, within_limit);
      if (range == nullptr) return false;
      ranges_.emplace_back(range, place);
    }
    return true;
  }

  void Finish(base::SequenceNumber first) noexcept {
    for (const auto& [range, place] : ranges_) table_->Finish(range, first + place);
    ranges_.clear();
  }

 private:
  memtable::Generation* const table_;
  std::vector<std::pair<memtable::RangeDelete*, size_t>> ranges_;
};

}  // namespace

Status Core::CheckBatchSize(size_t bytes, size_t count) const {
  const uint64_t largest = memory_budget_ / 8;
  if (bytes <= largest) return {};
  return Status(StatusCode::kInvalidArgument,
                (count == 1 ? "a record of " : "a batch of ") + std::to_string(bytes) +
                    " bytes is larger than any that can be written: the limit is " +
                    std::to_string(largest) + " bytes, an eighth of DBOptions::memory_budget; " +
                    (count == 1 ? "" : "split it, or ") + "open the database with at least " +
                    std::to_string(8 * bytes));
}

Result<LogForm> Core::ToLogForm(std::string_view batch, std::string* buffer) const {
  const base::EpochGuard inside;
  const ReadState& state = *current_.load(std::memory_order_acquire);
  LogFormRules rules{.keyspaces = *state.keyspaces,
                     .durability = options_.durability,
                     .default_ttl = options_.default_ttl,
                     .now_ms = 0};
  Result<LogForm> form = db::ToLogForm(batch, rules, buffer);
  if (!form || !form->needs_time) return form;
  rules.now_ms = WallMillis();
  return db::ToLogForm(batch, rules, buffer);
}

Result<Durability> Core::DurabilityOf(const LogForm& form, const WriteOptions& options) const {
  if (!options.durability) return form.durability;
  if (options.durability == Durability::kMemory) {
    return Status(StatusCode::kInvalidArgument,
                  "WriteOptions::durability: kMemory is a property of a store, not of one write");
  }
  BASALT_RETURN_IF_ERROR(base::CheckDurability("WriteOptions::durability", *options.durability));
  if (!form.is_logged) {
    return Status(
        StatusCode::kInvalidArgument,
        "WriteOptions::durability: the keyspace has no log (kMemory), so that no write to "
        "it can be more durable; use Flush");
  }
  return *options.durability;
}

Status Core::Write(std::string_view batch, size_t count, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  BASALT_RETURN_IF_ERROR(CheckBatchSize(batch.size(), count));
  const base::ThreadKept<FormBuffer> buffer;
  BASALT_ASSIGN_OR_RETURN(const LogForm form, ToLogForm(batch, &buffer->bytes));
  BASALT_ASSIGN_OR_RETURN(const Durability durability, DurabilityOf(form, options));
  if (count == 0) {  // it carries what was written before all the same
    return options.durability.value_or(options_.durability) == Durability::kPower ? Sync()
                                                                                  : Status();
  }
  Status written = WriteForm(form, count, nullptr, durability);
  if (buffer->bytes.capacity() > kKeptFormBytes) std::string().swap(buffer->bytes);
  return written;
}

// Counted before it is asked whether the memtable is still the active one: whoever seals it
// afterwards waits for this write, so that it stays.
Core::Entry Core::EnterActive() {
  while (true) {
    Entry entry;
    {
      const base::EpochGuard inside;
      entry.generation = current_.load(std::memory_order_acquire)->active.get();
      entry.counter = entry.generation->in_flight.Enter(inside.thread_number());
      const ReadState* const now = current_.load(std::memory_order_seq_cst);
      if (now->active.get() == entry.generation) return entry;
    }
    Leave(entry);
  }
}

void Core::Leave(const Entry& entry) {
  if (!InFlight::Leave(entry.counter)) return;
  {
    const base::EpochGuard inside;
    if (current_.load(std::memory_order_seq_cst)->active.get() == entry.generation) return;
  }
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();  // its flush may wait for this
}

// Inlined, which spares every write some 50 instructions.
[[gnu::always_inline]] inline Status Core::WriteUntilRefused(const LogForm& form, size_t count,
                                                             const Precondition* precondition,
                                                             wal::Lsn* lsn) {
  while (true) {
    Attempt attempt = TryWrite(form, count, precondition, EnterActive());
    if (attempt.outcome == Attempt::Outcome::kDone && attempt.status.ok()) {
      *lsn = attempt.lsn;
      Pace(form.bytes.size());
      return {};
    }
    Status refused = std::move(attempt.status);
    if (attempt.full != nullptr) {
      Status made = MakeRoom(attempt.full);
      if (refused.ok()) refused = std::move(made);
    }
    if (!refused.ok()) return refused;
  }
}

Status Core::WriteForm(const LogForm& form, size_t count, const Precondition* precondition,
                       Durability durability) {
  wal::Lsn lsn = 0;
  Status written;
  if (obstacles_.load(std::memory_order_acquire) != 0) written = ClearTheWay(form);
  if (written.ok()) written = WriteUntilRefused(form, count, precondition, &lsn);
  if (written.code() == StatusCode::kResourceExhausted) {
    written = WriteToFullDisk(form, count, precondition, std::move(written), &lsn);
  }
  if (written.ok() && durability == Durability::kPower) written = log_->Sync(lsn);
  return written;
}

Status Core::WriteUnsynced(const LogForm& form, size_t count, const Precondition* precondition,
                           wal::Lsn* lsn) {
  return WriteUntilRefused(form, count, precondition, lsn);
}

Core::Attempt Core::TryWrite(const LogForm& form, size_t count, const Precondition* precondition,
                             const Entry& entry) {
  struct Leaver {
    ~Leaver() { core->Leave(entry); }
    Core* core;
    Entry entry;
  };
  const Leaver leaver{this, entry};
  Generation* const generation = entry.generation;
  memtable::Generation& table = *generation->table;
  auto reserved = table.Reserve(form.bytes, count);
  if (!reserved) {
    if (reserved.error().code() != StatusCode::kResourceExhausted) return {reserved.error()};
    return {.outcome = Attempt::Outcome::kAgain, .full = IfActive(generation)};
  }
  // Ends in Insert, or else in Abandon.
  struct Holder {
    ~Holder() {
      if (held) table.Abandon(std::move(reservation));
    }
    memtable::Generation& table;
    memtable::Generation::Reservation reservation;
    bool held = true;
  };
  Holder holder{table, std::move(*reserved)};
  PreparedRanges ranges(&table);
  if (form.range_deletes != 0 && !ranges.Prepare(form, count, !holder.reservation.is_first())) {
    return {.outcome = Attempt::Outcome::kAgain, .full = IfActive(generation)};
  }

  std::unique_lock commit(commit_.lock);
  if (Status usable = CheckUsable(); !usable.ok()) return {std::move(usable)};
  if (generation->sealed) return {.outcome = Attempt::Outcome::kAgain};
  if (precondition != nullptr) {
    if (Status refused = (*precondition)(); !refused.ok()) return {std::move(refused)};
  }
  const base::SequenceNumber first = commit_.last_sequence + 1;
  const base::SequenceNumber last = commit_.last_sequence + count;
  wal::Log::Ticket ticket;
  bool was_written = false;
  if (form.is_logged) {
    ticket = log_->Stage(first, static_cast<uint32_t>(count), form.bytes);
    was_written = ticket.is_written();
    if (was_written) commit_.active_lsn = ticket.lsn();
  } else {
    generation->has_unlogged.store(true, std::memory_order_relaxed);
  }
  if (form.deletes != 0) generation->deletes.fetch_add(form.deletes, std::memory_order_relaxed);
  if (form.has_merges) generation->has_merges.store(true, std::memory_order_relaxed);
  commit_.last_sequence = last;
  const CommitQueue::Ticket place = queue_->Take(&commit_.queue);
  commit_.active_sequence = last;
  ++commit_.writes;
  commit_.records_written += count;
  commit_.bytes_written += form.bytes.size() - count * base::kBatchRecordHeaderBytes;
  commit.unlock();
  queue_->Prefetch();

  Attempt done{form.is_logged ? log_->Wait(ticket) : Status()};
  if (done.status.ok()) {
    table.Insert(std::move(holder.reservation), first);
    holder.held = false;
    ranges.Finish(first);
    if (form.is_logged) {
      done.lsn = ticket.lsn();
      if (!was_written) generation->RaiseLastLsn(done.lsn);
    }
  } else if (table.empty() && table.memory_bytes() > memtable_bytes_) {
    // An empty memtable takes any batch, so that one to which every write fails has to go in time.
    done.full = IfActive(generation);
  }
  queue_->Finish(place, last);
  if (form.range_deletes != 0) table.FlattenRangeDeletes(nullptr);
  if (form.has_merges && done.status.ok()) FoldSome(form, first, &table);
  return done;
}

// What is appended is copied into folds, so that is left to readers.
void Core::FoldSome(const LogForm& form, base::SequenceNumber first,
                    memtable::Generation* table) const noexcept {
  base::BatchCursor cursor(form.bytes);
  for (base::SequenceNumber sequence = first; cursor.Next(); ++sequence) {
    const std::string_view bytes(reinterpret_cast<const char*>(&sequence), sizeof sequence);
    if (base::HashShort(bytes) % memtable::Generation::kFoldedMin != 0) continue;
    if (cursor.kind() != RecordKind::kMerge || cursor.value().empty() ||
        static_cast<MergeOperator>(cursor.value()[0]) == MergeOperator::kAppend) {
      continue;
    }
    table->FoldMerges(cursor.keyspace(), cursor.key(), base::HashShort(cursor.key()), visible(), 0);
  }
}

std::shared_ptr<Generation> Core::IfActive(const Generation* generation) const {
  const std::shared_ptr<const ReadState> state = State();
  return state->active.get() == generation ? state->active : nullptr;
}

// Update and PutIfAbsent

Status Core::WriteIfUnchanged(KeyspaceId keyspace, std::string_view key,
                              std::optional<std::string_view> value, uint64_t expiry_ms,
                              base::SequenceNumber expected, const WriteOptions& options) {
  std::string bytes;
  base::AppendBatchRecord({.kind = value ? RecordKind::kPut : RecordKind::kDelete,
                           .keyspace = static_cast<uint32_t>(keyspace),
                           .time_ms = value ? expiry_ms : 0,
                           .key = key,
                           .value = value.value_or(std::string_view())},
                          &bytes);
  BASALT_RETURN_IF_ERROR(CheckBatchSize(bytes.size(), 1));
  std::string buffer;
  BASALT_ASSIGN_OR_RETURN(LogForm form, ToLogForm(bytes, &buffer));
  form.bytes = bytes;  // the time is absolute already
  BASALT_ASSIGN_OR_RETURN(const Durability durability, DurabilityOf(form, options));
  // Inside the commit section: nobody may have written the key since it was read. What is queued
  // becomes visible without that section, so that waiting for it here ends.
  const Precondition unchanged = [&]() -> Status {
    queue_->Drain(commit_.queue);
    StoredVersion now;
    BASALT_RETURN_IF_ERROR(
        FindVersion(*State(), static_cast<uint32_t>(keyspace), key, base::Hash(key), Now(), &now));
    if (base::TagSequence(now.tag) == expected) return {};
    return Status(StatusCode::kAborted, "the key was changed meanwhile");
  };
  return WriteForm(form, 1, &unchanged, durability);
}

Status Core::Update(std::string_view key, const UpdateFunction& fn, KeyspaceId keyspace) {
  while (true) {
    BASALT_RETURN_IF_ERROR(CheckWritable());
    const std::shared_ptr<const ReadState> state = State();
    BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, keyspace));
    BASALT_ASSIGN_OR_RETURN(const Found before,
                            Find(*state, static_cast<uint32_t>(keyspace), key, Now()));
    std::optional<std::string_view> current;
    if (before.value) current = before.value->view();
    auto changed = fn(current);
    if (!changed) return changed.error();
    WriteBatch sizes;  // refuses what is too large
    sizes.Put(key, *changed ? std::string_view(**changed) : std::string_view());
    BASALT_RETURN_IF_ERROR(sizes.status());
    Status written = WriteIfUnchanged(
        keyspace, key, *changed ? std::optional<std::string_view>(**changed) : std::nullopt,
        before.expiry_ms, before.sequence, {});
    if (written.code() != StatusCode::kAborted) return written;
  }
}

Result<bool> Core::PutIfAbsent(std::string_view key, std::string_view value,
                               const WriteOptions& options) {
  WriteBatch one;
  one.Put(key, value, options.ttl, options.keyspace);
  BASALT_RETURN_IF_ERROR(one.status());
  while (true) {
    BASALT_RETURN_IF_ERROR(CheckWritable());
    const std::shared_ptr<const ReadState> state = State();
    BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, options.keyspace));
    BASALT_ASSIGN_OR_RETURN(const Found before,
                            Find(*state, static_cast<uint32_t>(options.keyspace), key, Now()));
    if (before.value) return false;
    std::string buffer;
    BASALT_ASSIGN_OR_RETURN(const LogForm form, ToLogForm(one.bytes(), &buffer));
    base::BatchCursor record(form.bytes);
    record.Next();
    Status written =
        WriteIfUnchanged(options.keyspace, key, value, record.time_ms(), before.sequence, options);
    if (written.ok()) return true;
    if (written.code() != StatusCode::kAborted) return written;
  }
}

// Room and pace

Status Core::MakeRoom(const std::shared_ptr<Generation>& full) {
  const uint64_t start = environment_.clock->MonotonicMicros();
  bool waited = false;
  while (true) {
    std::shared_ptr<Generation> blocking;
    {
      const std::scoped_lock commit(commit_.lock);
      BASALT_RETURN_IF_ERROR(CheckWritable());
      const std::shared_ptr<const ReadState> state = State();
      if (state->active != full) break;
      if (CanSeal(*state)) {
        Seal();
        break;
      }
      blocking = state->sealed.back();
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

void Core::Pace(uint64_t bytes) {
  if (pacer_.is_free()) return;
  io::Clock* const clock = environment_.clock;
  const uint64_t wait_us = pacer_.Charge(bytes, 1000 * clock->MonotonicMicros()) / 1000;
  if (wait_us == 0) return;
  clock->SleepFor(wait_us);
  const std::scoped_lock lock(mutex_);
  ++counters_.write_delays;
  counters_.write_delay_us += wait_us;
}

Status Core::Sync() {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  if (HasUnlogged(*State())) BASALT_RETURN_IF_ERROR(Flush());
  return log_->Sync(log_->last_lsn());
}

}  // namespace basalt::db
