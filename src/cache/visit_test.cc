#include "cache/visit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/epoch.h"
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

std::string Visited(const Cache& cache, std::string_view key) {
  std::string seen = "<absent>";
  const bool found = Visit(cache, key, [&](const VisitedValue& visited) { seen = visited.view(); });
  EXPECT_EQ(found, seen != "<absent>");
  return seen;
}

TEST(Visit, SeesWhatGetGives) {
  const auto cache = NewCache();
  for (const size_t key_bytes : {1, 4, 8, 9, 16, 17, 300}) {
    for (const size_t value_bytes : {0, 1, 112, 113, 20'000}) {
      const std::string key(key_bytes, 'k');
      const std::string value(value_bytes, 'v');
      EXPECT_EQ(Visited(*cache, key), "<absent>");
      ASSERT_TRUE(cache->Put(key, value).ok());
      EXPECT_EQ(Visited(*cache, key), value);
      // Also inside an epoch, where the short way in is closed.
      {
        const base::EpochGuard guard;
        EXPECT_EQ(Visited(*cache, key), value);
      }
      ASSERT_TRUE(cache->Delete(key));
      EXPECT_EQ(Visited(*cache, key), "<absent>");
    }
  }
}

TEST(Visit, CountsAsGetDoes) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "value").ok());
  EXPECT_EQ(Visited(*cache, "key"), "value");
  EXPECT_EQ(Visited(*cache, "other"), "<absent>");
  const base::EpochGuard guard;
  EXPECT_EQ(Visited(*cache, "key"), "value");
  EXPECT_EQ(Visited(*cache, "other"), "<absent>");
  EXPECT_EQ(cache->GetStats().hits, 2u);
  EXPECT_EQ(cache->GetStats().misses, 2u);
}

TEST(Visit, SeesNothingThatHasExpired) {
  SimCache cache;
  ASSERT_TRUE(cache.Put("key", "value", 1000).ok());
  const auto is_there = [&] { return cache->Visit("key", [](Shard*, Entry*) noexcept {}); };
  EXPECT_TRUE(is_there());
  cache.AdvanceMillis(1001);
  EXPECT_FALSE(is_there());
}

TEST(Visit, WhatIsKeptStaysAfterTheVisitAndTheEntry) {
  const auto cache = NewCache();
  const std::string large(1000, 'l');
  ASSERT_TRUE(cache->Put("large", large).ok());
  ASSERT_TRUE(cache->Put("small", "s").ok());
  MaybeValue kept;
  const char* seen_at = nullptr;
  ASSERT_TRUE(Visit(*cache, "large", [&](const VisitedValue& visited) {
    seen_at = visited.view().data();
    kept = visited.Keep();
  }));
  EXPECT_EQ(cache->GetStats().pinned_entries, 1u);
  ASSERT_TRUE(cache->Delete("large"));
  ASSERT_TRUE(kept);
  EXPECT_TRUE(*kept == large);
  EXPECT_EQ(kept->view().data(), seen_at);
  kept.reset();
  ASSERT_TRUE(Visit(*cache, "small", [&](const VisitedValue& visited) { kept = visited.Keep(); }));
  EXPECT_FALSE(kept);
  EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
}

// Values of one byte, repeated: who sees two bytes that differ saw freed or unfinished memory.
TEST(Visit, SeesWholeValuesWhileOthersReplaceAndEvictThem) {
  const auto cache = NewCache({.capacity_bytes = 256 << 10});
  constexpr int kKeys = 64;
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::atomic<uint64_t> seen = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      uint64_t own = 0;
      for (int i = 0; !done || own == 0; ++i) {
        const bool found =
            Visit(*cache, "key" + std::to_string(i % kKeys), [&](const VisitedValue& visited) {
              const std::string_view bytes = visited.view();
              if (bytes.substr(1) != bytes.substr(0, bytes.size() - 1)) ++torn;
            });
        own += found ? 1 : 0;
      }
      seen += own;
    });
  }
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(i % kKeys);
    const std::string value(static_cast<size_t>(1000 + i % 7000), static_cast<char>('a' + i % 26));
    Status put = cache->Put(key, value);
    // A reader that has no processor keeps what it may see, and thirty values fill the cache.
    for (int tries = 0; !put.ok() && tries < 10'000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      put = cache->Put(key, value);
    }
    EXPECT_TRUE(put.ok()) << put.ToString();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_GT(seen.load(), 0u);
}

}  // namespace
}  // namespace basalt::cache
