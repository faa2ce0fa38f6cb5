#include "basalt/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_update.h"
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;

constexpr CachePutOptions kNegativeTtl{.ttl = milliseconds(-1)};

// ---- Creation ----

void ExpectRefused(CacheOptions options, std::string_view field) {
  const Result<std::unique_ptr<Cache>> cache = Cache::Create(std::move(options));
  ASSERT_FALSE(cache) << field;
  EXPECT_EQ(cache.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(cache.error().message().find(field), std::string_view::npos)
      << cache.error().ToString();
}

TEST(Cache, OptionsOutOfRangeAreRefusedByName) {
  ExpectRefused({.capacity_bytes = 0}, "capacity_bytes");
  ExpectRefused({.capacity_bytes = (64 << 10) - 1}, "capacity_bytes");
  ExpectRefused({.shards = 3}, "shards");
  ExpectRefused({.shards = 256}, "shards");
  ExpectRefused({.default_ttl = milliseconds(-1)}, "default_ttl");
  ExpectRefused({.eviction = static_cast<Eviction>(2)}, "eviction");
  ExpectRefused({.capacity_bytes = 64 << 10, .shards = 128}, "capacity_bytes");
}

TEST(Cache, AnyPowerOfTwoOfShardsKeepsKeysApart) {
  for (uint32_t shards = 1; shards <= 128; shards *= 2) {
    const auto cache = NewCache({.shards = shards});
    EXPECT_EQ(cache->GetStats().shards, shards);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(cache->Put("key" + std::to_string(i), std::to_string(i)).ok());
    }
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(TextOf(cache->Get("key" + std::to_string(i))), std::to_string(i));
    }
  }
}

TEST(Cache, TheSmallestCacheServes) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    const auto cache = NewCache({.capacity_bytes = 64 << 10, .eviction = eviction});
    int lost = 0;
    for (int i = 0; i < 10'000; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(cache->Put(key, "value").ok()) << i;
      // A full cache may evict what came last, but hardly ever does.
      if (!cache->Get(key)) ++lost;
    }
    EXPECT_LT(lost, 100);
    EXPECT_GT(cache->GetStats().entries, 300u);
    EXPECT_LE(cache->GetStats().bytes, 64u << 10);
  }
}

// Where keys come back soon after their eviction, CLOCK lets new ones begin higher. S3-FIFO once
// did so too: new keys then passed its queue by, and a scan went through the whole cache.
TEST(Cache, S3FifoSendsNewKeysThroughItsQueueWhateverCameBefore) {
  const auto cache =
      NewCache({.capacity_bytes = 1 << 20, .shards = 1, .eviction = Eviction::kS3Fifo});
  const std::string value(200, 'v');
  int next = 0;
  const auto read_through = [&](int i) {
    const std::string key = std::to_string(i);
    if (!cache->Get(key)) {
      ASSERT_TRUE(cache->Put(key, value).ok());
    }
  };
  for (; next < 10'000; ++next) read_through(next);
  const auto entries = static_cast<int>(cache->GetStats().entries);
  // Keys that left the queue a little while ago.
  for (int end = next + 4 * entries; next < end; ++next) {
    read_through(next);
    read_through(next - entries / 5);
  }
  const auto hot = [](int i) { return "hot" + std::to_string(i); };
  const int hot_keys = entries / 4;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < hot_keys; ++i) {
      if (!cache->Get(hot(i))) {
        ASSERT_TRUE(cache->Put(hot(i), value).ok());
      }
    }
  }
  for (int end = next + 20 * entries; next < end; ++next) read_through(next);
  int left = 0;
  for (int i = 0; i < hot_keys; ++i) left += cache->Peek(hot(i)) ? 1 : 0;
  EXPECT_GT(left, hot_keys / 10 * 9);
}

// ---- Keys and values ----

TEST(Cache, KeysOfAllSizesAndBytesAreApart) {
  const auto cache = NewCache();
  const std::string longest(65'535, 'k');
  const std::vector<std::string> keys = {"",
                                         std::string(1, '\0'),
                                         std::string(2, '\0'),
                                         std::string("a\0b", 3),
                                         "a",
                                         "ab",
                                         std::string(100, 'k'),
                                         longest};
  for (const std::string& key : keys) ASSERT_TRUE(cache->Put(key, "of " + key).ok());
  for (const std::string& key : keys) EXPECT_EQ(TextOf(cache->Get(key)), "of " + key);
  EXPECT_EQ(cache->GetStats().entries, keys.size());
  for (const std::string& key : keys) EXPECT_TRUE(cache->Delete(key));
  EXPECT_EQ(cache->GetStats().entries, 0u);
}

TEST(Cache, ViewsOfNothingAreEmptyKeysAndValues) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put(std::string_view(), std::string_view()).ok());
  EXPECT_EQ(TextOf(cache->Get("")), "");
  EXPECT_EQ(TextOf(cache->Peek(std::string_view())), "");
  EXPECT_TRUE(cache->Touch(std::string_view(), milliseconds(0)));
  EXPECT_FALSE(cache->PutIfAbsent(std::string_view(), "full").value());
  EXPECT_EQ(TextOf(cache->Take(std::string_view())), "");
  EXPECT_EQ(TextOf(cache->Get("")), "<absent>");
}

TEST(Cache, ValuesOfAllSizesComeBackWhole) {
  const auto cache = NewCache();
  for (const size_t size : {0, 1, 111, 112, 113, 488, 489, 4096, 1 << 20, 20 << 20}) {
    const std::string value = size < 8 ? std::string(size, 'v') : StampedValue(1, size, size);
    ASSERT_TRUE(cache->Put("key", value).ok()) << size;
    const MaybeValue got = cache->Get("key");
    ASSERT_TRUE(got) << size;
    EXPECT_TRUE(got->view() == value) << size;
    EXPECT_LE(cache->GetStats().bytes, cache->GetStats().capacity_bytes);
  }
}

TEST(Cache, AKeyThatIsTooLongIsRefusedByEveryPut) {
  const auto cache = NewCache();
  const std::string key(65'536, 'k');
  const Status put = cache->Put(key, "value");
  EXPECT_EQ(put.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(put.message().find("65536"), std::string_view::npos) << put.ToString();
  EXPECT_EQ(cache->PutIfAbsent(key, "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Replace(key, "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Allocate(key, 1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->GetOrCompute(key, [] { return std::string("computed"); }).status().code(),
            StatusCode::kInvalidArgument);
  const auto set = [](auto) -> Result<std::optional<std::string>> { return "new"; };
  EXPECT_EQ(cache->Update(key, base::ByValue(set)).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(cache->Get(key));
  EXPECT_FALSE(cache->Peek(key));
  EXPECT_FALSE(cache->Take(key));
  EXPECT_FALSE(cache->Delete(key));
  EXPECT_FALSE(cache->Touch(key, milliseconds(1)));
}

TEST(Cache, ANegativeTtlIsRefusedAndTheOldValueStays) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "old").ok());
  const Status put = cache->Put("key", "new", kNegativeTtl);
  EXPECT_EQ(put.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(put.message().find("ttl"), std::string_view::npos) << put.ToString();
  EXPECT_EQ(cache->PutIfAbsent("other", "", kNegativeTtl).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Replace("key", "", kNegativeTtl).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Allocate("key", 1, kNegativeTtl).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(cache->Touch("key", milliseconds(-1)));
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
}

TEST(Cache, AValueThatIsTooLongIsRefusedAndTheOldOneStays) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "old").ok());
  // It is refused before it is read.
  const std::string_view too_long("v", uint64_t{1} << 32);
  EXPECT_EQ(cache->Put("key", too_long).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
}

TEST(Cache, TheLongestTtlIsTaken) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "value", {.ttl = milliseconds::max()}).ok());
  EXPECT_EQ(TextOf(cache->Get("key")), "value");
  EXPECT_TRUE(cache->Touch("key", milliseconds::max()));
  EXPECT_EQ(TextOf(cache->Get("key")), "value");
}

TEST(Cache, AValueLargerThanTheCacheIsRefusedAndTheOldOneErased) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(cache->Put("key", "old").ok());
  ASSERT_TRUE(cache->Put("other", "stays").ok());
  const std::string large((1 << 20) + 1, 'v');
  const Status put = cache->Put("key", large);
  EXPECT_EQ(put.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(put.message().find(std::to_string(1 << 20)), std::string_view::npos) << put.ToString();
  EXPECT_FALSE(cache->Get("key"));
  EXPECT_EQ(TextOf(cache->Get("other")), "stays");
  EXPECT_EQ(cache->GetStats().refused, 1u);
  EXPECT_EQ(cache->GetStats().erased, 1u);
}

// ---- Conditional puts, Take, Delete, Touch ----

TEST(Cache, PutIfAbsentAndReplaceAreEachOthersOpposite) {
  const auto cache = NewCache();
  EXPECT_FALSE(cache->Replace("key", "early").value());
  EXPECT_EQ(TextOf(cache->Get("key")), "<absent>");
  EXPECT_TRUE(cache->PutIfAbsent("key", "first").value());
  EXPECT_FALSE(cache->PutIfAbsent("key", "second").value());
  EXPECT_EQ(TextOf(cache->Get("key")), "first");
  EXPECT_TRUE(cache->Replace("key", "third").value());
  EXPECT_EQ(TextOf(cache->Get("key")), "third");
}

TEST(Cache, PutIfAbsentOfAPresentKeyNeedsNoRoom) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(cache->Put("key", "old").ok());
  const std::string large(2 << 20, 'v');
  EXPECT_FALSE(cache->PutIfAbsent("key", large).value());
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
  EXPECT_EQ(cache->PutIfAbsent("other", large).status().code(), StatusCode::kResourceExhausted);
}

TEST(Cache, TakeAndEraseRemoveOnce) {
  const auto cache = NewCache();
  for (const size_t size : {10, 500, 50'000}) {
    const std::string value(size, 'v');
    ASSERT_TRUE(cache->Put("key", value).ok());
    EXPECT_EQ(TextOf(cache->Take("key")), value);
    EXPECT_EQ(TextOf(cache->Take("key")), "<absent>");
    ASSERT_TRUE(cache->Put("key", value).ok());
    EXPECT_TRUE(cache->Delete("key"));
    EXPECT_FALSE(cache->Delete("key"));
  }
}

TEST(Cache, TouchTellsWhetherTheKeyIsThere) {
  const auto cache = NewCache();
  EXPECT_FALSE(cache->Touch("key", milliseconds(1000)));
  ASSERT_TRUE(cache->Put("key", "value").ok());
  EXPECT_TRUE(cache->Touch("key", milliseconds(1000)));
  EXPECT_TRUE(cache->Touch("key", milliseconds(0)));
  EXPECT_EQ(TextOf(cache->Get("key")), "value");
}

TEST(Cache, ExpiryIsSeenOnTheMachinesClock) {
  const auto cache = NewCache({.default_ttl = milliseconds(30)});
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(cache->Put("default", "value").ok());
  ASSERT_TRUE(cache->Put("never", "value", {.ttl = milliseconds(0)}).ok());
  ASSERT_TRUE(cache->Put("long", "value", {.ttl = std::chrono::hours(1)}).ok());
  while (cache->Get("default")) std::this_thread::yield();
  const auto lived = std::chrono::steady_clock::now() - before;
  EXPECT_GE(lived, milliseconds(30));
  EXPECT_LT(lived, milliseconds(5000));
  EXPECT_TRUE(cache->Get("never"));
  EXPECT_TRUE(cache->Get("long"));
}

// ---- Many at once ----

TEST(Cache, MultiGetAnswersEachKeyInItsPlace) {
  const auto cache = NewCache();
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    keys.push_back("key" + std::to_string(i));
    const size_t size = i % 5 == 0 ? 1000 : 10;
    if (i % 3 != 0) {
      ASSERT_TRUE(cache->Put(keys.back(), std::string(size, static_cast<char>('0' + i % 10))).ok());
    }
  }
  for (const size_t count : {0, 1, 15, 16, 17, 100}) {
    const std::vector<std::string_view> asked(keys.begin(),
                                              keys.begin() + static_cast<ptrdiff_t>(count));
    std::vector<MaybeValue> values(count);
    for (MaybeValue& value : values) value.emplace(Value::Copy("left over"));
    const CacheStats before = cache->GetStats();
    ASSERT_TRUE(cache->MultiGet(asked, values).ok());
    uint64_t hits = 0;
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(TextOf(values[i]), TextOf(cache->Peek(keys[i]))) << i;
      ASSERT_EQ(values[i].has_value(), i % 3 != 0) << i;
      hits += values[i].has_value() ? 1 : 0;
    }
    EXPECT_EQ(cache->GetStats().hits - before.hits, hits);
    EXPECT_EQ(cache->GetStats().misses - before.misses, count - hits);
  }
}

TEST(Cache, MultiGetRefusesSpansOfDifferentLength) {
  const auto cache = NewCache();
  const std::array<std::string_view, 2> keys = {"a", "b"};
  std::array<MaybeValue, 3> values;
  EXPECT_EQ(cache->MultiGet(keys, values).code(), StatusCode::kInvalidArgument);
}

TEST(Cache, ForEachVisitsEveryEntryOnce) {
  const auto cache = NewCache({.shards = 4});
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(cache->Put(key, std::to_string(i * 7)).ok());
    expected[key] = std::to_string(i * 7);
  }
  std::map<std::string, std::string> seen;
  const Status status = cache->ForEach([&](std::string_view key, std::string_view value) {
    EXPECT_TRUE(seen.emplace(key, value).second) << key;
    return true;
  });
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(seen == expected);
}

TEST(Cache, ForEachStopsWhenItIsTold) {
  const auto cache = NewCache();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(cache->Put(std::to_string(i), "value").ok());
  int visits = 0;
  EXPECT_TRUE(cache->ForEach([&](auto, auto) { return ++visits < 10; }).ok());
  EXPECT_EQ(visits, 10);
}

TEST(Cache, ForEachVisitsWhatStaysOnceWhileItsVisitorChangesTheRest) {
  const auto cache = NewCache();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(cache->Put("stays" + std::to_string(i), "value").ok());
    ASSERT_TRUE(cache->Put("goes" + std::to_string(i), std::string(200, 'v')).ok());
  }
  std::multiset<std::string> seen;
  int added = 0;
  const Status status = cache->ForEach([&](std::string_view key, std::string_view value) {
    seen.emplace(key);
    EXPECT_EQ(value.size(), key.starts_with("stays") ? 5u : 200u);
    if (!key.starts_with("stays")) cache->Delete(key);
    // Makes segments split under the visit.
    for (int i = 0; added < 20'000 && i < 10; ++i) {
      EXPECT_TRUE(cache->Put("comes" + std::to_string(added++), std::string(200, 'v')).ok());
    }
    return true;
  });
  ASSERT_TRUE(status.ok());
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(seen.count("stays" + std::to_string(i)), 1u) << i;
  for (const std::string& key : seen) ASSERT_EQ(seen.count(key), 1u) << key;
}

TEST(Cache, ForEachVisitsNothingTwiceWhileTheIndexShrinks) {
  const auto cache = NewCache({.capacity_bytes = 16 << 20, .shards = 2});
  for (int i = 0; i < 150'000; ++i) ASSERT_TRUE(cache->Put(std::to_string(i), "value").ok());
  std::set<std::string> visited;
  uint64_t capacity = 16 << 20;
  ASSERT_TRUE(cache
                  ->ForEach([&](std::string_view key, std::string_view) {
                    EXPECT_TRUE(visited.emplace(key).second) << key;
                    if (visited.size() % 1000 == 0 && capacity > (1 << 20)) {
                      capacity = capacity * 3 / 4;
                      EXPECT_TRUE(cache->SetCapacity(capacity).ok());
                    }
                    return true;
                  })
                  .ok());
  EXPECT_GT(visited.size(), 5000u);
}

TEST(Cache, ClearRemovesAllAndTheCacheGoesOn) {
  const auto cache = NewCache();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5000; ++i) {
      ASSERT_TRUE(cache->Put(std::to_string(i), std::string(static_cast<size_t>(i), 'v')).ok());
    }
    const uint64_t filled = cache->GetStats().bytes;
    cache->Clear();
    const CacheStats stats = cache->GetStats();
    EXPECT_EQ(stats.entries, 0u);
    EXPECT_LT(stats.bytes, filled / 4);
    for (int i = 0; i < 5000; ++i) ASSERT_FALSE(cache->Get(std::to_string(i))) << i;
  }
}

}  // namespace
}  // namespace basalt::cache
