#include "shared_map/change_index.h"

#include <gtest/gtest.h>

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
      const uint64_t ours = ChangeIndex::WordOf(hash, 100 + others);
      index->StoreWord(position, ours);
      EXPECT_EQ(index->Candidate(hash), ours) << first << ", behind " << others;
      index->StoreWord(position, ChangeIndex::WordOf(HashAt(first, 8), 1));
      EXPECT_EQ(index->Candidate(hash), 0) << first << ", behind " << others + 1;
    }
  }
}

TEST(ChangeIndex, CandidateIsNotSoughtBehindAFreeWord) {
  const auto index = ChangeIndex::Private(kCapacity);
  const uint64_t hash = HashAt(1, 7);
  index->StoreWord(1, ChangeIndex::WordOf(HashAt(1, 8), 1));
  index->StoreWord(3, ChangeIndex::WordOf(hash, 2));
  EXPECT_EQ(index->Candidate(hash), 0);
}

TEST(ChangeIndex, HashWhoseUpperHalfIsZeroIsNoFreeWord) {
  const auto index = ChangeIndex::Private(kCapacity);
  const uint64_t hash = HashAt(5, 0);
  index->StoreWord(5, ChangeIndex::WordOf(hash, 9));
  EXPECT_EQ(index->Candidate(hash), 9);
  EXPECT_EQ(index->Candidate(HashAt(6, 0)), 0);
}

TEST(ChangeIndex, CandidateOfAFullIndexEndsTheSearch) {
  const auto index = ChangeIndex::Private(ChangeIndex::kCapacityMin);
  for (uint64_t at = 0; at < index->capacity(); ++at) {
    index->StoreWord(at, ChangeIndex::WordOf(HashAt(at, 8), 1));
  }
  EXPECT_NE(index->Candidate(HashAt(3, 7)), 0);
}

}  // namespace
}  // namespace basalt::shared_map
