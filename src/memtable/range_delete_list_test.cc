#include "memtable/range_delete_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"

namespace basalt::memtable {
namespace {

std::string Key(uint64_t number) { return "key" + std::to_string(1000 + number); }

// A list whose range deletes have the sequences from 1 on, in this order.
class RangeDeleteListTest : public testing::Test {
 protected:
  void Add(uint64_t begin, uint64_t end, uint32_t keyspace = 0, bool is_of_several = false) {
    auto range = std::make_unique<RangeDelete>();
    range->keyspace = keyspace;
    range->begin = Key(begin);
    range->end = Key(end);
    range->is_of_several = is_of_several;
    range->sequence = ++last_;
    list_.Add(range.release());
  }

  // By a look at each.
  base::SequenceNumber Expected(uint32_t keyspace, std::string_view key,
                                base::SequenceNumber at) const {
    base::SequenceNumber newest = 0;
    for (const RangeDelete& range : list_) {
      const base::SequenceNumber sequence = range.sequence;
      if (sequence <= at && range.Covers(keyspace, key)) newest = std::max(newest, sequence);
    }
    return newest;
  }

  base::SequenceNumber Collected(uint32_t keyspace, std::string_view key,
                                 base::SequenceNumber at) const {
    std::vector<const base::RangeCover*> covers;
    std::vector<base::RangeCover::Range> loose;
    list_.Collect(keyspace, at, &covers, &loose);
    return base::RangeCovers(covers, loose).StretchOf(key).sequence;
  }

  base::ByteBudget budget_{1 << 20};
  RangeDeleteList list_{&budget_};
  base::SequenceNumber last_ = 0;
};

TEST_F(RangeDeleteListTest, AtEachSequenceALookupFindsWhatALookAtEachOfThemDoes) {
  base::Random random(1);
  for (int round = 0; round < 60; ++round) {
    for (uint64_t i = random.Below(200); i > 0; --i) {
      const uint64_t begin = random.Below(100);
      Add(begin, begin + random.Below(10), random.OneIn(4) ? 7 : 0);
      if (random.OneIn(2)) list_.Flatten(nullptr);
    }
    for (int i = 0; i < 50; ++i) {
      const uint32_t keyspace = random.OneIn(3) ? 7 : 0;
      const std::string key = Key(random.Below(110));
      const base::SequenceNumber at =
          random.OneIn(2) ? base::kMaxSequence : random.Below(last_ + 2);
      const base::SequenceNumber expected = Expected(keyspace, key, at);
      ASSERT_EQ(list_.SequenceAt(keyspace, key, at, nullptr), expected) << key << " at " << at;
      ASSERT_EQ(Collected(keyspace, key, at), expected) << key << " at " << at;
    }
  }
  EXPECT_EQ(list_.count(), last_);
}

TEST_F(RangeDeleteListTest, OfManyOnlyAFewAreLookedAtByThemselves) {
  for (uint64_t i = 0; i < 100'000; ++i) {
    Add(i % 1000, i % 1000 + 1);
    list_.Flatten(nullptr);
    ASSERT_LT(list_.loose_count(), 64U);
  }
  std::vector<const base::RangeCover*> covers;
  std::vector<base::RangeCover::Range> loose;
  list_.Collect(0, base::kMaxSequence, &covers, &loose);
  EXPECT_EQ(loose.size(), list_.loose_count());
  EXPECT_LE(covers.size(), 7 + 100'000 / 8'192);
}

// Batches with many and with few of them by turns.
TEST_F(RangeDeleteListTest, PartsOfAllSizesStayFew) {
  base::Random random(3);
  for (int i = 0; i < 100; ++i) {
    for (uint64_t n = random.OneIn(2) ? 2'000 : 64; n > 0; --n) Add(n % 1000, n % 1000 + 1);
    list_.Flatten(nullptr);
    std::vector<const base::RangeCover*> covers;
    std::vector<base::RangeCover::Range> loose;
    list_.Collect(0, base::kMaxSequence, &covers, &loose);
    ASSERT_LE(covers.size(), 7 + 2 * list_.count() / 8'192) << i;
  }
}

TEST_F(RangeDeleteListTest, ReadersBelowAPartPassItByAndThoseInItFindTheirs) {
  for (uint64_t i = 0; i < 64; ++i) Add(0, 10);
  list_.Flatten(nullptr);
  ASSERT_EQ(list_.loose_count(), 0U);
  for (const base::SequenceNumber at : {0, 1, 31, 63, 64, 65}) {
    EXPECT_EQ(list_.SequenceAt(0, Key(5), at, nullptr), std::min<uint64_t>(at, 64));
    EXPECT_EQ(Collected(0, Key(5), at), std::min<uint64_t>(at, 64));
  }
}

class Batches final : public BatchWatch {
 public:
  bool IsUnderWay(base::SequenceNumber sequence) const noexcept override {
    return under_way.contains(sequence);
  }
  base::SequenceNumber SettledBelow() const noexcept override { return 0; }

  std::set<base::SequenceNumber> under_way;
};

// Else a lookup could not tell any more that it must not see it yet.
TEST_F(RangeDeleteListTest, WhatBelongsToABatchUnderWayComesIntoNoPart) {
  Batches batches;
  for (uint64_t i = 0; i < 64; ++i) Add(0, 10);
  Add(20, 30, 0, /*is_of_several=*/true);
  batches.under_way.insert(last_);
  const base::SequenceNumber of_batch = last_;
  for (uint64_t i = 0; i < 100; ++i) Add(0, 10);
  {
    BatchCheck check(batches);
    list_.Flatten(&check);
    EXPECT_EQ(list_.loose_count(), 101U);
    EXPECT_EQ(list_.SequenceAt(0, Key(25), base::kMaxSequence, &check), 0U);
  }
  batches.under_way.clear();
  BatchCheck check(batches);
  list_.Flatten(&check);
  EXPECT_EQ(list_.loose_count(), 0U);
  EXPECT_EQ(list_.SequenceAt(0, Key(25), base::kMaxSequence, &check), of_batch);
}

TEST_F(RangeDeleteListTest, PartsAreCharged) {
  for (uint64_t i = 0; i < 64; ++i) Add(2 * i, 2 * i + 1);
  const uint64_t before = budget_.used_bytes();
  list_.Flatten(nullptr);
  EXPECT_GE(budget_.used_bytes(), before + 64 * 2 * (sizeof(std::string_view) + 8));
}

// Each thread deletes ranges of its own and looks for them, and at what others do.
TEST_F(RangeDeleteListTest, ThreadsFindWhatTheyHaveAddedWhileOthersFlatten) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kRanges = 3'000;
  std::atomic<base::SequenceNumber> last{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kRanges; ++i) {
        auto range = std::make_unique<RangeDelete>();
        const std::string key = Key(t * 10 + i % 10);
        range->begin = key;
        range->end = key + "~";
        const base::SequenceNumber sequence = last.fetch_add(1) + 1;
        range->sequence = sequence;
        list_.Add(range.release());
        list_.Flatten(nullptr);
        if (list_.SequenceAt(0, key, base::kMaxSequence, nullptr) != sequence ||
            Collected(0, key, base::kMaxSequence) != sequence) {
          ADD_FAILURE() << key << " of thread " << t;
          return;
        }
        if (list_.SequenceAt(0, key, sequence - 1, nullptr) >= sequence) ADD_FAILURE() << key;
        list_.SequenceAt(0, Key(i % 40), sequence, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(list_.count(), kThreads * kRanges);
}

}  // namespace
}  // namespace basalt::memtable
