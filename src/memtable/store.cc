#include "memtable/store.h"

#include <algorithm>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/merging_iterator.h"
#include "base/option_value.h"
#include "base/short_hash.h"
#include "base/visible_iterator.h"

namespace basalt::memtable {
namespace {

constexpr uint64_t kBudgetMin = uint64_t{256} << 10;
/// A batch so large is sorted by its writer.
constexpr size_t kSortedBatchBytes = size_t{256} << 10;
/// What a record takes beside its bytes in a batch.
constexpr size_t kRecordBytes = 160;
/// After so many small batches it is time to sort.
constexpr uint64_t kBatchesPiled = 64;

Status NoMemory() {
  return Status(StatusCode::kResourceExhausted, "use a memtable: the system has no memory left");
}

size_t BytesOf(const WriteBatch& batch) { return batch.byte_size() + batch.count() * kRecordBytes; }

Status CheckSizes(const RecordSource& source) {
  const auto refuse = [](const char* what, size_t bytes, uint64_t most) {
    return Status(StatusCode::kInvalidArgument, std::string("write to a memtable: the ") + what +
                                                    " has " + std::to_string(bytes) +
                                                    " bytes, at most " + std::to_string(most) +
                                                    " are possible");
  };
  if (source.key.size() > kMaxKeyBytes) return refuse("key", source.key.size(), kMaxKeyBytes);
  if (source.value.size() > kMaxValueBytes) {
    return refuse("value", source.value.size(), kMaxValueBytes);
  }
  return {};
}

}  // namespace

/// Keeps a sequence from being compacted away.
class StoreCore::SnapshotState {
 public:
  explicit SnapshotState(std::shared_ptr<const StoreCore> core) : core_(std::move(core)) {
    const std::lock_guard lock(core_->snapshots_mutex_);
    sequence_ = core_->sequencer_.last();
    place_ = core_->snapshots_.insert(sequence_);
  }
  ~SnapshotState() {
    if (core_->IsInherited()) return;
    const std::lock_guard lock(core_->snapshots_mutex_);
    core_->snapshots_.erase(place_);
    core_->snapshot_changes_.fetch_add(1, std::memory_order_relaxed);
  }
  SnapshotState(const SnapshotState&) = delete;
  SnapshotState& operator=(const SnapshotState&) = delete;

  const StoreCore* core() const noexcept { return core_.get(); }
  base::SequenceNumber sequence() const noexcept { return sequence_; }

 private:
  const std::shared_ptr<const StoreCore> core_;
  base::SequenceNumber sequence_ = 0;
  std::multiset<base::SequenceNumber>::iterator place_;
};

// ---- Life ----

Result<std::shared_ptr<StoreCore>> StoreCore::Create(const basalt::MemTableOptions& options) {
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
  if (options.sorter > Sorter::kComparison) {
    return base::NoSuchValue("create a memtable: sorter", options.sorter,
                             "kVector, kRadix or kComparison");
  }
  try {
    return std::shared_ptr<StoreCore>(new StoreCore(Private{}, checked), [](StoreCore* core) {
      if (!core->IsInherited()) delete core;
    });
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

StoreCore::StoreCore(Private, const basalt::MemTableOptions& options)
    : options_(options), sort_delay_(std::thread::hardware_concurrency()) {
  state_.store(new State{.active = NewGeneration(options_.generation_bytes), .sealed = {}},
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
  options.sorter = options_.sorter;
  return Generation::Create(options);
}

// ---- Reads ----

StoreCore::Seen StoreCore::Look(const Generation& generation, uint32_t keyspace,
                                std::string_view key, uint64_t hash,
                                base::SequenceNumber at) const {
  std::optional<Seen> before;
  for (;;) {
    BatchCheck check(*this);
    Seen seen;
    if (!generation.range_deletes().empty()) {
      seen.covered = generation.range_deletes().SequenceAt(keyspace, key, at, &check);
    }
    seen.record = generation.Find(keyspace, key, hash, at, &check);
    if (!check.has_asked() || seen == before) return seen;
    before = seen;
  }
}

StoreCore::Found StoreCore::Find(const State& state, uint32_t keyspace, std::string_view key,
                                 uint64_t hash, base::SequenceNumber at) const {
  for (const auto& generation : state.sealed) generation->Prefetch(keyspace, hash);
  Found found;
  const auto is_decided = [&](const Generation& generation) {
    const Seen seen = Look(generation, keyspace, key, hash, at);
    if (seen.record == nullptr) return seen.covered != 0;  // It covers all that is older.
    const base::Tag tag = seen.record->tag.load(std::memory_order_relaxed);
    if (base::TagKind(tag) == RecordKind::kPut && base::TagSequence(tag) > seen.covered) {
      found = {seen.record, &generation};
    }
    return true;
  };
  if (is_decided(*state.active)) return found;
  for (const auto& generation : state.sealed) {
    if (is_decided(*generation)) break;
  }
  return found;
}

Result<base::SequenceNumber> StoreCore::SequenceOf(const Snapshot& snapshot) const {
  const auto* const state = static_cast<const SnapshotState*>(snapshot.state().get());
  if (state == nullptr || state->core() != this) {
    return Status(StatusCode::kInvalidArgument,
                  "read from a memtable: the snapshot was taken from another store");
  }
  return state->sequence();
}

// Most lookups are told by the first record that they meet, in some 250 instructions, of which a
// processor's window holds more than of the general way's 430.
Result<MaybeValue> StoreCore::Get(std::string_view key, const ReadOptions& options) const {
  const uint64_t hash = base::HashShort(key);
  if (options.snapshot == nullptr && options.keyspace == KeyspaceId::kDefault) {
    const base::QuickEpochGuard inside;
    if (inside) [[likely]] {
      const State& seen = *state();
      if (seen.sealed.empty() && seen.active->range_deletes().empty()) {
        const Record* const first = seen.active->First(hash);
        if (first == nullptr) return MaybeValue();
        first->FetchBehind();
        if (first->IsPlainPutOf(key) && first->has_short_value() && IsSettled(*first)) [[likely]] {
          return Result<MaybeValue>(std::in_place, std::in_place,
                                    first->PlainShortValue(key.size()));
        }
      }
    }
  }
  return GetSlowly(key, hash, options);
}

Result<MaybeValue> StoreCore::GetSlowly(std::string_view key, uint64_t hash,
                                        const ReadOptions& options) const {
  base::SequenceNumber at = base::kMaxSequence;
  if (options.snapshot != nullptr) {
    BASALT_ASSIGN_OR_RETURN(at, SequenceOf(*options.snapshot));
  }
  const base::EpochGuard inside;
  const Found found = Find(*state(), static_cast<uint32_t>(options.keyspace), key, hash, at);
  if (!found) return MaybeValue();
  return Result<MaybeValue>(std::in_place, std::in_place, found);
}

const StoreCore::State* StoreCore::Settled(base::SequenceNumber* at) const {
  for (;;) {
    const State* const seen = state();
    *at = sequencer_.Settle();
    // Another one would have writes up to `at` that this one lacks.
    if (state() == seen) return seen;
  }
}

Status StoreCore::MultiGet(std::span<const std::string_view> keys,
                           std::span<Result<MaybeValue>> results,
                           const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  const base::EpochGuard inside;
  const State* seen = nullptr;
  base::SequenceNumber at = 0;
  if (options.snapshot != nullptr) {
    BASALT_ASSIGN_OR_RETURN(at, SequenceOf(*options.snapshot));
    seen = state();
  } else {
    seen = Settled(&at);
  }
  constexpr size_t kGroup = 32;
  uint64_t hashes[kGroup];
  const Record* candidates[kGroup];
  const bool has_ranges = !seen->active->range_deletes().empty();
  for (size_t first = 0; first < keys.size(); first += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - first);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = base::HashShort(keys[first + i]);
      seen->active->Prefetch(keyspace, hashes[i]);
      for (const auto& generation : seen->sealed) generation->Prefetch(keyspace, hashes[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      candidates[i] = seen->active->Candidate(keyspace, hashes[i]);
      for (const auto& generation : seen->sealed) {
        static_cast<void>(generation->Candidate(keyspace, hashes[i]));
      }
    }
    for (size_t i = 0; i < count; ++i) {
      // What can be told from the newest version alone, which is nearly always the case: nothing up
      // to `at` is under way.
      const Record* const newest = candidates[i];
      const bool is_it = newest != nullptr && !has_ranges && newest->keyspace() == keyspace &&
                         base::SameBytes(newest->key(), keys[first + i]);
      const base::Tag tag = is_it ? newest->tag.load(std::memory_order_acquire) : 0;
      const bool is_put =
          is_it && base::TagSequence(tag) <= at && base::TagKind(tag) == RecordKind::kPut;
      const Found found = is_put ? Found{newest, seen->active.get()}
                                 : Find(*seen, keyspace, keys[first + i], hashes[i], at);
      // In its place: a value that is moved there is copied three times.
      Result<MaybeValue>& result = results[first + i];
      if (!result) result = MaybeValue();
      if (found) {
        result->emplace(found);
      } else {
        result->reset();
      }
    }
  }
  return {};
}

StoreCore::State StoreCore::CopyState() const {
  const base::EpochGuard inside;
  return *state();
}

std::unique_ptr<Iterator> StoreCore::NewIterator(const ScanOptions& options) const {
  if (Status bounds = base::CheckBounds(options); !bounds.ok()) {
    return base::NewErrorIterator(bounds);
  }
  base::SequenceNumber at = 0;
  State seen;
  if (options.snapshot != nullptr) {
    const Result<base::SequenceNumber> sequence = SequenceOf(*options.snapshot);
    if (!sequence) return base::NewErrorIterator(sequence.error());
    at = *sequence;
    seen = CopyState();
  } else {
    const base::EpochGuard inside;
    seen = *Settled(&at);
  }
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  std::vector<const base::RangeCover*> covers;
  std::vector<base::RangeCover::Range> loose;
  const auto read = [&](const Generation& generation) {
    auto iterator = generation.NewIterator(keyspace, at);
    generation.range_deletes().Collect(keyspace, at, &covers, &loose);
    return iterator;
  };
  if (!was_iterated_.load(std::memory_order_relaxed)) {
    was_iterated_.store(true, std::memory_order_relaxed);
  }
  std::unique_ptr<base::RecordIterator> source;
  if (seen.sealed.empty()) {
    source = read(*seen.active);
  } else {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    if (!seen.active->empty()) children.push_back(read(*seen.active));
    for (const auto& generation : seen.sealed) children.push_back(read(*generation));
    source = base::NewMergingIterator(std::move(children));
  }
  return base::NewVisibleIterator({.ranges = base::NewRangeCovers(std::move(covers), loose),
                                   .at = at,
                                   .source = std::move(source),
                                   .records_stay = true},
                                  options);
}

Result<Snapshot> StoreCore::TakeSnapshot() const {
  auto taken = std::make_shared<const SnapshotState>(shared_from_this());
  const base::SequenceNumber sequence = taken->sequence();
  sequencer_.Settle(sequence);
  return Snapshot(std::move(taken), sequence);
}

// ---- Writes ----

Status StoreCore::Write(const RecordSource& source) {
  BASALT_RETURN_IF_ERROR(CheckSizes(source));
  if (source.ByteSize() > Generation::kSmallBytesMax) {
    // Not copied under a lock.
    WriteBatch batch;
    if (source.kind == RecordKind::kPut) {
      batch.Put(source.key, source.value, {}, static_cast<KeyspaceId>(source.keyspace));
    } else {
      batch.Delete(source.key, static_cast<KeyspaceId>(source.keyspace));
    }
    return Write(batch);
  }
  const uint64_t hash = base::HashShort(source.key);
  for (;;) {
    const Attempt attempt = TryOne(source, hash, nullptr);
    if (attempt.has_piled_up) SortSoon();
    if (attempt.placed == Generation::Placed::kYes) return {};
    if (attempt.placed == Generation::Placed::kNoRoom) {
      BASALT_RETURN_IF_ERROR(
          MakeRoom(*attempt.full, source.ByteSize(), source.kind == RecordKind::kDelete));
    }
  }
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
    if (condition != nullptr && !(*condition)(*active, newest)) return 0;
    const base::SequenceNumber sequence =
        sequencer_.Take(slot, seen->active_number, base::TagSequence(newest));
    return IsActive(active) ? sequence : 0;
  };
  attempt.placed = active->Put(source, hash, inside.thread_number(), assign, &attempt.has_piled_up);
  sequencer_.End(slot);
  if (attempt.placed == Generation::Placed::kNoRoom) attempt.full = seen->active;
  return attempt;
}

Status StoreCore::Write(const WriteBatch& batch) {
  BASALT_RETURN_IF_ERROR(batch.status());
  if (batch.HasBeyond(RecordKind::kDeleteRange)) {
    return Status(StatusCode::kUnsupported,
                  "write to a memtable: it has no merges; leave all out but puts, deletes and "
                  "range deletes");
  }
  if (batch.has_ttl()) {
    return Status(StatusCode::kUnsupported,
                  "write to a memtable: it has no expiry; leave ttl and expiry out");
  }
  if (batch.empty()) return {};
  const size_t bytes = BytesOf(batch);
  const bool only_deletes = !batch.Has(RecordKind::kPut);
  for (;;) {
    std::shared_ptr<Generation> full;
    {
      const std::shared_lock order(order_mutex_);
      const base::EpochGuard inside;
      const State* const seen = state();
      const Inserted inserted = seen->only_deletes && !only_deletes
                                    ? Inserted::kNoRoom
                                    : Insert(*seen->active, batch, inside.thread_number());
      if (inserted == Inserted::kYes) break;
      if (inserted == Inserted::kNoRoom) full = seen->active;
    }
    if (full != nullptr) {
      BASALT_RETURN_IF_ERROR(MakeRoom(*full, bytes, only_deletes));
    }
  }
  if (batch.byte_size() > kSortedBatchBytes) {
    SortIfMemoryAllows();
  } else if ((written_batches_.fetch_add(1, std::memory_order_relaxed) + 1) % kBatchesPiled == 0) {
    SortSoon();
  }
  return {};
}

StoreCore::Inserted StoreCore::Insert(Generation& active, const WriteBatch& batch,
                                      uint32_t thread_number) {
  Sequencer::Slot* const slot = sequencer_.Of(thread_number);
  if (slot == nullptr) throw std::bad_alloc();
  // An empty generation takes any batch; not one that makes the budget meaningless.
  if (BytesOf(batch) > active.budget_bytes()) return Inserted::kNoRoom;
  const bool is_of_several = batch.count() > 1;
  auto reservation = active.Reserve(batch.bytes(), batch.count(), is_of_several);
  if (!reservation) return Inserted::kNoRoom;
  std::vector<std::pair<RangeDelete*, size_t>> ranges;  // with their place in the batch
  const auto give_up = [&] {
    for (const auto& [range, place] : ranges) active.Finish(range, 0);
    active.Abandon(std::move(*reservation));
  };
  if (batch.Has(RecordKind::kDeleteRange)) {
    try {
      ranges.reserve(batch.count() - reservation->count());
    } catch (const std::bad_alloc&) {
      give_up();
      throw;
    }
    base::BatchCursor cursor(batch.bytes());
    for (size_t place = 0; cursor.Next(); ++place) {
      if (cursor.kind() != RecordKind::kDeleteRange) continue;
      RangeDelete* const range = active.PrepareRangeDelete(
          cursor.keyspace(), cursor.key(), cursor.value(), is_of_several, !reservation->is_first());
      if (range == nullptr) {
        give_up();
        return Inserted::kNoRoom;
      }
      ranges.emplace_back(range, place);
    }
  }

  const base::SequenceNumber first = sequencer_.TakeRange(slot, batch.count());
  const base::SequenceNumber last = first + batch.count() - 1;
  if (!IsActive(&active)) {
    sequencer_.End(slot);
    give_up();
    return Inserted::kNotActive;
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
  return Inserted::kYes;
}

Status StoreCore::Update(std::string_view key, const UpdateFunction& fn, uint32_t keyspace) {
  const uint64_t hash = base::HashShort(key);
  MaybeValue before;
  std::optional<Result<std::optional<std::string>>> changed;  // What `fn` makes of it.
  for (;;) {
    std::shared_ptr<Generation> active;
    const RangeDelete* ranges = nullptr;
    base::Tag newest_here = 0;
    MaybeValue present;
    {
      const base::EpochGuard inside;
      const State* const seen = state();
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
      const Found found = Find(*seen, keyspace, key, hash, base::kMaxSequence);
      if (found) present.emplace(found);
    }
    // Not for a generation that was sealed meanwhile: where others write much, one is all the time.
    if (!changed || present != before) {
      before = std::move(present);
      std::optional<std::string_view> current;
      if (before) current = before->view();
      changed.emplace(fn(current));
    }
    if (!*changed) return changed->error();
    const std::optional<std::string>& after = **changed;
    RecordSource source{.kind = after ? RecordKind::kPut : RecordKind::kDelete,
                        .keyspace = keyspace,
                        .key = key,
                        .value = after ? std::string_view(*after) : std::string_view(),
                        .time_ms = 0,
                        .is_of_several = false};
    BASALT_RETURN_IF_ERROR(CheckSizes(source));
    const Condition is_unchanged = [&](const Generation& now, base::Tag newest) {
      return &now == active.get() && newest == newest_here &&
             now.range_deletes().newest() == ranges;
    };
    Attempt attempt;
    {
      const std::unique_lock order(order_mutex_);
      attempt = TryOne(source, hash, &is_unchanged);
    }
    if (attempt.placed == Generation::Placed::kYes) return {};
    if (attempt.placed == Generation::Placed::kNoRoom) {
      BASALT_RETURN_IF_ERROR(
          MakeRoom(*attempt.full, source.ByteSize(), source.kind == RecordKind::kDelete));
    }
  }
}

}  // namespace basalt::memtable
