// A compaction installs its outputs in pieces. At every moment between two pieces the database is
// unchanged for readers, after a power cut, and after a cancellation, and its space stays low.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr char kPath[] = "/db";
constexpr int kKeys = 3000;
constexpr int kOverwrites = 1500;

using Content = std::map<std::string, std::string>;

std::string KeyOf(uint64_t number) { return "key" + std::to_string(10'000 + number); }

/// Bytes that do not compress.
std::string RandomValue(base::Random* random) {
  std::string value(40 + random->Below(40), '\0');
  for (char& byte : value) byte = static_cast<char>(random->Below(256));
  return value;
}

bool IsNewTable(io::FileSystem* fs, std::string_view operation, std::string_view path) {
  return operation == "open" && path.ends_with(".tbl") && !fs->Exists(path).value_or(true);
}

/// A database on a simulated disk, with a last level of many tables and some of level 0 above it,
/// that wait for CompactRange.
class CompactionPieces : public testing::Test {
 protected:
  static Environment EnvironmentOn(io::SimFileSystem* disk, io::SimClock* clock,
                                   base::Executor* executor) {
    Environment environment;
    environment.fs = disk;
    environment.clock = clock;
    environment.executor = executor;
    environment.memtable_bytes = 32 << 10;
    environment.table_bytes = 8 << 10;
    return environment;
  }
  std::unique_ptr<DB> OpenOn(io::SimFileSystem* disk, base::Executor* executor) {
    auto opened = OpenDatabase(kPath, {.memory_budget = uint64_t{4} << 20},
                               EnvironmentOn(disk, &clock_, executor));
    EXPECT_TRUE(opened) << opened.error().ToString();
    return opened ? std::move(*opened) : nullptr;
  }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(db_->Put(key, value).ok());
    content_[key] = value;
  }
  void Delete(const std::string& key) {
    ASSERT_TRUE(db_->Delete(key).ok());
    content_.erase(key);
  }
  void Append(const std::string& key, const std::string& operand) {
    ASSERT_TRUE(db_->Merge(key, MergeOperator::kAppend, operand).ok());
    content_[key] += operand;
  }

  void FillLastLevel() {
    db_ = OpenOn(&disk_, &executor_);
    for (int i = 0; i < kKeys; ++i) Put(KeyOf(static_cast<uint64_t>(i)), RandomValue(&random_));
    ASSERT_TRUE(db_->CompactRange().ok());
  }
  /// Puts and deletes at random, in several tables of level 0.
  void FillLevel0() {
    for (int i = 0; i < kOverwrites; ++i) {
      const std::string key = KeyOf(random_.Below(kKeys + kKeys / 4));
      random_.OneIn(4) ? Delete(key) : Put(key, RandomValue(&random_));
    }
    ASSERT_TRUE(db_->Flush().ok());
    ASSERT_GE(db_->GetStats().levels[0].tables, 2U);
    ASSERT_EQ(executor_.pending(), 0U);
  }
  void Fill() {
    FillLastLevel();
    FillLevel0();
  }

  /// Calls `look` when the job is about to write a table, which is also after each piece.
  void Observe(const std::function<void()>& look) {
    disk_.SetObserver([this, look, inside = false](uint64_t, std::string_view operation,
                                                   std::string_view path) mutable {
      if (inside) return;
      inside = true;
      if (operation == "rename") ++manifests_;
      if (IsNewTable(&disk_, operation, path)) look();
      inside = false;
    });
  }

  static Content Read(const DB& db, const Snapshot* snapshot = nullptr) {
    Content content;
    const auto it = db.NewIterator({.snapshot = snapshot});
    for (it->SeekToFirst(); it->Valid(); it->Next()) content.emplace(it->key(), it->value());
    EXPECT_TRUE(it->status().ok()) << it->status().ToString();
    return content;
  }
  static Content ReadBackward(const DB& db, const Snapshot* snapshot = nullptr) {
    Content content;
    const auto it = db.NewIterator({.snapshot = snapshot});
    for (it->SeekToLast(); it->Valid(); it->Prev()) content.emplace(it->key(), it->value());
    EXPECT_TRUE(it->status().ok()) << it->status().ToString();
    return content;
  }
  static void ExpectGets(const DB& db, const Content& content, const Snapshot* snapshot) {
    for (int i = 0; i < kKeys + kKeys / 4; ++i) {
      const std::string key = KeyOf(static_cast<uint64_t>(i));
      const auto value = db.Get(key, {.snapshot = snapshot});
      ASSERT_TRUE(value) << value.error().ToString();
      const auto expected = content.find(key);
      ASSERT_EQ(value->has_value(), expected != content.end()) << key;
      if (*value) {
        ASSERT_EQ((*value)->view(), expected->second) << key;
      }
    }
  }

  /// Tables on the disk are those that the database has.
  static void ExpectNoStrangers(io::SimFileSystem* disk, const DB& db) {
    uint64_t files = 0;
    const auto names = disk->List(kPath).value();
    for (const std::string& name : names) files += name.ends_with(".tbl") ? 1 : 0;
    uint64_t tables = 0;
    for (const LevelStats& level : db.GetStats().levels) tables += level.tables;
    EXPECT_EQ(files, tables);
  }

  base::Random random_{11};
  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
  Content content_;
  size_t manifests_ = 0;  // written while observed
};

TEST_F(CompactionPieces, AreInstalledWhileTheJobGoesOn) {
  Fill();
  uint64_t level0 = db_->GetStats().levels[0].tables;
  const uint64_t records = db_->GetStats().levels[6].records;
  std::set<uint64_t> seen;  // records of the last level
  Observe([&] {
    const DBStats stats = db_->GetStats();
    EXPECT_EQ(stats.levels[0].tables, level0) << "level 0 stays until the end";
    seen.insert(stats.levels[6].records);
  });
  ASSERT_TRUE(db_->CompactRange().ok());
  disk_.SetObserver({});
  EXPECT_GT(seen.size(), 3U);
  EXPECT_TRUE(seen.contains(records));
  EXPECT_EQ(manifests_, seen.size());
  EXPECT_EQ(db_->GetStats().levels[0].tables, 0U);
  EXPECT_EQ(Read(*db_), content_);
  ExpectNoStrangers(&disk_, *db_);
}

TEST_F(CompactionPieces, KeepTheSpaceOfAJobLow) {
  Fill();
  const uint64_t before = disk_.BytesUsed();
  uint64_t most = before;
  Observe([&] { most = std::max(most, disk_.BytesUsed()); });
  ASSERT_TRUE(db_->CompactRange().ok());
  disk_.SetObserver({});
  // A piece, and what the job writes before the next.
  EXPECT_LT(most, before + before / 2);
  EXPECT_GT(most, before);
  EXPECT_EQ(Read(*db_), content_);
}

TEST_F(CompactionPieces, AreOfSmallTablesWhereMemoryIsScarce) {
  for (const uint64_t budget : {uint64_t{8} << 20, uint64_t{32} << 20}) {
    io::SimFileSystem disk(io::SimFileSystem::Durability::kIgnored);
    Environment environment = EnvironmentOn(&disk, &clock_, &executor_);
    environment.table_bytes = 0;
    const auto db = OpenDatabase(kPath, {.memory_budget = budget}, environment).value();
    for (uint64_t i = 0; i < 9; ++i) {
      for (uint64_t at = 0; at < 16; ++at) {
        std::string value;
        while (value.size() < 64 << 10) value += RandomValue(&random_);
        ASSERT_TRUE(db->Put(KeyOf(100 * i + at), value).ok());
      }
    }
    ASSERT_TRUE(db->CompactRange().ok());
    EXPECT_EQ(db->GetStats().levels[6].tables, budget == 8 << 20 ? 5U : 3U);
    ASSERT_TRUE(db->Close().ok());
  }
}

TEST_F(CompactionPieces, GiveNothingBackThatAReaderHolds) {
  Fill();
  const auto it = db_->NewIterator();
  const Content before = content_;
  it->SeekToFirst();
  ASSERT_TRUE(db_->CompactRange().ok());
  Content seen;
  for (; it->Valid(); it->Next()) seen.emplace(it->key(), it->value());
  EXPECT_TRUE(it->status().ok()) << it->status().ToString();
  EXPECT_EQ(seen, before);
}

TEST_F(CompactionPieces, ChangeNothingThatReadersSee) {
  FillLastLevel();
  // Below: merges that a snapshot keeps apart; values that expire; range deletes.
  for (uint64_t i = 0; i < kKeys; i += 50) Append(KeyOf(i), "first");
  struct Held {
    Snapshot snapshot;
    Content content;
  };
  std::vector<Held> held;
  const auto hold = [&] { held.push_back({db_->GetSnapshot().value(), content_}); };
  hold();
  for (uint64_t i = 0; i < kKeys; i += 25) Append(KeyOf(i), "second");
  ASSERT_TRUE(db_->CompactRange().ok());
  hold();
  for (uint64_t i = 7; i < kKeys; i += 40) {
    ASSERT_TRUE(
        db_->Put(KeyOf(i), "passing", {.ttl = std::chrono::seconds(i % 80 < 40 ? 1 : 1000)}).ok());
    content_[KeyOf(i)] = "passing";
  }
  FillLevel0();
  ASSERT_TRUE(db_->DeleteRange(KeyOf(700), KeyOf(900)).ok());
  content_.erase(content_.lower_bound(KeyOf(700)), content_.lower_bound(KeyOf(900)));
  ASSERT_TRUE(db_->Flush().ok());
  hold();
  FillLevel0();
  clock_.Advance(5'000'000);
  // What has expired is gone for readers of now, and stays for snapshots of before.
  std::erase_if(content_, [](const auto& record) {
    return record.second == "passing" && std::stoi(record.first.substr(3)) % 80 < 40;
  });

  std::vector<std::unique_ptr<Iterator>> iterators;
  size_t looked = 0;
  const auto look = [&] {
    ++looked;
    for (const Held& each : held) {
      ASSERT_EQ(Read(*db_, &each.snapshot), each.content);
      ASSERT_EQ(ReadBackward(*db_, &each.snapshot), each.content);
      ExpectGets(*db_, each.content, &each.snapshot);
    }
    ASSERT_EQ(Read(*db_), content_);
    ASSERT_EQ(ReadBackward(*db_), content_);
    ExpectGets(*db_, content_, nullptr);
    iterators.push_back(db_->NewIterator());
    iterators.back()->SeekToFirst();
  };
  look();
  Observe(look);
  ASSERT_TRUE(db_->CompactRange().ok());
  disk_.SetObserver({});
  look();
  EXPECT_GT(manifests_, 4U);
  EXPECT_GT(looked, 10U);
  for (const auto& it : iterators) {
    Content seen;
    for (; it->Valid(); it->Next()) seen.emplace(it->key(), it->value());
    ASSERT_EQ(seen, content_);
  }
}

TEST_F(CompactionPieces, AreNotInstalledWhereMergesWouldCountTwice) {
  Fill();
  Append(KeyOf(kKeys / 2), "once");
  ASSERT_TRUE(db_->Flush().ok());
  Observe(
      [&] { ASSERT_EQ((*db_->Get(KeyOf(kKeys / 2)))->ToString(), content_[KeyOf(kKeys / 2)]); });
  ASSERT_TRUE(db_->CompactRange().ok());
  disk_.SetObserver({});
  EXPECT_EQ(manifests_, 1U);
  EXPECT_EQ(Read(*db_), content_);
}

// For a full disk, and nothing else that a process may run out of, compaction waits for a flush.
TEST_F(CompactionPieces, ACompactionWithoutADescriptorIsTriedAgainAlsoWithoutAFlush) {
  db_ = OpenOn(&disk_, &executor_);
  const auto flush_until_compaction_is_due = [&] {
    while (executor_.pending() == 0) {
      Put(KeyOf(1), RandomValue(&random_));
      ASSERT_TRUE(db_->Flush().ok());
    }
  };
  for (const int error : {EMFILE, ENOSPC}) {
    SCOPED_TRACE(error);
    const uint64_t before = db_->GetStats().compactions;
    ASSERT_NO_FATAL_FAILURE(flush_until_compaction_is_due());
    disk_.SetFault({.at_call = 1,
                    .error = error,
                    .sticky = true,
                    .matches = [](std::string_view operation, std::string_view path) {
                      return operation == "open" && path.ends_with(".tbl");
                    }});
    executor_.RunAll();
    ASSERT_TRUE(disk_.FaultHappened());
    disk_.ClearFault();
    ASSERT_EQ(db_->GetStats().compactions, before);
    ASSERT_NE(db_->GetStats().background_error, "");
    executor_.Elapse(std::chrono::seconds(10));
    executor_.RunAll();
    EXPECT_EQ(db_->GetStats().compactions, before + (error == EMFILE ? 1 : 0));
    Put(KeyOf(2), RandomValue(&random_));
    ASSERT_TRUE(db_->Flush().ok());
    executor_.RunAll();
    EXPECT_GE(db_->GetStats().compactions, before + 1);
    EXPECT_EQ(db_->GetStats().background_error, "");
  }
}

TEST_F(CompactionPieces, SurviveAPowerCutAtEveryCall) {
  Fill();
  uint64_t cuts = 0;
  bool inside = false;
  disk_.SetObserver([&](uint64_t call, std::string_view operation, std::string_view) {
    // Two neighbouring reads or writes leave the same to a cut that keeps whole files.
    const bool is_name = operation != "read" && operation != "write" && operation != "size";
    if (inside || HasFailure() || (!is_name && call % 4 != 0)) return;
    inside = true;
    const auto disk = disk_.Clone();
    disk->Crash(call);
    io::ManualExecutor executor;
    const auto db = OpenOn(disk.get(), &executor);
    ASSERT_NE(db, nullptr);
    ASSERT_EQ(Read(*db), content_) << "cut before call " << call << ", " << operation;
    ++cuts;
    if (cuts % 16 == 0) {
      ASSERT_TRUE(db->CompactRange().ok());
      ASSERT_EQ(Read(*db), content_) << "cut before call " << call << ", then compacted";
      ASSERT_TRUE(db->Close().ok());
      const auto report = CheckDatabase(kPath, EnvironmentOn(disk.get(), &clock_, &executor), {});
      ASSERT_TRUE(report && report->ok());
    }
    inside = false;
  });
  ASSERT_TRUE(db_->CompactRange().ok());
  disk_.SetObserver({});
  EXPECT_GT(cuts, 100U);
}

TEST_F(CompactionPieces, OfAJobThatFailsStayAndTheRestGoes) {
  Fill();
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  std::set<uint64_t> left;  // in level 0 and below, after a failure
  bool happened = true;
  uint64_t call = 1;
  for (; happened && !HasFailure(); ++call) {
    const auto disk = disk_.Clone();
    io::ManualExecutor executor;
    auto db = OpenOn(disk.get(), &executor);
    ASSERT_NE(db, nullptr);
    ASSERT_EQ(executor.pending(), 0U);
    disk->SetFault({.at_call = call,
                    .error = call % 2 == 0 ? EIO : ENOSPC,
                    .sticky = call % 3 == 0,
                    .matches = [](std::string_view operation, std::string_view) {
                      // A file that cannot be removed stays until the next opening.
                      return operation != "read" && operation != "size" && operation != "remove";
                    }});
    const Status compacted = db->CompactRange();
    happened = disk->FaultHappened();
    disk->ClearFault();
    ASSERT_EQ(Read(*db), content_) << "call " << call;
    if (!compacted.ok()) left.insert(db->GetStats().levels[6].records);
    // The next manifest forgets what an unsure one may have named.
    ASSERT_TRUE(db->Put("after", "1").ok());
    ASSERT_TRUE(db->Flush().ok());
    executor.RunAll();
    ExpectNoStrangers(disk.get(), *db);
    Content expected = content_;
    expected["after"] = "1";
    ASSERT_TRUE(db->CompactRange().ok());
    ASSERT_EQ(Read(*db), expected) << "call " << call;
    ExpectNoStrangers(disk.get(), *db);
    ASSERT_TRUE(db->Close().ok());
    db.reset();
    db = OpenOn(disk.get(), &executor);
    ASSERT_NE(db, nullptr);
    ASSERT_EQ(Read(*db), expected) << "call " << call;
  }
  EXPECT_GT(call, 50U);
  EXPECT_GT(left.size(), 3U) << "jobs failed with the same pieces installed";
}

TEST_F(CompactionPieces, OfACancelledJobStay) {
  Fill();
  std::thread closing;
  Status closed;
  Observe([&] {
    if (manifests_ < 2 || closing.joinable()) return;
    closing = std::thread([&] { closed = db_->Close(); });
    while (db_->Get("any")) std::this_thread::yield();
  });
  EXPECT_FALSE(db_->CompactRange().ok());
  disk_.SetObserver({});
  ASSERT_TRUE(closing.joinable());
  closing.join();
  EXPECT_TRUE(closed.ok()) << closed.ToString();
  db_.reset();
  executor_.RunAll();
  db_ = OpenOn(&disk_, &executor_);
  EXPECT_GT(db_->GetStats().levels[0].tables, 0U);
  EXPECT_EQ(Read(*db_), content_);
  ExpectNoStrangers(&disk_, *db_);
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(Read(*db_), content_);
}

/// Runs the job that came last.
class LastFirst final : public base::Executor {
 public:
  void Schedule(std::function<void()> job) override {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  bool RunOne() override {
    std::function<void()> job;
    {
      const std::scoped_lock lock(mutex_);
      if (jobs_.empty()) return false;
      job = std::move(jobs_.back());
      jobs_.pop_back();
    }
    job();
    return true;
  }
  size_t pending() {
    const std::scoped_lock lock(mutex_);
    return jobs_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> jobs_;
};

// A flush drops what lies under its range delete, and the range delete with it, while a job begins
// that reads the same tables.
TEST_F(CompactionPieces, BringNothingBackThatARangeDeleteHasDropped) {
  LastFirst executor;
  db_ = OpenOn(&disk_, &executor);
  while (executor.pending() == 0) {  // a compaction of level 0 waits
    for (uint64_t i = 0; i < 100; ++i) Put(KeyOf(i), RandomValue(&random_));
    ASSERT_TRUE(db_->Flush().ok());
  }
  ASSERT_TRUE(db_->DeleteRange("key", "kez").ok());
  std::thread compacting;
  const std::thread::id flushing = std::this_thread::get_id();
  std::atomic<bool> has_read{false};
  bool begun = false;  // of the thread that flushes
  disk_.SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    if (std::this_thread::get_id() != flushing) {
      if (operation == "sync") has_read = true;
      return;
    }
    if (operation != "rename" || !path.ends_with("MANIFEST.tmp") || std::exchange(begun, true)) {
      return;
    }
    compacting = std::thread([&] {
      executor.RunOne();
      has_read = true;
    });
    while (!has_read) std::this_thread::yield();
  });
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_TRUE(compacting.joinable());
  compacting.join();
  disk_.SetObserver({});
  while (executor.RunOne()) {
  }
  EXPECT_TRUE(Read(*db_).empty());
  EXPECT_EQ(db_->GetStats().background_error, "");
  ExpectNoStrangers(&disk_, *db_);
}

}  // namespace
}  // namespace basalt::db
