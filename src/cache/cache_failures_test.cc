// Each allocation of a cache at work fails in turn, alone or with all behind it. Calls give
// ResourceExhausted or succeed; what was acknowledged is there unless the cache told of its
// eviction, what was refused is not; nothing leaks, and all later calls work.

#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/extent_pool.h"
#include "base/random.h"
#include "base/test_memory.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

using base::MemoryThatFails;
using std::chrono::hours;

constexpr size_t kKeys = 1'200;

/// Of the process's pools, in slabs that hold something.
size_t PooledBytes() {
  const base::ChunkPool& chunks = *base::ChunkPool::Process();
  return chunks.slab_bytes() - chunks.kept_bytes() + base::ExtentPool::Process()->slab_bytes();
}

/// A cache, and what it has to hold. Between Create and Verify it asks for no memory itself.
class FailingWorld {
 public:
  explicit FailingWorld(Eviction eviction) : eviction_(eviction), versions_(kKeys, kAbsent) {
    base::Random random(1);
    for (char& c : bytes_) c = static_cast<char>(random.Next());
    for (size_t i = 0; i < kKeys; ++i) keys_.push_back("key" + std::to_string(i));
    for (size_t i = 0; i < kKeys; ++i) updates_.emplace_back(ValueOf(i, kUpdated));
  }
  FailingWorld(const FailingWorld&) = delete;
  FailingWorld& operator=(const FailingWorld&) = delete;

  bool Create() {
    auto cache =
        Cache::Create({.capacity_bytes = 4 << 20,
                       .shards = 1,
                       .eviction = eviction_,
                       .on_remove = [this](std::string_view key, std::string_view, Removal reason) {
                         if (reason == Removal::kEvicted) versions_[NumberOf(key)] = kAbsent;
                       }});
    if (cache) cache_ = std::move(*cache);
    return Answers(cache.status());
  }

  /// All that changes a cache. With enough entries that the index is split and made deeper.
  void Work() {
    if (!Create() || cache_ == nullptr) return;
    for (size_t i = 0; i < kKeys; ++i) {
      const CachePutOptions options =
          i % 5 == 0 ? CachePutOptions{.ttl = hours(i)} : CachePutOptions{};
      Learn(i, kPut, cache_->Put(keys_[i], ValueOf(i, kPut), options));
    }
    for (size_t i = 0; i < kKeys; i += 3) {
      Learn(i, kReplaced, cache_->Put(keys_[i], ValueOf(i, kReplaced)));
    }
    for (size_t i = 0; i < kKeys; i += 7) {
      const Status updated =
          cache_->Update(keys_[i], base::ByValue([&](auto) -> Result<std::optional<std::string>> {
                           return std::optional(std::move(updates_[i]));
                         }));
      if (Answers(updated) && updated.ok()) versions_[i] = kUpdated;
    }
    for (size_t i = 0; i < kKeys; i += 11) Allocate(i);
    for (size_t i = 0; i < kKeys; i += 4) {
      EXPECT_EQ(cache_->Delete(keys_[i]), versions_[i] != kAbsent) << keys_[i];
      versions_[i] = kAbsent;
    }
    for (size_t i = 1; i < kKeys; i += 9) {
      // A large value stays where it cannot be handed out.
      if (cache_->Take(keys_[i])) versions_[i] = kAbsent;
    }
    for (size_t i = 0; i < kKeys; i += 8) {
      const Result<bool> put = cache_->PutIfAbsent(keys_[i], ValueOf(i, kPut));
      Learn(i, kPut, put.status());
      EXPECT_TRUE(!put || *put) << keys_[i];
      const Result<bool> replaced = cache_->Replace(keys_[i], ValueOf(i, kReplaced));
      if (!replaced || *replaced) Learn(i, kReplaced, replaced.status());
    }
    for (size_t i = 4; i < kKeys; i += 8) Compute(i);
    for (size_t i = 2; i < kKeys; i += 10) {
      EXPECT_EQ(cache_->Touch(keys_[i], hours(1)), versions_[i] != kAbsent) << keys_[i];
    }
    Answers(cache_->ForEach([](std::string_view, std::string_view) { return true; }));
    Answers(cache_->SetCapacity(1 << 20));
    Answers(cache_->Reserve(256 << 10).status());
    for (size_t i = 0; i < kKeys; i += 2) Learn(i, kLast, cache_->Put(keys_[i], ValueOf(i, kLast)));
  }

  void Verify() {
    if (cache_ == nullptr) {
      ASSERT_TRUE(Create());
    }
    ExpectContent();
    for (size_t i = 0; i < kKeys; i += 3) {
      ASSERT_EQ(cache_->Put(keys_[i], ValueOf(i, kPut)).ToString(), "Ok");
      versions_[i] = kPut;
    }
    ExpectContent();
    EXPECT_EQ(cache_->GetStats().pinned_entries, 0u);
    EXPECT_EQ(cache_->GetStats().reserved_bytes, 0u);
    cache_->Clear();
    EXPECT_EQ(cache_->GetStats().entries, 0u);
    EXPECT_EQ(cache_->GetStats().pinned_bytes, 0u);
    EXPECT_EQ(cache_->GetStats().retired_bytes, 0u);
  }

  /// How much of a small capacity can be reserved, once Verify has removed all entries.
  uint64_t FreeBytes() {
    constexpr uint64_t kCapacity = 128 << 10;
    EXPECT_TRUE(cache_->SetCapacity(kCapacity).ok());
    uint64_t bytes = 0;
    for (uint64_t more = kCapacity / 2; more >= 8; more /= 2) {
      if (cache_->Reserve(bytes + more)) bytes += more;
    }
    return bytes;
  }

 private:
  enum Version : uint8_t { kAbsent, kPut, kReplaced, kUpdated, kInPlace, kLast };

  std::string_view ValueOf(size_t number, Version version) const {
    // In slabs with and without a pin part, in both pools.
    constexpr std::array<size_t, 5> kSizes = {3, 100, 200, 700, 9'000};
    const size_t size = kSizes[number % 50 == 0 ? 4 : (number + version) % 4];
    return std::string_view(bytes_).substr(number + size_t{version} * kKeys, size);
  }
  static size_t NumberOf(std::string_view key) {
    size_t number = 0;
    std::from_chars(key.data() + 3, key.data() + key.size(), number);
    return number;
  }

  /// Whether it is one of the answers that may be.
  static bool Answers(const Status& status) {
    const bool may_be = status.ok() || status.code() == StatusCode::kResourceExhausted;
    EXPECT_TRUE(may_be) << status.ToString();
    return may_be;
  }
  void Learn(size_t number, Version version, const Status& put) {
    Answers(put);
    versions_[number] = put.ok() ? version : kAbsent;
  }
  void Allocate(size_t number) {
    const std::string_view value = ValueOf(number, kInPlace);
    Result<CacheAllocation> room = cache_->Allocate(keys_[number], value.size());
    if (!Answers(room.status()) || !room) return;
    value.copy(room->bytes().data(), value.size());
    const Value published = std::move(*room).Publish();
    EXPECT_EQ(published.view(), value);
    versions_[number] = kInPlace;
  }
  void Compute(size_t number) {
    const auto compute = [&]() -> Result<std::string> { return std::move(updates_[number]); };
    // By reference: it takes no memory.
    const Result<Value> value = cache_->GetOrCompute(keys_[number], std::cref(compute));
    Answers(value.status());
    if (value) versions_[number] = kUpdated;
  }

  void ExpectContent() const {
    size_t present = 0;
    for (size_t i = 0; i < kKeys; ++i) {
      const MaybeValue value = cache_->Peek(keys_[i]);
      ASSERT_EQ(value.has_value(), versions_[i] != kAbsent)
          << keys_[i] << ", version " << int{versions_[i]};
      if (!value) continue;
      ASSERT_EQ(value->view(), ValueOf(i, versions_[i])) << keys_[i];
      ++present;
    }
    EXPECT_EQ(cache_->GetStats().entries, present);
  }

  const Eviction eviction_;
  std::string bytes_ = std::string(10 * kKeys + 10'000, '\0');
  std::vector<std::string> keys_;
  std::vector<std::string> updates_;
  std::vector<Version> versions_;
  std::unique_ptr<Cache> cache_;
};

/// Has the n-th allocation fail that `try_with(n, failing)` makes, for each n, alone and with all
/// behind it; that gives whether it made so many.
template <class TryWith>
void Sweep(const TryWith& try_with) {
  for (const int64_t failing : {int64_t{1}, MemoryThatFails::kAll}) {
    // With all behind it, a part of them shows the same and takes long.
    const int64_t step = failing == 1 ? 1 : 17;
    bool has_failed = true;
    for (int64_t n = 0; has_failed; n += step) {
      SCOPED_TRACE("allocation " + std::to_string(n) + (failing == 1 ? "" : " and all behind it"));
      has_failed = try_with(n, failing);
      if (testing::Test::HasFailure()) return;
      ASSERT_LT(n, 10'000);
    }
  }
}

void SweepBytes(Eviction eviction, MemoryThatFails::Of of) {
  uint64_t free_bytes = 0;
  {
    FailingWorld world(eviction);
    world.Work();
    world.Verify();
    free_bytes = world.FreeBytes();
  }
  const size_t pooled_bytes = PooledBytes();
  Sweep([&](int64_t n, int64_t failing) {
    bool has_failed = false;
    {
      FailingWorld world(eviction);
      {
        const MemoryThatFails memory(n, failing, of);
        world.Work();
        has_failed = memory.has_failed();
      }
      world.Verify();
      EXPECT_GE(world.FreeBytes(), free_bytes) << "something stays charged";
    }
    EXPECT_EQ(PooledBytes(), pooled_bytes) << "something was not given back";
    return has_failed;
  });
}

TEST(CacheFailures, OfTheSystemsMemoryAreSurvived) {
  SweepBytes(Eviction::kClock, MemoryThatFails::Of::kEvery);
  SweepBytes(Eviction::kS3Fifo, MemoryThatFails::Of::kEvery);
}

TEST(CacheFailures, OfThePoolsAreSurvived) {
  SweepBytes(Eviction::kClock, MemoryThatFails::Of::kPools);
  SweepBytes(Eviction::kS3Fifo, MemoryThatFails::Of::kPools);
}

/// Counts how many of its kind there are.
class CountedPins {
 public:
  CountedPins(int* living, int number) noexcept : living_(living), number_(number) { ++*living_; }
  CountedPins(CountedPins&& other) noexcept : CountedPins(other.living_, other.number_) {}
  CountedPins& operator=(CountedPins&&) = delete;
  ~CountedPins() { --*living_; }
  int number() const { return number_; }

 private:
  int* living_;
  int number_;
};

void SweepObjects(MemoryThatFails::Of of) {
  using Objects = TypedCache<int, CountedPins>;
  constexpr int kObjects = 600;
  Sweep([&](int64_t n, int64_t failing) {
    int living = 0;
    bool has_failed = false;
    std::unique_ptr<Objects> cache =
        Objects::Create({.capacity_bytes = 1 << 20, .shards = 1}, [](const int& key,
                                                                     const CountedPins&) {
          return static_cast<size_t>(key);
        }).value();
    const auto expect = [](const Status& status) {
      EXPECT_TRUE(status.ok() || status.code() == StatusCode::kResourceExhausted)
          << status.ToString();
    };
    {
      const MemoryThatFails memory(n, failing, of);
      for (int i = 0; i < kObjects; ++i) expect(cache->Put(i, CountedPins(&living, i)));
      for (int i = 0; i < kObjects; i += 3) {
        expect(cache->Replace(i, CountedPins(&living, -i)).status());
      }
      for (int i = 0; i < kObjects; i += 5) {
        const auto update = [&](const CountedPins*) -> Result<std::optional<CountedPins>> {
          return std::optional<CountedPins>(std::in_place, &living, i);
        };
        expect(cache->Update(i, update));
      }
      for (int i = 0; i < kObjects; i += 2) cache->Delete(i);
      for (int i = 1; i < kObjects; i += 9) cache->Take(i);
      for (int i = 0; i < kObjects; i += 4) {
        const auto compute = [&]() -> Result<CountedPins> { return CountedPins(&living, i); };
        const Result<Pinned<CountedPins>> object = cache->GetOrCompute(i, compute);
        expect(object.status());
        EXPECT_TRUE(!object || (*object)->number() == i);
      }
      has_failed = memory.has_failed();
    }
    for (int i = 0; i < kObjects; ++i) {
      const Pinned<CountedPins> object = cache->Peek(i);
      EXPECT_TRUE(!object || object->number() == i || object->number() == -i);
    }
    EXPECT_TRUE(cache->Put(7, CountedPins(&living, 49)).ok());
    EXPECT_EQ(Held(cache->Get(7)).number(), 49);
    cache.reset();
    EXPECT_EQ(living, 0);
    return has_failed;
  });
}

TEST(CacheFailures, OfCachesOfObjectsAreSurvived) {
  SweepObjects(MemoryThatFails::Of::kEvery);
  SweepObjects(MemoryThatFails::Of::kPools);
}

}  // namespace
}  // namespace basalt::cache
