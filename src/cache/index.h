#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/arena.h"
#include "base/coding.h"
#include "base/epoch.h"
#include "base/short_hash.h"
#include "cache/memory_budget.h"

// The index of one shard: an extendible hash table of tagged pointers, read without locks.
//
//   directory   2^depth words [segment pointer | its local depth in the low 7 bits], depth from 1
//   segment     64 buckets, 4 KiB, the unit of growth
//   bucket      64 bytes, one cache line: 8 bytes of counts and 7 slots
//   counts      away | a frequency for each slot, 0 to 3
//   slot        tag 16 | pointer 48, of which the low 3 bits are flags
//
//   hash        [directory .......... 28][7][shard 7][......... tag 16][bucket 6]
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
// Growth: when a key's two buckets are full of live slots, its segment is split. Two fresh segments
// are filled from it and put into the directory, the old one is retired: whoever still reads it
// sees it as it was at that moment, which lies within their read. Keys are hashed again, so a split
// costs a cache miss for each of its entries, waited for together: some microseconds, for some 70
// entries. The directory doubles when the segment was as deep as it: a copy of some KiB.
//
// Shrinking: what lies in the second of two sibling segments is copied into free slots of the
// first, which then stands for both in the directory; the second one is retired with all that it
// held, so whoever still reads it finds that there. Nothing is hashed again: a bucket's keys stay
// in its pair. When nothing is live, a fresh segment with a fresh directory takes the place of all.
//
// Who may do what. Readers, inside an epoch: Find, and raising a frequency. All else under the
// shard's lock. Words are published by release stores and loaded with acquire, as the epochs ask
// for. Replacing a live slot is one store, so a reader sees the old entry or the new one.
//
// Frequencies are hints, apart from the words so that raising one is a plain store of a byte: of
// two that are raised or lowered at once one may be lost, and one that is raised late may go to the
// slot's next entry. No read waits for anything but its loads, so those of one read overlap with
// those of the next ones, which is most of their time.
//
// Cost of Find, in cache misses: the directory word (small, mostly cached), the bucket, the entry.

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

using base::SameBytes;

template <template <class> class Atomic, class Entry>
class BasicIndex {
 public:
  using AtomicWord = Atomic<uint64_t>;
  using EpochDomain = base::BasicEpochDomain<Atomic>;

  static constexpr size_t kBuckets = 64;
  static constexpr size_t kSlots = 7;

  struct alignas(64) Bucket {
    Atomic<uint8_t> away{0};
    std::array<Atomic<uint8_t>, kSlots> frequencies{};
    std::array<AtomicWord, kSlots> slots{};
  };
  static constexpr uint8_t kFrequencyMax = 3;
  struct alignas(128) Segment {
    std::array<Bucket, kBuckets> buckets;
  };

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
  /// A place in the order of hashes: the buckets of one segment after another. Stays right when
  /// segments split.
  struct Cursor {
    uint64_t hash = 0;  ///< Of the segment: its first bits, then zeros.
    uint32_t bucket = 0;
  };

  BasicIndex(EpochDomain* epochs, MemoryBudget* budget, uint64_t hash_seed) noexcept
      : hash_seed_(hash_seed), budget_(budget), retired_(epochs) {}
  ~BasicIndex();
  BasicIndex(const BasicIndex&) = delete;
  BasicIndex& operator=(const BasicIndex&) = delete;

  /// Makes the first segment. False: no memory.
  bool Start() noexcept;

  uint64_t HashOf(std::string_view key) const noexcept { return base::HashShort(key, hash_seed_); }
  /// The bits of a hash that an index does not look at, so that they can tell a key's shard.
  static constexpr int kShardBitsMax = 7;
  static constexpr uint64_t ShardBits(uint64_t hash) noexcept { return hash >> kShardShift; }

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
    Glance glance = GlanceAt(*BuddyOf(&home), hash);
    // No slot has the key's tag, in either.
    glance.is_absent = glance.frequency == nullptr;
    return glance;
  }
  /// The other of the pair of 128 bytes.
  static Bucket* BuddyOf(const Bucket* bucket) noexcept {
    return reinterpret_cast<Bucket*>(reinterpret_cast<uintptr_t>(bucket) ^ sizeof(Bucket));
  }
  static uint8_t Frequency(const AtomicWord* slot) noexcept {
    return FrequencyOf(slot).load(std::memory_order_relaxed);
  }
  static void SetFrequency(AtomicWord* slot, uint8_t frequency) noexcept {
    FrequencyOf(slot).store(frequency, std::memory_order_relaxed);
  }
  static void RaiseFrequency(const Found& found) noexcept {
    Atomic<uint8_t> nowhere{0};
    Raise(&FrequencyOf(found.slot), &nowhere);
  }
  /// At its most, its line is not written. Nobody can foretell that: a store to `nowhere` instead
  /// of a branch.
  static void Raise(Atomic<uint8_t>* frequency, Atomic<uint8_t>* nowhere) noexcept {
    const uint8_t present = frequency->load(std::memory_order_relaxed);
    Atomic<uint8_t>* const raised =
        __builtin_expect_with_probability(present < kFrequencyMax, 1, 0.5) ? frequency : nowhere;
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
  /// Whether the segment of this hash is due for a split when the shard holds `entries`: each is at
  /// a number of its own between `split_at` and twice that, as expected from its depth.
  bool IsCrowded(uint64_t hash, uint64_t entries, uint64_t split_at) const noexcept {
    const int depth =
        static_cast<int>(DirectoryWord(hash).load(std::memory_order_acquire) & kLocalDepthMask);
    const uint64_t expected = entries >> depth;
    if (expected < split_at) return false;
    // The bits of the segment's place, mixed.
    const uint64_t mixed = (Place(hash, depth) * 0x9E3779B97F4A7C15) >> 32;
    return expected >= split_at + (split_at * (mixed & 0xFFFF) >> 16);
  }
  /// Divides the segment of this hash. False: no memory, or too few live slots to be worth it
  /// (`live_min`).
  bool Split(uint64_t hash, size_t live_min) noexcept;
  /// Joins the segment of this hash with its sibling. False: that is divided further, or together
  /// they hold too much. Takes no memory.
  bool Join(uint64_t hash) noexcept;
  /// Begins anew with one segment; only when nothing is live. False: no memory, or there is one.
  bool Reset() noexcept;
  /// The two buckets of a hash, home first.
  std::pair<Bucket*, Bucket*> BucketsOf(uint64_t hash) noexcept;

  Bucket* At(const Cursor& cursor) const noexcept {
    return &SegmentOf(cursor.hash)->buckets[cursor.bucket];
  }
  /// So many first bits the hashes of its segment's keys share: more after a split, fewer after a
  /// join.
  int DepthAt(const Cursor& cursor) const noexcept {
    return static_cast<int>(DirectoryWord(cursor.hash).load(std::memory_order_acquire) &
                            kLocalDepthMask);
  }
  /// Goes to the next bucket; false: it began again at the first.
  bool Advance(Cursor* cursor) const noexcept;
  /// Goes to the first bucket of the next segment; false: it began again at the first.
  bool AdvanceSegment(Cursor* cursor) const noexcept;

  static Entry* EntryOf(uint64_t word) noexcept {
    return reinterpret_cast<Entry*>(word & Word::kPointerMask);
  }

  /// Frees retired segments that nobody sees any more, if there are any.
  void Collect() noexcept {
    if (retired_.bytes() != 0) FreeRetired();
  }
  /// Charged, retired parts included.
  uint64_t bytes() const noexcept { return bytes_; }
  uint64_t retired_bytes() const noexcept { return retired_.bytes(); }
  uint64_t segments() const noexcept { return segments_; }

 private:
  static constexpr int kDepthMax = 28;
  static constexpr int kShardShift = 22;
  static_assert(kShardShift == std::countr_zero(kBuckets) + 64 - Word::kTagShift);
  static_assert(kShardShift + kShardBitsMax <= 64 - kDepthMax);
  static constexpr uint64_t kLocalDepthMask = 127;

  /// 2^depth words. Known by one word, so that a lookup does not wait for the depth: the pointer,
  /// and in the low bits that its alignment leaves 64 - depth, by which a lookup shifts. A depth of
  /// 0 would shift by more than the machine can: the first segment has two words.
  struct Directory {
    explicit Directory(uint64_t packed) noexcept
        : words(reinterpret_cast<AtomicWord*>(packed & ~kShiftMask)),
          shift(static_cast<int>(packed & kShiftMask)) {}
    Directory(AtomicWord* its_words, int depth) noexcept : words(its_words), shift(64 - depth) {}
    int depth() const noexcept { return 64 - shift; }
    uint64_t packed() const noexcept {
      return reinterpret_cast<uint64_t>(words) | static_cast<uint64_t>(shift);
    }
    void* handle() const noexcept { return reinterpret_cast<void*>(packed()); }
    AtomicWord* words;
    int shift;
  };
  static constexpr uint64_t kShiftMask = 63;
  static constexpr std::align_val_t kDirectoryAlignment{64};

  static uint64_t DirectoryBytes(int depth) noexcept { return sizeof(AtomicWord) << depth; }
  Directory directory() const noexcept {
    return Directory(directory_.load(std::memory_order_acquire));
  }
  static uint64_t TagBits(uint64_t hash) noexcept { return (hash / kBuckets) << Word::kTagShift; }
  static Segment* SegmentIn(uint64_t word) noexcept {
    return reinterpret_cast<Segment*>(word & ~kLocalDepthMask);
  }
  /// The first bits of a hash.
  static size_t Place(uint64_t hash, int depth) noexcept { return (hash >> 1) >> (63 - depth); }
  AtomicWord& DirectoryWord(uint64_t hash) const noexcept {
    const Directory present = directory();
    return present.words[hash >> present.shift];
  }
  Segment* SegmentOf(uint64_t hash) const noexcept {
    return SegmentIn(DirectoryWord(hash).load(std::memory_order_acquire));
  }

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
  static size_t CountLive(const Bucket& bucket) noexcept;
  static size_t CountLive(const Segment& segment) noexcept;
  /// Whether each pair of buckets would have a slot left for what comes next.
  static bool FitTogether(const Segment& zero, const Segment& one) noexcept;
  /// An empty slot, else a ghost's, unless `is_empty`. Null: there is none.
  static AtomicWord* FreeSlotIn(Bucket* bucket, bool is_empty) noexcept;
  static void CopyInto(const Segment& from, Segment* to) noexcept;
  static void AddAway(Bucket* home, int count) noexcept {
    home->away.store(static_cast<uint8_t>(home->away.load(std::memory_order_relaxed) + count),
                     std::memory_order_release);
  }

  Segment* NewSegment() noexcept;
  /// Null: no memory.
  static AtomicWord* NewDirectory(int depth) noexcept;
  /// Makes the directory deep enough to divide a segment of `local_depth`. False: no memory.
  bool Deepen(int local_depth) noexcept;
  void Distribute(const Segment& from, int bit, Segment* zero, Segment* one) noexcept;
  static void FreeSegment(void* segment) {
    std::destroy_at(static_cast<Segment*>(segment));
    base::ChunkPool::Process()->Give(static_cast<char*>(segment), sizeof(Segment));
  }
  static void FreeDirectory(void* handle) {
    const Directory freed(reinterpret_cast<uint64_t>(handle));
    std::destroy_n(freed.words, size_t{1} << freed.depth());
    ::operator delete(freed.words, kDirectoryAlignment);
  }
  /// With all segments.
  static void FreeWhole(void* handle) {
    const Directory freed(reinterpret_cast<uint64_t>(handle));
    for (size_t i = 0; i < size_t{1} << freed.depth();) {
      const uint64_t word = freed.words[i].load(std::memory_order_acquire);
      i += size_t{1} << (freed.depth() - static_cast<int>(word & kLocalDepthMask));
      FreeSegment(SegmentIn(word));
    }
    FreeDirectory(handle);
  }
  void FreeRetired() noexcept { Refund(retired_.Collect()); }
  /// What other shards' scans have shown to be free; a scan of its own only when that is too
  /// little.
  void FreeRetiredNowAndThen() noexcept {
    constexpr size_t kRetiredMax = 2 * sizeof(Segment);
    Refund(retired_.CollectKnown());
    if (retired_.bytes() > kRetiredMax) FreeRetired();
  }
  void Refund(uint64_t bytes) noexcept {
    bytes_ -= bytes;
    budget_->Refund(bytes);
  }

  // What readers need stands in one cache line, apart from what writers change.
  alignas(64) AtomicWord directory_{0};
  const uint64_t hash_seed_;
  MemoryBudget* const budget_;
  alignas(64) base::BasicRetireList<Atomic> retired_;
  uint64_t bytes_ = 0;
  uint64_t segments_ = 0;
};

template <template <class> class Atomic, class Entry>
BasicIndex<Atomic, Entry>::~BasicIndex() {
  if (directory_.load(std::memory_order_acquire) == 0) return;
  FreeWhole(directory().handle());
  budget_->Refund(bytes_);
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::Start() noexcept {
  constexpr int kDepth = 1;
  AtomicWord* const words = NewDirectory(kDepth);
  Segment* const segment = words == nullptr ? nullptr : NewSegment();
  if (segment == nullptr) {
    if (words != nullptr) FreeDirectory(Directory(words, kDepth).handle());
    return false;
  }
  for (size_t i = 0; i < size_t{1} << kDepth; ++i) {
    words[i].store(reinterpret_cast<uint64_t>(segment), std::memory_order_seq_cst);
  }
  directory_.store(Directory(words, kDepth).packed(), std::memory_order_seq_cst);
  constexpr uint64_t kBytes = sizeof(Segment) + (sizeof(AtomicWord) << kDepth);
  bytes_ += kBytes;
  budget_->Charge(kBytes);
  segments_ = 1;
  return true;
}

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
    AddAway(BucketsOf(hash).first, 1);
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
  AddAway(BuddyOf(BucketOf(found.slot)), -1);
}

template <template <class> class Atomic, class Entry>
size_t BasicIndex<Atomic, Entry>::CountLive(const Bucket& bucket) noexcept {
  size_t live = 0;
  for (const AtomicWord& slot : bucket.slots) {
    live += Word::IsLive(slot.load(std::memory_order_acquire)) ? 1 : 0;
  }
  return live;
}

template <template <class> class Atomic, class Entry>
size_t BasicIndex<Atomic, Entry>::CountLive(const Segment& segment) noexcept {
  size_t live = 0;
  for (const Bucket& bucket : segment.buckets) live += CountLive(bucket);
  return live;
}

template <template <class> class Atomic, class Entry>
auto BasicIndex<Atomic, Entry>::NewSegment() noexcept -> Segment* {
  static_assert(sizeof(Segment) == base::ChunkPool::kBlockBytesMin);
  char* const memory = base::ChunkPool::Process()->Take(sizeof(Segment));
  return memory == nullptr ? nullptr : new (memory) Segment;
}

template <template <class> class Atomic, class Entry>
auto BasicIndex<Atomic, Entry>::NewDirectory(int depth) noexcept -> AtomicWord* {
  void* const memory = ::operator new(DirectoryBytes(depth), kDirectoryAlignment, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const words = static_cast<AtomicWord*>(memory);
  for (size_t i = 0; i < size_t{1} << depth; ++i) new (words + i) AtomicWord(0);
  return words;
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::Deepen(int local_depth) noexcept {
  const Directory present = directory();
  if (present.depth() > local_depth) return true;
  if (present.depth() == kDepthMax) return false;
  const uint64_t bytes = DirectoryBytes(present.depth() + 1);
  if (!budget_->TryCharge(bytes)) return false;
  AtomicWord* const words = NewDirectory(present.depth() + 1);
  if (words == nullptr) {
    budget_->Refund(bytes);
    return false;
  }
  for (size_t i = 0; i < size_t{1} << present.depth(); ++i) {
    const uint64_t word = present.words[i].load(std::memory_order_acquire);
    words[2 * i].store(word, std::memory_order_seq_cst);
    words[2 * i + 1].store(word, std::memory_order_seq_cst);
  }
  directory_.store(Directory(words, present.depth() + 1).packed(), std::memory_order_seq_cst);
  bytes_ += bytes;
  retired_.Retire(present.handle(), DirectoryBytes(present.depth()), FreeDirectory);
  return true;
}

template <template <class> class Atomic, class Entry>
void BasicIndex<Atomic, Entry>::Distribute(const Segment& from, int bit, Segment* zero,
                                           Segment* one) noexcept {
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
        const uint64_t hash = HashOf(EntryOf(word)->key());
        Segment* const to = ((hash >> (63 - bit)) & 1) == 0 ? zero : one;
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
bool BasicIndex<Atomic, Entry>::Split(uint64_t hash, size_t live_min) noexcept {
  const uint64_t word = DirectoryWord(hash).load(std::memory_order_acquire);
  Segment* const old = SegmentIn(word);
  const int local_depth = static_cast<int>(word & kLocalDepthMask);
  if (CountLive(*old) < live_min || local_depth == kDepthMax) return false;
  if (!budget_->TryCharge(2 * sizeof(Segment))) return false;
  Segment* const zero = NewSegment();
  Segment* const one = zero == nullptr ? nullptr : NewSegment();
  if (one == nullptr || !Deepen(local_depth)) {
    if (zero != nullptr) FreeSegment(zero);
    if (one != nullptr) FreeSegment(one);
    budget_->Refund(2 * sizeof(Segment));
    return false;
  }
  bytes_ += 2 * sizeof(Segment);
  Distribute(*old, local_depth, zero, one);
  const Directory present = directory();
  const int below = present.depth() - local_depth;  // 1 at least
  const size_t first = Place(hash, local_depth) << below;
  const size_t half = size_t{1} << (below - 1);
  for (size_t i = 0; i < 2 * half; ++i) {
    const auto segment = reinterpret_cast<uint64_t>(i < half ? zero : one);
    present.words[first + i].store(segment | static_cast<uint64_t>(local_depth + 1),
                                   std::memory_order_seq_cst);
  }
  ++segments_;
  retired_.Retire(old, sizeof(Segment), FreeSegment);
  FreeRetiredNowAndThen();
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::FitTogether(const Segment& zero, const Segment& one) noexcept {
  for (size_t b = 0; b < kBuckets; b += 2) {
    size_t live = 0;
    for (const Segment* const segment : {&zero, &one}) {
      live += CountLive(segment->buckets[b]) + CountLive(segment->buckets[b + 1]);
    }
    if (live >= 2 * kSlots) return false;
  }
  return true;
}

template <template <class> class Atomic, class Entry>
auto BasicIndex<Atomic, Entry>::FreeSlotIn(Bucket* bucket, bool is_empty) noexcept -> AtomicWord* {
  AtomicWord* ghost = nullptr;
  for (AtomicWord& slot : bucket->slots) {
    const uint64_t word = slot.load(std::memory_order_relaxed);
    if (word == 0) return &slot;
    if (Word::IsGhost(word)) ghost = &slot;
  }
  return is_empty ? nullptr : ghost;
}

template <template <class> class Atomic, class Entry>
void BasicIndex<Atomic, Entry>::CopyInto(const Segment& from, Segment* to) noexcept {
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
          // As Fill does it: first the count.
          AddAway(&to->buckets[home], 1);
        }
        if (free == nullptr) continue;
        SetFrequency(free, Frequency(&slot));
        free->store((word & ~Word::kAway) | (is_away ? Word::kAway : 0), std::memory_order_release);
      }
    }
  }
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::Join(uint64_t hash) noexcept {
  const auto local_depth =
      static_cast<int>(DirectoryWord(hash).load(std::memory_order_acquire) & kLocalDepthMask);
  if (local_depth == 0) return false;
  const Directory present = directory();
  const int below = present.depth() - local_depth;
  const size_t half = size_t{1} << below;
  const size_t first = (Place(hash, local_depth) & ~size_t{1}) << below;
  const uint64_t zero_word = present.words[first].load(std::memory_order_acquire);
  const uint64_t one_word = present.words[first + half].load(std::memory_order_acquire);
  if ((zero_word & kLocalDepthMask) != (one_word & kLocalDepthMask)) return false;
  Segment* const zero = SegmentIn(zero_word);
  Segment* const one = SegmentIn(one_word);
  if (!FitTogether(*zero, *one)) return false;
  CopyInto(*one, zero);
  for (size_t i = 0; i < 2 * half; ++i) {
    present.words[first + i].store(
        reinterpret_cast<uint64_t>(zero) | static_cast<uint64_t>(local_depth - 1),
        std::memory_order_seq_cst);
  }
  --segments_;
  retired_.Retire(one, sizeof(Segment), FreeSegment);
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::Reset() noexcept {
  const Directory old = directory();
  if (segments_ == 1 && old.depth() == 1) return false;
  const uint64_t old_bytes = segments_ * sizeof(Segment) + DirectoryBytes(old.depth());
  if (!Start()) return false;
  retired_.Retire(old.handle(), old_bytes, FreeWhole);
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::Advance(Cursor* cursor) const noexcept {
  if (++cursor->bucket < kBuckets) return true;
  return AdvanceSegment(cursor);
}

template <template <class> class Atomic, class Entry>
bool BasicIndex<Atomic, Entry>::AdvanceSegment(Cursor* cursor) const noexcept {
  const uint64_t depth =
      DirectoryWord(cursor->hash).load(std::memory_order_acquire) & kLocalDepthMask;
  cursor->bucket = 0;
  if (depth == 0) {
    cursor->hash = 0;
    return false;
  }
  const uint64_t step = uint64_t{1} << (64 - depth);
  cursor->hash = (cursor->hash & ~(step - 1)) + step;
  return cursor->hash != 0;
}

}  // namespace basalt::cache
