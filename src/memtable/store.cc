#include "memtable/store.h"

#include <algorithm>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/batch_cursor.h"
#include "base/batch_time.h"
#include "base/check.h"
#include "base/merge_operator.h"
#include "base/option_value.h"
#include "base/short_hash.h"

namespace basalt::memtable {
namespace {

constexpr uint64_t kBudgetMin = uint64_t{256} << 10;
/// A batch so large is sorted by its writer.
constexpr size_t kSortedBatchBytes = size_t{256} << 10;
/// After so many small batches it is time to sort.
constexpr uint64_t kBatchesPiled = 64;

Status NoMemory() {
  return Status(StatusCode::kResourceExhausted, "use a memtable: the system has no memory left");
}

/// Of a record whose key or value is too large.
Status SizeFault(const RecordSource& source) {
  const auto refuse = [](const char* what, size_t bytes, uint64_t most) {
    return Status(StatusCode::kInvalidArgument, std::string("write to a memtable: the ") + what +
                                                    " has " + std::to_string(bytes) +
                                                    " bytes, at most " + std::to_string(most) +
                                                    " are possible");
  };
  return source.key.size() > kMaxKeyBytes ? refuse("key", source.key.size(), kMaxKeyBytes)
                                          : refuse("value", source.value.size(), kMaxValueBytes);
}

}  // namespace

// ---- Life ----

Result<std::shared_ptr<StoreCore>> StoreCore::Create(const basalt::MemTableOptions& options,
                                                     io::Clock* clock) {
  const auto invalid = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "create a memtable: " + what);
  };
  basalt::MemTableOptions checked = options;
  if (options.memory_budget < kBudgetMin) {
    return invalid("memory_budget is " + std::to_string(options.memory_budget) +
                   ", and must be at least 262144");
  }
  if (options.shards > Generation::kShardsMax || (options.shards & (options.shards - 1)) != 0) {
    return invalid("shards is " + std::to_string(options.shards) +
                   ", and must be a power of two up to 256, or 0 to derive it");
  }
  const uint64_t least = std::max(kGenerationMin, options.shards * kShardBytesMin);
  if (least > options.memory_budget / 2) {
    return invalid("shards is " + std::to_string(options.shards) +
                   ", and needs a memory_budget of at least " + std::to_string(2 * least) +
                   "; that is " + std::to_string(options.memory_budget));
  }
  if (checked.generation_bytes == 0) {
    checked.generation_bytes = std::max(options.memory_budget / 8, least);
  }
  if (checked.generation_bytes < least || checked.generation_bytes > options.memory_budget / 2) {
    return invalid("generation_bytes is " + std::to_string(checked.generation_bytes) +
                   ", and must be from " + std::to_string(least) + " (with " +
                   std::to_string(options.shards) + " shards) to half of memory_budget, " +
                   std::to_string(options.memory_budget / 2));
  }
  if (options.at_budget > AtBudget::kRefuse) {
    return base::NoSuchValue("create a memtable: at_budget", options.at_budget, "kWait or kRefuse");
  }
  try {
    return std::shared_ptr<StoreCore>(new StoreCore(Private{}, checked, clock),
                                      [](StoreCore* core) {
                                        if (!core->IsInherited()) delete core;
                                      });
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

StoreCore::StoreCore(Private, const basalt::MemTableOptions& options, io::Clock* clock)
    : options_(options), time_(clock), sort_delay_(std::thread::hardware_concurrency()) {
  state_.store(new State{.active = NewGeneration(options_.generation_bytes),
                         .sealed = {},
                         .keyspaces = std::make_shared<const Keyspaces>()},
               std::memory_order_release);
  // What one generation gives back the next one takes: fresh pages cost more than a record.
  base::ChunkPool::Process()->KeepMore(static_cast<int64_t>(options_.memory_budget));
}

StoreCore::~StoreCore() {
  delete state_.load(std::memory_order_relaxed);
  base::ChunkPool::Process()->KeepMore(-static_cast<int64_t>(options_.memory_budget));
}

std::shared_ptr<Generation> StoreCore::NewGeneration(uint64_t bytes) const {
  GenerationOptions options;
  options.budget_bytes = bytes;
  options.shards = options_.shards;
  return Generation::Create(options);
}

// ---- Keyspaces ----

Result<KeyspaceId> StoreCore::CreateKeyspace(std::string_view name,
                                             const KeyspaceOptions& options) {
  BASALT_RETURN_IF_ERROR(CheckNewKeyspace(name, options));
  const std::lock_guard lock(state_mutex_);
  State next = CopyState();
  if (next.keyspaces->Find(name) != nullptr) {
    return Status(StatusCode::kAlreadyExists,
                  "there is a keyspace \"" + std::string(name) +
                      "\" already: open it with OpenKeyspace or OpenOrCreateKeyspace");
  }
  std::vector<Keyspaces::Keyspace> entries = next.keyspaces->entries();
  const uint32_t id = next_keyspace_id_;
  entries.push_back({.id = id, .name = std::string(name), .options = options});
  next.keyspaces =
      std::make_shared<const Keyspaces>(std::move(entries), next.keyspaces->number() + 1);
  Publish(std::move(next));
  ++next_keyspace_id_;
  return static_cast<KeyspaceId>(id);
}

Result<KeyspaceId> StoreCore::OpenKeyspace(std::string_view name) const {
  const std::shared_ptr<const Keyspaces> keyspaces = CopyState().keyspaces;
  const Keyspaces::Keyspace* const found = keyspaces->Find(name);
  if (found == nullptr) {
    return Status(
        StatusCode::kNotFound,
        "there is no keyspace \"" + std::string(name) + "\": create it with CreateKeyspace",
        SubCode::kKeyspace);
  }
  return static_cast<KeyspaceId>(found->id);
}

std::vector<KeyspaceInfo> StoreCore::ListKeyspaces() const {
  std::vector<KeyspaceInfo> list(1);
  const std::shared_ptr<const Keyspaces> keyspaces = CopyState().keyspaces;
  for (const Keyspaces::Keyspace& keyspace : keyspaces->entries()) {
    list.push_back({.id = static_cast<KeyspaceId>(keyspace.id),
                    .name = keyspace.name,
                    .options = keyspace.options});
  }
  return list;
}

// No batch and no transaction is between its look at the keyspaces and its last record. A single
// put that is comes before the drop: nobody will see it.
Status StoreCore::DropKeyspace(KeyspaceId keyspace) {
  if (keyspace == KeyspaceId::kDefault) {
    return Status(StatusCode::kInvalidArgument,
                  "the default keyspace cannot be dropped: delete its keys (DeleteRange)");
  }
  const auto id = static_cast<uint32_t>(keyspace);
  {
    const std::unique_lock order(order_mutex_);
    const std::lock_guard lock(state_mutex_);
    State next = CopyState();
    if (!next.keyspaces->Contains(id)) return NoSuchKeyspace(id);
    std::vector<Keyspaces::Keyspace> entries = next.keyspaces->entries();
    std::erase_if(entries, [&](const Keyspaces::Keyspace& entry) { return entry.id == id; });
    next.keyspaces =
        std::make_shared<const Keyspaces>(std::move(entries), next.keyspaces->number() + 1);
    Publish(std::move(next));
  }
  ScheduleWork();
  return {};
}

std::chrono::milliseconds StoreCore::DefaultTtl(KeyspaceId keyspace) const noexcept {
  const base::EpochGuard inside;
  return state()->keyspaces->DefaultTtl(static_cast<uint32_t>(keyspace));
}

// ---- Writes ----

Result<Commit> StoreCore::Put(std::string_view key, std::string_view value,
                              const WriteOptions& options) {
  if (!options.ttl && !options.expiry) [[likely]] {
    return WriteOne({.kind = RecordKind::kPut,
                     .keyspace = static_cast<uint32_t>(options.keyspace),
                     .key = key,
                     .value = value},
                    options);
  }
  WriteBatch one;
  one.Put(key, value, {.keyspace = options.keyspace, .ttl = options.ttl, .expiry = options.expiry});
  return Write(one, options);
}

Result<Commit> StoreCore::Delete(std::string_view key, const WriteOptions& options) {
  return WriteOne({.kind = RecordKind::kDelete,
                   .keyspace = static_cast<uint32_t>(options.keyspace),
                   .key = key,
                   .value = {}},
                  options);
}

Result<Commit> StoreCore::Merge(std::string_view key, MergeOperator op, std::string_view operand,
                                const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(base::CheckMergeOperand(op, operand));
  std::string value(1, static_cast<char>(op));
  value.append(operand);
  NoteMerges();
  return WriteOne({.kind = RecordKind::kMerge,
                   .keyspace = static_cast<uint32_t>(options.keyspace),
                   .key = key,
                   .value = value,
                   .time_ms = time_.NowMs()},
                  options);
}

Result<RecordSource> StoreCore::Completed(const RecordSource& source) const {
  const base::EpochGuard inside;
  const Keyspaces& keyspaces = *state()->keyspaces;
  if (!keyspaces.Contains(source.keyspace)) return NoSuchKeyspace(source.keyspace);
  const auto default_ttl = keyspaces.DefaultTtl(source.keyspace);
  RecordSource completed = source;
  if (source.kind == RecordKind::kPut && default_ttl.count() != 0) {
    completed.time_ms = base::TimeAfter(time_.NowMs(), static_cast<uint64_t>(default_ttl.count()));
  }
  return completed;
}

[[gnu::always_inline]] inline Result<Commit> StoreCore::WriteOne(const RecordSource& source,
                                                                 const WriteOptions& options) {
  if (source.key.size() > kMaxKeyBytes || source.value.size() > kMaxValueBytes) [[unlikely]] {
    return SizeFault(source);
  }
  if (source.keyspace == 0) [[likely]]
    return WriteComplete(source, options);
  BASALT_ASSIGN_OR_RETURN(const RecordSource completed, Completed(source));
  if (completed.time_ms != 0) NoteExpiring();
  return WriteComplete(completed, options);
}

Result<Commit> StoreCore::WriteComplete(const RecordSource& source, const WriteOptions& options) {
  if (source.ByteSize() > Generation::kSmallBytesMax) {
    // Not copied under a lock.
    std::string bytes;
    base::AppendBatchRecord({.kind = source.kind,
                             .keyspace = source.keyspace,
                             .time_ms = source.time_ms,
                             .key = source.key,
                             .value = source.value},
                            &bytes);
    BASALT_ASSIGN_OR_RETURN(
        const Insertion done,
        WriteForm({.bytes = bytes, .count = 1, .only_deletes = source.kind == RecordKind::kDelete},
                  options, nullptr));
    return Commit{.sequence = done.last};
  }
  const uint64_t hash = base::HashShort(source.key);
  for (;;) {
    const Attempt attempt = TryOne(source, hash, nullptr);
    if (attempt.has_piled_up) SortSoon();
    if (attempt.placed == Generation::Placed::kYes) {
      if (source.kind == RecordKind::kMerge) FoldSome(source, hash, attempt.sequence);
      return Commit{.sequence = attempt.sequence};
    }
    if (attempt.placed == Generation::Placed::kNoRoom) {
      BASALT_RETURN_IF_ERROR(MakeRoom(*attempt.full, source.ByteSize(),
                                      source.kind == RecordKind::kDelete, options.may_wait));
    }
  }
}

// What is appended is copied into folds, so that is left to readers. Nothing up to `at` is under
// way.
void StoreCore::FoldSome(const RecordSource& source, uint64_t hash,
                         base::SequenceNumber sequence) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(&sequence), sizeof sequence);
  if (base::HashShort(bytes) % Generation::kFoldedMin != 0 ||
      static_cast<MergeOperator>(source.value[0]) == MergeOperator::kAppend) {
    return;
  }
  const base::EpochGuard inside;
  base::SequenceNumber at = 0;
  const State* const seen = Settled(&at);
  seen->active->FoldMerges(source.keyspace, source.key, hash, at, /*expiry_ms=*/0);
}

StoreCore::Attempt StoreCore::TryOne(const RecordSource& source, uint64_t hash,
                                     const Condition* condition) {
  Attempt attempt;
  const base::EpochGuard inside;
  Sequencer::Slot* const slot = sequencer_.Of(inside.thread_number());
  if (slot == nullptr) throw std::bad_alloc();
  const State* const seen = state();
  Generation* const active = seen->active.get();
  if (seen->only_deletes && source.kind != RecordKind::kDelete) [[unlikely]] {
    attempt.placed = Generation::Placed::kNoRoom;
    attempt.full = seen->active;
    return attempt;
  }
  const auto assign = [&](base::Tag newest) -> base::SequenceNumber {
    const base::SequenceNumber sequence =
        sequencer_.Take(slot, seen->active_number, base::TagSequence(newest));
    if (condition != nullptr && !(*condition)(*active, newest)) return 0;
    attempt.sequence = sequence;
    return IsActive(active) ? sequence : 0;
  };
  attempt.placed = active->Put(source, hash, inside.thread_number(), assign, &attempt.has_piled_up);
  sequencer_.End(slot);
  if (attempt.placed == Generation::Placed::kNoRoom) attempt.full = seen->active;
  return attempt;
}

Result<Commit> StoreCore::Write(const WriteBatch& batch, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(batch.status());
  if (batch.has_conditions()) return WriteIfTheyHold(batch, options);
  return WriteExpecting(batch, options, nullptr);
}

Result<StoreCore::Insertion> StoreCore::WriteForm(const BatchForm& form,
                                                  const WriteOptions& options,
                                                  const Expectations* expected) {
  for (;;) {
    Insertion done;
    if (expected == nullptr) {
      const std::shared_lock order(order_mutex_);
      done = TryForm(form, nullptr);
    } else {
      const std::unique_lock order(order_mutex_);
      done = TryForm(form, expected);
    }
    if (done.outcome == Outcome::kChanged) return done.why;
    if (done.outcome == Outcome::kNoRoom) {
      BASALT_RETURN_IF_ERROR(
          MakeRoom(*done.full, form.RoomBytes(), form.only_deletes, options.may_wait));
      continue;
    }
    if (done.outcome == Outcome::kNotActive) continue;
    if (done.outcome != Outcome::kDone) return done;
    if (form.has_expiring) NoteExpiring();
    if (form.bytes.size() > kSortedBatchBytes) {
      SortIfMemoryAllows();
    } else if ((written_batches_.fetch_add(1, std::memory_order_relaxed) + 1) % kBatchesPiled ==
               0) {
      SortSoon();
    }
    return done;
  }
}

StoreCore::Insertion StoreCore::TryForm(const BatchForm& form, const Expectations* expected) {
  const base::EpochGuard inside;
  const State& seen = *state();
  if (form.keyspaces_number != 0 && form.keyspaces_number != seen.keyspaces->number()) {
    return {.outcome = Outcome::kOtherKeyspaces};
  }
  if (expected != nullptr && expected->active != nullptr && expected->active != seen.active) {
    return {.outcome = Outcome::kMustLook};
  }
  Insertion done{.outcome = Outcome::kNoRoom};
  if (!seen.only_deletes || form.only_deletes) {
    done = Insert(seen, form, expected, inside.thread_number());
  }
  if (done.outcome == Outcome::kNoRoom) done.full = seen.active;
  return done;
}

StoreCore::Insertion StoreCore::Insert(const State& seen, const BatchForm& form,
                                       const Expectations* expected, uint32_t thread_number) {
  Generation& active = *seen.active;
  Sequencer::Slot* const slot = sequencer_.Of(thread_number);
  if (slot == nullptr) throw std::bad_alloc();
  // An empty generation takes any batch; not one that makes the budget meaningless.
  if (form.RoomBytes() > active.budget_bytes()) return {.outcome = Outcome::kNoRoom};
  const bool is_of_several = form.count > 1;
  auto reservation = active.Reserve(form.bytes, form.count, is_of_several);
  if (!reservation) return {.outcome = Outcome::kNoRoom};
  std::vector<std::pair<RangeDelete*, size_t>> ranges;  // with their place in the batch
  const auto give_up = [&] {
    for (const auto& [range, place] : ranges) active.Finish(range, 0);
    active.Abandon(std::move(*reservation));
  };
  if (form.has_range_deletes) {
    try {
      ranges.reserve(form.count - reservation->count());
    } catch (const std::bad_alloc&) {
      give_up();
      throw;
    }
    base::BatchCursor cursor(form.bytes);
    for (size_t place = 0; cursor.Next(); ++place) {
      if (cursor.kind() != RecordKind::kDeleteRange) continue;
      RangeDelete* const range = active.PrepareRangeDelete(
          cursor.keyspace(), cursor.key(), cursor.value(), is_of_several, !reservation->is_first());
      if (range == nullptr) {
        give_up();
        return {.outcome = Outcome::kNoRoom};
      }
      ranges.emplace_back(range, place);
    }
  }

  const base::SequenceNumber first = sequencer_.TakeRange(slot, form.count);
  const base::SequenceNumber last = first + form.count - 1;
  if (!IsActive(&active)) {
    sequencer_.End(slot);
    give_up();
    return {.outcome = Outcome::kNotActive};
  }
  if (expected != nullptr) {
    sequencer_.Settle(first - 1);
    if (const auto changed = FindLateChange(seen, *expected, first - 1)) {
      sequencer_.End(slot);
      give_up();
      return {.outcome = Outcome::kChanged, .why = StatusOf(*changed)};
    }
  }
  if (is_of_several) sequencer_.SetBatch(slot, first, last);
  // What is put later must not come to stand beneath it.
  if (!ranges.empty()) sequencer_.CutAt(last);
  active.Insert(std::move(*reservation), first);
  for (const auto& [range, place] : ranges) active.Finish(range, first + place);
  sequencer_.End(slot);
  if (!ranges.empty()) {
    BatchCheck check(*this);
    active.FlattenRangeDeletes(&check);
  }
  return {.outcome = Outcome::kDone, .last = last};
}

}  // namespace basalt::memtable
