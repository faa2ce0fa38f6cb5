#include "tools/workload/zipf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace basalt::workload {
namespace {

TEST(Zipf, ZetaIsTheSumThatItStandsFor) {
  double sum = 0;
  for (int i = 1; i <= 300'000; ++i) {
    sum += std::pow(i, -0.99);
    if (i == 1 || i == 2 || i == 9'999 || i == 10'001 || i == 300'000) {
      EXPECT_NEAR(Zipf::Zeta(static_cast<uint64_t>(i), 0.99), sum, 1e-9 * sum) << i;
    }
  }
  EXPECT_NEAR(Zipf::Zeta(10'000'000'000, 0.99), 26.46902820178302, 1e-8)
      << "the constant that YCSB has for its ten thousand million ranks";
}

TEST(Zipf, RanksComeUpInProportionToTheirShare) {
  constexpr uint64_t kItems = 1000;
  constexpr int kDraws = 400'000;
  base::Random random(17);
  const Zipf zipf(kItems, 0.99);
  std::vector<int> drawn(kItems);
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t rank = zipf(random);
    ASSERT_LT(rank, kItems);
    ++drawn[rank];
  }
  const double zeta = Zipf::Zeta(kItems, 0.99);
  for (const size_t rank : {0, 1}) {
    const double expected = kDraws * std::pow(static_cast<double>(rank + 1), -0.99) / zeta;
    EXPECT_NEAR(drawn[rank], expected, 0.05 * expected) << rank;
  }
  int upper_half = 0;
  for (size_t rank = kItems / 2; rank < kItems; ++rank) upper_half += drawn[rank];
  const double expected = kDraws * (zeta - Zipf::Zeta(kItems / 2, 0.99)) / zeta;
  EXPECT_NEAR(upper_half, expected, 0.05 * expected);
}

TEST(Zipf, FewItemsAreDrawnToo) {
  base::Random random(3);
  for (const uint64_t items : {1, 2, 3}) {
    std::vector<int> drawn(items);
    const Zipf zipf(items, 0.99);
    for (int i = 0; i < 1000; ++i) {
      const uint64_t rank = zipf(random);
      ASSERT_LT(rank, items);
      ++drawn[rank];
    }
    EXPECT_TRUE(std::all_of(drawn.begin(), drawn.end(), [](int count) { return count > 0; }))
        << items;
  }
}

TEST(ScrambledZipf, ThePopularOnesLieAnywhere) {
  EXPECT_EQ(ScrambledZipf::Scramble(0x61), 0x6926'124A'7B14'33C4) << "FNV-1a of 61 and seven zeros";
  base::Random random(5);
  constexpr uint64_t kItems = 1000;
  const ScrambledZipf zipf(kItems);
  std::vector<int> drawn(kItems);
  for (int i = 0; i < 100'000; ++i) ++drawn[zipf(random)];
  const auto most = std::max_element(drawn.begin(), drawn.end());
  EXPECT_EQ(static_cast<uint64_t>(most - drawn.begin()), ScrambledZipf::Scramble(0) % kItems);
  EXPECT_GT(*most, 100'000 / 40) << "about one draw in 26 is of the first rank";
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0), 0) << "also the unpopular ones come up";
}

}  // namespace
}  // namespace basalt::workload
