#include "base/range_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace basalt::base {
namespace {

TEST(RangeCover, NothingCoversNothing) {
  const RangeCover none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.SequenceAt("key"), 0u);
  EXPECT_FALSE(none.Covers("key", 0));
}

TEST(RangeCover, FromTheBeginUpToTheEndAndOnlyWhatIsOlder) {
  const RangeCover cover({{"b", "d", 10}});
  EXPECT_EQ(cover.SequenceAt("a"), 0u);
  EXPECT_EQ(cover.SequenceAt("b"), 10u);
  EXPECT_EQ(cover.SequenceAt("czzz"), 10u);
  EXPECT_EQ(cover.SequenceAt("d"), 0u);
  EXPECT_TRUE(cover.Covers("c", 9));
  EXPECT_FALSE(cover.Covers("c", 10));
}

TEST(RangeCover, EmptyAndInvertedRangesCoverNothing) {
  EXPECT_TRUE(RangeCover({{"b", "b", 10}, {"d", "c", 11}}).empty());
}

TEST(RangeCover, RandomRangesGiveTheNewestThatCoversEachKey) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < 40; ++i)
      keys.push_back(std::string(random.Below(3), 'a' + static_cast<char>(random.Below(4))));
    std::vector<RangeCover::Range> ranges;
    for (SequenceNumber sequence = 1; sequence <= random.Below(12); ++sequence) {
      ranges.push_back({keys[random.Below(40)], keys[random.Below(40)], sequence});
    }
    const RangeCover cover(ranges);
    for (const std::string& key : keys) {
      SequenceNumber newest = 0;
      for (const RangeCover::Range& range : ranges) {
        if (range.begin <= key && key < range.end) newest = std::max(newest, range.sequence);
      }
      ASSERT_EQ(cover.SequenceAt(key), newest) << key;
      const RangeCover::Stretch stretch = cover.StretchOf(key);
      ASSERT_EQ(stretch.sequence, newest) << key;
      ASSERT_TRUE(stretch.Contains(key));
      ASSERT_TRUE(newest == 0 || (stretch.begin && stretch.end));
      for (const std::string& other : keys) {
        ASSERT_TRUE(!stretch.Contains(other) || cover.SequenceAt(other) == newest) << other;
      }
    }
  }
}

}  // namespace
}  // namespace basalt::base
