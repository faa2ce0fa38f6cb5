#include "shared_map/base_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "io/memory_file_system.h"
#include "io/sim_file_system.h"
#include "phash/function_builder.h"
#include "shared_map/base_writer.h"
#include "shared_map/test_base_records.h"
#include "shared_map/test_base_reseal.h"

namespace basalt::shared_map {
namespace {

constexpr char kPath[] = "/base";

std::string FileBytes(io::FileSystem* fs, const std::string& path = kPath) {
  return io::ReadWholeFile(fs, path, uint64_t{1} << 30).value();
}

void Replace(io::FileSystem* fs, std::string_view bytes) {
  if (fs->Exists(kPath).value()) {
    ASSERT_TRUE(fs->RemoveFile(kPath).ok());
  }
  ASSERT_TRUE(fs->Open(kPath, io::OpenMode::kCreate).value()->WriteAt(0, bytes).ok());
}

BaseHeader HeaderOf(std::string_view file) {
  BaseHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

Found Look(const BaseFile& base, std::string_view key, std::string_view* value) {
  return base.Find(key, base::Hash(key), value);
}

// Whether every answer about keys that are there, and about some that are not, is right or
// kCorrupt; gives the number of corrupt ones.
void CheckAnswers(const BaseFile& base, const TestRecords& records, uint64_t* corrupt) {
  for (size_t i = 0; i < records.size(); ++i) {
    std::string_view value = "nothing";
    const std::string_view key = records[i].key();
    const Found found = Look(base, key, &value);
    if (found == Found::kCorrupt) {
      ++*corrupt;
      const Status damage = base.Damage(base.Slot(base::Hash(key), key));
      EXPECT_EQ(damage.code(), StatusCode::kCorruption);
      EXPECT_EQ(damage.message().find(base.path() + ": "), 0u) << damage.ToString();
      EXPECT_NE(damage.message().find(" at offset "), std::string_view::npos);
      continue;
    }
    ASSERT_EQ(found, Found::kPresent) << key;
    ASSERT_EQ(value, records[i].value()) << key;
  }
  for (const std::string_view absent : {"key", "keys", "key9999999", "yek0", "\1", "1234567890"}) {
    std::string_view value = "nothing";
    const Found found = Look(base, absent, &value);
    ASSERT_NE(found, Found::kPresent) << absent;
    ASSERT_EQ(value, "nothing");
    if (found == Found::kCorrupt) ++*corrupt;
  }
}

void ExpectHoldsExactly(const BaseFile& base, const TestRecords& records) {
  ASSERT_EQ(base.figures().records, records.size());
  uint64_t corrupt = 0;
  CheckAnswers(base, records, &corrupt);
  EXPECT_EQ(corrupt, 0u);
  const Status status = base.VerifyAll({});
  EXPECT_TRUE(status.ok()) << status.ToString();
  std::set<std::string> keys;
  for (uint64_t slot = 0; slot < records.size(); ++slot) {
    if (!base.is_fixed()) base.PrefetchStart(slot);
    base.PrefetchRecord(slot);
    const Result<RecordRef> record = base.At(slot);
    ASSERT_TRUE(record) << record.error().ToString();
    EXPECT_TRUE(keys.emplace(record->key()).second);
    EXPECT_EQ(base.Slot(base::Hash(record->key()), record->key()), slot);
  }
}

std::shared_ptr<const BaseFile> WriteVariable(io::FileSystem* fs, const TestRecords& records) {
  const auto written =
      WriteBaseFile(fs, kPath, records.pointers(), {.layout = SharedMapLayout::kVariable});
  EXPECT_TRUE(written) << written.status().ToString();
  return BaseFile::Open(fs, kPath).value();
}

class BaseFileOf : public testing::TestWithParam<SharedMapLayout> {
 protected:
  Result<BaseFigures> Write(const TestRecords& records, BaseWriteOptions options = {}) {
    options.layout = GetParam();
    return WriteBaseFile(fs_.get(), kPath, records.pointers(), options);
  }
  std::shared_ptr<const BaseFile> WriteAndOpen(const TestRecords& records) {
    const auto written = Write(records);
    EXPECT_TRUE(written) << written.status().ToString();
    auto base = BaseFile::Open(fs_.get(), kPath);
    EXPECT_TRUE(base) << base.status().ToString();
    EXPECT_EQ((*base)->figures().file_bytes, written->file_bytes);
    EXPECT_EQ((*base)->figures().data_bytes, written->data_bytes);
    EXPECT_EQ((*base)->figures().function_bytes, written->function_bytes);
    EXPECT_EQ((*base)->figures().fixed, GetParam() == SharedMapLayout::kFixed);
    EXPECT_EQ(written->fixed, GetParam() == SharedMapLayout::kFixed);
    EXPECT_EQ(fs_->FileSize(kPath).value(), written->file_bytes);
    return *base;
  }
  bool IsFixed() const { return GetParam() == SharedMapLayout::kFixed; }

  const std::unique_ptr<io::FileSystem> fs_ = io::NewMemoryFileSystem();
};

INSTANTIATE_TEST_SUITE_P(, BaseFileOf,
                         testing::Values(SharedMapLayout::kFixed, SharedMapLayout::kVariable),
                         [](const auto& layout) {
                           return layout.param == SharedMapLayout::kFixed ? "Fixed" : "Variable";
                         });

TEST_P(BaseFileOf, AnyNumberOfRecordsReadsBack) {
  for (const uint64_t count : {0, 1, 2, 31, 1000, 100'000}) {
    SCOPED_TRACE(count);
    const TestRecords records = TestRecords::Numbered(count, 90, false);
    const auto base = WriteAndOpen(records);
    ExpectHoldsExactly(*base, records);
    ASSERT_TRUE(fs_->RemoveFile(kPath).ok());
  }
}

TEST_P(BaseFileOf, EmptyAndLargestKeysAndLargeValuesReadBack) {
  TestRecords records = TestRecords::Numbered(50, 100, false);
  base::Random random(1);
  records.Add("", "value of the empty key");
  records.Add("empty value", "");
  records.Add(std::string(65'535, 'k'), "value of a long key");
  records.Add(std::string(65'535, 'l'), std::string(100'000, 'v'));
  std::string large;
  while (large.size() < 3'000'001) base::Append(&large, random.Next());
  records.Add("large", large);
  records.Add(std::string("\0\0", 2), std::string("\0", 1));
  const auto base = WriteAndOpen(records);
  ExpectHoldsExactly(*base, records);
  std::string_view value;
  EXPECT_EQ(Look(*base, std::string(65'535, 'm'), &value), Found::kAbsent);
  EXPECT_EQ(Look(*base, std::string(65'536, 'k'), &value), Found::kAbsent);
  EXPECT_EQ(Look(*base, std::string(70'000, 'k'), &value), Found::kAbsent);
}

TEST_P(BaseFileOf, AnEmptyFileHasNoKeyAndNotTheEmptyOne) {
  const auto base = WriteAndOpen(TestRecords());
  std::string_view value;
  EXPECT_EQ(Look(*base, "", &value), Found::kAbsent);
  EXPECT_EQ(Look(*base, "key", &value), Found::kAbsent);
  EXPECT_TRUE(base->VerifyAll({}).ok());
}

TEST_P(BaseFileOf, LargeDataBeginsAtAHugePageAndSmallAtAPage) {
  const auto begin = [&](uint64_t count) {
    EXPECT_TRUE(Write(TestRecords::Numbered(count, 1000, true)));
    const BaseHeader header = HeaderOf(FileBytes(fs_.get()));
    EXPECT_TRUE(fs_->RemoveFile(kPath).ok());
    EXPECT_EQ(header.data.bytes >= (uint64_t{8} << 20), count == 9000);
    return header.data.offset;
  };
  EXPECT_EQ(begin(9000), uint64_t{2} << 20);
  EXPECT_EQ(begin(7000) % 4096, 0u);
  EXPECT_LT(begin(7000), uint64_t{1} << 20);
}

TEST_P(BaseFileOf, TheSameRecordsInAnyOrderOnAnyThreadsMakeTheSameFunctionStartsAndData) {
  TestRecords records = TestRecords::Numbered(200'000, 40, false);
  const auto written = [&](uint32_t threads) {
    EXPECT_TRUE(Write(records, {.threads = threads}));
    const std::string file = FileBytes(fs_.get());
    EXPECT_TRUE(fs_->RemoveFile(kPath).ok());
    const BaseHeader header = HeaderOf(file);
    return file.substr(header.function.offset, header.function.bytes) +
           file.substr(header.starts.offset, header.starts.bytes) +
           file.substr(header.data.offset, header.data.bytes);
  };
  const std::string first = written(1);
  std::reverse(records.order().begin(), records.order().end());
  EXPECT_TRUE(written(3) == first);
  EXPECT_TRUE(written(0) == first);
}

TEST_P(BaseFileOf, AKeyThatIsThereTwiceIsNamed) {
  for (const uint64_t count : {2, 100, 20'000}) {
    TestRecords records = TestRecords::Numbered(count, 10, false);
    records.Add("key1", "again");
    const auto written = Write(records);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(written.error().message().find("'key1'"), std::string_view::npos)
        << written.error().ToString();
    EXPECT_FALSE(fs_->Exists(kPath).value());
  }
}

TEST_P(BaseFileOf, AFileThatIsThereStays) {
  Replace(fs_.get(), "somebody's");
  const auto written = Write(TestRecords::Numbered(3, 3, false));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(FileBytes(fs_.get()), "somebody's");
}

TEST_P(BaseFileOf, FlagsOfALogAreNotWritten) {
  TestRecords records;
  records.Add("key", "value");
  const_cast<char*>(records.pointers()[0])[7] = 5;
  const auto base = WriteAndOpen(records);
  EXPECT_EQ(base->At(0).value().header().flags, 0);
  EXPECT_TRUE(base->VerifyAll({}).ok());
}

TEST_P(BaseFileOf, EveryFlippedByteGivesAnErrorOrRightAnswersAndIsFoundByVerifyAll) {
  const TestRecords records = TestRecords::Numbered(40, 30, false);
  ASSERT_TRUE(Write(records));
  const std::string file = FileBytes(fs_.get());
  uint64_t refused = 0;
  uint64_t corrupt_files = 0;
  for (size_t at = 0; at < file.size(); ++at) {
    SCOPED_TRACE(at);
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    Replace(fs_.get(), damaged);
    const auto base = BaseFile::Open(fs_.get(), kPath);
    if (!base) {
      ++refused;
      ASSERT_EQ(base.error().code(), StatusCode::kCorruption);
      ASSERT_EQ(base.error().message().find("/base: "), 0u);
      continue;
    }
    uint64_t corrupt = 0;
    CheckAnswers(**base, records, &corrupt);
    corrupt_files += corrupt > 0 ? 1 : 0;
    const Status verified = (*base)->VerifyAll({});
    ASSERT_EQ(verified.code(), StatusCode::kCorruption) << verified.ToString();
    ASSERT_EQ(verified.message().find("/base: "), 0u);
  }
  const BaseHeader header = HeaderOf(file);
  EXPECT_EQ(refused, header.function.bytes + header.block_checksums.bytes + header.starts.bytes);
  EXPECT_EQ(corrupt_files, header.data.bytes);
}

TEST_P(BaseFileOf, EveryTruncationAndExtensionIsRefused) {
  const TestRecords records = TestRecords::Numbered(20, 30, false);
  ASSERT_TRUE(Write(records));
  const std::string file = FileBytes(fs_.get());
  for (size_t size = 0; size < file.size(); ++size) {
    Replace(fs_.get(), std::string_view(file).substr(0, size));
    const auto base = BaseFile::Open(fs_.get(), kPath);
    ASSERT_FALSE(base) << size;
    ASSERT_EQ(base.error().code(), StatusCode::kCorruption);
    ASSERT_EQ(base.error().message().find("/base: "), 0u);
  }
  Replace(fs_.get(), file + "more");
  EXPECT_EQ(BaseFile::Open(fs_.get(), kPath).status().code(), StatusCode::kCorruption);
}

TEST_P(BaseFileOf, TheHeadersCopyStandsInForADamagedOne) {
  const TestRecords records = TestRecords::Numbered(20, 30, false);
  ASSERT_TRUE(Write(records));
  std::string file = FileBytes(fs_.get());
  std::fill_n(file.begin(), 4096, '\xFF');
  Replace(fs_.get(), file);
  const auto base = BaseFile::Open(fs_.get(), kPath);
  ASSERT_TRUE(base) << base.error().ToString();
  uint64_t corrupt = 0;
  CheckAnswers(**base, records, &corrupt);
  EXPECT_EQ(corrupt, 0u);
  EXPECT_EQ((*base)->VerifyAll({}).code(), StatusCode::kCorruption);
  file[file.size() - 200] ^= 1;
  Replace(fs_.get(), file);
  EXPECT_EQ(BaseFile::Open(fs_.get(), kPath).status().code(), StatusCode::kCorruption);
}

// What nobody writes by accident: checksums are right, and the bytes under them are not.
TEST_P(BaseFileOf, PlacesAndSizesThatLeadOutOfTheDataAreCorruptUnderRightChecksums) {
  const TestRecords records = TestRecords::Numbered(40, 30, false);
  ASSERT_TRUE(Write(records));
  const std::string file = FileBytes(fs_.get());
  const BaseHeader header = HeaderOf(file);
  const auto expect_corrupt = [&](uint64_t offset, std::string_view bytes) {
    SCOPED_TRACE(offset);
    std::string changed = file;
    changed.replace(offset, bytes.size(), bytes);
    ResealBase(&changed);
    Replace(fs_.get(), changed);
    const auto base = BaseFile::Open(fs_.get(), kPath);
    ASSERT_TRUE(base) << base.error().ToString();
    EXPECT_EQ((*base)->VerifyAll({}).code(), StatusCode::kCorruption);
    EXPECT_EQ((*base)->At(0).status().code(), StatusCode::kCorruption);
    uint64_t corrupt = 0;
    CheckAnswers(**base, records, &corrupt);
    EXPECT_GE(corrupt, 1u);
  };
  expect_corrupt(header.data.offset, std::string(4, '\xFF'));      // the value's size
  expect_corrupt(header.data.offset, std::string("\0\0\1\0", 4));  // 65,536
  expect_corrupt(header.data.offset + 6, "\2");                    // the kind
  expect_corrupt(header.data.offset + 7, "\1");                    // the flags
  if (IsFixed()) return;
  expect_corrupt(header.starts.offset, std::string(4, '\xFF'));
  const auto behind = static_cast<uint32_t>(header.data.bytes / 8);
  expect_corrupt(header.starts.offset, {reinterpret_cast<const char*>(&behind), sizeof behind});
}

TEST_P(BaseFileOf, ARecordAtAnothersSlotIsFoundByVerifyAll) {
  const TestRecords records = TestRecords::Numbered(40, 30, true);
  const auto whole = WriteAndOpen(records);
  std::string file = FileBytes(fs_.get());
  const BaseHeader header = HeaderOf(file);
  const uint64_t bytes = header.data.bytes / 40;
  std::swap_ranges(file.begin() + static_cast<int64_t>(header.data.offset),
                   file.begin() + static_cast<int64_t>(header.data.offset + bytes),
                   file.begin() + static_cast<int64_t>(header.data.offset + bytes));
  ResealBase(&file);
  Replace(fs_.get(), file);
  const auto base = BaseFile::Open(fs_.get(), kPath);
  ASSERT_TRUE(base);
  const Status status = (*base)->VerifyAll({});
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("belongs to slot 1"), std::string_view::npos)
      << status.ToString();
}

TEST_P(BaseFileOf, HeadersThatContradictThemselvesAreRefused) {
  ASSERT_TRUE(Write(TestRecords::Numbered(40, 30, false)));
  const std::string file = FileBytes(fs_.get());
  const auto expect = [&](StatusCode code, auto change) {
    std::string changed = file;
    BaseHeader header = HeaderOf(changed);
    change(&header);
    std::memcpy(changed.data(), &header, sizeof header);
    ResealBase(&changed);
    Replace(fs_.get(), changed);
    const auto base = BaseFile::Open(fs_.get(), kPath);
    ASSERT_FALSE(base);
    EXPECT_EQ(base.error().code(), code) << base.error().ToString();
  };
  constexpr uint64_t kHuge = ~uint64_t{0} - 7;
  using Header = BaseHeader*;
  expect(StatusCode::kUnsupported, [](Header header) { header->format_version = 2; });
  expect(StatusCode::kUnsupported, [](Header header) { header->required_features = 4; });
  expect(StatusCode::kUnsupported, [](Header header) { header->golden_hash ^= 1; });
  for (const uint64_t records : {uint64_t{0}, uint64_t{39}, uint64_t{41}, kHuge}) {
    expect(StatusCode::kCorruption, [&](Header header) { header->records = records; });
  }
  for (const uint64_t stride : {uint64_t{0}, uint64_t{8}, uint64_t{12}, kHuge}) {
    if (stride == 0 && !IsFixed()) continue;
    expect(StatusCode::kCorruption, [&](Header header) { header->stride = stride; });
  }
  expect(StatusCode::kCorruption, [](Header header) {
    header->layout =
        header->layout == BaseLayout::kFixed ? BaseLayout::kVariable : BaseLayout::kFixed;
  });
  expect(StatusCode::kCorruption, [](Header header) { header->layout = BaseLayout{7}; });
  BaseHeader fields;
  for (const BaseSection* const section :
       {&fields.function, &fields.block_checksums, &fields.starts, &fields.data}) {
    const auto at = reinterpret_cast<const char*>(section) - reinterpret_cast<const char*>(&fields);
    for (const uint64_t number : {uint64_t{24}, uint64_t{1} << 20, kHuge}) {
      for (const int64_t field : {0, 8}) {
        expect(StatusCode::kCorruption, [&](Header header) {
          std::memcpy(reinterpret_cast<char*>(header) + at + field, &number, sizeof number);
        });
      }
    }
  }
}

TEST_P(BaseFileOf, VerifyAllFindsADamagedByteOfABlockThatHasBeenRead) {
  // On the machine's files a mapping sees what is written later.
  io::FileSystem* const fs = io::FileSystem::Posix();
  const std::string path = testing::TempDir() + "basalt_base_file_test_" + std::to_string(getpid());
  static_cast<void>(fs->RemoveFile(path));
  const TestRecords records = TestRecords::Numbered(1000, 300, false);
  ASSERT_TRUE(WriteBaseFile(fs, path, records.pointers(), {.layout = GetParam()}));
  const auto base = BaseFile::Open(fs, path).value();
  ExpectHoldsExactly(*base, records);
  const BaseHeader header = HeaderOf(FileBytes(fs, path));
  const uint64_t block = header.data.offset + kBlockBytes;
  ASSERT_TRUE(fs->Open(path, io::OpenMode::kReadWrite).value()->WriteAt(block + 77, "\xEE").ok());
  const Status status = base->VerifyAll({});
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("at offset " + std::to_string(block)), std::string_view::npos)
      << status.ToString();
  ASSERT_TRUE(fs->RemoveFile(path).ok());
}

TEST_P(BaseFileOf, ADamagedBlockIsSeenHoweverOftenTheOtherHasBeenVerified) {
  const TestRecords records = TestRecords::Numbered(600, 100, true);
  ASSERT_TRUE(Write(records));
  std::string file = FileBytes(fs_.get());
  const BaseHeader header = HeaderOf(file);
  ASSERT_EQ((header.data.bytes - 1) / kBlockBytes, 1u);
  const uint64_t damaged = header.data.offset + kBlockBytes + 1000;
  for (uint64_t at = damaged; at < damaged + 500; ++at) file[at] = static_cast<char>(file[at] ^ 1);
  Replace(fs_.get(), file);
  const auto base = BaseFile::Open(fs_.get(), kPath).value();
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(base->VerifyAll({}).code(), StatusCode::kCorruption);
    uint64_t corrupt = 0;
    CheckAnswers(*base, records, &corrupt);
    EXPECT_GE(corrupt, 1u);
  }
}

TEST_P(BaseFileOf, VerifyAllStopsOnRequest) {
  const auto base = WriteAndOpen(TestRecords::Numbered(20'000, 1000, false));
  uint64_t calls = 0;
  uint64_t last = 0;
  EXPECT_TRUE(base->VerifyAll([&](uint64_t records) {
                    EXPECT_GT(records, last);
                    last = records;
                    ++calls;
                    return true;
                  })
                  .ok());
  EXPECT_GE(calls, 2u);
  EXPECT_LE(last, 20'000u);
  EXPECT_EQ(base->VerifyAll([&](uint64_t) { return false; }).code(), StatusCode::kCancelled);
}

TEST_P(BaseFileOf, WritingStopsOnRequestWhereverItIs) {
  const TestRecords records = TestRecords::Numbered(100'000, 200, false);
  uint64_t calls = 0;
  for (uint64_t at = 1;; ++at) {
    calls = 0;
    uint64_t last = 0;
    const auto written = Write(records, {.threads = 2, .go_on = [&](uint64_t done) {
                                           EXPECT_GE(done, last);
                                           last = done;
                                           return ++calls != at;
                                         }});
    if (written) break;
    ASSERT_EQ(written.error().code(), StatusCode::kCancelled) << written.error().ToString();
    ASSERT_EQ(calls, at);
    ASSERT_FALSE(fs_->Exists(kPath).value());
  }
  EXPECT_GE(calls, 5u);
}

TEST_P(BaseFileOf, EveryCallThatFailsWhileWritingIsReportedAndLeavesNoFile) {
  io::SimFileSystem fs;
  const TestRecords records = TestRecords::Numbered(6000, 1000, true);  // three writes of data
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    fs.SetFault({.at_call = call, .error = EIO});
    const auto written = WriteBaseFile(&fs, kPath, records.pointers(), {.layout = GetParam()});
    const bool happened = fs.FaultHappened();
    fs.ClearFault();
    if (!happened) {
      ASSERT_TRUE(written);
      break;
    }
    ++failed;
    ASSERT_FALSE(written) << call;
    EXPECT_EQ(written.error().code(), StatusCode::kIoError);
    EXPECT_NE(written.error().message().find(kPath), std::string_view::npos);
    ASSERT_FALSE(fs.Exists(kPath).value()) << call;
  }
  EXPECT_GE(failed, 7u);  // open, allocate, four writes, sync
}

TEST_P(BaseFileOf, EveryCallThatFailsWhileOpeningIsReported) {
  io::SimFileSystem fs;
  const TestRecords records = TestRecords::Numbered(100, 100, false);
  ASSERT_TRUE(WriteBaseFile(&fs, kPath, records.pointers(), {.layout = GetParam()}));
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    fs.SetFault({.at_call = call, .error = EIO});
    const auto base = BaseFile::Open(&fs, kPath);
    if (!fs.FaultHappened()) break;
    ++failed;
    ASSERT_EQ(base.status().code(), StatusCode::kIoError);
  }
  EXPECT_GE(failed, 3u);  // open, size, map
}

TEST_P(BaseFileOf, AFullDiskLeavesNoFile) {
  io::SimFileSystem fs;
  const TestRecords records = TestRecords::Numbered(6000, 1000, true);
  uint64_t file_bytes = 0;
  for (uint64_t capacity = 1;; capacity += 600'000) {
    fs.SetCapacity(capacity);
    const auto written = WriteBaseFile(&fs, kPath, records.pointers(), {.layout = GetParam()});
    if (written) {
      file_bytes = written->file_bytes;
      EXPECT_LE(file_bytes, capacity);
      break;
    }
    ASSERT_EQ(written.error().code(), StatusCode::kResourceExhausted);
    ASSERT_FALSE(fs.Exists(kPath).value());
    ASSERT_EQ(fs.BytesUsed(), 0u);
  }
  EXPECT_GT(file_bytes, uint64_t{6'000'000});
}

TEST_P(BaseFileOf, WhatIsWrittenSurvivesAPowerCut) {
  io::SimFileSystem fs;
  const TestRecords records = TestRecords::Numbered(2000, 100, false);
  ASSERT_TRUE(WriteBaseFile(&fs, kPath, records.pointers(), {.layout = GetParam()}));
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  fs.Crash(1);
  const auto base = BaseFile::Open(&fs, kPath);
  ASSERT_TRUE(base) << base.error().ToString();
  ExpectHoldsExactly(**base, records);
}

TEST_P(BaseFileOf, ManyThreadsMayReadFirst) {
  const TestRecords records = TestRecords::Numbered(3000, 1000, false);
  const auto base = WriteAndOpen(records);
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (size_t at = 0; at < records.size(); ++at) {
        std::string_view value;
        const bool right = Look(*base, records[at].key(), &value) == Found::kPresent &&
                           value == records[at].value();
        if (!right) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

// Gives two keys one hash under seed 0, as good as never happens.
uint64_t CollidingHash(std::string_view key, const base::SeededHash& hash) noexcept {
  return hash.seed() == 0 && key.starts_with("key") ? 1 : hash(key);
}

TEST(BaseFile, AFunctionWithAnotherSeedIsAskedByKey) {
  const auto fs = io::NewMemoryFileSystem();
  const TestRecords records = TestRecords::Numbered(20, 10, true);
  ASSERT_TRUE(
      WriteBaseFile(fs.get(), kPath, records.pointers(), {.layout = SharedMapLayout::kFixed}));
  std::string file = FileBytes(fs.get());
  const BaseHeader header = HeaderOf(file);
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < records.size(); ++i) keys.push_back(records[i].key());
  const std::string form = phash::FunctionBuilder({}, &CollidingHash).Build(keys).value();
  ASSERT_EQ(form.size(), header.function.bytes);
  const PerfectHash function = PerfectHash::Open(form).value();
  ASSERT_NE(function.hash_seed(), 0u);
  file.replace(header.function.offset, form.size(), form);
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordRef record = records[i];
    file.replace(header.data.offset + function.Index(record.key()) * header.stride, record.size(),
                 record.address(), record.size());
  }
  ResealBase(&file);
  Replace(fs.get(), file);
  const auto base = BaseFile::Open(fs.get(), kPath);
  ASSERT_TRUE(base) << base.error().ToString();
  ExpectHoldsExactly(**base, records);
  for (const auto& key : keys) {
    EXPECT_EQ((*base)->Slot(base::Hash(key), key), function.Index(key));
  }
}

// Begin and end of each record in the data.
std::vector<BaseFile::Guess> PlacesIn(const BaseFile& base) {
  std::vector<BaseFile::Guess> places;
  const char* const data = base.At(0).value().address();
  for (uint64_t slot = 0; slot < base.figures().records; ++slot) {
    const RecordRef record = base.At(slot).value();
    const auto begin = static_cast<uint64_t>(record.address() - data);
    places.push_back({begin, begin + base::RoundUp(record.size(), 8)});
  }
  return places;
}

TEST(BaseFile, RecordsOfOneSizeLieWhereTheyAreGuessed) {
  for (const uint64_t count : {1, 2, 255, 256, 257, 511, 512, 1000}) {
    SCOPED_TRACE(count);
    const auto fs = io::NewMemoryFileSystem();
    const auto base = WriteVariable(fs.get(), TestRecords::Numbered(count, 90, /*equal=*/true));
    const auto places = PlacesIn(*base);
    for (uint64_t slot = 0; slot < count; ++slot) {
      EXPECT_EQ(base->GuessAt(slot).begin, places[slot].begin) << slot;
      EXPECT_EQ(base->GuessAt(slot).end, places[slot].end) << slot;
    }
  }
}

TEST(BaseFile, RecordsOfAnySizeAreGuessedToLieAmongTheirNeighbours) {
  constexpr uint64_t kCount = 2000;
  const auto fs = io::NewMemoryFileSystem();
  const auto base = WriteVariable(fs.get(), TestRecords::Numbered(kCount, 900, /*equal=*/false));
  const auto places = PlacesIn(*base);
  for (uint64_t slot = 0; slot < kCount; ++slot) {
    const uint64_t first = slot - slot % 256;
    const BaseFile::Guess guess = base->GuessAt(slot);
    EXPECT_GE(guess.begin, places[first].begin);
    EXPECT_LE(guess.begin, guess.end);
    EXPECT_LE(guess.end, places[std::min(first + 256, kCount) - 1].end);
    if (slot == first) {
      EXPECT_EQ(guess.begin, places[first].begin);
    }
  }
}

TEST_P(BaseFileOf, WhatIsToldFromTheHashAloneLiesNearTheRecord) {
  constexpr uint64_t kCount = 20'000;
  const TestRecords records = TestRecords::Numbered(kCount, 90, /*equal=*/false);
  const auto base = WriteAndOpen(records);
  const auto places = PlacesIn(*base);
  // Half a slice of the function, and as many records as lie between two samples of the starts.
  const uint64_t bytes_away = (512 + 256) * base->figures().data_bytes / kCount;
  uint64_t near = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string_view key = records[i].key();
    const uint64_t hash = base::Hash(key);
    const uint64_t place = base->PlaceNear(hash);
    ASSERT_LT(place, base->figures().data_bytes);
    const uint64_t begin = places[base->Slot(hash, key)].begin;
    near += std::max(place, begin) - std::min(place, begin) <= bytes_away;
    base->PrefetchNear(hash);
  }
  EXPECT_GE(near, kCount * 9 / 10);
}

TEST(BaseFile, TheDerivedLayoutIsFixedWhereThatCostsAtMostATenthMore) {
  const auto fs = io::NewMemoryFileSystem();
  const auto is_fixed = [&](const TestRecords& records) {
    const auto written = WriteBaseFile(fs.get(), kPath, records.pointers(), {});
    EXPECT_TRUE(fs->RemoveFile(kPath).ok());
    return written.value().fixed;
  };
  EXPECT_TRUE(is_fixed(TestRecords::Numbered(100, 80, true)));
  EXPECT_TRUE(is_fixed(TestRecords()));
  EXPECT_FALSE(is_fixed(TestRecords::Numbered(100, 80, false)));
  // 100 records of 96 bytes, and one of `bytes`: 8, 10 and what fills up included.
  const auto with_one_of = [&](uint64_t bytes) {
    TestRecords records = TestRecords::Numbered(100, 78, true);
    records.Add("key2000000", std::string(bytes - 18, 'v'));
    return is_fixed(records);
  };
  // Variable: 100 * 100 + 108 and 116; a tenth more is 11,118 and 11,127; fixed 10,504 and
  // 11,312.
  EXPECT_TRUE(with_one_of(104));
  EXPECT_FALSE(with_one_of(112));
}

TEST(BaseFile, AnAbsentFileIsNotFound) {
  const auto fs = io::NewMemoryFileSystem();
  EXPECT_EQ(BaseFile::Open(fs.get(), kPath).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace basalt::shared_map
