#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/prefetch.h"

// Where the newest version of each key lies.
//
// Layout
//
//   words    a power of two of 64-byte buckets, each 8 words
//   word     tag 32 | position 32; position 0: empty. The tag is the low half of the key's hash.
//
//   A word's home is bucket (tag & mask). A bucket fills from its first word on; when it is full,
//   the next bucket takes the word, and so on around. Words are never removed, and a word's tag
//   never changes, so a search ends at the first empty word.
//
// Since the tag alone says where a word belongs, the words move into twice as many buckets without
// a look at a record. At most 7 of 10 words are taken.
//
// Who may do what. One writer at a time (the shard's lock) prepares, finds and stores. Readers take
// no lock: they load words inside an epoch, because a doubling retires the old words to it. A
// reader may search the old words while new ones are stored in the new array: it began before those
// were stored.
//
// Cost. A search is one cache miss (1.05 buckets on average at 7 of 10), whether or not the key is
// there; the record that a word leads to is the second.

namespace basalt::memtable {

class HashIndex {
 public:
  using Position = base::Arena::Position;
  using Word = std::atomic<uint64_t>;

  HashIndex(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
            base::RetireList* retired) noexcept;
  ~HashIndex();
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;

  /// Makes sure that `pending` more words can be stored. False: the budget (if `within_limit`) or
  /// the system's memory is used up. Writer.
  bool Prepare(size_t pending, bool within_limit) noexcept {
    return words_used_ + pending <= words_used_max_ || Grow(words_used_ + pending, within_limit);
  }

  /// The word with this tag whose position is `same(position)`, or the empty word where it belongs.
  /// Writer, after Prepare.
  template <class Same>
  Word* FindOrPlace(uint32_t tag, const Same& same) noexcept {
    Word* const words = Words(table_.load(std::memory_order_relaxed));
    for (size_t at = HomeWord(tag);; at = (at + 1) & word_mask_) {
      const uint64_t word = words[at].load(std::memory_order_relaxed);
      if (PositionOf(word) == 0 || (TagOf(word) == tag && same(PositionOf(word)))) {
        return &words[at];
      }
    }
  }

  /// Makes `word` lead to `position`, whose record is finished. Writer.
  void Publish(Word* word, uint32_t tag, Position position) noexcept {
    if (PositionOf(word->load(std::memory_order_relaxed)) == 0) ++words_used_;
    word->store(uint64_t{tag} << 32 | position, std::memory_order_seq_cst);
  }

  /// The position whose word has this tag and for which `same(position)`; 0: none. Any thread,
  /// inside an epoch.
  template <class Same>
  Position Find(uint32_t tag, const Same& same) const noexcept {
    const uint64_t table = table_.load(std::memory_order_seq_cst);
    if (table == 0) return 0;
    const Word* const words = Words(table);
    const size_t mask = WordMask(table);
    for (size_t at = size_t{tag} * kBucketWords & mask;; at = (at + 1) & mask) {
      const uint64_t word = words[at].load(std::memory_order_seq_cst);
      if (PositionOf(word) == 0) return 0;
      if (TagOf(word) == tag && same(PositionOf(word))) return PositionOf(word);
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
  size_t HomeWord(uint32_t tag) const noexcept { return size_t{tag} * kBucketWords & word_mask_; }

  bool Grow(size_t words_needed, bool within_limit) noexcept;
  void MoveWords(const Word* from, size_t count, Word* to) noexcept;

  // The writer's, apart from what readers load.
  size_t word_mask_ = 0;
  size_t words_used_ = 0;
  size_t words_used_max_ = 0;
  const std::shared_ptr<base::ChunkPool> pool_;
  base::ByteBudget* const budget_;
  base::RetireList* const retired_;
  std::atomic<uint64_t> table_{0};  // 0: nothing was ever stored
};

}  // namespace basalt::memtable
