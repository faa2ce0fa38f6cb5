#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/prefetch.h"
#include "base/spin_lock.h"
#include "memtable/insert_gate.h"

// Where the newest version of each key lies.
//
// Layout
//
//   words    a power of two of 64-byte buckets, each 8 words
//   word     tag 32 | position 32; position 0: empty. The tag is the low half of the key's hash, or
//            of a second hash if many keys have that tag (shard.h).
//
//   A word's home is bucket (tag & mask). A bucket fills from its first word on; when it is full,
//   the next bucket takes the word, and so on around. Words are never removed, and a word's tag
//   never changes, so a search ends at the first empty word. It is there that a new word goes: of
//   two threads that want it one fails, and finds the other's word when it searches again.
//
// Since the tag alone says where a word belongs, the words move into twice as many buckets without
// a look at a record. At most 7 of 10 words are taken.
//
// Room. Who will store words has reserved room for them, so storing cannot fail. Room and doublings
// have a lock.
//
// Who may do what. Any number of threads store words at once, inside the gate (insert_gate.h) and
// an epoch; a doubling closes the gate while it moves the words. Readers know nothing of either:
// they load words inside an epoch, because a doubling retires the old words to it. A reader may
// search the old words while new ones are stored in the new array: it began before those were
// stored.
//
// Cost. A search is one cache miss (1.05 buckets on average at 7 of 10), whether or not the key is
// there; the record that a word leads to is the second. To store is a compare-exchange. Of the
// lines that writers share, each put writes its bucket's only.

namespace basalt::memtable {

class HashIndex {
 public:
  using Position = base::Arena::Position;
  using Word = std::atomic<uint64_t>;

  /// `places`: of all threads that will insert. They and all others but the pool outlive it.
  HashIndex(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
            base::RetireList* retired, std::span<InsertGate::Place* const> places) noexcept;
  ~HashIndex();
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;

  /// Makes room for so many more words. False: the budget (if `within_limit`) or the system's
  /// memory is used up. Any thread, not inside the gate.
  bool Reserve(size_t words, bool within_limit) noexcept;
  /// Makes room for some, 8 or more as there are many; how many, or 0: as for Reserve.
  uint8_t ReserveSome(bool within_limit) noexcept;
  /// Room that was reserved and will not be used. Any thread.
  void GiveBack(size_t words) noexcept;

  /// What follows needs to be inside of it, and inside an epoch.
  const InsertGate& gate() const noexcept { return gate_; }

  /// A word, and what it was.
  struct Seen {
    Word* word;
    uint64_t was;  ///< 0: empty.
  };
  /// The word with this tag whose position is `same(position)`, or the empty word where it belongs.
  template <class Same>
  [[gnu::always_inline]] Seen FindOrPlace(uint32_t tag, const Same& same) noexcept {
    const uint64_t table = table_.load(std::memory_order_acquire);
    Word* const words = Words(table);
    const size_t mask = WordMask(table);
    for (size_t home = size_t{tag} * kBucketWords & mask;; home = (home + kBucketWords) & mask) {
      const Sight sight = LookAt(words + home, tag);
      for (uint32_t found = sight.same; found != 0; found &= found - 1) {
        Word* const word = words + home + std::countr_zero(found);
        const uint64_t was = word->load(std::memory_order_acquire);
        if (same(PositionOf(was))) return {word, was};
      }
      if (sight.empty != 0) return {words + home + std::countr_zero(sight.empty), 0};
    }
  }

  /// Makes the word lead to `position`, whose record is finished; an empty one takes one of room.
  /// False: it has changed, and who wants it searches again.
  static bool Publish(Seen seen, uint32_t tag, Position position) noexcept {
    return seen.word->compare_exchange_strong(seen.was, uint64_t{tag} << 32 | position,
                                              std::memory_order_seq_cst);
  }

  /// The position whose word has this tag and for which `same(position)`; 0: none. Any thread,
  /// inside an epoch.
  template <class Same>
  Position Find(uint32_t tag, const Same& same) const noexcept {
    const uint64_t table = table_.load(std::memory_order_seq_cst);
    if (table == 0) return 0;
    const Word* const words = Words(table);
    const size_t mask = WordMask(table);
    for (size_t home = size_t{tag} * kBucketWords & mask;; home = (home + kBucketWords) & mask) {
      const Sight sight = LookAt(words + home, tag);
      for (uint32_t found = sight.same; found != 0; found &= found - 1) {
        const Word& word = words[home + static_cast<size_t>(std::countr_zero(found))];
        const Position position = PositionOf(word.load(std::memory_order_seq_cst));
        if (same(position)) return position;
      }
      if (sight.empty != 0) return 0;
    }
  }

  /// Starts to load the line where a search for `tag` begins, to the second cache, which can have
  /// many on their way. Any thread, epoch or not.
  void Prefetch(uint32_t tag) const noexcept { __builtin_prefetch(HomeLine(tag), 0, 2); }
  /// The same to the first cache, for who will soon store there.
  void PrefetchToWrite(uint32_t tag) const noexcept { base::PrefetchToWrite(HomeLine(tag)); }

  static Position PositionOf(uint64_t word) noexcept { return static_cast<Position>(word); }

  /// Buckets that a search for each stored word looks at, summed, and the number of words. Only
  /// while nothing is written.
  struct ProbeCounts {
    uint64_t buckets = 0;
    uint64_t words = 0;
  };
  ProbeCounts CountProbes() const noexcept;

 private:
  static constexpr size_t kBucketBytes = 64;
  static constexpr size_t kBucketWords = kBucketBytes / sizeof(uint64_t);
  static constexpr size_t kWordsMin = base::ChunkPool::kBlockBytesMin / sizeof(uint64_t);
  static constexpr uint64_t kBucketBitsMask = kBucketBytes - 1;

  // The address of the words and the logarithm of the number of buckets, in one word, so that
  // readers get both by one load and no other.
  static Word* Words(uint64_t table) noexcept {
    return reinterpret_cast<Word*>(table & ~kBucketBitsMask);
  }
  static size_t WordMask(uint64_t table) noexcept {
    return (kBucketWords << (table & kBucketBitsMask)) - 1;
  }
  const void* HomeLine(uint32_t tag) const noexcept {
    const uint64_t table = table_.load(std::memory_order_relaxed);
    return reinterpret_cast<const void*>((table & ~kBucketBitsMask) +
                                         (size_t{tag} * kBucketBytes & (WordMask(table) * 8)));
  }
  static uint32_t TagOf(uint64_t word) noexcept { return static_cast<uint32_t>(word >> 32); }

  // Which words of a bucket have the tag, and which are empty: a bit each.
  struct Sight {
    uint32_t same;
    uint32_t empty;
  };
  static Sight LookAt(const Word* bucket, uint32_t tag) noexcept;

  static size_t WordsUsedMax(size_t words) noexcept { return words / 10 * 7; }
  bool ReserveLocked(size_t words, bool within_limit) noexcept;
  bool Grow(size_t words_needed, bool within_limit) noexcept;
  static void MoveWords(std::span<const Word> from, std::span<Word> to) noexcept;

  // Loaded by all, written when words move.
  std::atomic<uint64_t> table_{0};  // 0: there are no words
  InsertGate gate_;
  [[maybe_unused]] std::byte apart_[kBucketBytes];  // keeps the next ones from that line

  base::SpinLock lock_;
  size_t words_reserved_ = 0;  // those that are used, too; under lock_
  const std::shared_ptr<base::ChunkPool> pool_;
  base::ByteBudget* const budget_;
  base::RetireList* const retired_;
  const std::span<InsertGate::Place* const> places_;
};

// All words at once: how many there are cannot be guessed, so nothing branches on it.
[[gnu::always_inline]] inline HashIndex::Sight HashIndex::LookAt(const Word* bucket,
                                                                 uint32_t tag) noexcept {
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
  // Four loads of two words each, of which the processor reads each whole.
  const auto* const pairs = reinterpret_cast<const __m128*>(bucket);
  const auto equal = [pairs](auto half, __m128i wanted) {
    const auto halves = [&](size_t i) {
      return _mm_castps_si128(_mm_shuffle_ps(pairs[i], pairs[i + 1], decltype(half)::value));
    };
    return _mm_packs_epi32(_mm_cmpeq_epi32(halves(0), wanted), _mm_cmpeq_epi32(halves(2), wanted));
  };
  using Positions = std::integral_constant<int, _MM_SHUFFLE(2, 0, 2, 0)>;
  using Tags = std::integral_constant<int, _MM_SHUFFLE(3, 1, 3, 1)>;
  const __m128i same = equal(Tags(), _mm_set1_epi32(static_cast<int>(tag)));
  const __m128i empty = equal(Positions(), _mm_setzero_si128());
  const auto bits = static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(same, empty)));
  return {bits & 0xFF & ~(bits >> 8), bits >> 8};
#else
  Sight sight{};
  for (size_t i = 0; i < kBucketWords; ++i) {
    const uint64_t word = bucket[i].load(std::memory_order_seq_cst);
    const bool is_empty = PositionOf(word) == 0;
    sight.same |= static_cast<uint32_t>(!is_empty && TagOf(word) == tag) << i;
    sight.empty |= static_cast<uint32_t>(is_empty) << i;
  }
  return sight;
#endif
}

}  // namespace basalt::memtable
