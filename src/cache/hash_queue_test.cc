#include "cache/hash_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

#include "base/random.h"

namespace basalt::cache {
namespace {

class RandomQueue : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomQueue, GivesWhatADequeGivesAndChargesItsRing) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  base::Random random(GetParam());
  MemoryBudget budget(uint64_t{1} << 30);
  {
    HashQueue queue(&budget);
    std::deque<uint64_t> model;
    size_t count_max = 0;
    for (int step = 0; step < 50'000; ++step) {
      // Grows for a while, then shrinks, so that the ring turns over at every size.
      const bool grows = (step / 5'000) % 2 == 0;
      if (model.empty() || random.OneIn(3) != grows) {
        model.push_back(random.Next());
        ASSERT_TRUE(queue.Push(model.back()));
      } else {
        ASSERT_EQ(queue.Pop(), model.front());
        model.pop_front();
      }
      count_max = std::max(count_max, model.size());
      ASSERT_EQ(queue.empty(), model.empty());
      ASSERT_EQ(budget.used_bytes(), queue.bytes());
      ASSERT_GE(queue.bytes(), model.size() * sizeof(uint64_t));
    }
    EXPECT_LT(queue.bytes(), 2 * count_max * sizeof(uint64_t) + 1);
    while (!model.empty()) {
      ASSERT_EQ(queue.Pop(), model.front());
      model.pop_front();
    }
    EXPECT_TRUE(queue.empty());
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(HashQueue, RandomQueue, testing::Range<uint64_t>(1, 6));

TEST(HashQueue, AnEmptyQueueTakesNothingOfTheBudget) {
  MemoryBudget budget(0);
  HashQueue queue(&budget);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_FALSE(queue.Push(1));
  EXPECT_TRUE(queue.empty());
}

TEST(HashQueue, ARefusedPushLeavesTheQueueAsItWas) {
  MemoryBudget budget(100 * sizeof(uint64_t));
  HashQueue queue(&budget);
  uint64_t pushed = 0;
  while (queue.Push(pushed)) ++pushed;
  EXPECT_EQ(pushed, 64u);
  EXPECT_EQ(budget.used_bytes(), queue.bytes());
  EXPECT_FALSE(queue.Push(pushed));
  // A place that was given up is taken again without more memory.
  EXPECT_EQ(queue.Pop(), 0u);
  EXPECT_TRUE(queue.Push(pushed));
  for (uint64_t i = 1; i <= pushed; ++i) EXPECT_EQ(queue.Pop(), i);
  EXPECT_TRUE(queue.empty());
}

TEST(HashQueue, WhatIsLeftOutGivesItsPartOfTheRingBackAndTheRestStaysInOrder) {
  MemoryBudget budget(uint64_t{1} << 30);
  HashQueue queue(&budget);
  for (uint64_t i = 0; i < 10'000; ++i) ASSERT_TRUE(queue.Push(i));
  for (uint64_t i = 0; i < 5'000; ++i) ASSERT_EQ(queue.Pop(), i);
  queue.KeepIf([](uint64_t hash) { return hash % 100 == 0; });
  EXPECT_EQ(queue.size(), 50u);
  EXPECT_LE(queue.bytes(), 512 * sizeof(uint64_t));
  EXPECT_EQ(budget.used_bytes(), queue.bytes());
  ASSERT_TRUE(queue.Push(1));
  for (uint64_t i = 5'000; i < 10'000; i += 100) ASSERT_EQ(queue.Pop(), i);
  EXPECT_EQ(queue.Pop(), 1u);
  EXPECT_TRUE(queue.empty());
}

TEST(HashQueue, AClearedQueueTakesNextToNothing) {
  MemoryBudget budget(uint64_t{1} << 30);
  HashQueue queue(&budget);
  for (uint64_t i = 0; i < 10'000; ++i) ASSERT_TRUE(queue.Push(i));
  queue.Clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(budget.used_bytes(), queue.bytes());
  EXPECT_LE(queue.bytes(), 64 * sizeof(uint64_t));
  ASSERT_TRUE(queue.Push(1));
  EXPECT_EQ(queue.Pop(), 1u);
}

TEST(HashQueue, GetsSmallerAlsoWhereTheBudgetIsFull) {
  MemoryBudget budget(uint64_t{1} << 30);
  HashQueue queue(&budget);
  for (uint64_t i = 0; i < 10'000; ++i) ASSERT_TRUE(queue.Push(i));
  budget.set_capacity_bytes(0);
  for (uint64_t i = 0; i < 9'990; ++i) ASSERT_EQ(queue.Pop(), i);
  EXPECT_LE(queue.bytes(), 128 * sizeof(uint64_t));
  EXPECT_EQ(budget.used_bytes(), queue.bytes());
}

}  // namespace
}  // namespace basalt::cache
