// Data that is far larger than the budget, of keys so long that all block indexes together would
// pass it: what tables keep stays inside, and reads stay right while parts come and go.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/memory_file_system.h"

namespace basalt {
namespace {

constexpr uint64_t kBudget = uint64_t{1} << 20;
constexpr uint64_t kKeys = 20'000;

// Odd numbers are of no record.
std::string Key(uint64_t number) {
  return std::to_string(1'000'000 + number) + std::string(1000, 'k');
}

/// Which write of a key this is, and of which key.
std::string ValueOf(uint64_t number, uint64_t write) {
  return std::to_string(number) + " written " + std::to_string(write);
}

void ExpectInsideBudget(const DBStats& stats) {
  EXPECT_LE(stats.table_metadata_bytes, kBudget / 8 * 6);
  EXPECT_LE(stats.cache_bytes, stats.cache_capacity);
  EXPECT_LE(stats.cache_capacity, kBudget);
}

TEST(MemoryBudget, DataFarLargerThanTheBudgetIsReadInsideIt) {
  auto environment = db::Environment::System(1);
  ASSERT_TRUE(environment) << environment.error().ToString();
  environment->owned_fs = io::NewMemoryFileSystem();
  environment->fs = environment->owned_fs.get();
  environment->memtable_bytes = 128 << 10;
  auto db = db::OpenDatabase("/db", {.memory_budget = kBudget}, *environment).value();
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(db->Put(Key(2 * i), ValueOf(2 * i, 1)).ok());
  ASSERT_TRUE(db->CompactRange().ok());
  ExpectInsideBudget(db->GetStats());

  // Some keys are written again meanwhile: tables and what is cached of them go.
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    readers.emplace_back([&, seed] {
      base::Random random(seed);
      for (int reads = 0; reads < 2000 || !done.load(std::memory_order_acquire); ++reads) {
        const uint64_t number = random.Below(2 * kKeys);
        const auto value = db->Get(Key(number));
        if (!value || value->has_value() != (number % 2 == 0)) {
          ++wrong;
        } else if (*value && !(**value == ValueOf(number, 1) || **value == ValueOf(number, 2))) {
          ++wrong;
        }
      }
    });
  }
  base::Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t number = 2 * random.Below(kKeys);
    ASSERT_TRUE(db->Put(Key(number), ValueOf(number, 2)).ok());
  }
  ASSERT_TRUE(db->CompactRange().ok());
  done.store(true, std::memory_order_release);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0);

  const auto it = db->NewIterator();
  uint64_t seen = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++seen) ASSERT_EQ(it->key(), Key(2 * seen));
  EXPECT_TRUE(it->status().ok()) << it->status().ToString();
  EXPECT_EQ(seen, kKeys);
  const DBStats stats = db->GetStats();
  ExpectInsideBudget(stats);
  EXPECT_GT(stats.tables_in_parts, 0u);
}

TEST(MemoryBudget, WhereThereIsRoomNoTableIsReadInParts) {
  auto db = DB::Open(":memory:", {.memory_budget = uint64_t{64} << 20}).value();
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(db->Put(Key(i), ValueOf(i, 1)).ok());
  ASSERT_TRUE(db->Flush().ok());
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(db->Get(Key(i)).value().has_value());
  EXPECT_EQ(db->GetStats().tables_in_parts, 0u);
  EXPECT_GT(db->GetStats().table_metadata_bytes, 1'000'000u);
}

}  // namespace
}  // namespace basalt
