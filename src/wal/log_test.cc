#include "wal/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "wal/test_log.h"

namespace basalt::wal {
namespace {

io::Fault FailingCall(const std::string& operation, int error = EIO, uint64_t at_call = 1,
                      bool sticky = false) {
  return {.at_call = at_call,
          .error = error,
          .sticky = sticky,
          .matches = [operation](std::string_view name, std::string_view) {
            return name == operation;
          }};
}

uint64_t CountLogFiles(io::FileSystem* fs) {
  uint64_t count = 0;
  const auto names = fs->List(kTestDirectory);
  for (const std::string& name : names.value()) {
    count += ParseLogFileName(name).has_value();
  }
  return count;
}

TEST(Log, GivesBackWhatWasWritten) {
  const auto fs = NewTestFileSystem();
  {
    const auto log = StartLog(fs.get());
    for (uint64_t i = 1; i <= 100; ++i) {
      Lsn lsn = 0;
      ASSERT_TRUE(Append(log.get(), TestPayload(i), &lsn).ok());
      EXPECT_EQ(lsn, i);
    }
    EXPECT_EQ(log->last_lsn(), 100U);
    EXPECT_EQ(log->durable_lsn(), 0U);
  }
  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 100));
  EXPECT_EQ(recovered.result.records, 100U);
  EXPECT_EQ(recovered.result.start.next_lsn, 101U);
  EXPECT_EQ(recovered.result.start.durable_lsn, 0U);
  EXPECT_FALSE(recovered.result.closed_cleanly);
  EXPECT_EQ(recovered.result.tail_file, "");
}

TEST(Log, KeepsSequenceAndCountOfARecord) {
  const auto fs = NewTestFileSystem();
  auto log = StartLog(fs.get());
  Log::Ticket first = log->Stage(1000, 17, "batch");
  Log::Ticket second = log->Stage(1017, 2, "");
  ASSERT_TRUE(log->Wait(second).ok());
  ASSERT_TRUE(log->Wait(first).ok());
  std::vector<RecordView> records;
  const auto result =
      Recover(fs.get(), kTestDirectory, {}, RecoveryMode::kCheck, [&](const RecordView& record) {
        records.push_back(record);
        return Status();
      });
  ASSERT_TRUE(result);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].first_sequence, 1000U);
  EXPECT_EQ(records[0].count, 17U);
  EXPECT_EQ(records[1].first_sequence, 1017U);
  EXPECT_EQ(result->last_sequence, 1018U);
}

TEST(Log, StartWritesNothing) {
  const auto fs = NewTestFileSystem();
  auto log = StartLog(fs.get());
  EXPECT_EQ(CountLogFiles(fs.get()), 0U);
  log.reset();
  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok());
  EXPECT_TRUE(recovered.result.closed_cleanly);
  log = StartLog(fs.get(), recovered.result.start);
  EXPECT_TRUE(log->Close().ok());
  EXPECT_EQ(CountLogFiles(fs.get()), 0U);
}

TEST(Log, RecordsStagedTogetherAreOneWrite) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
  std::vector<Log::Ticket> tickets;
  for (uint64_t i = 2; i <= 50; ++i) tickets.push_back(log->Stage(i, 1, TestPayload(i)));
  fs->ResetCalls();
  for (Log::Ticket& ticket : tickets) ASSERT_TRUE(log->Wait(ticket).ok());
  EXPECT_EQ(fs->calls(), 1U);
  EXPECT_EQ(RecoverAll(fs.get()).payloads, TestPayloads(1, 50));
}

TEST(Log, DroppedTicketIsWrittenWithTheNextGroup) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  {
    const Log::Ticket dropped = log->Stage(1, 1, TestPayload(1));
  }
  log->Rotate();
  ASSERT_TRUE(Append(log.get(), TestPayload(2)).ok());
  {
    const Log::Ticket dropped = log->Stage(3, 1, TestPayload(3));
  }
  ASSERT_TRUE(log->Sync(3).ok());
  EXPECT_EQ(log->durable_lsn(), 3U);
  EXPECT_EQ(RecoverAll(fs.get()).payloads, TestPayloads(1, 3));
}

TEST(Log, RotationSeparatesGroupsIntoFiles) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  Log::Ticket first = log->Stage(1, 1, TestPayload(1));
  log->Rotate();
  log->Rotate();
  Log::Ticket second = log->Stage(2, 1, TestPayload(2));
  Log::Ticket third = log->Stage(3, 1, TestPayload(3));
  ASSERT_TRUE(log->Wait(third).ok());
  ASSERT_TRUE(log->Wait(first).ok());
  ASSERT_TRUE(log->Wait(second).ok());
  EXPECT_EQ(CountLogFiles(fs.get()), 2U);
  EXPECT_EQ(RecoverAll(fs.get(), 1).payloads, TestPayloads(2, 3));
  ASSERT_TRUE(log->RemoveObsolete(1).ok());
  EXPECT_EQ(CountLogFiles(fs.get()), 1U);
  ASSERT_TRUE(log->RemoveObsolete(3).ok());
  EXPECT_EQ(CountLogFiles(fs.get()), 1U) << "the current file stays";
  EXPECT_EQ(RecoverAll(fs.get(), 1).payloads, TestPayloads(2, 3));
}

TEST(Log, SyncCoversEveryRotatedFileAndTheirNames) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
    log->Rotate();
  }
  ASSERT_TRUE(log->Sync(3).ok());
  EXPECT_EQ(log->durable_lsn(), 5U) << "a sync carries what was written before it began";
  fs->ResetCalls();
  ASSERT_TRUE(log->Sync(5).ok());
  EXPECT_EQ(fs->calls(), 0U);
  fs->Crash(1, io::CrashMode::kNone);
  const Recovered recovered = RecoverAll(fs.get(), 0, 5);
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 5));
}

TEST(Log, ContinuesAfterRecovery) {
  const auto fs = NewTestFileSystem();
  LogStart start;
  for (uint64_t round = 0; round < 5; ++round) {
    const auto log = StartLog(fs.get(), start);
    for (uint64_t i = 1; i <= 10; ++i) {
      ASSERT_TRUE(Append(log.get(), TestPayload(round * 10 + i)).ok());
    }
    if (round % 2 == 1) {
      log->SetFlushed(log->last_lsn());
      ASSERT_TRUE(log->Close().ok());
    }
    const Recovered recovered = RecoverAll(fs.get());
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    EXPECT_EQ(recovered.payloads, TestPayloads(1, round * 10 + 10));
    EXPECT_EQ(recovered.result.closed_cleanly, round % 2 == 1);
    start = recovered.result.start;
  }
}

TEST(Log, CloseMakesAllDurableAndSaysSo) {
  const auto fs = NewTestFileSystem();
  {
    const auto log = StartLog(fs.get());
    for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
    ASSERT_TRUE(log->Close().ok());
    ASSERT_TRUE(log->Close().ok());
  }
  fs->Crash(1, io::CrashMode::kNone);
  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_TRUE(recovered.result.closed_cleanly);
  EXPECT_EQ(recovered.result.greatest_durable_lsn, 3U);
  EXPECT_EQ(recovered.result.start.durable_lsn, 3U);
  EXPECT_EQ(recovered.result.start.next_lsn, 4U);
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 3));

  const auto log = StartLog(fs.get(), recovered.result.start);
  fs->ResetCalls();
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(fs->calls(), 0U) << "nothing was written, so there is nothing to say";
}

TEST(Log, RecoveredRecordsThatAreNotKnownDurableAreFlushedBeforeASync) {
  const auto fs = NewTestFileSystem();
  {
    const auto log = StartLog(fs.get());
    for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
  }
  const Recovered recovered = RecoverAll(fs.get());
  std::vector<Lsn> flushed;
  const auto log = StartLog(fs.get(), recovered.result.start, [&](Lsn lsn) {
    flushed.push_back(lsn);
    return Status();
  });
  ASSERT_TRUE(Append(log.get(), TestPayload(4)).ok());
  ASSERT_TRUE(log->Sync(4).ok());
  EXPECT_EQ(flushed, std::vector<Lsn>{3});
  EXPECT_EQ(log->durable_lsn(), 4U);
  ASSERT_TRUE(Append(log.get(), TestPayload(5)).ok());
  ASSERT_TRUE(log->Sync(5).ok());
  EXPECT_EQ(flushed.size(), 1U);
}

TEST(Log, ARecordIsWrittenAtOnceWhereThatIsACopyIntoMemory) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());  // makes the file
  Log::Ticket second = log->Stage(2, 1, TestPayload(2));
  EXPECT_TRUE(second.is_written());
  EXPECT_EQ(RecoverAll(fs.get()).payloads, TestPayloads(1, 2));
  log->Rotate();
  Log::Ticket third = log->Stage(3, 1, TestPayload(3));
  Log::Ticket fourth = log->Stage(4, 1, TestPayload(4));
  EXPECT_FALSE(third.is_written()) << "it begins a file";
  EXPECT_FALSE(fourth.is_written()) << "a group is before it";
  EXPECT_TRUE(log->Wait(second).ok());
  EXPECT_TRUE(log->Wait(third).ok());
  EXPECT_TRUE(log->Wait(fourth).ok());
  EXPECT_TRUE(log->Stage(5, 1, TestPayload(5)).is_written());
  EXPECT_EQ(RecoverAll(fs.get()).payloads, TestPayloads(1, 5));
  ASSERT_TRUE(log->Sync(5).ok());
  EXPECT_EQ(log->durable_lsn(), 5U);
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(RecoverAll(fs.get(), 0, 5).payloads, TestPayloads(1, 5));
}

// After a write that failed behind LSN 1: the next record takes its LSN.
void ExpectLsn2InANewFile(Log* log, io::FileSystem* fs) {
  Lsn lsn = 0;
  ASSERT_TRUE(Append(log, TestPayload(2), &lsn).ok());
  EXPECT_EQ(lsn, 2U);
  EXPECT_EQ(CountLogFiles(fs), 2U) << "a sealed file is never written again";
  ASSERT_TRUE(log->Sync(2).ok());
}

TEST(Log, ARecordThatCannotBeWrittenAtOnceSealsItsFileAndLeavesItsLsn) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
  fs->SetFault(FailingCall("write"));
  Log::Ticket failed = log->Stage(2, 1, "failed");
  EXPECT_EQ(log->last_lsn(), 1U);
  EXPECT_FALSE(failed.is_written());
  EXPECT_EQ(log->Wait(failed).code(), StatusCode::kIoError);
  ASSERT_NO_FATAL_FAILURE(ExpectLsn2InANewFile(log.get(), fs.get()));
  EXPECT_EQ(RecoverAll(fs.get(), 0, 2).payloads, TestPayloads(1, 2));
}

TEST(Log, FailedWriteFailsItsGroupAndAllBehindItAndGivesTheirLsnsAgain) {
  for (const int error : {EIO, ENOSPC}) {
    const auto fs = NewTestFileSystem();
    const auto log = Log::Start(fs.get(), kTestDirectory, {}, {}).value();
    ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
    Log::Ticket second = log->Stage(2, 1, "second");
    Log::Ticket third = log->Stage(3, 1, "third");
    log->Rotate();
    Log::Ticket fourth = log->Stage(4, 1, "fourth");
    EXPECT_EQ(log->last_lsn(), 4U);
    fs->SetFault(FailingCall("write", error));
    const Status failed = log->Wait(third);
    EXPECT_EQ(failed.code(), error == EIO ? StatusCode::kIoError : StatusCode::kResourceExhausted);
    EXPECT_NE(failed.message().find("LSN 2"), std::string_view::npos) << failed.ToString();
    EXPECT_NE(failed.message().find("/db/000001.log"), std::string_view::npos);
    EXPECT_EQ(log->Wait(second).code(), failed.code());
    EXPECT_EQ(log->Wait(fourth).code(), failed.code());
    EXPECT_EQ(log->last_lsn(), 1U);
    ASSERT_NO_FATAL_FAILURE(ExpectLsn2InANewFile(log.get(), fs.get()));
    EXPECT_EQ(RecoverAll(fs.get(), 0, 2).payloads, TestPayloads(1, 2));
  }
}

TEST(Log, AsksBeforeItsFilesGrow) {
  const auto fs = NewTestFileSystem();
  constexpr uint64_t kStep = 4096;
  uint64_t granted = 0;
  bool may_grow = true;
  LogOptions options{.preallocate_bytes = kStep, .flush_through = {}};
  options.before_growth = [&](uint64_t bytes) {
    if (!may_grow) return Status(StatusCode::kResourceExhausted, "no more");
    granted = fs->BytesUsed() + bytes;
    return Status();
  };
  const auto log = Log::Start(fs.get(), kTestDirectory, {}, std::move(options)).value();
  uint64_t written = 0;
  for (; log->live_bytes() < 5 * kStep; ++written) {
    ASSERT_TRUE(Append(log.get(), TestPayload(written + 1)).ok());
    ASSERT_LE(log->live_bytes(), granted);
  }
  may_grow = false;
  Status refused;
  while (refused.ok() && log->live_bytes() < 10 * kStep) {
    refused = Append(log.get(), TestPayload(written + 1));
    written += refused.ok() ? 1 : 0;
  }
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_LE(log->live_bytes(), granted);
  EXPECT_EQ(Append(log.get(), TestPayload(written + 1)).code(), StatusCode::kResourceExhausted);
  may_grow = true;
  ASSERT_TRUE(Append(log.get(), TestPayload(written + 1)).ok());
  Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, written + 1));
}

// An open file keeps its space when it is removed.
TEST(Log, AFileThatIsRemovedIsClosed) {
  const std::filesystem::path directory = testing::TempDir() + "basalt_closed_log";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const auto log =
      Log::Start(io::FileSystem::Posix(), directory, {}, {.flush_through = {}}).value();
  Lsn lsn = 0;
  ASSERT_TRUE(Append(log.get(), TestPayload(1), &lsn).ok());
  log->Rotate();
  log->SetFlushed(lsn);
  ASSERT_TRUE(log->RemoveObsolete(lsn).ok());
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;  // one is this walk's own
    const std::string file = std::filesystem::read_symlink(open, ignored);
    EXPECT_FALSE(file.starts_with(directory.string())) << file;
  }
  EXPECT_TRUE(Append(log.get(), TestPayload(2)).ok());
  EXPECT_TRUE(log->Close().ok());
  std::filesystem::remove_all(directory);
}

TEST(Log, PartOfAFailedGroupIsNeverReplayedOnceItsLsnsAreWrittenAgain) {
  const auto fs = NewTestFileSystem();
  const auto log = Log::Start(fs.get(), kTestDirectory, {}, {}).value();
  ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
  std::vector<Log::Ticket> tickets;
  for (uint64_t i = 0; i < 5; ++i) tickets.push_back(log->Stage(2 + i, 1, "stale"));
  // The disk takes two of the five records and a part of the third; the truncation fails.
  const uint64_t record_bytes = 9 + 5;  // of header and payload
  fs->SetCapacity(fs->BytesUsed() + 2 * record_bytes + record_bytes / 2);
  fs->SetFault(FailingCall("truncate"));
  for (Log::Ticket& ticket : tickets) {
    EXPECT_EQ(log->Wait(ticket).code(), StatusCode::kResourceExhausted);
  }
  fs->ClearFault();
  fs->SetCapacity(0);
  EXPECT_EQ(RecoverAll(fs.get(), 0, 0, RecoveryMode::kCheck).payloads.size(), 3U)
      << "as long as nothing took their place, they look like any others";
  for (uint64_t i = 2; i <= 8; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
  Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 8));

  // Nor when the file that took their place is cut and goes on elsewhere.
  ASSERT_TRUE(fs->FlipBit("/db/000002.log", (kRecordsOffset + 50) * 8).ok());
  recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 1));
  recovered = RecoverAll(fs.get());
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 1));
}

TEST(Log, WritesResumeByThemselvesWhenTheFaultClears) {
  for (const char* operation : {"write", "open"}) {
    const auto fs = NewTestFileSystem();
    const auto log = StartLog(fs.get());
    ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
    log->Rotate();
    fs->SetFault(FailingCall(operation, ENOSPC, 1, true));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(Append(log.get(), "lost").code(), StatusCode::kResourceExhausted) << operation;
    }
    fs->ClearFault();
    for (uint64_t i = 2; i <= 4; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
    ASSERT_TRUE(log->Close().ok());
    const Recovered recovered = RecoverAll(fs.get());
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    EXPECT_EQ(recovered.payloads, TestPayloads(1, 4));
    EXPECT_TRUE(recovered.result.closed_cleanly);
  }
}

TEST(Log, FileWhoseCreationFailedHalfWayIsNotReplayedThoughItStays) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
  log->Rotate();
  // Header and records reach the second file, its write is then reported as failed, and the file
  // cannot be removed.
  ASSERT_TRUE(Append(log.get(), "stale").ok());
  const std::string orphan = io::ReadWholeFile(fs.get(), "/db/000002.log", 1 << 20).value();
  ASSERT_TRUE(fs->RemoveFile("/db/000002.log").ok());
  const Recovered before = RecoverAll(fs.get());
  ASSERT_EQ(before.payloads, TestPayloads(1, 1));
  LogStart start = before.result.start;
  start.next_file_number = 3;
  const auto again = StartLog(fs.get(), start);
  ASSERT_TRUE(Append(again.get(), TestPayload(2)).ok());
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000002.log", orphan).ok());
  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 2));
}

TEST(Log, FailedSyncSealsItsFileAndOnlyTablesMakeItsRecordsDurable) {
  for (const char* operation : {"sync", "syncdir"}) {
    const auto fs = NewTestFileSystem();
    std::vector<Lsn> flushed;
    Status flush_answer(StatusCode::kIoError, "cannot flush");
    const auto log = StartLog(fs.get(), {}, [&](Lsn lsn) {
      flushed.push_back(lsn);
      return flush_answer;
    });
    for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
    fs->SetFault(FailingCall(operation));
    const Status failed = log->Sync(2);
    EXPECT_EQ(failed.code(), StatusCode::kIoError);
    EXPECT_NE(failed.message().find("/db"), std::string_view::npos) << failed.ToString();
    EXPECT_EQ(log->durable_lsn(), 0U);
    EXPECT_TRUE(flushed.empty());
    fs->ClearFault();

    ASSERT_TRUE(Append(log.get(), TestPayload(4)).ok());
    EXPECT_EQ(CountLogFiles(fs.get()), 2U);
    const Status refused = log->Sync(4);
    EXPECT_EQ(refused.message(), "cannot flush");
    EXPECT_EQ(log->durable_lsn(), 0U);
    flush_answer = Status();
    ASSERT_TRUE(log->Sync(4).ok());
    EXPECT_EQ(log->durable_lsn(), 4U);
    EXPECT_EQ(flushed, (std::vector<Lsn>{3, 3}));
    fs->Crash(3, io::CrashMode::kNone);
    const Recovered recovered = RecoverAll(fs.get(), 3, 4);
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    EXPECT_EQ(recovered.payloads, TestPayloads(4, 4));
  }
}

TEST(Log, SyncPromisesOnlyWhatWasWrittenBeforeItBegan) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
  bool was_written = false;
  fs->SetObserver([&](uint64_t, std::string_view operation, std::string_view) {
    if (operation != "syncdir" || was_written) return;  // The file itself has been synced by now.
    was_written = true;
    ASSERT_TRUE(Append(log.get(), TestPayload(2)).ok());
  });
  ASSERT_TRUE(log->Sync(1).ok());
  ASSERT_TRUE(was_written);
  EXPECT_EQ(log->durable_lsn(), 1U);
  ASSERT_TRUE(log->Sync(2).ok());
  EXPECT_EQ(log->durable_lsn(), 2U);
  fs->Crash(1, io::CrashMode::kNone);
  EXPECT_EQ(RecoverAll(fs.get(), 0, 2).payloads, TestPayloads(1, 2));
}

TEST(Log, SyncOfWhatTablesHoldNeedsNoSync) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
  log->SetFlushed(2);
  fs->ResetCalls();
  ASSERT_TRUE(log->Sync(2).ok());
  EXPECT_EQ(fs->calls(), 0U);
  EXPECT_EQ(log->durable_lsn(), 2U);
  EXPECT_EQ(log->syncs(), 0U);
  ASSERT_TRUE(log->Sync(3).ok());
  EXPECT_EQ(log->syncs(), 1U);
}

TEST(Log, FilesOfBeforeStartAreRemovedWhenTheirRecordsAreFlushed) {
  const auto fs = NewTestFileSystem();
  {
    const auto log = StartLog(fs.get());
    for (uint64_t i = 1; i <= 4; ++i) {
      ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
      log->Rotate();
    }
  }
  const Recovered recovered = RecoverAll(fs.get());
  const auto log = StartLog(fs.get(), recovered.result.start);
  ASSERT_TRUE(Append(log.get(), TestPayload(5)).ok());
  const uint64_t bytes = log->live_bytes();
  log->SetFlushed(4);
  ASSERT_TRUE(log->RemoveObsolete(2).ok());
  EXPECT_EQ(CountLogFiles(fs.get()), 3U);
  fs->SetFault(FailingCall("remove"));
  EXPECT_EQ(log->RemoveObsolete(4).code(), StatusCode::kIoError);
  EXPECT_EQ(CountLogFiles(fs.get()), 2U) << "the other is gone";
  ASSERT_TRUE(log->RemoveObsolete(4).ok());
  EXPECT_EQ(CountLogFiles(fs.get()), 1U);
  EXPECT_LT(log->live_bytes(), bytes);
  EXPECT_EQ(RecoverAll(fs.get(), 4, 4).payloads, TestPayloads(5, 5));
}

TEST(Log, CloseReportsWhatItCouldNotMakeDurable) {
  for (const char* operation : {"sync", "syncdir"}) {
    const auto fs = NewTestFileSystem();
    const auto log = StartLog(fs.get());
    ASSERT_TRUE(Append(log.get(), TestPayload(1)).ok());
    fs->SetFault(FailingCall(operation));
    const Status closed = log->Close();
    EXPECT_EQ(closed.code(), StatusCode::kIoError);
    EXPECT_EQ(log->Close().ToString(), closed.ToString());
    const Recovered recovered = RecoverAll(fs.get());
    EXPECT_FALSE(recovered.result.closed_cleanly);
    EXPECT_EQ(recovered.payloads, TestPayloads(1, 1));
  }
}

TEST(Log, LargePayloadsAreWrittenFromWhereTheyLie) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  std::vector<std::string> payloads;
  for (int i = 0; i < 12; ++i) {
    const size_t bytes = i % 3 == 1 ? (size_t{1} << 20) + static_cast<size_t>(i % 2) : 100;
    payloads.emplace_back(bytes, static_cast<char>('a' + i));
  }
  // Staged together, and waited for in another order; one that nobody waits for is written, too.
  {
    std::vector<Log::Ticket> tickets;
    for (size_t i = 0; i < payloads.size(); ++i) {
      tickets.push_back(log->Stage(i + 1, 1, payloads[i]));
      if (i == 5) log->Rotate();
    }
    for (size_t i = tickets.size(); i-- > 2;) EXPECT_TRUE(log->Wait(tickets[i]).ok()) << i;
  }
  EXPECT_EQ(RecoverAll(fs.get()).payloads, payloads);
  EXPECT_EQ(log->last_lsn(), payloads.size());
}

TEST(Log, ALargePayloadThatCannotBeWrittenFailsWithAllBehindIt) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  const std::string large(size_t{2} << 20, 'x');
  ASSERT_TRUE(Append(log.get(), "before").ok());
  fs->SetFault({.at_call = 1, .error = EIO, .matches = [](std::string_view operation, auto) {
                  return operation == "write";
                }});
  Log::Ticket first = log->Stage(2, 1, large);
  Log::Ticket second = log->Stage(3, 1, "behind");
  EXPECT_EQ(log->Wait(first).code(), StatusCode::kIoError);
  EXPECT_EQ(log->Wait(second).code(), StatusCode::kIoError);
  fs->ClearFault();
  ASSERT_TRUE(Append(log.get(), large).ok());
  EXPECT_EQ(RecoverAll(fs.get()).payloads, (std::vector<std::string>{"before", large}));
}

TEST(Log, LargeRecordsGoThroughAndTheirBufferIsNotKept) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  const std::string large(5 << 20, 'x');
  ASSERT_TRUE(Append(log.get(), large).ok());
  ASSERT_TRUE(Append(log.get(), "small").ok());
  EXPECT_EQ(RecoverAll(fs.get()).payloads, (std::vector<std::string>{large, "small"}));
  EXPECT_GT(log->bytes_written(), large.size());
}

}  // namespace
}  // namespace basalt::wal
