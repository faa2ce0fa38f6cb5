#include "table/block_index.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "table/block_builder.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

TEST(BlockIndex, ASeparatorIsTheShortestKeyThatSeparates) {
  const std::vector<std::vector<std::string>> cases = {
      {"a", "b", "b"},
      {"", "a", "a"},
      {"abc", "abcd", "abcd"},
      {"abc", "abde", "abd"},
      {"abcxyz", "abd", "abd"},
      {"k1", "k25", "k2"},
      {"a", std::string("a\0b", 3), std::string("a\0", 2)},
  };
  for (const auto& words : cases) EXPECT_EQ(ShortestBetween(words[0], words[1]), words[2]);
  base::Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    std::string key = RandomBytes(&random, random.Below(6), 3);
    std::string next = RandomBytes(&random, random.Below(6), 3);
    if (key == next) continue;
    if (next < key) std::swap(key, next);
    const std::string between(ShortestBetween(key, next));
    EXPECT_LT(key, between);
    EXPECT_LE(between, next);
    // One byte less does not separate.
    EXPECT_LE(between.substr(0, between.size() - 1), key);
  }
}

// A root of parts that follow one another from byte 256 on.
std::shared_ptr<const Block> RootOf(const std::vector<IndexPartHandle>& parts) {
  BlockBuilder builder;
  for (size_t i = 0; i < parts.size(); ++i) {
    builder.Add(Numbered("key", i), base::kNewestTag, 0, BytesOf(parts[i]));
  }
  std::string raw(builder.raw_bytes_max(), '\0');
  raw.resize(builder.Write(raw.data()));
  BlockBuffer buffer = BlockBuffer::Allocate(raw.size());
  std::copy(raw.begin(), raw.end(), buffer.bytes.get());
  return Block::Parse(std::move(buffer), Block::Content::kIndex).value();
}

TEST(BlockIndex, PartsFillTheirSectionAndListEquallyManyBlocks) {
  const std::vector<IndexPartHandle> right = {{256, 84, 5}, {356, 34, 5}, {406, 20, 2}};
  const auto index = BlockIndex::InParts(RootOf(right), 256, 442);
  ASSERT_TRUE(index) << index.error().ToString();
  EXPECT_EQ(index->block_count(), 12u);
  EXPECT_EQ(index->PartOf(4), 0u);
  EXPECT_EQ(index->PartOf(5), 1u);
  EXPECT_EQ(index->PartOf(11), 2u);
  EXPECT_EQ(index->FirstBlockOf(2), 10u);
  EXPECT_FALSE(BlockIndex::InParts(RootOf(right), 255, 442));
  EXPECT_FALSE(BlockIndex::InParts(RootOf(right), 256, 441));
  EXPECT_FALSE(BlockIndex::InParts(RootOf(right), 256, 443));
  const std::vector<std::pair<size_t, IndexPartHandle>> changes = {
      {0, {256, 84, 0}},  {0, {256, 84, 4}}, {1, {356, 34, 6}},          {2, {406, 20, 0}},
      {2, {406, 20, 6}},  {1, {355, 34, 5}}, {1, {356, 33, 5}},          {2, {406, 21, 2}},
      {2, {406, ~0u, 2}}, {2, {442, 0, 2}},  {1, {~uint64_t{0}, 34, 5}},
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    std::vector<IndexPartHandle> parts = right;
    parts[changes[i].first] = changes[i].second;
    EXPECT_FALSE(BlockIndex::InParts(RootOf(parts), 256, 442)) << i;
  }
}

TEST(BlockIndex, PartsListNoMoreBlocksThanFitBeforeThem) {
  for (const uint32_t blocks : {16u, 17u, ~0u}) {
    EXPECT_EQ(BlockIndex::InParts(RootOf({{256, 84, blocks}}), 256, 356).has_value(), blocks == 16);
    EXPECT_EQ(
        BlockIndex::InParts(RootOf({{256, 84, 10}, {356, 34, blocks - 10}}), 256, 406).has_value(),
        blocks == 16);
  }
}

}  // namespace
}  // namespace basalt::table
