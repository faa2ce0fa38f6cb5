// Databases whose process is killed on a full disk: what was accepted is found when they are opened
// again, and deletes make room.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "db/manifest.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "table/test_records.h"

namespace basalt {
namespace {

bool IsLog(std::string_view path) { return path.ends_with(".log"); }

/// A database on a disk that belongs to it alone.
class Machine {
 public:
  explicit Machine(std::unique_ptr<io::SimFileSystem> fs) : fs_(std::move(fs)) {}
  ~Machine() { Kill(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  io::SimFileSystem& fs() { return *fs_; }
  io::SimClock& clock() { return clock_; }
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
    Forget();
  }
  void Forget() {
    db_.reset();
    RunJobs();
  }
  void RefuseNextWriteOfLog() {
    const auto is_write = [](std::string_view operation, std::string_view path) {
      return operation == "write" && IsLog(path);
    };
    fs_->SetFault({.at_call = 1, .error = ENOSPC, .matches = is_write});
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

TEST(FullDiskRecovery, ALogThatFindsNoRoomToStartIsReplayedAgain) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(0));
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  ASSERT_TRUE(machine.db().Put("a", "1").ok());
  ASSERT_TRUE(machine.db().Flush().ok());
  ASSERT_TRUE(machine.db().Put("b", "22").ok());
  machine.Kill();
  ASSERT_TRUE(*machine.fs().Exists("/db/RESERVE"));
  const auto is_start = [](std::string_view operation, std::string_view path) {
    return operation == "stat" && IsLog(path);
  };
  machine.fs().SetFault({.at_call = 1, .error = ENOSPC, .matches = is_start});
  const Status opened = machine.Open(kMemtableBytes);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_TRUE(machine.fs().FaultHappened());
  EXPECT_EQ(machine.SizeOf("a"), 1u);
  EXPECT_EQ(machine.SizeOf("b"), 2u);
  EXPECT_TRUE(machine.db().Put("c", "333").ok());
}

// The memtable of what has expired finds room only when the log is replayed for the second time,
// which has to know that the rest of the log is not known yet.
TEST(FullDiskRecovery, WhatHasExpiredIsKeptForMergesOfALogThatIsReplayedAgain) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(0));
  base::Random random(1);
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  ASSERT_TRUE(machine.db().Put("list", "a", {.ttl = std::chrono::seconds(1)}).ok());
  for (int i = 0; i < 70; ++i) {
    ASSERT_TRUE(machine.db().Put(KeyOf(i), table::RandomBytes(&random, 1000, 256)).ok());
  }
  ASSERT_TRUE(machine.db().Merge("list", MergeOperator::kAppend, "b").ok());
  machine.Kill();
  ASSERT_TRUE(*machine.fs().Exists("/db/RESERVE"));
  machine.clock().Advance(2'000'000);

  bool has_started = false;
  const auto until_the_log_starts = [&](std::string_view operation, std::string_view path) {
    if (has_started) return false;
    has_started = operation == "stat" && IsLog(path);
    return has_started || (operation == "open" && path.ends_with(".tbl")) ||
           (operation == "remove" && path.ends_with("/RESERVE"));
  };
  machine.fs().SetFault(
      {.at_call = 1, .error = ENOSPC, .sticky = true, .matches = until_the_log_starts});
  const Status opened = machine.Open(kMemtableBytes);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_TRUE(has_started);
  EXPECT_EQ(machine.SizeOf(KeyOf(0)), 1000u);
  EXPECT_EQ(machine.SizeOf("list"), 0u) << "the merge has lost what it expires with";
}

// The put is on its way to the log while the delete, which the disk has refused once, is given all
// that is kept back: they are refused together, and the delete has to be tried again.
TEST(FullDiskRecovery, ADeleteThatIsRefusedWithAPutBeforeItIsTriedAgain) {
  Machine machine(NewDisk(0));
  ASSERT_TRUE(machine.Open(64 << 10).ok());
  ASSERT_TRUE(machine.db().Put("a", "1").ok());
  const std::thread::id deleter = std::this_thread::get_id();
  Status put;
  std::thread putter;
  std::atomic<bool> is_writing{false};
  std::atomic<bool> has_returned{false};
  machine.fs().SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    const bool is_deleter = std::this_thread::get_id() == deleter;
    // The delete has sealed the memtable, and flushes it to have the log removed.
    if (is_deleter && operation == "open" && path.ends_with(".tbl") && !putter.joinable()) {
      putter = std::thread([&] {
        put = machine.db().Put("b", "22");
        is_writing = true;
      });
      while (!is_writing) std::this_thread::yield();
    }
    if (!is_deleter && operation == "write" && IsLog(path) && !is_writing) {
      const uint64_t writes = machine.db().GetStats().writes;
      is_writing = true;
      while (machine.db().GetStats().writes == writes && !has_returned) std::this_thread::yield();
      machine.RefuseNextWriteOfLog();
    }
  });
  machine.RefuseNextWriteOfLog();
  const Status deleted = machine.db().Delete("a");
  has_returned = true;
  machine.fs().SetObserver({});
  EXPECT_TRUE(deleted.ok()) << deleted.ToString();
  ASSERT_TRUE(putter.joinable());
  putter.join();
  EXPECT_TRUE(put.ok()) << put.ToString();
  EXPECT_EQ(machine.SizeOf("a"), 0u);
  EXPECT_EQ(machine.SizeOf("b"), 2u);
}

// Without what is kept back, and with room for little more than a new file of the log.
TEST(FullDiskRecovery, ARangeDeleteIsTakenWithoutAReserveIfItDeletesATable) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  for (const bool is_compacted : {false, true}) {
    base::Random random(1);
    Machine machine(NewDisk(0));
    ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
    for (int i = 0; i < 300; ++i) {
      const std::string value = table::RandomBytes(&random, 1000, 256);
      ASSERT_TRUE(machine.db().Put(KeyOf(1000 + i), value).ok());
    }
    ASSERT_TRUE(machine.db().Flush().ok());
    ASSERT_TRUE(!is_compacted || machine.db().CompactRange().ok());
    machine.RunJobs();
    for (int i = 0; i < 40; ++i) {  // for whose flush there is no room
      ASSERT_TRUE(machine.db().Put(KeyOf(i), table::RandomBytes(&random, 1000, 256)).ok());
    }
    machine.Kill();

    const auto delete_range = [&](const std::string& begin, const std::string& end) {
      Machine full(machine.fs().Clone());
      EXPECT_TRUE(full.Open(kMemtableBytes).ok());
      static_cast<void>(full.fs().RemoveFile("/db/RESERVE"));
      full.fs().SetCapacity(full.fs().BytesUsed() + (8 << 10));
      full.RefuseNextWriteOfLog();
      const StatusCode code = full.db().DeleteRange(begin, end).code();
      EXPECT_TRUE(full.fs().FaultHappened());
      return code;
    };
    auto tables = db::ReadManifest(&machine.fs(), "/db").value().tables;
    ASSERT_GT(tables.size(), 3u);
    std::ranges::sort(tables, {}, [](const auto& table) { return table.properties.smallest_key; });
    for (size_t i = 0; i < tables.size(); ++i) {
      const std::string& smallest = tables[i].properties.smallest_key;
      const std::string& largest = tables[i].properties.largest_key;
      const std::string behind = largest + '\0';
      EXPECT_EQ(delete_range(smallest, behind), StatusCode::kOk) << i;
      EXPECT_EQ(delete_range(smallest, largest), StatusCode::kResourceExhausted) << i;
      EXPECT_EQ(delete_range(smallest + '\0', behind), StatusCode::kResourceExhausted) << i;
      EXPECT_EQ(delete_range(largest, largest + '~'), StatusCode::kResourceExhausted) << i;
    }
  }
}

TEST(FullDiskRecovery, PutsAreRefusedWhileWhatIsKeptBackIsLackingAndTakenWhenThereIsRoom) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(2 << 20));
  base::Random random(1);
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  const auto put = [&] {
    return machine.db().Put(KeyOf(static_cast<int>(random.Below(10'000))),
                            table::RandomBytes(&random, 1000, 256));
  };
  while (put().ok()) {
  }
  machine.RunJobs();
  machine.fs().SetCapacity(machine.fs().BytesUsed());  // No room but what is kept back.
  while (machine.db().Delete("a key").ok()) {
  }
  EXPECT_FALSE(*machine.fs().Exists("/db/RESERVE"));
  // There is room for this put, but not for what may have to be done after it.
  machine.fs().SetCapacity(machine.fs().BytesUsed() + (64 << 10));
  for (int i = 0; i < 3; ++i) {
    const Status refused = put();
    ASSERT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.ToString();
    EXPECT_NE(refused.message().find("reserved"), std::string::npos) << refused.ToString();
  }
  machine.fs().SetCapacity(4 << 20);
  const Status taken = put();
  EXPECT_TRUE(taken.ok()) << taken.ToString();
  EXPECT_TRUE(*machine.fs().Exists("/db/RESERVE"));
}

// Others who write to the disk would find it full.
TEST(FullDiskRecovery, RefusedPutsTakeNothingForAMoment) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(2 << 20));
  base::Random random(1);
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  const auto put = [&] {
    return machine.db().Put(KeyOf(static_cast<int>(random.Below(10'000))),
                            table::RandomBytes(&random, 1000, 256));
  };
  while (put().ok()) {
  }
  machine.RunJobs();
  while (put().ok()) {
  }
  // What is asked for is mostly whole memtables, so that this much is of little use to the
  // database.
  constexpr uint64_t kFreeBytes = kMemtableBytes / 2;
  machine.fs().SetCapacity(machine.fs().BytesUsed() + kFreeBytes);
  while (put().ok()) {
  }
  const uint64_t before = machine.fs().BytesUsed();
  uint64_t most = 0;
  machine.fs().SetObserver([&](uint64_t, std::string_view, std::string_view) {
    most = std::max(most, machine.fs().BytesUsed());
  });
  int refused = 0;
  for (int i = 0; i < 10; ++i) refused += put().ok() ? 0 : 1;
  machine.fs().SetObserver({});
  EXPECT_GT(refused, 0);
  EXPECT_LE(most, before + 4096) << "at most a block, for the name and header of a log file";
}

TEST(FullDiskRecovery, WhatIsKeptBackFollowsTheLogUpAndDown) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(0));
  base::Random random(1);
  const auto put = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(machine.db().Put(KeyOf(i), table::RandomBytes(&random, 1000, 256)).ok());
    }
  };
  const auto kept = [&] { return machine.fs().FileSize("/db/RESERVE").value(); };
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  put(200);
  ASSERT_TRUE(machine.db().Flush().ok());
  const uint64_t least = kept();
  put(100);  // fewer than two memtables: nobody waits for a flush, which takes a job
  EXPECT_GT(kept(), least);
  ASSERT_TRUE(machine.db().Flush().ok());
  EXPECT_EQ(kept(), least);
  put(100);
  EXPECT_GT(kept(), least);
  machine.CloseAndForget();
  EXPECT_LE(kept(), least);
}

TEST(FullDiskRecovery, WhatIsKeptBackIsBoundedHoweverMuchTheLogHas) {
  constexpr uint64_t kMemtableBytes = 16 << 20;
  constexpr uint64_t kOpenMax = 8 << 20;
  constexpr uint64_t kClosedMax = 1 << 20;
  Machine machine(NewDisk(0));
  base::Random random(1);
  const auto kept = [&] {
    return machine.fs().Exists("/db/RESERVE").value() ? machine.fs().FileSize("/db/RESERVE").value()
                                                      : 0;
  };
  enum class End : uint8_t { kClosed, kFlushedAndClosed, kDestroyed };
  for (const End end : {End::kClosed, End::kFlushedAndClosed, End::kDestroyed}) {
    ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(machine.db().Put(KeyOf(i), table::RandomBytes(&random, 900 << 10, 256)).ok());
      EXPECT_LE(kept(), kOpenMax);
      if (i % 8 == 0) machine.RunJobs();
    }
    EXPECT_GT(kept(), kOpenMax / 2);
    if (end == End::kFlushedAndClosed) {
      ASSERT_TRUE(machine.db().Flush().ok());
    }
    if (end == End::kDestroyed) {
      machine.Forget();
    } else {
      machine.CloseAndForget();
    }
    EXPECT_LE(kept(), kClosedMax) << static_cast<int>(end);
  }
}

TEST(FullDiskRecovery, PutsAreRefusedWhereTheLogCouldNotBeFlushedThoughLittleIsKeptBack) {
  constexpr uint64_t kMemtableBytes = 16 << 20;
  constexpr uint64_t kCapacity = 40 << 20;
  Machine machine(NewDisk(kCapacity));
  base::Random random(1);
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  Status put;
  int written = 0;
  for (; put.ok() && written < 1000; ++written) {
    put = machine.db().Put(KeyOf(written), table::RandomBytes(&random, 900 << 10, 256));
  }
  EXPECT_EQ(put.code(), StatusCode::kResourceExhausted) << put.ToString();
  EXPECT_GT(written, 8);
  // Killed and opened again, it has room for all that the log has.
  machine.Kill();
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  EXPECT_TRUE(machine.db().Flush().ok());
  ASSERT_TRUE(machine.db().DeleteRange("key", "kez").ok());
  ASSERT_TRUE(machine.db().Flush().ok());
  machine.RunJobs();
  EXPECT_TRUE(machine.db().Put("after", "1").ok());
}

TEST(FullDiskRecovery, WhatIsKeptBackIsEnoughForTwoManifestsFromTheOpeningOn) {
  constexpr uint64_t kMemtableBytes = 64 << 10;
  Machine machine(NewDisk(0));
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  ASSERT_TRUE(machine.db().Put("a", "1").ok());
  ASSERT_TRUE(machine.db().Put("z", "1").ok());
  ASSERT_TRUE(machine.db().Flush().ok());
  base::Random random(1);
  for (int i = 0; i < 450; ++i) {  // each stands in the manifest as long as the table is there
    std::string key = KeyOf(1000 + i);
    while (key.size() < 1000) key += static_cast<char>(random.Below(256));  // Not compressible.
    ASSERT_TRUE(machine.db().DeleteRange(key, key + 'k').ok());
  }
  ASSERT_TRUE(machine.db().Flush().ok());
  machine.Kill();
  const uint64_t manifest_bytes = machine.fs().FileSize("/db/MANIFEST").value();
  ASSERT_GT(manifest_bytes, 6 * kMemtableBytes);
  static_cast<void>(machine.fs().RemoveFile("/db/RESERVE"));
  ASSERT_TRUE(machine.Open(kMemtableBytes).ok());
  EXPECT_GT(machine.fs().FileSize("/db/RESERVE").value(), 2 * manifest_bytes);
}

// Whatever was accepted on a disk that nobody else fills.

/// What is written to a full disk until it is refused, beside one put of each round.
enum class Deletes : uint8_t { kNone, kOne, kMany, kOfRanges };

struct Load {
  uint64_t memtable_bytes;
  uint64_t capacity;
  size_t value_bytes;
  Deletes deletes;
};

std::string NameOf(const testing::TestParamInfo<Load>& info) {
  constexpr const char* kDeletes[] = {"", "OneDelete", "ManyDeletes", "DeletesOfRanges"};
  return "Memtable" + std::to_string(info.param.memtable_bytes >> 10) + "Of" +
         std::to_string(info.param.capacity >> 10) + "Values" +
         std::to_string(info.param.value_bytes) + kDeletes[static_cast<size_t>(info.param.deletes)];
}

class FullDisk : public testing::TestWithParam<Load> {
 protected:
  static constexpr int kKeys = 1'000'000;

  /// Puts until it was refused some times.
  void Fill(DB* db) {
    for (int refused = 0; refused < 20;) {
      const std::string key = KeyOf(static_cast<int>(random_.Below(kKeys)));
      const size_t size = 1 + random_.Below(2 * GetParam().value_bytes);
      const Status put = db->Put(key, table::RandomBytes(&random_, size, 256));
      ASSERT_TRUE(put.ok() || put.code() == StatusCode::kResourceExhausted) << put.ToString();
      refused += put.ok() ? 0 : 1;
    }
  }
  void Delete(DB* db) {
    const Deletes deletes = GetParam().deletes;
    const int most = deletes == Deletes::kNone ? 0 : deletes == Deletes::kOne ? 1 : 2000;
    for (int i = 0; i < most; ++i) {
      const std::string key = KeyOf(static_cast<int>(random_.Below(kKeys)));
      const Status deleted =
          deletes == Deletes::kOfRanges ? db->DeleteRange(key, key + "0") : db->Delete(key);
      if (!deleted.ok()) return;
    }
  }
  /// What somebody can do who finds the disk full.
  void ExpectToMakeRoom(Machine* machine, const std::string& when) {
    const Status opened = machine->Open(GetParam().memtable_bytes);
    ASSERT_TRUE(opened.ok()) << when << ": " << opened.ToString();
    const Status deleted = machine->db().DeleteRange("", "\xff");
    ASSERT_TRUE(deleted.ok()) << when << ": " << deleted.ToString();
    const Status flushed = machine->db().Flush();
    ASSERT_TRUE(flushed.ok()) << when << ": " << flushed.ToString();
    machine->RunJobs();
    for (int i = 0; i < 10; ++i) {
      const Status put = machine->db().Put(KeyOf(i), std::string(GetParam().value_bytes, 'v'));
      ASSERT_TRUE(put.ok()) << when << ": " << put.ToString();
    }
  }

  base::Random random_{1};
};

TEST_P(FullDisk, IsOpenedDeletedFromAndWrittenToAgain) {
  Machine machine(NewDisk(GetParam().capacity));
  for (int round = 0; round < 6; ++round) {
    // Each call may be the last one of the process.
    uint64_t next = 1;
    machine.fs().ResetCalls();
    std::vector<std::unique_ptr<io::SimFileSystem>> killed;
    machine.fs().SetObserver([&](uint64_t call, std::string_view, std::string_view) {
      if (call < next || killed.size() >= 20) return;
      next = call + 1 + call / 3;
      killed.push_back(machine.fs().Clone());
    });
    const std::string when = "round " + std::to_string(round);
    const Status opened = machine.Open(GetParam().memtable_bytes);
    ASSERT_TRUE(opened.ok()) << when << ": " << opened.ToString();
    Fill(&machine.db());
    Delete(&machine.db());
    Fill(&machine.db());
    if (round % 2 == 0) machine.RunJobs();
    killed.push_back(machine.fs().Clone());
    machine.fs().SetObserver({});
    machine.Kill();
    for (size_t i = 0; i < killed.size(); ++i) {
      Machine again(std::move(killed[i]));
      ExpectToMakeRoom(&again, when + ", kill " + std::to_string(i));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, FullDisk,
                         testing::Values(Load{64 << 10, 2 << 20, 1000, Deletes::kNone},
                                         Load{64 << 10, 2 << 20, 1000, Deletes::kOne},
                                         Load{64 << 10, 2 << 20, 1000, Deletes::kMany},
                                         Load{64 << 10, 2 << 20, 1000, Deletes::kOfRanges},
                                         Load{64 << 10, 2 << 20, 10, Deletes::kOne},
                                         Load{64 << 10, 2 << 20, 20'000, Deletes::kOne},
                                         Load{512 << 10, 4 << 20, 1000, Deletes::kOne},
                                         Load{512 << 10, 3 << 20, 20'000, Deletes::kMany},
                                         Load{8 << 20, 16 << 20, 10'000, Deletes::kOne},
                                         Load{16 << 10, 1 << 20, 100, Deletes::kMany}),
                         NameOf);

}  // namespace
}  // namespace basalt
