#include "memtable/hash_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
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
                     base::RetireList* retired, std::span<InsertGate::Place* const> places) noexcept
    : pool_(std::move(pool)), budget_(budget), retired_(retired), places_(places) {}

HashIndex::~HashIndex() {
  const uint64_t table = table_.load(std::memory_order_relaxed);
  if (table == 0) return;
  const size_t bytes = (WordMask(table) + 1) * sizeof(Word);
  pool_->Give(reinterpret_cast<char*>(Words(table)), bytes);
  budget_->Refund(bytes);
}

bool HashIndex::Reserve(size_t words, bool within_limit) noexcept {
  const std::lock_guard lock(lock_);
  return ReserveLocked(words, within_limit);
}

uint8_t HashIndex::ReserveSome(bool within_limit) noexcept {
  const std::lock_guard lock(lock_);
  const size_t words = std::clamp<size_t>(words_reserved_ / 256, 8, 64);
  return ReserveLocked(words, within_limit) ? static_cast<uint8_t>(words) : 0;
}

bool HashIndex::ReserveLocked(size_t words, bool within_limit) noexcept {
  const uint64_t table = table_.load(std::memory_order_relaxed);
  const size_t words_max = table == 0 ? 0 : WordsUsedMax(WordMask(table) + 1);
  const size_t needed = words_reserved_ + words;
  if (needed > words_max && !Grow(needed, within_limit)) return false;
  words_reserved_ = needed;
  return true;
}

void HashIndex::GiveBack(size_t words) noexcept {
  const std::lock_guard lock(lock_);
  words_reserved_ -= words;
}

// Under the lock.
bool HashIndex::Grow(size_t words_needed, bool within_limit) noexcept {
  const uint64_t old_table = table_.load(std::memory_order_relaxed);
  const size_t old_words = old_table == 0 ? 0 : WordMask(old_table) + 1;
  size_t new_words = old_words == 0 ? kWordsMin : old_words * 2;
  while (WordsUsedMax(new_words) < words_needed) new_words *= 2;

  const size_t bytes = new_words * sizeof(Word);
  if (!budget_->Charge(bytes, within_limit)) return false;
  char* const block = pool_->TakeZeros(bytes);
  std::unique_ptr<RetiredWords> old;
  base::RetireList::Note note;
  if (old_table != 0) {
    old.reset(new (std::nothrow) RetiredWords{pool_, reinterpret_cast<char*>(Words(old_table)),
                                              old_words * sizeof(Word)});
    note = base::RetireList::TryNewNote();
  }
  if (block == nullptr || (old_table != 0 && (old == nullptr || note == nullptr))) {
    if (block != nullptr) pool_->Give(block, bytes);
    budget_->Refund(bytes);
    return false;
  }

  Word* const words = std::launder(reinterpret_cast<Word*>(block));
  const auto bucket_bits = static_cast<uint64_t>(std::countr_zero(new_words / kBucketWords));
  const auto publish = [&] {
    table_.store(reinterpret_cast<uintptr_t>(words) | bucket_bits, std::memory_order_seq_cst);
  };
  if (old_table == 0) {
    publish();
  } else {
    gate_.Close(places_);
    MoveWords({Words(old_table), old_words}, {words, new_words});
    publish();
    gate_.Open();
  }

  if (old != nullptr) {
    budget_->Refund(old->bytes);
    const uint64_t bytes = old->bytes;
    retired_->Retire(std::move(note), old.release(), bytes, &RetiredWords::Delete);
  }
  return true;
}

// Of the words of a bucket, most of which have their home there, a doubling leaves some in a bucket
// of the same number and moves the others to one as far behind it as there were buckets. Each goes
// behind those that went there before it, so that hardly any search has more than one step.
void HashIndex::MoveWords(std::span<const Word> from, std::span<Word> to) noexcept {
  const size_t buckets = from.size() / kBucketWords;
  const auto bucket_bits = static_cast<uint32_t>(std::countr_zero(buckets));
  const bool is_doubling = to.size() == 2 * from.size();
  const size_t mask = to.size() - 1;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    std::array<uint32_t, 2> moved{};
    for (size_t i = 0; i < kBucketWords; ++i) {
      const uint64_t word = from[bucket * kBucketWords + i].load(std::memory_order_relaxed);
      if (PositionOf(word) == 0) break;  // a bucket fills from its first word on
      size_t at = size_t{TagOf(word)} * kBucketWords & mask;
      const size_t home = at / kBucketWords;
      if ((home & (buckets - 1)) == bucket && is_doubling) [[likely]] {
        at += moved[home >> bucket_bits]++;
      }
      while (to[at].load(std::memory_order_relaxed) != 0) at = (at + 1) & mask;
      to[at].store(word, std::memory_order_relaxed);
    }
  }
}

HashIndex::ProbeCounts HashIndex::CountProbes() const noexcept {
  ProbeCounts counts;
  const uint64_t table = table_.load(std::memory_order_seq_cst);
  for (size_t at = 0; table != 0 && at <= WordMask(table); ++at) {
    const uint64_t word = Words(table)[at].load(std::memory_order_relaxed);
    if (PositionOf(word) == 0) continue;
    const size_t buckets_mask = WordMask(table) / kBucketWords;
    counts.buckets += 1 + ((at / kBucketWords - TagOf(word)) & buckets_mask);
    ++counts.words;
  }
  return counts;
}

}  // namespace basalt::memtable
