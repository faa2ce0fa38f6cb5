// Space comes back: of what has expired, and of what was kept for snapshots that are gone.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/coding.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string KeyOf(int number) { return std::to_string(100'000 + number); }

class Reclaim : public testing::Test {
 protected:
  Reclaim() { Open(); }

  void Open(const DBOptions& options = {.memory_budget = uint64_t{4} << 20}) {
    Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    db_ = OpenDatabase("/db", options, environment).value();
  }
  void Reopen(const DBOptions& options = {.memory_budget = uint64_t{4} << 20}) {
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    Open(options);
  }
  /// Time passes while nobody uses the database.
  void Idle(milliseconds time) {
    clock_.Advance(static_cast<uint64_t>(std::chrono::microseconds(time).count()));
    executor_.Elapse(time);
    executor_.RunAll();
  }

  /// Bytes that do not compress.
  std::string RandomBytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.Below(256));
    return bytes;
  }
  void Put(std::string_view key, std::string_view value, const WriteOptions& options = {}) {
    ASSERT_TRUE(db_->Put(key, value, options).ok());
  }
  void Add(std::string_view key, uint64_t number) {
    std::string operand(8, '\0');
    base::Store(operand.data(), number);
    ASSERT_TRUE(db_->Merge(key, MergeOperator::kAdd, operand).ok());
  }
  std::string Get(std::string_view key, const ReadOptions& options = {}) const {
    const auto found = db_->Get(key, options);
    if (!found) return found.error().ToString();
    return *found ? (*found)->ToString() : "(absent)";
  }
  uint64_t Number(std::string_view key, const ReadOptions& options = {}) const {
    const std::string bytes = Get(key, options);
    return bytes.size() == 8 ? base::Load<uint64_t>(bytes.data()) : UINT64_MAX;
  }
  uint64_t Records() const {
    uint64_t records = 0;
    for (const LevelStats& level : db_->GetStats().levels) records += level.records;
    return records;
  }
  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const LevelStats& level : db_->GetStats().levels) bytes += level.bytes;
    return bytes;
  }
  /// A key of 10 bytes or so that stays, and one of 1,000 that expires, `count` times.
  void PutMixed(int count, milliseconds ttl, const WriteOptions& options = {}) {
    WriteOptions expiring = options;
    expiring.ttl = ttl;
    for (int i = 0; i < count; ++i) {
      ASSERT_NO_FATAL_FAILURE(Put(KeyOf(i) + "/stays", "x", options));
      ASSERT_NO_FATAL_FAILURE(Put(KeyOf(i) + "/value", RandomBytes(1000), expiring));
    }
  }

  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  base::Random random_{1};
  std::unique_ptr<DB> db_;
};

// Expiry

TEST_F(Reclaim, CompactRangeDropsOneExpiredRecordAmongOthers) {
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(Put(KeyOf(i), "stays"));
  ASSERT_NO_FATAL_FAILURE(Put("soon", "x", {.ttl = seconds(1)}));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_EQ(Records(), 11U);
  clock_.Advance(1'000'000);
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Records(), 10U);
  const uint64_t compactions = db_->GetStats().compactions;
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(db_->GetStats().compactions, compactions) << "nothing is left to drop";
}

TEST_F(Reclaim, AnIdleDatabaseGivesBackTablesThatAreMostlyExpiredByBytes) {
  ASSERT_NO_FATAL_FAILURE(PutMixed(500, seconds(10)));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_GT(Bytes(), 500'000U);
  Idle(seconds(9));
  EXPECT_EQ(Records(), 1000U);
  Idle(seconds(1));
  EXPECT_EQ(Records(), 500U);
  EXPECT_LT(Bytes(), 20'000U);
  EXPECT_EQ(Get(KeyOf(7) + "/stays"), "x");
}

TEST_F(Reclaim, AFewLateOnesAmongThoseThatExpireSoonKeepNothing) {
  for (int i = 0; i < 1000; ++i) {
    const auto ttl = i % 100 == 0 ? milliseconds(hours(1)) : seconds(5);
    ASSERT_NO_FATAL_FAILURE(Put(KeyOf(i), RandomBytes(500), {.ttl = ttl}));
  }
  ASSERT_TRUE(db_->CompactRange().ok());
  Idle(seconds(6));
  EXPECT_EQ(Records(), 10U);
  Idle(hours(1));
  EXPECT_EQ(Records(), 0U);
}

TEST_F(Reclaim, Level0GivesBackWhatIsMostlyExpired) {
  ASSERT_NO_FATAL_FAILURE(PutMixed(200, seconds(10)));
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_GT(db_->GetStats().levels[0].bytes, 200'000U);
  Idle(seconds(10));
  EXPECT_EQ(Records(), 200U);
}

TEST_F(Reclaim, WhatExpiresWithoutATableBeingTouchedGoesAlsoAfterAReopening) {
  ASSERT_NO_FATAL_FAILURE(PutMixed(200, seconds(10)));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  executor_.RunAll();
  ASSERT_EQ(Records(), 400U);
  Idle(seconds(10));
  EXPECT_EQ(Records(), 200U);
}

TEST_F(Reclaim, ExpiredValuesStayForASnapshotOfBeforeAndGoUnderALaterOne) {
  ASSERT_NO_FATAL_FAILURE(PutMixed(200, seconds(10)));
  auto before = std::make_optional(db_->GetSnapshot().value());
  ASSERT_NO_FATAL_FAILURE(Put("later", "x"));
  ASSERT_TRUE(db_->CompactRange().ok());
  Idle(seconds(10));
  auto after = std::make_optional(db_->GetSnapshot().value());
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_GT(Bytes(), 20'000U);
  EXPECT_NE(Get(KeyOf(3) + "/value", {.snapshot = &*before}), "(absent)");
  EXPECT_EQ(Get(KeyOf(3) + "/value", {.snapshot = &*after}), "(absent)");
  EXPECT_EQ(Get(KeyOf(3) + "/value"), "(absent)");
  before.reset();
  Idle(seconds(10));
  EXPECT_LT(Bytes(), 20'000U);
  EXPECT_EQ(Get(KeyOf(3) + "/value", {.snapshot = &*after}), "(absent)");
  EXPECT_EQ(Get(KeyOf(3) + "/stays", {.snapshot = &*after}), "x");
  after.reset();
  executor_.RunAll();
  EXPECT_EQ(Records(), 201U) << "the deletes that they became";
}

TEST_F(Reclaim, EachKeyspaceGivesBackItsOwnWithTheDefaultTtl) {
  ASSERT_NO_FATAL_FAILURE(Reopen({.memory_budget = uint64_t{4} << 20, .default_ttl = seconds(20)}));
  const KeyspaceId other = db_->CreateKeyspace("other").value();
  ASSERT_NO_FATAL_FAILURE(PutMixed(100, seconds(10)));
  ASSERT_NO_FATAL_FAILURE(PutMixed(100, seconds(15), {.keyspace = other}));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, other).ok());
  Idle(seconds(10));
  EXPECT_EQ(Records(), 300U);
  Idle(seconds(5));
  EXPECT_EQ(Records(), 200U);
  Idle(seconds(5));
  EXPECT_EQ(Records(), 0U) << "those of the default ttl";
}

TEST_F(Reclaim, ExpiredRecordsGoBesideARangeDelete) {
  ASSERT_NO_FATAL_FAILURE(PutMixed(300, seconds(10)));
  ASSERT_TRUE(db_->CompactRange().ok());
  clock_.Advance(10'000'000);
  auto snapshot = std::make_optional(db_->GetSnapshot().value());
  ASSERT_TRUE(db_->DeleteRange(KeyOf(0), KeyOf(100)).ok());
  ASSERT_TRUE(db_->Flush().ok());
  executor_.RunAll();
  Idle(seconds(10));
  EXPECT_LT(Bytes(), 30'000U);
  EXPECT_EQ(Get(KeyOf(7) + "/stays", {.snapshot = &*snapshot}), "x");
  EXPECT_EQ(Get(KeyOf(7) + "/stays"), "(absent)");
  snapshot.reset();
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Records(), 200U);
}

TEST_F(Reclaim, ACounterThatExpiredGoesWithItsMerges) {
  std::string zero(8, '\0');
  for (int i = 0; i < 100; ++i) {
    ASSERT_NO_FATAL_FAILURE(Put(KeyOf(i), zero, {.ttl = seconds(10)}));
  }
  ASSERT_TRUE(db_->CompactRange().ok());
  for (int i = 0; i < 100; ++i) ASSERT_NO_FATAL_FAILURE(Add(KeyOf(i), 5));
  ASSERT_TRUE(db_->Flush().ok());
  EXPECT_EQ(Number(KeyOf(3)), 5U);
  clock_.Advance(10'000'000);
  ASSERT_NO_FATAL_FAILURE(Add(KeyOf(3), 7));
  EXPECT_EQ(Number(KeyOf(3)), 7U);
  EXPECT_EQ(Get(KeyOf(4)), "(absent)");
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Records(), 1U);
  EXPECT_EQ(Number(KeyOf(3)), 7U);
}

// Snapshots

class ReclaimOfSnapshots : public Reclaim {
 protected:
  static constexpr int kKeys = 200;

  void Overwrite() {
    for (int i = 0; i < kKeys; ++i) ASSERT_NO_FATAL_FAILURE(Put(KeyOf(i), RandomBytes(500)));
  }
  /// Round 1 to 4, a snapshot behind each but the last; all in the last level.
  void OverwriteUnderSnapshots() {
    for (int round = 1; round <= 4; ++round) {
      ASSERT_NO_FATAL_FAILURE(Overwrite());
      ASSERT_NO_FATAL_FAILURE(Put("round", std::to_string(round)));
      if (round < 4) snapshots_.push_back(db_->GetSnapshot().value());
    }
    ASSERT_TRUE(db_->CompactRange().ok());
    ASSERT_EQ(Records(), 4U * (kKeys + 1));
  }
  void Release(size_t which) { snapshots_[which].reset(); }
  /// How many versions there are.
  double Versions() const { return static_cast<double>(Records()) / (kKeys + 1); }

  std::vector<std::optional<Snapshot>> snapshots_;
};

TEST_F(ReclaimOfSnapshots, TheReleaseOfEachGivesBackItsVersionsInAnyOrder) {
  std::vector<size_t> order = {0, 1, 2};
  do {
    SCOPED_TRACE(std::to_string(order[0]) + std::to_string(order[1]) + std::to_string(order[2]));
    ASSERT_TRUE(db_->DeleteRange("", "z").ok());
    ASSERT_TRUE(db_->CompactRange().ok());
    snapshots_.clear();
    ASSERT_NO_FATAL_FAILURE(OverwriteUnderSnapshots());
    double versions = 4;
    for (const size_t which : order) {
      Release(which);
      executor_.RunAll();
      EXPECT_EQ(Versions(), --versions);
      for (size_t left = 0; left < 3; ++left) {
        if (!snapshots_[left]) continue;
        EXPECT_EQ(Get("round", {.snapshot = &*snapshots_[left]}), std::to_string(left + 1));
      }
    }
    EXPECT_EQ(Get("round"), "4");
  } while (std::ranges::next_permutation(order).found);
}

TEST_F(ReclaimOfSnapshots, CompactRangeDropsOneVersionThatNobodySees) {
  ASSERT_NO_FATAL_FAILURE(Overwrite());
  auto older = std::make_optional(db_->GetSnapshot().value());
  ASSERT_NO_FATAL_FAILURE(Put(KeyOf(3), "second"));
  auto newer = std::make_optional(db_->GetSnapshot().value());
  ASSERT_NO_FATAL_FAILURE(Put(KeyOf(3), "third"));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_EQ(Records(), kKeys + 2U);
  newer.reset();
  executor_.RunAll();
  ASSERT_EQ(Records(), kKeys + 2U) << "it is not worth it";
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Records(), kKeys + 1U);
  older.reset();
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Records(), static_cast<uint64_t>(kKeys));
  const uint64_t compactions = db_->GetStats().compactions;
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(db_->GetStats().compactions, compactions) << "nothing is left to drop";
}

TEST_F(ReclaimOfSnapshots, CompactRangeDropsWhatAnEarlierOpeningKept) {
  ASSERT_NO_FATAL_FAILURE(OverwriteUnderSnapshots());
  snapshots_.clear();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  executor_.RunAll();
  EXPECT_EQ(Versions(), 1);
}

TEST_F(ReclaimOfSnapshots, Level0GivesBackWhatWasKept) {
  ASSERT_NO_FATAL_FAILURE(Overwrite());
  snapshots_.push_back(db_->GetSnapshot().value());
  ASSERT_NO_FATAL_FAILURE(Overwrite());
  snapshots_.push_back(db_->GetSnapshot().value());
  ASSERT_NO_FATAL_FAILURE(Overwrite());
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_EQ(Records(), 3U * kKeys);
  snapshots_.clear();
  executor_.RunAll();
  EXPECT_EQ(Records(), static_cast<uint64_t>(kKeys));
}

TEST_F(ReclaimOfSnapshots, WhatARangeDeleteHidesGoesAlsoBesideNewerRecords) {
  ASSERT_NO_FATAL_FAILURE(Overwrite());
  snapshots_.push_back(db_->GetSnapshot().value());
  ASSERT_TRUE(db_->DeleteRange(KeyOf(0), KeyOf(150)).ok());
  ASSERT_NO_FATAL_FAILURE(Put(KeyOf(70), "newer"));  // so the table is no older than the range
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_EQ(Records(), kKeys + 1U);
  Release(0);
  executor_.RunAll();
  EXPECT_EQ(Records(), 51U);
  EXPECT_EQ(Get(KeyOf(70)), "newer");
  EXPECT_EQ(Get(KeyOf(71)), "(absent)");
}

TEST_F(ReclaimOfSnapshots, MergesThatStayedApartAreCombined) {
  for (int i = 0; i < kKeys; ++i) ASSERT_NO_FATAL_FAILURE(Add(KeyOf(i), 1));
  snapshots_.push_back(db_->GetSnapshot().value());
  for (int i = 0; i < kKeys; ++i) ASSERT_NO_FATAL_FAILURE(Add(KeyOf(i), 2));
  snapshots_.push_back(db_->GetSnapshot().value());
  for (int i = 0; i < kKeys; ++i) ASSERT_NO_FATAL_FAILURE(Add(KeyOf(i), 4));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_EQ(Records(), 3U * kKeys);
  EXPECT_EQ(Number(KeyOf(5), {.snapshot = &*snapshots_[0]}), 1U);
  EXPECT_EQ(Number(KeyOf(5)), 7U);
  snapshots_.clear();
  executor_.RunAll();
  EXPECT_EQ(Records(), static_cast<uint64_t>(kKeys));
  EXPECT_EQ(Number(KeyOf(5)), 7U);
}

TEST_F(ReclaimOfSnapshots, ARewritingThatHelpsNothingIsNotRepeated) {
  ASSERT_NO_FATAL_FAILURE(OverwriteUnderSnapshots());
  const uint64_t compactions = db_->GetStats().compactions;
  for (int i = 0; i < 20; ++i) static_cast<void>(db_->GetSnapshot().value());
  executor_.RunAll();
  EXPECT_EQ(db_->GetStats().compactions, compactions);
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(db_->GetStats().compactions, compactions);
}

}  // namespace
}  // namespace basalt::db
