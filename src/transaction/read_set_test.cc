#include "transaction/read_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/test_equal_hashes.h"

namespace basalt::transaction {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 30;

bool Covers(const ReadSet& reads, uint32_t keyspace, std::string_view key) {
  return reads.Covers(keyspace, key, base::Hash(key));
}

/// What was read, as a list that is searched from end to end.
struct ReadModel {
  struct Range {
    uint32_t keyspace;
    std::string begin;
    std::optional<std::string> end;
  };
  std::vector<Range> ranges;

  void AddKey(uint32_t keyspace, const std::string& key) {
    ranges.push_back({keyspace, key, key + '\0'});
  }
  bool CoversSomeOf(uint32_t keyspace, std::string_view begin, std::string_view end) const {
    return std::ranges::any_of(ranges, [&](const Range& range) {
      return range.keyspace == keyspace && range.begin < end && (!range.end || *range.end > begin);
    });
  }
  bool Covers(uint32_t keyspace, const std::string& key) const {
    return CoversSomeOf(keyspace, key, key + '\0');
  }
};

/// Few keys, some a prefix of others.
std::string RandomKey(base::Random* random) {
  std::string key;
  for (uint64_t left = random->Below(4); left > 0; --left) {
    key.push_back(static_cast<char>(random->OneIn(8) ? 0xFF : 'a' + random->Below(5)));
  }
  return key;
}

void AddSomething(base::Random* random, ReadSet* reads, ReadModel* model) {
  const auto keyspace = static_cast<uint32_t>(random->Below(3));
  const std::string key = RandomKey(random);
  if (!random->OneIn(4)) {
    reads->AddKey(keyspace, key);
    return model->AddKey(keyspace, key);
  }
  std::optional<std::string> end;
  if (!random->OneIn(6)) end = RandomKey(random);
  reads->AddRange(keyspace, key, end);
  if (!end || key < *end) model->ranges.push_back({keyspace, key, end});
}

/// `may_cover_more`: what was not read may be covered too.
void Compare(base::Random* random, const ReadSet& reads, const ReadModel& model,
             bool may_cover_more) {
  for (int i = 0; i < 200; ++i) {
    const auto keyspace = static_cast<uint32_t>(random->Below(4));
    const std::string key = RandomKey(random);
    const bool covers = Covers(reads, keyspace, key);
    if (model.Covers(keyspace, key)) {
      ASSERT_TRUE(covers);
    } else if (!may_cover_more) {
      ASSERT_FALSE(covers);
    }
    const std::string end = RandomKey(random);
    if (end <= key) continue;
    const bool covers_some = reads.CoversSomeOf(keyspace, key, end);
    if (model.CoversSomeOf(keyspace, key, end)) {
      ASSERT_TRUE(covers_some);
    } else if (!may_cover_more) {
      ASSERT_FALSE(covers_some);
    }
  }
}

void CheckRangesAreNormal(const ReadSet& reads) {
  for (size_t i = 1; i < reads.ranges().size(); ++i) {
    const ReadRange& before = reads.ranges()[i - 1];
    const ReadRange& range = reads.ranges()[i];
    ASSERT_LE(before.keyspace, range.keyspace);
    if (before.keyspace == range.keyspace) {
      ASSERT_TRUE(before.end && *before.end < range.begin);
    }
  }
}

TEST(ReadSet, CoversWhatWasReadAndNothingElse) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    ReadSet reads(kNoLimit);
    ReadModel model;
    for (uint64_t left = random.Below(60); left > 0; --left) {
      AddSomething(&random, &reads, &model);
    }
    reads.Normalise();
    ASSERT_NO_FATAL_FAILURE(CheckRangesAreNormal(reads));
    ASSERT_NO_FATAL_FAILURE(Compare(&random, reads, model, /*may_cover_more=*/false));
  }
}

TEST(ReadSet, MissesNothingWhenItsMemoryIsLimited) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    ReadSet reads(random.Below(2000));
    ReadModel model;
    for (uint64_t left = random.Below(200); left > 0; --left) {
      AddSomething(&random, &reads, &model);
    }
    reads.Normalise();
    ASSERT_NO_FATAL_FAILURE(CheckRangesAreNormal(reads));
    ASSERT_NO_FATAL_FAILURE(Compare(&random, reads, model, /*may_cover_more=*/true));
  }
}

TEST(ReadSet, StaysWithinItsMemoryLimit) {
  constexpr uint64_t kLimit = 16 << 10;
  ReadSet reads(kLimit);
  for (uint64_t i = 0; i < 10'000; ++i) {
    const std::string key = std::to_string(i * 7919 % 10'000);
    reads.AddKey(static_cast<uint32_t>(i % 3), key);
    if (i % 5 == 0) reads.AddRange(7, key, key + "x");
    ASSERT_LE(reads.memory_bytes(), kLimit + 4096) << i;
  }
  // Having become coarse, it remembers single keys again.
  ReadSet again(kLimit);
  for (int i = 0; i < 1000; ++i) again.AddKey(0, "m" + std::to_string(i));
  ASSERT_FALSE(again.ranges().empty());
  const size_t keys = again.keys().size();
  again.AddKey(0, "zz");
  EXPECT_EQ(again.keys().size(), keys + 1);
}

TEST(ReadSet, HoldsEachKeyOnce) {
  ReadSet reads(kNoLimit);
  for (int i = 0; i < 1000; ++i) reads.AddKey(0, std::to_string(i % 20));
  EXPECT_EQ(reads.keys().size(), 20u);
  reads.AddKey(1, "0");
  EXPECT_EQ(reads.keys().size(), 21u);
}

std::vector<std::string> Numbers(size_t count) {
  std::vector<std::string> keys(count);
  for (size_t i = 0; i < count; ++i) keys[i] = std::to_string(i);
  return keys;
}

/// Of a set that reads the first half of the keys, and is asked for all of them.
std::chrono::steady_clock::duration LeastTime(const std::vector<std::string>& keys) {
  const size_t count = keys.size() / 2;
  auto least = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    ReadSet reads(kNoLimit);
    for (size_t i = 0; i < count; ++i) reads.AddKey(0, keys[i]);
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(Covers(reads, 0, keys[i]), i < count);
    EXPECT_EQ(reads.keys().size(), count);
    least = std::min(least, std::chrono::steady_clock::now() - begin);
  }
  return least;
}

// Anybody can make such keys. With a table that probes past all of them, they take 1,000 times as
// long as others.
TEST(ReadSet, KeysOfOneHashTakeLittleMoreTimeThanOthers) {
  constexpr size_t kKeys = 40'000;
  EXPECT_LT(LeastTime(base::KeysOfOneHash(kKeys)), 50 * LeastTime(Numbers(kKeys)));
}

// Hashes that agree in the bits that choose a slot. Probing past all of them takes more than
// 100 times as long.
TEST(ReadSet, KeysOfOneSlotTakeLittleMoreTimeThanOthers) {
  constexpr size_t kKeys = 40'000;
  constexpr uint64_t kSlots = 65'536;
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < kKeys; ++i) {
    std::string key = std::to_string(i);
    if (base::Hash(key) % kSlots < kSlots / 32) keys.push_back(std::move(key));
  }
  EXPECT_LT(LeastTime(keys), 20 * LeastTime(Numbers(kKeys)));
}

TEST(ReadSet, RemembersTheEarliestExpiry) {
  ReadSet reads(kNoLimit);
  EXPECT_EQ(reads.earliest_expiry_ms(), 0u);
  for (const uint64_t expiry : {0, 500, 300, 0, 400}) reads.AddExpiry(expiry);
  EXPECT_EQ(reads.earliest_expiry_ms(), 300u);
}

TEST(ReadSet, FindsAKeyspaceOfKeysAndOfRanges) {
  ReadSet reads(kNoLimit);
  reads.AddKey(3, "k");
  reads.AddRange(5, "a", std::nullopt);
  const auto is = [](uint32_t wanted) { return [=](uint32_t id) { return id == wanted; }; };
  ASSERT_NE(reads.FindKeyspace(is(3)), nullptr);
  ASSERT_NE(reads.FindKeyspace(is(5)), nullptr);
  EXPECT_EQ(*reads.FindKeyspace(is(5)), 5u);
  EXPECT_EQ(reads.FindKeyspace(is(4)), nullptr);
}

}  // namespace
}  // namespace basalt::transaction
