// Scans make a level 0 of several tables due once they have cost as much as to merge it.

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr int kScannedKeys = 300;
constexpr uint64_t kTables = 3;
constexpr uint64_t kScansMax = 100'000;

std::string ScannedKey(int number) { return std::to_string(1000 + number); }

class ScanCost : public testing::Test {
 protected:
  ScanCost() {
    Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    db_ = OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, environment).value();
  }

  uint64_t Level0Tables() const { return db_->GetStats().levels[0].tables; }
  void PutAndFlush(int first, int step) {
    for (int i = first; i < kScannedKeys; i += step)
      ASSERT_TRUE(db_->Put(ScannedKey(i), ScannedKey(-i)).ok());
    ASSERT_TRUE(db_->Flush().ok());
    executor_.RunAll();
  }
  /// Tables with keys from all over, none twice.
  void FillLevel0() {
    for (int first = 0; first < static_cast<int>(kTables); ++first) {
      ASSERT_NO_FATAL_FAILURE(PutAndFlush(first, kTables));
    }
    ASSERT_EQ(Level0Tables(), kTables);
  }
  void Scan(const ReadOptions& options = {}) {
    const auto it = db_->NewIterator(options);
    it->SeekToFirst();
    ASSERT_TRUE(it->Valid());
  }
  /// Until a job waits.
  uint64_t ScansUntilDue() {
    uint64_t scans = 0;
    for (; executor_.pending() == 0 && scans < kScansMax; ++scans) Scan();
    return scans;
  }
  void ExpectHoldsAll() const {
    int found = 0;
    const auto it = db_->NewIterator();
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++found) {
      ASSERT_EQ(it->key(), ScannedKey(found));
      ASSERT_EQ(it->value(), ScannedKey(-found));
    }
    EXPECT_TRUE(it->status().ok()) << it->status().ToString();
    EXPECT_EQ(found, kScannedKeys);
  }

  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
};

TEST_F(ScanCost, MergesALevel0ThatNobodyWritesTo) {
  FillLevel0();
  // Each spends 128 bytes on each table but one.
  const uint64_t bytes = db_->GetStats().levels[0].bytes;
  const uint64_t scans = ScansUntilDue();
  EXPECT_GE(scans * 256, bytes);
  EXPECT_LE(scans * 256, bytes + 512);
  executor_.RunAll();
  EXPECT_EQ(Level0Tables(), 0U);
  ExpectHoldsAll();
  EXPECT_EQ(ScansUntilDue(), kScansMax) << "there is nothing to gain";
}

TEST_F(ScanCost, HasToBePaidAnewWhereTheCompactionFails) {
  FillLevel0();
  const uint64_t scans = ScansUntilDue();
  disk_.SetFault({.at_call = 1, .error = EIO, .sticky = true});
  executor_.RunAll();
  disk_.ClearFault();
  ASSERT_EQ(Level0Tables(), kTables);
  EXPECT_EQ(ScansUntilDue(), scans);
  executor_.RunAll();
  EXPECT_EQ(Level0Tables(), 0U);
  ExpectHoldsAll();
}

TEST_F(ScanCost, CountsWhatThereIsToReadBelow) {
  FillLevel0();
  ASSERT_TRUE(db_->CompactRange().ok());
  const uint64_t below = db_->GetStats().levels[6].bytes;
  ASSERT_NO_FATAL_FAILURE(PutAndFlush(0, kScannedKeys - 1));
  const uint64_t level0 = db_->GetStats().levels[0].bytes;
  const uint64_t scans = ScansUntilDue();
  EXPECT_GE(scans * 128, below + level0);
  EXPECT_LE(scans * 128, below + 2 * level0);  // the plan is not asked at each
  executor_.RunAll();
  EXPECT_EQ(Level0Tables(), 0U);
  ExpectHoldsAll();
}

TEST_F(ScanCost, IsNothingForGetsAndWhereOneTableHasWhatIsWanted) {
  for (const char* const prefix : {"a", "b", "c"}) {
    ASSERT_TRUE(db_->Put(prefix + ScannedKey(0), "value").ok());
    ASSERT_TRUE(db_->Put(prefix + ScannedKey(1), "value").ok());
    ASSERT_TRUE(db_->Flush().ok());
  }
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(*db_->Get("b1000"));
    ASSERT_NO_FATAL_FAILURE(Scan({.prefix = "b"}));
  }
  EXPECT_EQ(executor_.pending(), 0U);
  EXPECT_EQ(Level0Tables(), 3U);
}

}  // namespace
}  // namespace basalt::db
