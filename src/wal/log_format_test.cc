#include "wal/log_format.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"

namespace basalt::wal {
namespace {

FileHeader SampleHeader() {
  FileHeader header{};
  header.file_id = 0x1234'5678'9ABC'DEF0;
  header.file_number = 7;
  header.first_lsn = 100;
  header.durable_lsn = 90;
  header.previous_last_lsn = 99;
  return header;
}

/// Writes a field and makes the checksums of both copies right again.
void Overwrite(std::string* bytes, size_t field, uint32_t value) {
  for (const uint64_t offset : {uint64_t{0}, kSecondHeaderOffset}) {
    base::Store(bytes->data() + offset + field, value);
    const size_t covered = sizeof(FileHeader) - sizeof(uint64_t);
    base::Store(bytes->data() + offset + covered,
                base::Checksum(SampleHeader().file_id, offset,
                               std::string_view(*bytes).substr(offset, covered)));
  }
}

TEST(LogFormat, HeaderWhoseLsnsContradictEachOtherIsNoHeader) {
  FileHeader header = SampleHeader();
  header.previous_last_lsn = header.first_lsn;
  auto decoded = DecodeFileHeader(EncodeFileHeader(header), "x.log");
  EXPECT_TRUE(decoded && !*decoded);
  header.first_lsn = 0;
  header.previous_last_lsn = 0;
  decoded = DecodeFileHeader(EncodeFileHeader(header), "x.log");
  EXPECT_TRUE(decoded && !*decoded);
}

TEST(LogFormat, EitherHeaderCopyServes) {
  const std::string bytes = EncodeFileHeader(SampleHeader());
  ASSERT_EQ(bytes.size(), kRecordsOffset);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto header = DecodeFileHeader(damaged, "x.log");
    ASSERT_TRUE(header && *header) << i;
    EXPECT_EQ((*header)->file_id, SampleHeader().file_id) << i;
    EXPECT_EQ((*header)->first_lsn, 100U) << i;
  }
}

TEST(LogFormat, HeaderWithBothCopiesDamagedIsAbsent) {
  std::string bytes = EncodeFileHeader(SampleHeader());
  bytes[30] ^= 1;
  bytes[kSecondHeaderOffset + 60] ^= 1;
  const auto header = DecodeFileHeader(bytes, "x.log");
  ASSERT_TRUE(header);
  EXPECT_FALSE(*header);
}

TEST(LogFormat, HeaderThatIsCutShortIsReadFromItsFirstCopyOrAbsent) {
  const std::string bytes = EncodeFileHeader(SampleHeader());
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const auto header = DecodeFileHeader(std::string_view(bytes).substr(0, size), "x.log");
    ASSERT_TRUE(header) << size;
    EXPECT_EQ(header->has_value(), size >= sizeof(FileHeader)) << size;
  }
}

TEST(LogFormat, NewerVersionIsUnsupportedByName) {
  std::string bytes = EncodeFileHeader(SampleHeader());
  Overwrite(&bytes, offsetof(FileHeader, version), 9);
  const auto header = DecodeFileHeader(bytes, "/db/000007.log");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(header.error().message().find("version 9"), std::string_view::npos);
  EXPECT_NE(header.error().message().find("/db/000007.log"), std::string_view::npos);
}

TEST(LogFormat, UnknownRequiredFeatureIsUnsupportedAndOptionalOneIsNot) {
  std::string required = EncodeFileHeader(SampleHeader());
  Overwrite(&required, offsetof(FileHeader, required_features), 4);
  EXPECT_EQ(DecodeFileHeader(required, "x.log").status().code(), StatusCode::kUnsupported);
  std::string optional = EncodeFileHeader(SampleHeader());
  Overwrite(&optional, offsetof(FileHeader, optional_features), 4);
  EXPECT_TRUE(DecodeFileHeader(optional, "x.log").value().has_value());
}

TEST(LogFormat, RecordIsBoundToItsFileAndOffset) {
  const std::string payload = "some payload";
  std::string file(64, '\0');
  RecordHeader header{};
  header.payload_bytes = payload.size();
  header.lsn = 5;
  header.type = LogRecordType::kBatch;
  file.append(reinterpret_cast<const char*>(&header), sizeof header).append(payload);
  base::Store(file.data() + 64, RecordChecksum(11, 64, file.data() + 64));
  ASSERT_TRUE(ReadRecord(file, 64, 11));
  EXPECT_EQ(ReadRecord(file, 64, 11)->lsn, 5U);
  EXPECT_FALSE(ReadRecord(file, 64, 12));
  EXPECT_FALSE(ReadRecord("12345678" + file, 72, 11));
  EXPECT_FALSE(ReadRecord(file.substr(0, file.size() - 1), 64, 11));
  EXPECT_FALSE(ReadRecord(file, file.size() - 8, 11));
  EXPECT_FALSE(ReadRecord(file, file.size() + 8, 11));
}

TEST(LogFormat, RecordWithAnAbsurdLengthIsNotRead) {
  std::string file(4096, '\0');
  for (const uint64_t length : {UINT64_MAX, UINT64_MAX - 47, uint64_t{1} << 63, uint64_t{4049}}) {
    base::Store(file.data() + offsetof(RecordHeader, payload_bytes), length);
    EXPECT_FALSE(ReadRecord(file, 0, 1)) << length;
  }
}

TEST(LogFormat, FileNamesGoBothWays) {
  EXPECT_EQ(LogFileName(42), "000042.log");
  EXPECT_EQ(LogFileName(12'345'678), "12345678.log");
  EXPECT_EQ(ParseLogFileName("000042.log"), 42U);
  EXPECT_EQ(ParseLogFileName("12345678.log"), 12'345'678U);
  for (const char* name : {"42.log", "0000042.log", "000042.logs", "000042", ".log", "00004x.log",
                           "-00042.log", "99999999999999999999999.log"}) {
    EXPECT_FALSE(ParseLogFileName(name)) << name;
  }
}

}  // namespace
}  // namespace basalt::wal
