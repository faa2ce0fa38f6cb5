#include "memtable/store.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/merging_iterator.h"
#include "base/retention.h"
#include "base/thread_pool.h"
#include "base/visible_iterator.h"
#include "memtable/sorted_run.h"

namespace basalt::memtable {
namespace {

constexpr uint64_t kBudgetMin = uint64_t{256} << 10;
constexpr uint64_t kGenerationMin = uint64_t{64} << 10;
constexpr uint32_t kShardsMax = 256;
/// The least that a shard takes: a chunk of records, one of order, its first index.
constexpr uint64_t kShardBytesMin = uint64_t{12} << 10;
/// A batch so large is sorted by its writer.
constexpr size_t kSortedBatchBytes = size_t{256} << 10;
/// What a record takes beside its bytes in a batch.
constexpr size_t kRecordBytes = 160;
/// The part of the budget that is kept for merging.
constexpr uint64_t kReserveShare = 4;
/// After so many small batches it is time to sort.
constexpr uint64_t kBatchesPiled = 64;
/// So many neighbours of like size are merged.
constexpr size_t kFanIn = 4;

Status NoMemory() {
  return Status(StatusCode::kResourceExhausted, "use a memtable: the system has no memory left");
}

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

uint64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::steady_clock::now() - start)
                                   .count());
}

/// What a generation must hold so that so many bytes of records fit.
uint64_t RoomFor(uint64_t bytes) { return bytes + bytes / 4 + kGenerationMin; }

}  // namespace

/// Keeps a sequence from being compacted away.
class StoreCore::SnapshotState {
 public:
  explicit SnapshotState(std::shared_ptr<const StoreCore> core) : core_(std::move(core)) {
    const std::lock_guard lock(core_->snapshots_mutex_);
    sequence_ = core_->last_sequence_.load(std::memory_order_acquire);
    place_ = core_->snapshots_.insert(sequence_);
  }
  ~SnapshotState() {
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
  if (options.shards > kShardsMax || (options.shards & (options.shards - 1)) != 0) {
    return invalid("shards is " + std::to_string(options.shards) +
                   ", and must be a power of two up to 256, or 0 to derive it");
  }
  if (checked.generation_bytes == 0) {
    checked.generation_bytes =
        std::max({options.memory_budget / 8, kGenerationMin, options.shards * kShardBytesMin});
  }
  const uint64_t least = std::max(kGenerationMin, options.shards * kShardBytesMin);
  if (checked.generation_bytes < least || checked.generation_bytes > options.memory_budget / 2) {
    return invalid("generation_bytes is " + std::to_string(checked.generation_bytes) +
                   ", and must be from " + std::to_string(least) + " (with " +
                   std::to_string(options.shards) + " shards) to half of memory_budget, " +
                   std::to_string(options.memory_budget / 2));
  }
  if (options.at_budget > AtBudget::kRefuse) {
    return invalid("at_budget is " + std::to_string(static_cast<int>(options.at_budget)) +
                   ", and must be kWait or kRefuse");
  }
  if (options.sorter > Sorter::kComparison) {
    return invalid("sorter is " + std::to_string(static_cast<int>(options.sorter)) +
                   ", and must be kVector, kRadix or kComparison");
  }
  try {
    return std::make_shared<StoreCore>(Private{}, checked);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

StoreCore::StoreCore(Private, const basalt::MemTableOptions& options) : options_(options) {
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

base::SequenceNumber StoreCore::RangeSequence(const Generation& generation, uint32_t keyspace,
                                              std::string_view key, base::SequenceNumber at,
                                              BatchCheck* check) {
  base::SequenceNumber newest = 0;
  for (const RangeDelete* range = generation.range_deletes(); range != nullptr;
       range = range->next) {
    const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
    if (sequence > at || sequence <= newest || !range->Covers(keyspace, key)) continue;
    if (!check->Hides(sequence, range->is_of_several)) newest = sequence;
  }
  return newest;
}

StoreCore::Seen StoreCore::Look(const Generation& generation, uint32_t keyspace,
                                std::string_view key, uint64_t hash,
                                base::SequenceNumber at) const {
  std::optional<Seen> before;
  for (;;) {
    BatchCheck check(*this);
    Seen seen;
    if (generation.range_deletes() != nullptr) {
      seen.covered = RangeSequence(generation, keyspace, key, at, &check);
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

Result<MaybeValue> StoreCore::Get(std::string_view key, const ReadOptions& options) const {
  base::SequenceNumber at = base::kMaxSequence;
  if (options.snapshot != nullptr) {
    BASALT_ASSIGN_OR_RETURN(at, SequenceOf(*options.snapshot));
  }
  const uint64_t hash = base::Hash(key);
  const base::EpochGuard inside;
  const Found found = Find(*state(), static_cast<uint32_t>(options.keyspace), key, hash, at);
  if (!found) return MaybeValue();
  return Result<MaybeValue>(std::in_place, std::in_place, found);
}

const StoreCore::State* StoreCore::Settled(base::SequenceNumber* at) const {
  for (;;) {
    const State* const seen = state();
    *at = last_sequence_.load(std::memory_order_acquire);
    slots_.AwaitAllUpTo(*at);
    // Another one would have writes up to `at` that this one lacks.
    if (state() == seen) return seen;
  }
}

Status StoreCore::MultiGet(std::span<const std::string_view> keys,
                           std::span<Result<MaybeValue>> results,
                           const ReadOptions& options) const {
  if (keys.size() != results.size()) {
    return Status(StatusCode::kInvalidArgument, "MultiGet: " + std::to_string(keys.size()) +
                                                    " keys, but room for " +
                                                    std::to_string(results.size()) + " results");
  }
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
  const bool has_ranges = seen->active->range_deletes() != nullptr;
  for (size_t first = 0; first < keys.size(); first += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - first);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = base::Hash(keys[first + i]);
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
      const bool is_it = newest != nullptr && !has_ranges && newest->keyspace == keyspace &&
                         newest->key() == keys[first + i];
      const base::Tag tag = is_it ? newest->tag.load(std::memory_order_acquire) : 0;
      const bool is_put =
          is_it && base::TagSequence(tag) <= at && base::TagKind(tag) == RecordKind::kPut;
      const Found found = is_put ? Found{newest, seen->active.get()}
                                 : Find(*seen, keyspace, keys[first + i], hashes[i], at);
      if (found) {
        results[first + i] = MaybeValue(std::in_place, found);
      } else {
        results[first + i] = MaybeValue();
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
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  std::vector<base::RangeCover::Range> ranges;
  const auto add = [&](const std::shared_ptr<Generation>& generation) {
    if (generation->empty()) return;
    children.push_back(generation->NewIterator(keyspace, at));
    for (const RangeDelete* range = generation->range_deletes(); range != nullptr;
         range = range->next) {
      const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
      if (range->keyspace != keyspace || sequence > at) continue;
      ranges.push_back({range->begin, range->end, sequence});
    }
  };
  add(seen.active);
  for (const auto& generation : seen.sealed) add(generation);
  return base::NewVisibleIterator({.ranges = base::RangeCover(ranges),
                                   .at = at,
                                   .source = base::NewMergingIterator(std::move(children))},
                                  options);
}

Result<Snapshot> StoreCore::TakeSnapshot() const {
  auto taken = std::make_shared<const SnapshotState>(shared_from_this());
  const base::SequenceNumber sequence = taken->sequence();
  slots_.AwaitAllUpTo(sequence);
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
  const uint64_t hash = base::Hash(source.key);
  for (;;) {
    const Attempt attempt = TryOne(source, hash, nullptr);
    if (attempt.has_piled_up) ScheduleWork();
    if (attempt.placed == Generation::Placed::kYes) return {};
    if (attempt.placed == Generation::Placed::kNoRoom) {
      BASALT_RETURN_IF_ERROR(MakeRoom(*attempt.full, source.ByteSize()));
    }
  }
}

StoreCore::Attempt StoreCore::TryOne(const RecordSource& source, uint64_t hash,
                                     const Condition* condition) {
  Attempt attempt;
  const base::EpochGuard inside;
  WriterSlots::Slot* const slot = slots_.Of(inside.thread_number());
  if (slot == nullptr) throw std::bad_alloc();
  const State* const seen = state();
  Generation* const active = seen->active.get();
  const auto assign = [&](base::Tag newest) -> base::SequenceNumber {
    if (condition != nullptr && !(*condition)(*active, newest)) return 0;
    slot->Begin(last_sequence_.load(std::memory_order_relaxed));
    const base::SequenceNumber sequence =
        last_sequence_.fetch_add(1, std::memory_order_acq_rel) + 1;
    return IsActive(active) ? sequence : 0;
  };
  attempt.placed = active->Put(source, hash, assign, &attempt.has_piled_up);
  slot->End();
  if (attempt.placed == Generation::Placed::kNoRoom) attempt.full = seen->active;
  return attempt;
}

Status StoreCore::Write(const WriteBatch& batch) {
  BASALT_RETURN_IF_ERROR(batch.status());
  size_t range_deletes = 0;
  base::BatchCursor cursor(batch.bytes());
  while (cursor.Next()) {
    if (cursor.kind() > RecordKind::kDeleteRange) {
      return Status(StatusCode::kUnsupported, "write to a memtable: it has no records of kind " +
                                                  std::to_string(static_cast<int>(cursor.kind())));
    }
    if (cursor.time_ms() != 0) {
      return Status(StatusCode::kUnsupported,
                    "write to a memtable: it has no expiry; leave the ttl out");
    }
    range_deletes += cursor.kind() == RecordKind::kDeleteRange ? 1 : 0;
  }
  if (batch.empty()) return {};
  for (;;) {
    std::shared_ptr<Generation> full;
    {
      const std::shared_lock order(order_mutex_);
      const base::EpochGuard inside;
      const State* const seen = state();
      const Inserted inserted = Insert(*seen->active, batch, range_deletes, inside.thread_number());
      if (inserted == Inserted::kYes) break;
      if (inserted == Inserted::kNoRoom) full = seen->active;
    }
    if (full != nullptr) {
      BASALT_RETURN_IF_ERROR(MakeRoom(*full, batch.byte_size() + batch.count() * kRecordBytes));
    }
  }
  if (batch.byte_size() > kSortedBatchBytes) {
    CopyState().active->SortTail();
  } else if ((written_batches_.fetch_add(1, std::memory_order_relaxed) + 1) % kBatchesPiled == 0) {
    ScheduleWork();
  }
  return {};
}

StoreCore::Inserted StoreCore::Insert(Generation& active, const WriteBatch& batch,
                                      size_t range_deletes, uint32_t thread_number) {
  WriterSlots::Slot* const slot = slots_.Of(thread_number);
  if (slot == nullptr) throw std::bad_alloc();
  const bool is_of_several = batch.count() > 1;
  auto reservation = active.Reserve(batch.bytes(), batch.count(), is_of_several);
  if (!reservation) return Inserted::kNoRoom;
  std::vector<std::pair<RangeDelete*, size_t>> ranges;  // with their place in the batch
  const auto give_up = [&] {
    for (const auto& [range, place] : ranges) active.Finish(range, 0);
    active.Abandon(std::move(*reservation));
  };
  if (range_deletes != 0) {
    try {
      ranges.reserve(range_deletes);
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

  slot->Begin(last_sequence_.load(std::memory_order_relaxed));
  const base::SequenceNumber first =
      last_sequence_.fetch_add(batch.count(), std::memory_order_acq_rel) + 1;
  if (!IsActive(&active)) {
    slot->End();
    give_up();
    return Inserted::kNotActive;
  }
  if (is_of_several) slot->SetRange(first, first + batch.count() - 1);
  active.Insert(std::move(*reservation), first);
  for (const auto& [range, place] : ranges) active.Finish(range, first + place);
  slot->End();
  return Inserted::kYes;
}

Status StoreCore::Update(std::string_view key, const UpdateFunction& fn, uint32_t keyspace) {
  const uint64_t hash = base::Hash(key);
  for (;;) {
    std::shared_ptr<Generation> active;
    const RangeDelete* ranges = nullptr;
    base::Tag newest_here = 0;
    MaybeValue before;
    {
      const base::EpochGuard inside;
      const State* const seen = state();
      active = seen->active;
      // First what is compared later: a change between these reads is then seen as one.
      ranges = active->range_deletes();
      const Seen here = Look(*active, keyspace, key, hash, base::kMaxSequence);
      if (here.record != nullptr) newest_here = here.record->tag.load(std::memory_order_relaxed);
      const Found found = Find(*seen, keyspace, key, hash, base::kMaxSequence);
      if (found) before.emplace(found);
    }
    std::optional<std::string_view> current;
    if (before) current = before->view();
    Result<std::optional<std::string>> changed = fn(current);
    if (!changed) return changed.error();
    RecordSource source{.kind = *changed ? RecordKind::kPut : RecordKind::kDelete,
                        .keyspace = keyspace,
                        .key = key,
                        .value = *changed ? std::string_view(**changed) : std::string_view(),
                        .expiry_ms = 0,
                        .is_of_several = false};
    BASALT_RETURN_IF_ERROR(CheckSizes(source));
    const Condition is_unchanged = [&](const Generation& now, base::Tag newest) {
      return &now == active.get() && newest == newest_here && now.range_deletes() == ranges;
    };
    Attempt attempt;
    {
      const std::unique_lock order(order_mutex_);
      attempt = TryOne(source, hash, &is_unchanged);
    }
    if (attempt.placed == Generation::Placed::kYes) return {};
    if (attempt.placed == Generation::Placed::kNoRoom) {
      BASALT_RETURN_IF_ERROR(MakeRoom(*attempt.full, source.ByteSize()));
    }
  }
}

// ---- Generations ----

uint64_t StoreCore::MemoryBytes(const State& state) const noexcept {
  // What is not sorted yet will need its place in a run.
  const auto bytes_of = [](const Generation& generation) {
    return generation.memory_bytes() + generation.unsorted_count() * sizeof(SortEntry);
  };
  uint64_t bytes = bytes_of(*state.active);
  for (const auto& generation : state.sealed) bytes += bytes_of(*generation);
  return bytes;
}

void StoreCore::Publish(State next) {
  auto published = std::make_unique<const State>(std::move(next));
  const State* const old = state_.exchange(published.release(), std::memory_order_acq_rel);
  retired_.Retire(const_cast<State*>(old), sizeof(State),
                  [](void* retired) { delete static_cast<State*>(retired); });
  retired_.Collect();
}

bool StoreCore::SealUnderLock(uint64_t bytes_wanted, bool uses_reserve) {
  State next = CopyState();
  const uint64_t kept = uses_reserve ? 0 : options_.memory_budget / kReserveShare;
  const uint64_t taken = MemoryBytes(next) + kept;
  const uint64_t left = options_.memory_budget > taken ? options_.memory_budget - taken : 0;
  const uint64_t least =
      std::max({RoomFor(bytes_wanted), kGenerationMin, options_.shards * kShardBytesMin});
  if (left < least) return false;
  next.sealed.insert(next.sealed.begin(), std::move(next.active));
  next.active = NewGeneration(std::min(left, std::max(options_.generation_bytes, least)));
  Publish(std::move(next));
  seals_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

Status StoreCore::Seal() {
  {
    const std::lock_guard lock(state_mutex_);
    if (CopyState().active->empty()) return {};
    if (!SealUnderLock(0)) return NoRoom(0);
  }
  ScheduleWork();
  return {};
}

Status StoreCore::NoRoom(uint64_t bytes) const {
  return Status(StatusCode::kResourceExhausted,
                "write " + std::to_string(bytes) + " bytes to a memtable with " +
                    std::to_string(MemoryBytes(CopyState())) + " of " +
                    std::to_string(options_.memory_budget) +
                    " bytes taken: delete and Compact, or raise memory_budget");
}

Status StoreCore::MakeRoom(const Generation& full, uint64_t bytes) {
  if (RoomFor(bytes) > options_.memory_budget - options_.memory_budget / kReserveShare) {
    return NoRoom(bytes);
  }
  const auto try_to_seal = [&] {
    const std::lock_guard lock(state_mutex_);
    return CopyState().active.get() != &full || SealUnderLock(bytes);
  };
  if (try_to_seal()) {
    ScheduleWork();
    return {};
  }
  if (!options_.compaction) return NoRoom(bytes);
  if (options_.at_budget == AtBudget::kRefuse) {
    wants_room_.store(true, std::memory_order_relaxed);
    ScheduleWork();
    return NoRoom(bytes);
  }
  const auto start = std::chrono::steady_clock::now();
  waits_.fetch_add(1, std::memory_order_relaxed);
  bool has_room = false;
  {
    const std::lock_guard work(work_mutex_);
    has_room = try_to_seal() || (CompactForRoomUnderLock() && try_to_seal());
  }
  wait_us_.fetch_add(MicrosSince(start), std::memory_order_relaxed);
  return has_room ? Status() : NoRoom(bytes);
}

// ---- Background ----

void StoreCore::ScheduleWork() {
  if (is_work_scheduled_.load(std::memory_order_relaxed) ||
      is_work_scheduled_.exchange(true, std::memory_order_acq_rel)) {
    return;
  }
  const Result<base::ThreadPool*> pool = base::ThreadPool::Shared(1);
  if (!pool) {  // Iterators sort for themselves, and writers merge when they need room.
    is_work_scheduled_.store(false, std::memory_order_release);
    return;
  }
  (*pool)->Schedule([core = shared_from_this()] {
    core->is_work_scheduled_.store(false, std::memory_order_release);
    if (core->is_let_go_.load(std::memory_order_relaxed)) return;
    core->WorkIfMemoryAllows();
  });
}

void StoreCore::Work() {
  const std::lock_guard work(work_mutex_);
  SortUnderLock();
  if (!options_.compaction) return;
  if (wants_room_.exchange(false, std::memory_order_relaxed)) CompactForRoomUnderLock();
  while (!is_let_go_.load(std::memory_order_relaxed) && CompactSomeUnderLock()) {
  }
}

bool StoreCore::WorkIfMemoryAllows() noexcept {
  try {
    Work();
    return true;
  } catch (const std::bad_alloc&) {
    // Nothing has changed: iterators sort for themselves, and the next write that piles up asks
    // again.
    return false;
  }
}

void StoreCore::SortUnderLock() {
  const State seen = CopyState();
  seen.active->SortTail();
  for (const auto& generation : seen.sealed) {
    if (generation->unsorted_count() != 0 || generation->run_count() > 1) generation->SortAll();
  }
}

std::vector<base::SequenceNumber> StoreCore::Boundaries() const {
  const std::lock_guard lock(snapshots_mutex_);
  std::vector<base::SequenceNumber> boundaries(snapshots_.begin(), snapshots_.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  // Later snapshots are at this or above.
  const base::SequenceNumber last = last_sequence_.load(std::memory_order_acquire);
  if (boundaries.empty() || boundaries.back() != last) boundaries.push_back(last);
  return boundaries;
}

// Neighbours of like size, the newest first; and all of them once half of the budget is taken and
// as much again has been sealed since the last time.
bool StoreCore::CompactSomeUnderLock() {
  const State seen = CopyState();
  const size_t count = seen.sealed.size();
  const uint64_t taken = MemoryBytes(seen);
  std::vector<uint64_t> bytes;
  for (const auto& generation : seen.sealed) bytes.push_back(generation->memory_bytes());
  for (size_t first = 0; first + kFanIn <= count; ++first) {
    const auto [least, most] =
        std::minmax_element(bytes.begin() + static_cast<ptrdiff_t>(first),
                            bytes.begin() + static_cast<ptrdiff_t>(first + kFanIn));
    uint64_t together = 0;
    for (size_t i = first; i < first + kFanIn; ++i) together += bytes[i];
    if (*most > 3 * *least || taken + together > options_.memory_budget) continue;
    return MergeUnderLock(first, first + kFanIn, together + kGenerationMin);
  }
  return false;
}

// Merges as much as may give the most: all; or, when what is left has no room for the result, the
// newer half, then the older one. What was futile once is so until something changes.
bool StoreCore::CompactForRoomUnderLock() {
  const State seen = CopyState();
  const size_t count = seen.sealed.size();
  const uint64_t snapshots = snapshot_changes_.load(std::memory_order_relaxed);
  const uint64_t seals = seals_.load(std::memory_order_relaxed);
  if (count == 0 || (futile_seals_ == seals && futile_snapshots_ == snapshots)) return false;
  const uint64_t taken_before = MemoryBytes(seen);
  const uint64_t limit =
      options_.memory_budget > taken_before ? options_.memory_budget - taken_before : uint64_t{0};
  std::vector<std::pair<size_t, size_t>> parts = {
      {0, count}, {0, (count + 1) / 2}, {count / 2, count}};
  for (size_t first = 0; first + 1 < count; ++first) parts.emplace_back(first, first + 2);
  for (const auto& [first, last] : parts) {
    if (MergeUnderLock(first, last, limit) && MemoryBytes(CopyState()) < taken_before) return true;
    if (CopyState().sealed.size() != count) return true;
  }
  futile_seals_ = seals;
  futile_snapshots_ = snapshots;
  return false;
}

Status StoreCore::Compact() {
  const std::lock_guard work(work_mutex_);
  {
    const std::lock_guard lock(state_mutex_);
    // Without room for a fresh one the active generation stays as it is.
    if (!CopyState().active->empty()) SealUnderLock(0, /*uses_reserve=*/true);
  }
  SortUnderLock();
  const State seen = CopyState();
  if (seen.sealed.empty()) return {};
  const uint64_t taken = MemoryBytes(seen);
  const uint64_t limit = options_.memory_budget > taken ? options_.memory_budget - taken : 0;
  if (MergeUnderLock(0, seen.sealed.size(), limit)) return {};
  return Status(StatusCode::kResourceExhausted,
                "compact a memtable: the merged generation does not fit into the " +
                    std::to_string(limit) + " bytes that memory_budget leaves; raise it");
}

namespace {

/// Appends versions to a generation, some at a time, so that the index lines that they need are
/// fetched together.
class Appender {
 public:
  explicit Appender(Generation* out) : out_(out) {}

  /// Views must last until Flush. False: there is no room.
  bool Add(const RecordSource& source, base::SequenceNumber sequence) {
    const uint64_t hash = base::Hash(source.key);
    out_->Prefetch(source.keyspace, hash);
    pending_.push_back({source, sequence, hash});
    return pending_.size() < kGroup || Flush();
  }
  bool Flush() {
    for (const auto& [source, sequence, hash] : pending_) {
      if (source.ByteSize() > Generation::kSmallBytesMax) {
        auto reservation = out_->Reserve(source);
        if (!reservation) return false;
        out_->Insert(std::move(*reservation), sequence);
        continue;
      }
      bool has_piled_up = false;
      const auto assign = [number = sequence](base::Tag) { return number; };
      if (out_->Put(source, hash, assign, &has_piled_up) != Generation::Placed::kYes) return false;
    }
    pending_.clear();
    return true;
  }

 private:
  static constexpr size_t kGroup = 16;
  struct Pending {
    RecordSource source;
    base::SequenceNumber sequence;
    uint64_t hash;
  };
  Generation* const out_;
  std::vector<Pending> pending_;
};

/// The range deletes of some generations, by the boundaries between which they stand: a version is
/// hidden from everybody by one that stands between the same two.
class RangeStripes {
 public:
  RangeStripes(const std::vector<std::shared_ptr<Generation>>& inputs, uint32_t keyspace,
               const std::vector<base::SequenceNumber>& boundaries)
      : boundaries_(boundaries) {
    std::vector<std::vector<base::RangeCover::Range>> ranges(boundaries.size() + 1);
    for (const auto& input : inputs) {
      for (const RangeDelete* range = input->range_deletes(); range != nullptr;
           range = range->next) {
        if (range->keyspace != keyspace) continue;
        const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
        ranges[StripeOf(sequence)].push_back({range->begin, range->end, sequence});
        is_empty_ = false;
      }
    }
    if (is_empty_) return;
    for (const auto& stripe : ranges) covers_.emplace_back(stripe);
  }
  size_t StripeOf(base::SequenceNumber sequence) const {
    return static_cast<size_t>(std::lower_bound(boundaries_.begin(), boundaries_.end(), sequence) -
                               boundaries_.begin());
  }
  bool Hides(std::string_view key, base::SequenceNumber sequence) const {
    return !is_empty_ && covers_[StripeOf(sequence)].Covers(key, sequence);
  }

 private:
  const std::vector<base::SequenceNumber>& boundaries_;
  std::vector<base::RangeCover> covers_;
  bool is_empty_ = true;
};

}  // namespace

bool StoreCore::MergeUnderLock(size_t first, size_t last, uint64_t limit_bytes) {
  const State seen = CopyState();
  const Generations inputs(seen.sealed.begin() + static_cast<ptrdiff_t>(first),
                           seen.sealed.begin() + static_cast<ptrdiff_t>(last));
  if (limit_bytes < std::max(kGenerationMin, options_.shards * kShardBytesMin)) return false;
  // Who began before they were sealed may still be inserting.
  slots_.AwaitAllUpTo(last_sequence_.load(std::memory_order_acquire));
  const bool at_bottom = last == seen.sealed.size();
  const std::vector<base::SequenceNumber> boundaries = Boundaries();
  const std::shared_ptr<Generation> out = NewGeneration(limit_bytes);

  std::set<uint32_t> keyspaces;
  for (const auto& input : inputs) input->AddKeyspacesTo(&keyspaces);
  Appender appender(out.get());
  uint64_t read = 0;
  uint64_t dropped = 0;
  for (const uint32_t keyspace : keyspaces) {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    for (const auto& input : inputs) {
      children.push_back(input->NewIterator(keyspace, base::kMaxSequence));
    }
    const auto source = base::NewMergingIterator(std::move(children));
    const RangeStripes ranges(inputs, keyspace, boundaries);
    base::Retention retention(boundaries, at_bottom);
    for (source->SeekToFirst(); source->Valid(); source->Next()) {
      ++read;
      const base::SequenceNumber sequence = base::TagSequence(source->tag());
      // Retention has to see what a range delete hides: it stands above what is older.
      if (!retention.Keep(source->key(), source->tag()) || ranges.Hides(source->key(), sequence)) {
        ++dropped;
        continue;
      }
      // The inputs live as long as this function, and so do the records' bytes.
      const bool is_added = appender.Add({.kind = base::TagKind(source->tag()),
                                          .keyspace = keyspace,
                                          .key = source->key(),
                                          .value = source->value(),
                                          .expiry_ms = 0,
                                          .is_of_several = false},
                                         sequence);
      if (!is_added || is_let_go_.load(std::memory_order_relaxed)) return false;
    }
    if (!appender.Flush()) return false;
  }
  for (const auto& input : inputs) {
    for (const RangeDelete* range = input->range_deletes(); range != nullptr; range = range->next) {
      const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
      if (at_bottom && sequence <= boundaries.front()) continue;
      RangeDelete* const kept =
          out->PrepareRangeDelete(range->keyspace, range->begin, range->end, false);
      if (kept == nullptr) return false;
      out->Finish(kept, sequence);
    }
  }
  out->SortAll();

  {
    const std::lock_guard lock(state_mutex_);
    State next = CopyState();
    const auto begin = std::find(next.sealed.begin(), next.sealed.end(), inputs.front());
    const auto place = next.sealed.erase(begin, begin + static_cast<ptrdiff_t>(inputs.size()));
    if (!out->empty()) next.sealed.insert(place, out);
    Publish(std::move(next));
  }
  compactions_.fetch_add(1, std::memory_order_relaxed);
  compacted_records_.fetch_add(read, std::memory_order_relaxed);
  dropped_records_.fetch_add(dropped, std::memory_order_relaxed);
  return true;
}

MemTableStats StoreCore::GetStats() const {
  const State seen = CopyState();
  MemTableStats stats;
  stats.memory_budget = options_.memory_budget;
  const auto add = [&](const Generation& generation) {
    stats.memory_bytes += generation.memory_bytes();
    stats.logical_bytes += generation.logical_bytes();
    stats.records += generation.record_count();
    stats.sorted_records += generation.sorted_count();
    stats.sorted_runs += generation.run_count();
    for (const RangeDelete* range = generation.range_deletes(); range != nullptr;
         range = range->next) {
      ++stats.range_deletes;
    }
  };
  add(*seen.active);
  for (const auto& generation : seen.sealed) add(*generation);
  stats.last_sequence = last_sequence_.load(std::memory_order_acquire);
  stats.sealed_generations = seen.sealed.size();
  stats.seals = seals_.load(std::memory_order_relaxed);
  stats.compactions = compactions_.load(std::memory_order_relaxed);
  stats.compacted_records = compacted_records_.load(std::memory_order_relaxed);
  stats.dropped_records = dropped_records_.load(std::memory_order_relaxed);
  stats.waits = waits_.load(std::memory_order_relaxed);
  stats.wait_us = wait_us_.load(std::memory_order_relaxed);
  const std::lock_guard lock(snapshots_mutex_);
  stats.snapshots = snapshots_.size();
  return stats;
}

}  // namespace basalt::memtable
