// Every file system call of a workload fails in turn, once and for good, in several ways. The
// process lives and every error has a message; when the fault clears, writes resume without a
// reopening; nothing that was acknowledged is lost, nothing that failed half way is half there.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "tests/crash/write_history.h"

namespace basalt {
namespace {

constexpr char kPath[] = "/db";
constexpr size_t kSteps = 120;

/// A write of the workload: besides its records it puts a marker key of its own, which tells later
/// whether the write is there.
struct Operation {
  WriteBatch batch;
  std::vector<std::pair<std::string, std::optional<std::string>>> records;
  bool acknowledged = false;
};

std::string Marker(size_t number) { return "marker" + std::to_string(1000 + number); }

class Workload {
 public:
  explicit Workload(io::Fault fault) : fault_(std::move(fault)) {}

  /// False when the fault never happened: the sweep is over.
  bool Run() {
    disk_.SetFault(fault_);
    for (size_t step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) Step();
    const bool happened = disk_.FaultHappened();
    disk_.ClearFault();
    if (!testing::Test::HasFailure()) Verify();
    return happened;
  }

 private:
  db::Environment Environment() {
    db::Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = 6 << 10;
    environment.table_bytes = 4 << 10;
    return environment;
  }

  Status Open() {
    auto opened = db::OpenDatabase(kPath, {.memory_budget = uint64_t{2} << 20}, Environment());
    if (!opened) return opened.error();
    db_ = std::move(*opened);
    return {};
  }

  /// An error is allowed, if it says something.
  void Expect(const Status& status) {
    if (status.ok()) return;
    EXPECT_GT(status.message().size(), 10U) << status.ToString();
  }

  void Step() {
    if (db_ == nullptr) {
      Expect(Open());
      return;
    }
    const uint64_t draw = random_.Below(100);
    if (draw < 75) {
      Write(random_.OneIn(4));
    } else if (draw < 82) {
      executor_.RunOne();
    } else if (draw < 86) {
      Expect(db_->Sync());
    } else if (draw < 90) {
      Expect(db_->Flush());
    } else if (draw < 93) {
      Expect(db_->CompactRange());
    } else if (draw < 97) {
      const auto it = db_->NewIterator();
      it->SeekToFirst();
      while (it->Valid()) it->Next();
      Expect(it->status());
    } else {
      if (random_.OneIn(2)) Expect(db_->Close());
      db_.reset();
      executor_.RunAll();
    }
  }

  void Write(bool power) {
    Operation& operation = operations_.emplace_back();
    operation.records.emplace_back(Marker(operations_.size()), "x");
    for (uint64_t i = random_.Below(3) + 1; i > 0; --i) {
      const std::string key = "key" + std::to_string(random_.Below(12));
      if (random_.OneIn(4)) {
        operation.records.emplace_back(key, std::nullopt);
      } else {
        operation.records.emplace_back(
            key, std::string(random_.Below(300), 'v') + std::to_string(operations_.size()));
      }
    }
    for (const auto& [key, value] : operation.records) {
      if (value) {
        operation.batch.Put(key, *value);
      } else {
        operation.batch.Delete(key);
      }
    }
    const Status written = db_->Write(
        operation.batch, {.durability = power ? Durability::kPower : Durability::kProcess});
    Expect(written);
    operation.acknowledged = written.ok();
  }

  /// `content` is made of whole writes, in order, and of every acknowledged one.
  void ExpectWhole(const std::map<std::string, std::string>& content) {
    std::map<std::string, std::string> expected;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const bool present = content.contains(Marker(i + 1));
      if (operations_[i].acknowledged) {
        EXPECT_TRUE(present) << "write " << i + 1 << " was acknowledged and is gone";
      }
      if (!present) continue;
      for (const auto& [key, value] : operations_[i].records) {
        expected.erase(key);
        if (value) expected[key] = *value;
      }
    }
    EXPECT_TRUE(content == expected) << "the content is not that of the writes that are there";
  }

  void Verify() {
    if (db_ == nullptr) {
      const Status opened = Open();
      ASSERT_TRUE(opened.ok()) << opened.ToString();
    }
    Write(/*power=*/true);
    ASSERT_TRUE(operations_.back().acknowledged) << "writes do not resume";
    const auto content = crash::ReadContent(*db_);
    ASSERT_TRUE(content) << content.error().ToString();
    ExpectWhole(*content);

    // A write at kPower carries all earlier ones: no power cut may lose a thing.
    for (const io::CrashMode mode : {io::CrashMode::kNone, io::CrashMode::kAll,
                                     io::CrashMode::kTornTail, io::CrashMode::kSubset}) {
      const auto disk = disk_.Clone();
      disk->Crash(random_.Next(), mode);
      io::ManualExecutor executor;
      db::Environment environment = Environment();
      environment.fs = disk.get();
      environment.executor = &executor;
      auto reopened = db::OpenDatabase(kPath, {.memory_budget = uint64_t{2} << 20}, environment);
      ASSERT_TRUE(reopened) << reopened.error().ToString();
      const auto after = crash::ReadContent(**reopened);
      ASSERT_TRUE(after) << after.error().ToString();
      EXPECT_TRUE(*after == *content) << "power cut, mode " << static_cast<int>(mode);
    }

    const Status closed = db_->Close();
    ASSERT_TRUE(closed.ok()) << closed.ToString();
    db_.reset();
    executor_.RunAll();
    const Status opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    const auto after = crash::ReadContent(*db_);
    ASSERT_TRUE(after) << after.error().ToString();
    EXPECT_TRUE(*after == *content) << "the content changed by closing and opening";
  }

  const io::Fault fault_;
  base::Random random_{7};
  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
  std::vector<Operation> operations_;
};

struct SweptFault {
  const char* name;
  io::Fault::Kind kind;
  int error;
  bool sticky;
};

class FaultSweep : public testing::TestWithParam<SweptFault> {};

TEST_P(FaultSweep, EveryCallFailsInTurnAndNothingAcknowledgedIsLost) {
  const SweptFault& swept = GetParam();
  uint64_t call = 1;
  for (bool happened = true; happened; ++call) {
    io::Fault fault{
        .kind = swept.kind, .at_call = call, .error = swept.error, .sticky = swept.sticky};
    happened = Workload(std::move(fault)).Run();
    ASSERT_FALSE(HasFailure()) << swept.name << " at call " << call;
    ASSERT_LT(call, 20'000U);
  }
  EXPECT_GT(call, 20U);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, FaultSweep,
    testing::Values(SweptFault{"EioOnce", io::Fault::Kind::kError, EIO, false},
                    SweptFault{"EioSticky", io::Fault::Kind::kError, EIO, true},
                    SweptFault{"EnospcOnce", io::Fault::Kind::kError, ENOSPC, false},
                    SweptFault{"EnospcSticky", io::Fault::Kind::kError, ENOSPC, true},
                    SweptFault{"EmfileOnce", io::Fault::Kind::kError, EMFILE, false},
                    SweptFault{"EintrOnce", io::Fault::Kind::kError, EINTR, false},
                    SweptFault{"ShortWriteOnce", io::Fault::Kind::kShortWrite, 0, false},
                    SweptFault{"ShortWriteSticky", io::Fault::Kind::kShortWrite, 0, true},
                    SweptFault{"ShortReadSticky", io::Fault::Kind::kShortRead, 0, true}),
    [](const testing::TestParamInfo<SweptFault>& info) { return info.param.name; });

TEST(FailingLog, AMemtableToWhichEveryWriteFailsDoesNotGrowForEver) {
  io::SimFileSystem disk;
  io::SimClock clock;
  io::ManualExecutor executor;
  db::Environment environment;
  environment.fs = &disk;
  environment.clock = &clock;
  environment.executor = &executor;
  environment.memtable_bytes = 64 << 10;
  auto db = db::OpenDatabase(kPath, {.memory_budget = uint64_t{2} << 20}, environment).value();
  disk.SetFault({.kind = io::Fault::Kind::kError, .at_call = 1, .error = ENOSPC, .sticky = true});
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(db->Put("key", std::string(1000, 'v')).code(), StatusCode::kResourceExhausted);
    ASSERT_LT(db->GetStats().memtable_bytes, 512U << 10) << "after " << i << " writes";
  }
  disk.ClearFault();
  EXPECT_TRUE(db->Put("key", "value", {.durability = Durability::kPower}).ok());
  EXPECT_EQ((*db->Get("key"))->view(), "value");
}

}  // namespace
}  // namespace basalt
