#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/test_fork.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// The handles of a cache and their charges: values, allocations, reservations.

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;

// ---- Values ----

class HeldValueTest : public testing::Test {
 protected:
  static constexpr uint64_t kSizes[] = {8, 112, 113, 400, 4096, 1 << 20};

  void SetUp() override {
    for (const uint64_t size : kSizes) {
      ASSERT_TRUE(cache_->Put(std::to_string(size), StampedValue(size, 1, size)).ok());
      MaybeValue value = cache_->Get(std::to_string(size));
      ASSERT_TRUE(value);
      held_.push_back(std::move(*value));
    }
  }
  void ExpectIntact() const {
    for (size_t i = 0; i < held_.size(); ++i) {
      const uint64_t size = kSizes[i];
      EXPECT_TRUE(held_[i].view() == StampedValue(size, 1, size)) << size;
    }
  }
  // Writes over all memory that was given back.
  void Churn() {
    for (uint64_t i = 0; i < 10'000; ++i) {
      const uint64_t size = kSizes[i % 5];
      ASSERT_TRUE(cache_->Put("churn" + std::to_string(i), StampedValue(i, 2, size)).ok());
    }
  }

  std::unique_ptr<Cache> cache_ = NewCache({.capacity_bytes = 8 << 20});
  std::vector<Value> held_;
};

TEST_F(HeldValueTest, StaysIntactAfterItWasOverwritten) {
  for (const uint64_t size : kSizes) {
    ASSERT_TRUE(cache_->Put(std::to_string(size), StampedValue(size, 2, size)).ok());
  }
  Churn();
  ExpectIntact();
}

TEST_F(HeldValueTest, StaysIntactAfterItWasErased) {
  for (const uint64_t size : kSizes) ASSERT_TRUE(cache_->Delete(std::to_string(size)));
  Churn();
  ExpectIntact();
}

TEST_F(HeldValueTest, StaysIntactThroughEviction) {
  for (int i = 0; i < 5; ++i) Churn();
  EXPECT_GT(cache_->GetStats().evicted, 0u);
  ExpectIntact();
}

TEST_F(HeldValueTest, StaysIntactAfterClear) {
  cache_->Clear();
  EXPECT_EQ(cache_->GetStats().entries, 0u);
  Churn();
  ExpectIntact();
}

TEST_F(HeldValueTest, OutlivesTheCache) {
  Churn();
  cache_.reset();
  const auto other = NewCache({.capacity_bytes = 8 << 20});
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(other->Put(std::to_string(i), StampedValue(i, 3, 400)).ok());
  }
  ExpectIntact();
}

TEST_F(HeldValueTest, IsCountedWhileItIsHeld) {
  EXPECT_EQ(cache_->GetStats().pinned_entries, 4u) << "all but those that lie in the Value";
  EXPECT_EQ(cache_->GetStats().pinned_bytes, 0u);
  cache_->Clear();
  Churn();
  EXPECT_GT(cache_->GetStats().pinned_bytes, uint64_t{1} << 20);
  EXPECT_LT(cache_->GetStats().pinned_bytes, uint64_t{9} << 17);
  held_.clear();
  EXPECT_EQ(cache_->GetStats().pinned_entries, 0u);
  EXPECT_EQ(cache_->GetStats().pinned_bytes, 0u);
}

TEST_F(HeldValueTest, CanBeTakenOutAndBeTheLastOfItsKind) {
  for (const uint64_t size : kSizes) {
    MaybeValue taken = cache_->Take(std::to_string(size));
    ASSERT_TRUE(taken);
    held_[static_cast<size_t>(std::find(std::begin(kSizes), std::end(kSizes), size) - kSizes)] =
        std::move(*taken);
  }
  Churn();
  ExpectIntact();
}

TEST(CacheValues, MoreHandlesThanAnEntryCountsAreCopies) {
  const auto cache = NewCache();
  const std::string text(200, 'v');
  ASSERT_TRUE(cache->Put("key", text).ok());
  std::vector<Value> held;
  for (int i = 0; i < 33'000; ++i) {
    MaybeValue value = cache->Get("key");
    ASSERT_TRUE(value) << i;
    held.push_back(std::move(*value));
  }
  // What needs a pin of its own must not hang or lose the value.
  EXPECT_EQ(TextOf(cache->Peek("key")), text);
  std::vector<std::string_view> keys = {"key"};
  std::vector<MaybeValue> values(1);
  ASSERT_TRUE(cache->MultiGet(keys, values).ok());
  EXPECT_EQ(TextOf(values[0]), text);
  const auto update = [](auto) -> Result<std::optional<std::string>> { return "updated"; };
  EXPECT_EQ(cache->Update("key", base::ByValue(update)).code(), StatusCode::kResourceExhausted);
  const Result<Value> computed = cache->GetOrCompute("key", [] { return std::string("other"); });
  EXPECT_EQ(computed.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(TextOf(cache->Get("key")), text) << "it was there: nothing was to be computed";
  ASSERT_TRUE(cache->Put("key", "new").ok());
  EXPECT_EQ(TextOf(cache->Get("key")), "new");
  EXPECT_TRUE(cache->Update("key", base::ByValue(update)).ok());
  for (const Value& value : held) ASSERT_TRUE(value.view() == text);
  held.clear();
  EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
}

// ---- Allocations ----

TEST(CacheAllocation, WhatIsFilledInPlaceIsPublishedAndGivenBack) {
  const auto cache = NewCache();
  for (const size_t size : {0, 8, 112, 113, 4096, 1 << 20}) {
    Result<CacheAllocation> room = cache->Allocate("key", size);
    ASSERT_TRUE(room) << size;
    const std::span<char> bytes = room->bytes();
    ASSERT_EQ(bytes.size(), size);
    const std::string text = size < 8 ? "" : StampedValue(7, 1, size);
    std::memcpy(bytes.data(), text.data(), size);
    const Value value = std::move(*room).Publish();
    EXPECT_TRUE(value.view() == text);
    EXPECT_TRUE(TextOf(cache->Get("key")) == text);
  }
}

TEST(CacheAllocation, LargeOnesAreAligned) {
  const auto cache = NewCache();
  for (size_t key_bytes = 0; key_bytes < 20; ++key_bytes) {
    Result<CacheAllocation> room = cache->Allocate(std::string(key_bytes, 'k'), 4096);
    ASSERT_TRUE(room);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(room->bytes().data()) % 8, 0u);
  }
}

TEST(CacheAllocation, WithoutPublishNothingHasHappened) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "old").ok());
  const uint64_t before = cache->GetStats().bytes;
  for (int i = 0; i < 1000; ++i) {
    Result<CacheAllocation> room = cache->Allocate("key", 100'000);
    ASSERT_TRUE(room);
    std::memset(room->bytes().data(), 'x', room->bytes().size());
  }
  EXPECT_EQ(cache->GetStats().bytes, before);
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
  EXPECT_EQ(cache->GetStats().inserts, 1u);
}

TEST(CacheAllocation, TheOldValueIsReadUntilThePublication) {
  const auto cache = NewCache();
  ASSERT_TRUE(cache->Put("key", "old").ok());
  Result<CacheAllocation> room = cache->Allocate("key", 3);
  ASSERT_TRUE(room);
  CacheAllocation moved = std::move(*room);
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
  std::memcpy(moved.bytes().data(), "new", 3);
  EXPECT_TRUE(std::move(moved).Publish() == "new");
  EXPECT_EQ(TextOf(cache->Get("key")), "new");
  EXPECT_EQ(cache->GetStats().replaced, 1u);
}

TEST(CacheAllocation, ThatFindsNoRoomLeavesTheOldValue) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(cache->Put("key", "old").ok());
  const Result<CacheAllocation> room = cache->Allocate("key", 2 << 20);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(TextOf(cache->Get("key")), "old");
}

TEST(CacheAllocation, ASizeThatNoValueCanHaveIsRefused) {
  const auto cache = NewCache();
  EXPECT_EQ(cache->Allocate("key", size_t{1} << 32).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Allocate("key", (size_t{1} << 32) - 1).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(CacheAllocation, ThePublishedValueExpires) {
  const auto cache = NewCache();
  Result<CacheAllocation> room = cache->Allocate("key", 200, {.ttl = milliseconds(1)});
  ASSERT_TRUE(room);
  std::memset(room->bytes().data(), 'v', 200);
  const Value value = std::move(*room).Publish();
  while (cache->Get("key")) {
  }
  EXPECT_TRUE(value.view() == std::string(200, 'v'));
}

TEST(CacheAllocation, EndsInAForkedChildWhateverAThreadOfTheParentHadLocked) {
  const auto cache = NewCache({.shards = 1});
  Result<CacheAllocation> room = cache->Allocate("key", 10);
  ASSERT_TRUE(room);
  const Result<NewEntry> other = CoreOf(*cache).Allocate("other", 10, {});
  ASSERT_TRUE(other);
  const std::lock_guard guard(other->shard()->lock());
  EXPECT_TRUE(base::TrueInChild([&] {
    alarm(5);
    const CacheAllocation gone = std::move(*room);
    return true;
  }));
}

// ---- Capacity and reservations ----

void Fill(Cache* cache, int count, size_t size) {
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(cache->Put("key" + std::to_string(i), std::string(size, 'v')).ok()) << i;
  }
}

TEST(CacheCapacity, GoesDownAtOnceKeepsAFairShareAndGoesUpAgain) {
  for (const size_t size : {20, 400, 5000}) {
    const auto cache = NewCache({.capacity_bytes = 2 << 20, .shards = 4});
    const int count = static_cast<int>((4 << 20) / (size + 60));
    Fill(cache.get(), count, size);
    const uint64_t entries_full = cache->GetStats().entries;
    EXPECT_TRUE(cache->SetCapacity(1 << 20).ok()) << size;
    CacheStats stats = cache->GetStats();
    EXPECT_EQ(stats.capacity_bytes, 1u << 20);
    EXPECT_LE(stats.bytes, 1u << 20) << size;
    EXPECT_GT(stats.entries, entries_full / 8) << size;
    Fill(cache.get(), count, size);
    stats = cache->GetStats();
    EXPECT_LE(stats.bytes, 1u << 20) << size;
    EXPECT_GT(stats.entries, entries_full / 5) << size;
    EXPECT_TRUE(cache->SetCapacity(2 << 20).ok());
    Fill(cache.get(), count, size);
    stats = cache->GetStats();
    EXPECT_LE(stats.bytes, 2u << 20) << size;
    EXPECT_GT(stats.entries, entries_full * 80 / 100) << size;
  }
}

TEST(CacheCapacity, GoesFarDownAlsoWhereTheIndexIsLargerThanThat) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    const auto cache = NewCache({.capacity_bytes = 64 << 20, .shards = 8, .eviction = eviction});
    for (int i = 0; i < 1'200'000; ++i) {
      ASSERT_TRUE(cache->Put("key" + std::to_string(i), "value").ok());
    }
    ASSERT_GT(cache->GetStats().index_bytes, 16u << 20);
    for (const uint64_t capacity : {16 << 20, 4 << 20, 1 << 20}) {
      const Status set = cache->SetCapacity(capacity);
      ASSERT_TRUE(set.ok()) << set.ToString();
      const CacheStats stats = cache->GetStats();
      EXPECT_LE(stats.bytes, capacity);
      EXPECT_GE(stats.entries * 200, capacity)
          << "it does not throw away what has room: " << stats.ToPrometheus();
      for (int i = 0; i < 1000; ++i) {
        const std::string key = "new" + std::to_string(i);
        ASSERT_TRUE(cache->Put(key, "value").ok()) << i;
        ASSERT_TRUE(cache->Get(key)) << i;
      }
    }
  }
}

TEST(CacheCapacity, AnEmptyCacheHasASmallIndexWhateverItHeld) {
  const auto cache = NewCache({.capacity_bytes = 32 << 20, .shards = 4});
  const uint64_t empty_bytes = cache->GetStats().bytes;
  for (int round = 0; round < 2; ++round) {
    const auto key = [](int i) { return "key" + std::to_string(i); };
    for (int i = 0; i < 200'000; ++i) ASSERT_TRUE(cache->Put(key(i), "value").ok());
    ASSERT_GT(cache->GetStats().index_bytes, 2u << 20);
    if (round == 0) {
      cache->Clear();
    } else {
      for (int i = 0; i < 200'000; ++i) ASSERT_TRUE(cache->Delete(key(i)));
    }
    EXPECT_LE(cache->GetStats().index_bytes, empty_bytes + (64 << 10));
    // All of it is there for what is larger.
    const std::string large(4000, 'v');
    for (int i = 0; i < 7000; ++i) ASSERT_TRUE(cache->Put(key(i), large).ok());
    EXPECT_GE(cache->GetStats().entries, 6900u);
    cache->Clear();
  }
}

TEST(CacheCapacity, BelowTheLeastIsRefused) {
  const auto cache = NewCache();
  const Status status = cache->SetCapacity((64 << 10) - 1);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("capacity"), std::string_view::npos);
  EXPECT_EQ(cache->GetStats().capacity_bytes, uint64_t{64} << 20);
}

TEST(CacheCapacity, BelowWhatIsHeldStandsAndIsReachedOnRelease) {
  const auto cache = NewCache({.capacity_bytes = 16 << 20});
  std::vector<Value> held;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(cache->Put(std::to_string(i), std::string(1 << 20, 'v')).ok());
    held.push_back(cache->Get(std::to_string(i)).value());
  }
  EXPECT_EQ(cache->SetCapacity(4 << 20).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(cache->GetStats().capacity_bytes, 4u << 20);
  EXPECT_EQ(cache->Put("key", "value").code(), StatusCode::kResourceExhausted);
  held.clear();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache->Put("key" + std::to_string(i), "value").ok()) << i;
  }
  EXPECT_LE(cache->GetStats().bytes, 4u << 20);
}

TEST(CacheReservation, IsChargedEvictsAndIsGivenBack) {
  for (const size_t size : {20, 400, 5000}) {
    const auto cache = NewCache({.capacity_bytes = 2 << 20, .shards = 4});
    const int count = static_cast<int>((4 << 20) / (size + 60));
    Fill(cache.get(), count, size);
    const uint64_t entries_full = cache->GetStats().entries;
    {
      Result<CacheReservation> first = cache->Reserve(512 << 10);
      ASSERT_TRUE(first) << size << ": " << first.status().ToString();
      EXPECT_EQ(first->bytes(), 512u << 10);
      EXPECT_EQ(cache->GetStats().reserved_bytes, 512u << 10);
      EXPECT_LE(cache->GetStats().bytes, 2u << 20);
      EXPECT_GT(cache->GetStats().entries, entries_full / 2) << size;
      CacheReservation moved = std::move(*first);
      EXPECT_EQ(cache->GetStats().reserved_bytes, 512u << 10);
      Fill(cache.get(), count, size);
      EXPECT_LE(cache->GetStats().bytes, 2u << 20);
    }
    EXPECT_EQ(cache->GetStats().reserved_bytes, 0u);
    Fill(cache.get(), count, size);
    EXPECT_GT(cache->GetStats().entries, entries_full * 80 / 100) << size;
  }
}

TEST(CacheReservation, ThatCannotBeMetIsRefused) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(cache->Put("key", "value").ok());
  for (const uint64_t bytes : {uint64_t{1} << 20, (uint64_t{1} << 20) + 1, ~uint64_t{0}}) {
    const Result<CacheReservation> reservation = cache->Reserve(bytes);
    ASSERT_FALSE(reservation) << bytes;
    EXPECT_EQ(reservation.error().code(), StatusCode::kResourceExhausted);
  }
  const CacheStats stats = cache->GetStats();
  EXPECT_EQ(stats.reserved_bytes, 0u);
  EXPECT_LT(stats.bytes, 1u << 20);
}

TEST(CacheReservation, OfMoreThanIsLeftOfTheLargestCapacityIsRefused) {
  const auto cache = NewCache({.capacity_bytes = UINT64_MAX});
  EXPECT_FALSE(cache->Reserve(UINT64_MAX));
  EXPECT_EQ(cache->GetStats().reserved_bytes, 0u);
}

TEST(CacheReservation, OfEverythingRefusesPutsUntilItIsGone) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20, .shards = 1});
  std::optional<CacheReservation> all;
  for (uint64_t bytes = 1 << 20; bytes > 0 && !all; bytes -= 1024) {
    Result<CacheReservation> reservation = cache->Reserve(bytes);
    if (reservation) all = std::move(*reservation);
  }
  ASSERT_TRUE(all);
  EXPECT_EQ(cache->Put("key", "value").code(), StatusCode::kResourceExhausted);
  all.reset();
  EXPECT_TRUE(cache->Put("key", "value").ok());
}

TEST(CacheReservation, OutlivesTheCache) {
  auto cache = NewCache();
  const Result<CacheReservation> reservation = cache->Reserve(1000);
  ASSERT_TRUE(reservation);
  cache.reset();
  EXPECT_EQ(reservation->bytes(), 1000u);
}

}  // namespace
}  // namespace basalt::cache
