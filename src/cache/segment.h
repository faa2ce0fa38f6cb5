#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

// A segment of a shard's index: 64 buckets of tagged pointers, 4 KiB, the unit in which the index
// grows (directory.h).
//
//   bucket      64 bytes, one cache line: 8 bytes of counts and 7 slots
//   counts      away | a frequency for each slot, 0 to 3
//   slot        tag 16 | pointer 48, of which the low 3 bits are flags
//
// A key's home is one bucket; when that is full it lies in the bucket's buddy, its neighbour in the
// same 128 bytes. The first count is of the home's keys that are away, so that a lookup looks at
// the buddy only where there are any.
//
// A slot is empty (0), live (marked; its pointer is an entry), or a ghost: the tag of an entry that
// was evicted, and instead of the pointer the number of the eviction. A ghost costs nothing: its
// slot is free for whoever needs it, the oldest first. A key that comes back while its ghost is
// there was evicted too early.
//
// Frequencies are hints, apart from the words so that raising one is a plain store of a byte: of
// two that are raised or lowered at once one may be lost, and one that is raised late may go to the
// slot's next entry.
//
// Readers load words with acquire; whoever holds the shard's lock publishes them by release stores.

namespace basalt::cache {

/// The parts of a slot's word.
struct Word {
  static constexpr int kTagShift = 48;
  static constexpr uint64_t kTagMask = ~uint64_t{0} << kTagShift;
  static constexpr uint64_t kPointerMask = (uint64_t{1} << 48) - 8;
  static constexpr uint64_t kExpires = 1;  ///< The entry has a deadline.
  static constexpr uint64_t kLive = 2;     ///< It is an entry's, not a ghost's.
  static constexpr uint64_t kAway = 4;     ///< Its home is the buddy.
  static constexpr int kGhostShift = 3;

  static constexpr bool IsLive(uint64_t word) noexcept { return (word & kLive) != 0; }
  static constexpr bool IsLiveForGood(uint64_t word) noexcept {
    return (word & (kLive | kExpires)) == kLive;
  }
  static constexpr bool IsGhost(uint64_t word) noexcept {
    return !IsLive(word) && (word & kPointerMask) != 0;
  }
  static constexpr uint64_t GhostNumber(uint64_t word) noexcept {
    return (word & kPointerMask) >> kGhostShift;
  }
};

template <template <class> class Atomic, class Entry>
struct alignas(128) BasicSegment {
  using AtomicWord = Atomic<uint64_t>;

  static constexpr size_t kBuckets = 64;
  static constexpr size_t kSlots = 7;
  static constexpr uint8_t kFrequencyMax = 3;

  struct alignas(64) Bucket {
    Atomic<uint8_t> away{0};
    std::array<Atomic<uint8_t>, kSlots> frequencies{};
    std::array<AtomicWord, kSlots> slots{};
  };

  static Entry* EntryOf(uint64_t word) noexcept {
    return reinterpret_cast<Entry*>(word & Word::kPointerMask);
  }

  /// The other of the pair of 128 bytes.
  static Bucket* BuddyOf(const Bucket* bucket) noexcept {
    return reinterpret_cast<Bucket*>(reinterpret_cast<uintptr_t>(bucket) ^ sizeof(Bucket));
  }
  static Bucket* BucketOf(const AtomicWord* slot) noexcept {
    return reinterpret_cast<Bucket*>(reinterpret_cast<uintptr_t>(slot) & ~(sizeof(Bucket) - 1));
  }
  static Atomic<uint8_t>& FrequencyOf(const AtomicWord* slot) noexcept {
    // The counts' byte of the number that its word has in the bucket.
    const auto address = reinterpret_cast<uintptr_t>(slot);
    constexpr uintptr_t kOffsetMask = sizeof(Bucket) - 1;
    const uintptr_t number = (address & kOffsetMask) / sizeof(AtomicWord);
    return *reinterpret_cast<Atomic<uint8_t>*>((address & ~kOffsetMask) + number);
  }
  static uint8_t Frequency(const AtomicWord* slot) noexcept {
    return FrequencyOf(slot).load(std::memory_order_relaxed);
  }
  static void SetFrequency(AtomicWord* slot, uint8_t frequency) noexcept {
    FrequencyOf(slot).store(frequency, std::memory_order_relaxed);
  }
  static void AddAway(Bucket* home, int count) noexcept {
    home->away.store(static_cast<uint8_t>(home->away.load(std::memory_order_relaxed) + count),
                     std::memory_order_release);
  }

  static size_t CountLive(const Bucket& bucket) noexcept;
  static size_t CountLive(const BasicSegment& segment) noexcept;

  // What moves between segments, under the shard's lock.

  /// Copies all that `from` holds into two fresh ones, which nobody reads yet: entries by the bit
  /// of `hash_of(entry)` that has `bit` others before it. They are waited for together.
  template <class HashOf>
  static void Divide(const BasicSegment& from, int bit, const HashOf& hash_of, BasicSegment* zero,
                     BasicSegment* one) noexcept;
  /// Whether each pair of buckets would have a slot left for what comes next, were they one.
  static bool FitTogether(const BasicSegment& zero, const BasicSegment& one) noexcept;
  /// Copies all entries of `from`, and the ghosts that there is room for, into free slots of `to`,
  /// which may be read meanwhile. Only if the two fit together.
  static void CopyInto(const BasicSegment& from, BasicSegment* to) noexcept;

  std::array<Bucket, kBuckets> buckets;

 private:
  /// An empty slot, else a ghost's, unless `is_empty`. Null: there is none.
  static AtomicWord* FreeSlotIn(Bucket* bucket, bool is_empty) noexcept;
};

template <template <class> class Atomic, class Entry>
size_t BasicSegment<Atomic, Entry>::CountLive(const Bucket& bucket) noexcept {
  size_t live = 0;
  for (const AtomicWord& slot : bucket.slots) {
    live += Word::IsLive(slot.load(std::memory_order_acquire)) ? 1 : 0;
  }
  return live;
}

template <template <class> class Atomic, class Entry>
size_t BasicSegment<Atomic, Entry>::CountLive(const BasicSegment& segment) noexcept {
  size_t live = 0;
  for (const Bucket& bucket : segment.buckets) live += CountLive(bucket);
  return live;
}

template <template <class> class Atomic, class Entry>
template <class HashOf>
void BasicSegment<Atomic, Entry>::Divide(const BasicSegment& from, int bit, const HashOf& hash_of,
                                         BasicSegment* zero, BasicSegment* one) noexcept {
  for (const Bucket& bucket : from.buckets) {
    for (const AtomicWord& slot : bucket.slots) {
      const uint64_t word = slot.load(std::memory_order_acquire);
      if (Word::IsLive(word)) __builtin_prefetch(EntryOf(word));
    }
  }
  for (size_t b = 0; b < kBuckets; ++b) {
    for (size_t s = 0; s < kSlots; ++s) {
      const uint64_t word = from.buckets[b].slots[s].load(std::memory_order_acquire);
      if (Word::IsLive(word)) {
        const uint64_t hash = hash_of(*EntryOf(word));
        BasicSegment* const to = ((hash >> (63 - bit)) & 1) == 0 ? zero : one;
        to->buckets[b].slots[s].store(word, std::memory_order_relaxed);
        SetFrequency(&to->buckets[b].slots[s], Frequency(&from.buckets[b].slots[s]));
        if ((word & Word::kAway) != 0) AddAway(&to->buckets[b ^ 1], 1);
      } else if (Word::IsGhost(word)) {
        // Whose ghost it is cannot be told: it stays in both.
        zero->buckets[b].slots[s].store(word, std::memory_order_relaxed);
        one->buckets[b].slots[s].store(word, std::memory_order_relaxed);
      }
    }
  }
}

template <template <class> class Atomic, class Entry>
bool BasicSegment<Atomic, Entry>::FitTogether(const BasicSegment& zero,
                                              const BasicSegment& one) noexcept {
  for (size_t b = 0; b < kBuckets; b += 2) {
    size_t live = 0;
    for (const BasicSegment* const segment : {&zero, &one}) {
      live += CountLive(segment->buckets[b]) + CountLive(segment->buckets[b + 1]);
    }
    if (live >= 2 * kSlots) return false;
  }
  return true;
}

template <template <class> class Atomic, class Entry>
auto BasicSegment<Atomic, Entry>::FreeSlotIn(Bucket* bucket, bool is_empty) noexcept
    -> AtomicWord* {
  AtomicWord* ghost = nullptr;
  for (AtomicWord& slot : bucket->slots) {
    const uint64_t word = slot.load(std::memory_order_relaxed);
    if (word == 0) return &slot;
    if (Word::IsGhost(word)) ghost = &slot;
  }
  return is_empty ? nullptr : ghost;
}

template <template <class> class Atomic, class Entry>
void BasicSegment<Atomic, Entry>::CopyInto(const BasicSegment& from, BasicSegment* to) noexcept {
  // Ghosts get what the live ones leave.
  for (const bool is_live : {true, false}) {
    for (size_t b = 0; b < kBuckets; ++b) {
      for (const AtomicWord& slot : from.buckets[b].slots) {
        const uint64_t word = slot.load(std::memory_order_acquire);
        if (word == 0 || Word::IsLive(word) != is_live) continue;
        const size_t home = (word & Word::kAway) == 0 ? b : b ^ 1;
        AtomicWord* free = FreeSlotIn(&to->buckets[home], !is_live);
        const bool is_away = is_live && free == nullptr;
        if (is_away) {
          free = FreeSlotIn(&to->buckets[home ^ 1], false);
          // First the count: whoever sees the slot filled afterwards finds it.
          AddAway(&to->buckets[home], 1);
        }
        if (free == nullptr) continue;
        SetFrequency(free, Frequency(&slot));
        free->store((word & ~Word::kAway) | (is_away ? Word::kAway : 0), std::memory_order_release);
      }
    }
  }
}

}  // namespace basalt::cache
