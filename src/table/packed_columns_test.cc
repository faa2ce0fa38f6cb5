#include "table/packed_columns.h"

#include <gtest/gtest.h>

#include <string>

#include "base/coding.h"
#include "base/random.h"
#include "table/block.h"
#include "table/block_builder.h"

namespace basalt::table {
namespace {

std::string Packed(const std::string& raw) {
  std::string packed(raw.size(), 'x');
  PackColumns(raw, packed.data());
  return packed;
}

std::string Unpacked(std::string packed) {
  UnpackColumns(packed);
  return packed;
}

std::string RawBlock(const BlockBuilder& builder) {
  std::string raw(builder.raw_bytes_max(), '\0');
  raw.resize(builder.Write(raw.data()));
  return raw;
}

TEST(PackedColumns, BlocksOfEveryCountComeBack) {
  for (const bool timed : {false, true}) {
    for (const bool wide : {false, true}) {
      BlockBuilder builder;
      for (uint64_t i = 0; i < 100; ++i) {
        const std::string key = "a key that all share " + std::to_string(100'000'000 + i * i * 977);
        const uint64_t time_ms = timed ? i * 1'000'003 + 1 : 0;
        builder.Add(key, base::MakeTag(i * 7919 % 101, RecordKind::kPut), time_ms,
                    std::string(wide ? 1000 + i : i % 3, 'v'));
        const std::string raw = RawBlock(builder);
        EXPECT_EQ(Unpacked(Packed(raw)), raw) << i << timed << wide;
        EXPECT_EQ(Packed(raw) == raw, i == 0) << "one record has nothing to be taken apart";
      }
      const std::string raw = RawBlock(builder);
      EXPECT_EQ(base::Load<uint32_t>(raw.data() + 4),
                (wide ? Block::kFlagWide : 0) | (timed ? Block::kFlagTimed : 0));
    }
  }
}

TEST(PackedColumns, WhatDoesNotChangeLiesTogether) {
  BlockBuilder builder;
  for (uint64_t i = 0; i < 16; ++i) {
    builder.Add(std::string(1, static_cast<char>('a' + i)), base::MakeTag(i, RecordKind::kPut), 0,
                "value");
  }
  const std::string packed = Packed(RawBlock(builder));
  const std::string_view columns = std::string_view(packed).substr(Block::kHeaderBytes);
  // Prefixes: their highest bytes come last, the first key and then differences of 1.
  EXPECT_EQ(columns.substr(0, 7 * 16), std::string(7 * 16, '\0'));
  EXPECT_EQ(columns.substr(7 * 16, 16), "a" + std::string(15, '\1'));
  // Tags: the kinds, then the sequence numbers.
  EXPECT_EQ(columns.substr(8 * 16, 16), std::string(16, '\1'));
  EXPECT_EQ(columns[9 * 16 + 5], '\5');
  // Ends of the values, behind those of the rests: differences of 5.
  EXPECT_EQ(columns.substr(18 * 16, 32), std::string(16, '\5') + std::string(16, '\0'));
}

TEST(PackedColumns, AnyBytesAreUnpackedWithoutHarm) {
  const uint64_t seed = 11;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random.Below(200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
    if (bytes.size() >= 8 && random.Below(4) != 0) {  // Else its count is hardly ever possible.
      base::Store<uint32_t>(bytes.data(), static_cast<uint32_t>(random.Below(10)));
      base::Store<uint32_t>(bytes.data() + 4, static_cast<uint32_t>(random.Below(5)));
    }
    const std::string unpacked = Unpacked(bytes);
    ASSERT_EQ(unpacked.size(), bytes.size());
    if (bytes.size() >= Block::kHeaderBytes) {
      EXPECT_EQ(Packed(unpacked), bytes);
    }
  }
}

}  // namespace
}  // namespace basalt::table
