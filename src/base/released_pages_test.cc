#include "base/released_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/arena.h"
#include "base/random.h"

namespace basalt::base {
namespace {

constexpr size_t kPage = ReleasedPages::kPageBytes;

TEST(ReleasedPages, RangesHoldThePagesThatLieWhollyWithin) {
  const auto within = [](size_t begin, size_t end) {
    const ReleasedPages::Range range = ReleasedPages::Within(begin, end);
    return std::pair(range.first, range.count());
  };
  EXPECT_EQ(within(0, kPage), std::pair(size_t{0}, size_t{1}));
  EXPECT_EQ(within(1, 3 * kPage - 1), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(within(1, 2 * kPage - 1).second, 0u);
  EXPECT_EQ(within(10, 20).second, 0u);
}

TEST(ReleasedPages, CountsAsASetOfPagesDoes) {
  const uint64_t seed = 3;
  SCOPED_TRACE(seed);
  Random random(seed);
  ChunkPool pool;
  char* const slab = pool.Take(ChunkPool::kSlabBytes);
  ASSERT_NE(slab, nullptr);
  ReleasedPages pages;
  std::set<size_t> model;
  for (int step = 0; step < 1'000; ++step) {
    const size_t first = random.Below(ReleasedPages::kPages);
    const size_t end = first + random.Below(ReleasedPages::kPages - first + 1);
    const ReleasedPages::Range range{first, random.OneIn(2) ? end : std::min(first + 3, end)};
    size_t in_model = 0;
    for (size_t page = range.first; page < range.end; ++page) in_model += model.count(page);
    ASSERT_EQ(pages.CountIn(range), in_model);
    const bool releases = random.OneIn(2);
    for (size_t page = range.first; page < range.end; ++page) {
      releases ? void(model.insert(page)) : void(model.erase(page));
    }
    if (releases) {
      ASSERT_EQ(pages.Release(slab, range), range.count() - in_model);
    } else {
      ASSERT_EQ(pages.Touch(range), in_model);
    }
    ASSERT_EQ(pages.count(), model.size());
    ASSERT_EQ(pages.empty(), model.empty());
  }
  pages.Forget(slab);
  EXPECT_TRUE(pages.empty());
  EXPECT_EQ(pages.CountIn({0, ReleasedPages::kPages}), 0u);
  pool.Give(slab, ChunkPool::kSlabBytes);
}

TEST(ReleasedPages, WhatIsReleasedReadsAsZerosAndTheRestKeepsItsBytes) {
  ChunkPool pool;
  char* const slab = pool.Take(ChunkPool::kSlabBytes);
  ASSERT_NE(slab, nullptr);
  std::memset(slab, 7, ChunkPool::kSlabBytes);
  ReleasedPages pages;
  pages.Release(slab, {10, 20});
  EXPECT_EQ(slab[10 * kPage - 1], 7);
  EXPECT_EQ(slab[10 * kPage], 0);
  EXPECT_EQ(slab[20 * kPage - 1], 0);
  EXPECT_EQ(slab[20 * kPage], 7);
  pages.Forget(slab);
  pool.Give(slab, ChunkPool::kSlabBytes);
}

}  // namespace
}  // namespace basalt::base
