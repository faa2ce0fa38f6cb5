#include "cache/block_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"

namespace basalt::cache {
namespace {

// A block that knows where it belongs and counts the living.
struct TestBlock {
  TestBlock(uint64_t file, uint64_t at, std::atomic<int64_t>* counter)
      : file_id(file), offset(at), living(counter) {
    living->fetch_add(1);
  }
  ~TestBlock() { living->fetch_sub(1); }
  uint64_t file_id;
  uint64_t offset;
  std::atomic<int64_t>* living;
};

std::shared_ptr<const TestBlock> Find(BlockCache* cache, uint64_t file_id, uint64_t offset) {
  return std::static_pointer_cast<const TestBlock>(cache->Lookup(file_id, offset));
}

constexpr uint64_t kCharge = 16 << 10;

TEST(BlockCache, WhatWasInsertedIsFoundUnderItsFileAndOffset) {
  std::atomic<int64_t> living = 0;
  BlockCache cache(64 << 20);
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t file_id = i % 7;
    cache.Insert(file_id, i * kCharge, std::make_shared<TestBlock>(file_id, i * kCharge, &living),
                 kCharge);
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto block = Find(&cache, i % 7, i * kCharge);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->file_id, i % 7);
    EXPECT_EQ(block->offset, i * kCharge);
    EXPECT_EQ(Find(&cache, i % 7 + 1, i * kCharge), nullptr);
    EXPECT_EQ(Find(&cache, i % 7, i * kCharge + 1), nullptr);
  }
  const BlockCacheStats stats = cache.stats();
  EXPECT_EQ(stats.entries, 1000u);
  EXPECT_EQ(stats.hits, 1000u);
  EXPECT_EQ(stats.misses, 2000u);
  EXPECT_EQ(stats.evictions, 0u);
  EXPECT_EQ(stats.bytes, 1000 * (kCharge + BlockCache::kEntryBytes));
  EXPECT_EQ(stats.capacity, uint64_t{64} << 20);
}

TEST(BlockCache, TheBudgetIsNeverExceededAndEvictedBlocksDie) {
  for (const uint64_t capacity :
       {uint64_t{0}, uint64_t{100} << 10, uint64_t{1} << 20, uint64_t{16} << 20}) {
    std::atomic<int64_t> living = 0;
    base::Random random(capacity + 1);
    {
      BlockCache cache(capacity);
      for (uint64_t i = 0; i < 20'000; ++i) {
        const uint64_t offset = random.Below(3000);
        const auto block = Find(&cache, 1, offset);
        if (block != nullptr) {
          ASSERT_EQ(block->offset, offset);
        } else {
          cache.Insert(1, offset, std::make_shared<TestBlock>(1, offset, &living),
                       random.Below(2 * kCharge));
        }
        if (i % 100 != 0) continue;
        const BlockCacheStats stats = cache.stats();
        ASSERT_LE(stats.bytes, capacity);
        ASSERT_EQ(static_cast<int64_t>(stats.entries), living.load());
      }
      const BlockCacheStats stats = cache.stats();
      EXPECT_EQ(stats.hits + stats.misses, 20'000u);
      EXPECT_GE(stats.bytes, capacity / 2);
    }
    EXPECT_EQ(living.load(), 0);
  }
}

TEST(BlockCache, ABlockThatIsReadAgainAndAgainOutlivesAScan) {
  std::atomic<int64_t> living = 0;
  BlockCache cache(1 << 20);
  cache.Insert(1, 0, std::make_shared<TestBlock>(1, 0, &living), kCharge);
  for (uint64_t i = 1; i < 2000; ++i) {
    if (i % 4 == 0) {
      ASSERT_NE(Find(&cache, 1, 0), nullptr) << i;
    }
    cache.Insert(1, i, std::make_shared<TestBlock>(1, i, &living), kCharge);
  }
  EXPECT_EQ(Find(&cache, 1, 1), nullptr);
}

TEST(BlockCache, ABlockAboveAShardsShareIsNotKept) {
  std::atomic<int64_t> living = 0;
  BlockCache cache(1 << 20);
  cache.Insert(1, 0, std::make_shared<TestBlock>(1, 0, &living), 2 << 20);
  cache.Insert(1, 1, std::make_shared<TestBlock>(1, 1, &living), ~uint64_t{0});
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(living.load(), 0);
}

TEST(BlockCache, TheFirstOfTwoInsertsStays) {
  std::atomic<int64_t> living = 0;
  BlockCache cache(1 << 20);
  const auto first = std::make_shared<TestBlock>(1, 0, &living);
  cache.Insert(1, 0, first, kCharge);
  cache.Insert(1, 0, std::make_shared<TestBlock>(1, 0, &living), kCharge);
  EXPECT_EQ(Find(&cache, 1, 0), first);
  EXPECT_EQ(cache.stats().entries, 1u);
}

TEST(BlockCache, AHeldBlockSurvivesItsEviction) {
  std::atomic<int64_t> living = 0;
  BlockCache cache(1 << 20);
  cache.Insert(1, 0, std::make_shared<TestBlock>(1, 0, &living), kCharge);
  const auto held = Find(&cache, 1, 0);
  for (uint64_t i = 1; i < 1000; ++i) {
    cache.Insert(1, i, std::make_shared<TestBlock>(1, i, &living), kCharge);
  }
  EXPECT_EQ(Find(&cache, 1, 0), nullptr);
  EXPECT_EQ(held->offset, 0u);
}

TEST(BlockCache, ManyThreadsSeeOnlyWhatBelongsToTheirKey) {
  std::atomic<int64_t> living = 0;
  std::atomic<uint64_t> lookups = 0;
  std::atomic<uint64_t> wrong = 0;
  {
    BlockCache cache(4 << 20);
    std::vector<std::thread> threads;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&, seed] {
        base::Random random(seed);
        for (int i = 0; i < 20'000; ++i) {
          const uint64_t file_id = random.Below(3);
          const uint64_t offset = random.Below(500);
          const auto block = Find(&cache, file_id, offset);
          lookups.fetch_add(1);
          if (block == nullptr) {
            cache.Insert(file_id, offset, std::make_shared<TestBlock>(file_id, offset, &living),
                         kCharge);
          } else if (block->file_id != file_id || block->offset != offset) {
            wrong.fetch_add(1);
          }
          if (i % 1000 == 0 && cache.stats().bytes > cache.capacity()) wrong.fetch_add(1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const BlockCacheStats stats = cache.stats();
    EXPECT_EQ(stats.hits + stats.misses, lookups.load());
    EXPECT_GT(stats.evictions, 0u);
    EXPECT_GT(stats.hits, 0u);
  }
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(living.load(), 0);
}

}  // namespace
}  // namespace basalt::cache
