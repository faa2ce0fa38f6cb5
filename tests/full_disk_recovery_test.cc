// Databases whose process is killed on a full disk: what was accepted is found when they are opened
// again, and deletes make room.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "table/test_records.h"

namespace basalt {
namespace {

/// A database on a disk that belongs to it alone.
class Machine {
 public:
  explicit Machine(std::unique_ptr<io::SimFileSystem> fs) : fs_(std::move(fs)) {}
  ~Machine() { Kill(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  io::SimFileSystem& fs() { return *fs_; }
  DB& db() { return *db_; }

  Status Open(uint64_t memtable_bytes) {
    db::Environment environment;
    environment.fs = fs_.get();
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = memtable_bytes;
    environment.table_bytes = memtable_bytes;
    auto opened = db::OpenDatabase("/db", {.memory_budget = 8 << 20}, environment);
    if (!opened) return opened.error();
    db_ = std::move(*opened);
    return {};
  }
  void RunJobs() { executor_.RunAll(); }
  /// The process is gone; what it wrote is there.
  void Kill() {
    fs_->SetFault({.at_call = 1, .error = EIO, .sticky = true});
    db_.reset();
    RunJobs();
    fs_->ClearFault();
  }
  void CloseAndForget() {
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    RunJobs();
  }
  size_t SizeOf(const std::string& key) {
    const auto value = db_->Get(key);
    return value && *value ? (*value)->view().size() : 0;
  }

 private:
  std::unique_ptr<io::SimFileSystem> fs_;
  io::SimClock clock_;
  io::ManualExecutor executor_{1};
  std::unique_ptr<DB> db_;
};

std::unique_ptr<io::SimFileSystem> NewDisk(uint64_t capacity) {
  auto fs = std::make_unique<io::SimFileSystem>(io::SimFileSystem::Durability::kIgnored);
  fs->SetCapacity(capacity);
  return fs;
}

std::string KeyOf(int i) { return "key" + std::to_string(i); }

// What is kept back is gone, and others have taken the rest of the disk. The log fills several of
// the smaller memtables.
TEST(FullDiskRecovery, ALogLargerThanAMemtableStaysInMemoryWhereNothingCanBeFlushed) {
  constexpr int kKeys = 100;
  constexpr uint64_t kSmaller = 16 << 10;
  Machine machine(NewDisk(0));
  base::Random random(1);
  ASSERT_TRUE(machine.Open(64 << 10).ok());
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(machine.db().Put(KeyOf(i), table::RandomBytes(&random, 1000, 256)).ok());
  }
  machine.Kill();
  static_cast<void>(machine.fs().RemoveFile("/db/RESERVE"));
  machine.fs().SetCapacity(machine.fs().BytesUsed());
  const auto expect_all = [&] {
    for (int i = 0; i < kKeys; ++i) EXPECT_EQ(machine.SizeOf(KeyOf(i)), 1000u) << i;
  };
  for (int time = 0; time < 2; ++time) {
    const Status opened = machine.Open(kSmaller);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    machine.RunJobs();
    expect_all();
    EXPECT_EQ(machine.db().Put("more", "1").code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(machine.db().Flush().code(), StatusCode::kResourceExhausted);
    machine.Kill();
  }
  ASSERT_TRUE(machine.Open(kSmaller).ok());
  machine.fs().SetCapacity(0);
  EXPECT_TRUE(machine.db().Put("more", "1").ok());
  EXPECT_TRUE(machine.db().Flush().ok());
  expect_all();
  machine.CloseAndForget();
  ASSERT_TRUE(machine.Open(kSmaller).ok());
  expect_all();
}

TEST(FullDiskRecovery, ATornTailIsKeptThere) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(0));
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  ASSERT_TRUE(machine.db().Put("a", "1").ok());
  ASSERT_TRUE(machine.db().Flush().ok());
  ASSERT_TRUE(machine.db().Put("b", "2").ok());
  machine.Kill();
  const auto names = machine.fs().List("/db").value();
  const auto log =
      std::ranges::find_if(names, [](const auto& name) { return name.ends_with(".log"); });
  ASSERT_NE(log, names.end());
  const auto file = machine.fs().Open("/db/" + *log, io::OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->WriteAt(file->Size().value(), std::string(5000, 't')).ok());
  machine.fs().SetCapacity(machine.fs().BytesUsed());

  const Status opened = machine.Open(kMemtableBytes);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(machine.fs().List("/db/lost").value().size(), 1u);
  EXPECT_EQ(machine.SizeOf("a"), 1u);
  EXPECT_EQ(machine.SizeOf("b"), 1u);
}

}  // namespace
}  // namespace basalt
