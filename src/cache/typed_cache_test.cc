#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/random.h"
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;

template <class T>
T Must(Result<T> result) {
  EXPECT_TRUE(result) << result.status().ToString();
  return std::move(result).value();
}

// Objects that count the living. What was moved from does not count.
class Counted {
 public:
  explicit Counted(std::atomic<int64_t>* living, uint64_t number = 0, size_t weight = 0)
      : living_(living), number_(number), weight_(weight) {
    living_->fetch_add(1);
  }
  Counted(Counted&& other) noexcept
      : living_(std::exchange(other.living_, nullptr)),
        number_(other.number_),
        weight_(other.weight_) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (living_ != nullptr) living_->fetch_sub(1);
  }

  uint64_t number() const { return number_; }
  size_t weight() const { return weight_; }
  bool is_alive() const { return living_ != nullptr; }

 private:
  std::atomic<int64_t>* living_;
  uint64_t number_;
  size_t weight_;
};

using CountedCache = TypedCache<uint64_t, Counted>;

class TypedCacheTest : public testing::Test {
 protected:
  static std::unique_ptr<CountedCache> NewCounted(CacheOptions options = {}) {
    return Must(CountedCache::Create(
        std::move(options), [](uint64_t, const Counted& value) { return value.weight(); }));
  }
  Counted Make(uint64_t number, size_t weight = 0) { return Counted(&living_, number, weight); }
  /// Puts that are given up by now are destroyed when later operations come.
  static void Settle(CountedCache* cache) {
    cache->Clear();
    cache->Clear();
  }
  void TearDown() override { EXPECT_EQ(living_.load(), 0); }

  std::atomic<int64_t> living_ = 0;
};

// ---- Keys and values ----

TEST(TypedCacheKeys, MayBeStringsIntegersEnumsAndStructs) {
  const auto strings = Must(TypedCache<std::string, int>::Create());
  ASSERT_TRUE(strings->Put("one", 1).ok());
  ASSERT_TRUE(strings->Put(std::string_view("two", 3), 2).ok());
  EXPECT_EQ(Held(strings->Get("one")), 1);
  EXPECT_EQ(Held(strings->Get("two")), 2);
  EXPECT_FALSE(strings->Get("three"));

  const auto integers = Must(TypedCache<int64_t, std::string>::Create());
  for (int64_t i = -500; i < 500; ++i) ASSERT_TRUE(integers->Put(i, std::to_string(i)).ok());
  for (int64_t i = -500; i < 500; ++i) ASSERT_EQ(Held(integers->Get(i)), std::to_string(i));

  struct Place {
    uint32_t file;
    uint32_t block;
  };
  const auto places = Must(TypedCache<Place, std::unique_ptr<int>>::Create());
  ASSERT_TRUE(places->Put({1, 2}, std::make_unique<int>(12)).ok());
  ASSERT_TRUE(places->Put({2, 1}, std::make_unique<int>(21)).ok());
  EXPECT_EQ(*Held(places->Get({1, 2})), 12);
  EXPECT_EQ(*Held(places->Get({2, 1})), 21);
  EXPECT_FALSE(places->Get({1, 1}));
}

struct UserId {
  explicit UserId(uint64_t given) : number(given) {}
  uint64_t number;
};

TEST(TypedCacheKeys, NeedNoDefaultConstructor) {
  const auto cache = Must(TypedCache<UserId, int>::Create());
  ASSERT_TRUE(cache->Put(UserId(7), 42).ok());
  EXPECT_EQ(Held(cache->Get(UserId(7))), 42);
  uint64_t seen = 0;
  const auto visit = [&](const UserId& id, const int&) {
    seen = id.number;
    return true;
  };
  ASSERT_TRUE(cache->ForEach(visit).ok());
  EXPECT_EQ(seen, 7u);
}

/// Has allocation functions of its own, none of which takes a place.
struct Pooled {
  explicit Pooled(int given) : number(given) {}
  static void* operator new(size_t size) { return ::operator new(size); }
  static void operator delete(void* at) { ::operator delete(at); }
  int number;
};

TEST(TypedCacheValues, MayHaveAllocationFunctionsOfTheirOwn) {
  const auto cache = Must(TypedCache<int, Pooled>::Create());
  ASSERT_TRUE(cache->Put(1, Pooled(2)).ok());
  EXPECT_EQ(Held(cache->Get(1)).number, 2);
}

TEST(TypedCacheKeys, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ((TypedCache<int, int>::Create({.capacity_bytes = 1}).status().code()),
            StatusCode::kInvalidArgument);
}

TEST(TypedCacheValues, SharedPointersAreHeldAndLetGo) {
  auto cache = Must(TypedCache<std::string, std::shared_ptr<std::string>>::Create());
  const auto text = std::make_shared<std::string>("shared");
  ASSERT_TRUE(cache->Put("key", text).ok());
  EXPECT_EQ(text.use_count(), 2);
  {
    const auto pinned = cache->Get("key");
    ASSERT_TRUE(pinned);
    EXPECT_EQ(pinned->get(), text.get());
    EXPECT_EQ(text.use_count(), 2) << "the object itself is shared, not copied";
  }
  cache->Delete("key");
  cache.reset();
  EXPECT_EQ(text.use_count(), 1);
}

TEST_F(TypedCacheTest, AllFunctionsDoWhatTheirNamesSay) {
  const auto cache = NewCounted();
  EXPECT_FALSE(cache->Get(1));
  EXPECT_FALSE(Must(cache->Replace(1, Make(10))));
  EXPECT_TRUE(Must(cache->PutIfAbsent(1, Make(11))));
  EXPECT_FALSE(Must(cache->PutIfAbsent(1, Make(12))));
  EXPECT_EQ(Held(cache->Get(1)).number(), 11u);
  EXPECT_TRUE(Must(cache->Replace(1, Make(13))));
  EXPECT_EQ(Held(cache->Peek(1)).number(), 13u);
  EXPECT_TRUE(cache->Touch(1, milliseconds(0)));
  EXPECT_FALSE(cache->Touch(2, milliseconds(0)));
  EXPECT_FALSE(cache->Touch(1, milliseconds(-1)));
  EXPECT_EQ(cache->Put(1, Make(14), {.ttl = milliseconds(-1)}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Held(cache->Take(1)).number(), 13u);
  EXPECT_FALSE(cache->Take(1));
  ASSERT_TRUE(cache->Put(1, Make(15)).ok());
  EXPECT_TRUE(cache->Delete(1));
  EXPECT_FALSE(cache->Delete(1));
  const CacheStats stats = cache->GetStats();
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.entries, 0u);
}

TEST_F(TypedCacheTest, UpdateReplacesMakesErasesAndRefuses) {
  using Updated = Result<std::optional<Counted>>;
  const auto cache = NewCounted();
  const auto add_one = [&](const Counted* present) -> Updated {
    return std::optional<Counted>(std::in_place, &living_,
                                  present == nullptr ? 1 : present->number() + 1);
  };
  ASSERT_TRUE(cache->Update(7, add_one).ok());
  const Pinned<Counted> first = cache->Get(7);
  ASSERT_TRUE(cache->Update(7, add_one).ok());
  EXPECT_EQ(first->number(), 1u) << "it is another object";
  EXPECT_EQ(Held(cache->Get(7)).number(), 2u);
  const Status refused = cache->Update(
      7, [](const Counted*) -> Updated { return Status(StatusCode::kAborted, "not now"); });
  EXPECT_EQ(refused.code(), StatusCode::kAborted);
  EXPECT_EQ(Held(cache->Get(7)).number(), 2u);
  const auto erase = [](const Counted*) -> Updated { return std::optional<Counted>(); };
  ASSERT_TRUE(cache->Update(7, erase).ok());
  EXPECT_FALSE(cache->Get(7));
}

TEST_F(TypedCacheTest, AnUpdateThatFindsNoRoomLeavesTheOldObject) {
  const auto cache = NewCounted({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(cache->Put(7, Counted(&living_, 1)).ok());
  const auto grow = [&](const Counted*) -> Result<std::optional<Counted>> {
    return std::optional<Counted>(std::in_place, &living_, 2, 2 << 20);
  };
  EXPECT_EQ(cache->Update(7, grow).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Held(cache->Get(7)).number(), 1u);
  EXPECT_EQ(living_, 1);
}

TEST_F(TypedCacheTest, UpdatesOfOneKeyByManyThreadsAllCount) {
  constexpr int kThreads = 4;
  constexpr uint64_t kUpdates = 2'000;
  const auto cache = NewCounted();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto add_one = [&](const Counted* present) -> Result<std::optional<Counted>> {
        return std::optional<Counted>(std::in_place, &living_,
                                      present == nullptr ? 1 : present->number() + 1);
      };
      for (uint64_t k = 0; k < kUpdates; ++k) EXPECT_TRUE(cache->Update(7, add_one).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Held(cache->Get(7)).number(), kThreads * kUpdates);
}

TEST_F(TypedCacheTest, ForEachGivesEveryKeyAndObjectOnce) {
  const auto cache = NewCounted();
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(cache->Put(i, Make(i * 3)).ok());
  std::set<uint64_t> seen;
  ASSERT_TRUE(cache
                  ->ForEach([&](const uint64_t& key, const Counted& value) {
                    EXPECT_EQ(value.number(), key * 3);
                    EXPECT_TRUE(seen.insert(key).second);
                    return true;
                  })
                  .ok());
  EXPECT_EQ(seen.size(), 3000u);
}

// ---- Objects live as long as they are needed, and no longer ----

TEST_F(TypedCacheTest, AReplacedErasedOrTakenObjectLivesWhileItIsPinned) {
  const auto cache = NewCounted();
  const auto gone_but_pinned = [&](const auto& remove) {
    ASSERT_TRUE(cache->Put(1, Make(7)).ok());
    {
      const Pinned<Counted> pinned = cache->Get(1);
      remove();
      Settle(cache.get());
      EXPECT_TRUE(pinned->is_alive());
      EXPECT_EQ(pinned->number(), 7u);
      EXPECT_EQ(living_.load(), 1);
    }
    EXPECT_EQ(living_.load(), 0);
  };
  gone_but_pinned([&] { ASSERT_TRUE(cache->Put(1, Make(8)).ok()); });
  gone_but_pinned([&] { cache->Delete(1); });
  gone_but_pinned([&] { cache->Take(1); });
  gone_but_pinned([&] { cache->Clear(); });
  EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
  EXPECT_EQ(cache->GetStats().pinned_bytes, 0u);
}

TEST_F(TypedCacheTest, AReplacedErasedOrTakenObjectIsDestroyedAtOnceWhereNobodyReads) {
  const auto pause = [] { std::this_thread::sleep_for(milliseconds(80)); };
  const auto cache = NewCounted({.shards = 1});
  for (uint64_t key = 0; key < 400; ++key) ASSERT_TRUE(cache->Put(key, Make(key)).ok());
  pause();
  ASSERT_TRUE(cache->Put(0, Make(0)).ok());
  EXPECT_EQ(living_.load(), 400);
  pause();
  EXPECT_TRUE(cache->Take(1));
  EXPECT_EQ(living_.load(), 399);
  pause();
  EXPECT_TRUE(cache->Delete(2));
  EXPECT_EQ(living_.load(), 398);
  // Of many, soon.
  for (uint64_t key = 3; key < 200; ++key) {
    EXPECT_TRUE(cache->Delete(key));
    EXPECT_LE(living_.load(), 400 - static_cast<int64_t>(key) + 130);
  }
  pause();
  EXPECT_TRUE(cache->Delete(200));
  EXPECT_EQ(living_.load(), 200);
  cache->Clear();
  EXPECT_EQ(living_.load(), 0);
}

TEST_F(TypedCacheTest, AnExpiredObjectIsDestroyed) {
  const auto cache = NewCounted();
  ASSERT_TRUE(cache->Put(1, Make(1), {.ttl = milliseconds(1)}).ok());
  while (cache->Get(1)) {
  }
  cache->Delete(1);
  Settle(cache.get());
  EXPECT_EQ(living_.load(), 0);
  EXPECT_EQ(cache->GetStats().expired, 1u);
}

TEST_F(TypedCacheTest, AnEvictedObjectIsDestroyed) {
  auto cache = NewCounted({.capacity_bytes = 256 << 10});
  for (uint64_t i = 0; i < 50'000; ++i) ASSERT_TRUE(cache->Put(i, Make(i)).ok());
  const CacheStats stats = cache->GetStats();
  EXPECT_GT(stats.evicted, 40'000u);
  EXPECT_LT(living_.load(), static_cast<int64_t>(stats.entries) + 2000);
  EXPECT_GE(living_.load(), static_cast<int64_t>(stats.entries));
}

TEST_F(TypedCacheTest, ARefusedObjectIsDestroyedAndTheOldOneErased) {
  const auto cache = NewCounted({.capacity_bytes = 1 << 20});
  for (const size_t weight : {size_t{2} << 20, size_t{1} << 62, SIZE_MAX, SIZE_MAX - 100}) {
    ASSERT_TRUE(cache->Put(1, Make(1)).ok());
    EXPECT_EQ(cache->Put(1, Make(2, weight)).code(), StatusCode::kResourceExhausted) << weight;
    EXPECT_FALSE(cache->Get(1)) << weight;
    EXPECT_EQ(cache->PutIfAbsent(1, Make(3, weight)).status().code(),
              StatusCode::kResourceExhausted)
        << weight;
    EXPECT_LE(cache->GetStats().bytes, 1u << 20) << weight;
  }
  Settle(cache.get());
  EXPECT_EQ(living_.load(), 0);
  EXPECT_EQ(cache->GetStats().refused, 8u);
}

TEST_F(TypedCacheTest, ObjectsOutliveTheCacheInTheirPins) {
  auto cache = NewCounted();
  std::vector<Pinned<Counted>> held;
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(cache->Put(i, Make(i, 1000)).ok());
    if (i % 2 == 0) held.push_back(cache->Get(i));
  }
  cache.reset();
  EXPECT_EQ(living_.load(), 50);
  for (uint64_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i]->number(), 2 * i);
  std::thread([&] { held.clear(); }).join();
  EXPECT_EQ(living_.load(), 0);
}

TEST_F(TypedCacheTest, ADestructorMayUseTheCache) {
  struct Phoenix {
    TypedCache<int, Phoenix>** cache;
    int lives;
    Phoenix(TypedCache<int, Phoenix>** in, int count) : cache(in), lives(count) {}
    Phoenix(Phoenix&& other) noexcept
        : cache(std::exchange(other.cache, nullptr)), lives(other.lives) {}
    Phoenix& operator=(Phoenix&&) = delete;
    ~Phoenix() {
      if (cache == nullptr || *cache == nullptr || lives == 0) return;
      EXPECT_TRUE((*cache)->Put(lives, Phoenix(cache, lives - 1)).ok());
    }
  };
  TypedCache<int, Phoenix>* in = nullptr;
  const auto cache = Must(TypedCache<int, Phoenix>::Create({.shards = 1}));
  in = cache.get();
  ASSERT_TRUE(cache->Put(100, Phoenix(&in, 3)).ok());
  for (int i = 0; i < 10; ++i) cache->Clear();
  EXPECT_GE(cache->GetStats().inserts, 4u);
  in = nullptr;
}

TEST_F(TypedCacheTest, OnRemoveHearsOfKeysWithoutValues) {
  std::vector<std::pair<std::string, Removal>> heard;
  CacheOptions options;
  options.on_remove = [&](std::string_view key, std::string_view value, Removal reason) {
    EXPECT_TRUE(value.empty());
    heard.emplace_back(key, reason);
  };
  const auto cache = Must(TypedCache<std::string, int>::Create(std::move(options)));
  ASSERT_TRUE(cache->Put("key", 1).ok());
  ASSERT_TRUE(cache->Put("key", 2).ok());
  cache->Delete("key");
  EXPECT_EQ(heard, (std::vector<std::pair<std::string, Removal>>{{"key", Removal::kReplaced},
                                                                 {"key", Removal::kDeleted}}));
}

// ---- GetOrCompute ----

TEST_F(TypedCacheTest, GetOrComputeKeepsWhatItComputed) {
  const auto cache = NewCounted();
  int runs = 0;
  const auto compute = [&]() -> Result<Counted> {
    ++runs;
    return Make(5, 100);
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Held(Must(cache->GetOrCompute(1, compute))).number(), 5u);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(living_.load(), 1);
}

TEST_F(TypedCacheTest, ABeatenComputationsObjectLivesInItsPinOnly) {
  const auto cache = NewCounted();
  {
    const Pinned<Counted> pinned = Must(cache->GetOrCompute(1, [&]() -> Result<Counted> {
      EXPECT_TRUE(cache->Put(1, Make(6)).ok());
      return Make(5, 100);
    }));
    EXPECT_EQ(pinned->number(), 5u);
    EXPECT_EQ(Held(cache->Get(1)).number(), 6u);
    EXPECT_EQ(living_.load(), 2);
  }
  EXPECT_EQ(living_.load(), 1);
}

TEST_F(TypedCacheTest, AnOutdatedComputationsObjectLivesInItsPinOnly) {
  const auto cache = NewCounted();
  Result<Pinned<Counted>> pinned = cache->GetOrCompute(1, [&]() -> Result<Counted> {
    cache->Clear();
    return Make(1);
  });
  ASSERT_TRUE(pinned);
  EXPECT_FALSE(cache->Get(1));
  EXPECT_EQ(living_.load(), 1);
  *pinned = Pinned<Counted>();
  Settle(cache.get());
  EXPECT_EQ(living_.load(), 0);
}

TEST_F(TypedCacheTest, AComputedObjectWithoutRoomLivesInItsPinOnly) {
  const auto cache = NewCounted({.capacity_bytes = 1 << 20});
  {
    const Pinned<Counted> pinned =
        Must(cache->GetOrCompute(1, [&]() -> Result<Counted> { return Make(5, 2 << 20); }));
    EXPECT_EQ(pinned->number(), 5u);
    EXPECT_FALSE(cache->Get(1));
  }
  EXPECT_EQ(living_.load(), 0);
  EXPECT_LT(cache->GetStats().bytes, 1u << 20);
}

TEST_F(TypedCacheTest, AFailedOrThrownComputationLeavesNothing) {
  const auto cache = NewCounted();
  EXPECT_EQ(cache
                ->GetOrCompute(
                    1, []() -> Result<Counted> { return Status(StatusCode::kIoError, "away"); })
                .status()
                .code(),
            StatusCode::kIoError);
  const auto thrower = []() -> Result<Counted> { throw std::runtime_error("thrown"); };
  EXPECT_THROW(static_cast<void>(cache->GetOrCompute(1, thrower)), std::runtime_error);
  EXPECT_FALSE(cache->Get(1));
  const auto made = Must(cache->GetOrCompute(1, [&]() -> Result<Counted> { return Make(5); }));
  EXPECT_EQ(made->number(), 5u);
}

// ---- Weight ----

TEST_F(TypedCacheTest, WeightIsChargedAndRefundedExactly) {
  const auto cache = NewCounted({.capacity_bytes = 16 << 20, .shards = 1});
  ASSERT_TRUE(cache->Put(1, Make(1)).ok());
  const uint64_t before = cache->GetStats().bytes;
  ASSERT_TRUE(cache->Put(2, Make(2, 100'001)).ok());
  EXPECT_EQ(cache->GetStats().bytes, before + 100'001);
  ASSERT_TRUE(cache->Put(2, Make(2, 50'000)).ok());
  Settle(cache.get());
  EXPECT_LE(cache->GetStats().bytes, before);
  const uint64_t empty = cache->GetStats().bytes;
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(cache->Put(i, Make(i, 1000 + i)).ok());
    for (uint64_t i = 0; i < 1000; i += 2) cache->Delete(i);
    Settle(cache.get());
  }
  EXPECT_LE(cache->GetStats().bytes, empty + (64 << 10));
  EXPECT_EQ(living_.load(), 0);
}

TEST_F(TypedCacheTest, WeightMakesOthersGo) {
  const auto cache = NewCounted({.capacity_bytes = 4 << 20});
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache->Put(i, Make(i, 100'000)).ok()) << i;
    ASSERT_LE(cache->GetStats().bytes, 4u << 20);
  }
  const uint64_t entries = cache->GetStats().entries;
  EXPECT_GT(entries, 20u);
  EXPECT_LE(entries, 41u);
}

TEST_F(TypedCacheTest, NothingIsRefusedForRoomThatAnotherThreadTookFirst) {
  constexpr uint64_t kThreads = 16;
  constexpr uint64_t kPuts = 40'000;
  const auto cache = NewCounted({.capacity_bytes = 4 << 20});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kPuts; ++i) {
        const Status put = cache->Put(t * kPuts + i, Make(i, 100'000));
        ASSERT_TRUE(put.ok()) << put.ToString();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache->GetStats().refused, 0u);
  EXPECT_LE(cache->GetStats().bytes, 4u << 20);
  Settle(cache.get());
}

TEST_F(TypedCacheTest, APinnedObjectsWeightStaysCharged) {
  const auto cache = NewCounted({.capacity_bytes = 4 << 20});
  std::vector<Pinned<Counted>> held;
  uint64_t refused = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    refused += cache->Put(i, Make(i, 100'000)).ok() ? 0 : 1;
    if (auto pinned = cache->Get(i)) held.push_back(std::move(pinned));
  }
  EXPECT_GT(refused, 50u);
  EXPECT_GT(held.size(), 20u);
  EXPECT_LE(cache->GetStats().bytes, 4u << 20);
  cache->Clear();
  EXPECT_GT(cache->GetStats().bytes, 2u << 20);
  held.clear();
  Settle(cache.get());
  EXPECT_LT(cache->GetStats().bytes, 1u << 20);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(cache->Put(i, Make(i, 100'000)).ok());
}

// ---- Threads ----

TEST_F(TypedCacheTest, EveryObjectIsDestroyedOnceWhateverBecameOfIt) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    auto cache = NewCounted({.capacity_bytes = 1 << 20, .shards = 2, .eviction = eviction});
    std::vector<Pinned<Counted>> held(64);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        base::Random random(t);
        for (int i = 0; i < 20'000; ++i) {
          const uint64_t key = random.Below(2000);
          const size_t weight = random.OneIn(1000) ? 4 << 20 : random.Below(2000);
          const CachePutOptions options{.ttl = milliseconds(random.OneIn(4) ? 1 : 0)};
          Pinned<Counted> pinned;
          switch (random.Below(10)) {
            case 0:
              cache->Delete(key);
              break;
            case 1:
              pinned = cache->Take(key);
              break;
            case 2:
              static_cast<void>(cache->PutIfAbsent(key, Make(key, weight), options));
              break;
            case 3:
              static_cast<void>(cache->Replace(key, Make(key, weight), options));
              break;
            case 4:
              pinned = Must(cache->GetOrCompute(
                  key, [&]() -> Result<Counted> { return Make(key, weight); }, options));
              break;
            case 5:
            case 6:
              pinned = cache->Get(key);
              break;
            default:
              static_cast<void>(cache->Put(key, Make(key, weight), options));
          }
          if (pinned) {
            ASSERT_TRUE(pinned->is_alive());
            ASSERT_EQ(pinned->number(), key);
          }
          if (pinned && random.OneIn(8)) held[t * 16 + random.Below(16)] = std::move(pinned);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    cache.reset();
    int64_t pinned = 0;
    for (const Pinned<Counted>& one : held) {
      if (one) ++pinned;
    }
    EXPECT_LE(living_.load(), pinned);
    EXPECT_GT(living_.load(), 0);
    held.clear();
    EXPECT_EQ(living_.load(), 0);
  }
}

}  // namespace
}  // namespace basalt::cache
