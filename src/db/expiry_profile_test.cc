#include "db/expiry_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"

namespace basalt::db {
namespace {

TEST(ExpiryProfile, OfNothingNeverExpires) {
  EXPECT_EQ(ExpiryProfile().HalfExpiredMs(0), 0U);
  EXPECT_EQ(ExpiryProfile().HalfExpiredMs(100), 0U);
}

TEST(ExpiryProfile, HalfIsCountedInBytesOfAllThereIs) {
  ExpiryProfile profile;
  profile.Add(7000, 1);
  profile.Add(5000, 49);
  EXPECT_EQ(profile.HalfExpiredMs(98), 5000U);
  EXPECT_EQ(profile.HalfExpiredMs(99), 7000U);
  EXPECT_EQ(profile.HalfExpiredMs(100), 7000U);
  EXPECT_EQ(profile.HalfExpiredMs(101), 0U);
}

TEST(ExpiryProfile, MomentsFarApartStayExact) {
  ExpiryProfile profile;
  profile.Add(5000, 99);
  profile.Add(1'770'000'000'000, 1);
  EXPECT_EQ(profile.HalfExpiredMs(100), 5000U);
}

TEST(ExpiryProfile, IsNeverTooEarlyAndAtMostABucketLate) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Random random(seed);
    const uint64_t first_ms = random.Below(1'000'000);
    const uint64_t span_ms = uint64_t{1} << random.Below(40);
    ExpiryProfile profile;
    std::vector<std::pair<uint64_t, uint64_t>> added;
    uint64_t all = random.Below(1000);  // what does not expire
    for (int i = 0; i < 3000; ++i) {
      added.emplace_back(first_ms + random.Below(span_ms), random.Below(100));
      profile.Add(added.back().first, added.back().second);
      all += added.back().second;
    }
    std::ranges::sort(added);
    uint64_t expired = 0;
    size_t i = 0;
    for (; 2 * expired < all; ++i) expired += added.at(i).second;
    const uint64_t exact_ms = i == 0 ? 0 : added[i - 1].first;
    const uint64_t half_ms = profile.HalfExpiredMs(all);
    ASSERT_GE(half_ms, exact_ms) << "seed " << seed;
    ASSERT_LE(half_ms, exact_ms + span_ms / (ExpiryProfile::kBucketsMax / 4)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace basalt::db
