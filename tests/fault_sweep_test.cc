// Every file system call of a workload fails in turn, once and for good, in several ways. The
// process lives and every error has a message; when the fault clears, writes resume without a
// reopening; nothing that was acknowledged is lost, nothing that failed half way is half there.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "base/check.h"
#include "base/coding.h"
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

constexpr char kSecondName[] = "second";

/// A write of the workload: besides its records it puts a marker key of its own, which tells later
/// whether the write is there.
struct Operation {
  WriteBatch batch;
  bool acknowledged = false;
};

using Content = std::map<std::string, std::string>;

/// What a record does to a keyspace's content. Merges find numbers, or append.
void Apply(const WriteBatch::Record& record, Content* content) {
  const std::string key(record.key);
  switch (record.kind) {
    case RecordKind::kPut:
      (*content)[key] = record.value;
      return;
    case RecordKind::kDelete:
      content->erase(key);
      return;
    case RecordKind::kDeleteRange:
      content->erase(content->lower_bound(key), content->lower_bound(std::string(record.value)));
      return;
    default:
      break;
  }
  const auto [at, is_new] = content->try_emplace(key, record.value);
  if (is_new) return;
  if (record.merge_operator == MergeOperator::kAppend) {
    at->second.append(record.value);
  } else {
    base::Store(at->second.data(), base::Load<uint64_t>(at->second.data()) +
                                       base::Load<uint64_t>(record.value.data()));
  }
}

/// Both keyspaces of a database.
struct State {
  Content content;
  std::optional<KeyspaceId> second{};  ///< Nothing: there is none.
  Content second_content{};

  bool operator==(const State&) const = default;
};

/// What a failed comparison prints.
void PrintTo(const State& state, std::ostream* out) {
  *out << state.content.size() << " records, ";
  if (!state.second) {
    *out << "no second keyspace";
    return;
  }
  *out << state.second_content.size() << " in the second keyspace, which has id "
       << static_cast<uint32_t>(*state.second);
}

Result<State> ReadState(const DB& db) {
  State state;
  BASALT_ASSIGN_OR_RETURN(state.content, crash::ReadContent(db));
  const auto second = db.OpenKeyspace(kSecondName);
  if (!second) {
    if (second.error().code() != StatusCode::kNotFound) return second.error();
    return state;
  }
  state.second = *second;
  BASALT_ASSIGN_OR_RETURN(state.second_content, crash::ReadContent(db, *second));
  return state;
}

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
    const auto second = db_->OpenKeyspace(kSecondName);
    second_ = second ? std::optional(*second) : std::nullopt;
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
    if (draw < 70) {
      Write(random_.OneIn(4));
    } else if (draw < 75) {
      MakeOrDropSecond();
    } else if (draw < 82) {
      executor_.RunOne();
    } else if (draw < 86) {
      Expect(db_->Sync());
    } else if (draw < 90) {
      Expect(db_->Flush());
    } else if (draw < 93) {
      const bool in_second = second_ && random_.OneIn(2);
      Expect(db_->CompactRange(std::nullopt, std::nullopt,
                               in_second ? *second_ : KeyspaceId::kDefault));
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

  void MakeOrDropSecond() {
    if (second_) {
      const Status dropped = db_->DropKeyspace(*second_);
      Expect(dropped);
      if (!dropped.ok()) return;
      dropped_.insert(*second_);
      second_.reset();
    } else {
      const auto made = db_->CreateKeyspace(kSecondName);
      Expect(made.status());
      if (made) second_ = *made;
    }
  }

  void AddRecord(WriteBatch* batch) {
    const KeyspaceId keyspace = second_ && random_.OneIn(3) ? *second_ : KeyspaceId::kDefault;
    const std::string key = "key" + std::to_string(random_.Below(12));
    const uint64_t draw = random_.Below(100);
    if (draw < 20) {
      batch->Delete(key, keyspace);
    } else if (draw < 27) {
      batch->DeleteRange(key, "key" + std::to_string(random_.Below(12)), keyspace);
    } else if (draw < 40) {
      std::string operand(sizeof(uint64_t), '\0');
      base::Store(operand.data(), random_.Next());
      batch->Merge("number" + std::to_string(random_.Below(4)), MergeOperator::kAdd, operand,
                   {.keyspace = keyspace});
    } else if (draw < 50) {
      batch->Merge(key, MergeOperator::kAppend, std::to_string(operations_.size()),
                   {.keyspace = keyspace});
    } else {
      batch->Put(key, std::string(random_.Below(300), 'v') + std::to_string(operations_.size()),
                 {.keyspace = keyspace});
    }
  }

  void Write(bool power) {
    Operation& operation = operations_.emplace_back();
    operation.batch.Put(Marker(operations_.size()), "x");
    for (uint64_t i = random_.Below(3) + 1; i > 0; --i) AddRecord(&operation.batch);
    const Status written = db_->Write(
        operation.batch, {.durability = power ? Durability::kPower : Durability::kProcess});
    Expect(written);
    operation.acknowledged = written.ok();
  }

  /// `state` is made of whole writes, in order, and of every acknowledged one.
  void ExpectWhole(const State& state) {
    State expected;
    expected.second = state.second;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const bool present = state.content.contains(Marker(i + 1));
      if (operations_[i].acknowledged) {
        EXPECT_TRUE(present) << "write " << i + 1 << " was acknowledged and is gone";
      }
      if (!present) continue;
      const Status visited = operations_[i].batch.ForEach([&](const WriteBatch::Record& record) {
        if (record.keyspace == KeyspaceId::kDefault) Apply(record, &expected.content);
        if (record.keyspace == state.second) Apply(record, &expected.second_content);
        return Status();
      });
      EXPECT_TRUE(visited.ok()) << visited.ToString();
    }
    EXPECT_EQ(state, expected) << "the content is not that of the writes that are there";
    EXPECT_FALSE(state.second && dropped_.contains(*state.second)) << "a dropped keyspace is back";
  }

  void Verify() {
    if (db_ == nullptr) {
      const Status opened = Open();
      ASSERT_TRUE(opened.ok()) << opened.ToString();
    }
    Write(/*power=*/true);
    ASSERT_TRUE(operations_.back().acknowledged) << "writes do not resume";
    const auto content = ReadState(*db_);
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
      const auto after = ReadState(**reopened);
      ASSERT_TRUE(after) << after.error().ToString();
      EXPECT_EQ(*after, *content) << "power cut, mode " << static_cast<int>(mode);
    }

    const Status closed = db_->Close();
    ASSERT_TRUE(closed.ok()) << closed.ToString();
    db_.reset();
    executor_.RunAll();
    const Status opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    const auto after = ReadState(*db_);
    ASSERT_TRUE(after) << after.error().ToString();
    EXPECT_EQ(*after, *content) << "the content changed by closing and opening";
  }

  const io::Fault fault_;
  base::Random random_{7};
  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
  std::vector<Operation> operations_;
  std::optional<KeyspaceId> second_;
  std::set<KeyspaceId> dropped_;
};

struct SweptFault {
  const char* name;
  io::Fault::Kind kind;
  int error;
  bool sticky;
};

// The release build looks at every call. Neighbouring ones mostly fail in the same code, which
// takes AddressSanitizer eight times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 3;
#else
constexpr uint64_t kStride = 1;
#endif

class FaultSweep : public testing::TestWithParam<SweptFault> {};

TEST_P(FaultSweep, EveryCallFailsInTurnAndNothingAcknowledgedIsLost) {
  const SweptFault& swept = GetParam();
  uint64_t call = 1;
  for (bool happened = true; happened; call += kStride) {
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
  EXPECT_EQ((*db->Get("key"))->ToString(), "value");
}

}  // namespace
}  // namespace basalt
