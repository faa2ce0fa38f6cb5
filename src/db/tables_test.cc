#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "db/file_names.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "table/table.h"
#include "table/table_builder.h"
#include "table/table_format.h"

namespace basalt::db {
namespace {

/// A database whose memory_budget is 4 MiB.
class WrittenTables : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    Environment environment;
    environment.fs = &fs_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = 256 << 10;
    db_ = OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, environment).value();
  }
  /// None of whose tables has been opened.
  void Reopen() {
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    ASSERT_NO_FATAL_FAILURE(Open());
  }

  /// Records of 1,000 bytes, every `step`th key from `first` on.
  void PutMiB(int mib, int first, int step) {
    for (int i = 0; i < mib << 10; ++i) {
      std::string value(1000, '\0');
      for (char& byte : value) byte = static_cast<char>(random_.Below(256));
      ASSERT_TRUE(db_->Put(std::to_string(10'000'000 + first + i * step), value).ok());
    }
  }

  /// On the mean over all tables there are, after compaction.
  double BytesOfBlock() {
    const Status compacted = db_->CompactRange();
    EXPECT_TRUE(compacted.ok()) << compacted.ToString();
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    const std::vector<std::string> names = fs_.List("/db").value();
    for (const std::string& name : names) {
      if (!name.ends_with(".tbl")) continue;
      const std::string path = io::JoinPath("/db", name);
      const uint64_t file_bytes = fs_.FileSize(path).value();
      auto file = fs_.Open(path, io::OpenMode::kRead).value();
      table::FileHeader header;
      char head[sizeof header];
      EXPECT_TRUE(file->ReadExactAt(0, head).ok());
      std::memcpy(&header, head, sizeof header);
      const auto table =
          table::Table::Open(std::move(file), header.file_id, 0, file_bytes, nullptr).value();
      bytes += file_bytes;
      blocks += table->block_count();
    }
    return static_cast<double>(bytes) / static_cast<double>(blocks);
  }

  io::SimFileSystem fs_;
  io::SimClock clock_;
  io::ManualExecutor executor_{1};
  base::Random random_{1};
  std::unique_ptr<DB> db_;
};

TEST_F(WrittenTables, HaveSmallBlocksOnceAllOfThemDoNotFitInMemory) {
  ASSERT_NO_FATAL_FAILURE(PutMiB(2, 0, 2));
  EXPECT_NEAR(BytesOfBlock(), table::kBlockBytes, 1500);
  ASSERT_NO_FATAL_FAILURE(PutMiB(4, 1, 1));  // between the first ones and behind them
  EXPECT_NEAR(BytesOfBlock(), table::kBlockBytesBeyondMemory, 1500);
}

bool IsOpeningOfTable(std::string_view operation, std::string_view path) {
  return operation == "open" && path.ends_with(".tbl");
}

TEST_F(WrittenTables, AreOpenedByTheScansThatReachThem) {
  ASSERT_NO_FATAL_FAILURE(PutMiB(9, 0, 1));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_GE(db_->GetStats().levels[6].tables, 4u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  int opened = 0;
  fs_.SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    opened += IsOpeningOfTable(operation, path) ? 1 : 0;
  });
  const auto it = db_->NewIterator();
  EXPECT_EQ(opened, 0);
  it->Seek("10001500");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "10001500");
  it->Next();
  it->Prev();
  EXPECT_EQ(it->key(), "10001500");
  EXPECT_EQ(opened, 1);
  int seen = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++seen;
  EXPECT_EQ(seen, 9 << 10);
  EXPECT_EQ(static_cast<uint64_t>(opened), db_->GetStats().levels[6].tables);
  fs_.SetObserver({});
}

TEST_F(WrittenTables, ThatCannotBeOpenedEndScansOnlyWhereTheyLie) {
  ASSERT_NO_FATAL_FAILURE(PutMiB(3, 0, 1));
  ASSERT_TRUE(db_->CompactRange().ok());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  const auto it = db_->NewIterator();
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  fs_.SetFault({.at_call = 1, .error = EIO, .sticky = true, .matches = IsOpeningOfTable});
  int seen = 0;
  for (; it->Valid(); it->Next()) ++seen;
  EXPECT_GT(seen, 100);
  EXPECT_LT(seen, 3 << 10);
  EXPECT_EQ(it->status().code(), StatusCode::kIoError) << it->status().ToString();
  EXPECT_NE(it->status().message().find(".tbl"), std::string::npos) << it->status().ToString();
  it->SeekToLast();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kIoError);
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid()) << it->status().ToString();
  EXPECT_EQ(it->key(), "10000000");
  fs_.SetFault({});
  for (seen = 0; it->Valid(); it->Next()) ++seen;
  EXPECT_EQ(seen, 3 << 10);
  EXPECT_TRUE(it->status().ok()) << it->status().ToString();
}

}  // namespace
}  // namespace basalt::db
