#include "table/bloom_filter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

std::vector<uint64_t> HashesOf(std::string_view stem, uint64_t count) {
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < count; ++i) {
    hashes.push_back(base::Hash(Numbered(std::string(stem), i)));
  }
  return hashes;
}

TEST(BloomFilter, KnowsEveryKeyAndHardlyAnyOther) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{100}, uint64_t{10'000}, uint64_t{300'000}}) {
    const std::vector<uint64_t> present = HashesOf("present", count);
    const BloomFilter filter = BloomFilter::Build(present);
    for (const uint64_t hash : present) ASSERT_TRUE(filter.MayContain(hash));
    uint64_t false_positives = 0;
    for (const uint64_t hash : HashesOf("absent", 200'000)) {
      false_positives += filter.MayContain(hash) ? 1 : 0;
    }
    const double percent = static_cast<double>(false_positives) / 2000;
    RecordProperty("false_positive_percent_of_" + std::to_string(count), std::to_string(percent));
    EXPECT_LT(percent, 1.3) << count << " keys";
  }
}

TEST(BloomFilter, TakesTenBitsAKey) {
  const BloomFilter filter = BloomFilter::Build(HashesOf("key", 100'000));
  EXPECT_LE(filter.bytes().size() * 8, 100'000u * 10 + 2 * 512);
}

TEST(BloomFilter, ReadsBackFromItsBytes) {
  const std::vector<uint64_t> present = HashesOf("present", 5000);
  const BloomFilter built = BloomFilter::Build(present);
  BloomFilter read = BloomFilter::Allocate(built.bytes().size());
  std::memcpy(read.bytes().data(), built.bytes().data(), built.bytes().size());
  ASSERT_TRUE(read.Validate().ok());
  for (const uint64_t hash : present) ASSERT_TRUE(read.MayContain(hash));
}

TEST(BloomFilter, BytesThatAreNoFilterAreRefused) {
  EXPECT_EQ(BloomFilter::Allocate(0).Validate().code(), StatusCode::kCorruption);
  EXPECT_EQ(BloomFilter::Allocate(64).Validate().code(), StatusCode::kCorruption);
  EXPECT_EQ(BloomFilter::Allocate(128).Validate().code(), StatusCode::kUnsupported);
  BloomFilter filter = BloomFilter::Build(HashesOf("key", 100));
  filter.bytes()[8] = static_cast<char>(filter.bytes()[8] + 1);
  EXPECT_EQ(filter.Validate().code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace basalt::table
