#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace basalt::base {
namespace {

TEST(Histogram, EmptyAnswersZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.Percentile(50), 0u);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 50; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Percentile(0), 1u);
  EXPECT_EQ(histogram.Percentile(50), 25u);
  EXPECT_EQ(histogram.Percentile(100), 50u);
  EXPECT_EQ(histogram.mean(), 25.5);
}

TEST(Histogram, OneValueIsEveryPercentile) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{31}, uint64_t{32}, uint64_t{63}, uint64_t{64},
                               uint64_t{123'456'789}, UINT64_MAX}) {
    Histogram histogram;
    histogram.Record(value);
    EXPECT_EQ(histogram.Percentile(0), value);
    EXPECT_EQ(histogram.Percentile(99.9), value);
    EXPECT_EQ(histogram.min(), value);
    EXPECT_EQ(histogram.max(), value);
  }
}

TEST(Histogram, PercentilesAreWithinThreePercentFromNanosecondsToHours) {
  const uint64_t seed = 11;
  Random random(seed);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 50'000; ++i) {
    values.push_back(random.Next() >> random.Between(20, 63));
    histogram.Record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {0.1, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank = static_cast<size_t>(percent / 100 * static_cast<double>(values.size()));
    const auto exact = static_cast<double>(values[std::max<size_t>(rank, 1) - 1]);
    const auto answer = static_cast<double>(histogram.Percentile(percent));
    EXPECT_GE(answer, exact) << percent << " %, seed " << seed;
    EXPECT_LE(answer, exact * (1 + 1.0 / 32)) << percent << " %, seed " << seed;
  }
}

TEST(Histogram, MergeEqualsRecordingEverythingInOne) {
  Random random(12);
  Histogram all;
  Histogram parts[3];
  for (int i = 0; i < 3000; ++i) {
    const uint64_t value = random.Next() >> random.Below(64);
    all.Record(value);
    parts[i % 3].Record(value);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.Merge(part);
  merged.Merge(Histogram());
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.min(), all.min());
  EXPECT_EQ(merged.max(), all.max());
  EXPECT_DOUBLE_EQ(merged.mean(), all.mean());
  for (int percent = 0; percent <= 100; ++percent) {
    EXPECT_EQ(merged.Percentile(percent), all.Percentile(percent));
  }
}

TEST(Histogram, ClearForgetsEverything) {
  Histogram histogram;
  histogram.Record(1000);
  histogram.Clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Percentile(100), 0u);
}

}  // namespace
}  // namespace basalt::base
