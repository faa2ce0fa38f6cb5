#include <algorithm>
#include <chrono>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/epoch.h"
#include "base/hash.h"
#include "base/merging_iterator.h"
#include "base/retention.h"
#include "base/thread_pool.h"
#include "memtable/sorted_run.h"
#include "memtable/store.h"

// What becomes of generations: sealing, room, sorting, merging.

namespace basalt::memtable {
namespace {

/// The part of the budget that is kept for merging.
constexpr uint64_t kReserveShare = 4;
/// A merge for room has to free so much of the budget, or writers would wait for one all the time.
constexpr uint64_t kFreedShare = 64;
/// So many neighbours of like size are merged.
constexpr size_t kFanIn = 4;
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

void StoreCore::Publish(State next) {
  auto published = std::make_unique<const State>(std::move(next));
  const State* const old = state_.exchange(published.release(), std::memory_order_seq_cst);
  retired_.Retire(const_cast<State*>(old), sizeof(State),
                  [](void* retired) { delete static_cast<State*>(retired); });
  retired_.Collect();
}

bool StoreCore::SealUnderLock(uint64_t bytes_wanted, Use use) {
  State next = CopyState();
  const uint64_t reserve = options_.memory_budget / kReserveShare;
  const uint64_t taken = MemoryBytes(next) + (use == Use::kAnything ? reserve : reserve / 2);
  const uint64_t left = options_.memory_budget > taken ? options_.memory_budget - taken : 0;
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
                    " bytes taken: delete and Compact, or raise memory_budget");
}

Status StoreCore::MakeRoom(const Generation& full, uint64_t bytes, bool only_deletes) {
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
  if (options_.compaction && options_.at_budget == AtBudget::kWait) {
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
  if (options_.compaction && options_.at_budget == AtBudget::kRefuse) {
    wants_room_.store(true, std::memory_order_relaxed);
    ScheduleWork();
  }
  return has_room ? Status() : NoRoom(bytes);
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
  if (!is_let_go_.load(std::memory_order_relaxed)) WorkIfMemoryAllows(Sorting::kMayWait);
}

void StoreCore::Work(Sorting sorting) {
  const std::lock_guard work(work_mutex_);
  SortUnderLock(sorting);
  if (!options_.compaction) return;
  if (wants_room_.exchange(false, std::memory_order_relaxed)) CompactForRoomUnderLock();
  while (!is_let_go_.load(std::memory_order_relaxed) && CompactSomeUnderLock()) {
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
                                             .lane_counts = active.LaneCounts(),
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

std::vector<base::SequenceNumber> StoreCore::Boundaries() const {
  const std::lock_guard lock(snapshots_mutex_);
  std::vector<base::SequenceNumber> boundaries(snapshots_.begin(), snapshots_.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  // Later snapshots are at this or above.
  const base::SequenceNumber last = sequencer_.last();
  if (boundaries.empty() || boundaries.back() != last) boundaries.push_back(last);
  return boundaries;
}

// Neighbours of like size, the newest first, where what is kept for merging has room for the
// result: so it will have room for what is left of that, too.
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
    if (*most > 3 * *least || together > options_.memory_budget / kReserveShare ||
        taken + together > options_.memory_budget) {
      continue;
    }
    return MergeUnderLock(seen, first, first + kFanIn, together + kGenerationMin).has_value();
  }
  return false;
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
      const base::EpochGuard inside;
      if (out_->Put(source, hash, inside.thread_number(), assign, &has_piled_up) !=
          Generation::Placed::kYes) {
        return false;
      }
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

/// Whether a merge keeps it. `at_bottom`: nothing older lies below.
bool IsKept(const RangeDelete& range, bool at_bottom,
            const std::vector<base::SequenceNumber>& boundaries) {
  return !at_bottom || range.sequence.load(std::memory_order_relaxed) > boundaries.front();
}

}  // namespace

// What newer generations hide from everybody is not kept, either: else a generation whose records
// have all been overwritten could only go together with those that did it.
template <class Visit>
std::optional<StoreCore::Counts> StoreCore::ForEachKept(
    const State& seen, size_t first, size_t last,
    const std::vector<base::SequenceNumber>& boundaries, const Visit& visit) const {
  const Generations inputs(seen.sealed.begin() + static_cast<ptrdiff_t>(first),
                           seen.sealed.begin() + static_cast<ptrdiff_t>(last));
  Generations newer = {seen.active};
  newer.insert(newer.end(), seen.sealed.begin(),
               seen.sealed.begin() + static_cast<ptrdiff_t>(first));
  const auto is_hidden_from_above = [&](uint32_t keyspace, std::string_view key,
                                        base::SequenceNumber sequence) {
    // The lowest that anybody may read at, of those who see this version.
    const base::SequenceNumber at =
        *std::lower_bound(boundaries.begin(), boundaries.end(), sequence);
    const uint64_t hash = base::Hash(key);
    const base::EpochGuard inside;
    return std::any_of(newer.begin(), newer.end(), [&](const auto& generation) {
      const Seen its = Look(*generation, keyspace, key, hash, at);
      return its.record != nullptr || its.covered != 0;
    });
  };

  std::set<uint32_t> keyspaces;
  for (const auto& input : inputs) input->AddKeyspacesTo(&keyspaces);
  Counts counts;
  for (const uint32_t keyspace : keyspaces) {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    for (const auto& input : inputs) {
      children.push_back(input->NewIterator(keyspace, base::kMaxSequence));
    }
    const auto source = base::NewMergingIterator(std::move(children));
    const RangeStripes ranges(inputs, keyspace, boundaries);
    base::Retention retention(boundaries, /*at_bottom=*/last == seen.sealed.size());
    for (source->SeekToFirst(); source->Valid(); source->Next()) {
      const base::SequenceNumber sequence = base::TagSequence(source->tag());
      // The inputs live as long as `seen`, and so do the records' bytes.
      const RecordSource record{.kind = base::TagKind(source->tag()),
                                .keyspace = keyspace,
                                .key = source->key(),
                                .value = source->value(),
                                .time_ms = 0,
                                .is_of_several = false};
      ++counts.read;
      counts.read_bytes += record.ByteSize();
      // Retention has to see what a range delete hides: it stands above what is older.
      if (!retention.Keep(record.key, source->tag()) || ranges.Hides(record.key, sequence) ||
          is_hidden_from_above(keyspace, record.key, sequence)) {
        continue;
      }
      ++counts.kept;
      counts.kept_bytes += record.ByteSize();
      if (record.kind == RecordKind::kDelete) counts.delete_bytes += record.ByteSize();
      if (!visit(record, sequence) || is_let_go_.load(std::memory_order_relaxed)) {
        return std::nullopt;
      }
    }
  }
  return counts;
}

std::optional<uint64_t> StoreCore::MergeUnderLock(const State& seen, size_t first, size_t last,
                                                  uint64_t limit_bytes) {
  if (limit_bytes < LeastMergedBytes()) return std::nullopt;
  // Who began before they were sealed may still be inserting.
  sequencer_.Settle();
  const bool at_bottom = last == seen.sealed.size();
  const std::vector<base::SequenceNumber> boundaries = Boundaries();
  const std::shared_ptr<Generation> out = NewGeneration(limit_bytes);
  Appender appender(out.get());
  const std::optional<Counts> counts =
      ForEachKept(seen, first, last, boundaries,
                  [&](const RecordSource& record, base::SequenceNumber sequence) {
                    return appender.Add(record, sequence);
                  });
  if (!counts || !appender.Flush()) return std::nullopt;
  const auto begin = seen.sealed.begin() + static_cast<ptrdiff_t>(first);
  const Generations inputs(begin, seen.sealed.begin() + static_cast<ptrdiff_t>(last));
  for (const auto& input : inputs) {
    for (const RangeDelete* range = input->range_deletes(); range != nullptr; range = range->next) {
      if (!IsKept(*range, at_bottom, boundaries)) continue;
      RangeDelete* const kept =
          out->PrepareRangeDelete(range->keyspace, range->begin, range->end, false);
      if (kept == nullptr) return std::nullopt;
      out->Finish(kept, range->sequence.load(std::memory_order_relaxed));
    }
  }
  out->SortAll();
  uint64_t freed_bytes = 0;
  for (const auto& input : inputs) freed_bytes += input->memory_bytes();
  freed_bytes -= std::min(freed_bytes, out->memory_bytes());

  {
    const std::lock_guard lock(state_mutex_);
    State next = CopyState();
    const auto old = std::find(next.sealed.begin(), next.sealed.end(), inputs.front());
    const auto place = next.sealed.erase(old, old + static_cast<ptrdiff_t>(inputs.size()));
    if (!out->empty()) next.sealed.insert(place, out);
    Publish(std::move(next));
  }
  compactions_.fetch_add(1, std::memory_order_relaxed);
  compacted_records_.fetch_add(counts->read, std::memory_order_relaxed);
  dropped_records_.fetch_add(counts->read - counts->kept, std::memory_order_relaxed);
  return freed_bytes;
}

// ---- Merging for room ----

// By a walk over all records that copies nothing. What a generation keeps of its own is scaled by
// what its records take at present, index and order included.
std::vector<StoreCore::Outlook> StoreCore::LookAheadUnderLock(const State& seen) const {
  sequencer_.Settle();
  const std::vector<base::SequenceNumber> boundaries = Boundaries();
  std::vector<Outlook> outlooks;
  for (size_t i = 0; i < seen.sealed.size(); ++i) {
    const auto look_only = [](const RecordSource&, base::SequenceNumber) { return true; };
    const std::optional<Counts> counts = ForEachKept(seen, i, i + 1, boundaries, look_only);
    if (!counts) return {};
    const uint64_t bytes = seen.sealed[i]->memory_bytes();
    uint64_t range_bytes = 0;
    uint64_t kept_range_bytes = 0;
    for (const RangeDelete* range = seen.sealed[i]->range_deletes(); range != nullptr;
         range = range->next) {
      range_bytes += range->ByteSize();
      if (IsKept(*range, i + 1 == seen.sealed.size(), boundaries)) {
        kept_range_bytes += range->ByteSize();
      }
    }
    const double scale = static_cast<double>(bytes - std::min(bytes, range_bytes)) /
                         static_cast<double>(std::max<uint64_t>(counts->read_bytes, 1));
    const auto scaled = [scale](uint64_t of_records) {
      return static_cast<uint64_t>(scale * static_cast<double>(of_records));
    };
    outlooks.push_back({.bytes = bytes,
                        .kept_bytes = scaled(counts->kept_bytes) + kept_range_bytes,
                        .put_bytes = scaled(counts->kept_bytes - counts->delete_bytes)});
  }
  return outlooks;
}

// An index that has just been doubled is half empty. What keeps nothing leaves no generation.
uint64_t StoreCore::BytesForMerged(uint64_t kept_bytes) const {
  return kept_bytes == 0 ? 0 : kept_bytes + kept_bytes / 8 + LeastMergedBytes();
}

// Of all ranges of neighbours whose result fits beside them the one that frees the most. So a
// generation that is mostly garbage can go when the result of merging all would have no room.
bool StoreCore::MergeForRoomUnderLock(uint64_t freed_min) {
  const State seen = CopyState();
  const uint64_t taken = MemoryBytes(seen);
  const uint64_t limit = options_.memory_budget > taken ? options_.memory_budget - taken : 0;
  const std::vector<Outlook> outlooks = LookAheadUnderLock(seen);
  std::pair<size_t, size_t> best{0, 0};
  uint64_t most_freed = freed_min;
  for (size_t first = 0; first < outlooks.size(); ++first) {
    Outlook together;
    for (size_t last = first; last < outlooks.size(); ++last) {
      together += outlooks[last];
      const uint64_t kept = last + 1 == outlooks.size() ? together.put_bytes : together.kept_bytes;
      const uint64_t freed = together.bytes - std::min(together.bytes, kept);
      if (BytesForMerged(kept) > limit || freed <= most_freed) continue;
      most_freed = freed;
      best = {first, last + 1};
    }
  }
  if (best.second == 0) return false;
  // Not by what is taken now: others may have used the room already.
  const std::optional<uint64_t> freed =
      MergeUnderLock(seen, best.first, best.second, std::max(limit, LeastMergedBytes()));
  return freed.value_or(0) != 0;
}

// What was futile once is so until something changes.
bool StoreCore::CompactForRoomUnderLock() {
  const uint64_t freed_min = options_.memory_budget / kFreedShare;
  const State seen = CopyState();
  const Prospects prospects{.seals = seals_.load(std::memory_order_relaxed),
                            .snapshot_changes = snapshot_changes_.load(std::memory_order_relaxed),
                            .freed_parts = MemoryBytes(seen) / freed_min,
                            .newest_range = seen.active->range_deletes()};
  if (futile_ == prospects) return false;
  if (MergeForRoomUnderLock(freed_min)) return true;
  futile_ = prospects;
  return false;
}

Status StoreCore::Compact() {
  const std::lock_guard work(work_mutex_);
  const auto seal = [this] {
    const std::lock_guard lock(state_mutex_);
    return CopyState().active->empty() || SealUnderLock(0, Use::kAnything) || SealMostUnderLock(0);
  };
  // Without room for a fresh one the active generation stays as it is.
  if (!seal() && MergeForRoomUnderLock(0)) seal();
  SortUnderLock();
  for (;;) {
    const State seen = CopyState();
    if (seen.sealed.empty()) return {};
    const uint64_t taken = MemoryBytes(seen);
    const uint64_t limit = options_.memory_budget > taken ? options_.memory_budget - taken : 0;
    Outlook all;
    for (const Outlook& outlook : LookAheadUnderLock(seen)) all += outlook;
    if (BytesForMerged(all.put_bytes) <= limit &&
        MergeUnderLock(seen, 0, seen.sealed.size(), std::max(limit, LeastMergedBytes()))) {
      return {};
    }
    if (MergeForRoomUnderLock(0)) continue;
    if (seen.sealed.size() == 1 && all.put_bytes == all.bytes) return {};  // As it would be.
    return Status(StatusCode::kResourceExhausted,
                  "compact a memtable: the merged generation does not fit into the " +
                      std::to_string(limit) + " bytes that memory_budget leaves; raise it");
  }
}

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
    for (const RangeDelete* range = generation.range_deletes(); range != nullptr;
         range = range->next) {
      ++stats.range_deletes;
    }
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
