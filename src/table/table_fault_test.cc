#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "io/sim_file_system.h"
#include "table/table.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

// Some 600 KiB that do not compress: three writes of data.
std::vector<Record> LargeTableRecords() {
  base::Random random(1);
  std::vector<Record> records;
  for (base::SequenceNumber i = 1; i <= 600; ++i) {
    records.push_back(Put(Numbered("key", i), i, RandomBytes(&random, 1000, 256)));
  }
  Sort(&records);
  return records;
}

// Of each way of compressing.
class TableFaultWith : public testing::TestWithParam<Compression> {};

TEST_P(TableFaultWith, EveryCallThatFailsWhileWritingIsReported) {
  const std::vector<Record> records = LargeTableRecords();
  io::SimFileSystem fs;
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    const TableSpot spot{.fs = &fs,
                         .path = Numbered("/table", call),
                         .compression = GetParam(),
                         .at_last_level = true};
    fs.SetFault({.at_call = call, .error = ENOSPC});
    const auto written = WriteTable(spot, records);
    const bool happened = fs.FaultHappened();
    fs.ClearFault();
    if (!happened) {
      ASSERT_TRUE(written);
      break;
    }
    ++failed;
    ASSERT_FALSE(written) << "call " << call;
    EXPECT_EQ(written.error().code(), StatusCode::kResourceExhausted);
    EXPECT_NE(written.error().message().find(spot.path), std::string_view::npos);
  }
  EXPECT_GE(failed, 5u);  // open, three writes, sync
}

TEST(TableFault, AfterAFailedWriteTheBuilderStaysFailed) {
  io::SimFileSystem fs;
  const auto file = fs.Open("/table", io::OpenMode::kCreate).value();
  TableBuilder builder(file.get(), {.file_id = 1, .compression = Compression::kNone});
  fs.SetFault({.at_call = 1, .error = EIO});
  Status status;
  for (const Record& record : LargeTableRecords()) {
    status = builder.Add(record.key, record.tag, record.time_ms, record.value);
    if (!status.ok()) break;
  }
  ASSERT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_EQ(builder.Finish().code(), StatusCode::kIoError);
}

TEST_P(TableFaultWith, EveryCallThatFailsWhileReadingIsAnErrorOnce) {
  const std::vector<Record> records = LargeTableRecords();
  io::SimFileSystem fs;
  TableSpot spot{.fs = &fs, .compression = GetParam(), .at_last_level = true};
  ASSERT_TRUE(WriteTable(spot, records));
  // With a cache, index and filter are read in parts.
  bool has_cache = false;
  for (uint64_t call = 1;; ++call) {
    fs.SetFault({.at_call = call, .error = EIO});
    Status status;
    size_t seen = 0;
    spot.budget = NoRoomAtAll();
    const auto table = OpenTable(spot, NewCache(has_cache ? 64 << 10 : 0));
    if (!table) {
      status = table.error();
    } else {
      TableRead found;
      const auto read = (*table)->Get("key7", base::Hash("key7"), 100, false, &found);
      if (!read) status = read.error();
      const auto it = (*table)->NewIterator(false);
      for (it->SeekToFirst(); it->Valid(); it->Next(), ++seen) {
        ASSERT_EQ(Present(*it), records[seen]);
      }
      if (status.ok()) status = it->status();
      // The fault has passed: the same iterator reads on.
      const bool passed = fs.FaultHappened();
      it->SeekToLast();
      ASSERT_TRUE(!passed || (it->Valid() && it->status().ok()));
    }
    const bool happened = fs.FaultHappened();
    fs.ClearFault();
    if (!happened) {
      ASSERT_TRUE(status.ok());
      EXPECT_EQ(seen, records.size());
      if (std::exchange(has_cache, true)) break;
      call = 0;
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kIoError) << status.ToString();
    EXPECT_NE(status.message().find(spot.path), std::string_view::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(, TableFaultWith,
                         testing::Values(Compression::kNone, Compression::kLz4,
                                         Compression::kLz4ThenZstd));

}  // namespace
}  // namespace basalt::table
