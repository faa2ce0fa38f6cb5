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

template <class Pool>
class ExtentPools : public testing::Test {};
using BothPools = testing::Types<ObjectPool, ExtentPool>;
TYPED_TEST_SUITE(ExtentPools, BothPools);

TYPED_TEST(ExtentPools, ObjectsAreAlignedApartAndKeepWhatIsWritten) {
  TypeParam pool(std::make_shared<ChunkPool>());
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
      ASSERT_EQ(reinterpret_cast<uintptr_t>(object) % TypeParam::kAlignment, 0u);
      const size_t usable = TypeParam::UsableBytes(object);
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
      if (this->HasFatalFailure()) return;
    }
  }
  while (!taken.empty()) {
    check_and_give(taken.begin());
    if (this->HasFatalFailure()) return;
  }
  EXPECT_EQ(pool.slab_bytes(), 0u) << "extents that were given were not joined to whole slabs";
}

TYPED_TEST(ExtentPools, BlocksOfTablesFillASlabToTheLastOne) {
  TypeParam pool(std::make_shared<ChunkPool>());
  constexpr size_t kBytes = 16'464;
  std::vector<char*> blocks;
  while (pool.slab_bytes() <= kSlabBytes) blocks.push_back(pool.Take(kBytes));
  EXPECT_EQ(blocks.size() - 1, kSlabBytes / TypeParam::TakenBytes(blocks.front()));
  for (char* block : blocks) pool.Give(block);
  EXPECT_EQ(pool.slab_bytes(), 0u);
}

TYPED_TEST(ExtentPools, WhatWasGivenIsTakenAgainByWhoWantsAsMuch) {
  TypeParam pool(std::make_shared<ChunkPool>());
  constexpr size_t kBytes = 16'464;
  char* const first = pool.Take(kBytes);
  char* const second = pool.Take(kBytes);
  pool.Give(first);
  EXPECT_EQ(pool.Take(kBytes), first);
  pool.Give(first);
  pool.Give(second);
}

TYPED_TEST(ExtentPools, WhatNoSlabHoldsIsMappedByItself) {
  TypeParam pool(std::make_shared<ChunkPool>());
  constexpr size_t kBytes = 3 * kSlabBytes + 1;
  char* const object = pool.Take(kBytes);
  ASSERT_NE(object, nullptr);
  EXPECT_GE(TypeParam::UsableBytes(object), kBytes);
  EXPECT_EQ(pool.slab_bytes(), 0u);
  std::memset(object, 1, kBytes);
  pool.Give(object);
  EXPECT_EQ(pool.Take(SIZE_MAX - 10), nullptr);
}

TYPED_TEST(ExtentPools, ThreadsTakeAndGiveAtOnce) {
  TypeParam pool(std::make_shared<ChunkPool>());
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

}  // namespace
}  // namespace basalt::base
