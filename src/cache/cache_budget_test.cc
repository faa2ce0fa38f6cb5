#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/arena.h"
#include "base/extent_pool.h"
#include "base/random.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// The budget: never passed, never stuck.

namespace basalt::cache {
namespace {

TEST(CacheBudget, WithEveryEntryPinnedPutsAreRefusedAtOnceAndWorkAgainAfterwards) {
  for (const uint32_t shards : {1, 16}) {
    for (const size_t size : {200, 5000}) {
      const auto cache = NewCache({.capacity_bytes = 2 << 20, .shards = shards});
      std::vector<std::pair<std::string, Value>> held;
      const std::string value(size, 'v');
      int refused = 0;
      for (int i = 0; refused < 200; ++i) {
        ASSERT_LT(i, 100'000);
        std::string key = "held" + std::to_string(i);
        Result<CacheAllocation> room = cache->Allocate(key, size);
        if (!room) {
          ASSERT_EQ(room.error().code(), StatusCode::kResourceExhausted);
          ++refused;
          continue;
        }
        std::memset(room->bytes().data(), 'v', size);
        held.emplace_back(std::move(key), std::move(*room).Publish());
      }
      EXPECT_GT(held.size() * size, 1u << 20);
      EXPECT_LE(cache->GetStats().bytes, 2u << 20);

      // Whatever is put now finds no room, and that is told soon.
      const std::string large(100'000, 'v');
      const auto before = std::chrono::steady_clock::now();
      uint64_t erased = 0;
      for (const auto& [key, one] : held) {
        if (!cache->Peek(key)) continue;
        ASSERT_EQ(cache->Put(key, large).code(), StatusCode::kResourceExhausted);
        ASSERT_FALSE(cache->Peek(key)) << "what could not be replaced is erased";
        if (++erased == 100) break;
      }
      EXPECT_EQ(erased, 100u);
      EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
      EXPECT_EQ(cache->GetStats().refused, 100u);
      for (const auto& [key, one] : held) ASSERT_TRUE(one.view() == value);

      held.clear();
      for (int i = 0; i < 2000; ++i) {
        ASSERT_TRUE(cache->Put("new" + std::to_string(i), value).ok()) << i;
      }
      ASSERT_TRUE(cache->Put("large", std::string(100'000, 'v')).ok());
      EXPECT_EQ(cache->GetStats().pinned_bytes, 0u);
    }
  }
}

TEST(CacheBudget, AFewHeldValuesDoNotKeepTheRestFromMakingRoom) {
  const auto cache = NewCache({.capacity_bytes = 2 << 20, .shards = 2});
  // One in thirty is held: they stand in nearly every slab.
  std::vector<Value> held;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "small" + std::to_string(i);
    ASSERT_TRUE(cache->Put(key, std::string(120, 'v')).ok());
    if (i < 9000 && i % 30 == 0) {
      if (MaybeValue got = cache->Get(key)) held.push_back(std::move(*got));
    }
  }
  ASSERT_GT(held.size(), 200u);
  for (const size_t size : {400, 4096, 50'000}) {
    for (int i = 0; i < 1000; ++i) {
      const Status put = cache->Put("other" + std::to_string(i), std::string(size, 'v'));
      ASSERT_TRUE(put.ok()) << size << ", put " << i << ": " << put.ToString();
    }
  }
}

TEST(CacheBudget, PutsAreNotRefusedWhereEverythingIsReadAllTheTime) {
  for (const size_t size : {20, 1000}) {
    const auto cache = NewCache({.capacity_bytes = 8 << 20, .shards = 1});
    const int count = static_cast<int>((16 << 20) / (size + 60));
    const auto put_and_read = [&](int i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE(cache->Put(key, std::string(size, 'v')).ok()) << size << ", put " << i;
      for (int read = 0; read < 3; ++read) cache->Get(key);
    };
    for (int i = 0; i < count; ++i) put_and_read(i);
    EXPECT_GT(cache->GetStats().evicted, static_cast<uint64_t>(count) / 10);
  }
}

TEST(CacheBudget, AChangeOfTheSizesKeepsTheMemoryInUse) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    for (const uint32_t shards : {1, 8}) {
      constexpr uint64_t kCapacity = 4 << 20;
      const auto cache =
          NewCache({.capacity_bytes = kCapacity, .shards = shards, .eviction = eviction});
      int next = 0;
      for (const size_t size : {32, 400, 4096, 32, 4096, 400, 32}) {
        SCOPED_TRACE(std::to_string(size) + " bytes, shards " + std::to_string(shards));
        // Enough to fill it three times.
        const std::string value(size, 'v');
        const uint64_t count = 3 * kCapacity / (size + 48);
        const int first = next;
        for (uint64_t i = 0; i < count; ++i) {
          const std::string key = std::to_string(next++);
          ASSERT_TRUE(cache->Put(key, value).ok()) << i;
          cache->Get(key);  // Else S3-FIFO would rather keep what it had before.
        }
        uint64_t payload = 0;
        for (int i = first; i < next; ++i) {
          const std::string key = std::to_string(i);
          if (cache->Peek(key)) payload += key.size() + size + (size > 112 ? 40 : 16);
        }
        // The index stays as large as the smallest values needed it.
        const CacheStats stats = cache->GetStats();
        EXPECT_LE(stats.bytes, kCapacity);
        EXPECT_LE(stats.index_bytes, kCapacity * 45 / 100);
        EXPECT_GE(payload, (kCapacity - stats.index_bytes) * 75 / 100);
      }
    }
  }
}

/// What the process's pools hold of the machine's memory, without whole free slabs.
uint64_t ResidentBytes() {
  const base::ChunkPool& chunks = *base::ChunkPool::Process();
  const base::ExtentPool& extents = *base::ExtentPool::Process();
  return chunks.resident_bytes() - chunks.kept_bytes() -
         (extents.slab_bytes() - extents.resident_bytes());
}

// The system's allocator has a heap for each of some threads, with holes that no other thread
// fills: with it the process grew by up to 2.8 times the capacity.
TEST(CacheBudget, WhatManyThreadsPutTakesLittleMoreThanTheBudget) {
  constexpr uint64_t kCapacity = uint64_t{32} << 20;
  const uint64_t before = ResidentBytes();
  {
    const auto cache = NewCache({.capacity_bytes = kCapacity});
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 8; ++t) {
      threads.emplace_back([&cache, t] {
        base::Random random(t);
        const std::string value(8'000, 'v');
        for (int i = 0; i < 10'000; ++i) {
          const std::string key = "key" + std::to_string(random.Below(100'000));
          const size_t bytes = random.Between(600, value.size());
          ASSERT_TRUE(cache->Put(key, std::string_view(value).substr(0, bytes)).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(cache->GetStats().bytes, kCapacity / 10 * 9) << "the test fills it";
    const uint64_t taken = ResidentBytes() - before;
    EXPECT_GT(taken, kCapacity / 10 * 9) << "the entries lie there";
    // An eighth, and the slab from which blocks are being taken.
    EXPECT_LE(taken, kCapacity / 8 * 9 + base::ChunkPool::kSlabBytes);
  }
  EXPECT_EQ(ResidentBytes(), before) << "all of it is given back";
}

/// Puts values of `bytes_min` to `bytes_max` until they are more than `total_bytes`, by so many
/// threads. All keys are new.
void PutSizes(Cache* cache, uint64_t total_bytes, size_t bytes_min, size_t bytes_max,
              int threads_max) {
  static std::atomic<uint64_t> next_key{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_max; ++t) {
    threads.emplace_back([=] {
      base::Random random(next_key.load());
      const std::string value(bytes_max, 'v');
      for (uint64_t put = 0; put < total_bytes / static_cast<uint64_t>(threads_max);) {
        const size_t bytes = random.Between(bytes_min, bytes_max);
        const std::string key = std::to_string(next_key.fetch_add(1));
        ASSERT_TRUE(cache->Put(key, std::string_view(value).substr(0, bytes)).ok());
        put += bytes + 64;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Filling {
  Eviction eviction;
  int threads;
};

class ShiftsOfValueSizes : public testing::TestWithParam<Filling> {};

INSTANTIATE_TEST_SUITE_P(CacheBudget, ShiftsOfValueSizes,
                         testing::Values(Filling{Eviction::kClock, 1}, Filling{Eviction::kClock, 4},
                                         Filling{Eviction::kS3Fifo, 1}),
                         [](const testing::TestParamInfo<Filling>& info) {
                           const bool is_clock = info.param.eviction == Eviction::kClock;
                           return (is_clock ? "Clock" : "S3Fifo") +
                                  std::to_string(info.param.threads);
                         });

// Entries of the old sizes are evicted one by one, all over memory, and leave holes into which the
// new ones do not fit: the process grew to three times the capacity.
TEST_P(ShiftsOfValueSizes, KeepTheProcessWithinTheCapacityAndAQuarter) {
  constexpr uint64_t kCapacity = uint64_t{32} << 20;
  constexpr uint64_t kOfThreads = uint64_t{1}
                                  << 20;  // their stacks, and what malloc keeps for each
  const uint64_t before = ResidentBytes();
  const auto cache = NewCache({.capacity_bytes = kCapacity, .eviction = GetParam().eviction});
  const std::pair<size_t, size_t> sizes[] = {
      {10, 410},      {3'000, 8'000}, {30'000, 80'000}, {300'000, 305'000}, {10, 410},
      {3'000, 8'000}, {600, 1'200},   {9'000, 18'000},  {10, 410},          {30'000, 80'000},
      {1'300, 2'600}, {20, 300'000},  {3'000, 8'000},
  };
  for (const auto& [bytes_min, bytes_max] : sizes) {
    // The share that was replaced grows step by step: the worst is somewhere in between.
    for (int step = 0; step < 8; ++step) {
      PutSizes(cache.get(), kCapacity / 4, bytes_min, bytes_max, GetParam().threads);
      ASSERT_LE(ResidentBytes() - before, kCapacity / 4 * 5 + kOfThreads)
          << bytes_min << " to " << bytes_max << ", step " << step;
    }
    EXPECT_GE(cache->GetStats().bytes, kCapacity / 8 * 7);
  }
}

TEST_P(ShiftsOfValueSizes, ASmallerCapacityGivesTheMemoryBack) {
  constexpr uint64_t kCapacity = uint64_t{32} << 20;
  const uint64_t before = ResidentBytes();
  const auto cache = NewCache({.capacity_bytes = kCapacity, .eviction = GetParam().eviction});
  for (const auto& [bytes_min, bytes_max] :
       {std::pair<size_t, size_t>{10, 410}, {600, 7'000}, {9'000, 80'000}, {20, 20'000}}) {
    ASSERT_TRUE(cache->SetCapacity(kCapacity).ok());
    PutSizes(cache.get(), 3 * kCapacity, bytes_min, bytes_max, GetParam().threads);
    for (const uint64_t capacity : {kCapacity / 2, kCapacity / 4}) {
      ASSERT_TRUE(cache->SetCapacity(capacity).ok());
      EXPECT_LE(cache->GetStats().bytes, capacity);
      EXPECT_LE(ResidentBytes() - before, capacity / 4 * 5) << bytes_min << " to " << bytes_max;
    }
  }
}

TEST(CacheBudget, ManySmallShardsShareWhatThereIs) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20, .shards = 64});
  int found = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = std::to_string(i);
    ASSERT_TRUE(cache->Put(key, std::string(50 + i % 400, 'v')).ok()) << i;
    if (cache->Get(key)) ++found;
  }
  EXPECT_GT(found, 15'000);
  EXPECT_LE(cache->GetStats().bytes, 1u << 20);
}

TEST(CacheBudget, WhatIsErasedTakenOrReplacedGivesItsMemoryBackWithoutFurtherPuts) {
  constexpr uint64_t kCapacity = 32 << 20;
  for (const size_t size : {40, 4000, 100'000}) {
    const auto cache = NewCache({.capacity_bytes = kCapacity, .shards = 8});
    const uint64_t count = (16 << 20) / (size + 80);
    const auto for_all = [&](const auto& change) {
      for (uint64_t i = 0; i < count; ++i) {
        ASSERT_TRUE(cache->Put(std::to_string(i), std::string(size, 'v')).ok());
      }
      for (uint64_t i = 0; i < count; ++i) change(std::to_string(i));
      EXPECT_LE(cache->GetStats().retired_bytes, kCapacity / 16) << size << " bytes";
    };
    for_all([&](const std::string& key) { EXPECT_TRUE(cache->Delete(key)); });
    for_all([&](const std::string& key) { EXPECT_TRUE(cache->Take(key)); });
    for_all([&](const std::string& key) { EXPECT_TRUE(cache->Put(key, "small").ok()); });
    for_all([&](const std::string& key) {
      const auto erase = [](std::optional<std::string_view>) {
        return Result<std::optional<std::string>>(std::nullopt);
      };
      EXPECT_TRUE(cache->Update(key, base::ByValue(erase)).ok());
    });
  }
}

TEST(CacheBudget, TheSmallQueueTakesNothingForEntriesThatAreGone) {
  const auto cache =
      NewCache({.capacity_bytes = 64 << 20, .shards = 1, .eviction = Eviction::kS3Fifo});
  const uint64_t empty_bytes = cache->GetStats().index_bytes;
  ASSERT_TRUE(cache->Put("stays", "value").ok());
  for (int i = 0; i < 300'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(cache->Put(key, "value").ok());
    ASSERT_TRUE(cache->Delete(key));
  }
  EXPECT_LE(cache->GetStats().index_bytes, empty_bytes + (32 << 10));
  for (int i = 0; i < 300'000; ++i) {
    ASSERT_TRUE(cache->Delete("stays"));
    ASSERT_TRUE(cache->Put("stays", "value").ok());
  }
  EXPECT_LE(cache->GetStats().index_bytes, empty_bytes + (32 << 10));
  EXPECT_EQ(TextOf(cache->Get("stays")), "value");
  cache->Clear();
  EXPECT_LE(cache->GetStats().index_bytes, empty_bytes + 512);
}

// ---- The system's memory ----

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BASALT_CACHE_LIMITS_ADDRESS_SPACE 0
#else
#define BASALT_CACHE_LIMITS_ADDRESS_SPACE 1
#endif

#if BASALT_CACHE_LIMITS_ADDRESS_SPACE
/// Of the address space of this process; 0: unknown.
uint64_t MappedBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(getpagesize());
}

// In a process of its own: fills a cache whose budget is larger than the memory that there is. Says
// what went wrong.
const char* FillBeyondTheSystemsMemory() {
  constexpr int kPuts = 400'000;
  const std::unique_ptr<Cache> cache = NewCache({.capacity_bytes = uint64_t{4} << 30});
  std::string key = "key-0000000";
  const std::string small(60, 's');
  const std::string large(20'000, 'l');
  // Beside what the tests before this one have left.
  const uint64_t limit_bytes = MappedBytes() + (300 << 20);
  const rlimit limit{.rlim_cur = limit_bytes, .rlim_max = limit_bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return "setrlimit";
  for (int i = 0; i < kPuts; ++i) {
    std::snprintf(key.data(), key.size() + 1, "key-%07d", i);
    const Status put = cache->Put(key, i % 16 == 0 ? large : small);
    if (put.ok()) continue;
    if (put.code() != StatusCode::kResourceExhausted) return "a put failed otherwise";
    if (cache->Get(key)) return "a refused value is there";
  }
  const CacheStats stats = cache->GetStats();
  if (stats.evicted + stats.refused == 0) return "the limit did not bite";
  int found = 0;
  for (int i = 0; i < kPuts; ++i) {
    std::snprintf(key.data(), key.size() + 1, "key-%07d", i);
    const MaybeValue value = cache->Get(key);
    if (!value) continue;
    if (value->view() != (i % 16 == 0 ? large : small)) return "a value is damaged";
    ++found;
  }
  if (found < kPuts / 10) return "hardly anything is left";
  cache->Clear();
  for (int i = 0; i < 1000; ++i) {
    std::snprintf(key.data(), key.size() + 1, "key-%07d", i);
    if (!cache->Put(key, large).ok()) return "it does not work again after Clear";
  }
  return nullptr;
}
#endif

TEST(CacheBudget, TheEndOfTheSystemsMemoryIsSurvived) {
#if BASALT_CACHE_LIMITS_ADDRESS_SPACE
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const char* const error = FillBeyondTheSystemsMemory();
    if (error != nullptr) std::fprintf(stderr, "%s\n", error);
    _exit(error == nullptr ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "it died of signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
#else
  GTEST_SKIP() << "sanitizers need more address space than the test leaves";
#endif
}

}  // namespace
}  // namespace basalt::cache
