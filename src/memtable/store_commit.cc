#include <algorithm>
#include <new>
#include <shared_mutex>
#include <string>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/merging_iterator.h"
#include "base/short_hash.h"
#include "base/update_function.h"
#include "memtable/store.h"

// Writes that depend on reads: Update, batches with conditions, and the commits of transactions.
//
// A transaction has read at its snapshot S, and its batch is to take the numbers f to l. It is
// correct if nothing that it has read was written with a number between S and f. Sequence numbers
// are then a serial order. Its last step holds order_mutex_ exclusively, so that no other batch,
// Update or drop runs at the same time. Single puts do run, and take no lock. The step
//
// 1. takes f to l. They are above all numbers that were given out before, so later writes have
//    greater numbers, except single puts from the rest of a thread's block;
// 2. finds its generation still active, so nothing below f can be in a later one;
// 3. settles f - 1 (Sequencer). The cut lets no single put begin below f any more, and the step
//    waits for those that have begun there. They do not wait for any other thread;
// 4. searches for versions between S and f. All that will ever exist can be found now;
// 5. inserts the batch, or gives the numbers up. A reader at l or above waits for this thread,
//    whose slot has f in it since the first step.
//
// A put that the fourth step does not see has a number above l: it comes after the transaction. The
// transaction's snapshot keeps the versions that it has read at S, and so the evidence of newer
// writes.
//
// Expiry. A record that was read as present must not have expired for any reader that comes before
// the transaction. A snapshot takes its time first and then its number, under a mutex. The step
// reads the clock after its first step, under the same mutex. So a snapshot with a number below f
// has no later time.
//
// Cost under the lock. For a few keys: a lookup in each generation. Ranges, and many keys, are
// searched before, up to a settled number T. Under the lock remain the records that no sorted run
// covered then, and the range deletes that came since (Generation::Tail). If another generation has
// become active, the first search is repeated.
//
// Update reads one key now, and its last step puts the record under a condition (Condition): the
// newest version of the key in the active generation is still the one that was read. The record
// takes its place in the index by a compare-exchange against that version. The clock is read once
// it has its number, for the reason above.

namespace basalt::memtable {
namespace {

/// So many keys at most are looked up under the lock.
constexpr size_t kKeysUnderLock = 64;
/// What is remembered of the conditions of one batch.
constexpr uint64_t kConditionBytesMax = uint64_t{64} << 20;

Status Aborted(const std::string& what) {
  return Status(StatusCode::kAborted, what, SubCode::kConflict);
}

bool Overlaps(const transaction::ReadRange& range, const RangeDelete& deleted) noexcept {
  return deleted.keyspace == range.keyspace && range.begin < deleted.end &&
         (!range.end || deleted.begin < *range.end);
}

std::optional<WallTime> WallTimeOfUpdate(uint64_t ms) noexcept {
  if (ms == 0) return std::nullopt;
  return WallTime(std::chrono::milliseconds(static_cast<int64_t>(ms)));
}

}  // namespace

// ---- Batches ----

Result<Commit> StoreCore::WriteExpecting(const WriteBatch& batch, const WriteOptions& options,
                                         Expectations* expected) {
  if (batch.empty()) return Commit();
  if (batch.Has(RecordKind::kMerge)) NoteMerges();
  bool must_look = expected != nullptr && (!expected->reads->ranges().empty() ||
                                           expected->reads->keys().size() > kKeysUnderLock);
  std::string buffer;
  for (;;) {
    if (std::exchange(must_look, false)) BASALT_RETURN_IF_ERROR(LookForChange(expected));
    BatchForm form;
    {
      const base::EpochGuard inside;
      BASALT_ASSIGN_OR_RETURN(form, ToForm(batch, *state()->keyspaces, &time_, &buffer));
    }
    BASALT_ASSIGN_OR_RETURN(const Insertion done, WriteForm(form, options, expected));
    if (done.outcome == Outcome::kDone) return Commit{.sequence = done.last};
    must_look = done.outcome == Outcome::kMustLook;
  }
}

// A snapshot keeps what tells that a key has changed.
Result<Commit> StoreCore::WriteIfTheyHold(const WriteBatch& batch, const WriteOptions& options) {
  for (;;) {
    BASALT_ASSIGN_OR_RETURN(const Snapshot now, TakeSnapshot());
    transaction::ReadSet reads(kConditionBytesMax);
    BASALT_RETURN_IF_ERROR(CheckConditions(batch, now, &reads));
    Expectations expected{.reads = &reads, .since = now.sequence()};
    Result<Commit> written = WriteExpecting(batch, options, &expected);
    // Something has changed since the conditions were looked at: they may hold all the same.
    if (written || written.error().sub_code() != SubCode::kConflict) return written;
  }
}

Status StoreCore::CheckConditions(const WriteBatch& batch, const Snapshot& at,
                                  transaction::ReadSet* reads) const {
  BASALT_ASSIGN_OR_RETURN(const ReadPoint point, PointOf(at));
  const State seen = CopyState();
  BASALT_RETURN_IF_ERROR(
      batch.ForEachCondition([&](const WriteBatch::Requirement& required) -> Status {
        const auto keyspace = static_cast<uint32_t>(required.keyspace);
        if (!seen.keyspaces->Contains(keyspace)) return NoSuchKeyspace(keyspace);
        const base::EpochGuard inside;
        BASALT_ASSIGN_OR_RETURN(
            const WholeEntry found,
            FindWhole(seen, keyspace, required.key, base::HashShort(required.key), point));
        // A key that had a version, and of which nothing is known, was deleted.
        const bool is_unchanged =
            found.sequence <= required.version && (found.sequence != 0 || required.version == 0);
        const bool holds =
            required.condition == basalt::Condition::kUnchanged
                ? is_unchanged
                : found.value.has_value() == (required.condition == basalt::Condition::kPresent);
        if (!holds) {
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

Result<Commit> StoreCore::WriteIfUnchanged(const WriteBatch& batch, transaction::ReadSet* reads,
                                           const Snapshot& snapshot, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(batch.status());
  if (const auto point = PointOf(snapshot); !point) return point.error();
  if (batch.has_conditions()) {
    BASALT_ASSIGN_OR_RETURN(const Snapshot now, TakeSnapshot());
    BASALT_RETURN_IF_ERROR(CheckConditions(batch, now, reads));
  }
  Expectations expected{.reads = reads, .since = snapshot.sequence()};
  return WriteExpecting(batch, options, &expected);
}

// ---- Changes ----

// What no run covers at the beginning is in the tail. All else is complete, and its numbers were
// given out before: it has one up to `to`. So does each range delete that was there.
Status StoreCore::LookForChange(Expectations* expected) const {
  State seen;
  base::SequenceNumber to = 0;
  do {
    expected->tail.reset();
    expected->active = CopyState().active;
    expected->tail.emplace(expected->active->OpenTail());
    expected->known_ranges = expected->active->range_deletes().newest();
    const base::EpochGuard inside;
    seen = *Settled(&to);
  } while (seen.active != expected->active);
  if (const auto changed = FindChange(seen, *expected->reads, expected->since, to)) {
    return Aborted(*changed +
                   " was changed after the transaction read it; run the transaction again");
  }
  expected->since = std::max(expected->since, to);
  return {};
}

bool StoreCore::IsLate(const State& state, uint32_t keyspace, std::string_view key, uint64_t hash,
                       base::SequenceNumber since, base::SequenceNumber to) const noexcept {
  // The newest sequence that a generation has of the key; 0: none.
  const auto newest_in = [&](const Generation& generation) {
    base::SequenceNumber newest = 0;
    if (!generation.range_deletes().empty()) {
      newest = generation.range_deletes().SequenceAt(keyspace, key, to, nullptr);
    }
    const Record* const record = generation.Find(keyspace, key, hash, to, nullptr);
    if (record == nullptr) return newest;
    return std::max(newest, base::TagSequence(record->tag.load(std::memory_order_acquire)));
  };
  base::SequenceNumber newest = newest_in(*state.active);
  for (const auto& generation : state.sealed) {
    if (newest != 0) break;
    newest = newest_in(*generation);
  }
  return newest > since;
}

std::optional<std::string> StoreCore::FindChange(const State& state,
                                                 const transaction::ReadSet& reads,
                                                 base::SequenceNumber since,
                                                 base::SequenceNumber to) const {
  const auto is_late = [&](base::SequenceNumber sequence) {
    return sequence > since && sequence <= to;
  };
  for (const transaction::ReadSet::Key& key : reads.keys()) {
    const std::string_view bytes = reads.BytesOf(key);
    const base::EpochGuard inside;
    if (IsLate(state, key.keyspace, bytes, key.hash, since, to)) {
      return transaction::NameOfKey(bytes, key.keyspace);
    }
  }
  Generations generations = state.sealed;
  generations.insert(generations.begin(), state.active);
  for (const transaction::ReadRange& range : reads.ranges()) {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    for (const auto& generation : generations) {
      for (const RangeDelete& deleted : generation->range_deletes()) {
        if (is_late(deleted.sequence.load(std::memory_order_acquire)) && Overlaps(range, deleted)) {
          return transaction::NameOfKey(std::max(range.begin, deleted.begin), range.keyspace);
        }
      }
      children.push_back(generation->NewIterator(range.keyspace, to));
    }
    const auto records = base::NewMergingIterator(std::move(children));
    for (records->Seek(range.begin, base::kNewestTag);
         records->Valid() && range.Contains(records->key()); records->Next()) {
      if (is_late(base::TagSequence(records->tag()))) {
        return transaction::NameOfKey(records->key(), range.keyspace);
      }
    }
  }
  return std::nullopt;
}

std::optional<StoreCore::Conflict> StoreCore::FindLateChange(
    const State& state, const Expectations& expected, base::SequenceNumber to) const noexcept {
  using Kind = Conflict::Kind;
  const transaction::ReadSet& reads = *expected.reads;
  const uint32_t* const dropped =
      reads.FindKeyspace([&](uint32_t keyspace) { return !state.keyspaces->Contains(keyspace); });
  if (dropped != nullptr) return Conflict{.kind = Kind::kDropped, .keyspace = *dropped};
  const uint64_t expiry_ms = reads.earliest_expiry_ms();
  if (expiry_ms != 0 && expiry_ms <= NowBehindSnapshots()) return Conflict{.kind = Kind::kExpired};

  if (!expected.tail) {
    for (const transaction::ReadSet::Key& key : reads.keys()) {
      const std::string_view bytes = reads.BytesOf(key);
      if (IsLate(state, key.keyspace, bytes, key.hash, expected.since, to)) {
        return Conflict{.keyspace = key.keyspace, .key = bytes};
      }
    }
    return std::nullopt;
  }
  const auto is_late = [&](base::SequenceNumber sequence) {
    return sequence > expected.since && sequence <= to;
  };
  for (const RangeDelete& deleted : state.active->range_deletes()) {
    if (&deleted == expected.known_ranges) break;
    if (is_late(deleted.sequence.load(std::memory_order_acquire)) &&
        reads.CoversSomeOf(deleted.keyspace, deleted.begin, deleted.end)) {
      return Conflict{.keyspace = deleted.keyspace, .key = deleted.begin};
    }
  }
  std::optional<Conflict> found;
  expected.tail->ForEach([&](const Record& record, base::Tag tag) {
    if (is_late(base::TagSequence(tag)) &&
        reads.Covers(record.keyspace(), record.key(), base::Hash(record.key()))) {
      found = Conflict{.keyspace = record.keyspace(), .key = record.key()};
    }
    return !found;
  });
  return found;
}

Status StoreCore::StatusOf(const Conflict& conflict) {
  switch (conflict.kind) {
    case Conflict::Kind::kDropped:
      return Aborted("keyspace " + std::to_string(conflict.keyspace) +
                     " was dropped after the transaction read it; run the transaction again");
    case Conflict::Kind::kExpired:
      return Aborted("a record that the transaction read has expired; run the transaction again");
    case Conflict::Kind::kWritten:
      break;
  }
  return Aborted(transaction::NameOfKey(conflict.key, conflict.keyspace) +
                 " was changed after the transaction read it; run the transaction again");
}

// ---- Update ----

Result<Commit> StoreCore::Update(std::string_view key, const UpdateFunction& fn,
                                 const WriteOptions& options) {
  const uint64_t hash = base::HashShort(key);
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  WholeEntry before;
  std::optional<EntryUpdate> update;  // What `fn` makes of it.
  WriteBatch one;
  std::string buffer;
  for (;;) {
    std::shared_ptr<Generation> active;
    const RangeDelete* ranges = nullptr;
    base::Tag newest_here = 0;
    WholeEntry present;
    {
      const base::EpochGuard inside;
      const State* const seen = state();
      if (!seen->keyspaces->Contains(keyspace)) return NoSuchKeyspace(keyspace);
      active = seen->active;
      // First what is compared later: a change between these reads is then seen as one.
      ranges = active->range_deletes().newest();
      const Seen here = Look(*active, keyspace, key, hash, base::kMaxSequence);
      if (here.record != nullptr) {
        newest_here = here.record->tag.load(std::memory_order_relaxed);
      } else if (!seen->sealed.empty()) {
        // What is compared later says nothing of those who began before the others were sealed, and
        // may still be inserting there.
        sequencer_.Settle();
      }
      BASALT_ASSIGN_OR_RETURN(present, FindWhole(*seen, keyspace, key, hash, {}));
    }
    // Not for a generation that was sealed meanwhile: where others write much, one is all the time.
    const bool is_as_before = present.value.has_value() == before.value.has_value() &&
                              (!present.value || (present.sequence == before.sequence &&
                                                  present.expiry_ms == before.expiry_ms));
    if (!update || !is_as_before) {
      before = std::move(present);
      std::optional<std::string_view> current;
      if (before.value) current = before.value->view();
      update.emplace(current, before.value ? before.sequence : 0,
                     WallTimeOfUpdate(before.expiry_ms));
      BASALT_RETURN_IF_ERROR(fn(*update));
      const auto changed = base::RecordOf(*update, options);
      if (!changed) return Commit();
      one.Clear();
      if (changed->value) {
        one.Put(key, *changed->value, changed->options);
      } else {
        one.Delete(key, options.keyspace);
      }
      BASALT_RETURN_IF_ERROR(one.status());
    }
    BatchForm form;
    {
      const base::EpochGuard inside;
      BASALT_ASSIGN_OR_RETURN(form, ToForm(one, *state()->keyspaces, &time_, &buffer));
    }
    base::BatchCursor record(form.bytes);
    record.Next();
    const RecordSource source{.kind = record.kind(),
                              .keyspace = keyspace,
                              .key = record.key(),
                              .value = record.value(),
                              .time_ms = record.time_ms()};
    const Condition is_unchanged = [&](const Generation& now, base::Tag newest) {
      return &now == active.get() && newest == newest_here &&
             now.range_deletes().newest() == ranges &&
             (before.expiry_ms == 0 || before.expiry_ms > NowBehindSnapshots());
    };
    Attempt attempt;
    {
      const std::unique_lock order(order_mutex_);
      if (form.keyspaces_number != 0 && form.keyspaces_number != CopyState().keyspaces->number()) {
        continue;
      }
      attempt = TryOne(source, hash, &is_unchanged);
    }
    if (attempt.placed == Generation::Placed::kYes) {
      if (form.has_expiring) NoteExpiring();
      return Commit{.sequence = attempt.sequence};
    }
    if (attempt.placed == Generation::Placed::kNoRoom) {
      BASALT_RETURN_IF_ERROR(MakeRoom(*attempt.full, source.ByteSize(),
                                      source.kind == RecordKind::kDelete, options.may_wait));
    }
  }
}

}  // namespace basalt::memtable
