#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "basalt/cache.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// The functions that call the user's: Update and GetOrCompute.

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;
using After = Result<std::optional<std::string>>;
using Before = std::optional<std::string_view>;

Status SomeError() { return Status(StatusCode::kIoError, "the origin is away"); }

// ---- Update ----

TEST(CacheUpdate, SeesThePresentValueAndPutsTheNewOne) {
  const auto cache = NewCache();
  const auto append = [](Before before) -> After {
    return std::string(before.value_or("nothing")) + "+";
  };
  ASSERT_TRUE(cache->Update("key", base::ByValue(append)).ok());
  EXPECT_EQ(TextOf(cache->Get("key")), "nothing+");
  ASSERT_TRUE(cache->Update("key", base::ByValue(append)).ok());
  EXPECT_EQ(TextOf(cache->Get("key")), "nothing++");
}

TEST(CacheUpdate, NothingErasesTheKey) {
  const auto cache = NewCache();
  const auto erase = [](Before) -> After { return std::nullopt; };
  ASSERT_TRUE(cache->Put("key", "value").ok());
  EXPECT_TRUE(cache->Update("key", base::ByValue(erase)).ok());
  EXPECT_FALSE(cache->Get("key"));
  EXPECT_TRUE(cache->Update("key", base::ByValue(erase)).ok()) << "of an absent key too";
}

TEST(CacheUpdate, AnErrorOrAnExceptionChangesNothing) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "old").ok());
  EXPECT_EQ(cache->Update("key", base::ByValue([](Before) -> After { return SomeError(); })).code(),
            StatusCode::kIoError);
  EXPECT_THROW(static_cast<void>(cache->Update("key", base::ByValue([](Before) -> After {
                                                 throw std::runtime_error("thrown");
                                               }))),
               std::runtime_error);
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
  EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
}

TEST(CacheUpdate, RunsAgainAfterEachKindOfConcurrentChange) {
  const auto cache = NewCache();
  const auto change_meanwhile = [&](const auto& change) {
    int runs = 0;
    EXPECT_TRUE(cache
                    ->Update("key", base::ByValue([&](Before before) -> After {
                               if (++runs == 1) change();
                               return std::string(before.value_or("nothing")) + "+";
                             }))
                    .ok());
    return runs;
  };
  ASSERT_TRUE(cache->Put("key", "old").ok());
  EXPECT_EQ(change_meanwhile([&] { ASSERT_TRUE(cache->Put("key", "put").ok()); }), 2);
  EXPECT_EQ(TextOf(cache->Get("key")), "put+");
  EXPECT_EQ(change_meanwhile([&] { cache->Delete("key"); }), 2);
  EXPECT_EQ(TextOf(cache->Get("key")), "nothing+");
  EXPECT_EQ(change_meanwhile([&] { cache->Clear(); }), 2);
  EXPECT_EQ(TextOf(cache->Get("key")), "nothing+");
  cache->Clear();
  EXPECT_EQ(change_meanwhile([&] { ASSERT_TRUE(cache->Put("key", "put").ok()); }), 2);
  EXPECT_EQ(TextOf(cache->Get("key")), "put+");
  // The same bytes, put anew, are a change too.
  EXPECT_EQ(change_meanwhile([&] { ASSERT_TRUE(cache->Put("key", "put+").ok()); }), 2);
  EXPECT_EQ(TextOf(cache->Get("key")), "put++");
  EXPECT_EQ(change_meanwhile([&] { ASSERT_TRUE(cache->Put("other", "put").ok()); }), 1);
}

TEST(CacheUpdate, AnErasureThatWasDecidedOnAnOldValueRunsAgain) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "old").ok());
  int runs = 0;
  const auto erase_old = [&](Before before) -> After {
    if (++runs == 1) {
      EXPECT_TRUE(cache->Put("key", "new").ok());
    }
    if (before == "old") return std::nullopt;
    return std::string(*before);
  };
  EXPECT_TRUE(cache->Update("key", base::ByValue(erase_old)).ok());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(TextOf(cache->Get("key")), "new");
}

TEST(CacheUpdate, KeepsTheExpiry) {
  SimCache cache({.default_ttl = milliseconds(1000)});
  const auto set = [](Before) -> After { return "updated"; };
  ASSERT_TRUE(cache.Put("soon", "value", 100).ok());
  ASSERT_TRUE(cache.Put("never", "value", 0).ok());
  cache.AdvanceMillis(50);
  for (const std::string_view key : {"soon", "never", "new"}) {
    ASSERT_TRUE(cache->Update(key, base::ByValue(set)).ok());
  }
  cache.AdvanceMillis(49);
  EXPECT_EQ(cache.Get("soon"), "updated");
  cache.AdvanceMillis(1);
  EXPECT_EQ(cache.Get("soon"), "<absent>");
  EXPECT_EQ(cache.Get("new"), "updated");
  cache.AdvanceMillis(950);
  EXPECT_EQ(cache.Get("new"), "<absent>") << "a new key takes the default";
  EXPECT_EQ(cache.Get("never"), "updated");
}

TEST(CacheUpdate, KeepsTheExpiryThatWasSetWhileItRan) {
  SimCache cache;
  ASSERT_TRUE(cache.Put("key", "value", 100).ok());
  const auto set = [&](Before) -> After {
    EXPECT_TRUE(cache.Touch("key", 500));
    return "updated";
  };
  ASSERT_TRUE(cache->Update("key", base::ByValue(set)).ok());
  cache.AdvanceMillis(499);
  EXPECT_EQ(cache.Get("key"), "updated");
  cache.AdvanceMillis(1);
  EXPECT_EQ(cache.Get("key"), "<absent>");
}

TEST(CacheUpdate, SeesNothingOfWhatHasExpired) {
  SimCache cache;
  ASSERT_TRUE(cache.Put("key", "value", 100).ok());
  int runs = 0;
  const auto set = [&](Before before) -> After {
    EXPECT_EQ(before.has_value(), ++runs == 1);
    cache.AdvanceMillis(100);
    return "updated";
  };
  ASSERT_TRUE(cache->Update("key", base::ByValue(set)).ok());
  EXPECT_EQ(runs, 2) << "it expired while the function ran";
}

TEST(CacheUpdate, FromManyThreadsLosesNothing) {
  const auto cache = NewCache();
  constexpr int kThreads = 4;
  constexpr int kUpdates = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kUpdates; ++i) {
        const auto increment = [](Before before) -> After {
          return std::to_string(before ? std::stoi(std::string(*before)) + 1 : 1);
        };
        ASSERT_TRUE(cache->Update("counter", base::ByValue(increment)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(TextOf(cache->Get("counter")), std::to_string(kThreads * kUpdates));
}

// ---- GetOrCompute ----

TEST(CacheGetOrCompute, ComputesOnceAndThenFinds) {
  const auto cache = NewCache();
  for (const size_t size : {5, 5000}) {
    const std::string key = std::to_string(size);
    int runs = 0;
    const auto compute = [&]() -> Result<std::string> {
      ++runs;
      return std::string(size, 'c');
    };
    for (int i = 0; i < 3; ++i) {
      const Result<Value> value = cache->GetOrCompute(key, compute);
      ASSERT_TRUE(value);
      EXPECT_EQ(value->ToString(), std::string(size, 'c'));
    }
    EXPECT_EQ(runs, 1);
  }
  const CacheStats stats = cache->GetStats();
  EXPECT_EQ(stats.computed, 2u);
  EXPECT_EQ(stats.misses, 2u);
  EXPECT_EQ(stats.hits, 4u);
}

TEST(CacheGetOrCompute, TheComputedValueExpires) {
  const auto cache = NewCache();
  const auto compute = [] { return std::string("computed"); };
  ASSERT_TRUE(cache->GetOrCompute("key", compute, {.ttl = milliseconds(1)}));
  while (cache->Get("key")) {
  }
  EXPECT_EQ(cache->GetOrCompute("key", compute, {.ttl = milliseconds(-1)}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(cache->GetOrCompute("key", compute));
}

TEST(CacheGetOrCompute, WhatCannotBePutIsNotComputed) {
  const auto cache = NewCache();
  int runs = 0;
  const auto compute = [&]() -> Result<std::string> {
    ++runs;
    return std::string("computed");
  };
  EXPECT_EQ(cache->GetOrCompute(std::string(65'536, 'k'), compute).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->GetOrCompute("key", compute, {.ttl = milliseconds(-1)}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(cache->GetOrCompute(std::string(65'535, 'k'), compute));
}

TEST(CacheGetOrCompute, AnErrorIsNotKept) {
  const auto cache = NewCache();
  const Result<Value> failed =
      cache->GetOrCompute("key", []() -> Result<std::string> { return SomeError(); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().ToString(), SomeError().ToString());
  EXPECT_FALSE(cache->Get("key"));
  const Result<Value> computed = cache->GetOrCompute("key", [] { return std::string("now"); });
  ASSERT_TRUE(computed);
  EXPECT_EQ(computed->ToString(), "now");
}

TEST(CacheGetOrCompute, AnExceptionReachesTheCallerAndTheKeyStaysComputable) {
  const auto cache = NewCache();
  const auto thrower = []() -> Result<std::string> { throw std::runtime_error("thrown"); };
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(static_cast<void>(cache->GetOrCompute("key", thrower)), std::runtime_error);
  }
  EXPECT_FALSE(cache->Get("key"));
  EXPECT_TRUE(cache->GetOrCompute("key", [] { return std::string("now"); }));
}

TEST(CacheGetOrCompute, AskingForTheSameKeyInsideIsRefused) {
  const auto cache = NewCache({.shards = 1});
  const Result<Value> outer = cache->GetOrCompute("key", [&]() -> Result<std::string> {
    const Result<Value> inner = cache->GetOrCompute("key", [] { return std::string("inner"); });
    EXPECT_EQ(inner.status().code(), StatusCode::kFailedPrecondition);
    const Result<Value> other = cache->GetOrCompute("other", [] { return std::string("fine"); });
    EXPECT_TRUE(other);
    return std::string("outer");
  });
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->ToString(), "outer");
  EXPECT_EQ(TextOf(cache->Get("key")), "outer");
  EXPECT_EQ(TextOf(cache->Get("other")), "fine");
}

TEST(CacheGetOrCompute, WhatIsWrittenMeanwhileWins) {
  const auto cache = NewCache();
  const auto compute_with = [&](const auto& meanwhile) {
    cache->Clear();
    const Result<Value> value = cache->GetOrCompute("key", [&]() -> Result<std::string> {
      meanwhile();
      return std::string("computed");
    });
    EXPECT_TRUE(value);
    EXPECT_EQ(value->ToString(), "computed") << "it still goes to who asked";
    return TextOf(cache->Get("key"));
  };
  EXPECT_EQ(compute_with([&] { ASSERT_TRUE(cache->Put("key", "put").ok()); }), "put");
  EXPECT_EQ(compute_with([&] { EXPECT_TRUE(cache->PutIfAbsent("key", "put").value()); }), "put");
  EXPECT_EQ(compute_with([&] { cache->Delete("key"); }), "<absent>");
  EXPECT_EQ(compute_with([&] { cache->Take("key"); }), "<absent>");
  EXPECT_EQ(compute_with([&] {
              ASSERT_TRUE(cache->Put("key", "put").ok());
              cache->Delete("key");
            }),
            "<absent>");
  EXPECT_EQ(
      compute_with([&] {
        ASSERT_TRUE(
            cache->Update("key", base::ByValue([](Before) -> After { return "updated"; })).ok());
      }),
      "updated");
  EXPECT_EQ(compute_with([&] { ASSERT_TRUE(cache->Put("other", "put").ok()); }), "computed");
  EXPECT_EQ(compute_with([&] { EXPECT_FALSE(cache->Replace("key", "not there").value()); }),
            "computed");
}

TEST(CacheGetOrCompute, AResultThatBeganBeforeAClearIsNotKept) {
  const auto cache = NewCache({.shards = 4});
  for (int i = 0; i < 16; ++i) {
    const std::string key = "key" + std::to_string(i);
    const Result<Value> value = cache->GetOrCompute(key, [&]() -> Result<std::string> {
      const std::string read = "outdated";
      cache->Clear();
      return read;
    });
    ASSERT_TRUE(value);
    EXPECT_EQ(value->ToString(), "outdated") << "it still goes to who asked";
    EXPECT_EQ(TextOf(cache->Get(key)), "<absent>");
  }
}

TEST(CacheGetOrCompute, WhoComesAfterAWriteDoesNotGetTheOutdatedResult) {
  const auto cache = NewCache();
  const Result<Value> outer = cache->GetOrCompute("key", [&]() -> Result<std::string> {
    cache->Delete("key");
    std::thread([&] {
      const Result<Value> fresh = cache->GetOrCompute("key", [] { return std::string("fresh"); });
      EXPECT_TRUE(fresh);
      EXPECT_EQ(fresh->ToString(), "fresh");
    }).join();
    return std::string("outdated");
  });
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->ToString(), "outdated");
  EXPECT_EQ(TextOf(cache->Get("key")), "fresh");
}

TEST(CacheGetOrCompute, AValueThatFindsNoRoomIsGivenButNotKept) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(cache->Put("other", "stays").ok());
  const std::string large(4 << 20, 'v');
  {
    const Result<Value> value =
        cache->GetOrCompute("key", [&] { return Result<std::string>(large); });
    ASSERT_TRUE(value);
    EXPECT_TRUE(value->view() == large);
    EXPECT_FALSE(cache->Get("key"));
  }
  EXPECT_LT(cache->GetStats().bytes, 1u << 20);
  EXPECT_EQ(TextOf(cache->Get("other")), "stays");
}

/// Starts threads that all miss one key; the computation ends when all others had time to queue up.
template <class Check>
void Stampede(Cache* cache, int threads, const std::function<Result<std::string>(int)>& compute,
              const Check& check) {
  std::latch ready(threads);
  std::atomic<int> runs = 0;
  std::vector<std::thread> crowd;
  for (int t = 0; t < threads; ++t) {
    crowd.emplace_back([&] {
      ready.arrive_and_wait();
      check([&] {
        return cache->GetOrCompute("key", [&]() -> Result<std::string> {
          const int run = runs.fetch_add(1);
          std::this_thread::sleep_for(milliseconds(30));
          return compute(run);
        });
      });
    });
  }
  for (std::thread& thread : crowd) thread.join();
}

TEST(CacheGetOrCompute, AStampedeOfThreadsComputesOnce) {
  const auto cache = NewCache();
  for (const size_t size : {5, 5000}) {
    cache->Clear();
    const uint64_t before = cache->GetStats().computed;
    Stampede(
        cache.get(), 64, [&](int) { return std::string(size, 'c'); },
        [&](const auto& call) {
          const Result<Value> value = call();
          ASSERT_TRUE(value);
          EXPECT_EQ(value->ToString(), std::string(size, 'c'));
        });
    EXPECT_EQ(cache->GetStats().computed - before, 1u);
  }
  EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
}

TEST(CacheGetOrCompute, AnErrorReachesAllWhoWait) {
  const auto cache = NewCache();
  std::atomic<int> failed = 0;
  Stampede(
      cache.get(), 16,
      [](int run) -> Result<std::string> {
        if (run == 0) return SomeError();
        return std::string("later");
      },
      [&](const auto& call) {
        const Result<Value> value = call();
        if (value) {
          EXPECT_EQ(value->ToString(), "later");
        } else {
          EXPECT_EQ(value.error().code(), StatusCode::kIoError);
          failed.fetch_add(1);
        }
      });
  EXPECT_GE(failed.load(), 1);
  EXPECT_EQ(TextOf(cache->Get("key")), failed.load() == 16 ? "<absent>" : "later");
}

TEST(CacheGetOrCompute, WhenTheComputingThreadThrowsAnotherOneComputes) {
  const auto cache = NewCache();
  std::atomic<int> thrown = 0;
  Stampede(
      cache.get(), 16,
      [](int run) -> Result<std::string> {
        if (run == 0) throw std::runtime_error("thrown");
        return std::string("second");
      },
      [&](const auto& call) {
        try {
          const Result<Value> value = call();
          ASSERT_TRUE(value);
          EXPECT_EQ(value->ToString(), "second");
        } catch (const std::runtime_error&) {
          thrown.fetch_add(1);
        }
      });
  EXPECT_EQ(thrown.load(), 1);
  EXPECT_EQ(cache->GetStats().computed, 2u);
}

}  // namespace
}  // namespace basalt::cache
