// Each allocation of a call fails in turn, alone or with those behind it. Calls answer
// ResourceExhausted, and throw nothing; what was acknowledged is there, what was refused is not;
// all later calls work; after a reopening the files are those that the manifest names.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/check.h"
#include "base/random.h"
#include "base/test_memory_operators.h"
#include "base/test_update.h"
#include "base/thread_pool.h"
#include "db/environment.h"
#include "db/file_names.h"
#include "db/manifest.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

using base::EachAllocation;
using base::MemoryThatFails;
using Content = std::map<std::string, std::string>;

constexpr int kKeysOfWorld = 24;

std::string KeyOf(int number) { return "key" + std::to_string(100 + number); }

/// The one on the machine writes its log through memory, the simulated one by calls.
enum class Disk : uint8_t { kSimulated, kMachine };

/// A database, and what it has to hold.
class World {
 public:
  explicit World(Disk disk) {
    if (disk == Disk::kMachine) {
      // In memory where there is such a place: nothing here needs what a sync brings.
      const bool has_memory = std::filesystem::is_directory("/dev/shm");
      directory_ = (has_memory ? "/dev/shm" : testing::TempDir()) + "/db_memory_XXXXXX";
      EXPECT_NE(mkdtemp(directory_.data()), nullptr);
      path_ = directory_ + "/db";
      environment_.fs = io::FileSystem::Posix();
    } else {
      path_ = "/db";
      environment_.fs = &simulated_;
    }
    environment_.clock = &clock_;
    environment_.executor = &executor_;
    environment_.memtable_bytes = 32 << 10;
    environment_.table_bytes = 8 << 10;
  }
  ~World() {
    snapshot_.reset();
    db_.reset();
    executor_.RunAll();
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  DB* db() const { return db_.get(); }
  io::ManualExecutor* executor() { return &executor_; }
  std::optional<Snapshot>* snapshot() { return &snapshot_; }

  Status Open() {
    auto opened = OpenDatabase(path_, {.memory_budget = 2 << 20}, environment_);
    if (!opened) return opened.error();
    db_ = std::move(*opened);
    return {};
  }
  Status Close() {
    const Status closed = db_->Close();
    snapshot_.reset();
    db_.reset();
    return closed;
  }
  Result<CheckReport> Check() const { return CheckDatabase(path_, environment_, {}); }
  const std::string& path() const { return path_; }

  Status Put(const std::string& key, const std::string& value, const WriteOptions& options = {}) {
    Status written = db_->Put(key, value, options);
    if (written.ok()) content_[key] = value;
    return written;
  }
  void Expect(const std::string& key, const std::string& value) { content_[key] = value; }
  /// A write whose outcome is not known: all of it, or nothing.
  void AllowWrite(Content sets) { unsure_ = std::move(sets); }

  /// Tables in several levels, range deletes, a keyspace, a log that goes on; a compaction is due.
  void Fill() {
    ASSERT_TRUE(Open().ok());
    ASSERT_TRUE(db_->CreateKeyspace("second").has_value());
    for (int table = 0; table < 6; ++table) {
      for (int i = table; i < kKeysOfWorld; i += 2) {
        ASSERT_TRUE(Put(KeyOf(i), std::string(200, static_cast<char>('a' + table))).ok());
      }
      ASSERT_TRUE(db_->Flush().ok());
      if (table == 2) {
        ASSERT_TRUE(db_->CompactRange().ok());
      }
    }
    ASSERT_TRUE(db_->DeleteRange(KeyOf(3), KeyOf(5)).ok());
    content_.erase(content_.lower_bound(KeyOf(3)), content_.lower_bound(KeyOf(5)));
    ASSERT_TRUE(db_->Merge("merged", MergeOperator::kAppend, "one").ok());
    content_["merged"] = "one";
    ASSERT_TRUE(db_->Flush().ok());
    ASSERT_TRUE(Put(KeyOf(1), "logged").ok());
  }

  void Verify() {
    if (db_ == nullptr) {
      ASSERT_EQ(Open().ToString(), "Ok");
    }
    ASSERT_NO_FATAL_FAILURE(ExpectContent());
    ASSERT_EQ(Put("later", std::string(100, 'l')).ToString(), "Ok");
    ASSERT_EQ(Put("power", "p", {.durability = Durability::kPower}).ToString(), "Ok");
    ASSERT_EQ(db_->CreateKeyspace("third").status().ToString(), "Ok");
    executor_.RunAll();
    ASSERT_EQ(db_->Flush().ToString(), "Ok");
    ASSERT_EQ(db_->CompactRange().ToString(), "Ok");
    executor_.RunAll();
    ASSERT_NO_FATAL_FAILURE(ExpectContent());
    ASSERT_EQ(Put("log", "l").ToString(), "Ok");
    ASSERT_NO_FATAL_FAILURE(Reopen());
    ASSERT_NO_FATAL_FAILURE(ExpectContent());
    // Once more: the opening has removed what nothing names.
    ASSERT_NO_FATAL_FAILURE(Reopen());
    ExpectFilesOfManifest();
  }

  /// The next time that each key is read, it is what it is now.
  void ExpectContent() {
    Content found;
    const auto it = db_->NewIterator();
    for (it->SeekToFirst(); it->Valid(); it->Next()) found.emplace(it->key(), it->value());
    ASSERT_EQ(it->status().ToString(), "Ok");
    if (!unsure_.empty() && found.contains(unsure_.begin()->first)) {
      for (const auto& [key, value] : unsure_) content_[key] = value;
    }
    unsure_.clear();
    ASSERT_EQ(found, content_);
    for (const auto& [key, value] : content_) {
      const auto got = db_->Get(key);
      ASSERT_TRUE(got.has_value() && got->has_value()) << key;
      ASSERT_EQ((*got)->view(), value);
    }
  }

 private:
  void Reopen() {
    ASSERT_EQ(Close().ToString(), "Ok");
    executor_.RunAll();
    const auto report = Check();
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    for (const FileFinding& finding : report->findings) {
      FAIL() << finding.file << ": " << finding.status.ToString();
    }
    ASSERT_EQ(Open().ToString(), "Ok");
  }

  void ExpectFilesOfManifest() {
    const Manifest manifest = ReadManifest(environment_.fs, path_).value();
    std::set<uint64_t> named;
    for (const ManifestTable& table : manifest.tables) {
      named.insert(table.place.number);
    }
    const std::vector<std::string> names = environment_.fs->List(path_).value();
    std::set<uint64_t> present;
    for (const std::string& name : names) {
      uint64_t number = 0;
      if (ParseTableFileName(name, &number)) present.insert(number);
    }
    EXPECT_EQ(present, named);
  }

  std::string directory_;  // On the machine: what is removed in the end.
  std::string path_;
  io::SimFileSystem simulated_{io::SimFileSystem::Durability::kIgnored};
  io::SimClock clock_;
  io::ManualExecutor executor_;
  Environment environment_;
  std::unique_ptr<DB> db_;
  std::optional<Snapshot> snapshot_;
  Content content_;
  Content unsure_;
};

void Nothing(World*) {}

struct Operation {
  const char* name;
  std::function<Status(World*)> run;
  std::function<void(World*)> prepare = Nothing;  ///< Before allocations fail.
  Content sets{};  ///< What it sets when it answers that it does; nothing otherwise.
  /// It may have set that all the same: it was to be durable, and only the sync has failed.
  bool may_have_set = false;
  int64_t stride = 1;  ///< Looks at each so many-th allocation only.
};

Status WalkThrough(Iterator* it) {
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
  }
  if (it->status().ok()) {
    for (it->SeekToLast(); it->Valid(); it->Prev()) {
    }
  }
  return it->status();
}

Status RunJobs(World* world) {
  world->executor()->RunAll();
  return {};
}

/// Fails each allocation of `operation`, with `failing` - 1 behind it. On the machine's disk, where
/// a world takes five times as long, behind the first ones only each third.
void Sweep(Disk disk, const Operation& operation, int64_t failing = 1) {
  const int64_t stride = operation.stride;
  EachAllocation each({.failing = failing,
                       .stride = stride,
                       .later_stride = disk == Disk::kMachine ? 3 * stride : stride});
  while (each.Next()) {
    SCOPED_TRACE(operation.name + (": " + each.ToString()));
    World world(disk);
    ASSERT_NO_FATAL_FAILURE(world.Fill());
    operation.prepare(&world);
    const Status status = each.Call([&] { return operation.run(&world); });
    ASSERT_FALSE(testing::Test::HasFailure());
    if (status.ok()) {
      for (const auto& [key, value] : operation.sets) world.Expect(key, value);
    } else if (operation.may_have_set) {
      world.AllowWrite(operation.sets);
    }
    ASSERT_TRUE(status.ok() || !status.message().empty());
    ASSERT_NO_FATAL_FAILURE(world.Verify());
  }
}

void Close(World* world) { ASSERT_TRUE(world->Close().ok()); }
void Reopen(World* world) {
  ASSERT_TRUE(world->Close().ok());
  ASSERT_TRUE(world->Open().ok());
}

void FillLog(World* world) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(world->Put("large", std::string(2'000, 'x')).ok());
  }
}
void FillUntilCompactionIsDue(World* world) {
  for (int i = 0; world->executor()->pending() == 0; ++i) {
    ASSERT_TRUE(world->Put(KeyOf(i), "new").ok());
    ASSERT_TRUE(world->db()->Flush().ok());
  }
}

class DbMemorySweep : public testing::TestWithParam<Disk> {
 protected:
  static void SweepAll(const std::vector<Operation>& operations, int64_t failing = 1) {
    for (const Operation& operation : operations) {
      ASSERT_NO_FATAL_FAILURE(Sweep(GetParam(), operation, failing));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Disks, DbMemorySweep, testing::Values(Disk::kSimulated, Disk::kMachine),
                         [](const testing::TestParamInfo<Disk>& info) {
                           return info.param == Disk::kSimulated ? "Simulated" : "Machine";
                         });

TEST_P(DbMemorySweep, InstallsLoseNoTable) {
  SweepAll({
      {"flush", [](World* world) { return world->db()->Flush(); }},
      {"compact", [](World* world) { return world->db()->CompactRange(); }},
      {"drop a keyspace",
       [](World* world) -> Status {
         const auto second = world->db()->OpenKeyspace("second");
         return second ? world->db()->DropKeyspace(*second) : second.error();
       }},
      {"create a keyspace",
       [](World* world) { return world->db()->CreateKeyspace("another").status(); }},
  });
}

TEST_P(DbMemorySweep, WritesAreWholeOrNotThere) {
  const std::string large(20'000, 'x');
  WriteBatch batch;
  batch.Put("batch1", "1");
  batch.Put("batch2", large);
  batch.DeleteRange("x", "y");
  const auto put = [](World* world) { return world->db()->Put("new", "value"); };
  const auto put_large = [&](World* world) { return world->db()->Put("new", large); };
  const Content set = {{"new", "value"}};
  SweepAll({
      {"put", put, Nothing, set},
      {"first put", put, Reopen, set},
      {"large put", put_large, Nothing, {{"new", large}}},
      {"put that finds no room",
       put_large,
       [&](World* world) { ASSERT_TRUE(world->Put("before", large).ok()); },
       {{"new", large}}},
      {"durable put",
       [](World* world) {
         return world->db()->Put("new", "value", {.durability = Durability::kPower});
       },
       Nothing, set, true},
      {"batch",
       [&](World* world) { return world->db()->Write(batch); },
       Nothing,
       {{"batch1", "1"}, {"batch2", large}}},
      {"merge",
       [](World* world) { return world->db()->Merge("merged", MergeOperator::kAppend, "two"); },
       Nothing,
       {{"merged", "onetwo"}}},
      {"update",
       [](World* world) {
         return world->db()->Update(
             "merged", base::ByValue([](auto) { return std::optional<std::string>("new"); }));
       },
       Nothing,
       {{"merged", "new"}}},
      {"put if absent",
       [](World* world) { return world->db()->PutIfAbsent("new", "value").status(); }, Nothing,
       set},
      {"sync", [](World* world) { return world->db()->Sync(); }},
  });
}

TEST_P(DbMemorySweep, ReadsSayThatMemoryIsMissing) {
  const std::vector<std::string_view> keys = {"key101", "key107", "merged", "absent"};
  std::vector<Result<MaybeValue>> results(keys.size());
  const auto get_many = [&](World* world) -> Status {
    BASALT_RETURN_IF_ERROR(world->db()->MultiGet(keys, results));
    for (const auto& result : results) BASALT_RETURN_IF_ERROR(result.status());
    return {};
  };
  SweepAll({
      {"get", [](World* world) { return world->db()->Get("merged").status(); }, Reopen},
      {"get many", get_many, Reopen},
      {"walk", [](World* world) { return WalkThrough(world->db()->NewIterator().get()); }, Reopen},
      {"walk over a prefix",
       [](World* world) {
         return WalkThrough(world->db()->NewIterator({.prefix = "key11"}).get());
       }},
      {"take a snapshot",
       [](World* world) -> Status {
         auto taken = world->db()->GetSnapshot();
         if (!taken) return taken.error();
         *world->snapshot() = std::move(*taken);
         return {};
       }},
      {"let a snapshot go",
       [](World* world) {
         world->snapshot()->reset();
         return RunJobs(world);
       },
       [](World* world) { *world->snapshot() = world->db()->GetSnapshot().value(); }},
      {"size", [](World* world) { return world->db()->ApproximateSize({}, {}).status(); }},
      {"figures",
       [](World* world) {
         static_cast<void>(world->db()->GetStats());
         return Status();
       }},
      {"list keyspaces", [](World* world) { return world->db()->ListKeyspaces().status(); }},
  });
}

TEST_P(DbMemorySweep, OpeningAndClosingLeaveNothingTaken) {
  SweepAll({
      {"open", [](World* world) { return world->Open(); }, Close},
      {"close", [](World* world) { return world->Close(); }},
      {"close a handle with a large log", [](World* world) { return world->Close(); }, FillLog},
  });
}

TEST(DbMemory, CheckAndRepairThrowNothing) {
  const std::vector<Operation> operations = {
      {"check", [](World* world) { return DB::Check(world->path()).status(); }, Close},
      {"repair", [](World* world) { return DB::Repair(world->path()).status(); }, Close},
  };
  for (const Operation& operation : operations) {
    ASSERT_NO_FATAL_FAILURE(Sweep(Disk::kMachine, operation));
  }
}

TEST_P(DbMemorySweep, BackgroundJobsFailAndAreDoneLater) {
  SweepAll({
      {"compaction", RunJobs, FillUntilCompactionIsDue},
      {"compaction in pieces",
       [](World* world) { return world->db()->CompactRange(); },
       [](World* world) {
         base::Random random(1);
         for (int round = 0; round < 2; ++round) {
           ASSERT_TRUE(world->db()->CompactRange().ok());
           for (int i = 0; i < 60; ++i) {
             std::string value(2'000, '\0');
             for (char& byte : value) byte = static_cast<char>(random.Next());
             ASSERT_TRUE(world->Put(KeyOf(i), value).ok());
           }
         }
       },
       {},
       false,
       23},
      {"a flush and compactions behind it",
       [](World* world) {
         static_cast<void>(world->db()->Flush());
         return RunJobs(world);
       },
       [](World* world) {
         for (int i = 0; i < kKeysOfWorld; ++i) ASSERT_TRUE(world->Put(KeyOf(i), "new").ok());
       }},
  });
}

TEST_P(DbMemorySweep, WhatComesWhileThereIsNoMemoryAtAllLosesNothing) {
  const Content set = {{"new", "value"}};
  SweepAll(
      {{"flush", [](World* world) { return world->db()->Flush(); }},
       {"compact", [](World* world) { return world->db()->CompactRange(); }},
       {"jobs", RunJobs, FillUntilCompactionIsDue},
       {"create a keyspace",
        [](World* world) { return world->db()->CreateKeyspace("another").status(); }},
       {"durable put",
        [](World* world) {
          return world->db()->Put("new", "value", {.durability = Durability::kPower});
        },
        Nothing, set, true},
       {"sync", [](World* world) { return world->db()->Sync(); }},
       {"open", [](World* world) { return world->Open(); }, Close},
       {"close", [](World* world) { return world->Close(); }},
       {"close a handle with a large log", [](World* world) { return world->Close(); }, FillLog}},
      MemoryThatFails::kAll);
}

// The manifest may be there, and its directory not synced: then the tables that it names have to
// stay, also where there is no memory to note them.
TEST_P(DbMemorySweep, AnOpeningFindsTheTablesOfAnInstallThatFailed) {
  const auto compact_and_close = [](World* world) {
    Status compacted = world->db()->CompactRange();
    static_cast<void>(world->Close());
    return compacted;
  };
  const auto leave_no_range_delete = [](World* world) {
    ASSERT_TRUE(world->db()->CompactRange().ok());
    ASSERT_TRUE(world->Put("flushed", "value").ok());
    ASSERT_TRUE(world->db()->Flush().ok());
  };
  SweepAll({{"compact, and close", compact_and_close, leave_no_range_delete}}, 2);
}

TEST(DbMemory, FiguresAreAllThereOrAllZero) {
  World world(Disk::kSimulated);
  ASSERT_NO_FATAL_FAILURE(world.Fill());
  int failed = 0;
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    DBStats figures;
    static_cast<void>(each.Call([&] {
      figures = world.db()->GetStats();
      return Status();
    }));
    failed += each.has_failed() ? 1 : 0;
    EXPECT_EQ(figures.levels.empty(), each.has_failed());
    for (const uint64_t figure :
         {figures.memory_budget, figures.keyspaces, figures.last_sequence, figures.last_lsn,
          figures.writes, figures.records_written, figures.flushes, figures.compactions,
          figures.log_bytes, figures.memtable_bytes, figures.cache_capacity}) {
      EXPECT_EQ(figure == 0, each.has_failed());
    }
  }
  EXPECT_GT(failed, 0);
}

TEST(DbMemory, ACompactionWithoutMemoryIsTriedAgainAlsoWithoutAFlush) {
  int failed = 0;
  EachAllocation each({.stride = 7, .later_stride = 7});
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    World world(Disk::kSimulated);
    ASSERT_TRUE(world.Open().ok());
    ASSERT_NO_FATAL_FAILURE(FillUntilCompactionIsDue(&world));
    ASSERT_TRUE(each.Call([&] { return RunJobs(&world); }).ok());
    const DBStats before = world.db()->GetStats();
    if (before.background_errors == 0) continue;
    ++failed;
    EXPECT_EQ(before.compactions, 0U);
    world.executor()->Elapse(std::chrono::seconds(10));
    world.executor()->RunAll();
    const DBStats after = world.db()->GetStats();
    EXPECT_EQ(after.compactions, 1U);
    EXPECT_EQ(after.background_error, "");
  }
  EXPECT_GT(failed, 10 / EachAllocation::kOneOf);
}

TEST(DbMemory, AnIteratorOfAClosedDatabaseThrowsNothing) {
  World world(Disk::kSimulated);
  ASSERT_NO_FATAL_FAILURE(world.Fill());
  const auto it = world.db()->NewIterator();
  ASSERT_TRUE(world.db()->Close().ok());
  Status status;
  {
    const MemoryThatFails none(0);
    EXPECT_NO_THROW(it->SeekToFirst());
    status = it->status();
  }
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  it->SeekToFirst();
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
}

/// Each job of it loses one allocation, not always the same.
class ForgetfulPool final : public base::Executor {
 public:
  void Schedule(std::function<void()> job) override {
    pool_->Schedule([this, job = std::move(job)] {
      const MemoryThatFails once(static_cast<int64_t>(jobs_.fetch_add(7) % 97), 1);
      job();
    });
  }

 private:
  std::atomic<uint64_t> jobs_{0};
  std::unique_ptr<base::ThreadPool> pool_ = base::ThreadPool::Create(2).value();
};

TEST(DbMemory, ThreadsGoOnWhileAllocationsFailInAllOfThem) {
  constexpr int kWriters = 3;
  constexpr int kWrites = 2'000;
  io::SimFileSystem disk(io::SimFileSystem::Durability::kIgnored);
  io::SimClock clock;
  ForgetfulPool pool;
  Environment environment;
  environment.fs = &disk;
  environment.clock = &clock;
  environment.executor = &pool;
  environment.memtable_bytes = 32 << 10;
  environment.table_bytes = 8 << 10;
  const DBOptions options{.memory_budget = 2 << 20};
  auto db = OpenDatabase("/db", options, environment).value();
  Content written[kWriters];
  std::vector<std::thread> writers;
  for (int number = 0; number < kWriters; ++number) {
    writers.emplace_back([&db, number, content = &written[number]] {
      for (int i = 0; i < kWrites; ++i) {
        const std::string key = std::to_string(number) + " " + std::to_string(i % 50);
        const std::string value(1'000 + i % 500, static_cast<char>('a' + number));
        Status status;
        {
          const MemoryThatFails once(i % 11, 1);
          status = i % 50 == 49 ? db->Flush() : Status(db->Put(key, value));
        }
        if (status.ok() && i % 50 != 49) (*content)[key] = value;
        if (!status.ok()) {
          EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto expect_all = [&] {
    for (const Content& content : written) {
      for (const auto& [key, value] : content) {
        const auto got = db->Get(key);
        ASSERT_TRUE(got.has_value() && got->has_value()) << key;
        ASSERT_EQ((*got)->view(), value);
      }
    }
  };
  ASSERT_NO_FATAL_FAILURE(expect_all());
  ASSERT_EQ(db->Close().ToString(), "Ok");
  db = OpenDatabase("/db", options, environment).value();
  ASSERT_NO_FATAL_FAILURE(expect_all());
}

}  // namespace
}  // namespace basalt::db
