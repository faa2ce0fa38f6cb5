// Folds: what reads of many merges go through.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "basalt/write_batch.h"
#include "base/coding.h"
#include "base/epoch.h"
#include "base/hash.h"
#include "base/merge_operator.h"
#include "memtable/generation.h"
#include "memtable/generation_test_support.h"

namespace basalt::memtable {
namespace {

using base::SequenceNumber;

std::string Number(uint64_t number) {
  std::string bytes(base::kMergeNumberBytes, '\0');
  base::Store(bytes.data(), number);
  return bytes;
}

/// Merges as a DB writes them, which tells each when it is written: at its sequence, in ms.
void Merge(Generation* table, std::string_view key, MergeOperator op, std::string_view operand,
           SequenceNumber sequence, uint32_t keyspace = 0) {
  std::string value(1, static_cast<char>(op));
  value += operand;
  auto reserved = table->Reserve({.kind = RecordKind::kMerge,
                                  .keyspace = keyspace,
                                  .key = key,
                                  .value = value,
                                  .time_ms = sequence});
  ASSERT_TRUE(reserved) << reserved.error().ToString();
  table->Insert(std::move(*reserved), sequence);
}

void Fold(Generation* table, std::string_view key, SequenceNumber at, uint64_t expiry_ms = 0,
          uint32_t keyspace = 0) {
  table->FoldMerges(keyspace, key, base::Hash(key), at, expiry_ms);
}

struct MergeWalk {
  size_t steps = 0;
  uint64_t sum = 0;        ///< Of numbers.
  std::string appended{};  ///< Of others.
};
MergeWalk WalkFrom(const Generation& table, std::string_view key, SequenceNumber at,
                   uint32_t keyspace = 0) {
  const base::EpochGuard inside;
  MergeWalk walk;
  const Record* record = table.Find(keyspace, key, base::Hash(key), at, nullptr);
  for (; record != nullptr && record->kind == static_cast<uint8_t>(RecordKind::kMerge);
       record = table.Behind(*record)) {
    ++walk.steps;
    const std::string_view operand = record->value().substr(1);
    if (static_cast<MergeOperator>(record->value()[0]) == MergeOperator::kAppend) {
      walk.appended.insert(0, operand);
    } else {
      walk.sum += base::Load<uint64_t>(operand.data());
    }
  }
  return walk;
}

constexpr size_t kMin = Generation::kFoldedMin;

TEST(Fold, StandsForAllMergesBehindItAndLeavesEachInItsPlace) {
  const auto table = Generation::Create({});
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(i), i));
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "b", MergeOperator::kAdd, Number(1), 100 + i));
  }
  const std::vector<std::string> before = ScanAll(*table, 1000);
  Fold(table.get(), "a", 60);
  for (SequenceNumber at = 1; at <= 100; ++at) {
    const MergeWalk walk = WalkFrom(*table, "a", at);
    EXPECT_EQ(walk.sum, at * (at + 1) / 2) << at;
    EXPECT_EQ(walk.steps, at < 60 ? at : at - 59) << at;
  }
  Fold(table.get(), "a", 100);
  EXPECT_EQ(WalkFrom(*table, "a", 100).steps, 1U);
  EXPECT_EQ(WalkFrom(*table, "b", 200).steps, 100U);
  EXPECT_EQ(ScanAll(*table, 1000), before);
  EXPECT_EQ(table->record_count(), 200U);
}

TEST(Fold, IsPassedAtOnceByWhoReadsBelowIt) {
  const auto table = Generation::Create({});
  Put(*table, "a", "value", 1);
  for (uint64_t i = 2; i <= 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(i), i));
  }
  Fold(table.get(), "a", 100);
  EXPECT_EQ(GetAt(*table, "a", 1), "1=value");
  EXPECT_EQ(GetAt(*table, "a", 0), std::nullopt);
}

TEST(Fold, IsNotMadeOfFewOrOfOtherOperators) {
  const auto table = Generation::Create({});
  SequenceNumber last = 0;
  for (uint64_t i = 1; i < kMin; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(1), ++last));
  }
  Fold(table.get(), "a", last);
  EXPECT_EQ(WalkFrom(*table, "a", last).steps, kMin - 1);
  ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kMax, Number(1), ++last));
  Fold(table.get(), "a", last);
  EXPECT_EQ(WalkFrom(*table, "a", last).steps, kMin);
}

TEST(Fold, EndsAtPutsAndRangeDeletes) {
  const auto table = Generation::Create({});
  for (uint64_t i = 1; i <= 50; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(1), i));
  }
  RangeDelete* const range = table->PrepareRangeDelete(0, "a", "b", false);
  ASSERT_NE(range, nullptr);
  table->Finish(range, 51);
  Fold(table.get(), "a", 51);
  EXPECT_EQ(WalkFrom(*table, "a", 51).steps, 50U) << "all of them are hidden";
  for (uint64_t i = 52; i <= 71; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(1), i));
  }
  Fold(table.get(), "a", 71);
  EXPECT_EQ(WalkFrom(*table, "a", 71).steps, 51U);
  Put(*table, "a", "value", 72);
  for (uint64_t i = 73; i <= 92; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(1), i));
  }
  Fold(table.get(), "a", 92);
  EXPECT_EQ(WalkFrom(*table, "a", 92).sum, 20U);
  EXPECT_EQ(WalkFrom(*table, "a", 92).steps, 1U);
}

TEST(Fold, OfAnotherKeyspaceIsApart) {
  const auto table = Generation::Create({});
  for (uint64_t i = 1; i <= 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(1), i, 7));
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(2), 20 + i, 8));
  }
  Fold(table.get(), "a", 40, 0, 7);
  EXPECT_EQ(WalkFrom(*table, "a", 40, 7).steps, 1U);
  EXPECT_EQ(WalkFrom(*table, "a", 40, 7).sum, 20U);
  EXPECT_EQ(WalkFrom(*table, "a", 40, 8).steps, 20U);
}

TEST(Fold, OfNumbersKeepsTheWalkShortAndIsSmall) {
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  const auto plain = Generation::Create({.budget_bytes = 64 << 20});
  for (uint64_t i = 1; i <= 50'000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(i), i));
    ASSERT_NO_FATAL_FAILURE(Merge(plain.get(), "a", MergeOperator::kAdd, Number(i), i));
    const MergeWalk walk = WalkFrom(*table, "a", i);
    ASSERT_EQ(walk.sum, i * (i + 1) / 2);
    ASSERT_LE(walk.steps, kMin);
    if (walk.steps >= kMin) Fold(table.get(), "a", i);
  }
  EXPECT_LT(table->memory_bytes(), plain->memory_bytes() + plain->memory_bytes() / 2);
}

// A reader who folds what took him many steps: each byte is copied a few times.
TEST(Fold, OfAppendedBytesIsCopiedAFewTimes) {
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  const auto plain = Generation::Create({.budget_bytes = 64 << 20});
  constexpr uint64_t kAppends = 20'000;
  const std::string piece(100, 'x');
  size_t steps_max = 0;
  for (uint64_t i = 1; i <= kAppends; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAppend, piece, i));
    ASSERT_NO_FATAL_FAILURE(Merge(plain.get(), "a", MergeOperator::kAppend, piece, i));
    Fold(table.get(), "a", i);
    if (i % 100 == 0) steps_max = std::max(steps_max, WalkFrom(*table, "a", i).steps);
  }
  EXPECT_LE(steps_max, 4 * kMin);
  const MergeWalk walk = WalkFrom(*table, "a", kAppends);
  EXPECT_EQ(walk.appended.size(), kAppends * piece.size());
  EXPECT_LT(table->memory_bytes(), plain->memory_bytes() + 5 * kAppends * piece.size());
}

TEST(Fold, KeepsTheOrderOfAppendedBytes) {
  const auto table = Generation::Create({});
  std::string all;
  for (uint64_t i = 1; i <= 1000; ++i) {
    const std::string piece = std::to_string(i) + ",";
    all += piece;
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAppend, piece, i));
    Fold(table.get(), "a", i);
    ASSERT_EQ(WalkFrom(*table, "a", i).appended, all);
  }
}

TEST(Fold, IsApartAtTheMomentWhenTheValueExpires) {
  const auto table = Generation::Create({});
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(Merge(table.get(), "a", MergeOperator::kAdd, Number(1), i));
  }
  Fold(table.get(), "a", 100, 60);
  const MergeWalk walk = WalkFrom(*table, "a", 100);
  EXPECT_EQ(walk.steps, 60U) << "those at 60 ms and later, and the others";
  const base::EpochGuard inside;
  const Record* const fold = table->Find(0, "a", base::Hash("a"), 100, nullptr);
  ASSERT_TRUE(fold->is_fold());
  EXPECT_EQ(fold->folded().count, 41U);
  EXPECT_EQ(fold->folded().oldest, 60U);
  EXPECT_FALSE(fold->folded().IsSplitBy(60));
  EXPECT_TRUE(fold->folded().IsSplitBy(61));
}

TEST(Fold, IsNotMadeWhereTheBudgetHasNoRoom) {
  const auto table = Generation::Create({.budget_bytes = 64 << 10, .shards = 1});
  SequenceNumber last = 0;
  while (true) {
    std::string value(1, static_cast<char>(MergeOperator::kAppend));
    value += std::string(200, 'x');
    auto reserved = table->Reserve(
        {.kind = RecordKind::kMerge, .key = "a", .value = value, .time_ms = last + 1});
    if (!reserved) break;
    table->Insert(std::move(*reserved), ++last);
  }
  ASSERT_GT(last, kMin);
  const uint64_t bytes = table->memory_bytes();
  Fold(table.get(), "a", last);
  EXPECT_LE(table->memory_bytes(), std::max<uint64_t>(bytes, 64 << 10));
  EXPECT_EQ(WalkFrom(*table, "a", last).appended.size(), 200 * last);
}

// Writers of one key, and readers who fold: each sees exactly what is visible to him.
TEST(Fold, ByManyThreadsMisleadsNobody) {
  constexpr uint64_t kMerges = 10'000;
  constexpr int kWriters = 2;
  constexpr int kReaders = 2;
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  // A writer takes a sequence, inserts, and waits for its turn to make it visible.
  std::atomic<SequenceNumber> next{1};
  std::atomic<SequenceNumber> visible{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&] {
      for (SequenceNumber mine = next++; mine <= kMerges; mine = next++) {
        Merge(table.get(), "a", MergeOperator::kAdd, Number(1), mine);
        while (visible.load(std::memory_order_acquire) != mine - 1) std::this_thread::yield();
        visible.store(mine, std::memory_order_release);
        if (mine % kMin == 0) Fold(table.get(), "a", mine);
      }
    });
  }
  for (int reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      SequenceNumber at = 0;
      for (uint64_t round = 0; at < kMerges; ++round) {
        at = visible.load(std::memory_order_acquire);
        ASSERT_EQ(WalkFrom(*table, "a", at).sum, at);
        if (reader == 0) Fold(table.get(), "a", at);
        if (round % 64 == 0) {
          ASSERT_EQ(WalkFrom(*table, "a", at / 2).sum, at / 2);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table->record_count(), kMerges);
  EXPECT_LE(WalkFrom(*table, "a", kMerges).steps, 2 * kMin);
}

}  // namespace
}  // namespace basalt::memtable
