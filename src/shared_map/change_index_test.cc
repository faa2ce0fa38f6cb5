#include "shared_map/change_index.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.h"

namespace basalt::shared_map {
namespace {

constexpr uint64_t kCapacity = 1024;

// A hash with this upper half whose first position is `position`.
uint64_t HashAt(uint64_t position, uint64_t upper) { return upper << 32 | position; }

TEST(ChangeIndex, CandidateIsTheFirstWordOfItsHashBeforeAFreeOne) {
  // At every place in a line, and around the end.
  for (uint64_t first = 0; first < kCapacity; ++first) {
    const auto index = ChangeIndex::Private(kCapacity);
    const uint64_t hash = HashAt(first, 7);
    EXPECT_EQ(index->Candidate(hash), 0);
    // Others' words stand in the way, more of them each time.
    for (uint32_t others = 0; others < 20; ++others) {
      const uint64_t position = (first + others) % kCapacity;
      index->StoreWord(hash, position, 100 + others);
      EXPECT_EQ(index->Candidate(hash), ChangeIndex::WordOf(hash, 100 + others))
          << first << ", behind " << others;
      index->StoreWord(HashAt(first, 8), position, 1);
      EXPECT_EQ(index->Candidate(hash), 0) << first << ", behind " << others + 1;
    }
  }
}

TEST(ChangeIndex, CandidateIsNotSoughtBehindAFreeWord) {
  const auto index = ChangeIndex::Private(kCapacity);
  const uint64_t hash = HashAt(1, 7);
  index->StoreWord(HashAt(1, 8), 1, 1);
  index->StoreWord(hash, 3, 2);
  EXPECT_EQ(index->Candidate(hash), 0);
}

TEST(ChangeIndex, HashWhoseUpperHalfIsZeroIsNoFreeWord) {
  const auto index = ChangeIndex::Private(kCapacity);
  const uint64_t hash = HashAt(5, 0);
  index->StoreWord(hash, 5, 9);
  EXPECT_EQ(index->Candidate(hash), 9);
  EXPECT_EQ(index->Candidate(HashAt(6, 0)), 0);
}

TEST(ChangeIndex, CandidateOfAFullIndexEndsTheSearch) {
  const auto index = ChangeIndex::Private(ChangeIndex::kCapacityMin);
  for (uint64_t at = 0; at < index->capacity(); ++at) {
    index->StoreWord(HashAt(at, 8), at, 1);
  }
  EXPECT_NE(index->Candidate(HashAt(3, 7)), 0);
}

// As full as an index becomes.
std::shared_ptr<ChangeIndex> FullIndex(std::vector<uint64_t>* stored) {
  auto index = ChangeIndex::Private(uint64_t{1} << 16);
  base::Random random(1);
  while (stored->size() < index->capacity() / 8 * 5) {
    const uint64_t hash = random.Next();
    uint64_t position = index->FirstPosition(hash);
    while (index->WordAt(position) != 0) position = index->NextPosition(position);
    index->StoreWord(hash, position, 1);
    stored->push_back(hash);
  }
  return index;
}

TEST(ChangeIndex, FilterHoldsAllThatIsStoredAndFewOthers) {
  std::vector<uint64_t> stored;
  const auto index = FullIndex(&stored);
  for (const uint64_t hash : stored) EXPECT_TRUE(index->MayHold(hash)) << hash;
  constexpr int kOthers = 100'000;
  base::Random others(2);
  int let_through = 0;
  for (int i = 0; i < kOthers; ++i) let_through += index->MayHold(others.Next()) ? 1 : 0;
  EXPECT_LT(let_through, kOthers / 50);
}

TEST(ChangeIndex, CopyHoldsWhatItsOriginDoes) {
  std::vector<uint64_t> stored;
  const auto index = FullIndex(&stored);
  const auto copy = ChangeIndex::Private(index->capacity());
  EXPECT_FALSE(copy->MayHold(stored.front()));
  copy->CopyWords(*index);
  for (const uint64_t hash : stored) {
    EXPECT_TRUE(copy->MayHold(hash)) << hash;
    EXPECT_EQ(copy->Candidate(hash), index->Candidate(hash)) << hash;
  }
}

}  // namespace
}  // namespace basalt::shared_map
