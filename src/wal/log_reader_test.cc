#include "wal/log_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "wal/test_log.h"

namespace basalt::wal {
namespace {

/// What the reader has now, up to the end.
std::vector<std::string> ReadRest(LogReader* reader) {
  std::vector<std::string> payloads;
  while (true) {
    const auto record = reader->Next();
    EXPECT_TRUE(record) << record.error().ToString();
    if (!record || !*record) return payloads;
    EXPECT_EQ((*record)->lsn + 1, reader->next_lsn());
    payloads.emplace_back((*record)->payload);
  }
}

TEST(LogReader, FollowsTheWriterThroughFiles) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  LogReader reader(log.get(), fs.get(), 1);
  EXPECT_TRUE(ReadRest(&reader).empty());
  uint64_t written = 0;
  for (int round = 0; round < 20; ++round) {
    const uint64_t first = written + 1;
    for (int i = 0; i <= round * 7; ++i) {
      ASSERT_TRUE(Append(log.get(), TestPayload(++written)).ok());
    }
    if (round % 3 == 1) log->Rotate();
    EXPECT_EQ(ReadRest(&reader), TestPayloads(first, written));
    EXPECT_TRUE(ReadRest(&reader).empty());
  }
  for (const uint64_t from : {uint64_t{1}, uint64_t{2}, written / 2, written}) {
    LogReader later(log.get(), fs.get(), from);
    EXPECT_EQ(ReadRest(&later), TestPayloads(from, written));
  }
}

TEST(LogReader, ReadsRecordsThatAreLargerThanAChunk) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  std::vector<std::string> payloads;
  for (const size_t size : {10, 300'000, 5, 3'000'000, 262'144, 1}) {
    WriteBatch batch;
    batch.Put("key", std::string(size, static_cast<char>('a' + payloads.size())));
    payloads.emplace_back(batch.bytes());
    ASSERT_TRUE(Append(log.get(), payloads.back()).ok());
  }
  LogReader reader(log.get(), fs.get(), 1);
  EXPECT_EQ(ReadRest(&reader), payloads);
}

TEST(LogReader, IsOutOfRangeOnceTheFileIsGoneUnlessItHasComeThere) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
  LogReader begun(log.get(), fs.get(), 1);
  ASSERT_TRUE(begun.Next().value());
  log->Rotate();
  for (uint64_t i = 6; i <= 9; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
  ASSERT_TRUE(log->Sync(5).ok());
  log->SetFlushed(5);
  ASSERT_TRUE(log->RemoveObsolete(5).ok());
  EXPECT_EQ(ReadRest(&begun), TestPayloads(2, 9)) << "its file was open";
  LogReader late(log.get(), fs.get(), 5);
  const auto gone = late.Next();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(gone.error().sub_code(), SubCode::kLogGone);
  LogReader in_time(log.get(), fs.get(), 6);
  EXPECT_EQ(ReadRest(&in_time), TestPayloads(6, 9));
}

TEST(LogReader, FindsWhatIsKeptUpToSoManyBytes) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  uint64_t written = 0;
  for (int file = 0; file < 6; ++file) {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(++written)).ok());
    log->Rotate();
  }
  ASSERT_TRUE(log->Sync(written).ok());
  log->SetFlushed(written);
  const uint64_t all_bytes = log->live_bytes();
  ASSERT_TRUE(log->RemoveObsolete(written, all_bytes * 7 / 12).ok());
  EXPECT_EQ(log->live_bytes(), 0U) << "recovery needs none of what is kept";
  EXPECT_FALSE(LogReader(log.get(), fs.get(), 150).Next());
  LogReader kept(log.get(), fs.get(), 151);
  EXPECT_EQ(ReadRest(&kept), TestPayloads(151, written));
  ASSERT_TRUE(log->RemoveObsolete(written, 0).ok());
  EXPECT_FALSE(LogReader(log.get(), fs.get(), written).Next());
}

TEST(LogReader, ReadsFilesOfBeforeTheStart) {
  const auto fs = NewTestFileSystem();
  LogStart start;
  uint64_t written = 0;
  for (int opening = 0; opening < 4; ++opening) {
    std::unique_ptr<Log> log;
    log = StartLog(fs.get(), start, [&log](Lsn lsn) {
      log->SetFlushed(lsn);
      return Status();
    });
    LogReader from_the_first(log.get(), fs.get(), 1);
    EXPECT_EQ(ReadRest(&from_the_first), TestPayloads(1, written));
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(Append(log.get(), TestPayload(++written)).ok());
      if (i == 13) log->Rotate();
    }
    EXPECT_EQ(ReadRest(&from_the_first), TestPayloads(written - 29, written));
    if (opening % 2 == 0) {
      ASSERT_TRUE(log->Close().ok());
    }
    const Recovered recovered = RecoverAll(fs.get());
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    start = recovered.result.start;
  }
}

// A write that fails leaves bytes in the file, and its LSN is given again.
TEST(LogReader, NeverReadsARecordWhoseWriteFailed) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  LogReader reader(log.get(), fs.get(), 1);
  std::vector<std::string> expected;
  for (uint64_t i = 1; i <= 200; ++i) {
    // A write is cut short by a disk that has no more room.
    if (i % 5 == 0) {
      fs->SetFault(
          {.kind = io::Fault::Kind::kError, .at_call = 1, .error = ENOSPC, .sticky = true});
    }
    if (Append(log.get(), TestPayload(i)).ok()) expected.push_back(TestPayload(i));
    fs->ClearFault();
  }
  EXPECT_LT(expected.size(), 200U);
  EXPECT_EQ(ReadRest(&reader), expected);
}

TEST(LogReader, OfManyReadersBesideManyWritersEachSeesAllInOrder) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  constexpr uint64_t kWriters = 3;
  constexpr uint64_t kRecords = 500;
  std::atomic<uint64_t> running{kWriters};
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (uint64_t i = 0; i < kRecords; ++i) {
        EXPECT_TRUE(Append(log.get(), TestPayload(writer * kRecords + i)).ok());
        if (writer == 0 && i % 100 == 99) log->Rotate();
      }
      --running;
    });
  }
  std::vector<std::string> read[2];
  for (auto& payloads : read) {
    threads.emplace_back([&] {
      LogReader reader(log.get(), fs.get(), 1);
      bool is_last = false;
      while (!is_last) {
        is_last = running == 0;
        for (std::string& payload : ReadRest(&reader)) payloads.push_back(std::move(payload));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read[0].size(), kWriters * kRecords);
  EXPECT_TRUE(read[0] == read[1]);
}

}  // namespace
}  // namespace basalt::wal
