// What a flush promises to those who wait for it.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "basalt/db.h"
#include "db/environment.h"
#include "db/flush_pace.h"
#include "io/memory_file_system.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr uint64_t kBudget = uint64_t{1} << 20;

std::string FlushedKey(int number) { return std::to_string(100'000 + number); }

uint64_t RecordsInTables(const DB& db) {
  uint64_t records = 0;
  for (const LevelStats& level : db.GetStats().levels) records += level.records;
  return records;
}

/// One thread, which can be told to begin no further job. Timers are dropped.
class HeldExecutor final : public base::Executor {
 public:
  HeldExecutor() : thread_([this] { Run(); }) {}
  ~HeldExecutor() override {
    Change([this] { is_ending_ = true; });
    thread_.join();
  }

  void Schedule(std::function<void()> job) override {
    Change([&] { jobs_.push_back(std::move(job)); });
  }
  void Hold() {
    Change([this] { is_held_ = true; });
  }
  void Release() {
    Change([this] { is_held_ = false; });
  }
  void AwaitJob() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !jobs_.empty(); });
  }

 private:
  template <class Step>
  void Change(Step step) {
    const std::scoped_lock lock(mutex_);
    step();
    changed_.notify_all();
  }
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_ending_ || (!is_held_ && !jobs_.empty()); });
      if (is_ending_) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool is_held_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

/// Stops the first thread that passes until it may go on.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    if (std::exchange(has_come_, true)) return;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void AwaitArrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return has_come_; });
  }
  void Open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_come_ = false;
  bool is_open_ = false;
};

/// A flush has installed its tables, and has not ended. Then `keep` is called, for records that
/// are in no table yet. The first flush ends, and the next one is kept waiting: so must `keep` be.
void ExpectKept(Durability durability, const std::function<Status(DB*)>& keep) {
  const std::unique_ptr<io::FileSystem> fs = io::NewMemoryFileSystem();
  HeldExecutor executor;
  Environment environment;
  environment.fs = fs.get();
  environment.clock = io::Clock::System();
  environment.executor = &executor;
  Gate installed;
  const auto on_event = [&](const Event& event) {
    if (event.kind == Event::Kind::kFlush) installed.Pass();
  };
  const auto db =
      OpenDatabase("/db",
                   {.memory_budget = kBudget, .durability = durability, .on_event = on_event},
                   environment)
          .value();
  const std::string value(1000, 'v');
  uint64_t records = 0;
  const auto put = [&] {
    ASSERT_TRUE(db->Put(FlushedKey(static_cast<int>(records++)), value).ok());
  };
  while (db->GetStats().memtable_bytes < kBudget / 8) ASSERT_NO_FATAL_FAILURE(put());
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(put());
  installed.AwaitArrival();
  ASSERT_GT(RecordsInTables(*db), 0U);
  ASSERT_LT(RecordsInTables(*db), records);

  std::atomic<bool> is_kept{false};
  std::thread keeper([&] {
    const Status kept = keep(db.get());
    EXPECT_TRUE(kept.ok()) << kept.ToString();
    EXPECT_EQ(RecordsInTables(*db), records);
    is_kept = true;
  });
  // By then it waits. A machine that is slower misses an early return, and fails nothing.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  executor.Hold();
  installed.Open();
  executor.AwaitJob();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_kept.load());
  executor.Release();
  keeper.join();
}

// They would wait for the rest of the flush at once when it is full.
TEST(Flush, AWriterIsSlowedDownBeforeTheMemtableBehindAFlushIsFull) {
  const std::unique_ptr<io::FileSystem> fs = io::NewMemoryFileSystem();
  HeldExecutor executor;
  io::SimClock clock;  // Sleeping takes no time.
  Environment environment;
  environment.fs = fs.get();
  environment.clock = &clock;
  environment.executor = &executor;
  constexpr uint64_t kMemtable = kBudget;
  const auto db = OpenDatabase("/db", {.memory_budget = 8 * kMemtable}, environment).value();
  executor.Hold();
  const std::string value(1000, 'v');
  int records = 0;
  const auto fill_up_to = [&](uint64_t bytes) {
    while (db->GetStats().memtable_bytes < bytes) {
      ASSERT_TRUE(db->Put(FlushedKey(records++), value).ok());
    }
  };
  ASSERT_NO_FATAL_FAILURE(fill_up_to(kMemtable * 12 / 10));
  executor.AwaitJob();
  EXPECT_EQ(db->GetStats().write_delays, 0U) << "the first half is free";
  ASSERT_NO_FATAL_FAILURE(fill_up_to(kMemtable * 17 / 10));
  const uint64_t delays = db->GetStats().write_delays;
  EXPECT_GT(delays, 0U);
  EXPECT_EQ(db->GetStats().write_delay_us, delays * FlushPace::kStepUs) << "in the least steps";
  executor.Release();
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->Put("later", value).ok());
  EXPECT_EQ(db->GetStats().write_delays, delays);
  EXPECT_EQ(db->GetStats().write_waits, 0U);
}

TEST(Flush, ReturnsWhenWhatWasWrittenIsInATableAlsoBehindAnotherFlush) {
  ExpectKept(Durability::kProcess, [](DB* db) { return db->Flush(); });
  ExpectKept(Durability::kMemory, [](DB* db) { return db->Flush(); });
}

TEST(Flush, SyncWithoutALogReturnsWhenWhatWasWrittenIsInATable) {
  ExpectKept(Durability::kMemory, [](DB* db) { return db->Sync(); });
}

TEST(Flush, CompactRangeLeavesNothingInLevel0BehindAFlush) {
  ExpectKept(Durability::kProcess, [](DB* db) {
    Status compacted = db->CompactRange();
    EXPECT_EQ(db->GetStats().levels[0].tables, 0U);
    return compacted;
  });
}

TEST(Flush, DoesNotReportAFailureOfAnAttemptThatBeganBeforeTheCall) {
  io::SimFileSystem fs(io::SimFileSystem::Durability::kIgnored);
  HeldExecutor executor;
  Environment environment;
  environment.fs = &fs;
  environment.clock = io::Clock::System();
  environment.executor = &executor;
  Gate failed;
  const auto on_event = [&](const Event& event) {
    if (event.kind == Event::Kind::kBackgroundError) failed.Pass();
  };
  const auto db =
      OpenDatabase("/db", {.memory_budget = kBudget, .on_event = on_event}, environment).value();
  ASSERT_TRUE(db->Put("key", "value").ok());
  fs.SetFault({.at_call = 1,
               .error = EMFILE,
               .sticky = true,
               .matches = [](std::string_view operation, std::string_view path) {
                 return operation == "open" && path.ends_with(".tbl");
               }});
  std::thread first([&] { static_cast<void>(db->Flush()); });
  failed.AwaitArrival();  // The attempt has failed, and has not ended.
  fs.ClearFault();
  std::thread second([&] {
    const Status flushed = db->Flush();
    EXPECT_TRUE(flushed.ok()) << flushed.ToString();
  });
  // By then it waits. A machine that is slower misses the attempt that has failed.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  failed.Open();
  first.join();
  second.join();
  const auto value = db->Get("key").value();
  ASSERT_TRUE(value);
  EXPECT_EQ(value->view(), "value");
}

TEST(Flush, CoversWhatWasWrittenBeforeItWhileOthersWrite) {
  const auto db = DB::Open(":memory:", {.memory_budget = kBudget}).value();
  const std::string value(1000, 'v');
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop.load(); ++i) EXPECT_TRUE(db->Put("w" + FlushedKey(i % 1000), value).ok());
  });
  for (int round = 0; round < 30; ++round) {
    EXPECT_TRUE(db->Put(FlushedKey(round), value).ok());
    const uint64_t lsn = db->GetStats().last_lsn;
    EXPECT_TRUE(db->Flush().ok());
    EXPECT_GE(db->GetStats().flushed_lsn, lsn);
  }
  stop = true;
  writer.join();
}

// A snapshot keeps the records that they cover, and so the range deletes.
TEST(Flush, WritesLittleForTheRangeDeletesBeforeIt) {
  constexpr int kRanges = 5000;
  const std::unique_ptr<io::FileSystem> fs = io::NewMemoryFileSystem();
  HeldExecutor executor;
  Environment environment;
  environment.fs = fs.get();
  environment.clock = io::Clock::System();
  environment.executor = &executor;
  auto db = OpenDatabase("/db", {.memory_budget = 16 * kBudget}, environment).value();
  const auto put = [&](int number) { ASSERT_TRUE(db->Put(FlushedKey(number), "v").ok()); };
  for (int i = 0; i < kRanges; ++i) ASSERT_NO_FATAL_FAILURE(put(2 * i));
  ASSERT_TRUE(db->Flush().ok());
  std::optional<Snapshot> snapshot = db->GetSnapshot().value();
  for (int i = 0; i < kRanges; ++i) {
    if (i % 1000 == 0) {
      ASSERT_TRUE(db->Flush().ok());
    }
    ASSERT_TRUE(db->DeleteRange(FlushedKey(2 * i), FlushedKey(2 * i + 1)).ok());
  }
  ASSERT_NO_FATAL_FAILURE(put(1));
  ASSERT_TRUE(db->Flush().ok());
  EXPECT_EQ(db->GetStats().range_deletes, uint64_t{kRanges});
  EXPECT_LT(fs->FileSize("/db/MANIFEST").value(), uint64_t{10} * kRanges);
  snapshot.reset();
  ASSERT_TRUE(db->Close().ok());
  db = OpenDatabase("/db", {.memory_budget = 16 * kBudget}, environment).value();
  EXPECT_TRUE(db->Get(FlushedKey(1)).value());
  for (int i = 0; i < kRanges; ++i) EXPECT_FALSE(db->Get(FlushedKey(2 * i)).value()) << i;
  ASSERT_TRUE(db->CompactRange().ok());
  EXPECT_EQ(db->GetStats().range_deletes, 0U);
}

}  // namespace
}  // namespace basalt::db
