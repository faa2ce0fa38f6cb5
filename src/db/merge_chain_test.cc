// Many merges of one key: flushes and compactions make one of them, and reads of them stay short.

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/coding.h"
#include "base/random.h"
#include "base/test_update.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Encoded(uint64_t number) {
  std::string bytes(sizeof number, '\0');
  base::Store(bytes.data(), number);
  return bytes;
}

class MergeChain : public testing::Test {
 protected:
  MergeChain() { Open(); }

  void Open() {
    Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = memtable_bytes_;
    environment.table_bytes = memtable_bytes_;
    db_ = OpenDatabase("/db", {.memory_budget = uint64_t{64} << 20}, environment).value();
  }
  void Reopen() {
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    Open();
  }

  /// Adds 1 so many times, a millisecond apart.
  void Count(std::string_view key, int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(db_->Merge(key, MergeOperator::kAdd, Encoded(1)).ok());
      clock_.Advance(1000);
    }
  }
  static uint64_t NumberIn(const MaybeValue& value) {
    if (!value) return 0;
    return value->size() == 8 ? base::Load<uint64_t>(value->view().data()) : UINT64_MAX;
  }
  uint64_t Number(std::string_view key, const ReadOptions& options = {}) const {
    const auto found = db_->Get(key, options);
    EXPECT_TRUE(found) << found.error().ToString();
    return found ? NumberIn(*found) : UINT64_MAX;
  }
  uint64_t Records() const {
    uint64_t records = 0;
    for (const LevelStats& level : db_->GetStats().levels) records += level.records;
    return records;
  }

  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  uint64_t memtable_bytes_ = 0;
  std::unique_ptr<DB> db_;
};

TEST_F(MergeChain, AFlushMakesOneMergeOfManyAlsoOverAValueInATable) {
  ASSERT_TRUE(db_->Put("counter", Encoded(1000)).ok());
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_NO_FATAL_FAILURE(Count("counter", 500));
  ASSERT_NO_FATAL_FAILURE(Count("new", 500));
  ASSERT_TRUE(db_->Flush().ok());
  EXPECT_EQ(Records(), 3U);
  EXPECT_EQ(Number("counter"), 1500U);
  EXPECT_EQ(Number("new"), 500U);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(Number("counter"), 1500U);
}

TEST_F(MergeChain, CompactionAboveTheLastLevelCombinesWhatFlushesHaveLeft) {
  // The last level is large enough for another one above it.
  memtable_bytes_ = 32 << 10;
  ASSERT_NO_FATAL_FAILURE(Reopen());
  base::Random random(1);
  for (int i = 0; i < 300; ++i) {
    std::string value(10'000, '\0');
    for (char& byte : value) byte = static_cast<char>(random.Below(256));
    ASSERT_TRUE(db_->Put("k" + std::to_string(i), value).ok());
  }
  ASSERT_TRUE(db_->Put("k50", Encoded(1000)).ok());
  ASSERT_TRUE(db_->CompactRange().ok());
  for (int flush = 0; flush < 8; ++flush) {
    ASSERT_NO_FATAL_FAILURE(Count("k50", 10));
    ASSERT_TRUE(db_->Flush().ok());
  }
  executor_.RunAll();
  const DBStats stats = db_->GetStats();
  EXPECT_EQ(stats.levels[5].records, 1U);
  EXPECT_EQ(stats.levels[6].records, 300U);
  EXPECT_EQ(Number("k50"), 1080U);
}

TEST_F(MergeChain, OverAValueThatExpiresBetweenItsMergesStaysExact) {
  for (const bool is_long : {false, true}) {  // a long one is worth a look at the value
    SCOPED_TRACE(is_long);
    const std::string key = is_long ? "long" : "short";
    const int times = is_long ? 100 : 4;
    ASSERT_TRUE(db_->Put(key, Encoded(1000), {.ttl = milliseconds(times)}).ok());
    ASSERT_TRUE(db_->Flush().ok());
    executor_.RunAll();
    const uint64_t records = Records();
    ASSERT_NO_FATAL_FAILURE(Count(key, times / 2));
    EXPECT_EQ(Number(key), 1000U + times / 2);
    ASSERT_NO_FATAL_FAILURE(Count(key, times));  // half of them after the expiry
    EXPECT_EQ(Number(key), static_cast<uint64_t>(times / 2));
    ASSERT_TRUE(db_->Flush().ok());
    EXPECT_EQ(Number(key), static_cast<uint64_t>(times / 2));
    if (is_long) {
      EXPECT_EQ(Records(), records + 2) << "before the expiry, and after it";
    }
    ASSERT_TRUE(db_->CompactRange().ok());
    EXPECT_EQ(Number(key), static_cast<uint64_t>(times / 2));
  }
  EXPECT_EQ(Records(), 2U);
}

TEST_F(MergeChain, OverAValueThatHasNotExpiredExpiresWithIt) {
  ASSERT_TRUE(db_->Put("counter", Encoded(1000), {.ttl = seconds(10)}).ok());
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_NO_FATAL_FAILURE(Count("counter", 100));
  ASSERT_TRUE(db_->Flush().ok());
  EXPECT_EQ(Records(), 2U);
  EXPECT_EQ(Number("counter"), 1100U);
  clock_.Advance(10'000'000);
  EXPECT_FALSE(*db_->Get("counter"));
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Records(), 0U);
}

TEST_F(MergeChain, StopsAtSnapshotsAndRangeDeletes) {
  ASSERT_NO_FATAL_FAILURE(Count("counter", 100));
  const Snapshot hundred = db_->GetSnapshot().value();
  ASSERT_NO_FATAL_FAILURE(Count("counter", 100));
  ASSERT_TRUE(db_->DeleteRange("a", "d").ok());
  const Snapshot none = db_->GetSnapshot().value();
  ASSERT_NO_FATAL_FAILURE(Count("counter", 7));
  const auto check = [&] {
    EXPECT_EQ(Number("counter", {.snapshot = &hundred}), 100U);
    EXPECT_EQ(Number("counter", {.snapshot = &none}), 0U);
    EXPECT_EQ(Number("counter"), 7U);
  };
  check();
  ASSERT_TRUE(db_->Flush().ok());
  EXPECT_EQ(Records(), 2U);
  check();
  ASSERT_TRUE(db_->CompactRange().ok());
  check();
}

TEST_F(MergeChain, TooLongToWalkOverIsScannedWithItsExpiryAndItsErrors) {
  ASSERT_TRUE(db_->Put("a", Encoded(1000), {.ttl = seconds(10)}).ok());
  ASSERT_TRUE(db_->Put("c", "text").ok());
  ASSERT_TRUE(db_->Put("d", Encoded(5), {.ttl = milliseconds(1)}).ok());
  ASSERT_NO_FATAL_FAILURE(Count("a", 100));
  const Snapshot snapshot = db_->GetSnapshot().value();
  for (const char* const key : {"a", "b", "c"}) ASSERT_NO_FATAL_FAILURE(Count(key, 100));
  const auto expect_at = [](const Iterator& it, std::string_view key, uint64_t number) {
    ASSERT_TRUE(it.Valid()) << it.status().ToString();
    EXPECT_EQ(it.key(), key);
    EXPECT_EQ(base::Load<uint64_t>(it.value().data()), number);
    EXPECT_EQ(it.expiry().has_value(), key == "a");
  };
  const auto it = db_->NewIterator({.upper = "c"});
  const auto old = db_->NewIterator({.snapshot = &snapshot, .upper = "c"});
  ASSERT_NO_FATAL_FAILURE(Count("a", 1));  // which they do not see
  for (int round = 0; round < 2; ++round) {
    it->SeekToFirst();
    expect_at(*it, "a", 1200);
    it->Next();
    expect_at(*it, "b", 100);
    it->Prev();
    expect_at(*it, "a", 1200);
    it->Next();
    expect_at(*it, "b", 100);
    it->Next();
    EXPECT_FALSE(it->Valid());
    it->SeekToLast();
    expect_at(*it, "b", 100);
    it->Prev();
    expect_at(*it, "a", 1200);
    it->Prev();
    EXPECT_FALSE(it->Valid());
    old->SeekToLast();
    expect_at(*old, "a", 1100);
    old->SeekToFirst();
    expect_at(*old, "a", 1100);
  }
  const auto all = db_->NewIterator();
  for (const bool forward : {true, false}) {
    forward ? all->Seek("c") : all->SeekForPrev("c");
    EXPECT_EQ(all->status().code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(all->status().message().find("key 'c'"), std::string_view::npos)
        << all->status().ToString();
  }
  const auto keys = db_->NewIterator({.keys_only = true});
  std::string found;
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) found += keys->key();
  EXPECT_EQ(found, "abc");
  found.clear();
  for (keys->SeekToLast(); keys->Valid(); keys->Prev()) found += keys->key();
  EXPECT_EQ(found, "cba");
}

/// Of this thread.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// A walk over all merges would make the last part cost 19 times as much as the first one.
TEST_F(MergeChain, AReadTakesNoLongerWithTheNumberOfMerges) {
  constexpr int kParts = 10;
  constexpr int kOfPart = 2000;
  double first = 0;
  double last = 0;
  uint64_t count = 0;
  for (int part = 0; part < kParts; ++part) {
    const double start = CpuSeconds();
    for (int i = 0; i < kOfPart; ++i) {
      ASSERT_TRUE(db_->Merge("counter", MergeOperator::kAdd, Encoded(1)).ok());
      ASSERT_EQ(Number("counter"), ++count);
    }
    last = CpuSeconds() - start;
    if (part == 0) first = last;
  }
  EXPECT_LT(last, 6 * first);
  EXPECT_EQ(db_->GetStats().flushes, 0U);
}

TEST_F(MergeChain, IsReadThroughFoldsByMultiGetAndUpdateUnderSnapshotsToo) {
  ASSERT_NO_FATAL_FAILURE(Count("a", 300));
  const Snapshot snapshot = db_->GetSnapshot().value();
  ASSERT_NO_FATAL_FAILURE(Count("a", 300));
  ASSERT_NO_FATAL_FAILURE(Count("b", 100));
  for (int round = 0; round < 2; ++round) {
    const std::vector<std::string_view> keys = {"a", "b", "c"};
    std::vector<Result<MaybeValue>> results(3);
    ASSERT_TRUE(db_->MultiGet(keys, results).ok());
    EXPECT_EQ(NumberIn(*results[0]), 600U);
    EXPECT_EQ(NumberIn(*results[1]), 100U);
    EXPECT_EQ(NumberIn(*results[2]), 0U);
    EXPECT_EQ(Number("a", {.snapshot = &snapshot}), 300U);
    EXPECT_EQ(Number("b", {.snapshot = &snapshot}), 0U);
  }
  const auto halve =
      [](std::optional<std::string_view> present) -> Result<std::optional<std::string>> {
    return Encoded(base::Load<uint64_t>(present->data()) / 2);
  };
  ASSERT_TRUE(db_->Update("a", base::ByValue(halve)).ok());
  EXPECT_EQ(Number("a"), 300U);
  ASSERT_NO_FATAL_FAILURE(Reopen());  // the log has no folds
  EXPECT_EQ(Number("a"), 300U);
  EXPECT_EQ(Number("b"), 100U);
  EXPECT_EQ(Number("b"), 100U);
  ASSERT_TRUE(db_->Flush().ok());
  EXPECT_EQ(Number("a"), 300U);
  EXPECT_EQ(Number("b"), 100U);
}

TEST_F(MergeChain, IsScannedInBothDirections) {
  ASSERT_TRUE(db_->Put("b", Encoded(1000), {.ttl = milliseconds(100)}).ok());
  for (const char* const key : {"a", "b", "c"}) ASSERT_NO_FATAL_FAILURE(Count(key, 50));
  EXPECT_EQ(Number("a"), 50U);
  const auto scan = [&] {
    std::string all;
    const auto it = db_->NewIterator();
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      all +=
          std::string(it->key()) + std::to_string(base::Load<uint64_t>(it->value().data())) + " ";
    }
    std::string back;
    for (it->SeekToLast(); it->Valid(); it->Prev()) {
      back = std::string(it->key()) + std::to_string(base::Load<uint64_t>(it->value().data())) +
             " " + back;
    }
    EXPECT_EQ(back, all);
    return all;
  };
  EXPECT_EQ(scan(), "a50 c50 ") << "b has expired with its merges";
  ASSERT_NO_FATAL_FAILURE(Count("b", 20));
  EXPECT_EQ(Number("b"), 20U);
  EXPECT_EQ(scan(), "a50 b20 c50 ");
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_NO_FATAL_FAILURE(Count("b", 20));
  EXPECT_EQ(scan(), "a50 b40 c50 ");
}

}  // namespace
}  // namespace basalt::db
