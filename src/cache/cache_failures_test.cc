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
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

using base::MemoryThatFails;
using std::chrono::hours;

constexpr size_t kKeys = 1'200;

/// Of the process's pools, in slabs that hold something.
size_t PooledBytes() {
  const base::ChunkPool& chunks = *base::ChunkPool::Process();
  return chunks.slab_bytes() - chunks.kept_bytes() + base::ObjectPool::Process()->slab_bytes() +
         base::ExtentPool::Process()->slab_bytes();
}

/// A cache, and what it has to hold. Between Create and Verify it asks for no memory itself.
class World {
 public:
  explicit World(Eviction eviction) : eviction_(eviction), versions_(kKeys, kAbsent) {
    base::Random random(1);
    for (char& c : bytes_) c = static_cast<char>(random.Next());
    for (size_t i = 0; i < kKeys; ++i) keys_.push_back("key" + std::to_string(i));
    for (size_t i = 0; i < kKeys; ++i) updates_.emplace_back(ValueOf(i, kUpdated));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

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
          cache_->Update(keys_[i], [&](auto) -> Result<std::optional<std::string>> {
            return std::optional(std::move(updates_[i]));
          });
      if (Answers(updated) && updated.ok()) versions_[i] = kUpdated;
    }
    for (size_t i = 0; i < kKeys; i += 11) Allocate(i);
    for (size_t i = 0; i < kKeys; i += 4) {
      EXPECT_EQ(cache_->Erase(keys_[i]), versions_[i] != kAbsent) << keys_[i];
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

/// Runs World::Work with the n-th allocation failing, alone and with all behind it, for each n.
void Sweep(Eviction eviction) {
  {
    World(eviction).Work();
  }
  const size_t pooled_bytes = PooledBytes();
  for (const int64_t failing : {int64_t{1}, MemoryThatFails::kAll}) {
    bool has_failed = true;
    for (int64_t n = 0; has_failed; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n) + (failing == 1 ? "" : " and all behind it"));
      {
        World world(eviction);
        {
          const MemoryThatFails memory(n, failing);
          world.Work();
          has_failed = memory.has_failed();
        }
        world.Verify();
      }
      EXPECT_EQ(PooledBytes(), pooled_bytes) << "something was not given back";
      if (testing::Test::HasFailure()) return;
      ASSERT_LT(n, 10'000);
    }
  }
}

TEST(CacheFailures, OfTheSystemsMemoryAreSurvivedWithClock) { Sweep(Eviction::kClock); }
TEST(CacheFailures, OfTheSystemsMemoryAreSurvivedWithS3Fifo) { Sweep(Eviction::kS3Fifo); }

}  // namespace
}  // namespace basalt::cache
