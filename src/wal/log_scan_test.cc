#include "wal/log_scan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/batch_cursor.h"
#include "base/random.h"
#include "wal/test_log.h"

namespace basalt::wal {
namespace {

constexpr size_t kValueBytes = size_t{1} << 20;
constexpr size_t kPageBytes = 4096;

/// A log file of the records 1, with this value, and 2.
std::string FileOfValue(std::string_view value, uint64_t file_id) {
  FileHeader header{};
  header.file_id = file_id;
  header.first_lsn = 1;
  std::string file = EncodeFileHeader(header);
  WriteBatch large;
  large.Put("key", value);
  WriteBatch small;
  small.Put("another key", "small");
  Lsn lsn = 0;
  for (const std::string_view payload : {large.bytes(), small.bytes()}) {
    const uint64_t offset = file.size();
    char framed[kRecordHeaderBytesMax];
    const size_t size = WriteRecordHeader(
        header, {.lsn = ++lsn, .first_sequence = lsn, .count = 1, .payload = payload}, framed);
    file.append(framed, size).append(payload);
    SealRecord(header, offset, &file[offset], file.size() - offset);
  }
  return file;
}

/// The same, of which one page of the first record did not get to the disk.
std::string TornFile(std::string_view value) {
  std::string file = FileOfValue(value, 77);
  file.replace(kRecordsOffset + 100, kPageBytes, kPageBytes, '\0');
  return file;
}

FileScan ScanTornFile(const std::string& file) {
  const auto header =
      DecodeFileHeader(std::string_view(file).substr(0, kRecordsOffset), "x.log").value();
  return ScanFile(file, *header, "x.log").value();
}

std::string RandomBytes() {
  base::Random random(7);
  std::string bytes;
  while (bytes.size() < kValueBytes) base::Append(&bytes, random.Next());
  return bytes;
}

std::string Repeat(std::string_view piece) {
  std::string bytes;
  while (bytes.size() < kValueBytes) bytes += piece;
  return bytes;
}

/// Logs of another file id, one in the other.
std::string NestedLogs() {
  std::string bytes = RandomBytes();
  for (uint64_t file_id = 1; file_id <= 4; ++file_id) bytes = FileOfValue(bytes, file_id);
  return bytes;
}

/// Small records of other logs, one behind the other.
std::string ManyLogs() { return Repeat(FileOfValue("value", 5)); }

/// Operations each of which holds the header of a record that goes from the next one to the end.
std::string OverlappingRecords() {
  constexpr size_t kOperationBytes = 40;
  constexpr size_t kOperations = kValueBytes / 8 / kOperationBytes;
  FileHeader header{};
  header.first_lsn = 1;
  std::string bytes;
  while (bytes.size() < kOperations * kOperationBytes) {
    const std::string rest(kOperations * kOperationBytes - bytes.size() - kOperationBytes, 'x');
    const auto count = static_cast<uint32_t>(rest.size() / kOperationBytes);
    char framed[kRecordHeaderBytesMax] = {};
    const size_t size =
        WriteRecordHeader(header, {.lsn = 2, .count = count, .payload = rest}, framed);
    std::string value(kOperationBytes - base::kBatchRecordHeaderBytes - size, 'x');
    value.append(framed, size);
    base::AppendBatchRecord({.kind = RecordKind::kPut, .key = {}, .value = value}, &bytes);
  }
  return bytes;
}

TEST(LogScan, RecordBehindALargeTornOneIsFoundByLittleHashing) {
  using namespace std::string_view_literals;
  for (const std::string& value :
       {RandomBytes(), NestedLogs(), ManyLogs(), Repeat("\1"sv), Repeat("\5"sv), Repeat("\xFF"sv),
        Repeat("text of which every byte is a letter "sv), Repeat("\1\0\0\0\0\0\0\0"sv),
        Repeat("\xFF\xFF\xFF\1"sv), Repeat("\xC0\x84\x3D\1\1\1\5"sv)}) {
    const std::string file = TornFile(value);
    const FileScan scan = ScanTornFile(file);
    EXPECT_EQ(scan.search_given_up_at, 0U);
    EXPECT_LE(scan.search_work, 8 * file.size());
    ASSERT_EQ(scan.runs.size(), 2U);
    EXPECT_EQ(scan.runs[0].last_lsn, 0U);
    EXPECT_EQ(scan.runs[1].first_lsn, 2U);
    EXPECT_EQ(scan.runs[1].end, file.size());
  }
}

TEST(LogScan, SearchAmongManyOverlappingRecordsIsGivenUpAndSaysWhere) {
  const std::string file = TornFile(OverlappingRecords());
  const FileScan scan = ScanTornFile(file);
  EXPECT_EQ(scan.runs.size(), 1U);
  EXPECT_GT(scan.search_given_up_at, kRecordsOffset + 100 + kPageBytes);
  EXPECT_LT(scan.search_given_up_at, file.size());
  EXPECT_LE(scan.search_work, 2 * kSearchWorkMax * file.size());
}

TEST(LogScan, TornTailThatCouldNotBeSearchedIsRefusedUnlessForRepair) {
  const auto fs = NewTestFileSystem();
  const std::string file = TornFile(OverlappingRecords());
  ASSERT_TRUE(io::ReplaceFile(fs.get(), "/db/000001.log", file).ok());
  for (const RecoveryMode mode : {RecoveryMode::kCheck, RecoveryMode::kOpen}) {
    const Status refused = RecoverAll(fs.get(), 0, 0, mode).status;
    EXPECT_EQ(refused.code(), StatusCode::kCorruption);
    EXPECT_NE(refused.message().find("/db/000001.log at offset 1024"), std::string_view::npos)
        << refused.ToString();
    EXPECT_NE(refused.message().find("basalt repair /db"), std::string_view::npos);
    EXPECT_EQ(io::ReadWholeFile(fs.get(), "/db/000001.log", file.size()).value(), file);
  }
  const Recovered repaired = RecoverAll(fs.get(), 0, 0, RecoveryMode::kRepair);
  ASSERT_TRUE(repaired.status.ok()) << repaired.status.ToString();
  EXPECT_EQ(repaired.result.first_lsn_lost, 1U);
  EXPECT_EQ(repaired.result.last_lsn_lost, 1U);
  EXPECT_EQ(repaired.result.moved_to_lost, (std::vector<std::string>{"/db/lost/000001.log.1024"}));
  EXPECT_TRUE(RecoverAll(fs.get()).status.ok());
}

}  // namespace
}  // namespace basalt::wal
