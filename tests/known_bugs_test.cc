// Bugs that other storage engines have had, each as a test that would have caught it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "table/test_records.h"

namespace basalt {
namespace {

class KnownBugs : public testing::Test {
 protected:
  db::Environment Environment() {
    db::Environment environment;
    environment.fs = &fs_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = 16 << 10;
    environment.table_bytes = 16 << 10;
    return environment;
  }
  Result<std::unique_ptr<DB>> TryOpen() {
    return db::OpenDatabase("/db", {.memory_budget = 2 << 20}, Environment());
  }
  void Open() {
    auto opened = TryOpen();
    ASSERT_TRUE(opened) << opened.error().ToString();
    db_ = std::move(*opened);
  }
  void RunJobs() {
    while (executor_.RunOne()) {
    }
  }
  void CutPower(uint64_t seed, io::CrashMode mode) {
    fs_.SetFault({.at_call = 1, .error = EIO, .sticky = true});
    db_.reset();
    RunJobs();
    fs_.Crash(seed, mode);
    fs_.ClearFault();
  }
  std::string Get(std::string_view key) {
    const auto value = db_->Get(key);
    if (!value) return "(" + value.error().ToString() + ")";
    return *value ? (*value)->ToString() : "(absent)";
  }
  void Overwrite(const std::string& path, std::string_view bytes) {
    ASSERT_TRUE(fs_.RemoveFile(path).ok());
    const auto file = fs_.Open(path, io::OpenMode::kCreate).value();
    ASSERT_TRUE(file->WriteAt(0, bytes).ok());
    ASSERT_TRUE(file->Sync().ok());
  }

  size_t TablesOnDisk() {
    const std::vector<std::string> names = fs_.List("/db").value();
    return static_cast<size_t>(
        std::ranges::count_if(names, [](const auto& name) { return name.ends_with(".tbl"); }));
  }

  io::SimFileSystem fs_;
  io::SimClock clock_;
  io::ManualExecutor executor_{1};
  std::unique_ptr<DB> db_;
};

// LevelDB #160, #161: a crash while the manifest was appended to left a torn tail, and the database
// could not be opened. Ours is replaced as a whole: what a crash leaves of the replacement does not
// matter, and damage to the manifest itself is named.
TEST_F(KnownBugs, ATornManifestTail) {
  Open();
  ASSERT_TRUE(db_->Put("a", "1", {.durability = Durability::kPower}).ok());
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  const std::string manifest = io::ReadWholeFile(&fs_, "/db/MANIFEST", 1 << 20).value();
  for (size_t size = 0; size < manifest.size(); size += 7) {
    const auto torn = fs_.Open("/db/MANIFEST.tmp", io::OpenMode::kCreate).value();
    ASSERT_TRUE(torn->WriteAt(0, std::string_view(manifest).substr(0, size)).ok());
    Open();
    EXPECT_EQ(Get("a"), "1");
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    RunJobs();
  }
  const std::string present = io::ReadWholeFile(&fs_, "/db/MANIFEST", 1 << 20).value();
  Overwrite("/db/MANIFEST", std::string_view(present).substr(0, present.size() - 3));
  const auto refused = TryOpen();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kCorruption);
  EXPECT_NE(refused.error().message().find("MANIFEST"), std::string::npos);
}

// LevelDB #193: the old log was closed without a sync when a new one began, so that a power cut
// could lose the middle of what was written while a synced end survived.
TEST_F(KnownBugs, ALogClosedWithoutSyncAtRotation) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Open();
    const std::string mark = std::to_string(seed) + "/";
    // More than a memtable, so that the log is rotated; nothing of it is synced.
    for (int i = 0; i < 150; ++i) {
      ASSERT_TRUE(db_->Put(mark + std::to_string(i), std::string(100, 'v')).ok());
    }
    ASSERT_TRUE(db_->Put(mark + "last", "synced", {.durability = Durability::kPower}).ok());
    CutPower(seed, io::CrashMode::kSubset);
    Open();
    for (int i = 0; i < 150; ++i) {
      ASSERT_EQ(Get(mark + std::to_string(i)), std::string(100, 'v')) << "seed " << seed;
    }
    ASSERT_EQ(Get(mark + "last"), "synced");
    CutPower(seed, io::CrashMode::kNone);
  }
}

// LevelDB #333: a table of no bytes was named by the manifest, and its keys were silently absent.
TEST_F(KnownBugs, ATableOfNoBytesInTheManifest) {
  Open();
  ASSERT_TRUE(db_->Put("a", "1").ok());
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  const auto names = fs_.List("/db").value();
  std::string table;
  for (const std::string& name : names) {
    if (name.ends_with(".tbl")) table = "/db/" + name;
  }
  ASSERT_FALSE(table.empty());
  Overwrite(table, "");
  Open();
  const auto value = db_->Get("a");
  ASSERT_FALSE(value) << "a lost key must not read as an absent one";
  EXPECT_EQ(value.error().code(), StatusCode::kCorruption);
  EXPECT_NE(value.error().message().find(table), std::string::npos) << value.error().ToString();
  const auto it = db_->NewIterator();
  it->SeekToFirst();
  EXPECT_EQ(it->status().code(), StatusCode::kCorruption);
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  const auto report = db::CheckDatabase("/db", Environment(), {});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ok());
}

// RocksDB: after it recovered from a background error, sequence numbers went backwards, and older
// values won over newer ones.
TEST_F(KnownBugs, SequenceNumbersGoingBackwardsAfterABackgroundError) {
  Open();
  uint64_t last = 0;
  int written = 0;
  const auto put = [&](int i) {
    const Status status = db_->Put("key" + std::to_string(i % 10), std::to_string(i));
    if (status.ok()) written = i;
    const uint64_t sequence = db_->GetStats().last_sequence;
    EXPECT_GE(sequence, last);
    last = sequence;
    return status.ok();
  };
  for (int round = 0; round < 5; ++round) {
    const int begin = written + 1;
    for (int i = begin; i < begin + 100; ++i) ASSERT_TRUE(put(i));
    // Every write to a table fails for a while; writers meet that when they have to wait for one.
    fs_.SetFault({.at_call = 40, .error = EIO, .sticky = true});
    int failed = 0;
    for (int i = written + 1; failed < 5 && i < begin + 2000; ++i) failed += put(i) ? 0 : 1;
    EXPECT_EQ(failed, 5);
    EXPECT_FALSE(db_->Flush().ok());
    fs_.ClearFault();
    ASSERT_TRUE(put(written + 1)) << "writes go on by themselves";
    for (int i = 0; i < 10; ++i) {
      const std::string value = Get("key" + std::to_string(i));
      EXPECT_GT(std::stoi(value), written - 20) << "an older value is back";
    }
  }
  std::string before;
  for (int i = 0; i < 10; ++i) before += Get("key" + std::to_string(i)) + " ";
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  RunJobs();
  Open();
  std::string after;
  for (int i = 0; i < 10; ++i) after += Get("key" + std::to_string(i)) + " ";
  EXPECT_EQ(before, after);
  EXPECT_GE(db_->GetStats().last_sequence, last);
}

// Our own: the manifest that moves a table to another level could not be written, and the table was
// taken for an output of that job: its file went when the database was closed.
TEST_F(KnownBugs, ATableIsKeptWhoseMoveFailed) {
  Open();
  ASSERT_TRUE(db_->Put("a", "1").ok());
  ASSERT_TRUE(db_->Flush().ok());
  io::Fault fault{.error = ENOSPC, .sticky = true};
  fault.at_call = 1;
  fault.matches = [](std::string_view, std::string_view path) {
    return path.find("MANIFEST") != std::string_view::npos;
  };
  fs_.SetFault(fault);
  EXPECT_FALSE(db_->CompactRange(std::nullopt, std::nullopt).ok());
  fs_.ClearFault();
  ASSERT_TRUE(db_->Put("b", "2").ok());
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  RunJobs();
  Open();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
}

// Our own: a table was kept whose manifest found no room, in case that manifest was there all the
// same: on a full disk it took the room of the next attempt.
TEST_F(KnownBugs, AFlushWhoseManifestIsNotWrittenLeavesNoTable) {
  Open();
  ASSERT_TRUE(db_->Put("a", "1").ok());
  io::Fault fault{.at_call = 1, .error = ENOSPC, .sticky = true};
  fault.matches = [](std::string_view operation, std::string_view path) {
    return operation == "write" && path.find("MANIFEST") != std::string_view::npos;
  };
  fs_.SetFault(fault);
  EXPECT_FALSE(db_->Flush().ok());
  EXPECT_EQ(TablesOnDisk(), 0u);
  fs_.ClearFault();
  EXPECT_TRUE(db_->Flush().ok());
  EXPECT_EQ(TablesOnDisk(), 1u);
  EXPECT_EQ(Get("a"), "1");
}

// Our own: tables that a compaction is reading stay when a range delete covers them. Where that
// compaction then found the disk full, it was not tried again, and nothing gave their room back.
TEST_F(KnownBugs, ARangeDeleteMakesRoomBesideACompactionThatFindsNone) {
  Open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(db_->Put("key" + std::to_string(i), std::string(1000, 'v')).ok());
  }
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_GT(TablesOnDisk(), 0u);
  bool is_deleted = false;
  fs_.SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    if (is_deleted || operation != "write" || !path.ends_with(".tbl")) return;
    is_deleted = true;
    EXPECT_TRUE(db_->DeleteRange("key", "kez").ok());
    EXPECT_TRUE(db_->Flush().ok());
    fs_.SetCapacity(fs_.BytesUsed());
  });
  EXPECT_EQ(db_->CompactRange(std::nullopt, std::nullopt).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(is_deleted);
  RunJobs();
  EXPECT_EQ(TablesOnDisk(), 0u);
}

/// A database with tables, and a log of more than a memtable, on a disk that becomes full.
class KnownBugsOfAFullDisk : public KnownBugs {
 protected:
  void SetUp() override {
    Open();
    PutSome("key");
    ASSERT_TRUE(db_->Flush().ok());
    ASSERT_GT(TablesOnDisk(), 0u);
    ASSERT_TRUE(*fs_.Exists("/db/RESERVE"));
    PutSome("later");
    fs_.SetCapacity(fs_.BytesUsed() + 300);
  }
  void PutSome(const std::string& prefix) {
    for (int i = 0; i < 20; ++i) {
      const std::string value = table::RandomBytes(&random_, 1000, 256);
      ASSERT_TRUE(db_->Put(prefix + std::to_string(i), value).ok());
    }
  }
  void DeleteAndGoOn() {
    ASSERT_TRUE(db_->DeleteRange("key", "kez").ok());
    const Status flushed = db_->Flush();
    EXPECT_TRUE(flushed.ok()) << flushed.ToString();
    RunJobs();
    EXPECT_EQ(Get("key0"), "(absent)");
    EXPECT_EQ(Get("later0").size(), 1000u);
    EXPECT_TRUE(db_->Put("after", "1").ok());
  }

  base::Random random_{1};
};

// Our own: a range delete that the memtable still took made no room. It waited for the flush of
// what was written before, which had none, and what is kept back was for deletes that were refused.
TEST_F(KnownBugsOfAFullDisk, ARangeDeleteMakesRoomBehindAFlushThatFindsNone) { DeleteAndGoOn(); }

// Our own: recovery has to flush a log that is larger than a memtable, and found no room for that,
// so that nobody could delete anything either.
TEST_F(KnownBugsOfAFullDisk, ADatabaseOpensAndCanBeDeletedFrom) {
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  RunJobs();
  // What the log has allocated beyond its end comes back.
  fs_.SetCapacity(fs_.BytesUsed() - (16 << 10));
  Open();
  ASSERT_NE(db_, nullptr);
  EXPECT_EQ(Get("key0").size(), 1000u);
  EXPECT_EQ(Get("later0").size(), 1000u);
  DeleteAndGoOn();
}

}  // namespace
}  // namespace basalt
