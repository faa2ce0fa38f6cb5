#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/coding.h"
#include "cache/directory.h"

// The index of one shard: finds a key's entry, read without locks. It is a directory of segments
// (directory.h, segment.h) in whose slots entries lie:
//
//   hash        [directory .......... 28][7][shard 7][......... tag 16][bucket 6]
//
// The first bits lead to a segment, the last ones to the key's home in it. Of the home's slots, and
// where the home says that keys are away also of its buddy's, those with the key's tag are looked
// at: the first whose entry has the key is it.
//
// Who may do what. Readers, inside an epoch: Find, and raising a frequency. All else under the
// shard's lock. Words are published by release stores and loaded with acquire, as the epochs ask
// for. Replacing a live slot is one store, so a reader sees the old entry or the new one. No read
// waits for anything but its loads, so those of one read overlap with those of the next ones, which
// is most of their time.
//
// Cost of Find, in cache misses: the directory word (small, mostly cached), the bucket, the entry.

namespace basalt::cache {

using base::SameBytes;

template <template <class> class Atomic, class Entry>
class BasicIndex : public BasicDirectory<Atomic, Entry> {
  using Directory = BasicDirectory<Atomic, Entry>;

 public:
  using typename Directory::AtomicWord;
  using typename Directory::Bucket;
  using typename Directory::Segment;

  static constexpr size_t kBuckets = Segment::kBuckets;
  static constexpr size_t kSlots = Segment::kSlots;

  using Directory::Directory;
  using Directory::HashOf;
  using Directory::SegmentOf;

  /// A slot as it was found; all zeros: nothing was. Two words, so that it stays in registers.
  struct Found {
    AtomicWord* slot = nullptr;
    uint64_t word = 0;
    Entry* entry() const noexcept { return EntryOf(word); }
    explicit operator bool() const noexcept { return slot != nullptr; }
  };
  /// A slot that a new key may take.
  struct Room {
    AtomicWord* slot = nullptr;  ///< Null: both buckets are full of live slots.
    bool is_away = false;
    /// The number of the key's own ghost, which was there; 0: none was.
    uint64_t ghost_number = 0;
  };

  // Of readers, inside an epoch, or under the lock.

  const Bucket& Home(uint64_t hash) const noexcept {
    return SegmentOf(hash)->buckets[hash % kBuckets];
  }
  [[gnu::always_inline]] Found Find(uint64_t hash, std::string_view key) const noexcept {
    const Segment* const segment = SegmentOf(hash);
    const Bucket& home = segment->buckets[hash % kBuckets];
    if (const Found found = Probe(home, hash, key)) return found;
    if (home.away.load(std::memory_order_acquire) == 0) return {};
    return Probe(segment->buckets[(hash % kBuckets) ^ 1], hash, key);
  }
  /// What one look at a key's home tells, without a look at an entry. Arrays of them begin with
  /// whatever is there.
  struct Glance {
    uint64_t word;  ///< Of the first slot with the key's tag; 0: none has it.
    Atomic<uint8_t>* frequency;
    bool is_absent;  ///< There is no such key. Neither this nor a candidate: Find knows.
    /// May be the key's entry; null: there is none.
    Entry* candidate() const noexcept { return Word::IsLive(word) ? EntryOf(word) : nullptr; }
    /// Whether GlanceAway may tell more.
    bool may_be_away() const noexcept { return frequency == nullptr && !is_absent; }
  };
  [[gnu::always_inline]] static Glance GlanceAt(const Bucket& home, uint64_t hash) noexcept {
    const SlotSet slots = SlotsWithTag(home, hash);
    if (slots.empty()) {
      const bool is_absent = home.away.load(std::memory_order_acquire) == 0;
      return {.word = 0, .frequency = nullptr, .is_absent = is_absent};
    }
    return {.word = slots.FirstOf(home)->load(std::memory_order_acquire),
            .frequency = slots.FrequencyOfFirst(home),
            .is_absent = false};
  }
  /// The same of the home's neighbour, after a glance at the home that left it open.
  [[gnu::always_inline]] static Glance GlanceAway(const Bucket& home, uint64_t hash) noexcept {
    Glance glance = GlanceAt(*Segment::BuddyOf(&home), hash);
    // No slot has the key's tag, in either.
    glance.is_absent = glance.frequency == nullptr;
    return glance;
  }
  static uint8_t Frequency(const AtomicWord* slot) noexcept { return Segment::Frequency(slot); }
  static void SetFrequency(AtomicWord* slot, uint8_t frequency) noexcept {
    Segment::SetFrequency(slot, frequency);
  }
  static void RaiseFrequency(const Found& found) noexcept {
    Atomic<uint8_t> nowhere{0};
    Raise(&Segment::FrequencyOf(found.slot), &nowhere);
  }
  /// At its most, its line is not written. Nobody can foretell that: a store to `nowhere` instead
  /// of a branch.
  static void Raise(Atomic<uint8_t>* frequency, Atomic<uint8_t>* nowhere) noexcept {
    const uint8_t present = frequency->load(std::memory_order_relaxed);
    Atomic<uint8_t>* const raised =
        __builtin_expect_with_probability(present < Segment::kFrequencyMax, 1, 0.5) ? frequency
                                                                                    : nowhere;
    raised->store(static_cast<uint8_t>(present + 1), std::memory_order_relaxed);
  }

  // Under the lock.

  /// The live entry whose whole hash this is and that `is_it` accepts.
  template <class Predicate>
  Found FindHash(uint64_t hash, const Predicate& is_it) const noexcept;
  /// Where a new key may go: on its ghost, else an empty slot, else the oldest ghost's.
  Room FindRoom(uint64_t hash) noexcept;
  void Fill(const Room& room, uint64_t hash, Entry* entry, bool expires,
            uint8_t frequency) noexcept;
  /// Another entry of the same key; its frequency stays.
  void Replace(const Found& found, Entry* entry, bool expires) noexcept;
  /// Sets or clears the mark that the entry has a deadline.
  void MarkExpiring(const Found& found, bool expires) noexcept;
  /// `ghost_number`: not 0 leaves a ghost.
  void Remove(const Found& found, uint64_t ghost_number) noexcept;
  /// The two buckets of a hash, home first.
  std::pair<Bucket*, Bucket*> BucketsOf(uint64_t hash) noexcept;

  static Entry* EntryOf(uint64_t word) noexcept { return Segment::EntryOf(word); }

 private:
  static uint64_t TagBits(uint64_t hash) noexcept { return (hash / kBuckets) << Word::kTagShift; }

  /// Some of a bucket's slots.
  struct SlotSet {
    uint32_t bits = 0;  ///< Bit 2 * i + 2: slot i.
    bool empty() const noexcept { return bits == 0; }
    void RemoveFirst() noexcept { bits &= bits - 1; }
    // The number of its bit is twice that of its word, and of its count, in the bucket.
    AtomicWord* FirstOf(const Bucket& bucket) const noexcept {
      return reinterpret_cast<AtomicWord*>(AddressOf(bucket) + sizeof(AtomicWord) / 2 * FirstBit());
    }
    Atomic<uint8_t>* FrequencyOfFirst(const Bucket& bucket) const noexcept {
      return reinterpret_cast<Atomic<uint8_t>*>(AddressOf(bucket) + FirstBit() / 2);
    }

   private:
    static uintptr_t AddressOf(const Bucket& bucket) noexcept {
      return reinterpret_cast<uintptr_t>(&bucket);
    }
    uintptr_t FirstBit() const noexcept { return static_cast<uint32_t>(std::countr_zero(bits)); }
  };
  /// Those with this hash's tag, live or not.
  static SlotSet SlotsWithTag(const Bucket& bucket, uint64_t hash) noexcept;
  static Found Probe(const Bucket& bucket, uint64_t hash, std::string_view key) noexcept;
};

template <template <class> class Atomic, class Entry>
[[gnu::always_inline]] inline auto BasicIndex<Atomic, Entry>::SlotsWithTag(const Bucket& bucket,
                                                                           uint64_t hash) noexcept
    -> SlotSet {
  const uint64_t tag = TagBits(hash);
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  if constexpr (std::is_same_v<AtomicWord, std::atomic<uint64_t>>) {
    // Four loads of two words each, of which the processor reads each whole. What is kept of each
    // word is its last quarter, the tag, as a number with a sign; then eight are compared at once.
    // The counts are the first word.
    const __m128i wanted = _mm_set1_epi16(static_cast<int16_t>(tag >> Word::kTagShift));
    const auto* const words = reinterpret_cast<const __m128*>(&bucket);
    const auto tags = [&](size_t i) {
      constexpr int kUpperHalves = _MM_SHUFFLE(3, 1, 3, 1);
      return _mm_srai_epi32(_mm_castps_si128(_mm_shuffle_ps(words[i], words[i + 1], kUpperHalves)),
                            16);
    };
    const __m128i equal = _mm_cmpeq_epi16(_mm_packs_epi32(tags(0), tags(2)), wanted);
    constexpr uint32_t kTags = 0x5554;
    return {static_cast<uint32_t>(_mm_movemask_epi8(equal)) & kTags};
  }
#endif
  SlotSet slots;
  for (size_t i = 0; i < kSlots; ++i) {
    const uint64_t word = bucket.slots[i].load(std::memory_order_acquire);
    if (((word ^ tag) & Word::kTagMask) == 0) slots.bits |= uint32_t{1} << (2 * (i + 1));
  }
  return slots;
}

template <template <class> class Atomic, class Entry>
[[gnu::always_inline]] inline auto BasicIndex<Atomic, Entry>::Probe(const Bucket& bucket,
                                                                    uint64_t hash,
                                                                    std::string_view key) noexcept
    -> Found {
  for (SlotSet slots = SlotsWithTag(bucket, hash); !slots.empty(); slots.RemoveFirst()) {
    AtomicWord* const slot = slots.FirstOf(bucket);
    const uint64_t word = slot->load(std::memory_order_acquire);
    // A ghost, or empty by now. Another entry is told by its key.
    if (!Word::IsLive(word)) continue;
    Entry* const entry = EntryOf(word);
    if (SameBytes(entry->key(), key)) return {slot, word};
  }
  return {};
}

template <template <class> class Atomic, class Entry>
template <class Predicate>
auto BasicIndex<Atomic, Entry>::FindHash(uint64_t hash, const Predicate& is_it) const noexcept
    -> Found {
  Segment* const segment = SegmentOf(hash);
  for (const size_t i : {hash % kBuckets, (hash % kBuckets) ^ 1}) {
    for (AtomicWord& slot : segment->buckets[i].slots) {
      const uint64_t word = slot.load(std::memory_order_acquire);
      if (((word ^ TagBits(hash)) & Word::kTagMask) != 0 || !Word::IsLive(word)) continue;
      Entry* const entry = EntryOf(word);
      if (is_it(*entry) && HashOf(entry->key()) == hash) return {&slot, word};
    }
  }
  return {};
}

template <template <class> class Atomic, class Entry>
auto BasicIndex<Atomic, Entry>::BucketsOf(uint64_t hash) noexcept -> std::pair<Bucket*, Bucket*> {
  Segment* const segment = SegmentOf(hash);
  return {&segment->buckets[hash % kBuckets], &segment->buckets[(hash % kBuckets) ^ 1]};
}

template <template <class> class Atomic, class Entry>
auto BasicIndex<Atomic, Entry>::FindRoom(uint64_t hash) noexcept -> Room {
  Room empty;
  Room oldest;
  uint64_t oldest_number = UINT64_MAX;
  const auto [home, buddy] = BucketsOf(hash);
  for (Bucket* const bucket : {home, buddy}) {
    const bool is_away = bucket == buddy;
    for (AtomicWord& slot : bucket->slots) {
      const uint64_t word = slot.load(std::memory_order_acquire);
      if (Word::IsGhost(word)) {
        const uint64_t number = Word::GhostNumber(word);
        if (((word ^ TagBits(hash)) & Word::kTagMask) == 0) return {&slot, is_away, number};
        if (number >= oldest_number) continue;
        oldest_number = number;
        oldest = {&slot, is_away, 0};
      } else if (word == 0 && empty.slot == nullptr) {
        empty = {&slot, is_away, 0};
      }
    }
  }
  return empty.slot != nullptr ? empty : oldest;
}

template <template <class> class Atomic, class Entry>
void BasicIndex<Atomic, Entry>::Fill(const Room& room, uint64_t hash, Entry* entry, bool expires,
                                     uint8_t frequency) noexcept {
  if (room.is_away) {
    // First the count: whoever sees the slot filled afterwards finds it.
    Segment::AddAway(BucketsOf(hash).first, 1);
  }
  SetFrequency(room.slot, frequency);
  room.slot->store(TagBits(hash) | reinterpret_cast<uintptr_t>(entry) | Word::kLive |
                       (expires ? Word::kExpires : 0) | (room.is_away ? Word::kAway : 0),
                   std::memory_order_release);
}

template <template <class> class Atomic, class Entry>
void BasicIndex<Atomic, Entry>::Replace(const Found& found, Entry* entry, bool expires) noexcept {
  constexpr uint64_t kKept = Word::kTagMask | Word::kAway | Word::kLive;
  found.slot->store(
      (found.word & kKept) | reinterpret_cast<uintptr_t>(entry) | (expires ? Word::kExpires : 0),
      std::memory_order_release);
}

template <template <class> class Atomic, class Entry>
void BasicIndex<Atomic, Entry>::MarkExpiring(const Found& found, bool expires) noexcept {
  found.slot->store((found.word & ~Word::kExpires) | (expires ? Word::kExpires : 0),
                    std::memory_order_release);
}

template <template <class> class Atomic, class Entry>
void BasicIndex<Atomic, Entry>::Remove(const Found& found, uint64_t ghost_number) noexcept {
  const uint64_t ghost =
      (found.word & Word::kTagMask) | ((ghost_number << Word::kGhostShift) & Word::kPointerMask);
  found.slot->store(ghost_number == 0 ? 0 : ghost, std::memory_order_release);
  if ((found.word & Word::kAway) == 0) return;
  Segment::AddAway(Segment::BuddyOf(Segment::BucketOf(found.slot)), -1);
}

}  // namespace basalt::cache
