#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/epoch.h"
#include "base/thread_pool.h"
#include "memtable/sorted_run.h"
#include "memtable/store.h"

// Work on generations: sealing, making room, sorting. store_merge.cc has merging.

namespace basalt::memtable {
namespace {

/// Where sorting waits for a processor.
constexpr std::chrono::milliseconds kLookAgainAfter{5};

uint64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::steady_clock::now() - start)
                                   .count());
}

/// What a generation must hold so that so many bytes of records fit.
uint64_t RoomFor(uint64_t bytes) { return bytes + bytes / 4 + StoreCore::kGenerationMin; }

}  // namespace

// ---- Sealing ----

uint64_t StoreCore::MemoryBytes(const State& state) const noexcept {
  // What is not sorted yet will need its place in a run.
  const auto bytes_of = [](const Generation& generation) {
    return generation.memory_bytes() + generation.unsorted_count() * sizeof(SortEntry);
  };
  uint64_t bytes = bytes_of(*state.active);
  for (const auto& generation : state.sealed) bytes += bytes_of(*generation);
  return bytes;
}

uint64_t StoreCore::BytesLeft(const State& state, uint64_t kept) const noexcept {
  const uint64_t taken = MemoryBytes(state) + kept;
  return options_.memory_budget - std::min(options_.memory_budget, taken);
}

void StoreCore::Publish(State next) {
  auto published = std::make_unique<const State>(std::move(next));
  base::RetireList::Note note = base::RetireList::NewNote();
  const State* const old = state_.exchange(published.release(), std::memory_order_seq_cst);
  retired_.Retire(std::move(note), const_cast<State*>(old), sizeof(State),
                  [](void* retired) { delete static_cast<State*>(retired); });
  retired_.Collect();
}

bool StoreCore::SealUnderLock(uint64_t bytes_wanted, Use use) {
  State next = CopyState();
  const uint64_t reserve = options_.memory_budget / kReserveShare;
  const uint64_t left = BytesLeft(next, use == Use::kAnything ? reserve : reserve / 2);
  const uint64_t least = std::max(RoomFor(bytes_wanted), LeastBytes());
  if (left < least) return false;
  next.sealed.insert(next.sealed.begin(), std::move(next.active));
  ++next.active_number;
  next.only_deletes = use == Use::kDeletes;
  next.active = NewGeneration(
      use == Use::kAnything ? std::min(left, std::max(options_.generation_bytes, least)) : least);
  Publish(std::move(next));
  seals_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool StoreCore::SealMostUnderLock(uint64_t bytes_wanted) {
  const State seen = CopyState();
  return 2 * seen.active->memory_bytes() > MemoryBytes(seen) &&
         SealUnderLock(bytes_wanted, Use::kMerging);
}

Status StoreCore::Seal() {
  {
    const std::lock_guard lock(state_mutex_);
    if (CopyState().active->empty()) return {};
    if (!SealUnderLock(0, Use::kAnything)) return NoRoom(0);
  }
  ScheduleWork();
  return {};
}

Status StoreCore::NoRoom(uint64_t bytes) const {
  return Status(StatusCode::kResourceExhausted,
                "write " + std::to_string(bytes) + " bytes to a memtable with " +
                    std::to_string(MemoryBytes(CopyState())) + " of " +
                    std::to_string(options_.memory_budget) +
                    " bytes taken: delete and Compact, or raise memory_budget",
                SubCode::kBudget);
}

Status StoreCore::MakeRoom(const Generation& full, uint64_t bytes, bool only_deletes,
                           bool may_wait) {
  if (RoomFor(bytes) > options_.memory_budget - options_.memory_budget / kReserveShare) {
    return NoRoom(bytes);
  }
  const auto try_to_seal = [&](Use use) {
    const std::lock_guard lock(state_mutex_);
    return CopyState().active.get() != &full || SealUnderLock(bytes, use) ||
           SealMostUnderLock(bytes);
  };
  if (try_to_seal(Use::kAnything)) {
    ScheduleWork();
    return {};
  }
  if (options_.compaction && options_.at_budget == AtBudget::kWait && may_wait) {
    const auto start = std::chrono::steady_clock::now();
    waits_.fetch_add(1, std::memory_order_relaxed);
    bool has_room = false;
    {
      const std::lock_guard work(work_mutex_);
      do {
        has_room = try_to_seal(Use::kAnything);
      } while (!has_room && CompactForRoomUnderLock());
    }
    wait_us_.fetch_add(MicrosSince(start), std::memory_order_relaxed);
    if (has_room) return {};
  }
  const bool has_room = only_deletes && try_to_seal(Use::kDeletes);
  if (options_.compaction && (options_.at_budget == AtBudget::kRefuse || !may_wait)) {
    wants_room_.store(true, std::memory_order_relaxed);
    ScheduleWork();
  }
  if (has_room) return {};
  if (options_.compaction && options_.at_budget == AtBudget::kWait && !may_wait) {
    return Status(
        StatusCode::kWouldBlock,
        "the write would have to wait until compaction has made room in the memtable: make "
        "it on a thread that may wait");
  }
  return NoRoom(bytes);
}

// ---- Background ----

// Without memory for it there is no background work now: iterators sort for themselves, and writers
// merge when they need room.
void StoreCore::ScheduleWork() noexcept {
  if (is_work_scheduled_.load(std::memory_order_relaxed) ||
      is_work_scheduled_.exchange(true, std::memory_order_acq_rel)) {
    return;
  }
  bool is_scheduled = false;
  try {
    if (const Result<base::ThreadPool*> pool = base::ThreadPool::Shared(1)) {
      (*pool)->Schedule([core = shared_from_this()] { core->RunScheduledWork(); });
      is_scheduled = true;
    }
  } catch (const std::bad_alloc&) {
    is_scheduled = false;
  }
  if (!is_scheduled) is_work_scheduled_.store(false, std::memory_order_release);
}

bool StoreCore::SortIfMemoryAllows() noexcept {
  try {
    CopyState().active->SortTail();
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // The next iterator does it.
  }
}

void StoreCore::SortSoon() noexcept {
  constexpr uint64_t kFarBehind = 2 * SortDelay::kUnsortedMax;
  ScheduleWork();
  const auto unsorted = [this] {
    const base::EpochGuard inside;
    return state()->active->unsorted_count();
  };
  if (unsorted() > kFarBehind) std::this_thread::yield();
}

void StoreCore::RunScheduledWork() noexcept {
  is_work_scheduled_.store(false, std::memory_order_release);
  if (!is_released_.load(std::memory_order_relaxed)) WorkIfMemoryAllows(Sorting::kMayWait);
}

void StoreCore::Work(Sorting sorting) {
  const std::lock_guard work(work_mutex_);
  SortUnderLock(sorting);
  if (!options_.compaction) return;
  if (wants_room_.exchange(false, std::memory_order_relaxed)) CompactForRoomUnderLock();
  while (!is_released_.load(std::memory_order_relaxed) && CompactSomeUnderLock()) {
  }
}

bool StoreCore::WorkIfMemoryAllows(Sorting sorting) noexcept {
  try {
    Work(sorting);
    return true;
  } catch (const std::bad_alloc&) {
    // Nothing has changed: iterators sort for themselves, and the next write that piles up asks
    // again.
    return false;
  }
}

bool StoreCore::IsSortDueUnderLock(const Generation& active) {
  if (will_look_again_) return false;
  const bool is_due = sort_delay_.IsSortDue({.generation = seals_.load(std::memory_order_relaxed),
                                             .segment_counts = active.SegmentCounts(),
                                             .unsorted = active.unsorted_count(),
                                             .was_iterated = was_iterated_.exchange(false)});
  if (is_due) return true;
  const Result<base::ThreadPool*> pool = base::ThreadPool::Shared(1);
  if (!pool) return true;
  // The store may go meanwhile.
  (*pool)->ScheduleAfter(kLookAgainAfter, [weak = weak_from_this()] {
    const std::shared_ptr<StoreCore> core = weak.lock();
    if (core == nullptr) return;
    {
      const std::lock_guard work(core->work_mutex_);
      core->will_look_again_ = false;
    }
    core->RunScheduledWork();
  });
  will_look_again_ = true;
  return false;
}

void StoreCore::SortUnderLock(Sorting sorting) {
  const State seen = CopyState();
  if (sorting == Sorting::kNow || IsSortDueUnderLock(*seen.active)) seen.active->SortTail();
  for (const auto& generation : seen.sealed) {
    if (generation->unsorted_count() != 0 || generation->run_count() > 1) generation->SortAll();
  }
}

// ---- Statistics ----

MemTableStats StoreCore::GetStats() const {
  const base::EpochGuard inside;
  const State& seen = *state();
  MemTableStats stats;
  stats.memory_budget = options_.memory_budget;
  const auto add = [&](const Generation& generation) {
    stats.memory_bytes += generation.memory_bytes();
    stats.logical_bytes += generation.logical_bytes();
    stats.records += generation.record_count();
    stats.sorted_records += generation.sorted_count();
    stats.sorted_runs += generation.run_count();
    stats.range_deletes += generation.range_deletes().count();
  };
  add(*seen.active);
  for (const auto& generation : seen.sealed) add(*generation);
  stats.last_sequence = sequencer_.last();
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
