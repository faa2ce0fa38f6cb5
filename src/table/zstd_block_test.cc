#include "table/zstd_block.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace basalt::table {
namespace {

// Blocks of some text that have much in common.
std::vector<std::string> Blocks(size_t count, uint64_t seed) {
  base::Random random(seed);
  std::vector<std::string> blocks;
  for (size_t i = 0; i < count; ++i) {
    std::string block;
    while (block.size() < (16 << 10)) {
      block.append("{\"identifier\": ").append(std::to_string(random.Next()));
      block.append(", \"a field that is in each of them\": ");
      block.append(std::to_string(random.Below(1000))).append("}\n");
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::string Train(const std::vector<std::string>& blocks) {
  return TrainDictionary(std::vector<std::string_view>(blocks.begin(), blocks.end()), 16 << 10);
}

std::string Compress(std::string_view raw, std::string_view dictionary) {
  std::string out(raw.size(), '\0');
  out.resize(ZstdCompressor(dictionary).Compress(raw, out.data(), out.size()));
  return out;
}

TEST(ZstdBlock, ReadsBackWithItsDictionaryOnly) {
  const std::string bytes = Train(Blocks(32, 1));
  ASSERT_FALSE(bytes.empty());
  EXPECT_LE(bytes.size(), size_t{16} << 10);
  const ZstdDictionary dictionary = ZstdDictionary::Create(bytes).value();
  EXPECT_GT(dictionary.memory_bytes(), bytes.size());
  const ZstdDictionary none;
  const std::string raw = Blocks(1, 2)[0];
  const std::string with = Compress(raw, bytes);
  const std::string without = Compress(raw, {});
  EXPECT_LT(with.size(), without.size());
  std::string read(raw.size(), '\0');
  ASSERT_TRUE(dictionary.Decompress(with, read));
  EXPECT_EQ(read, raw);
  ASSERT_TRUE(none.Decompress(without, read));
  EXPECT_EQ(read, raw);
  EXPECT_FALSE(none.Decompress(with, read) && read == raw);
}

TEST(ZstdBlock, ADamagedFrameIsRefusedOrFillsTheBlock) {
  const std::string raw = Blocks(1, 3)[0];
  const std::string stored = Compress(raw, {});
  const ZstdDictionary none;
  std::string read(raw.size(), '\0');
  for (size_t size = 0; size < stored.size(); ++size) {
    ASSERT_FALSE(none.Decompress(std::string_view(stored).substr(0, size), read)) << size;
  }
  for (size_t at = 0; at < stored.size(); ++at) {
    std::string changed = stored;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    static_cast<void>(none.Decompress(changed, read));
  }
  std::string shorter(raw.size() - 1, '\0');
  EXPECT_FALSE(none.Decompress(stored, shorter));
  std::string longer(raw.size() + 1, '\0');
  EXPECT_FALSE(none.Decompress(stored, longer));
}

TEST(ZstdBlock, WhatDoesNotFitIsGivenUp) {
  base::Random random(4);
  std::string noise(1000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random.Next());
  std::string out(noise.size(), '\0');
  EXPECT_EQ(ZstdCompressor({}).Compress(noise, out.data(), 900), 0u);
}

TEST(ZstdBlock, FewBlocksGiveNoDictionary) {
  EXPECT_TRUE(Train({}).empty());
  EXPECT_TRUE(Train(Blocks(8, 5)).empty());
  EXPECT_TRUE(Train({std::string(10 << 20, 'x')}).empty());
}

TEST(ZstdBlock, OtherBytesAreNoDictionary) {
  for (const std::string& bytes : {std::string(), std::string("abc"), std::string(1000, 'x')}) {
    const auto dictionary = ZstdDictionary::Create(bytes);
    ASSERT_FALSE(dictionary);
    EXPECT_EQ(dictionary.error().code(), StatusCode::kCorruption);
  }
  const std::string bytes = Train(Blocks(32, 6));
  for (size_t size = 0; size < 100; ++size) {
    EXPECT_FALSE(ZstdDictionary::Create(std::string_view(bytes).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace basalt::table
