// Writers, readers, iterators, snapshots, flushes and compactions together, on real threads. Meant
// for ThreadSanitizer as much as for its own assertions.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "db/environment.h"
#include "io/memory_file_system.h"

namespace basalt {
namespace {

constexpr size_t kPairs = 64;

std::string LeftKey(uint64_t pair) { return "left" + std::to_string(pair); }
std::string RightKey(uint64_t pair) { return "right" + std::to_string(pair); }

/// A database in memory whose memtables are so small that flushes and compactions never rest.
std::unique_ptr<DB> OpenSmall() {
  auto environment = db::Environment::System(2);
  EXPECT_TRUE(environment) << environment.error().ToString();
  environment->owned_fs = io::NewMemoryFileSystem();
  environment->fs = environment->owned_fs.get();
  environment->memtable_bytes = 32 << 10;
  environment->table_bytes = 16 << 10;
  auto opened = db::OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, *environment);
  EXPECT_TRUE(opened) << opened.error().ToString();
  return std::move(*opened);
}

uint64_t Number(std::string_view value) { return std::stoull(std::string(value)); }

/// Each writer owns some pairs of keys and always writes both with one number, which only grows.
class PairsUnderLoad : public testing::Test {
 protected:
  void WritePairs(uint64_t writer, uint64_t writers, uint64_t rounds) {
    base::Random random(writer);
    for (uint64_t round = 1; round <= rounds; ++round) {
      const uint64_t pair = random.Below(kPairs / writers) * writers + writer;
      const std::string value = std::to_string(round);
      WriteBatch batch;
      batch.Put(LeftKey(pair), value);
      batch.Put("filler" + std::to_string(random.Below(500)), std::string(100, 'f'));
      batch.Put(RightKey(pair), value);
      const Status written = db_->Write(
          batch, {.durability = random.OneIn(16) ? Durability::kPower : Durability::kProcess});
      ASSERT_TRUE(written.ok()) << written.ToString();
    }
  }

  /// Both sides of every pair, at one moment; each must be equal and never go back.
  void ReadPairs(uint64_t seed) {
    base::Random random(seed);
    std::vector<uint64_t> seen(kPairs, 0);
    while (!done_.load(std::memory_order_acquire)) {
      const uint64_t pair = random.Below(kPairs);
      const std::string keys[] = {LeftKey(pair), RightKey(pair)};
      const std::string_view views[] = {keys[0], keys[1]};
      Result<MaybeValue> results[2];
      if (random.OneIn(2)) {
        ASSERT_TRUE(db_->MultiGet(views, results).ok());
      } else {
        const auto snapshot = db_->GetSnapshot();
        ASSERT_TRUE(snapshot);
        for (size_t i = 0; i < 2; ++i) {
          results[i] = db_->Get(views[i], {.snapshot = &*snapshot});
        }
      }
      ASSERT_TRUE(results[0] && results[1]);
      ASSERT_EQ(results[0]->has_value(), results[1]->has_value()) << "half a batch is visible";
      if (!results[0]->has_value()) continue;
      const uint64_t left = Number((*results[0])->view());
      ASSERT_EQ(left, Number((*results[1])->view())) << "two halves of different batches";
      ASSERT_GE(left, seen[pair]) << "an older value came back";
      seen[pair] = left;
    }
  }

  void IteratePairs(bool backward) {
    while (!done_.load(std::memory_order_acquire)) {
      const auto it = db_->NewIterator();
      std::vector<std::optional<uint64_t>> left(kPairs);
      std::vector<std::optional<uint64_t>> right(kPairs);
      for (backward ? it->SeekToLast() : it->SeekToFirst(); it->Valid();
           backward ? it->Prev() : it->Next()) {
        const std::string_view key = it->key();
        if (key.starts_with("left")) left[Number(key.substr(4))] = Number(it->value());
        if (key.starts_with("right")) right[Number(key.substr(5))] = Number(it->value());
      }
      ASSERT_TRUE(it->status().ok()) << it->status().ToString();
      ASSERT_EQ(left, right) << "an iterator saw half a batch";
    }
  }

  std::unique_ptr<DB> db_ = OpenSmall();
  std::atomic<bool> done_{false};
};

TEST_F(PairsUnderLoad, BatchesAreSeenWholeByGetsSnapshotsAndIterators) {
  std::vector<std::thread> readers;
  readers.emplace_back([&] { ReadPairs(1); });
  readers.emplace_back([&] { ReadPairs(2); });
  readers.emplace_back([&] { IteratePairs(false); });
  readers.emplace_back([&] { IteratePairs(true); });
  readers.emplace_back([&] {
    while (!done_.load(std::memory_order_acquire)) {
      ASSERT_TRUE(db_->Flush().ok());
      ASSERT_TRUE(db_->CompactRange().ok());
      ASSERT_TRUE(db_->Sync().ok());
      static_cast<void>(db_->GetStats());
    }
  });
  constexpr uint64_t kWriters = 3;
  std::vector<std::thread> writers;
  for (uint64_t i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] { WritePairs(i, kWriters, 3000); });
  }
  for (std::thread& writer : writers) writer.join();
  done_.store(true, std::memory_order_release);
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(db_->GetStats().flushes, 0U);
  EXPECT_GT(db_->GetStats().compactions, 0U);
  EXPECT_TRUE(db_->Close().ok());
}

TEST(ConcurrentUpdates, NoneOfManyIncrementsIsLost) {
  const auto db = OpenSmall();
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kIncrements = 300;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&db] {
      for (uint64_t n = 0; n < kIncrements; ++n) {
        const Status updated = db->Update(
            "counter",
            [](std::optional<std::string_view> value) -> Result<std::optional<std::string>> {
              return std::optional(std::to_string(value ? Number(*value) + 1 : 1));
            });
        ASSERT_TRUE(updated.ok()) << updated.ToString();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*db->Get("counter"))->view(), std::to_string(kThreads * kIncrements));
}

TEST(HandleLifetime, IteratorsSnapshotsAndValuesOutliveTheHandle) {
  auto db = OpenSmall();
  const std::string large(1000, 'v');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(db->Put("key" + std::to_string(i), large).ok());
  auto snapshot = db->GetSnapshot();
  ASSERT_TRUE(snapshot);
  const auto it = db->NewIterator();
  it->SeekToFirst();
  auto value = db->Get("key7");
  ASSERT_TRUE(value && *value);
  std::thread([handle = std::move(db)]() mutable { handle.reset(); }).join();
  size_t count = 0;
  for (; it->Valid(); it->Next()) ++count;
  EXPECT_TRUE(it->status().ok()) << it->status().ToString();
  EXPECT_EQ(count, 500U);
  EXPECT_EQ((*value)->view(), large);
}

TEST(HandleLifetime, ADatabaseCanBeReopenedAsSoonAsItsHandleIsGone) {
  auto environment = db::Environment::System(2);
  ASSERT_TRUE(environment) << environment.error().ToString();
  environment->owned_fs = io::NewMemoryFileSystem();
  environment->fs = environment->owned_fs.get();
  environment->memtable_bytes = 32 << 10;
  for (int round = 0; round < 20; ++round) {
    auto db = db::OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, *environment);
    ASSERT_TRUE(db) << "round " << round << ": " << db.error().ToString();
    for (int i = 0; i < 300; ++i) {  // flushes and compactions are under way when it ends
      ASSERT_TRUE((*db)->Put("key" + std::to_string(i), std::string(500, 'v')).ok());
    }
  }
}

TEST(HandleLifetime, CloseEndsIteratorsAndSnapshotsWithAClearError) {
  const auto db = OpenSmall();
  ASSERT_TRUE(db->Put("key", "value").ok());
  auto snapshot = db->GetSnapshot();
  ASSERT_TRUE(snapshot);
  auto value = db->Get("key");
  const auto it = db->NewIterator();
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  ASSERT_TRUE(db->Close().ok());
  ASSERT_TRUE(db->Close().ok()) << "Close is idempotent";
  it->Next();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(db->Get("key", {.snapshot = &*snapshot}).error().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(db->Put("key", "other").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*value)->view(), "value");
}

}  // namespace
}  // namespace basalt
