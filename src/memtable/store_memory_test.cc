#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/arena.h"
#include "base/epoch.h"
#include "base/out_of_memory.h"
#include "base/test_memory_operators.h"
#include "base/test_update.h"
#include "memtable/hash_index.h"
#include "memtable/store_test_support.h"

// What happens when the system has no memory left.

namespace basalt {
namespace {

using base::EachAllocation;
using base::MemoryThatFails;

std::string Key(uint64_t number) { return std::string(40, 'k') + std::to_string(100'000 + number); }

std::unique_ptr<MemTable> SomeGenerations(int generations, uint64_t keys) {
  auto table = NewTable({.compaction = false});
  for (int i = 0; i < generations; ++i) {
    for (uint64_t number = static_cast<uint64_t>(i); number < keys; number += 2) {
      EXPECT_TRUE(IsOk(table->Put(Key(number), std::string(300, 'v'))));
    }
    EXPECT_TRUE(IsOk(table->Seal()));
  }
  table->WaitForBackgroundWork();
  return table;
}

TEST(MemTableMemory, NoFunctionThrowsWhereThereIsNone) {
  const auto table = SomeGenerations(3, 1'000);
  WriteBatch batch;
  for (uint64_t i = 0; i < 10; ++i) batch.Put(Key(i), "value");
  const std::string large(100'000, 'v');
  const std::string first = Key(1);
  const std::string second = Key(2);
  const std::vector<std::pair<const char*, std::function<Status()>>> operations = {
      {"get", [&] { return table->Get(first).status(); }},
      {"put", [&] { return table->Put("large", large); }},
      {"write", [&] { return table->Write(batch); }},
      {"delete", [&] { return table->Delete(std::string_view(large).substr(0, 5'000)); }},
      {"delete range", [&] { return table->DeleteRange("y", "z"); }},
      {"update",
       [&] {
         return table->Update(second,
                              base::ByValue([](auto) { return std::optional<std::string>(); }));
       }},
      {"snapshot", [&] { return table->GetSnapshot().status(); }},
      {"seal", [&] { return table->Seal(); }},
      {"compact", [&] { return table->Compact(); }},
      {"create", [] { return MemTable::Create().status(); }},
      {"figures",
       [&] {
         table->WaitForBackgroundWork();
         static_cast<void>(table->GetStats());
         return Status();
       }},
  };
  for (const auto& [name, operation] : operations) {
    SCOPED_TRACE(name);
    std::optional<Status> status;
    try {
      const MemoryThatFails none(0);
      status = operation();
    } catch (const std::bad_alloc&) {
      ADD_FAILURE() << "it threw";
      continue;
    }
    if (!status->ok()) {
      EXPECT_EQ(status->code(), StatusCode::kResourceExhausted);
    }
  }
  EXPECT_EQ(Scan(*table).size(), table->Get(second).value() ? 1'000u : 999u);
}

TEST(MemTableMemory, SpansThatDifferInLengthAreRefusedWithoutAny) {
  const auto table = NewTable();
  std::vector<Result<MaybeValue>> results(1);
  for (int64_t allowed_ones = 0; allowed_ones < 3; ++allowed_ones) {
    std::optional<Status> status;
    EXPECT_NO_THROW({
      const MemoryThatFails none(allowed_ones);
      status = table->MultiGet(std::span<const std::string_view>(), results);
    });
    ASSERT_TRUE(status) << allowed_ones;
    EXPECT_EQ(status->code(), StatusCode::kInvalidArgument);
  }
}

TEST(MemTableMemory, AWriteThatIsRefusedHasChangedNothing) {
  for (const size_t records : {size_t{64}, size_t{2'000}}) {
    EachAllocation each;
    while (each.Next()) {
      SCOPED_TRACE(each.ToString());
      const auto table = NewTable({.compaction = false});
      // The last of so many small ones that sorting is due.
      const int writes = records == 64 ? 64 : 1;
      Status status;
      for (int write = 0; write < writes; ++write) {
        WriteBatch batch;
        for (size_t i = 0; i < records; ++i) {
          batch.Put(std::to_string(write) + " " + std::to_string(i), std::string(150, 'v'));
        }
        if (write + 1 < writes) {
          ASSERT_TRUE(IsOk(table->Write(batch)));
          continue;
        }
        status = each.Call([&] { return table->Write(batch); });
      }
      const size_t before = records * static_cast<size_t>(writes - 1);
      EXPECT_EQ(Scan(*table).size(), status.ok() ? before + records : before);
    }
  }
}

TEST(HashIndexMemory, WordsThatADoublingLeavesBehindAreNotKeptForGood) {
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    const auto pool = std::make_shared<base::ChunkPool>();
    base::ByteBudget budget(~uint64_t{0});
    base::RetireList retired;
    {
      memtable::HashIndex index(pool, &budget, &retired, {});
      ASSERT_TRUE(index.Reserve(10, /*within_limit=*/true));
      static_cast<void>(each.Call([&] {
        return index.Reserve(1'000, /*within_limit=*/true) ? Status() : base::OutOfMemory();
      }));
      retired.Collect();
      EXPECT_EQ(retired.bytes(), 0u);
    }
    EXPECT_EQ(budget.used_bytes(), 0u);
    EXPECT_EQ(pool->kept_bytes(), pool->slab_bytes());
  }
}

// Not even the generations of a state for which there was no memory to note that it is replaced.
TEST(MemTableMemory, ASealThatIsRefusedHasChangedNothingAndNothingIsKeptForGood) {
  const base::ChunkPool& pool = *base::ChunkPool::Process();
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    auto table = NewTable({.compaction = false});
    ASSERT_TRUE(IsOk(table->Put("key", std::string(1'000, 'v'))));
    const Status status = each.Call([&] { return table->Seal(); });
    EXPECT_EQ(table->GetStats().seals, status.ok() ? 1u : 0u) << status.ToString();
    EXPECT_EQ(Scan(*table).size(), 1u);
    table->WaitForBackgroundWork();
    table.reset();
    // What threads of the background still read when the table went comes back a moment later.
    base::RetireList any;
    for (int tries = 0; tries < 5'000 && pool.kept_bytes() != pool.slab_bytes(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      any.Collect();
    }
    ASSERT_EQ(pool.kept_bytes(), pool.slab_bytes());
  }
}

TEST(MemTableMemory, BackgroundWorkGoesOnAfterAFailedAllocation) {
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    const auto table = NewTable({.memory_budget = 1 << 20, .at_budget = AtBudget::kRefuse});
    for (int i = 0; i < 20'000; ++i) {
      WriteBatch batch;
      batch.Put("key", std::string(100, 'v'));
      Status status;
      if (i == 63) {  // Sorting is scheduled for the first time.
        static_cast<void>(each.Call([&] { return table->Write(batch); }));
        continue;
      }
      for (int tries = 0; tries < 5'000 && !(status = table->Write(batch)).ok(); ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ASSERT_TRUE(IsOk(status)) << i;
    }
  }
}

TEST(MemTableMemory, AWalkOverSeveralGenerationsLosesNothing) {
  auto table = NewTable({.compaction = false});
  // Neighbours share much, then less, so that what all share has to be found anew.
  uint64_t count = 0;
  for (int generation = 0; generation < 3; ++generation) {
    for (uint64_t i = static_cast<uint64_t>(generation); i < 300; i += 3, ++count) {
      const std::string stem(i < 100 ? 60 : i < 200 ? 30 : 45, static_cast<char>('a' + i / 100));
      ASSERT_TRUE(IsOk(table->Put(stem + std::to_string(1'000 + i), "value")));
    }
    ASSERT_TRUE(IsOk(table->Seal()));
  }
  const Contents expected = Scan(*table);
  ASSERT_EQ(expected.size(), count);
  const auto it = table->NewIterator();
  Contents seen;
  for (it->SeekToFirst(); it->Valid();) {
    seen.emplace_back(it->key(), it->value());
    const MemoryThatFails none(0);
    it->Next();
  }
  EXPECT_TRUE(IsOk(it->status()));
  EXPECT_EQ(seen, expected);
}

TEST(MemTableMemory, WhatAnUpdatesFunctionThrowsReachesTheCaller) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("key", "before")));
  const auto throws = [](std::optional<std::string_view>) -> Result<std::optional<std::string>> {
    throw std::bad_alloc();
  };
  EXPECT_THROW(static_cast<void>(table->Update("key", base::ByValue(throws))), std::bad_alloc);
  EXPECT_EQ(GetFrom(*table, "key"), "before");
}

}  // namespace
}  // namespace basalt
