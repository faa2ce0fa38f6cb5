#include "wal/recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wal/log_scan.h"
#include "wal/lost_files.h"
#include "wal/test_log.h"

namespace basalt::wal {
namespace {

/// What a crash may leave of a file's header.
constexpr std::string_view kTornHeader(kLogMagic, sizeof kLogMagic);

/// Where each record of a log lies, and what names it as durable.
struct Layout {
  struct Record {
    std::string file;
    uint64_t begin;
    uint64_t end;
    Lsn claims_durable;
  };
  std::vector<Record> records;  // Of LSN 1, 2, ...
  std::vector<Lsn> header_claims;
};

Layout ReadLayout(io::FileSystem* fs) {
  Layout layout;
  const auto names = fs->List(kTestDirectory);
  for (const std::string& name : names.value()) {
    if (!ParseLogFileName(name)) continue;
    const std::string path = io::JoinPath(kTestDirectory, name);
    const std::string bytes = io::ReadWholeFile(fs, path, 1 << 20).value();
    const auto header = DecodeFileHeader(std::string_view(bytes).substr(0, kRecordsOffset), path);
    if (!*header) continue;  // A torn creation.
    layout.header_claims.push_back((*header)->durable_lsn);
    for (uint64_t offset = kRecordsOffset;;) {
      const auto record = ReadRecord(bytes, offset, **header);
      if (!record) break;
      const uint64_t end = offset + record->framed_bytes;
      layout.records.push_back({path, offset, end, record->durable_lsn});
      offset = end;
    }
  }
  return layout;
}

/// Three files: 1..4, 5..8, 9..12; synced after 2, 6 and 10, so that 10 is durable and 11 says so.
std::unique_ptr<io::SimFileSystem> ThreeFiles() {
  auto fs = NewTestFileSystem();
  const auto log = Log::Start(fs.get(), kTestDirectory, {}, {}).value();
  for (uint64_t i = 1; i <= 12; ++i) {
    EXPECT_TRUE(Append(log.get(), TestPayload(i)).ok());
    if (i % 4 == 2) {
      EXPECT_TRUE(log->Sync(i).ok());
    }
    if (i % 4 == 0) log->Rotate();
  }
  return fs;
}

void Truncate(io::FileSystem* fs, const std::string& path, uint64_t size) {
  const auto file = fs->Open(path, io::OpenMode::kReadWrite);
  ASSERT_TRUE(file && (*file)->Truncate(size).ok());
}

void Overwrite(io::FileSystem* fs, const std::string& path, uint64_t offset,
               std::string_view bytes) {
  const auto file = fs->Open(path, io::OpenMode::kReadWrite);
  ASSERT_TRUE(file && (*file)->WriteAt(offset, bytes).ok());
}

bool Mentions(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

std::string AllBytes(io::FileSystem* fs) {
  std::string all;
  for (const std::string directory : {"/db", "/db/lost"}) {
    if (!fs->Exists(directory).value()) continue;
    const auto names = fs->List(directory);
    for (const std::string& name : names.value()) {
      const std::string path = io::JoinPath(directory, name);
      all += path;
      if (!fs->IsDirectory(path).value()) all += io::ReadWholeFile(fs, path, 1 << 26).value();
    }
  }
  return all;
}

TEST(Recovery, EmptyDirectoryIsACleanlyClosedLog) {
  const auto fs = NewTestFileSystem();
  const Recovered recovered = RecoverAll(fs.get(), 7, 7);
  ASSERT_TRUE(recovered.status.ok());
  EXPECT_TRUE(recovered.result.closed_cleanly);
  EXPECT_EQ(recovered.result.start.next_lsn, 8U);
  EXPECT_EQ(recovered.result.start.durable_lsn, 7U);
  EXPECT_EQ(recovered.result.start.next_file_number, 1U);
}

TEST(Recovery, MissingLogIsCorruptionWhenTheManifestKnowsOfDurableRecords) {
  const auto fs = NewTestFileSystem();
  const Recovered recovered = RecoverAll(fs.get(), 7, 9);
  EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption);
  EXPECT_TRUE(Mentions(recovered.status, "LSN 8 to 9")) << recovered.status.ToString();
}

TEST(Recovery, StartsBehindTheFlushedLsn) {
  const auto fs = ThreeFiles();
  for (Lsn flushed = 0; flushed <= 12; ++flushed) {
    const Recovered recovered = RecoverAll(fs.get(), flushed);
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    EXPECT_EQ(recovered.payloads, TestPayloads(flushed + 1, 12)) << flushed;
    EXPECT_EQ(recovered.result.start.next_lsn, 13U);
    EXPECT_EQ(recovered.result.start.next_file_number, 4U);
    EXPECT_EQ(recovered.result.greatest_durable_lsn, std::max<Lsn>(flushed, 10));
  }
}

TEST(Recovery, LogThatEndsBeforeTheFlushedLsnContinuesBehindIt) {
  const auto fs = ThreeFiles();
  Recovered recovered = RecoverAll(fs.get(), 20, 20);
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.result.start.next_lsn, 21U);
  const auto log = StartLog(fs.get(), recovered.result.start);
  ASSERT_TRUE(Append(log.get(), TestPayload(21)).ok());
  ASSERT_TRUE(log->Sync(21).ok());
  recovered = RecoverAll(fs.get(), 20, 21);
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(21, 21));
}

TEST(Recovery, TornTailIsCutKeptAndReportedAtEveryLength) {
  const auto whole = ThreeFiles();
  const Layout layout = ReadLayout(whole.get());
  const auto& last = layout.records.back();
  for (uint64_t size = last.begin; size < last.end; ++size) {
    const auto fs = whole->Clone();
    Truncate(fs.get(), last.file, size);
    const std::string tail =
        io::ReadWholeFile(fs.get(), last.file, 1 << 20).value().substr(last.begin);
    const Recovered recovered = RecoverAll(fs.get());
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    EXPECT_EQ(recovered.payloads, TestPayloads(1, 11));
    EXPECT_EQ(recovered.result.start.next_lsn, 12U);
    // Zeros are what a preallocated file has behind its end: a log that begins anew draws a number
    // at random, so that a record's first byte, of its checksum, is one in 256 times.
    if (tail.find_first_not_of('\0') == tail.npos) {
      EXPECT_EQ(recovered.result.tail_file, "");
      continue;
    }
    EXPECT_EQ(recovered.result.tail_file, last.file);
    EXPECT_EQ(recovered.result.tail_offset, last.begin);
    ASSERT_EQ(recovered.result.moved_to_lost.size(), 1U);
    const std::string kept =
        io::ReadWholeFile(fs.get(), recovered.result.moved_to_lost[0], 1 << 20).value();
    EXPECT_EQ(kept.size(), recovered.result.tail_bytes_cut);
    EXPECT_EQ(tail.substr(0, kept.size()), kept);
    EXPECT_EQ(fs->FileSize(last.file).value(), last.begin);
    EXPECT_FALSE(recovered.result.closed_cleanly);

    const Recovered again = RecoverAll(fs.get());
    EXPECT_EQ(again.payloads, TestPayloads(1, 11));
    EXPECT_EQ(again.result.tail_file, "") << "it is cut once";
  }
}

TEST(Recovery, CheckReportsATailAndWritesNothing) {
  const auto fs = ThreeFiles();
  const Layout layout = ReadLayout(fs.get());
  Truncate(fs.get(), layout.records.back().file, layout.records.back().end - 30);
  const std::string before = AllBytes(fs.get());
  const Recovered checked = RecoverAll(fs.get(), 0, 0, RecoveryMode::kCheck);
  ASSERT_TRUE(checked.status.ok());
  EXPECT_EQ(AllBytes(fs.get()), before);
  const Recovered opened = RecoverAll(fs.get());
  EXPECT_EQ(checked.payloads, opened.payloads);
  EXPECT_EQ(checked.result.tail_file, opened.result.tail_file);
  EXPECT_EQ(checked.result.tail_offset, opened.result.tail_offset);
  EXPECT_EQ(checked.result.tail_bytes_cut, opened.result.tail_bytes_cut);
  EXPECT_GT(opened.result.tail_bytes_cut, 0U);
}

TEST(Recovery, FlippedBitIsNeverSilentlyWrong) {
  const auto whole = ThreeFiles();
  const Layout layout = ReadLayout(whole.get());
  ASSERT_EQ(layout.records.size(), 12U);
  uint64_t refused = 0;
  uint64_t cut = 0;
  for (const std::string file : {"/db/000001.log", "/db/000002.log", "/db/000003.log"}) {
    const uint64_t size = whole->FileSize(file).value();
    for (uint64_t byte = 0; byte < size; ++byte) {
      const auto fs = whole->Clone();
      ASSERT_TRUE(fs->FlipBit(file, byte * 8 + byte % 8).ok());
      const auto damaged =
          std::find_if(layout.records.begin(), layout.records.end(), [&](const auto& record) {
            return record.file == file && record.begin <= byte && byte < record.end;
          });
      const Lsn lsn = static_cast<Lsn>(damaged - layout.records.begin()) + 1;
      Lsn durable = *std::max_element(layout.header_claims.begin(), layout.header_claims.end());
      for (auto record = layout.records.begin(); record != layout.records.end(); ++record) {
        if (record != damaged) durable = std::max(durable, record->claims_durable);
      }
      const Recovered recovered = RecoverAll(fs.get());
      if (damaged == layout.records.end()) {  // A header has a copy.
        ASSERT_TRUE(recovered.status.ok()) << file << " " << byte;
        ASSERT_EQ(recovered.payloads, TestPayloads(1, 12)) << file << " " << byte;
      } else if (lsn <= durable) {
        ++refused;
        ASSERT_EQ(recovered.status.code(), StatusCode::kCorruption) << file << " " << byte;
        ASSERT_TRUE(Mentions(recovered.status, file)) << recovered.status.ToString();
        ASSERT_TRUE(Mentions(recovered.status, "offset " + std::to_string(damaged->begin)));
        ASSERT_TRUE(
            Mentions(recovered.status, "LSN " + std::to_string(lsn) + " to " + std::to_string(lsn)))
            << recovered.status.ToString();
        ASSERT_TRUE(Mentions(recovered.status, "basalt repair /db"));
      } else {
        ++cut;
        ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
        ASSERT_EQ(recovered.payloads, TestPayloads(1, lsn - 1)) << file << " " << byte;
        ASSERT_EQ(recovered.result.tail_file, file);
        ASSERT_EQ(recovered.result.tail_offset, damaged->begin);
      }
    }
  }
  EXPECT_GT(refused, 500U);
  EXPECT_GT(cut, 50U);
}

TEST(Recovery, DamageBelowTheFlushedLsnDoesNotMatter) {
  const auto whole = ThreeFiles();
  const Layout layout = ReadLayout(whole.get());
  for (Lsn flushed = 1; flushed <= 11; ++flushed) {
    for (Lsn damaged = 1; damaged <= flushed; ++damaged) {
      const auto fs = whole->Clone();
      const auto& record = layout.records[damaged - 1];
      ASSERT_TRUE(fs->FlipBit(record.file, (record.begin + 20) * 8).ok());
      const Recovered recovered = RecoverAll(fs.get(), flushed, flushed);
      ASSERT_TRUE(recovered.status.ok())
          << flushed << " " << damaged << " " << recovered.status.ToString();
      EXPECT_EQ(recovered.payloads, TestPayloads(flushed + 1, 12));
      EXPECT_EQ(recovered.result.tail_file, "");

      // And the log goes on behind a file with a hole.
      const auto log = StartLog(fs.get(), recovered.result.start);
      ASSERT_TRUE(Append(log.get(), TestPayload(13)).ok());
      EXPECT_EQ(RecoverAll(fs.get(), flushed, flushed).payloads, TestPayloads(flushed + 1, 13));
    }
  }
}

TEST(Recovery, MissingFileIsCorruptionWhereItHeldDurableRecords) {
  for (uint64_t number = 1; number <= 3; ++number) {
    const auto fs = ThreeFiles();
    ASSERT_TRUE(fs->RemoveFile(io::JoinPath(kTestDirectory, LogFileName(number))).ok());
    const Recovered recovered = RecoverAll(fs.get());
    if (number == 3) {  // Whose header was the only one to know of more than 4 .. 8.
      EXPECT_EQ(recovered.payloads, TestPayloads(1, 8));
      continue;
    }
    EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption) << number;
    const Lsn first = (number - 1) * 4 + 1;
    EXPECT_TRUE(Mentions(recovered.status,
                         "LSN " + std::to_string(first) + " to " + std::to_string(first + 3)))
        << recovered.status.ToString();
    EXPECT_TRUE(RecoverAll(fs.get(), number * 4, 0).status.ok()) << "unless tables hold them";
  }
}

TEST(Recovery, FileCutExactlyBetweenRecordsIsNoticed) {
  const auto whole = ThreeFiles();
  const Layout layout = ReadLayout(whole.get());
  for (Lsn lsn = 1; lsn <= 8; ++lsn) {  // The first that is gone.
    const auto fs = whole->Clone();
    Truncate(fs.get(), layout.records[lsn - 1].file, layout.records[lsn - 1].begin);
    const Recovered recovered = RecoverAll(fs.get());
    EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption) << lsn;
    EXPECT_TRUE(Mentions(recovered.status, layout.records[lsn - 1].file));
    EXPECT_TRUE(
        Mentions(recovered.status, "offset " + std::to_string(layout.records[lsn - 1].begin)));
  }
}

TEST(Recovery, LostMiddleThatWasNeverDurableEndsTheLogThere) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  for (uint64_t i = 1; i <= 9; ++i) {
    ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
    if (i % 3 == 0) log->Rotate();
  }
  ASSERT_TRUE(fs->RemoveFile("/db/000002.log").ok());
  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 3));
  EXPECT_EQ(recovered.result.moved_to_lost, std::vector<std::string>{"/db/lost/000003.log"});
  EXPECT_EQ(recovered.result.tail_file, "/db/000003.log");
  EXPECT_EQ(recovered.result.start.next_file_number, 4U) << "above what lies in lost/";
  EXPECT_FALSE(fs->Exists("/db/000003.log").value());
  EXPECT_EQ(RecoverAll(fs.get()).result.start.next_file_number, 4U);
}

TEST(Recovery, RepairKeepsWhatLiesBeforeAGapAndMovesTheRest) {
  const auto fs = ThreeFiles();
  const Layout layout = ReadLayout(fs.get());
  ASSERT_TRUE(fs->FlipBit("/db/000002.log", (layout.records[5].begin + 20) * 8).ok());
  EXPECT_EQ(RecoverAll(fs.get()).status.code(), StatusCode::kCorruption);
  const Recovered repaired = RecoverAll(fs.get(), 0, 10, RecoveryMode::kRepair);
  ASSERT_TRUE(repaired.status.ok()) << repaired.status.ToString();
  EXPECT_EQ(repaired.payloads, TestPayloads(1, 5));
  EXPECT_EQ(repaired.result.first_lsn_lost, 6U);
  EXPECT_EQ(repaired.result.last_lsn_lost, 10U);
  EXPECT_EQ(repaired.result.start.durable_lsn, 5U);
  EXPECT_EQ(repaired.result.moved_to_lost.size(), 2U);
  const Recovered opened = RecoverAll(fs.get(), 0, repaired.result.start.durable_lsn);
  ASSERT_TRUE(opened.status.ok()) << opened.status.ToString();
  EXPECT_EQ(opened.payloads, TestPayloads(1, 5));
  EXPECT_EQ(opened.result.tail_file, "");
}

TEST(Recovery, CutSurvivesAPowerCut) {
  const auto fs = NewTestFileSystem();
  {
    const auto log = StartLog(fs.get());
    for (uint64_t i = 1; i <= 6; ++i) {
      ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
      if (i % 3 == 0) log->Rotate();
    }
  }
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000003.log", std::string(4096, '\0')).ok());
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000004.log", kTornHeader).ok());
  for (const char* path : {"/db/000001.log", "/db/000002.log"}) {
    ASSERT_TRUE(fs->Open(path, io::OpenMode::kReadWrite).value()->Sync().ok());
  }
  const auto tail = ReadLayout(fs.get()).records[1];
  ASSERT_TRUE(fs->FlipBit(tail.file, (tail.begin + 50) * 8).ok());
  const Recovered recovered = RecoverAll(fs.get());
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 1));
  fs->Crash(1, io::CrashMode::kNone);
  EXPECT_EQ(fs->FileSize(tail.file).value(), tail.begin);
  EXPECT_EQ(fs->List(kTestDirectory).value(), (std::vector<std::string>{"000001.log", "lost"}));
  EXPECT_EQ(recovered.result.moved_to_lost.size(), 3U);
  for (const std::string& path : recovered.result.moved_to_lost) {
    EXPECT_GT(fs->FileSize(path).value_or(0), 0U) << path;
  }
}

TEST(Recovery, FileThatIsNotTheOneTheNextHeaderNamesIsCorruption) {
  using Change = void (*)(FileHeader*);
  for (const Change change : {+[](FileHeader* h) { h->previous_running_hash ^= 1; },
                              +[](FileHeader* h) {
                                h->previous_file_id ^= 1;
                                h->first_lsn = 6;
                              },
                              +[](FileHeader* h) { h->previous_file_id ^= 1; },
                              +[](FileHeader* h) {
                                h->previous_file_id ^= 1;
                                h->first_lsn = 3;
                              },
                              +[](FileHeader* h) { h->previous_length += 8; },
                              +[](FileHeader* h) { h->previous_last_lsn = 3; }}) {
    const auto fs = ThreeFiles();
    const std::string path = "/db/000002.log";
    const std::string bytes = io::ReadWholeFile(fs.get(), path, 1 << 20).value();
    FileHeader header =
        (*DecodeFileHeader(std::string_view(bytes).substr(0, kRecordsOffset), path)).value();
    change(&header);
    Overwrite(fs.get(), path, 0, EncodeFileHeader(header));
    const Recovered recovered = RecoverAll(fs.get());
    EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption);
    EXPECT_TRUE(recovered.payloads.empty());
  }
}

/// A log of database `id`, in one file that begins behind `last`: two records.
void WriteLogOf(io::FileSystem* fs, uint64_t id, uint64_t file_number, Lsn last = 0) {
  const auto log = StartLog(fs, {.next_file_number = file_number,
                                 .database_id = id,
                                 .next_lsn = last + 1,
                                 .durable_lsn = last,
                                 .previous_last_lsn = last});
  for (Lsn lsn = last + 1; lsn <= last + 2; ++lsn) {
    ASSERT_TRUE(Append(log.get(), TestPayload(lsn)).ok());
  }
}

TEST(Recovery, LogOfAnotherDatabaseIsRefusedAndMovedAsideByRepair) {
  for (const uint64_t stranger : {uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    // Alone; before and behind the right one.
    const auto fs = NewTestFileSystem();
    WriteLogOf(fs.get(), 0xBAD, stranger, 100);
    const std::string path = io::JoinPath(kTestDirectory, LogFileName(stranger));
    const bool is_alone = stranger == 2;
    if (!is_alone) WriteLogOf(fs.get(), 0xC0FFEE, 2);
    const std::string before = AllBytes(fs.get());
    for (const RecoveryMode mode : {RecoveryMode::kOpen, RecoveryMode::kCheck}) {
      const Recovered refused = RecoverAll(fs.get(), 0, 0, mode, 0xC0FFEE);
      EXPECT_EQ(refused.status.code(), StatusCode::kCorruption);
      for (const std::string_view part :
           {std::string_view(path), std::string_view("0x0000000000000bad"),
            std::string_view("0x0000000000c0ffee"), std::string_view("basalt repair /db")}) {
        EXPECT_TRUE(Mentions(refused.status, part)) << refused.status.ToString();
      }
      EXPECT_EQ(AllBytes(fs.get()), before);
    }
    const Recovered repaired = RecoverAll(fs.get(), 0, 0, RecoveryMode::kRepair, 0xC0FFEE);
    ASSERT_TRUE(repaired.status.ok()) << repaired.status.ToString();
    EXPECT_EQ(repaired.result.first_lsn_lost, 0U);
    EXPECT_EQ(repaired.result.moved_to_lost,
              std::vector<std::string>{io::JoinPath("/db/lost", LogFileName(stranger))});
    const Recovered opened = RecoverAll(fs.get(), 0, 0, RecoveryMode::kOpen, 0xC0FFEE);
    ASSERT_TRUE(opened.status.ok()) << opened.status.ToString();
    EXPECT_EQ(opened.payloads, TestPayloads(1, is_alone ? 0 : 2));
    EXPECT_TRUE(opened.result.moved_to_lost.empty());
  }
}

TEST(Recovery, LogThatNamesNoDatabaseIsTakenAndGoesOnInAFileThatDoes) {
  const auto fs = NewTestFileSystem();
  WriteLogOf(fs.get(), 0, 1);
  const Recovered old = RecoverAll(fs.get(), 0, 0, RecoveryMode::kOpen, 0xC0FFEE);
  ASSERT_TRUE(old.status.ok()) << old.status.ToString();
  ASSERT_TRUE(Append(StartLog(fs.get(), old.result.start).get(), TestPayload(3)).ok());
  const std::string bytes = io::ReadWholeFile(fs.get(), "/db/000002.log", 1 << 20).value();
  EXPECT_EQ(base::Load<uint64_t>(&bytes[88]), 0xC0FFEEU);
  const Recovered both = RecoverAll(fs.get(), 0, 0, RecoveryMode::kOpen, 0xC0FFEE);
  ASSERT_TRUE(both.status.ok()) << both.status.ToString();
  EXPECT_EQ(both.payloads, TestPayloads(1, 3));
  EXPECT_EQ(RecoverAll(fs.get(), 0, 0, RecoveryMode::kOpen, 0xBAD).status.code(),
            StatusCode::kCorruption);
}

TEST(Recovery, CrashOrErrorAtAnyCallOfACutCanBeRepeated) {
  const auto torn = ThreeFiles();
  const Layout layout = ReadLayout(torn.get());
  // LSN 6 is damaged, and everything behind it was never durable as far as the rest says.
  const auto damage = [&](io::SimFileSystem* fs) {
    EXPECT_TRUE(fs->FlipBit("/db/000002.log", (layout.records[5].begin + 20) * 8).ok());
  };
  for (const bool power_cut : {false, true}) {
    for (uint64_t call = 1;; ++call) {
      const auto fs = torn->Clone();
      damage(fs.get());
      if (power_cut) {
        fs->ResetCalls();
        io::SimFileSystem* const raw = fs.get();
        fs->SetObserver([raw, call](uint64_t number, std::string_view, std::string_view) {
          if (number == call) raw->Crash(call);
        });
      } else {
        fs->SetFault({.at_call = call, .error = EIO, .sticky = call % 2 == 0});
      }
      const Recovered first = RecoverAll(fs.get(), 0, 0, RecoveryMode::kRepair);
      const bool is_beyond = fs->calls() < call;
      fs->SetObserver({});
      fs->ClearFault();
      EXPECT_TRUE(first.status.ok() || first.status.code() == StatusCode::kIoError)
          << call << first.status.ToString();
      const Recovered second = RecoverAll(fs.get(), 0, 0, RecoveryMode::kRepair);
      ASSERT_TRUE(second.status.ok()) << call << " " << second.status.ToString();
      if (!power_cut) {
        EXPECT_EQ(second.payloads, TestPayloads(1, 5)) << call;
      }
      EXPECT_GE(second.payloads.size(), 2U) << call;
      EXPECT_LE(second.payloads.size(), 5U) << call;
      const Recovered third = RecoverAll(fs.get());
      ASSERT_TRUE(third.status.ok()) << call << " " << third.status.ToString();
      EXPECT_EQ(third.payloads, second.payloads) << call;
      if (is_beyond) break;
      ASSERT_LT(call, 1000U);
    }
  }
}

TEST(Recovery, ReadErrorIsReturnedAndNeverTakenForATail) {
  const auto whole = ThreeFiles();
  for (uint64_t call = 1;; ++call) {
    const auto fs = whole->Clone();
    fs->SetFault({.at_call = call, .error = EIO});
    const std::string before = AllBytes(whole.get());
    const Recovered recovered = RecoverAll(fs.get());
    const bool happened = fs->FaultHappened();
    fs->ClearFault();
    if (!happened) {
      EXPECT_TRUE(recovered.status.ok());
      break;
    }
    EXPECT_EQ(recovered.status.code(), StatusCode::kIoError) << call;
    EXPECT_EQ(AllBytes(fs.get()), before) << call;
  }
}

TEST(Recovery, ErrorOfTheCallbackIsReturnedAndNothingIsCut) {
  const auto fs = ThreeFiles();
  const Layout layout = ReadLayout(fs.get());
  Truncate(fs.get(), layout.records.back().file, layout.records.back().end - 30);
  const std::string before = AllBytes(fs.get());
  const auto result =
      Recover(fs.get(), kTestDirectory, {}, RecoveryMode::kOpen, [](const RecordView& record) {
        return record.lsn == 4 ? Status(StatusCode::kResourceExhausted, "full") : Status();
      });
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(AllBytes(fs.get()), before);
}

TEST(Recovery, TornFileCreationIsRemovedOrKeptInLost) {
  const auto whole = ThreeFiles();
  FileHeader header{};
  header.file_id = 4;
  header.file_number = 4;
  header.first_lsn = 13;
  header.previous_last_lsn = 12;
  const std::string head = EncodeFileHeader(header);
  const std::string torn[] = {"", std::string(5000, '\0'), head.substr(0, 100),
                              std::string(1024, '\0') + "x"};
  for (const std::string& bytes : torn) {
    const auto fs = whole->Clone();
    ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000004.log", bytes).ok());
    const Recovered recovered = RecoverAll(fs.get());
    ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
    EXPECT_EQ(recovered.payloads, TestPayloads(1, 12));
    EXPECT_FALSE(fs->Exists("/db/000004.log").value());
    EXPECT_EQ(recovered.result.start.next_file_number, 5U);
    const bool is_kept = NonZeroEnd(bytes) > 0;
    EXPECT_EQ(fs->Exists("/db/lost/000004.log").value(), is_kept);
    EXPECT_EQ(recovered.result.moved_to_lost.size(), is_kept ? 1U : 0U);
  }
}

TEST(Recovery, AFileNumberThatNoneCouldFollowIsRefused) {
  const auto fs = ThreeFiles();
  const std::string path = "/db/18446744073709551615.log";
  ASSERT_TRUE(fs->Open(path, io::OpenMode::kCreate));
  const std::string before = AllBytes(fs.get());
  const Recovered recovered = RecoverAll(fs.get());
  EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption);
  EXPECT_NE(recovered.status.message().find(path), std::string_view::npos);
  EXPECT_EQ(AllBytes(fs.get()), before);
}

TEST(Recovery, ANumberInLostThatNoneCouldFollowIsNotCounted) {
  const auto fs = ThreeFiles();
  ASSERT_TRUE(fs->CreateDirectory("/db/lost").ok());
  ASSERT_TRUE(fs->Open("/db/lost/18446744073709551615.log", io::OpenMode::kCreate));
  EXPECT_EQ(RecoverAll(fs.get()).result.start.next_file_number, 4U);
}

TEST(Recovery, DurableFileThatLostBothHeaderCopiesIsNamed) {
  const auto fs = ThreeFiles();
  Overwrite(fs.get(), "/db/000002.log", 0, std::string(kRecordsOffset, 'x'));
  const Recovered recovered = RecoverAll(fs.get());
  EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption);
  EXPECT_TRUE(Mentions(recovered.status, "/db/000002.log at offset 0"))
      << recovered.status.ToString();
  EXPECT_TRUE(Mentions(recovered.status, "LSN 5 to 8"));
}

TEST(Recovery, OverwrittenHeaderOfTheLastFileIsCorruptionThoughNothingNamesItDurable) {
  const auto whole = ThreeFiles();
  const std::string path = "/db/000003.log";
  for (const size_t size : {size_t{600}, size_t{1024}, size_t{3000}}) {
    const auto fs = whole->Clone();
    Overwrite(fs.get(), path, 0, std::string(size, 'x'));
    const std::string before = AllBytes(fs.get());
    for (const RecoveryMode mode : {RecoveryMode::kCheck, RecoveryMode::kOpen}) {
      const Recovered recovered = RecoverAll(fs.get(), 0, 8, mode);
      EXPECT_EQ(recovered.status.code(), StatusCode::kCorruption);
      EXPECT_TRUE(Mentions(recovered.status, path + " at offset 0")) << recovered.status.ToString();
      EXPECT_TRUE(Mentions(recovered.status, "from LSN 9 on")) << recovered.status.ToString();
      EXPECT_TRUE(Mentions(recovered.status, "basalt repair /db")) << recovered.status.ToString();
    }
    EXPECT_EQ(AllBytes(fs.get()), before);
    const Recovered repaired = RecoverAll(fs.get(), 0, 8, RecoveryMode::kRepair);
    ASSERT_TRUE(repaired.status.ok()) << repaired.status.ToString();
    EXPECT_EQ(repaired.result.first_lsn_lost, 9U);
    EXPECT_TRUE(fs->Exists("/db/lost/000003.log").value());
    EXPECT_EQ(RecoverAll(fs.get(), 0, 8).payloads, TestPayloads(1, 8));
  }
}

TEST(Recovery, OverwrittenHeaderOfAFileThatIsFlushedDoesNotMatter) {
  const auto fs = ThreeFiles();
  Overwrite(fs.get(), "/db/000001.log", 0, std::string(3000, 'x'));
  const Recovered recovered = RecoverAll(fs.get(), 5);
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(6, 12));
}

/// A file that is read while it is written: the first readings show zeros in some parts of it.
class FileInFlux final : public io::File {
 public:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  FileInFlux(std::string path, std::string bytes, std::vector<Range> missing, int readings)
      : File(std::move(path)),
        bytes_(std::move(bytes)),
        missing_(std::move(missing)),
        readings_(readings) {}

 private:
  int DoRead(uint64_t offset, std::span<char> out, size_t* done) const override {
    if (offset >= bytes_.size()) return 0;
    *done = std::min<size_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, *done);
    if (readings_-- <= 0) return 0;
    for (const auto& [begin, end] : missing_) {
      for (uint64_t at = std::max(begin, offset); at < std::min(end, offset + *done); ++at) {
        out[at - offset] = '\0';
      }
    }
    return 0;
  }
  int DoSize(uint64_t* size) const override {
    *size = bytes_.size();
    return 0;
  }
  int DoWrite(uint64_t, std::span<const std::string_view>, size_t*) override { return EROFS; }
  int DoSync() override { return EROFS; }
  int DoTruncate(uint64_t) override { return EROFS; }
  int DoAllocate(uint64_t) override { return EROFS; }
  int DoMap(uint64_t, std::unique_ptr<io::Mapping>*) const override { return EROFS; }
  int DoMapForWriting(uint64_t, std::unique_ptr<io::WritableMapping>*) override { return EROFS; }
  int DoMarkInUse() override { return EROFS; }
  int DoIsInUse(bool*) const override { return EROFS; }

  const std::string bytes_;
  const std::vector<Range> missing_;
  mutable int readings_;
};

TEST(PinnedLog, WhatIsWrittenWhileItIsReadIsNoDamage) {
  const auto fs = ThreeFiles();
  const Layout layout = ReadLayout(fs.get());
  const std::string path = "/db/000003.log";
  const std::string bytes = io::ReadWholeFile(fs.get(), path, 1 << 20).value();
  const auto recover = [&](const std::vector<FileInFlux::Range>& missing, int readings) {
    PinnedLog log = PinLog(fs.get(), kTestDirectory).value();
    log.files.back().file = std::make_unique<FileInFlux>(path, bytes, missing, readings);
    size_t records = 0;
    const auto result = RecoverPinned(log, kTestDirectory, {}, [&](const RecordView& record) {
      EXPECT_EQ(record.payload, TestPayload(++records));
      return Status();
    });
    EXPECT_TRUE(result) << missing.front().begin << ": " << result.status().ToString();
    return records;
  };
  // Both copies of the header, to their last bytes or not.
  constexpr uint64_t kHeaderBytes = sizeof(FileHeader);
  for (uint64_t begin = 0; begin < kHeaderBytes - 1; ++begin) {
    const auto copies_without = [&](uint64_t end) {
      return std::vector<FileInFlux::Range>{
          {begin, end}, {kSecondHeaderOffset + begin, kSecondHeaderOffset + end}};
    };
    const bool has_magic = begin >= sizeof kLogMagic;
    EXPECT_EQ(recover(copies_without(kHeaderBytes - 1), 1), has_magic ? 12U : 8U) << begin;
    EXPECT_EQ(recover(copies_without(kHeaderBytes), 1), 8U) << "it is not there yet: " << begin;
  }
  // Each record, though the last ones name 10 as durable; the header is read before them.
  for (size_t i = 8; i < 12; ++i) {
    const auto& record = layout.records[i];
    EXPECT_EQ(recover({{record.begin, record.end}}, 2), i < 11 ? 12U : 11U)
        << "nothing lies behind the last one";
  }
}

TEST(PinnedLog, HasAllFilesThatWereThereWhateverIsMadeMeanwhile) {
  for (uint64_t at = 1; at <= 8; ++at) {
    const auto fs = ThreeFiles();
    uint64_t calls = 0;
    fs->SetObserver([&](uint64_t, std::string_view, std::string_view) {
      if (++calls != at) return;
      for (const char* path : {"/db/000004.log", "/db/000005.log"}) {
        EXPECT_TRUE(fs->Open(path, io::OpenMode::kCreate));
      }
    });
    const PinnedLog log = PinLog(fs.get(), kTestDirectory).value();
    fs->SetObserver({});
    for (size_t i = 0; i < log.files.size(); ++i) EXPECT_EQ(log.files[i].number, i + 1);
    EXPECT_GE(log.files.size(), 3U);
  }
}

TEST(Recovery, UnknownRecordTypeIsUnsupportedInEveryMode) {
  const auto fs = ThreeFiles();
  const Layout layout = ReadLayout(fs.get());
  const auto& last = layout.records.back();
  std::string bytes = io::ReadWholeFile(fs.get(), last.file, 1 << 20).value();
  const FileHeader header =
      (*DecodeFileHeader(std::string_view(bytes).substr(0, kRecordsOffset), "")).value();
  Record record = ReadRecord(bytes, last.begin, header).value();
  const std::string payload(record.payload);
  record.payload = payload;
  record.type = static_cast<LogRecordType>(3);
  const size_t header_bytes = WriteRecordHeader(header, record, bytes.data() + last.begin);
  ASSERT_EQ(header_bytes + payload.size(), last.end - last.begin);
  SealRecord(header, last.begin, bytes.data() + last.begin, last.end - last.begin);
  Overwrite(fs.get(), last.file, 0, bytes);
  const std::string before = AllBytes(fs.get());
  for (const RecoveryMode mode :
       {RecoveryMode::kOpen, RecoveryMode::kCheck, RecoveryMode::kRepair}) {
    const Recovered recovered = RecoverAll(fs.get(), 0, 0, mode);
    EXPECT_EQ(recovered.status.code(), StatusCode::kUnsupported);
    EXPECT_TRUE(Mentions(recovered.status, "type 3")) << recovered.status.ToString();
    EXPECT_TRUE(Mentions(recovered.status, last.file));
  }
  EXPECT_EQ(AllBytes(fs.get()), before);
}

TEST(Recovery, ClosingRecordBehindDamageThatHitNoRecordIsPartOfTheTail) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Append(log.get(), TestPayload(i)).ok());
  ASSERT_TRUE(log->Close().ok());
  const Layout::Record close = ReadLayout(fs.get()).records.at(3);
  std::string bytes = io::ReadWholeFile(fs.get(), close.file, 1 << 20).value();
  const FileHeader header =
      (*DecodeFileHeader(std::string_view(bytes).substr(0, kRecordsOffset), "")).value();
  const size_t close_bytes = close.end - close.begin;
  const uint64_t shifted = close.begin + 16;
  bytes.replace(shifted, close_bytes, bytes.substr(close.begin, close_bytes));
  bytes.replace(close.begin, 16, "sixteen bytes...");
  SealRecord(header, shifted, &bytes[shifted], close_bytes);
  ASSERT_TRUE(io::ReplaceFile(fs.get(), close.file, bytes).ok());

  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.payloads, TestPayloads(1, 3));
  EXPECT_EQ(recovered.result.tail_offset, close.begin);
  EXPECT_EQ(recovered.result.tail_bytes_cut, shifted + close_bytes - close.begin);
  EXPECT_FALSE(recovered.result.closed_cleanly);

  ASSERT_TRUE(Append(StartLog(fs.get(), recovered.result.start).get(), TestPayload(4)).ok());
  const Recovered extended = RecoverAll(fs.get());
  ASSERT_TRUE(extended.status.ok()) << extended.status.ToString();
  EXPECT_EQ(extended.payloads, TestPayloads(1, 4));
}

TEST(Recovery, LostDirectoryIsBounded) {
  const auto fs = NewTestFileSystem();
  ASSERT_TRUE(fs->CreateDirectory("/db/lost").ok());
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(io::ReplaceFile(fs.get(), io::JoinPath("/db/lost", LogFileName(i)), "old").ok());
  }
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/lost/note.txt", "not ours").ok());
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000101.log", kTornHeader).ok());
  const Recovered recovered = RecoverAll(fs.get());
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  EXPECT_EQ(recovered.result.start.next_file_number, 102U);
  const std::vector<std::string> names = fs->List("/db/lost").value();
  EXPECT_EQ(names.size(), LostFiles::kLostFilesMax + 1);
  EXPECT_EQ(names.front(), LogFileName(38));
  EXPECT_TRUE(fs->Exists("/db/lost/000101.log").value());
  EXPECT_TRUE(fs->Exists("/db/lost/note.txt").value());
}

TEST(LostFiles, TablesAreCountedAndBoundedByThemselves) {
  const auto fs = NewTestFileSystem();
  ASSERT_TRUE(fs->CreateDirectory("/db/lost").ok());
  for (uint64_t i = 10; i < 110; ++i) {
    const std::string log = LogFileName(i);
    ASSERT_TRUE(io::ReplaceFile(fs.get(), io::JoinPath("/db/lost", log), "log").ok());
    const std::string table = log.substr(0, log.size() - 3) + "tbl";
    ASSERT_TRUE(io::ReplaceFile(fs.get(), io::JoinPath("/db/lost", table), "table").ok());
  }
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000009.tbl", "new").ok());
  LostFiles lost(fs.get(), "/db", ".tbl");
  EXPECT_EQ(lost.GreatestNumber().value(), 109U);
  ASSERT_TRUE(lost.Move("000009.tbl").ok());
  ASSERT_TRUE(lost.Bound().ok());
  EXPECT_EQ(fs->List("/db/lost").value().size(), 100 + LostFiles::kLostFilesMax);
  EXPECT_TRUE(fs->Exists("/db/lost/000009.tbl").value());
  EXPECT_FALSE(fs->Exists("/db/lost/000046.tbl").value());
  EXPECT_TRUE(fs->Exists("/db/lost/000047.tbl").value());
  EXPECT_TRUE(fs->Exists("/db/lost/000010.log").value());
}

TEST(Recovery, EndOfNonZeroBytesIsFoundAtEveryLength) {
  for (size_t size = 0; size < 40; ++size) {
    std::string bytes(size, '\0');
    EXPECT_EQ(NonZeroEnd(bytes), 0U);
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = 'x';
      EXPECT_EQ(NonZeroEnd(bytes), i + 1);
    }
  }
}

}  // namespace
}  // namespace basalt::wal
