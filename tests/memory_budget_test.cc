// Data that is far larger than the budget, of so many keys that all filters and indexes together
// would pass it: what tables keep stays inside, and reads stay right while parts come and go.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
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
constexpr uint64_t kKeys = 500'000;

// Odd numbers are of no record.
std::string Key(uint64_t number) { return std::to_string(1'000'000 + number); }

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

/// Of the process: pages of its own that are in memory, without those of files.
uint64_t ResidentBytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) kib = std::stoull(line.substr(sizeof "RssAnon:"));
  }
  return kib << 10;
}

/// The most that the process has had of such pages and others since this was called last.
uint64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) kib = std::stoull(line.substr(sizeof "VmHWM:"));
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return kib << 10;
}

// In memory are the value itself, its batch and the memtable's copy, then that and a block of its
// table, which compression may take once more.
TEST(MemoryBudget, ALargeValueIsCopiedAFewTimesAndNoCopyIsKept) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr uint64_t kValueBytes = uint64_t{48} << 20;
  constexpr uint64_t kSlack = uint64_t{16} << 20;
  std::string path = testing::TempDir() + "/memory_budget_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  {
    auto db = DB::Open(path, {.memory_budget = uint64_t{1} << 30}).value();
    const uint64_t before = ResidentBytes();
    static_cast<void>(PeakBytes());
    std::string value(kValueBytes, '\0');
    uint64_t state = 1;
    for (char& byte : value) {
      state = state * 6'364'136'223'846'793'005 + 1;
      byte = static_cast<char>(state >> 56);
    }
    ASSERT_TRUE(db->Put("key", value).ok());
    EXPECT_LE(PeakBytes(), before + 3 * kValueBytes + 2 * kSlack);
    EXPECT_LE(ResidentBytes(), before + 2 * kValueBytes + kSlack) << "the value and the memtable";
    ASSERT_TRUE(db->Flush().ok());
    EXPECT_LE(PeakBytes(), before + 3 * kValueBytes + 2 * kSlack);
    // The thread that flushed lets go of the memtable some time later.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ResidentBytes() > before + kValueBytes + kSlack) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(db->Get("key").value()->ToString() == value);
    ASSERT_TRUE(db->Close().ok());
  }
  std::filesystem::remove_all(path);
}

// Small records, so that tables keep as much as they may, merged until all tables have been written
// anew, then read until the cache is full. What is not counted: a table being written, what malloc
// keeps of small objects, and holes between extents.
TEST(MemoryBudget, ManySmallRecordsKeepTheProcessInsideIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr uint64_t kSmallBudget = uint64_t{16} << 20;
  constexpr uint64_t kUncounted = uint64_t{8} << 20;
  constexpr uint64_t kRecords = 3'000'000;
  constexpr uint64_t kFactor = 1'234'577;  // prime, and no divisor of kRecords: in mixed order
  const auto key = [](uint64_t number) { return std::to_string(10'000'000 + number); };
  std::string path = testing::TempDir() + "/memory_budget_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  const uint64_t before = ResidentBytes();
  auto db = DB::Open(path, {.memory_budget = kSmallBudget}).value();
  WriteBatch batch;
  for (uint64_t i = 0; i < kRecords; ++i) {
    batch.Put(key(i * kFactor % kRecords), "value");
    if (batch.count() < 1000) continue;
    ASSERT_TRUE(db->Write(batch).ok());
    batch.Clear();
  }
  ASSERT_TRUE(db->CompactRange().ok());
  for (int scan = 0; scan < 2; ++scan) {
    const auto it = db->NewIterator();
    uint64_t seen = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++seen;
    ASSERT_EQ(seen, kRecords);
  }
  const DBStats stats = db->GetStats();
  EXPECT_GT(stats.table_metadata_bytes, kSmallBudget / 5);
  EXPECT_GT(stats.cache_bytes, stats.cache_capacity / 10 * 9);
  const uint64_t resident = ResidentBytes() - before;
  EXPECT_LE(resident, kSmallBudget + kUncounted);
  RecordProperty("resident_kib", std::to_string(resident >> 10));
  ASSERT_TRUE(db->Close().ok());
  std::filesystem::remove_all(path);
}

/// What the process takes beyond what it took before, after all has been written, compacted, read
/// and, by a process that has the same memory, opened again.
uint64_t ResidentWithKeys(const std::string& path, uint64_t budget, uint64_t count,
                          const std::function<std::string(uint64_t)>& key) {
  const uint64_t before = ResidentBytes();
  uint64_t most = 0;
  const auto look = [&] { most = std::max(most, ResidentBytes()); };
  const DBOptions options{.memory_budget = budget, .compression = Compression::kNone};
  auto db = DB::Open(path, options).value();
  uint64_t key_bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string written = key(i);
    key_bytes += written.size();
    EXPECT_TRUE(db->Put(written, "v").ok());
    if (i % 64 == 0) look();
  }
  for (int round = 0; round < 2; ++round) {
    const auto it = db->NewIterator();
    uint64_t seen = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++seen;
    EXPECT_EQ(seen, count);
    look();
    EXPECT_TRUE(db->CompactRange().ok());
    look();
  }
  const DBStats stats = db->GetStats();
  uint64_t tables = 0;
  uint64_t bytes = 0;
  for (const LevelStats& level : stats.levels) {
    tables += level.tables;
    bytes += level.bytes;
  }
  EXPECT_LE(bytes, key_bytes * 6 / 5 + (1 << 20)) << "a key stands in a table once";
  EXPECT_LE(bytes / tables, uint64_t{3} << 20) << "tables aim at 2 MiB";
  EXPECT_LE(std::filesystem::file_size(path + "/MANIFEST"), 1'000 + 400 * tables);
  EXPECT_TRUE(db->Close().ok());
  db.reset();
  db = DB::Open(path, options).value();
  for (uint64_t i = 0; i < count; i += 7) EXPECT_TRUE(db->Get(key(i)).value().has_value());
  look();
  EXPECT_TRUE(db->Close().ok());
  std::filesystem::remove_all(path);
  return most - before;
}

// Of up to 64 KiB, by far the most of all bytes.
TEST(MemoryBudget, LongKeysKeepTheProcessInsideIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  constexpr uint64_t kSmallBudget = uint64_t{4} << 20;
  constexpr uint64_t kUncounted = uint64_t{12} << 20;
  std::string path = testing::TempDir() + "/memory_budget_XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  for (const uint64_t bytes : {1'000, 16'000, 65'000}) {
    const uint64_t count = (uint64_t{24} << 20) / bytes;
    base::Random random(bytes);
    std::string prefix(bytes, '\0');
    for (char& byte : prefix) byte = static_cast<char>(random.Below(256));
    const auto numbered = [&](uint64_t i) { return prefix + std::to_string(i * 7'919 % count); };
    EXPECT_LE(ResidentWithKeys(path, kSmallBudget, count, numbered), kSmallBudget + kUncounted)
        << bytes << ", which share a prefix";
    const auto mixed = [&](uint64_t i) {
      std::string key = prefix;
      base::Random bytes_of_key(i);
      for (size_t at = 0; at < key.size(); at += 4)
        key[at] = static_cast<char>(bytes_of_key.Next());
      return key;
    };
    EXPECT_LE(ResidentWithKeys(path, kSmallBudget, count, mixed), kSmallBudget + kUncounted)
        << bytes << ", at random";
  }
}

}  // namespace
}  // namespace basalt
