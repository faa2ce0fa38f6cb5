#include "memtable/hash_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"

namespace basalt::memtable {
namespace {

using Position = HashIndex::Position;

class HashIndexTest : public testing::Test {
 protected:
  ~HashIndexTest() override { retired_.Collect(); }

  void Add(uint32_t tag) {
    const auto position = static_cast<Position>(tags_.size() + 1);
    HashIndex::Word* const word =
        index_.FindOrPlace(tag, [position](Position other) { return other == position; });
    index_.Publish(word, tag, position);
    tags_.push_back(tag);
  }
  void ExpectAll() {
    const base::EpochGuard inside;
    for (size_t i = 0; i < tags_.size(); ++i) {
      const auto position = static_cast<Position>(i + 1);
      ASSERT_EQ(index_.Find(tags_[i], [position](Position other) { return other == position; }),
                position)
          << "tag " << tags_[i] << ", of " << tags_.size();
    }
    EXPECT_EQ(index_.CountProbes().words, tags_.size());
  }

  std::shared_ptr<base::ChunkPool> pool_ = std::make_shared<base::ChunkPool>();
  base::ByteBudget budget_{~uint64_t{0}};
  base::RetireList retired_;
  HashIndex index_{pool_, &budget_, &retired_};
  std::vector<uint32_t> tags_;
};

TEST_F(HashIndexTest, DoublingsKeepWordsNearTheirHomes) {
  base::Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(index_.Prepare(1, /*within_limit=*/true));
    Add(static_cast<uint32_t>(random.Next()));
  }
  ExpectAll();
  const HashIndex::ProbeCounts counts = index_.CountProbes();
  EXPECT_LT(static_cast<double>(counts.buckets) / static_cast<double>(counts.words), 1.1);
}

// Buckets that are full before and after a doubling: their words stand far from home, across the
// end of the table, too.
TEST_F(HashIndexTest, DoublingsFindRoomForWordsOfCrowdedBuckets) {
  base::Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(index_.Prepare(1, /*within_limit=*/true));
    const auto bits = static_cast<uint32_t>(random.Next());
    const uint32_t crowded = random.OneIn(2) ? bits | 0xFFFC : bits & ~uint32_t{0xFFF0};
    Add(random.OneIn(4) ? bits : crowded);
    if ((i & (i + 1)) == 0) ExpectAll();
  }
  ExpectAll();
}

TEST_F(HashIndexTest, AJumpOverSizesKeepsAllWords) {
  base::Random random(3);
  for (const size_t more : {300, 2'000, 50'000, 10}) {
    ASSERT_TRUE(index_.Prepare(more, /*within_limit=*/true));
    for (size_t i = 0; i < more; ++i) Add(static_cast<uint32_t>(random.Next()));
    ExpectAll();
  }
}

}  // namespace
}  // namespace basalt::memtable
