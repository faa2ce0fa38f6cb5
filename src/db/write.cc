#include <algorithm>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/option_value.h"
#include "base/short_hash.h"
#include "base/thread_kept.h"
#include "base/update_function.h"
#include "base/wall_time_millis.h"
#include "db/change_search.h"
#include "db/core.h"

// The path of a write, and what is built on it: Update and PutIfAbsent.

namespace basalt::db {
namespace {

/// So many commits at most are looked at for changes under the commit lock.
constexpr size_t kCommitsUnderLock = 256;
/// What is remembered of the reads of one batch with conditions.
constexpr uint64_t kReadSetBytesMax = uint64_t{64} << 20;

Status Conflict(const std::string& what) {
  return Status(StatusCode::kAborted, what, SubCode::kConflict);
}

/// Whether a condition holds for a key whose newest write is `newest`; 0: there is none any more.
/// Compaction may leave nothing of a key that was deleted, so that a version must be there to be
/// unchanged.
bool Holds(const WriteBatch::Requirement& required, base::SequenceNumber newest,
           bool is_present) noexcept {
  switch (required.condition) {
    case Condition::kAbsent:
      return !is_present;
    case Condition::kPresent:
      return is_present;
    case Condition::kUnchanged:
      return required.version == 0 ? newest == 0 : is_present && newest <= required.version;
  }
  return false;
}

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
                    std::to_string(8 * bytes),
                SubCode::kBatchTooLarge);
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

Result<Commit> Core::Write(const WriteBatch& batch, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  if (!batch.has_conditions()) {
    return WriteBytes(batch.bytes(), batch.count(), options, nullptr);
  }
  const CommitHistory::User user(&history_);
  BeginHistory();
  while (true) {
    transaction::ReadSet reads(kReadSetBytesMax);
    Expectations expected{.reads = &reads};
    BASALT_RETURN_IF_ERROR(CheckConditions(batch, &reads, &expected.since));
    Result<Commit> written = WriteBytes(batch.bytes(), batch.count(), options, &expected);
    // Something has changed since the conditions were looked at: they may hold all the same.
    if (!written && written.error().sub_code() == SubCode::kConflict) continue;
    return written;
  }
}

Core::Moment Core::PresentMoment() const {
  while (true) {
    std::shared_ptr<const ReadState> state = State();
    const ReadPoint point = Now();
    if (current_.load(std::memory_order_acquire) == state.get()) return {std::move(state), point};
  }
}

Status Core::CheckConditions(const WriteBatch& batch, transaction::ReadSet* reads,
                             base::SequenceNumber* at) const {
  const Moment moment = PresentMoment();
  const std::shared_ptr<const ReadState>& state = moment.state;
  const ReadPoint point = moment.point;
  *at = point.at;
  BASALT_RETURN_IF_ERROR(
      batch.ForEachCondition([&](const WriteBatch::Requirement& required) -> Status {
        BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, required.keyspace));
        const auto keyspace = static_cast<uint32_t>(required.keyspace);
        BASALT_ASSIGN_OR_RETURN(const Found found, Find(*state, keyspace, required.key, point));
        if (!Holds(required, found.sequence, found.value.has_value())) {
          return Status(StatusCode::kAborted,
                        "a condition of the batch does not hold for " +
                            transaction::NameOfKey(required.key, keyspace),
                        SubCode::kCondition);
        }
        reads->AddKey(keyspace, required.key);
        reads->AddExpiry(found.expiry_ms);
        return {};
      }));
  reads->Normalise();
  return {};
}

Result<Commit> Core::WriteBytes(std::string_view batch, size_t count, const WriteOptions& options,
                                Expectations* expected) {
  BASALT_RETURN_IF_ERROR(CheckBatchSize(batch.size(), count));
  const base::ThreadKept<FormBuffer> buffer;
  BASALT_ASSIGN_OR_RETURN(const LogForm form, ToLogForm(batch, &buffer->bytes));
  BASALT_ASSIGN_OR_RETURN(const Durability durability, DurabilityOf(form, options));
  if (count == 0) {  // it carries what was written before all the same
    if (options.durability.value_or(options_.durability) == Durability::kPower) {
      BASALT_RETURN_IF_ERROR(Sync());
    }
    return Commit();
  }
  PendingWrite write{
      .form = form, .count = count, .expected = expected, .may_wait = options.may_wait};
  Status written = WriteForm(&write, durability);
  if (buffer->bytes.capacity() > kKeptFormBytes) std::string().swap(buffer->bytes);
  if (!written.ok()) return written;
  return write.commit;
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
[[gnu::always_inline]] inline Status Core::WriteUntilRefused(PendingWrite* write) {
  while (true) {
    Attempt attempt = TryWrite(write, EnterActive());
    if (attempt.outcome == Attempt::Outcome::kDone && attempt.status.ok()) {
      Pace(*write);
      return {};
    }
    Status refused = std::move(attempt.status);
    if (attempt.outcome == Attempt::Outcome::kMustLook) refused = LookForChange(write->expected);
    if (attempt.full != nullptr) {
      Status made = write->may_wait ? MakeRoom(attempt.full) : MakeRoomAtOnce(attempt.full);
      if (refused.ok()) refused = std::move(made);
    }
    if (!refused.ok()) return refused;
  }
}

Status Core::WriteForm(PendingWrite* write, Durability durability) {
  if (!write->may_wait) BASALT_RETURN_IF_ERROR(CheckWithoutWaiting(durability));
  Status written;
  if (write_stops_.load(std::memory_order_acquire) != 0) written = ResolveWriteStops(write->form);
  if (written.ok()) written = WriteUntilRefused(write);
  if (written.code() == StatusCode::kResourceExhausted) {
    written = WriteToFullDisk(write, std::move(written));
  }
  if (written.ok() && durability == Durability::kPower) {
    Status synced = log_->Sync(write->commit.lsn);
    if (!synced.ok()) written = Status(synced.code(), synced.message(), SubCode::kNotDurable);
  }
  return written;
}

Status Core::CheckWithoutWaiting(Durability durability) const {
  if (durability == Durability::kPower) {
    return Status(StatusCode::kInvalidArgument,
                  "WriteOptions::may_wait: a write at kPower waits for the disk; write at kProcess "
                  "and call WaitDurable");
  }
  if (write_stops_.load(std::memory_order_acquire) != 0) return WouldBlock();
  if (!pacer_.is_free() && pacer_.IsTaken(1000 * environment_.clock->MonotonicMicros()))
    return WouldBlock();
  return {};
}

Status Core::WouldBlock() noexcept {
  return Status(StatusCode::kWouldBlock,
                "the write would have to wait for a flush or for compaction: make it on a thread "
                "that may wait");
}

Status Core::WriteUnsynced(PendingWrite* write) { return WriteUntilRefused(write); }

Core::Attempt Core::TryWrite(PendingWrite* write, const Entry& entry) {
  const LogForm& form = write->form;
  const size_t count = write->count;
  struct Leaver {
    ~Leaver() { core->Leave(entry); }
    Core* core;
    Entry entry;
  };
  const Leaver leaver{this, entry};
  LoggedGeneration* const generation = entry.generation;
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

  transaction::ListenerList::Node heard;
  if (listeners_->any()) heard = transaction::ListenerList::Prepare(form.bytes, count);

  std::unique_lock commit(commit_.lock);
  if (Status usable = CheckUsable(); !usable.ok()) return {std::move(usable)};
  if (generation->sealed || (heard.empty() && listeners_->any())) {
    return {.outcome = Attempt::Outcome::kAgain};
  }
  if (write->expected != nullptr) {
    Attempt looked = CheckUnderLock(*write->expected);
    if (looked.outcome == Attempt::Outcome::kMustLook || !looked.status.ok()) return looked;
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
  if (history_.is_recording()) history_.Record(last, form.bytes);
  transaction::ListenerList::Pending* pending = nullptr;
  if (!heard.empty()) pending = listeners_->Add(std::move(heard), last);
  commit.unlock();
  queue_->Prefetch();

  Attempt done{form.is_logged ? log_->Wait(ticket) : Status()};
  if (done.status.ok()) {
    table.Insert(std::move(holder.reservation), first);
    holder.held = false;
    ranges.Finish(first);
    write->commit = {.sequence = last, .lsn = form.is_logged ? ticket.lsn() : 0};
    if (form.is_logged && !was_written) generation->RaiseLastLsn(ticket.lsn());
  } else if (table.empty() && table.memory_bytes() > memtable_bytes_) {
    // An empty memtable takes any batch, so that one to which every write fails has to go in time.
    done.full = IfActive(generation);
  }
  if (pending != nullptr) {
    transaction::ListenerList::Settle(pending, done.status.ok(), write->commit.lsn);
  }
  queue_->Finish(place, last);
  if (pending != nullptr) listeners_->Deliver(last);
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

std::shared_ptr<LoggedGeneration> Core::IfActive(const LoggedGeneration* generation) const {
  const std::shared_ptr<const ReadState> state = State();
  return state->active.get() == generation ? state->active : nullptr;
}

// Writes that depend on what was read

Core::Attempt Core::CheckUnderLock(const Expectations& expected) const {
  const transaction::ReadSet& reads = *expected.reads;
  if (!history_.Covers(expected.since) || history_.CountAbove(expected.since) > kCommitsUnderLock) {
    return {.outcome = Attempt::Outcome::kMustLook};
  }
  return {CheckChange(expected, history_.ConflictAbove(expected.since, reads))};
}

Status Core::CheckChange(const Expectations& expected,
                         const std::optional<std::string>& changed) const {
  if (changed) {
    return Conflict(*changed +
                    " was changed after the transaction read it; run the transaction again");
  }
  const uint64_t expiry = expected.reads->earliest_expiry_ms();
  if (expiry != 0 && expiry <= WallMillis()) {
    return Conflict("a record that the transaction read has expired; run the transaction again");
  }
  const base::EpochGuard inside;
  const Keyspaces& keyspaces = *current_.load(std::memory_order_acquire)->keyspaces;
  const uint32_t* const dropped = expected.reads->FindKeyspace(
      [&](uint32_t keyspace) { return !keyspaces.Contains(keyspace); });
  if (dropped == nullptr) return {};
  return Conflict("keyspace " + std::to_string(*dropped) +
                  " was dropped after the transaction read it; run the transaction again");
}

Result<Subscription> Core::AddListener(CommitListener listener) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  CommitQueue::Tail tail;
  Subscription made = listeners_->Register(std::move(listener), [&] {
    const std::scoped_lock commit(commit_.lock);
    tail = commit_.queue;
    return commit_.last_sequence;
  });
  queue_->Drain(tail);
  return made;
}

Result<Commit> Core::WriteIfUnchanged(const WriteBatch& batch, transaction::ReadSet* reads,
                                      base::SequenceNumber since, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  BASALT_RETURN_IF_ERROR(batch.status());
  if (batch.has_conditions()) {
    base::SequenceNumber at = 0;
    BASALT_RETURN_IF_ERROR(CheckConditions(batch, reads, &at));
  }
  Expectations expected{.reads = reads, .since = since, .is_kept = true};
  // Conditions alone: they held now, and so must what was read.
  if (batch.empty()) BASALT_RETURN_IF_ERROR(LookForChange(&expected));
  return WriteBytes(batch.bytes(), batch.count(), options, &expected);
}

Status Core::LookForChange(Expectations* expected) const {
  CommitQueue::Tail tail;
  base::SequenceNumber to;
  {
    const std::scoped_lock commit(commit_.lock);
    tail = commit_.queue;
    to = commit_.last_sequence;
  }
  queue_->Drain(tail);
  BASALT_ASSIGN_OR_RETURN(const std::optional<std::string> changed, SearchChange(*expected, to));
  BASALT_RETURN_IF_ERROR(CheckChange(*expected, changed));
  expected->since = to;
  return {};
}

Result<std::optional<std::string>> Core::SearchChange(const Expectations& expected,
                                                      base::SequenceNumber to) const {
  const std::shared_ptr<const ReadState> state = State();
  const transaction::ReadSet& reads = *expected.reads;
  if (expected.is_kept) return FindChange(*state, reads, expected.since, to);
  if (expected.before == nullptr) return std::optional<std::string>("what conditions look at");
  const transaction::ReadSet::Key& key = reads.keys().front();
  const std::string_view bytes = reads.BytesOf(key);
  BASALT_ASSIGN_OR_RETURN(const Found now, Find(*state, key.keyspace, bytes, ReadPoint{.at = to}));
  if (now.sequence == expected.before->sequence) return std::optional<std::string>();
  return std::optional<std::string>(transaction::NameOfKey(bytes, key.keyspace));
}

void Core::BeginHistory() {
  const std::scoped_lock commit(commit_.lock);
  history_.Begin(commit_.last_sequence);
}

Result<Commit> Core::Update(std::string_view key, const UpdateFunction& fn,
                            const WriteOptions& options) {
  const CommitHistory::User user(&history_);
  BeginHistory();
  while (true) {
    BASALT_RETURN_IF_ERROR(CheckWritable());
    const auto [state, point] = PresentMoment();
    BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, options.keyspace));
    BASALT_ASSIGN_OR_RETURN(const Found before,
                            Find(*state, static_cast<uint32_t>(options.keyspace), key, point));
    std::optional<std::string_view> current;
    if (before.value) current = before.value->view();
    EntryUpdate update(current, before.value ? before.sequence : 0,
                       base::WallTimeOf(before.expiry_ms));
    BASALT_RETURN_IF_ERROR(fn(update));
    const std::optional<base::UpdatedRecord> changed = base::RecordOf(update, options);
    if (!changed) return Commit();
    WriteBatch one;
    if (changed->value) {
      one.Put(key, *changed->value, changed->options);
    } else {
      one.Delete(key, options.keyspace);
    }
    Result<Commit> written = WriteIfKeyIsUnchanged(one, key, before, point.at, options);
    if (written || written.error().code() != StatusCode::kAborted) return written;
  }
}

Result<std::optional<Commit>> Core::PutIfAbsent(std::string_view key, std::string_view value,
                                                const WriteOptions& options) {
  WriteBatch one;
  one.Put(key, value, {.keyspace = options.keyspace, .ttl = options.ttl, .expiry = options.expiry});
  BASALT_RETURN_IF_ERROR(one.status());
  const CommitHistory::User user(&history_);
  BeginHistory();
  while (true) {
    BASALT_RETURN_IF_ERROR(CheckWritable());
    const auto [state, point] = PresentMoment();
    BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, options.keyspace));
    BASALT_ASSIGN_OR_RETURN(const Found before,
                            Find(*state, static_cast<uint32_t>(options.keyspace), key, point));
    if (before.value) return std::optional<Commit>();
    Result<Commit> written = WriteIfKeyIsUnchanged(one, key, before, point.at, options);
    if (written) return std::optional<Commit>(*written);
    if (written.error().code() != StatusCode::kAborted) return written.error();
  }
}

Result<Commit> Core::WriteIfKeyIsUnchanged(const WriteBatch& one, std::string_view key,
                                           const Found& before, base::SequenceNumber at,
                                           const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(one.status());
  transaction::ReadSet reads(kReadSetBytesMax);
  reads.AddKey(static_cast<uint32_t>(options.keyspace), key);
  reads.AddExpiry(before.expiry_ms);
  Expectations expected{.reads = &reads, .since = at, .before = &before};
  WriteOptions of_batch{.durability = options.durability, .may_wait = options.may_wait};
  return WriteBytes(one.bytes(), one.count(), of_batch, &expected);
}

// Room and pace

Status Core::MakeRoom(const std::shared_ptr<LoggedGeneration>& full) {
  const uint64_t start = environment_.clock->MonotonicMicros();
  bool waited = false;
  while (true) {
    std::shared_ptr<LoggedGeneration> blocking;
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

// A writer that may not wait is charged, so that its next write waits elsewhere.
void Core::Pace(const PendingWrite& write) {
  if (pacer_.is_free() && flush_pace_.is_free()) return;
  io::Clock* const clock = environment_.clock;
  uint64_t wait_us = 0;
  if (!pacer_.is_free()) {
    wait_us = pacer_.Charge(write.form.bytes.size(), 1000 * clock->MonotonicMicros()) / 1000;
  }
  if (!write.may_wait) return;
  if (wait_us != 0) clock->SleepFor(wait_us);
  wait_us += WaitForFlushPace(write);
  if (wait_us == 0) return;
  const std::scoped_lock lock(mutex_);
  ++counters_.write_delays;
  counters_.write_delay_us += wait_us;
}

uint64_t Core::WaitForFlushPace(const PendingWrite& write) {
  const auto active_bytes = [this] {
    const base::EpochGuard inside;
    return current_.load(std::memory_order_acquire)->active->table->memory_bytes();
  };
  uint64_t steps = 0;
  while (steps < FlushPace::StepsMax(write.form.bytes.size()) && !flush_pace_.is_free() &&
         flush_pace_.MustWait(active_bytes())) {
    environment_.clock->SleepFor(FlushPace::kStepUs);
    ++steps;
  }
  return steps * FlushPace::kStepUs;
}

Status Core::MakeRoomAtOnce(const std::shared_ptr<LoggedGeneration>& full) {
  {
    const std::scoped_lock commit(commit_.lock);
    BASALT_RETURN_IF_ERROR(CheckWritable());
    const std::shared_ptr<const ReadState> state = State();
    if (state->active != full) return {};
    if (!CanSeal(*state)) return WouldBlock();
    Seal();
  }
  const std::scoped_lock lock(mutex_);
  ScheduleFlush();
  return {};
}

Status Core::WaitDurable(uint64_t lsn) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  if (lsn > log_->last_lsn()) {
    return Status(StatusCode::kInvalidArgument, "WaitDurable: there is no log record " +
                                                    std::to_string(lsn) + " yet; the last is " +
                                                    std::to_string(log_->last_lsn()));
  }
  return log_->Sync(lsn);
}

Result<wal::LogReader> Core::ReadLog(wal::Lsn from) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  if (log_ == nullptr || mode_ != Mode::kWrite) {
    return Status(StatusCode::kUnsupported, "follow the changes of " + path_ +
                                                ": only a database that is open for writing "
                                                "has a log to read them from");
  }
  if (from == 0) {
    return Status(StatusCode::kInvalidArgument, "Changes: the first log record is 1, not 0");
  }
  const wal::Lsn last = log_->last_lsn();
  if (from > last + 1) {
    return Status(StatusCode::kOutOfRange,
                  "follow the changes of " + path_ + " from LSN " + std::to_string(from) +
                      ": its log ends with " + std::to_string(last) +
                      ", because a power cut took records that were not synced; read the store, "
                      "and follow from the log's end",
                  SubCode::kLogGone);
  }
  return wal::LogReader(log_.get(), environment_.fs, from);
}

Status Core::Sync() {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  if (HasUnlogged(*State())) BASALT_RETURN_IF_ERROR(Flush());
  return log_->Sync(log_->last_lsn());
}

}  // namespace basalt::db
