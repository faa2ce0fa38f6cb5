#include "db/key_bounds.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace basalt::db {
namespace {

TEST(KeyBounds, ShortKeysAreTheirOwn) {
  const std::string key(kBoundBytesMax, 'k');
  EXPECT_EQ(LowerBoundOf(key, std::nullopt), key);
  EXPECT_EQ(UpperBoundOf(key, std::nullopt, 0), key);
  EXPECT_EQ(LowerBoundOf("", std::nullopt), "");
}

TEST(KeyBounds, LongKeysHaveShortBounds) {
  const std::string key(60'000, 'k');
  EXPECT_EQ(LowerBoundOf(key, "a"), std::string(kBoundBytesMax, 'k'));
  EXPECT_EQ(UpperBoundOf(key, "z", 0), std::string(kBoundBytesMax - 1, 'k') + 'l');
  EXPECT_EQ(UpperBoundOf("ab" + std::string(60'000, '\xff'), std::nullopt, 0), "ac");
  EXPECT_EQ(UpperBoundOf(std::string(60'000, '\xff'), std::nullopt, 0), std::string(60'000, '\xff'))
      << "nothing shorter is above it";
}

TEST(KeyBounds, LieBetweenTheKeyAndItsNeighbour) {
  base::Random random(1);
  // Of few different bytes, so that keys share much, and have many of the greatest byte.
  const auto random_key = [&](const std::string& prefix) {
    std::string key = prefix;
    for (uint64_t bytes = random.Below(200); bytes > 0; --bytes) {
      key.push_back(random.OneIn(3) ? 'a' : '\xff');
    }
    return key;
  };
  size_t shortened = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string prefix = random_key("pref");
    std::string one = random_key(prefix);
    std::string other = random_key(random.OneIn(2) ? prefix : "pref");
    if (one == other) continue;
    if (one > other) one.swap(other);
    const std::string upper = UpperBoundOf(one, other, 4);
    ASSERT_GE(upper, one);
    ASSERT_LT(upper, other);
    ASSERT_TRUE(upper.starts_with("pref"));
    const std::string lower = LowerBoundOf(other, upper);
    ASSERT_GT(lower, upper);
    ASSERT_LE(lower, other);
    ASSERT_LE(upper.size(), one.size());
    ASSERT_LE(lower.size(), other.size());
    shortened += upper.size() < one.size() ? 1 : 0;
  }
  EXPECT_GT(shortened, 10'000U);
}

}  // namespace
}  // namespace basalt::db
