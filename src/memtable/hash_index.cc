#include "memtable/hash_index.h"

#include <array>
#include <bit>
#include <new>
#include <utility>

#include "base/check.h"

namespace basalt::memtable {
namespace {

/// Words that a doubling left behind, until no reader is in them. Keeps the pool alive, because the
/// epoch may outlive the memtable.
struct RetiredWords {
  std::shared_ptr<base::ChunkPool> pool;
  char* block;
  size_t bytes;

  static void Delete(void* object) {
    const std::unique_ptr<RetiredWords> words(static_cast<RetiredWords*>(object));
    words->pool->Give(words->block, words->bytes);
  }
};

}  // namespace

HashIndex::HashIndex(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
                     base::RetireList* retired) noexcept
    : pool_(std::move(pool)), budget_(budget), retired_(retired) {}

HashIndex::~HashIndex() {
  const uint64_t table = table_.load(std::memory_order_relaxed);
  if (table == 0) return;
  const size_t bytes = (word_mask_ + 1) * sizeof(Word);
  pool_->Give(reinterpret_cast<char*>(Words(table)), bytes);
  budget_->Refund(bytes);
}

bool HashIndex::Grow(size_t words_needed, bool within_limit) noexcept {
  const uint64_t old_table = table_.load(std::memory_order_relaxed);
  const size_t old_words = old_table == 0 ? 0 : word_mask_ + 1;
  size_t new_words = old_words == 0 ? kWordsMin : old_words * 2;
  while (new_words / 10 * 7 < words_needed) new_words *= 2;

  const size_t bytes = new_words * sizeof(Word);
  if (!budget_->Charge(bytes, within_limit)) return false;
  char* const block = pool_->TakeZeros(bytes);
  std::unique_ptr<RetiredWords> old;
  if (old_table != 0) {
    old.reset(new (std::nothrow) RetiredWords{pool_, reinterpret_cast<char*>(Words(old_table)),
                                              old_words * sizeof(Word)});
  }
  if (block == nullptr || (old_table != 0 && old == nullptr)) {
    if (block != nullptr) pool_->Give(block, bytes);
    budget_->Refund(bytes);
    return false;
  }

  Word* const words = std::launder(reinterpret_cast<Word*>(block));
  word_mask_ = new_words - 1;
  MoveWords(Words(old_table), old_words, words);
  words_used_max_ = new_words / 10 * 7;
  const auto bucket_bits = static_cast<uint64_t>(std::countr_zero(new_words / kBucketWords));
  table_.store(reinterpret_cast<uintptr_t>(words) | bucket_bits, std::memory_order_seq_cst);

  if (old != nullptr) {
    budget_->Refund(old->bytes);
    const uint64_t bytes = old->bytes;
    retired_->Retire(old.release(), bytes, &RetiredWords::Delete);
  }
  return true;
}

// Of the words of a bucket, most of which have their home there, a doubling leaves some in a bucket
// of the same number and moves the others to one as far behind it as there were buckets. Each goes
// behind those that went there before it, so that hardly any search has more than one step.
void HashIndex::MoveWords(const Word* from, size_t count, Word* to) noexcept {
  const size_t buckets = count / kBucketWords;
  const auto bucket_bits = static_cast<uint32_t>(std::countr_zero(buckets));
  const bool is_doubling = word_mask_ + 1 == 2 * count;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    std::array<uint32_t, 2> moved{};
    for (size_t i = 0; i < kBucketWords; ++i) {
      const uint64_t word = from[bucket * kBucketWords + i].load(std::memory_order_relaxed);
      if (PositionOf(word) == 0) break;  // a bucket fills from its first word on
      size_t at = HomeWord(TagOf(word));
      const size_t home = at / kBucketWords;
      if ((home & (buckets - 1)) == bucket && is_doubling) [[likely]] {
        at += moved[home >> bucket_bits]++;
      }
      while (to[at].load(std::memory_order_relaxed) != 0) at = (at + 1) & word_mask_;
      to[at].store(word, std::memory_order_relaxed);
    }
  }
}

HashIndex::ProbeCounts HashIndex::CountProbes() const noexcept {
  ProbeCounts counts;
  const uint64_t table = table_.load(std::memory_order_seq_cst);
  for (size_t at = 0; table != 0 && at <= word_mask_; ++at) {
    const uint64_t word = Words(table)[at].load(std::memory_order_relaxed);
    if (PositionOf(word) == 0) continue;
    const size_t buckets_mask = word_mask_ / kBucketWords;
    counts.buckets += 1 + ((at / kBucketWords - TagOf(word)) & buckets_mask);
    ++counts.words;
  }
  return counts;
}

}  // namespace basalt::memtable
