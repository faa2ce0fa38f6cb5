#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace basalt::base {
namespace {

// The numbers are those of the reference implementations of splitmix64 and xoshiro256**.
TEST(Random, SameSeedGivesTheSameNumbersOnEveryMachine) {
  Random random(42);
  const std::array<uint64_t, 4> first = {random.Next(), random.Next(), random.Next(),
                                         random.Next()};
  const std::array<uint64_t, 4> expected = {1546998764402558742, 6990951692964543102,
                                            12544586762248559009U, 17057574109182124193U};
  EXPECT_EQ(first, expected);
}

TEST(Random, OtherSeedsGiveOtherNumbers) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 1000; ++seed) first.insert(Random(seed).Next());
  EXPECT_EQ(first.size(), 1000u);
}

TEST(Random, BelowIsEvenAndInRange) {
  Random random(7);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) ++counts.at(random.Below(10));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(8);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Between(5, 8));
  EXPECT_EQ(seen, (std::set<uint64_t>{5, 6, 7, 8}));
  EXPECT_EQ(random.Between(3, 3), 3u);
  EXPECT_NE(random.Between(0, UINT64_MAX), random.Between(0, UINT64_MAX));
}

TEST(Random, DoublesFillTheUnitInterval) {
  Random random(9);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.NextDouble();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.01);
}

TEST(Random, DrivesStandardAlgorithms) {
  std::vector<int> numbers(100);
  for (int i = 0; i < 100; ++i) numbers[static_cast<size_t>(i)] = i;
  Random random(10);
  std::shuffle(numbers.begin(), numbers.end(), random);
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers.back(), 99);
}

TEST(RandomSeed, DoesNotRepeat) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 1000; ++i) seeds.insert(RandomSeed());
  EXPECT_EQ(seeds.size(), 1000u);
}

}  // namespace
}  // namespace basalt::base
