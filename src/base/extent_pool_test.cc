#include "base/extent_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"

namespace basalt::base {
namespace {

constexpr size_t kSlabBytes = ChunkPool::kSlabBytes;

/// Sizes of all magnitudes, and those around the largest that a slab holds.
size_t RandomBytes(Random* random) {
  switch (random->Below(20)) {
    case 0:
      return kSlabBytes - 200 + random->Below(400);
    case 1:
      return random->Below(64);
    default:
      return random->Below(uint64_t{1} << random->Between(4, 20));
  }
}

TEST(ExtentPool, ObjectsAreAlignedApartAndKeepWhatIsWritten) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  const uint64_t seed = 7;
  SCOPED_TRACE(seed);
  Random random(seed);
  struct Object {
    size_t bytes;
    unsigned char fill;
  };
  std::map<char*, Object> taken;
  const auto check_and_give = [&](std::map<char*, Object>::iterator at) {
    const auto& [object, is] = *at;
    const std::string_view written(object, is.bytes);
    const auto fill = static_cast<char>(is.fill);
    // As a whole: byte by byte it takes long under ThreadSanitizer.
    ASSERT_TRUE(written == std::string(is.bytes, fill))
        << "overwritten at " << written.find_first_not_of(fill);
    pool.Give(object);
    taken.erase(at);
  };
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 40 || random.Below(2) == 0) {
      const size_t bytes = RandomBytes(&random);
      char* const object = pool.Take(bytes);
      ASSERT_NE(object, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(object) % ExtentPool::kAlignment, 0u);
      const size_t usable = ExtentPool::UsableBytes(object);
      ASSERT_GE(usable, bytes);
      const auto next = taken.lower_bound(object);
      if (next != taken.end()) {
        ASSERT_LE(object + usable, next->first);
      }
      if (next != taken.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.bytes, object);
      }
      const auto fill = static_cast<unsigned char>(random.Below(256));
      std::memset(object, fill, usable);
      taken.emplace(object, Object{usable, fill});
    } else {
      auto victim = taken.begin();
      std::advance(victim, static_cast<ptrdiff_t>(random.Below(taken.size())));
      check_and_give(victim);
      if (HasFatalFailure()) return;
    }
  }
  while (!taken.empty()) {
    check_and_give(taken.begin());
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(pool.slab_bytes(), 0u) << "extents that were given were not joined to whole slabs";
}

TEST(ExtentPool, BlocksOfTablesFillASlabToTheLastOne) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  constexpr size_t kBytes = 16'464;
  std::vector<char*> blocks;
  while (pool.slab_bytes() <= kSlabBytes) blocks.push_back(pool.Take(kBytes));
  EXPECT_EQ(blocks.size() - 1, kSlabBytes / ExtentPool::TakenBytes(blocks.front()));
  for (char* block : blocks) pool.Give(block);
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

TEST(ExtentPool, WhatWasGivenIsTakenAgainByWhoWantsAsMuch) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  constexpr size_t kBytes = 16'464;
  char* const first = pool.Take(kBytes);
  char* const second = pool.Take(kBytes);
  pool.Give(first);
  EXPECT_EQ(pool.Take(kBytes), first);
  pool.Give(first);
  pool.Give(second);
}

TEST(ExtentPool, WhatNoSlabHoldsIsMappedByItself) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  constexpr size_t kBytes = 3 * kSlabBytes + 1;
  char* const object = pool.Take(kBytes);
  ASSERT_NE(object, nullptr);
  EXPECT_GE(ExtentPool::UsableBytes(object), kBytes);
  EXPECT_EQ(pool.slab_bytes(), 0u);
  std::memset(object, 1, kBytes);
  pool.Give(object);
  EXPECT_EQ(pool.Take(SIZE_MAX - 10), nullptr);
}

TEST(ExtentPool, ThreadsTakeAndGiveAtOnce) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      Random random(t);
      std::vector<char*> own;
      for (int step = 0; step < 5'000; ++step) {
        if (own.size() < 20) {
          const size_t bytes = 1 + random.Below(40'000);
          own.push_back(pool.Take(bytes));
          std::memset(own.back(), static_cast<int>(t), bytes);
        } else {
          std::swap(own[random.Below(own.size())], own.back());
          ASSERT_EQ(own.back()[0], static_cast<char>(t));
          pool.Give(own.back());
          own.pop_back();
        }
      }
      for (char* object : own) pool.Give(object);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

/// Takes objects of 12 KiB that fill some slabs, and gives all but every n-th.
std::vector<char*> TakeAndLeaveEvery(ExtentPool* pool, size_t n, size_t slabs) {
  constexpr size_t kBytes = 12 << 10;
  std::vector<char*> taken;
  while (pool->slab_bytes() <= slabs * kSlabBytes) {
    taken.push_back(pool->Take(kBytes));
    std::memset(taken.back(), static_cast<int>(taken.size()), kBytes);
  }
  std::vector<char*> left;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (i % n == 0) {
      left.push_back(taken[i]);
    } else {
      pool->Give(taken[i]);
    }
  }
  for (size_t i = 0; i < left.size(); ++i) {
    const std::string expected(kBytes, static_cast<char>(i * n + 1));
    EXPECT_TRUE(std::string_view(left[i], kBytes) == expected) << "a page in use was released";
  }
  return left;
}

TEST(ExtentPool, FreePagesBetweenObjectsGoBackToTheSystem) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  const std::vector<char*> left = TakeAndLeaveEvery(&pool, 10, 20);
  const size_t left_bytes = left.size() * ExtentPool::TakenBytes(left.front());
  EXPECT_GT(pool.slab_bytes(), 20 * kSlabBytes) << "each slab still holds something";
  // Two pages beside each object, what is kept, and the newest slab.
  EXPECT_LT(pool.resident_bytes(), left_bytes + left.size() * 8'192 + 2 * kSlabBytes);
  pool.ReleaseFreePages();
  EXPECT_LT(pool.resident_bytes(), left_bytes + left.size() * 8'192);
  for (char* object : left) pool.Give(object);
  EXPECT_EQ(pool.slab_bytes(), 0u);
  EXPECT_EQ(pool.resident_bytes(), 0u);
}

TEST(ExtentPool, ReleasedPagesAreTakenAgain) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  std::vector<char*> objects = TakeAndLeaveEvery(&pool, 10, 8);
  pool.ReleaseFreePages();
  const size_t released = pool.slab_bytes() - pool.resident_bytes();
  const size_t slab_bytes = pool.slab_bytes();
  constexpr size_t kBytes = 50'000;
  size_t taken = 0;
  for (;;) {
    char* const object = pool.Take(kBytes);
    objects.push_back(object);
    if (pool.slab_bytes() != slab_bytes) break;
    std::memset(object, 7, kBytes);
    taken += kBytes;
  }
  EXPECT_GT(taken, slab_bytes / 2);
  EXPECT_LT(pool.slab_bytes() - pool.resident_bytes(), released - taken / 10 * 9);
  for (char* object : objects) pool.Give(object);
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

TEST(ExtentPool, AFewFreePagesStay) {
  ExtentPool pool(std::make_shared<ChunkPool>());
  const size_t bytes = kSlabBytes / 4 * 3;
  std::vector<char*> objects;
  for (int i = 0; i < 4; ++i) objects.push_back(pool.Take(bytes / 3));
  for (int round = 0; round < 10; ++round) {
    pool.Give(objects.back());
    EXPECT_EQ(pool.resident_bytes(), pool.slab_bytes());
    objects.back() = pool.Take(bytes / 3);
  }
  for (char* object : objects) pool.Give(object);
}

}  // namespace
}  // namespace basalt::base
