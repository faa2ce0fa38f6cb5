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
}

TEST(RangeCover, FromTheBeginUpToTheEnd) {
  const RangeCover cover({{"b", "d", 10}});
  EXPECT_EQ(cover.SequenceAt("a"), 0u);
  EXPECT_EQ(cover.SequenceAt("b"), 10u);
  EXPECT_EQ(cover.SequenceAt("czzz"), 10u);
  EXPECT_EQ(cover.SequenceAt("d"), 0u);
}

TEST(RangeCover, EmptyAndInvertedRangesCoverNothing) {
  EXPECT_TRUE(RangeCover({{"b", "b", 10}, {"d", "c", 11}}).empty());
}

// Begins that share much, end within the prefix, or differ only behind it.
TEST(RangeCover, FindsKeysThatAgreeInTheirFirstBytes) {
  std::vector<std::string> keys;
  for (const std::string& stem : {std::string("user/"), std::string("user/12345678"),
                                  std::string("user/\xff\xff\xff\xff\xff\xff\xff\xff")}) {
    for (const std::string& tail : {std::string(), std::string(1, '\0'), std::string(9, '\0'),
                                    std::string("1"), std::string("\xff\xff")}) {
      keys.push_back(stem + tail);
    }
  }
  std::ranges::sort(keys);
  std::vector<RangeCover::Range> ranges;
  for (size_t i = 0; i + 1 < keys.size(); i += 2) ranges.push_back({keys[i], keys[i + 1], i + 1});
  const RangeCover cover(ranges);
  std::vector<std::string> asked = keys;  // The ranges are views of the others.
  asked.insert(asked.end(), {"", "use", "user", "user.", "user0", "v"});
  for (const std::string& key : asked) {
    SequenceNumber expected = 0;
    for (const RangeCover::Range& range : ranges) {
      if (range.begin <= key && key < range.end) expected = range.sequence;
    }
    EXPECT_EQ(cover.SequenceAt(key), expected) << key;
  }
}

TEST(RangeCover, FindsKeysAmongThousandsOfRanges) {
  std::vector<std::string> keys;
  for (int i = 0; i < 4000; ++i) keys.push_back("row" + std::to_string(10'000 + i));
  for (const size_t count : {31U, 32U, 33U, 64U, 1000U, 2000U}) {
    std::vector<RangeCover::Range> ranges;
    for (size_t i = 0; i < count; ++i) ranges.push_back({keys[2 * i], keys[2 * i + 1], i + 1});
    const RangeCover cover(ranges);
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool is_covered = i % 2 == 0 && i / 2 < count;
      EXPECT_EQ(cover.SequenceAt(keys[i]), is_covered ? i / 2 + 1 : 0) << keys[i];
      EXPECT_EQ(cover.SequenceAt(keys[i] + "x"), is_covered ? i / 2 + 1 : 0) << keys[i];
    }
    EXPECT_EQ(cover.SequenceAt("row"), 0U);
    EXPECT_EQ(cover.SequenceAt("s"), 0U);
  }
}

struct SomeRanges {
  std::vector<std::string> keys;  ///< Of the ranges, and others.
  std::vector<RangeCover::Range> ranges;

  explicit SomeRanges(Random* random) {
    for (int i = 0; i < 40; ++i) {
      keys.emplace_back(random->Below(3), 'a' + static_cast<char>(random->Below(4)));
    }
    for (SequenceNumber sequence = random->Below(12); sequence > 0; --sequence) {
      ranges.push_back({keys[random->Below(40)], keys[random->Below(40)], sequence});
    }
  }
  SequenceNumber NewestOver(std::string_view key) const {
    SequenceNumber newest = 0;
    for (const RangeCover::Range& range : ranges) {
      if (range.begin <= key && key < range.end) newest = std::max(newest, range.sequence);
    }
    return newest;
  }
};

void ExpectStretch(const CoverStretch& stretch, std::string_view key, const SomeRanges& some) {
  const SequenceNumber newest = some.NewestOver(key);
  ASSERT_EQ(stretch.sequence, newest) << key;
  ASSERT_TRUE(stretch.Contains(key));
  ASSERT_TRUE(newest == 0 || (stretch.begin && stretch.end));
  for (const std::string& other : some.keys) {
    ASSERT_TRUE(!stretch.Contains(other) || some.NewestOver(other) == newest) << other;
  }
}

TEST(RangeCover, RandomRangesGiveTheNewestThatCoversEachKey) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const SomeRanges some(&random);
    const RangeCover cover(some.ranges);
    for (const std::string& key : some.keys) {
      ASSERT_EQ(cover.SequenceAt(key), some.NewestOver(key)) << key;
      ExpectStretch(cover.StretchOf(key), key, some);
    }
  }
}

// In covers of some of them, and in one that these were merged to.
TEST(RangeCover, SeveralAreAskedAndMergedAsOne) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const SomeRanges some(&random);
    std::vector<std::vector<RangeCover::Range>> parts(1 + random.Below(4));
    for (const RangeCover::Range& range : some.ranges) {
      parts[random.Below(parts.size())].push_back(range);
    }
    std::vector<RangeCover> covers(parts.begin(), parts.end());
    std::vector<const RangeCover*> pointers;
    for (const RangeCover& cover : covers) pointers.push_back(&cover);
    const RangeCover whole(some.ranges);
    const RangeCover merged = RangeCover::Of(pointers);
    ASSERT_EQ(merged.newest(), whole.newest());
    ASSERT_EQ(merged.empty(), whole.empty());
    pointers.pop_back();
    const RangeCovers several(pointers, parts.back());
    ASSERT_EQ(several.newest(), whole.newest());
    RangeCoverCursor cursor(&several);
    for (const std::string& key : some.keys) {
      ASSERT_EQ(merged.SequenceAt(key), some.NewestOver(key)) << key;
      const CoverStretch longest = whole.StretchOf(key);
      ASSERT_EQ(merged.StretchOf(key).begin, longest.begin) << "neighbours of one answer are one";
      ASSERT_EQ(merged.StretchOf(key).end, longest.end);
      ExpectStretch(several.StretchOf(key), key, some);
      ExpectStretch(cursor.StretchOf(key), key, some);
    }
  }
}

}  // namespace
}  // namespace basalt::base
