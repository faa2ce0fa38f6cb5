#include "wal/log_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "basalt/write_batch.h"
#include "base/hash.h"
#include "wal/log_scan.h"

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

TEST(LogFormat, WhatACrashLeavesOfAHeaderIsUnfinished) {
  const std::string whole = EncodeFileHeader(SampleHeader());
  // Not written from some byte on, and cut there or not.
  for (size_t size = 0; size < sizeof(FileHeader); ++size) {
    std::string part = whole.substr(0, size);
    EXPECT_TRUE(MayBeUnfinishedHeader(part)) << size;
    part.resize(kRecordsOffset);
    EXPECT_TRUE(MayBeUnfinishedHeader(part)) << size;
    std::string second(kRecordsOffset, '\0');
    second.replace(kSecondHeaderOffset, size, whole, kSecondHeaderOffset, size);
    EXPECT_TRUE(MayBeUnfinishedHeader(second)) << size;
  }
  // Neither sector was written, or the first bytes were not.
  std::string part = std::string(kRecordsOffset, '\0') + "records";
  EXPECT_TRUE(MayBeUnfinishedHeader(part));
  part = whole;
  for (const size_t offset : {size_t{0}, size_t{kSecondHeaderOffset}})
    part.replace(offset, 32, 32, '\0');
  EXPECT_TRUE(MayBeUnfinishedHeader(part));
}

TEST(LogFormat, DamagedOrOverwrittenHeaderIsNotUnfinished) {
  const std::string whole = EncodeFileHeader(SampleHeader());
  for (size_t i = 0; i < kSecondHeaderOffset; ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    damaged[kSecondHeaderOffset + i] = static_cast<char>(damaged[kSecondHeaderOffset + i] ^ 0x20);
    EXPECT_FALSE(MayBeUnfinishedHeader(damaged)) << i;
  }
  for (const size_t size : {size_t{1}, size_t{20}, size_t{600}, size_t{1024}, size_t{5000}}) {
    EXPECT_FALSE(MayBeUnfinishedHeader(std::string(size, 'x'))) << size;
  }
  std::string text(kRecordsOffset, '\0');
  text.replace(kSecondHeaderOffset, 4, "text");
  EXPECT_FALSE(MayBeUnfinishedHeader(text));
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

FileHeader HeaderOfVersion(uint32_t version) {
  FileHeader header = SampleHeader();
  header.version = version;
  return header;
}

/// The bytes of a record that will lie at `offset`; of version 1 without padding.
std::string FramedRecord(const FileHeader& header, const Record& record, uint64_t offset) {
  std::string framed(kRecordHeaderBytesMax, '\0');
  if (header.version == 1) {
    framed.resize(8);
    for (const uint64_t field :
         {uint64_t{record.payload.size()}, record.lsn, record.durable_lsn, record.first_sequence}) {
      base::Append(&framed, field);
    }
    base::Append(&framed, record.count);
    base::Append(&framed, static_cast<uint32_t>(record.type));
  } else {
    framed.resize(WriteRecordHeader(header, record, framed.data()));
  }
  framed.append(record.payload);
  SealRecord(header, offset, framed.data(), framed.size());
  return framed;
}

TEST(LogFormat, RecordIsBoundToItsFileAndOffset) {
  for (const uint32_t version : {1U, 2U}) {
    const FileHeader header = HeaderOfVersion(version);
    const std::string record =
        FramedRecord(header, {.lsn = 105, .count = 1, .payload = "some payload"}, 64);
    const std::string file = std::string(64, '\0') + record;
    ASSERT_TRUE(ReadRecord(file, 64, header)) << version;
    EXPECT_EQ(ReadRecord(file, 64, header)->lsn, 105U);
    EXPECT_EQ(ReadRecord(file, 64, header)->payload, "some payload");
    FileHeader other = header;
    ++other.file_id;
    EXPECT_FALSE(ReadRecord(file, 64, other));
    EXPECT_FALSE(ReadRecord("12345678" + file, 72, header));
    for (size_t size = 0; size < file.size(); ++size) {
      EXPECT_FALSE(ReadRecord(file.substr(0, size), 64, header)) << size;
    }
    EXPECT_FALSE(ReadRecord(file, file.size() + 8, header));
  }
}

TEST(LogFormat, NumbersOfARecordComeBackWhateverTheyAre) {
  const FileHeader header = SampleHeader();  // first LSN 100, durable up to 90
  for (const Lsn lsn : {Lsn{99}, Lsn{100}, Lsn{227}, Lsn{228}, kMaxLsn}) {
    for (const Lsn durable : {Lsn{0}, Lsn{89}, Lsn{90}, Lsn{91}, Lsn{98}, Lsn{99}, Lsn{100},
                              Lsn{163}, Lsn{100'000}, kMaxLsn}) {
      for (const uint64_t sequence : {uint64_t{0}, lsn, lsn + 1000, UINT64_MAX}) {
        for (const uint32_t count : {0U, 1U, 31U, 32U, UINT32_MAX}) {
          const std::string framed = FramedRecord(
              header,
              {.lsn = lsn, .durable_lsn = durable, .first_sequence = sequence, .count = count}, 8);
          const auto record = ReadRecord("12345678" + framed, 8, header);
          ASSERT_TRUE(record) << lsn << " " << durable << " " << sequence << " " << count;
          EXPECT_EQ(record->lsn, lsn);
          EXPECT_EQ(record->durable_lsn, durable);
          EXPECT_EQ(record->first_sequence, sequence);
          EXPECT_EQ(record->count, count);
          EXPECT_EQ(record->framed_bytes, framed.size());
        }
      }
    }
  }
}

TEST(LogFormat, RecordOfOnePutTakesElevenBytesMoreThanItsPayload) {
  FileHeader header{};
  header.first_lsn = 1'000'001;
  header.durable_lsn = 500'000;
  const std::string payload(124, 'x');  // a key of 16 bytes and a value of 100
  for (const Lsn durable : {Lsn{500'000}, Lsn{1'000'000}}) {
    const Record record = {.lsn = 1'100'000,
                           .durable_lsn = durable,
                           .first_sequence = 1'100'000,
                           .count = 1,
                           .payload = payload};
    EXPECT_EQ(FramedRecord(header, record, 0).size(), payload.size() + 11);
  }
}

TEST(LogFormat, ZerosAreNoRecordWhateverTheirChecksum) {
  const FileHeader header = SampleHeader();
  std::string zeros(64, '\0');
  EXPECT_FALSE(PeekRecord(zeros, 0, header));
  SealRecord(header, 0, zeros.data(), 9);
  EXPECT_FALSE(ReadRecord(zeros, 0, header));
}

TEST(LogFormat, RecordWithAnAbsurdLengthIsNotRead) {
  std::string file(4096, '\0');
  for (const uint64_t length : {UINT64_MAX, UINT64_MAX - 47, uint64_t{1} << 63, uint64_t{4087}}) {
    base::Store(file.data() + 8, length);
    EXPECT_FALSE(PeekRecord(file, 0, HeaderOfVersion(1))) << length;
    std::string packed(4, '\0');
    packed.resize(4 + base::kVarintBytesMax);
    packed.resize(static_cast<size_t>(base::StoreVarint(&packed[4], length) - packed.data()));
    packed.append("\1\0\0\5", 4).resize(4096);
    EXPECT_FALSE(PeekRecord(packed, 0, HeaderOfVersion(2))) << length;
  }
}

TEST(LogFormat, FileOfAnyVersionIsReadAcrossDamage) {
  for (const uint32_t version : {1U, 2U}) {
    const FileHeader header = HeaderOfVersion(version);
    std::string file = EncodeFileHeader(header);
    std::vector<uint64_t> begins;
    for (Lsn lsn = 100; lsn < 110; ++lsn) {
      WriteBatch batch;
      batch.Put(std::string(lsn * 7 % 20, 'x'), "");
      const Record record = {
          .lsn = lsn, .durable_lsn = lsn - 5, .count = 1, .payload = batch.bytes()};
      begins.push_back(file.size());
      file += FramedRecord(header, record, file.size());
      file.resize(base::RoundUp(file.size(), LayoutOf(header).alignment));
    }
    file[begins[4]] = static_cast<char>(file[begins[4]] ^ 1);
    const auto scan = ScanFile(file, header, "x.log");
    ASSERT_TRUE(scan) << scan.error().ToString();
    ASSERT_EQ(scan->runs.size(), 2U) << version;
    EXPECT_EQ(scan->runs[0].last_lsn, 103U);
    EXPECT_EQ(scan->runs[0].end, begins[4]);
    EXPECT_EQ(scan->runs[1].first_lsn, 105U);
    EXPECT_EQ(scan->runs[1].begin, begins[5]);
    EXPECT_EQ(scan->runs[1].last_lsn, 109U);
    EXPECT_EQ(scan->runs[1].end, file.size());
    EXPECT_EQ(scan->durable_lsn, 104U);
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
