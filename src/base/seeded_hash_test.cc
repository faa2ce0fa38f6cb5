#include "base/seeded_hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/short_hash.h"
#include "base/test_equal_hashes.h"

namespace basalt::base {
namespace {

std::string RandomBytes(Random* random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random->Below(256));
  return text;
}

TEST(SeededHash, OfSeed0IsTheHashOfTheRestOfTheLibrary) {
  const SeededHash hash;
  Random random(1);
  for (size_t bytes = 0; bytes < 1200; bytes += 1 + bytes / 50) {
    const std::string key = RandomBytes(&random, bytes);
    EXPECT_EQ(hash(key), Hash(key)) << bytes;
  }
}

// Files depend on them.
TEST(SeededHash, HasTheValuesThatItHadEver) {
  const SeededHash hash(42);
  EXPECT_EQ(hash(""), 0x9A4C'0CCF'AA86'20BC);
  EXPECT_EQ(hash("basalt"), 0x3747'8AB1'C01F'0D3A);
  EXPECT_EQ(hash("a key of 21 bytes, eh"), 0xF261'0539'46FA'4A94);
  EXPECT_EQ(hash(std::string(200, 'x')), 0x10D9'C1BE'748A'B27A);
  EXPECT_EQ(hash(std::string(5000, 'x')), 0x12D3'D623'CD63'B1F7);
}

TEST(SeededHash, ItsShortWayIsTheSame) {
  Random random(2);
  for (size_t bytes = 0; bytes <= 40; ++bytes) {
    for (int i = 0; i < 50; ++i) {
      const SeededHash hash(i == 0 ? 0 : random.Next());
      const std::string key = RandomBytes(&random, bytes);
      ASSERT_EQ(HashShort(key, hash), hash(key)) << bytes << " bytes, seed " << hash.seed();
    }
  }
}

/// Keys whose hashes under one of 60 seeds of XXH3 itself are one: two bits that are flipped
/// together in any of 16 blocks cancel each other out where words 0 and 12 of the secret, with the
/// seed added, have a difference that is common.
std::vector<std::string> KeysOfOneHashUnderManySeeds() {
  constexpr size_t kBlocks = 16;
  constexpr size_t kBlockBytes = 1024;
  constexpr size_t kOther = 12 * 64;  // Of a block, where its stripe 12 begins.
  std::string first(kBlocks * kBlockBytes + 64, 'q');
  for (size_t block = 0; block < kBlocks; ++block) {
    uint64_t word = 0;
    std::memcpy(&word, first.data() + block * kBlockBytes, sizeof word);
    word ^= 0x0A0A'0410;
    std::memcpy(first.data() + block * kBlockBytes + kOther, &word, sizeof word);
  }
  std::vector<std::string> keys;
  for (uint32_t blocks = 0; blocks < uint32_t{1} << 8; ++blocks) {
    std::string& key = keys.emplace_back(first);
    for (size_t block = 0; block < 8; ++block) {
      if ((blocks >> block & 1) == 0) continue;
      key[block * kBlockBytes + 7] ^= '\x80';
      key[block * kBlockBytes + kOther + 7] ^= '\x80';
    }
  }
  return keys;
}

template <class HashOf>
size_t DistinctHashes(const std::vector<std::string>& keys, const HashOf& hash_of) {
  std::set<uint64_t> hashes;
  for (const std::string& key : keys) hashes.insert(hash_of(key));
  return hashes.size();
}

TEST(SeededHash, KeysThatWereChosenForEqualHashesHaveDifferentOnes) {
  const std::vector<std::string> known = KeysOfOneHash(100);
  ASSERT_EQ(DistinctHashes(known, [](const std::string& key) { return Hash(key); }), 1u);
  const std::vector<std::string> unknown = KeysOfOneHashUnderManySeeds();
  int seeds_of_one_hash = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const uint64_t mixed = Random(seed).Next();
    const SeededHash hash(mixed);
    ASSERT_EQ(DistinctHashes(known, hash), known.size());
    ASSERT_EQ(DistinctHashes(unknown, hash), unknown.size());
    const auto of_xxh3 = [&](const std::string& key) { return Hash(key, mixed); };
    if (DistinctHashes({unknown.front(), unknown.back()}, of_xxh3) == 1) ++seeds_of_one_hash;
  }
  // Else the keys would not show anything.
  EXPECT_GT(seeds_of_one_hash, 0);
}

}  // namespace
}  // namespace basalt::base
