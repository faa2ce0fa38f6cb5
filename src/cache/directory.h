#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/short_hash.h"
#include "cache/memory_budget.h"
#include "cache/segment.h"

// The directory of a shard's index: an extendible hash table of segments, which grows and shrinks
// while it is read without locks. Keys are found in it by BasicIndex (index.h).
//
//   directory   2^depth words [segment pointer | its local depth in the low 7 bits], depth from 1
//   segment     64 buckets, 4 KiB (segment.h)
//
//   hash        [directory .......... 28][7][shard 7][......... tag 16][bucket 6]
//
// A segment of local depth d holds the keys whose hashes have the same first d bits, and stands in
// 2^(depth - d) words of the directory, one after the other. Its sibling has the same of these bits
// but for the last.
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
// Who may do what. Readers, inside an epoch: SegmentOf. All else under the shard's lock.
//
// Cost of SegmentOf: the directory's address, and the one of its words (small, mostly cached).

namespace basalt::cache {

template <template <class> class Atomic, class Entry>
class BasicDirectory {
 public:
  using AtomicWord = Atomic<uint64_t>;
  using EpochDomain = base::BasicEpochDomain<Atomic>;
  using Segment = BasicSegment<Atomic, Entry>;
  using Bucket = typename Segment::Bucket;

  static constexpr size_t kBuckets = Segment::kBuckets;

  /// A place in the order of hashes: the buckets of one segment after another. Stays right when
  /// segments split.
  struct Cursor {
    uint64_t hash = 0;  ///< Of the segment: its first bits, then zeros.
    uint32_t bucket = 0;
  };

  BasicDirectory(EpochDomain* epochs, MemoryBudget* budget, uint64_t hash_seed) noexcept
      : hash_seed_(hash_seed), budget_(budget), retired_(epochs) {}
  ~BasicDirectory();
  BasicDirectory(const BasicDirectory&) = delete;
  BasicDirectory& operator=(const BasicDirectory&) = delete;

  /// Makes the first segment. False: no memory.
  bool Start() noexcept;

  uint64_t HashOf(std::string_view key) const noexcept { return base::HashShort(key, hash_seed_); }
  /// The bits of a hash that an index does not look at, so that they can tell a key's shard.
  static constexpr int kShardBitsMax = 7;
  static constexpr uint64_t ShardBits(uint64_t hash) noexcept { return hash >> kShardShift; }

  /// Of readers, inside an epoch, or under the lock.
  Segment* SegmentOf(uint64_t hash) const noexcept {
    return SegmentIn(WordAt(hash).load(std::memory_order_acquire));
  }

  // Under the lock.

  /// Whether the segment of this hash is due for a split when the shard holds `entries`: each is at
  /// a number of its own between `split_at` and twice that, as expected from its depth.
  bool IsCrowded(uint64_t hash, uint64_t entries, uint64_t split_at) const noexcept {
    const int depth =
        static_cast<int>(WordAt(hash).load(std::memory_order_acquire) & kLocalDepthMask);
    const uint64_t expected = entries >> depth;
    if (expected < split_at) return false;
    // The bits of the segment's place, mixed.
    const uint64_t mixed = (Place(hash, depth) * 0x9E3779B97F4A7C15) >> 32;
    return expected >= split_at + (split_at * (mixed & 0xFFFF) >> 16);
  }
  /// Divides the segment of this hash. False: no memory, or too few live slots to be worth it
  /// (`live_min`).
  bool Split(uint64_t hash, size_t live_min) noexcept;
  /// Joins the segment of this hash with its sibling. False: that is divided further, together they
  /// hold too much, or there is not even memory for a note. Takes nothing of the budget.
  bool Join(uint64_t hash) noexcept;
  /// Begins anew with one segment; only when nothing is live. False: no memory, or there is one.
  bool Reset() noexcept;

  Bucket* At(const Cursor& cursor) const noexcept {
    return &SegmentOf(cursor.hash)->buckets[cursor.bucket];
  }
  /// So many first bits the hashes of its segment's keys share: more after a split, fewer after a
  /// join.
  int DepthAt(const Cursor& cursor) const noexcept {
    return static_cast<int>(WordAt(cursor.hash).load(std::memory_order_acquire) & kLocalDepthMask);
  }
  /// Goes to the next bucket; false: it began again at the first.
  bool Advance(Cursor* cursor) const noexcept;
  /// Goes to the first bucket of the next segment; false: it began again at the first.
  bool AdvanceSegment(Cursor* cursor) const noexcept;

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

  using RetireList = base::BasicRetireList<Atomic>;
  /// Had before anything is unlinked: else that would stay for ever where there is no memory.
  using Note = typename RetireList::Note;

  /// 2^depth words. Known by one word, so that a lookup does not wait for the depth: the pointer,
  /// and in the low bits that its alignment leaves 64 - depth, by which a lookup shifts. A depth of
  /// 0 would shift by more than the machine can: the first segment has two words.
  struct Words {
    explicit Words(uint64_t packed) noexcept
        : first(reinterpret_cast<AtomicWord*>(packed & ~kShiftMask)),
          shift(static_cast<int>(packed & kShiftMask)) {}
    Words(AtomicWord* first_word, int depth) noexcept : first(first_word), shift(64 - depth) {}
    int depth() const noexcept { return 64 - shift; }
    uint64_t packed() const noexcept {
      return reinterpret_cast<uint64_t>(first) | static_cast<uint64_t>(shift);
    }
    void* handle() const noexcept { return reinterpret_cast<void*>(packed()); }
    AtomicWord* first;
    int shift;
  };
  static constexpr uint64_t kShiftMask = 63;
  static constexpr std::align_val_t kWordsAlignment{64};

  static uint64_t BytesOfWords(int depth) noexcept { return sizeof(AtomicWord) << depth; }
  Words words() const noexcept { return Words(words_.load(std::memory_order_acquire)); }
  static Segment* SegmentIn(uint64_t word) noexcept {
    return reinterpret_cast<Segment*>(word & ~kLocalDepthMask);
  }
  /// The first bits of a hash.
  static size_t Place(uint64_t hash, int depth) noexcept { return (hash >> 1) >> (63 - depth); }
  AtomicWord& WordAt(uint64_t hash) const noexcept {
    const Words present = words();
    return present.first[hash >> present.shift];
  }

  Segment* NewSegment() noexcept;
  /// Null: no memory.
  static AtomicWord* NewWords(int depth) noexcept;
  /// Makes the directory deep enough to divide a segment of `local_depth`. False: no memory.
  bool Deepen(int local_depth) noexcept;
  static void FreeSegment(void* segment) {
    std::destroy_at(static_cast<Segment*>(segment));
    base::ChunkPool::Process()->Give(static_cast<char*>(segment), sizeof(Segment));
  }
  static void FreeWords(void* handle) {
    const Words freed(reinterpret_cast<uint64_t>(handle));
    std::destroy_n(freed.first, size_t{1} << freed.depth());
    ::operator delete(freed.first, kWordsAlignment);
  }
  /// With all segments.
  static void FreeWhole(void* handle) {
    const Words freed(reinterpret_cast<uint64_t>(handle));
    for (size_t i = 0; i < size_t{1} << freed.depth();) {
      const uint64_t word = freed.first[i].load(std::memory_order_acquire);
      i += size_t{1} << (freed.depth() - static_cast<int>(word & kLocalDepthMask));
      FreeSegment(SegmentIn(word));
    }
    FreeWords(handle);
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
  alignas(64) AtomicWord words_{0};
  const uint64_t hash_seed_;
  MemoryBudget* const budget_;
  alignas(64) RetireList retired_;
  uint64_t bytes_ = 0;
  uint64_t segments_ = 0;
};

template <template <class> class Atomic, class Entry>
BasicDirectory<Atomic, Entry>::~BasicDirectory() {
  if (words_.load(std::memory_order_acquire) == 0) return;
  FreeWhole(words().handle());
  budget_->Refund(bytes_);
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::Start() noexcept {
  constexpr int kDepth = 1;
  AtomicWord* const words = NewWords(kDepth);
  Segment* const segment = words == nullptr ? nullptr : NewSegment();
  if (segment == nullptr) {
    if (words != nullptr) FreeWords(Words(words, kDepth).handle());
    return false;
  }
  for (size_t i = 0; i < size_t{1} << kDepth; ++i) {
    words[i].store(reinterpret_cast<uint64_t>(segment), std::memory_order_seq_cst);
  }
  words_.store(Words(words, kDepth).packed(), std::memory_order_seq_cst);
  constexpr uint64_t kBytes = sizeof(Segment) + (sizeof(AtomicWord) << kDepth);
  bytes_ += kBytes;
  budget_->Charge(kBytes);
  segments_ = 1;
  return true;
}

template <template <class> class Atomic, class Entry>
auto BasicDirectory<Atomic, Entry>::NewSegment() noexcept -> Segment* {
  static_assert(sizeof(Segment) == base::ChunkPool::kBlockBytesMin);
  char* const memory = base::ChunkPool::Process()->Take(sizeof(Segment));
  return memory == nullptr ? nullptr : new (memory) Segment;
}

template <template <class> class Atomic, class Entry>
auto BasicDirectory<Atomic, Entry>::NewWords(int depth) noexcept -> AtomicWord* {
  void* const memory = ::operator new(BytesOfWords(depth), kWordsAlignment, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const words = static_cast<AtomicWord*>(memory);
  for (size_t i = 0; i < size_t{1} << depth; ++i) new (words + i) AtomicWord(0);
  return words;
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::Deepen(int local_depth) noexcept {
  const Words present = words();
  if (present.depth() > local_depth) return true;
  if (present.depth() == kDepthMax) return false;
  const uint64_t bytes = BytesOfWords(present.depth() + 1);
  if (!budget_->TryCharge(bytes)) return false;
  Note note = RetireList::TryNewNote();
  AtomicWord* const words = note == nullptr ? nullptr : NewWords(present.depth() + 1);
  if (words == nullptr) {
    budget_->Refund(bytes);
    return false;
  }
  for (size_t i = 0; i < size_t{1} << present.depth(); ++i) {
    const uint64_t word = present.first[i].load(std::memory_order_acquire);
    words[2 * i].store(word, std::memory_order_seq_cst);
    words[2 * i + 1].store(word, std::memory_order_seq_cst);
  }
  words_.store(Words(words, present.depth() + 1).packed(), std::memory_order_seq_cst);
  bytes_ += bytes;
  retired_.Retire(std::move(note), present.handle(), BytesOfWords(present.depth()), FreeWords);
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::Split(uint64_t hash, size_t live_min) noexcept {
  const uint64_t word = WordAt(hash).load(std::memory_order_acquire);
  Segment* const old = SegmentIn(word);
  const int local_depth = static_cast<int>(word & kLocalDepthMask);
  if (Segment::CountLive(*old) < live_min || local_depth == kDepthMax) return false;
  if (!budget_->TryCharge(2 * sizeof(Segment))) return false;
  Note note = RetireList::TryNewNote();
  Segment* const zero = note == nullptr ? nullptr : NewSegment();
  Segment* const one = zero == nullptr ? nullptr : NewSegment();
  if (one == nullptr || !Deepen(local_depth)) {
    if (zero != nullptr) FreeSegment(zero);
    if (one != nullptr) FreeSegment(one);
    budget_->Refund(2 * sizeof(Segment));
    return false;
  }
  bytes_ += 2 * sizeof(Segment);
  const auto hash_of = [this](const Entry& entry) { return HashOf(entry.key()); };
  Segment::Divide(*old, local_depth, hash_of, zero, one);
  const Words present = words();
  const int below = present.depth() - local_depth;  // 1 at least
  const size_t first = Place(hash, local_depth) << below;
  const size_t half = size_t{1} << (below - 1);
  for (size_t i = 0; i < 2 * half; ++i) {
    const auto segment = reinterpret_cast<uint64_t>(i < half ? zero : one);
    present.first[first + i].store(segment | static_cast<uint64_t>(local_depth + 1),
                                   std::memory_order_seq_cst);
  }
  ++segments_;
  retired_.Retire(std::move(note), old, sizeof(Segment), FreeSegment);
  FreeRetiredNowAndThen();
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::Join(uint64_t hash) noexcept {
  const auto local_depth =
      static_cast<int>(WordAt(hash).load(std::memory_order_acquire) & kLocalDepthMask);
  if (local_depth == 0) return false;
  const Words present = words();
  const int below = present.depth() - local_depth;
  const size_t half = size_t{1} << below;
  const size_t first = (Place(hash, local_depth) & ~size_t{1}) << below;
  const uint64_t zero_word = present.first[first].load(std::memory_order_acquire);
  const uint64_t one_word = present.first[first + half].load(std::memory_order_acquire);
  if ((zero_word & kLocalDepthMask) != (one_word & kLocalDepthMask)) return false;
  Segment* const zero = SegmentIn(zero_word);
  Segment* const one = SegmentIn(one_word);
  if (!Segment::FitTogether(*zero, *one)) return false;
  Note note = RetireList::TryNewNote();
  if (note == nullptr) return false;
  Segment::CopyInto(*one, zero);
  for (size_t i = 0; i < 2 * half; ++i) {
    present.first[first + i].store(
        reinterpret_cast<uint64_t>(zero) | static_cast<uint64_t>(local_depth - 1),
        std::memory_order_seq_cst);
  }
  --segments_;
  retired_.Retire(std::move(note), one, sizeof(Segment), FreeSegment);
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::Reset() noexcept {
  const Words old = words();
  if (segments_ == 1 && old.depth() == 1) return false;
  const uint64_t old_bytes = segments_ * sizeof(Segment) + BytesOfWords(old.depth());
  Note note = RetireList::TryNewNote();
  if (note == nullptr || !Start()) return false;
  retired_.Retire(std::move(note), old.handle(), old_bytes, FreeWhole);
  return true;
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::Advance(Cursor* cursor) const noexcept {
  if (++cursor->bucket < kBuckets) return true;
  return AdvanceSegment(cursor);
}

template <template <class> class Atomic, class Entry>
bool BasicDirectory<Atomic, Entry>::AdvanceSegment(Cursor* cursor) const noexcept {
  const uint64_t depth = WordAt(cursor->hash).load(std::memory_order_acquire) & kLocalDepthMask;
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
