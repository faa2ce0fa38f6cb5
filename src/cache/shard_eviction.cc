// How a shard makes room: what goes when memory is short, and how what it leaves is given back.

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/extent_pool.h"
#include "cache/shard.h"

namespace basalt::cache {
namespace {

/// Of an entry that goes from S3-FIFO's queue into the main part. That one is no queue, but the
/// table, so the hand may be just before the entry: it shall pass it once.
constexpr uint8_t kFrequencyOfPromoted = 1;
/// At so many entries the hand looks for one eviction.
constexpr uint64_t kHandLooksMax = 512;
/// Or at so many slots, should they be empty: some 50 us.
constexpr uint64_t kHandSlotsMax = 4096;

}  // namespace

void Shard::EvictFromBucketsOf(uint64_t hash, Aftermath* after) noexcept {
  const uint64_t coarse_ms = common_.clock->CoarseMillis();
  Index::Found victim;
  bool victim_is_pinned = true;
  const auto [home, buddy] = index_.BucketsOf(hash);
  for (Index::Bucket* const bucket : {home, buddy}) {
    for (Index::AtomicWord& slot : bucket->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (!Word::IsLive(word)) continue;
      Entry* const entry = Index::EntryOf(word);
      if (HasExpired({&slot, word}, coarse_ms)) {
        return Unlink({&slot, word}, Removal::kExpired, after);
      }
      const bool is_pinned = entry->state.is_pinned();
      const bool is_better = !victim || is_pinned < victim_is_pinned ||
                             (is_pinned == victim_is_pinned &&
                              Index::Frequency(&slot) < Index::Frequency(victim.slot));
      if (!is_better) continue;
      victim = {&slot, word};
      victim_is_pinned = is_pinned;
    }
  }
  Unlink(victim, Removal::kEvicted, after);
}

uint64_t Shard::EvictFromQueue(Aftermath* after) noexcept {
  constexpr int kPopsMax = 16;
  for (int i = 0; i < kPopsMax && !queue_.empty(); ++i) {
    const Index::Found found = FindQueued(queue_.Pop());
    if (!found) continue;
    Dequeue(found.entry());
    if (Index::Frequency(found.slot) > 0 || found.entry()->state.is_pinned()) {
      Index::SetFrequency(found.slot, kFrequencyOfPromoted);
      continue;
    }
    const uint64_t bytes = ChargedBytes(found.entry());
    Unlink(found, Removal::kEvicted, after);
    return bytes;
  }
  return 0;
}

// The hand stands at a slot, and goes on to the next one.
uint64_t Shard::StepHand(uint64_t coarse_ms, Aftermath* after,
                         Index::AtomicWord** passed) noexcept {
  Index::Bucket* const bucket = index_.At(hand_);
  Index::AtomicWord& slot = bucket->slots[hand_slot_];
  if (++hand_slot_ == Index::kSlots) {
    hand_slot_ = 0;
    if (!index_.Advance(&hand_)) ++hand_turns_;
    __builtin_prefetch(index_.At(hand_));
  }
  const uint64_t word = slot.load(std::memory_order_relaxed);
  if (!Word::IsLive(word)) return 0;
  ++hand_looks_;
  if (const uint8_t frequency = Index::Frequency(&slot); frequency != 0) {
    const bool clears = common_.eviction == Eviction::kClock && recency_.Decides();
    Index::SetFrequency(&slot, clears ? 0 : frequency - 1);
    *passed = &slot;
    return 0;
  }
  const Index::Found found{&slot, word};
  const bool has_expired = HasExpired(found, coarse_ms);
  if (found.entry()->state.is_pinned() ||
      (!has_expired && (found.entry()->marks & Entry::kInQueue) != 0)) {
    return 0;
  }
  const uint64_t bytes = ChargedBytes(found.entry());
  Unlink(found, has_expired ? Removal::kExpired : Removal::kEvicted, after);
  return bytes;
}

uint64_t Shard::Evict(uint64_t bytes, Aftermath* after) noexcept {
  const uint64_t coarse_ms = common_.clock->CoarseMillis();
  Index::AtomicWord* passed = nullptr;
  uint64_t evicted = EmptyBlocks(bytes, bytes, after);
  const uint64_t last_look = hand_looks_ + kHandLooksMax;
  const uint64_t last_turn = hand_turns_ + 2;
  for (uint64_t slots = 0; evicted < bytes && !after->is_full() && hand_looks_ < last_look &&
                           slots < kHandSlotsMax && hand_turns_ < last_turn;
       ++slots) {
    if (QueueIsOverItsShare()) {
      const uint64_t from_queue = EvictFromQueue(after);
      evicted += from_queue;
      if (from_queue != 0) continue;
    }
    evicted += StepHand(coarse_ms, after, &passed);
  }
  PrefetchVictim();
  // All that the hand met was read of late. One of them has to go all the same.
  if (evicted == 0 && passed != nullptr) evicted = EvictAt(passed, after);
  ResetIndexIfEmpty();
  return evicted;
}

// What the hand will look at next time it last looked at a turn ago: no cache has it.
void Shard::PrefetchVictim() const noexcept {
  if (hand_slot_ == 0) return;  // Its bucket is on its way itself.
  const Index::Bucket* const bucket = index_.At(hand_);
  for (size_t i = hand_slot_; i < Index::kSlots; ++i) {
    const uint64_t word = bucket->slots[i].load(std::memory_order_relaxed);
    if (!Word::IsLive(word) || Index::Frequency(&bucket->slots[i]) != 0) continue;
    return __builtin_prefetch(Index::EntryOf(word));
  }
}

uint64_t Shard::EvictAt(Index::AtomicWord* slot, Aftermath* after) noexcept {
  const uint64_t word = slot->load(std::memory_order_relaxed);
  const Index::Found found{slot, word};
  if (!Word::IsLive(word) || found.entry()->state.is_pinned()) return 0;
  const uint64_t bytes = ChargedBytes(found.entry());
  Unlink(found, Removal::kEvicted, after);
  return bytes;
}

// Evicted entries lie all over the slabs, and a slab is only given back when it is empty: what lies
// in the emptiest one moves to where others were evicted, or is evicted too.
bool Shard::EmptySlab(uint8_t but, bool movable, Aftermath* after) noexcept {
  if (slabs_.ReleaseEmptySlabs()) return true;
  void* const slab = slabs_.SparsestSlab(but, movable && common_.destroy == nullptr);
  if (slab == nullptr) return false;
  slabs_.Close(slab);
  SlabAllocator::ForEachIn(slab, [&](void* object) {
    auto* const entry = static_cast<Entry*>(object);
    const std::string_view key = entry->key();
    const Index::Found found = index_.Find(index_.HashOf(key), key);
    if (found.entry() != entry || entry->state.is_pinned() || Move(found)) return;
    if (!after->is_full()) Unlink(found, Removal::kEvicted, after);
  });
  return true;
}

// Objects stay where they are: somebody may be reading them, and they know their address.
bool Shard::Move(const Index::Found& found, bool within_budget) noexcept {
  Entry* const entry = found.entry();
  if (common_.destroy != nullptr) return false;
  const uint8_t size_class = entry->slab_class();
  if (size_class != 0 && slabs_.free_objects(size_class) == 0) return false;
  Entry* const moved = Allocate(entry->key(), entry->value_bytes, within_budget);
  if (moved == nullptr) return false;
  std::memcpy(moved->value(), entry->value(), entry->value_bytes);
  uint64_t deadline_ms = 0;
  entry->state.ReadDeadline(&deadline_ms);
  moved->state.SetDeadline(deadline_ms);
  moved->marks = std::exchange(entry->marks, uint8_t{0});
  index_.Replace(found, moved, (found.word & Word::kExpires) != 0);
  linked_bytes_ += ChargedBytes(moved);
  if ((moved->marks & Entry::kInQueue) != 0) {
    queued_bytes_ += ChargedBytes(moved) - ChargedBytes(entry);
  }
  Retire(entry);
  return true;
}

uint64_t Shard::EmptyBlocks(uint64_t bytes, uint64_t evicted_bytes_max, Aftermath* after) noexcept {
  constexpr uint64_t kBytesAtOnce = 4 << 10;
  uint64_t evicted = 0;
  for (uint64_t at = 0; at < bytes; at += kBytesAtOnce) {
    const Emptied emptied = EmptyBlock(evicted_bytes_max - evicted, after);
    evicted += std::min(emptied.evicted_bytes, evicted_bytes_max - evicted);
    if (!emptied.has_advanced) break;
  }
  return evicted;
}

// While memory is wanted, what has not been read is evicted instead of moved, as the hand would do.
auto Shard::EmptyBlock(uint64_t evicted_bytes_max, Aftermath* after) noexcept -> Emptied {
  constexpr int kEntriesMax = 32;
  EntryHeap& heap = slabs_.heap();
  Emptied result;
  if (common_.destroy != nullptr && evicted_bytes_max == 0) return result;  // Objects cannot move.
  if (!heap.is_emptying()) {
    if (!IsSparse()) return result;
    slabs_.ReleaseSpares();
    if (!heap.StartEmptying(/*retires=*/!slabs_.uses_heap())) return result;
    reopens_block_ = false;
    result.has_advanced = true;
  }
  for (int i = 0; i < kEntriesMax && !after->is_full(); ++i) {
    // What was moved stays in memory until readers have left.
    if (retired_bytes_ > common_.retired_bytes_max) break;
    char* const object = heap.Emptied();
    if (object == nullptr) {
      heap.EndEmptying(reopens_block_);
      break;
    }
    auto* const entry = reinterpret_cast<Entry*>(object);
    const uint64_t bytes = ChargedBytes(entry);
    const Leaving leaving = LeaveBlock(entry, result.evicted_bytes < evicted_bytes_max, after);
    if (leaving == Leaving::kHasNoRoom) break;
    if (leaving == Leaving::kEvicted) result.evicted_bytes += bytes;
    if (leaving == Leaving::kStays) reopens_block_ = true;
    heap.SkipEmptied();
    result.has_advanced = true;
  }
  retired_.CollectSome([&](Entry* entry) { FreeOrDefer(entry, after); },
                       /*count_max=*/2 * kEntriesMax, /*scans=*/true);
  return result;
}

auto Shard::LeaveBlock(Entry* entry, bool evicts, Aftermath* after) noexcept -> Leaving {
  const std::string_view key = entry->key();
  const Index::Found found = index_.Find(index_.HashOf(key), key);
  if (entry->state.is_pinned()) return Leaving::kStays;
  if (found.entry() != entry) {
    // It was unlinked and waits for readers, or is about to be linked.
    uint64_t deadline_ms = 0;
    return entry->state.ReadDeadline(&deadline_ms) ? Leaving::kStays : Leaving::kIsGoing;
  }
  const bool is_evicted_next = Index::Frequency(found.slot) == 0 && !QueueIsOverItsShare() &&
                               (entry->marks & Entry::kInQueue) == 0;
  if (!(evicts && is_evicted_next) && Move(found)) return Leaving::kMoved;
  if (!evicts) return Leaving::kHasNoRoom;
  Unlink(found, Removal::kEvicted, after);
  return Leaving::kEvicted;
}

// Beyond the budget, by no more than this at a time: a cache that was made smaller is full.
bool Shard::GatherLarge(Index::Cursor* cursor, bool* has_moved, Aftermath* after) noexcept {
  constexpr uint64_t kBytesMax = 64 << 10;
  uint64_t bytes = 0;
  bool more = true;
  while (more && bytes < kBytesMax && retired_bytes_ <= common_.retired_bytes_max) {
    for (Index::AtomicWord& slot : index_.At(*cursor)->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (!Word::IsLive(word)) continue;
      Entry* const entry = Index::EntryOf(word);
      if (!entry->is_large() || entry->state.is_pinned() || ChargedBytes(entry) > kBytesMax ||
          !base::ExtentPool::Process()->IsBetweenFree(reinterpret_cast<const char*>(entry)) ||
          !Move({&slot, word}, /*within_budget=*/false)) {
        continue;
      }
      bytes += ChargedBytes(entry);
      *has_moved = true;
    }
    more = index_.Advance(cursor);
  }
  Collect(after);
  slabs_.ReleaseSpares();
  return more && retired_bytes_ <= common_.retired_bytes_max;
}

void Shard::MakeHeadroom(size_t bytes, Aftermath* after) noexcept {
  if (!common_.budget->IsWithin(common_.headroom_bytes)) return;
  if (wheel_.records() != 0 && SweepExpired(common_.clock->CoarseMillis(), after)) return;
  // What is evicted comes back when nobody reads it any more, which a look at all readers tells for
  // all shards. So a shard that has enough on its way frees two for each that it evicts, but looks
  // by itself only at twice that: until then another one's look may have served it.
  const uint64_t enough_bytes = std::max<uint64_t>(common_.retired_bytes_max / 64, 2 * bytes);
  const bool is_enough = retired_bytes_ >= enough_bytes;
  if (!slabs_.HasSpareFor(bytes)) {
    retired_.CollectSome([&](Entry* entry) { FreeOrDefer(entry, after); },
                         /*count_max=*/is_enough ? 2 : 1,
                         /*scans=*/retired_bytes_ >= 2 * enough_bytes);
  }
  const bool is_too_much = retired_bytes_ > common_.retired_bytes_max ||
                           (retired_bytes_ >= 3 * enough_bytes && slabs_.HasSpareFor(bytes));
  if (!is_too_much) Evict(is_enough ? bytes : 2 * bytes, after);
}

bool Shard::MakeRoom(size_t bytes, uint8_t size_class, Aftermath* after) noexcept {
  constexpr size_t kBatch = 8;
  constexpr int kRounds = 8;
  const auto has_room = [&] {
    return size_class == 0 ? !common_.budget->IsWithin(bytes)
                           : slabs_.free_objects(size_class) != 0 ||
                                 !common_.budget->IsWithin(SlabAllocator::kSlabBytes);
  };
  bool has_evicted = false;
  for (int round = 0; round < kRounds && !after->is_full(); ++round) {
    // What has expired goes before what has not.
    if (wheel_.records() != 0 && SweepExpired(common_.clock->CoarseMillis(), after)) {
      has_evicted = true;
    } else if (retired_bytes_ <= common_.retired_bytes_max + bytes) {
      has_evicted |= Evict(size_class == 0 ? bytes : kBatch * bytes, after) != 0;
    }
    Collect(after);
    if (has_room()) return true;
    if (EmptySlab(size_class, /*movable=*/true, after)) {
      Collect(after);
      if (has_room()) return true;
    }
  }
  return has_evicted;
}

Gave Shard::GiveBack(Aftermath* after) noexcept {
  constexpr int kRounds = 8;
  bool has_given = ShrinkIndex();
  for (int round = 0; round < kRounds && !has_given; ++round) {
    // Objects cannot move, and may weigh more than all slabs.
    if (round != 0 || common_.destroy != nullptr ||
        slabs_.free_bytes() < 2 * SlabAllocator::kSlabBytes) {
      if (retired_bytes_ > common_.retired_bytes_max + SlabAllocator::kSlabBytes) break;
      const uint64_t used_before = common_.budget->used_bytes();
      if (Evict(SlabAllocator::kSlabBytes, after) == 0) break;
      Collect(after);
      // What is freed after the lock counts too.
      has_given = common_.budget->used_bytes() < used_before || after->free != nullptr;
    }
    if (!has_given) has_given = EmptySlab(0, /*movable=*/true, after);
  }
  // Where sizes are many and slabs are few, there may be no other way.
  if (!has_given) has_given = EmptySlab(0, /*movable=*/false, after);
  Collect(after);
  if (has_given) return Gave::kSome;
  return retired_bytes_ != 0 || index_.retired_bytes() != 0 ? Gave::kLater : Gave::kNothing;
}

}  // namespace basalt::cache
