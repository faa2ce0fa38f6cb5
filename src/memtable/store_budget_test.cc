#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/random.h"
#include "memtable/store_test_support.h"

// What happens at the memory budget.

namespace basalt {
namespace {

/// The same of `size` bytes, with zeros before the number.
std::string Padded(std::string_view stem, uint64_t number, size_t size) {
  const std::string digits = std::to_string(number);
  std::string text(stem);
  text.resize(size - digits.size(), '0');
  return text + digits;
}

TEST(MemTableBudget, RefusingLosesNothing) {
  for (const bool compaction : {false, true}) {
    SCOPED_TRACE(compaction);
    const auto table = NewTable(
        {.memory_budget = 4 * kMiB, .at_budget = AtBudget::kRefuse, .compaction = compaction});
    uint64_t count = 0;
    Status status;
    for (; count < 100'000; ++count) {
      status = table->Put(Numbered("key", count), Numbered(std::string(200, 'v'), count));
      if (!status.ok()) break;
    }
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_FALSE(status.message().empty());
    EXPECT_GT(count, 1'000u) << "a quarter of the budget must be usable";
    EXPECT_EQ(table->GetStats().waits, 0u);
    table->WaitForBackgroundWork();
    EXPECT_EQ(Scan(*table).size(), count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(GetFrom(*table, Numbered("key", i)), Numbered(std::string(200, 'v'), i));
    }
  }
}

TEST(MemTableBudget, RefusedWritesWorkAgainAfterCompaction) {
  const auto table =
      NewTable({.memory_budget = 2 * kMiB, .at_budget = AtBudget::kRefuse, .compaction = false});
  for (uint64_t round = 0; round < 3; ++round) {
    Status status;
    uint64_t count = 0;
    for (; count < 100'000; ++count) {
      status = table->Put(Numbered("key", count % 10), Numbered(std::string(100, 'v'), count));
      if (!status.ok()) break;
    }
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
    ASSERT_GT(count, 100u);
    const Contents before = Scan(*table);
    ASSERT_TRUE(IsOk(table->Compact()));
    EXPECT_EQ(Scan(*table), before);
    EXPECT_EQ(table->GetStats().records, 10u);
  }
}

TEST(MemTableBudget, ARefusedBatchChangesNothing) {
  const auto table =
      NewTable({.memory_budget = 1 * kMiB, .at_budget = AtBudget::kRefuse, .compaction = false});
  ASSERT_TRUE(IsOk(table->Put("a", "before")));
  Status status;
  for (uint64_t i = 0; i < 10'000 && status.ok(); ++i) {
    const Contents before = {{"a", GetFrom(*table, "a").value()}};
    WriteBatch batch;
    batch.Put("a", Numbered("round", i));
    batch.Put("filler", std::string(50'000, 'f'));
    batch.DeleteRange("a", "b");
    batch.Put("a", Numbered("last of round", i));
    status = table->Write(batch);
    if (!status.ok()) {
      EXPECT_EQ(Scan(*table, {.upper = "b"}), before);
    }
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(MemTableBudget, WaitingMakesRoomWhenOverwritesAllowIt) {
  const auto table = NewTable({.memory_budget = 1 * kMiB});
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i % 50), Numbered(std::string(1'000, 'v'), i))))
        << i;
  }
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(GetFrom(*table, Numbered("key", i)), Numbered(std::string(1'000, 'v'), 19'950 + i));
  }
  EXPECT_GT(table->GetStats().compactions, 0u);
}

TEST(MemTableBudget, WaitingMakesRoomWhenDeletesAllowIt) {
  const auto table = NewTable({.memory_budget = 1 * kMiB});
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), std::string(300, 'v')))) << i;
    if (i >= 100 && i % 100 == 0) {
      for (uint64_t j = i - 100; j < i - 50; ++j) {
        ASSERT_TRUE(IsOk(table->Delete(Numbered("key", j))));
      }
      WriteBatch batch;
      for (uint64_t j = i - 50; j < i; ++j) {
        batch.DeleteRange(Numbered("key", j), Numbered("key", j) + '\0');
      }
      ASSERT_TRUE(IsOk(table->Write(batch)));
    }
  }
  EXPECT_EQ(Scan(*table).size(), 100u);
}

TEST(MemTableBudget, WaitingFailsWhenLiveRecordsAloneExceedIt) {
  for (const bool compaction : {false, true}) {
    SCOPED_TRACE(compaction);
    const auto table = NewTable({.memory_budget = 2 * kMiB, .compaction = compaction});
    uint64_t count = 0;
    Status status;
    for (; count < 100'000; ++count) {
      status = table->Put(Numbered("key", count), std::string(300, 'v'));
      if (!status.ok()) break;
    }
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_GT(count, 1'000u);
    EXPECT_EQ(Scan(*table).size(), count);
    EXPECT_EQ(GetFrom(*table, Numbered("key", count)), std::nullopt);
    EXPECT_EQ(GetFrom(*table, Numbered("key", count - 1)), std::string(300, 'v'));
  }
}

TEST(MemTableBudget, WaitingFailsWhenSnapshotsKeepAllVersions) {
  const auto table = NewTable({.memory_budget = 1 * kMiB});
  std::vector<Snapshot> snapshots;
  Status status;
  for (uint64_t i = 0; i < 100'000 && status.ok(); ++i) {
    status = table->Put("key", Numbered(std::string(500, 'v'), i));
    if (status.ok()) snapshots.push_back(SnapshotOf(*table));
  }
  ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
  for (uint64_t i = 0; i < snapshots.size(); ++i) {
    ASSERT_EQ(GetFrom(*table, "key", {.snapshot = &snapshots[i]}),
              Numbered(std::string(500, 'v'), i));
  }
  snapshots.clear();
  for (uint64_t i = 0; i < 5'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put("key", Numbered(std::string(500, 'w'), i)))) << i;
  }
}

TEST(MemTableBudget, AValueThatCanNeverFitIsRefused) {
  for (const AtBudget at_budget : {AtBudget::kWait, AtBudget::kRefuse}) {
    const auto table = NewTable({.memory_budget = 1 * kMiB, .at_budget = at_budget});
    ASSERT_TRUE(IsOk(table->Put("key", "value")));
    EXPECT_EQ(table->Put("large", std::string(2 * kMiB, 'v')).code(),
              StatusCode::kResourceExhausted);
    EXPECT_EQ(Scan(*table), (Contents{{"key", "value"}}));
    ASSERT_TRUE(IsOk(table->Put("key", "another")));
    EXPECT_EQ(GetFrom(*table, "key"), "another");
  }
}

TEST(MemTableBudget, ABatchThatCanNeverFitIsRefusedByAnEmptyGenerationToo) {
  for (const AtBudget at_budget : {AtBudget::kWait, AtBudget::kRefuse}) {
    const auto table = NewTable({.memory_budget = 1 * kMiB, .at_budget = at_budget});
    WriteBatch many;
    for (uint64_t i = 0; i < 20'000; ++i) many.Put(Numbered("", i), "");
    for (const bool is_used : {false, true}) {
      EXPECT_EQ(table->Put("large", std::string(4 * kMiB, 'v')).code(),
                StatusCode::kResourceExhausted);
      EXPECT_EQ(table->Write(many).code(), StatusCode::kResourceExhausted);
      EXPECT_LE(table->GetStats().memory_bytes, kMiB);
      EXPECT_TRUE(IsOk(table->Put("key", "value")));
      EXPECT_TRUE(IsOk(table->Put("half", std::string(kMiB / 2, 'v'))));
      EXPECT_EQ(Scan(*table).size(), 2u);
      EXPECT_TRUE(IsOk(table->Delete("half")));
      ASSERT_TRUE(IsOk(table->Compact()));
      if (!is_used) {
        ASSERT_TRUE(IsOk(table->Seal()));
      }
    }
  }
}

TEST(MemTableBudget, AThirdOfItCanBeOverwrittenForEver) {
  // A small one less: it has no less than 64 KiB for what is written.
  for (const auto& [budget, part] : {std::pair(1 * kMiB, 4), std::pair(4 * kMiB, 3)}) {
    for (const bool is_random : {false, true}) {
      SCOPED_TRACE(Numbered(is_random ? "random " : "in turn ", budget));
      const auto table = NewTable({.memory_budget = budget});
      const uint64_t keys = budget / static_cast<uint64_t>(part) / 116;
      base::Random random(budget);
      std::map<std::string, std::string> expected;
      for (uint64_t i = 0; i < 6 * keys; ++i) {
        const std::string key =
            Padded("key", i < keys || !is_random ? i % keys : random.Below(keys), 16);
        const std::string value = Padded("value", i, 100);
        ASSERT_TRUE(IsOk(table->Put(key, value))) << i;
        expected[key] = value;
      }
      EXPECT_EQ(Scan(*table), Contents(expected.begin(), expected.end()));
      EXPECT_LE(table->GetStats().memory_bytes, budget);
    }
  }
}

TEST(MemTableBudget, AFullStoreTakesDeletesAndIsAsGoodAsNew) {
  for (const AtBudget at_budget : {AtBudget::kWait, AtBudget::kRefuse}) {
    const auto table = NewTable({.memory_budget = 2 * kMiB, .at_budget = at_budget});
    uint64_t first_count = 0;
    for (int round = 0; round < 2; ++round) {
      SCOPED_TRACE(round);
      uint64_t count = 0;
      const auto fill = [&] {
        while (table->Put(Padded("key", count, 16), std::string(100, 'v')).ok()) ++count;
      };
      fill();
      if (round == 0) first_count = count;
      EXPECT_GT(count, first_count * 3 / 4);
      // Neither Compact, which may fail, nor deletes may give to puts what later ones need.
      for (int i = 0; i < 20; ++i) {
        static_cast<void>(table->Compact());
        fill();
        ASSERT_TRUE(IsOk(table->Delete("nothing")));
        fill();
      }
      std::vector<uint64_t> numbers(count);
      std::iota(numbers.begin(), numbers.end(), 0);
      if (round != 0) {
        base::Random random(count);
        for (uint64_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[random.Below(i)]);
      }
      for (const uint64_t number : numbers) {
        Status status = table->Delete(Padded("key", number, 16));
        if (!status.ok()) {
          table->WaitForBackgroundWork();
          status = table->Delete(Padded("key", number, 16));
        }
        ASSERT_TRUE(IsOk(status)) << number << " of " << count;
      }
      ASSERT_TRUE(IsOk(table->Compact()));
      EXPECT_TRUE(Scan(*table).empty());
      EXPECT_EQ(table->GetStats().records, 0u);
    }
  }
}

TEST(MemTableBudget, AFullStoreTakesARangeDeleteAndGivesBackWhatItCovers) {
  const auto table = NewTable({.memory_budget = 4 * kMiB});
  uint64_t first_count = 0;
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    uint64_t count = 0;
    while (table->Put(Padded("key", count, 16), std::string(100, 'v')).ok()) ++count;
    if (round == 0) first_count = count;
    EXPECT_GT(count, first_count * 3 / 4);
    ASSERT_TRUE(IsOk(table->DeleteRange("key", "kez")));
  }
}

TEST(MemTableBudget, WhatSnapshotsHeldIsGivenBack) {
  const auto table = NewTable({.memory_budget = 4 * kMiB});
  std::vector<Snapshot> snapshots;
  Status status;
  for (uint64_t i = 0; status.ok(); ++i) {
    if (i % 1'000 == 0) snapshots.push_back(SnapshotOf(*table));
    status = table->Put(Padded("key", i % 5'000, 16), Padded("value", i, 100));
  }
  ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(table->Compact().code(), StatusCode::kResourceExhausted);
  snapshots.clear();
  for (uint64_t i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Padded("key", i % 5'000, 16), Padded("value", i, 100)))) << i;
  }
}

TEST(MemTableBudget, LargeGenerationsOfASmallOneAreSealedAndMerged) {
  for (const uint64_t budget : {256 * kKiB, 320 * kKiB, 512 * kKiB}) {
    for (const uint64_t part : {2, 3, 4}) {
      SCOPED_TRACE(Numbered(Numbered("part ", part) + " of ", budget));
      const auto table = NewTable(
          {.memory_budget = budget, .generation_bytes = std::max(budget / part, 64 * kKiB)});
      for (uint64_t i = 0; i < 20'000; ++i) {
        ASSERT_TRUE(IsOk(table->Put(Numbered("key", i % 10), std::string(100, 'v')))) << i;
      }
    }
  }
}

TEST(MemTableBudget, MemoryStaysWithinItAllTheTime) {
  constexpr uint64_t kChunkBytes = 2 * kMiB;
  for (const AtBudget at_budget : {AtBudget::kWait, AtBudget::kRefuse}) {
    for (const uint64_t budget : {256 * kKiB, 3 * kMiB, 16 * kMiB}) {
      SCOPED_TRACE(budget);
      const auto table = NewTable({.memory_budget = budget, .at_budget = at_budget});
      uint64_t written = 0;
      for (uint64_t i = 0; i < 20'000; ++i) {
        const size_t size = i % 100 == 0 ? budget / 20 : 100;
        const Status status = table->Put(Numbered("key", i % 37), std::string(size, 'v'));
        if (status.ok()) ++written;
        if (!status.ok()) {
          ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
        }
        if (i % 8 == 0) {
          ASSERT_LE(table->GetStats().memory_bytes, budget + kChunkBytes);
        }
      }
      EXPECT_GT(written, 100u);
    }
  }
}

}  // namespace
}  // namespace basalt
