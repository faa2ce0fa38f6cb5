#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "base/random.h"
#include "cache/test_cache.h"

// Expiry, on a clock that the tests move.

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;

TEST(CacheExpiry, IsExactToTheMillisecond) {
  SimCache cache;
  constexpr uint64_t kTimes[] = {
      1, 2, 7, 8, 9, 255, 256, 16'384, 1'000'000, 100'000'000, 5'000'000'000};
  for (const uint64_t ttl_ms : kTimes) {
    for (const size_t size : {10, 1000}) {
      const std::string value(size, 'v');
      ASSERT_TRUE(cache.Put("key", value, static_cast<int64_t>(ttl_ms)).ok());
      cache.AdvanceMillis(ttl_ms - 1);
      EXPECT_EQ(cache.Get("key"), value) << ttl_ms;
      cache.AdvanceMillis(1);
      EXPECT_EQ(cache.Get("key"), "<absent>") << ttl_ms;
    }
  }
}

TEST(CacheExpiry, EveryKindOfReadAndWriteSeesIt) {
  SimCache cache;
  const std::vector<std::string_view> keys = {"key"};
  std::vector<MaybeValue> values(1);
  const auto put_and_pass = [&] {
    ASSERT_TRUE(cache.Put("key", "value", 5).ok());
    cache.AdvanceMillis(5);
  };
  put_and_pass();
  EXPECT_FALSE(cache->Get<false>("key"));
  put_and_pass();
  ASSERT_TRUE(cache->MultiGet(keys, values).ok());
  EXPECT_FALSE(values[0]);
  put_and_pass();
  EXPECT_FALSE(cache->TakeBytes("key"));
  put_and_pass();
  EXPECT_FALSE(cache->Delete("key"));
  put_and_pass();
  EXPECT_FALSE(cache.Touch("key", 1000));
  put_and_pass();
  EXPECT_FALSE(cache->PutBytes("key", "new", {}, Condition::kIfPresent).value());
  put_and_pass();
  EXPECT_TRUE(cache->PutBytes("key", "new", {}, Condition::kIfAbsent).value());
  put_and_pass();
  int visits = 0;
  const Status visited = cache->ForEach([&](const Entry&) { return ++visits > 0; });
  EXPECT_TRUE(visited.ok());
  EXPECT_EQ(visits, 0);
}

TEST(CacheExpiry, TheDefaultIsForWhatHasNoTimeOfItsOwn) {
  SimCache cache({.default_ttl = milliseconds(100)});
  ASSERT_TRUE(cache->PutBytes("default", "value", {}, Condition::kAlways));
  ASSERT_TRUE(cache.Put("never", "value", 0).ok());
  ASSERT_TRUE(cache.Put("short", "value", 10).ok());
  cache.AdvanceMillis(10);
  EXPECT_EQ(cache.Get("short"), "<absent>");
  cache.AdvanceMillis(89);
  EXPECT_EQ(cache.Get("default"), "value");
  cache.AdvanceMillis(1);
  EXPECT_EQ(cache.Get("default"), "<absent>");
  EXPECT_EQ(cache.Get("never"), "value");
}

TEST(CacheExpiry, TouchExtendsShortensSetsAndRemovesIt) {
  SimCache cache;
  for (const std::string_view key : {"extended", "shortened", "removed"}) {
    ASSERT_TRUE(cache.Put(key, "value", 1000).ok());
  }
  ASSERT_TRUE(cache.Put("set", "value", 0).ok());
  EXPECT_TRUE(cache.Touch("extended", 2000));
  EXPECT_TRUE(cache.Touch("shortened", 500));
  EXPECT_TRUE(cache.Touch("removed", 0));
  EXPECT_TRUE(cache.Touch("set", 700));
  const auto alive = [&](std::string_view key) { return cache->Get<false>(key).has_value(); };
  cache.AdvanceMillis(499);
  EXPECT_TRUE(alive("shortened"));
  cache.AdvanceMillis(1);
  EXPECT_FALSE(alive("shortened"));
  cache.AdvanceMillis(199);
  EXPECT_TRUE(alive("set"));
  cache.AdvanceMillis(1);
  EXPECT_FALSE(alive("set"));
  cache.AdvanceMillis(1299);
  EXPECT_TRUE(alive("extended"));
  cache.AdvanceMillis(1);
  EXPECT_FALSE(alive("extended"));
  cache.AdvanceMillis(1'000'000'000);
  EXPECT_TRUE(alive("removed"));
}

TEST(CacheExpiry, AReplacementTakesItsOwnTime) {
  SimCache cache;
  ASSERT_TRUE(cache.Put("longer", "old", 10).ok());
  ASSERT_TRUE(cache.Put("longer", "new", 100).ok());
  ASSERT_TRUE(cache.Put("shorter", "old", 100).ok());
  ASSERT_TRUE(cache.Put("shorter", "new", 10).ok());
  ASSERT_TRUE(cache.Put("never", "old", 10).ok());
  ASSERT_TRUE(cache.Put("never", "new", 0).ok());
  cache.AdvanceMillis(10);
  EXPECT_EQ(cache.Get("longer"), "new");
  EXPECT_EQ(cache.Get("shorter"), "<absent>");
  cache.AdvanceMillis(90);
  EXPECT_EQ(cache.Get("longer"), "<absent>");
  EXPECT_EQ(cache.Get("never"), "new");
}

TEST(CacheExpiry, AMillionTouchesOfOneKeyGrowNothing) {
  SimCache cache;
  ASSERT_TRUE(cache.Put("key", "value", 1000).ok());
  const uint64_t before = cache->GetStats().bytes;
  for (int i = 0; i < 1'000'000; ++i) {
    ASSERT_TRUE(cache.Touch("key", 1000 + i % 7));
    if (i % 16 == 0) cache.AdvanceMillis(1);
  }
  EXPECT_EQ(cache->GetStats().bytes, before);
  EXPECT_EQ(cache->GetStats().entries, 1u);
}

TEST(CacheExpiry, AMillionPutsOfOneKeyGrowNothing) {
  SimCache cache({.shards = 1});
  const auto loop = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(cache.Put("key", "value", 3'600'000).ok());
      if (i % 16 == 0) cache.AdvanceMillis(1);
    }
  };
  loop(1000);
  const uint64_t before = cache->GetStats().bytes;
  loop(1'000'000);
  EXPECT_LE(cache->GetStats().bytes, before + (16 << 10));
}

TEST(CacheExpiry, AMillionPutsAndErasuresOfOneKeyStayBounded) {
  SimCache cache({.shards = 1});
  uint64_t bytes_max = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    ASSERT_TRUE(cache.Put("key", "value", 3'600'000).ok());
    ASSERT_TRUE(cache->Delete("key"));
    if (i % 1000 == 0) bytes_max = std::max(bytes_max, cache->GetStats().bytes);
    if (i % 16 == 0) cache.AdvanceMillis(1);
  }
  EXPECT_LE(bytes_max, uint64_t{128} << 10);
}

// Puts keys that do not expire until what has expired is swept; gives how many it took.
int PutsUntilSwept(SimCache* cache, uint64_t entries, int puts_max) {
  for (int puts = 0; puts < puts_max; ++puts) {
    if ((*cache)->GetStats().entries <= entries) return puts;
    EXPECT_TRUE(cache->Put("sweeper", "value", 0).ok());
  }
  return puts_max;
}

TEST(CacheExpiry, WhatHasExpiredIsSweptByLaterWritersUnread) {
  for (const uint64_t ttl_ms : {100, 10'000, 600'000, 10'000'000, 200'000'000}) {
    SimCache cache({.shards = 1});
    constexpr uint64_t kEntries = 4000;
    for (uint64_t i = 0; i < kEntries; ++i) {
      ASSERT_TRUE(cache.Put(std::to_string(i), "value", static_cast<int64_t>(ttl_ms)).ok());
    }
    ASSERT_TRUE(cache.Put("stays", "value", 0).ok());
    const uint64_t bytes_full = cache->GetStats().bytes;
    EXPECT_EQ(cache->GetStats().entries, kEntries + 1);
    // In steps, as a cache in use would see it.
    for (int step = 0; step < 64; ++step) {
      cache.AdvanceMillis(ttl_ms / 64 + 1);
      ASSERT_TRUE(cache.Put("sweeper", "value", 0).ok());
    }
    cache.AdvanceMillis(512);
    // Four records a put, each once for each of the wheel's levels, and puts for it to turn.
    const int puts_max = static_cast<int>(4 * kEntries / 4 + ttl_ms / 16'384 + 64);
    EXPECT_LT(PutsUntilSwept(&cache, 2, puts_max), puts_max) << ttl_ms;
    const CacheStats stats = cache->GetStats();
    EXPECT_EQ(stats.entries, 2u) << ttl_ms;
    EXPECT_EQ(stats.expired, kEntries);
    EXPECT_LT(stats.bytes, bytes_full);
    EXPECT_EQ(cache.Get("stays"), "value");
  }
}

TEST(CacheExpiry, WhatWasTouchedIsSweptAtItsNewTimeOnly) {
  SimCache cache({.shards = 1});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache.Put(std::to_string(i), "value", 10'000).ok());
  }
  cache.AdvanceMillis(5000);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(cache.Touch(std::to_string(i), 60'000));
  cache.AdvanceMillis(6000);
  EXPECT_LT(PutsUntilSwept(&cache, 501, 400), 400);
  EXPECT_EQ(PutsUntilSwept(&cache, 500, 200), 200) << "the rest stays";
  cache.AdvanceMillis(55'000);
  EXPECT_LT(PutsUntilSwept(&cache, 1, 400), 400);
  EXPECT_EQ(cache->GetStats().expired, 1000u);
}

TEST(CacheExpiry, ALongPauseIsMadeUpForInABoundedNumberOfPuts) {
  SimCache cache({.shards = 1});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache.Put(std::to_string(i), "value", 1 + i * 3600).ok());
  }
  cache.AdvanceMillis(uint64_t{24} * 3'600'000);
  // A put turns the wheel by 16 s at least.
  EXPECT_LT(PutsUntilSwept(&cache, 1, 6000), 6000);
}

TEST(CacheExpiry, ExpiredEntriesMakeRoomInAFullCache) {
  SimCache cache({.capacity_bytes = 512 << 10, .shards = 1});
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(cache.Put("short" + std::to_string(i), std::string(100, 'v'), 1000).ok());
  }
  EXPECT_GT(cache->GetStats().evicted, 0u);
  cache.AdvanceMillis(2000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache.Put("new" + std::to_string(i), std::string(100, 'v'), 0).ok());
  }
  EXPECT_GT(cache->GetStats().expired, 1000u);
  int lost = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!cache->Get<false>("new" + std::to_string(i))) ++lost;
  }
  EXPECT_LT(lost, 50) << "what is alive goes only where its buckets are full";
}

TEST(CacheExpiry, SmallShardsHoldMostOfWhatTheyHoldWithoutIt) {
  const auto entries_of = [](uint32_t shards, bool expires) {
    const auto cache = NewCache({.capacity_bytes = 1 << 20, .shards = shards});
    base::Random random(shards);
    for (int i = 0; i < 100'000; ++i) {
      const int64_t ttl_ms = expires ? 60'000 + static_cast<int64_t>(random.Below(86'400'000)) : 0;
      EXPECT_TRUE(
          cache->Put("key" + std::to_string(i), std::string(50, 'v'), {.ttl = milliseconds(ttl_ms)})
              .ok());
    }
    return cache->GetStats().entries;
  };
  for (const uint32_t shards : {1, 16, 64}) {
    EXPECT_GE(entries_of(shards, true), entries_of(shards, false) * 3 / 5) << shards << " shards";
  }
}

TEST(CacheExpiry, OnRemoveHearsOfWhatIsSweptUnread) {
  uint64_t heard = 0;
  CacheOptions options{.shards = 1};
  options.on_remove = [&](std::string_view, std::string_view value, Removal reason) {
    if (reason == Removal::kReplaced) return;
    EXPECT_EQ(reason, Removal::kExpired);
    EXPECT_EQ(value, "value");
    ++heard;
  };
  SimCache cache(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(cache.Put(std::to_string(i), "value", 100).ok());
  cache.AdvanceMillis(1000);
  PutsUntilSwept(&cache, 1, 1000);
  EXPECT_EQ(heard, 100u);
}

}  // namespace
}  // namespace basalt::cache
