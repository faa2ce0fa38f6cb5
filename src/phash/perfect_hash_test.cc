#include "basalt/perfect_hash.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace basalt {
namespace {

std::vector<uint64_t> RandomHashes(uint64_t count, uint64_t seed) {
  base::Random random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) hash = random.Next();
  return hashes;
}

void ExpectBijective(const PerfectHash& function, std::span<const uint64_t> hashes) {
  ASSERT_EQ(function.size(), hashes.size());
  std::vector<bool> used(hashes.size());
  for (const uint64_t hash : hashes) {
    const uint64_t index = function.Index(hash);
    ASSERT_LT(index, hashes.size());
    ASSERT_FALSE(used[index]) << "index " << index << " of " << hashes.size();
    used[index] = true;
  }
}

TEST(PerfectHash, IsBijectiveForEveryNumberOfKeysUpTo5000) {
  const std::vector<uint64_t> hashes = RandomHashes(5000, 1);
  for (size_t count = 0; count <= hashes.size(); ++count) {
    const auto keys = std::span(hashes).first(count);
    auto function = PerfectHashBuilder({.threads = 1}).BuildFromHashes(keys);
    ASSERT_TRUE(function) << function.error().ToString();
    ExpectBijective(*function, keys);
  }
}

TEST(PerfectHash, IsBijectiveForMillions) {
  for (const auto seeds : {PerfectHashSeeds::kShift, PerfectHashSeeds::kDense}) {
    for (const size_t count : {10'000, 130'000, 1'000'000}) {
      const std::vector<uint64_t> hashes = RandomHashes(count, 2);
      auto function = PerfectHashBuilder({.seeds = seeds}).BuildFromHashes(hashes);
      ASSERT_TRUE(function) << function.error().ToString();
      ExpectBijective(*function, hashes);
    }
  }
}

}  // namespace
}  // namespace basalt
