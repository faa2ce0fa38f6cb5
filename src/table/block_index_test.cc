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

// A root of parts that follow one another from byte 64 on.
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
  const std::vector<IndexPartHandle> right = {{64, 84, 5}, {164, 34, 5}, {214, 20, 2}};
  const auto index = BlockIndex::InParts(RootOf(right), 64, 250);
  ASSERT_TRUE(index) << index.error().ToString();
  EXPECT_EQ(index->block_count(), 12u);
  EXPECT_EQ(index->PartOf(4), 0u);
  EXPECT_EQ(index->PartOf(5), 1u);
  EXPECT_EQ(index->PartOf(11), 2u);
  EXPECT_EQ(index->FirstBlockOf(2), 10u);
  EXPECT_FALSE(BlockIndex::InParts(RootOf(right), 63, 250));
  EXPECT_FALSE(BlockIndex::InParts(RootOf(right), 64, 249));
  EXPECT_FALSE(BlockIndex::InParts(RootOf(right), 64, 251));
  const std::vector<std::pair<size_t, IndexPartHandle>> changes = {
      {0, {64, 84, 0}},   {0, {64, 84, 4}},  {1, {164, 34, 6}},          {2, {214, 20, 0}},
      {2, {214, 20, 6}},  {1, {163, 34, 5}}, {1, {164, 33, 5}},          {2, {214, 21, 2}},
      {2, {214, ~0u, 2}}, {2, {250, 0, 2}},  {1, {~uint64_t{0}, 34, 5}},
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    std::vector<IndexPartHandle> parts = right;
    parts[changes[i].first] = changes[i].second;
    EXPECT_FALSE(BlockIndex::InParts(RootOf(parts), 64, 250)) << i;
  }
}

}  // namespace
}  // namespace basalt::table
