#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/epoch.h"
#include "base/random.h"
#include "cache/test_cache.h"

// Threads that all put at once, stop, come and go, and outlive the cache.

namespace basalt::cache {
namespace {

/// A thread that stands inside a read until it is let go.
class StoppedReader {
 public:
  StoppedReader()
      : thread_([this] {
          const base::EpochGuard guard;
          entered_.count_down();
          leaves_.wait();
        }) {
    entered_.wait();
  }
  ~StoppedReader() {
    leaves_.count_down();
    thread_.join();
  }
  StoppedReader(const StoppedReader&) = delete;
  StoppedReader& operator=(const StoppedReader&) = delete;

 private:
  std::latch entered_{1};
  std::latch leaves_{1};
  std::thread thread_;
};

/// Sizes from 10 bytes to 100 KiB, each order of magnitude as often.
size_t MixedSize(base::Random* random) {
  const uint64_t magnitude = uint64_t{10} << random->Below(14);
  return std::min<size_t>(random->Between(magnitude, 2 * magnitude), 100 << 10);
}

TEST(CacheThreads, ExceedTheBudgetByNoMoreThanOneEntryEachAtAnyMoment) {
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kEntryMax = (100 << 10) + 4096;
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    const auto cache = NewCache({.capacity_bytes = 4 << 20, .shards = 4, .eviction = eviction});
    std::atomic<bool> done = false;
    uint64_t bytes_max = 0;
    std::thread sampler([&] {
      while (!done.load(std::memory_order_relaxed)) {
        bytes_max = std::max(bytes_max, cache->GetStats().bytes);
      }
    });
    std::vector<std::thread> writers;
    for (uint64_t t = 0; t < kThreads; ++t) {
      writers.emplace_back([&, t] {
        base::Random random(t);
        const std::string value(100 << 10, 'v');
        for (int i = 0; i < 20'000; ++i) {
          const std::string key = std::to_string(random.Below(10'000));
          const Status put = cache->Put(key, std::string_view(value).substr(0, MixedSize(&random)));
          if (!put.ok()) {
            ASSERT_EQ(put.code(), StatusCode::kResourceExhausted) << "seed " << t;
          }
          cache->Get(std::to_string(random.Below(10'000)));
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    done.store(true);
    sampler.join();
    EXPECT_LE(bytes_max, (4 << 20) + kThreads * kEntryMax);
    EXPECT_GT(bytes_max, 3u << 20);
    EXPECT_LE(cache->GetStats().bytes, 4u << 20);
    // Only while a reader stands still inside a read, and what was removed cannot be freed.
    EXPECT_LT(cache->GetStats().refused, kThreads * 20'000 / 50);
  }
}

TEST(CacheThreads, AThreadStoppedInsideAReadNeitherGrowsTheCacheNorHangsIt) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    const auto cache = NewCache({.capacity_bytes = 2 << 20, .shards = 2, .eviction = eviction});
    const auto write = [&](uint64_t seed, int operations) {
      base::Random random(seed);
      uint64_t refused = 0;
      for (int i = 0; i < operations; ++i) {
        const uint64_t key = random.Below(5000);
        const std::string name = std::to_string(key);
        if (!cache->Put(name, StampedValue(key, seed, random.Between(8, 3000))).ok()) ++refused;
        if (random.OneIn(5)) cache->Delete(std::to_string(random.Below(5000)));
        if (const MaybeValue value = cache->Get(std::to_string(random.Below(5000)))) {
          EXPECT_GE(value->size(), 8u);
        }
        if (i % 100 == 0) {
          EXPECT_LE(cache->GetStats().bytes, (2u << 20) + 3 * 16'384);
        }
      }
      return refused;
    };
    write(1, 3000);
    {
      const StoppedReader stopped;
      std::vector<std::thread> writers;
      std::atomic<uint64_t> refused = 0;
      for (uint64_t seed = 2; seed < 5; ++seed) {
        writers.emplace_back([&, seed] { refused.fetch_add(write(seed, 1000)); });
      }
      for (std::thread& writer : writers) writer.join();
      EXPECT_GT(refused.load(), 0u) << "what nobody may free leaves no room in the end";
    }
    // Enough to free what had to wait.
    write(5, 200);
    EXPECT_EQ(write(6, 3000), 0u);
    EXPECT_LT(cache->GetStats().retired_bytes, 512u << 10);
  }
}

TEST(CacheThreads, AGetInsideAnEpochDoesNotLeaveIt) {
  const auto cache = NewCache({.shards = 1});
  ASSERT_TRUE(cache->Put("a present key", "value").ok());
  bool is_freed = false;
  base::RetireList list;
  const auto collect_elsewhere = [&list] { std::thread([&list] { list.Collect(); }).join(); };
  {
    const base::EpochGuard outer;
    list.Retire(list.NewNote(), &is_freed, 1,
                [](void* freed) { *static_cast<bool*>(freed) = true; });
    EXPECT_TRUE(cache->Get("a present key"));
    EXPECT_FALSE(cache->Get("an absent key"));
    collect_elsewhere();
    EXPECT_FALSE(is_freed);
  }
  collect_elsewhere();
  EXPECT_TRUE(is_freed);
}

TEST(CacheThreads, AQuickGuardKeepsWhatItsThreadCanSee) {
  {
    const base::EpochGuard takes_a_slot;
  }
  bool is_freed = false;
  base::RetireList list;
  const auto collect_elsewhere = [&list] { std::thread([&list] { list.Collect(); }).join(); };
  {
    const base::QuickEpochGuard guard;
    EXPECT_EQ(static_cast<bool>(guard), base::AsymmetricFence::IsLight());
    if (!guard) GTEST_SKIP() << "the system has no light fence";
    list.Retire(list.NewNote(), &is_freed, 1,
                [](void* freed) { *static_cast<bool*>(freed) = true; });
    collect_elsewhere();
    EXPECT_FALSE(is_freed);
  }
  collect_elsewhere();
  EXPECT_TRUE(is_freed);
}

TEST(CacheThreads, ASuspendedQuickGuardKeepsItUntilItWasResumed) {
  {
    const base::EpochGuard takes_a_slot;
  }
  bool is_freed = false;
  base::RetireList list;
  const auto collect_elsewhere = [&list] { std::thread([&list] { list.Collect(); }).join(); };
  {
    base::QuickEpochGuard guard;
    if (!guard) GTEST_SKIP() << "the system has no light fence";
    guard.Suspend();
  }
  list.Retire(list.NewNote(), &is_freed, 1, [](void* freed) { *static_cast<bool*>(freed) = true; });
  collect_elsewhere();
  EXPECT_FALSE(is_freed);
  {
    const auto guard = base::QuickEpochGuard::Resume();
    collect_elsewhere();
    EXPECT_FALSE(is_freed);
  }
  collect_elsewhere();
  EXPECT_TRUE(is_freed);
}

TEST(CacheThreads, EveryLookupOfMoreThreadsThanHaveCountersIsCounted) {
  const auto cache = NewCache({.shards = 1});
  ASSERT_TRUE(cache->Put("a present key", "value").ok());
  constexpr int kThreads = 100;
  constexpr int kLookups = 50;
  std::latch all_have_slots(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      {
        const base::EpochGuard takes_a_slot;
      }
      all_have_slots.arrive_and_wait();
      for (int i = 0; i < kLookups; ++i) {
        EXPECT_TRUE(cache->Get("a present key").has_value());
        EXPECT_FALSE(cache->Get("an absent key").has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache->GetStats().hits, uint64_t{kThreads} * kLookups);
  EXPECT_EQ(cache->GetStats().misses, uint64_t{kThreads} * kLookups);
}

TEST(CacheThreads, GetsWorkInDestructorsThatRunAtAThreadsEnd) {
  const auto cache = NewCache({.shards = 1});
  ASSERT_TRUE(cache->Put("a present key", "value").ok());
  struct GetsAtItsEnd {
    Cache* cache = nullptr;
    int* hits = nullptr;
    ~GetsAtItsEnd() {
      for (int i = 0; i < 3; ++i) *hits += cache->Get("a present key") ? 1 : 0;
    }
  };
  int hits = 0;
  std::thread([&] {
    // Made before the thread has a slot of the epochs, so destroyed after that was returned.
    static thread_local GetsAtItsEnd at_end;
    at_end.cache = cache.get();
    at_end.hits = &hits;
    EXPECT_TRUE(cache->Get("a present key"));
  }).join();
  EXPECT_EQ(hits, 3);
}

TEST(CacheThreads, AThousandShortLivedThreadsLeaveNothingBehind) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  std::atomic<int> refused{0};
  for (int round = 0; round < 125; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        base::Random random(static_cast<uint64_t>(round * 8 + t));
        for (int i = 0; i < 50; ++i) {
          const uint64_t key = random.Below(1000);
          const std::string name = std::to_string(key);
          if (const MaybeValue value = cache->Get(name)) {
            EXPECT_TRUE(IsWhole(key, *value));
          } else if (!cache->Put(name, StampedValue(key, 1, random.Between(8, 2000))).ok()) {
            ++refused;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const CacheStats stats = cache->GetStats();
  EXPECT_EQ(stats.hits + stats.misses, 125u * 8 * 50);
  EXPECT_LE(refused, 500) << "some, where a reader loses its processor for long";
  EXPECT_LE(stats.bytes, 1u << 20);
  EXPECT_EQ(stats.pinned_entries, 0u);
}

TEST(CacheThreads, ValuesHeldOnOtherThreadsOutliveTheCache) {
  for (int round = 0; round < 5; ++round) {
    auto cache = NewCache({.capacity_bytes = 8 << 20, .shards = 4});
    for (uint64_t key = 0; key < 1000; ++key) {
      ASSERT_TRUE(cache->Put(std::to_string(key), StampedValue(key, 1, 100 + key * 3)).ok());
    }
    constexpr uint64_t kThreads = 4;
    std::latch held(kThreads);
    std::latch destroyed(1);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::pair<uint64_t, Value>> values;
        for (uint64_t key = t; key < 1000; key += 3) {
          if (MaybeValue value = cache->Get(std::to_string(key))) {
            values.emplace_back(key, std::move(*value));
          }
        }
        EXPECT_GT(values.size(), 300u);
        held.count_down();
        if (t % 2 == 0) destroyed.wait();
        // Some while the cache ends, some after it.
        for (const auto& [key, value] : values) EXPECT_TRUE(IsWhole(key, value));
        values.clear();
      });
    }
    held.wait();
    for (uint64_t key = 0; key < 1000; key += 2) cache->Delete(std::to_string(key));
    cache.reset();
    destroyed.count_down();
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(CacheThreads, ForEachVisitsWhatStaysExactlyOnceUnderWriters) {
  const auto cache = NewCache({.capacity_bytes = 64 << 20, .shards = 4});
  constexpr uint64_t kStable = 5000;
  for (uint64_t key = 0; key < kStable; ++key) {
    ASSERT_TRUE(cache->Put("stable" + std::to_string(key), "value").ok());
  }
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    writers.emplace_back([&, seed] {
      base::Random random(seed);
      uint64_t grown = 0;
      while (!done.load(std::memory_order_relaxed)) {
        // Grows all the while, so that segments split, to a bound.
        const uint64_t key = random.OneIn(2) ? random.Below(1000) : 1000 + grown++ % 50'000;
        const std::string name = "other" + std::to_string(seed) + "," + std::to_string(key);
        if (random.OneIn(3)) {
          cache->Delete(name);
        } else {
          EXPECT_TRUE(cache->Put(name, "value").ok());
        }
      }
    });
  }
  for (int round = 0; round < 10; ++round) {
    std::multiset<std::string> seen;
    const Status status = cache->ForEach([&](std::string_view key, std::string_view value) {
      EXPECT_EQ(value, "value");
      if (key.starts_with("stable")) seen.emplace(key);
      return true;
    });
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(seen.size(), kStable);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), kStable);
  }
  done.store(true);
  for (std::thread& writer : writers) writer.join();
}

TEST(CacheThreads, TheCapacityMayChangeUnderWriters) {
  const auto cache = NewCache({.capacity_bytes = 4 << 20, .shards = 4});
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    writers.emplace_back([&, seed] {
      base::Random random(seed);
      while (!done.load(std::memory_order_relaxed)) {
        const uint64_t key = random.Below(20'000);
        static_cast<void>(
            cache->Put(std::to_string(key), StampedValue(key, seed, random.Between(8, 2000))));
        const uint64_t asked = random.Below(20'000);
        if (const MaybeValue value = cache->Get(std::to_string(asked))) {
          EXPECT_TRUE(IsWhole(asked, *value));
        }
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    // A thread that is putting may hold memory that was counted: tolerated, it shrinks later.
    static_cast<void>(cache->SetCapacity(round % 2 == 0 ? 1 << 20 : 4 << 20));
    if (round % 5 == 0) cache->Clear();
    const Result<CacheReservation> reservation = cache->Reserve(100'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  done.store(true);
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(cache->SetCapacity(1 << 20).ok());
  const CacheStats stats = cache->GetStats();
  EXPECT_LE(stats.bytes, 1u << 20);
  EXPECT_EQ(stats.reserved_bytes, 0u);
  EXPECT_EQ(stats.inserts, stats.entries + stats.evicted + stats.expired + stats.erased);
}

TEST(CacheThreads, OnRemoveOfManyThreadsHearsOfEveryEntryOnce) {
  std::atomic<uint64_t> heard = 0;
  CacheOptions options{.capacity_bytes = 512 << 10, .shards = 2};
  options.on_remove = [&](std::string_view key, std::string_view value, Removal) {
    EXPECT_TRUE(IsWhole(std::stoull(std::string(key)), value));
    heard.fetch_add(1, std::memory_order_relaxed);
  };
  const auto cache = NewCache(options);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      base::Random random(seed);
      for (int i = 0; i < 10'000; ++i) {
        const uint64_t key = random.Below(3000);
        const std::string name = std::to_string(key);
        static_cast<void>(cache->Put(name, StampedValue(key, seed, random.Between(8, 1000))));
        if (random.OneIn(5)) cache->Take(std::to_string(random.Below(3000)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const CacheStats stats = cache->GetStats();
  EXPECT_EQ(heard.load(), stats.evicted + stats.expired + stats.replaced + stats.erased);
  EXPECT_GT(stats.evicted, 1000u);
}

}  // namespace
}  // namespace basalt::cache
