#include "cache/timing_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

constexpr uint64_t kTickMs = 256;
constexpr uint64_t kSecondMs = 1'000;
constexpr uint64_t kHourMs = 3'600 * kSecondMs;
constexpr uint64_t kDayMs = 24 * kHourMs;
/// What lies in level 0 is handed over once, when it is due.
constexpr uint64_t kLowestLevelMs = 63 * kTickMs;
/// What is further ahead than this lies in the last slot for a while.
constexpr uint64_t kClampMs = 63 * (uint64_t{1} << 18) * kTickMs;

/// An owner of deadlines, as a shard is one: what is handed over too early is filed again. It
/// checks each hand-over.
class Owner {
 public:
  Owner(MemoryBudget* budget, uint64_t now_ms) : wheel_(budget, now_ms), now_ms_(now_ms) {}

  void File(uint64_t hash, uint64_t deadline_ms) {
    ASSERT_TRUE(wheel_.File(hash, deadline_ms));
    filed_[hash] = {.deadline_ms = deadline_ms, .filed_ms = now_ms_};
    due_.emplace(std::max(deadline_ms, now_ms_), hash);
  }

  /// Lets the time come, and takes all that is due.
  void AdvanceTo(uint64_t now_ms) {
    now_ms_ = now_ms;
    uint64_t hash = 0;
    while (wheel_.MayBeDue(now_ms_)) {
      while (wheel_.TakeDue(now_ms_, &hash)) TakeOver(hash);
    }
    ASSERT_EQ(wheel_.records(), filed_.size());
    if (!due_.empty()) {
      ASSERT_GT(due_.begin()->first + kTickMs, now_ms_)
          << "later than a tick: hash " << due_.begin()->second;
    }
  }

  uint64_t now_ms() const { return now_ms_; }
  size_t size() const { return filed_.size(); }
  /// All deadlines lie before it.
  uint64_t end_ms() const { return due_.empty() ? now_ms_ : due_.rbegin()->first + 1; }
  uint64_t early() const { return early_; }
  TimingWheel* wheel() { return &wheel_; }

 private:
  struct Record {
    uint64_t deadline_ms;
    uint64_t filed_ms;  ///< At first.
    uint64_t times_early = 0;
  };

  void TakeOver(uint64_t hash) {
    const auto found = filed_.find(hash);
    ASSERT_NE(found, filed_.end()) << "handed over twice, or never filed: " << hash;
    Record& record = found->second;
    if (record.deadline_ms <= now_ms_) {
      const auto [first, last] = due_.equal_range(std::max(record.deadline_ms, record.filed_ms));
      due_.erase(std::find_if(first, last, [&](const auto& due) { return due.second == hash; }));
      filed_.erase(found);
      return;
    }
    // Only a slot of a higher level may come before its deadlines: once for each level, and once
    // for each stay in the last slot.
    ++early_;
    const uint64_t ahead_ms = record.deadline_ms - record.filed_ms;
    ASSERT_GE(ahead_ms + kTickMs, kLowestLevelMs);
    ASSERT_LE(++record.times_early, 3 + ahead_ms / kClampMs + (ahead_ms > kClampMs ? 1 : 0));
    ASSERT_TRUE(wheel_.File(hash, record.deadline_ms));
  }

  TimingWheel wheel_;
  uint64_t now_ms_;
  std::unordered_map<uint64_t, Record> filed_;
  std::multimap<uint64_t, uint64_t> due_;  ///< Deadline, or time of filing if that was later.
  uint64_t early_ = 0;
};

/// From 0 to `bound` ms, of any order of magnitude.
uint64_t AnyMagnitude(base::Random* random, uint64_t bound) {
  return random->Below((bound >> random->Below(36)) + 1);
}

class RandomDeadlines : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomDeadlines, AreHandedOverWithinATickAndNeverLost) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  base::Random random(GetParam());
  MemoryBudget budget(uint64_t{1} << 30);
  {
    Owner owner(&budget, random.Below(uint64_t{1} << 44));
    uint64_t hash = 0;
    for (int step = 0; step < 600 && !HasFatalFailure(); ++step) {
      for (uint64_t i = random.Below(30); i > 0; --i) {
        owner.File(++hash, owner.now_ms() + AnyMagnitude(&random, 100 * kDayMs));
      }
      // Deadlines that have passed already.
      if (random.OneIn(4)) owner.File(++hash, owner.now_ms() - random.Below(owner.now_ms() / 2));
      owner.AdvanceTo(owner.now_ms() + 1 + AnyMagnitude(&random, 5 * kDayMs));
      ASSERT_EQ(budget.used_bytes(), owner.wheel()->bytes());
    }
    EXPECT_GT(owner.early(), 500u) << "hardly anything came down from a higher level";
    owner.AdvanceTo(owner.end_ms() + kTickMs);
    EXPECT_EQ(owner.size(), 0u);
    EXPECT_EQ(owner.wheel()->records(), 0u);
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(TimingWheel, RandomDeadlines, testing::Range<uint64_t>(1, 4));

TEST(TimingWheel, EveryMillisecondOfTheFirstMinuteIsMetWithinATick) {
  MemoryBudget budget(uint64_t{1} << 30);
  for (const uint64_t start_ms : {uint64_t{0}, uint64_t{255}, uint64_t{256} * 4096 - 1}) {
    Owner owner(&budget, start_ms);
    for (uint64_t i = 0; i < 60 * kSecondMs; ++i) owner.File(i, start_ms + i);
    while (owner.size() != 0 && !HasFatalFailure()) owner.AdvanceTo(owner.now_ms() + 10);
    EXPECT_LE(owner.now_ms(), start_ms + 60 * kSecondMs + kTickMs);
  }
}

TEST(TimingWheel, DeadlinesAtTheEdgesOfLevelsAreMetFromEveryPhaseOfTheWheel) {
  MemoryBudget budget(uint64_t{1} << 30);
  base::Random random(1);
  for (int phase = 0; phase < 4 && !HasFatalFailure(); ++phase) {
    const uint64_t start_ms = random.Below(200 * kDayMs);
    Owner owner(&budget, start_ms);
    uint64_t hash = 0;
    for (int level = 0; level < 4; ++level) {
      const uint64_t slot_ms = kTickMs << (6 * level);
      for (const uint64_t slots :
           {uint64_t{1}, uint64_t{2}, uint64_t{62}, uint64_t{63}, uint64_t{64}, uint64_t{65}}) {
        for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, kTickMs, slot_ms - 1}) {
          owner.File(++hash, start_ms + slots * slot_ms + offset);
        }
      }
    }
    while (owner.size() != 0 && !HasFatalFailure()) {
      owner.AdvanceTo(owner.now_ms() + 1 + AnyMagnitude(&random, kDayMs));
    }
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(TimingWheel, WhatIsFurtherAheadThanTheWheelIsHandedOverToBeFiledAgain) {
  MemoryBudget budget(uint64_t{1} << 30);
  Owner owner(&budget, 12'345);
  owner.File(1, 12'345 + 200 * kDayMs);
  owner.AdvanceTo(12'345 + 51 * kDayMs);
  EXPECT_GE(owner.early(), 1u);
  EXPECT_EQ(owner.size(), 1u);
  owner.AdvanceTo(12'345 + 199 * kDayMs);
  EXPECT_EQ(owner.size(), 1u);
  owner.AdvanceTo(12'345 + 200 * kDayMs + kTickMs);
  EXPECT_EQ(owner.size(), 0u);
}

TEST(TimingWheel, TheLongestDeadlineIsTakenAsWell) {
  MemoryBudget budget(uint64_t{1} << 30);
  TimingWheel wheel(&budget, 0);
  ASSERT_TRUE(wheel.File(1, (uint64_t{1} << 46) - 1));
  uint64_t hash = 0;
  EXPECT_FALSE(wheel.TakeDue(1'000, &hash));
  EXPECT_EQ(wheel.records(), 1u);
}

TEST(TimingWheel, AfterALongIdleTimeAnEmptyWheelIsAtTheNewTimeAtOnce) {
  MemoryBudget budget(uint64_t{1} << 30);
  TimingWheel wheel(&budget, 0);
  uint64_t hash = 0;
  const uint64_t now_ms = 1'000 * kDayMs;
  wheel.SkipTo(now_ms);
  ASSERT_TRUE(wheel.File(7, now_ms + 300));
  wheel.SkipTo(now_ms + kDayMs);  // Nothing is skipped while there are records.
  EXPECT_FALSE(wheel.TakeDue(now_ms + 299, &hash));
  // A call passes 64 slots at most: it got there without passing those of a thousand days.
  ASSERT_TRUE(wheel.TakeDue(now_ms + 300 + kTickMs, &hash));
  EXPECT_EQ(hash, 7u);
}

TEST(TimingWheel, ACacheSweepsInTimeAlsoWhenNothingHasExpiredForDays) {
  SimCache cache({.shards = 1});
  ASSERT_TRUE(cache.Put("lasting", "value", 0).ok());
  cache.AdvanceMillis(100 * kDayMs);
  ASSERT_TRUE(cache.Put("key", "value", 1'000).ok());
  cache.AdvanceMillis(1'000 + kTickMs);
  ASSERT_TRUE(cache.Put("other", "value", 0).ok());
  EXPECT_EQ(cache->GetStats().expired, 1u);
}

TEST(TimingWheel, ACallPassesABoundedNumberOfSlotsAndTheNextGoesOn) {
  MemoryBudget budget(uint64_t{1} << 30);
  TimingWheel wheel(&budget, 0);
  ASSERT_TRUE(wheel.File(7, kDayMs));
  uint64_t hash = 0;
  uint64_t calls = 0;
  while (!wheel.TakeDue(2 * kDayMs, &hash)) {
    ++calls;
    ASSERT_FALSE(wheel.MayBeDue(calls * 64 * kTickMs));
    ASSERT_TRUE(wheel.MayBeDue((calls * 64 + 1) * kTickMs));
  }
  EXPECT_EQ(hash, 7u);
  EXPECT_LE(calls, kDayMs / kTickMs / 64);
  EXPECT_GE(calls, kDayMs / kTickMs / 64 / 2) << "it lies in a slot of 18.6 hours";
}

TEST(TimingWheel, MayBeDueOnlyWhenThereAreRecordsAndATickHasPassed) {
  MemoryBudget budget(uint64_t{1} << 30);
  TimingWheel wheel(&budget, 1'000 * kTickMs);
  EXPECT_FALSE(wheel.MayBeDue(2'000 * kTickMs));
  ASSERT_TRUE(wheel.File(1, 1'000 * kTickMs + 5));
  ASSERT_TRUE(wheel.File(2, 1'000 * kTickMs + 5));
  EXPECT_FALSE(wheel.MayBeDue(1'001 * kTickMs - 1));
  EXPECT_TRUE(wheel.MayBeDue(1'001 * kTickMs));
  uint64_t hash = 0;
  ASSERT_TRUE(wheel.TakeDue(1'001 * kTickMs, &hash));
  EXPECT_TRUE(wheel.MayBeDue(1'001 * kTickMs)) << "the other one is due still";
  ASSERT_TRUE(wheel.TakeDue(1'001 * kTickMs, &hash));
  EXPECT_FALSE(wheel.MayBeDue(1'001 * kTickMs));
}

TEST(TimingWheel, WithoutBudgetFilingIsRefusedAndWhatWasFiledStays) {
  MemoryBudget budget(1'100);
  TimingWheel wheel(&budget, 0);
  uint64_t filed = 0;
  while (wheel.File(filed, 10)) ++filed;
  EXPECT_GT(filed, 100u);
  EXPECT_LE(budget.used_bytes(), 1'100u);
  EXPECT_FALSE(wheel.File(filed, kDayMs)) << "another slot needs a chunk of its own";
  EXPECT_EQ(wheel.records(), filed);
  std::vector<bool> taken(filed);
  uint64_t hash = 0;
  while (wheel.TakeDue(10 + kTickMs, &hash)) {
    ASSERT_LT(hash, filed);
    ASSERT_FALSE(taken[hash]);
    taken[hash] = true;
  }
  EXPECT_EQ(std::ranges::count(taken, true), static_cast<ptrdiff_t>(filed));
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(TimingWheel, BeyondWhatItMayTakeFilingIsRefusedUnlessItsPlaceHasRoom) {
  MemoryBudget budget(uint64_t{1} << 20);
  TimingWheel wheel(&budget, 0);
  ASSERT_TRUE(wheel.File(1, kSecondMs, 1024));
  ASSERT_TRUE(wheel.File(2, kHourMs, 1024));
  EXPECT_FALSE(wheel.File(3, kDayMs, 1024));
  EXPECT_TRUE(wheel.File(4, kSecondMs, 1024));
  EXPECT_EQ(wheel.bytes(), 1024u);
  EXPECT_EQ(budget.used_bytes(), 1024u);
  EXPECT_EQ(wheel.records(), 3u);
}

TEST(TimingWheel, ClearingDropsAllRecordsAlsoThoseThatAreDue) {
  MemoryBudget budget(uint64_t{1} << 30);
  TimingWheel wheel(&budget, 0);
  for (uint64_t i = 0; i < 1'000; ++i) ASSERT_TRUE(wheel.File(i, i * i * i));
  uint64_t hash = 0;
  ASSERT_TRUE(wheel.TakeDue(kSecondMs, &hash));
  wheel.Clear();
  EXPECT_EQ(wheel.records(), 0u);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_FALSE(wheel.TakeDue(kDayMs, &hash));
  ASSERT_TRUE(wheel.File(5, kDayMs + 10));
  ASSERT_TRUE(wheel.TakeDue(kDayMs + 10 + kTickMs, &hash));
  EXPECT_EQ(hash, 5u);
}

}  // namespace
}  // namespace basalt::cache
