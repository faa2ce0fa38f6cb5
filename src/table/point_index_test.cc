#include "table/point_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace basalt::table {
namespace {

std::vector<RecordPlace> Found(const PointIndex& index, uint64_t hash) {
  std::vector<RecordPlace> places;
  PointIndex::Lookup lookup(index, hash);
  for (RecordPlace place; lookup.Next(&place);) places.push_back(place);
  return places;
}

bool Finds(const PointIndex& index, uint64_t hash, RecordPlace place) {
  const std::vector<RecordPlace> places = Found(index, hash);
  return std::find(places.begin(), places.end(), place) != places.end();
}

struct IndexedKeys {
  std::vector<uint64_t> hashes;
  std::vector<RecordPlace> places;
};

IndexedKeys RandomKeys(base::Random* random, size_t count, uint32_t records_a_block) {
  IndexedKeys keys;
  for (uint32_t i = 0; i < count; ++i) {
    keys.hashes.push_back(random->Next());
    keys.places.push_back({.block = i / records_a_block, .ordinal = i % records_a_block});
  }
  return keys;
}

// The index as it is after a file.
Result<PointIndex> Reopen(std::string_view bytes) {
  PointIndex index = PointIndex::Allocate(bytes.size());
  std::memcpy(index.bytes().data(), bytes.data(), index.bytes().size());
  BASALT_RETURN_IF_ERROR(index.Validate());
  return index;
}

TEST(PointIndex, EveryKeyIsFoundWhereItLies) {
  base::Random random(1);
  for (const size_t count : {1, 2, 12, 13, 100, 1000, 50'000}) {
    for (const uint32_t records_a_block : {1u, 3u, 130u, 779u}) {
      const IndexedKeys keys = RandomKeys(&random, count, records_a_block);
      const PointIndex built = PointIndex::Build(keys.hashes, keys.places);
      ASSERT_FALSE(built.empty());
      const PointIndex index = Reopen(built.bytes()).value();
      for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(Finds(index, keys.hashes[i], keys.places[i])) << count << ", key " << i;
      }
    }
  }
}

TEST(PointIndex, ForEachNamesEachKeyOnce) {
  base::Random random(2);
  const IndexedKeys keys = RandomKeys(&random, 10'000, 130);
  const PointIndex index = PointIndex::Build(keys.hashes, keys.places);
  std::vector<RecordPlace> seen;
  index.ForEach([&](RecordPlace place) { seen.push_back(place); });
  std::sort(seen.begin(), seen.end(), [](RecordPlace a, RecordPlace b) {
    return a.block != b.block ? a.block < b.block : a.ordinal < b.ordinal;
  });
  EXPECT_EQ(seen, keys.places);
}

TEST(PointIndex, OneOfTwoHundredAndFiftySixAbsentKeysIsTakenForAnotherOrFewer) {
  base::Random random(3);
  for (const uint32_t records_a_block : {1u, 130u, 779u}) {
    const IndexedKeys keys = RandomKeys(&random, 250'000, records_a_block);
    const PointIndex index = PointIndex::Build(keys.hashes, keys.places);
    size_t taken = 0;
    constexpr size_t kAbsent = 500'000;
    for (size_t i = 0; i < kAbsent; ++i) taken += Found(index, random.Next()).size();
    EXPECT_LT(taken, kAbsent / 256);
    EXPECT_GT(taken, 0u);
  }
}

TEST(PointIndex, TakesFiveBytesAKeyOfALargeTable) {
  base::Random random(4);
  const IndexedKeys keys = RandomKeys(&random, 250'000, 130);
  const PointIndex index = PointIndex::Build(keys.hashes, keys.places);
  EXPECT_LT(index.bytes().size(), 250'000u * 505 / 100);
}

TEST(PointIndex, HundredsOfEqualHashesAreAllFound) {
  IndexedKeys keys;
  for (uint32_t i = 0; i < 400; ++i) {
    keys.hashes.push_back(i % 2 == 0 ? 0 : ~uint64_t{0});
    keys.places.push_back({.block = i, .ordinal = i});
  }
  const PointIndex index = PointIndex::Build(keys.hashes, keys.places);
  ASSERT_FALSE(index.empty());
  for (size_t i = 0; i < keys.hashes.size(); ++i) {
    EXPECT_TRUE(Finds(index, keys.hashes[i], keys.places[i])) << i;
  }
}

TEST(PointIndex, TooManyEqualHashesLeaveItEmpty) {
  const std::vector<uint64_t> hashes(10'000, 42);
  const std::vector<RecordPlace> places(10'000, RecordPlace{.block = 9, .ordinal = 9});
  EXPECT_TRUE(PointIndex::Build(hashes, places).empty());
}

TEST(PointIndex, PlacesBeyondWhatACellHoldsLeaveItEmpty) {
  const std::vector<uint64_t> hashes = {1, 2};
  const auto build = [&](RecordPlace largest) {
    return PointIndex::Build(hashes, std::vector<RecordPlace>{{0, 0}, largest});
  };
  const RecordPlace large{.block = 0xFFFF'FFFF, .ordinal = (1u << 21) - 1};
  const PointIndex index = build(large);
  ASSERT_FALSE(index.empty());
  EXPECT_TRUE(Finds(index, 2, large));
  EXPECT_TRUE(build({.block = 0xFFFF'FFFF, .ordinal = 1u << 21}).empty());
}

TEST(PointIndex, AHeaderThatCannotBeIsRefused) {
  base::Random random(5);
  const IndexedKeys keys = RandomKeys(&random, 100, 10);
  const PointIndex built = PointIndex::Build(keys.hashes, keys.places);
  const std::string bytes(built.bytes());
  const auto expect_refused = [&](size_t at, int value, StatusCode code) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(value);
    const auto index = Reopen(changed);
    ASSERT_FALSE(index) << "byte " << at << " is " << value;
    EXPECT_EQ(index.error().code(), code) << index.error().ToString();
  };
  for (const int kind : {0, 1, 3}) expect_refused(0, kind, StatusCode::kUnsupported);
  for (const int bits : {0, 24, 33, 255}) expect_refused(4, bits, StatusCode::kCorruption);
  for (const int bits : {0, 24, 33, 255}) expect_refused(5, bits, StatusCode::kCorruption);
  for (const int high : {1, 255}) expect_refused(15, high, StatusCode::kCorruption);
  expect_refused(8, 2 * bytes[8], StatusCode::kCorruption);
  EXPECT_EQ(Reopen(std::string_view(bytes).substr(0, 64)).error().code(), StatusCode::kCorruption);
  EXPECT_FALSE(Reopen(std::string_view(bytes).substr(0, bytes.size() - 64)));
}

// Any lines under any header that Validate takes: lookups end, and read nothing else.
TEST(PointIndex, LookupsInAnyBytesEnd) {
  base::Random random(6);
  for (int round = 0; round < 200; ++round) {
    const IndexedKeys keys =
        RandomKeys(&random, 1 + random.Below(200), 1 + static_cast<uint32_t>(random.Below(200)));
    PointIndex index = PointIndex::Build(keys.hashes, keys.places);
    const auto bytes = index.bytes();
    const bool all_ones = random.OneIn(4);
    for (size_t at = sizeof(PointIndex::Line); at < bytes.size(); ++at) {
      bytes[at] = static_cast<char>(all_ones ? 0xFF : random.Below(256));
    }
    ASSERT_TRUE(index.Validate().ok());
    for (int i = 0; i < 100; ++i) {
      ASSERT_LE(Found(index, random.OneIn(2) ? random.Next() : ~uint64_t{0}).size(),
                PointIndex::kSlots * PointIndex::kProbesMax);
    }
  }
}

}  // namespace
}  // namespace basalt::table
