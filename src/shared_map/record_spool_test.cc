#include "shared_map/record_spool.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "io/memory_file_system.h"
#include "io/sim_file_system.h"

namespace basalt::shared_map {
namespace {

constexpr char kSpoolPath[] = "/spool";
constexpr uint64_t kAmple = uint64_t{64} << 20;

using Records = std::vector<std::pair<std::string, std::string>>;
// Of each key its values, in order.
using Values = std::map<std::string, std::vector<std::string>>;

Records RandomRecords(uint64_t seed, uint64_t count, uint64_t value_bytes_max) {
  base::Random random(seed);
  Records records;
  for (uint64_t i = 0; i < count; ++i) {
    std::string value(random.Below(value_bytes_max + 1), static_cast<char>(random.Next()));
    records.emplace_back("key" + std::to_string(random.Below(2 * count)), std::move(value));
  }
  return records;
}

std::unique_ptr<RecordSpool> NewSpool(io::FileSystem* fs, uint64_t memory_bytes) {
  return RecordSpool::Create(fs, kSpoolPath, memory_bytes).value();
}

void AddAll(RecordSpool* spool, const Records& records) {
  for (const auto& [key, value] : records) {
    const Status status = spool->Add(key, value);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
}

Values ValuesOf(const Records& records) {
  Values values;
  for (const auto& [key, value] : records) values[key].push_back(value);
  return values;
}

void Collect(const LoadedRecords& loaded, Values* values) {
  for (const char* const at : loaded.pointers()) {
    const RecordRef record(at);
    EXPECT_EQ(record.header().kind, 1);
    EXPECT_EQ(record.header().flags, 0);
    (*values)[std::string(record.key())].emplace_back(record.value());
  }
}

void ExpectHoldsExactly(const RecordSpool& spool, const Records& records, uint32_t bits) {
  EXPECT_EQ(spool.records(), records.size());
  uint64_t bytes = 0;
  for (const auto& [key, value] : records) bytes += PaddedRecordBytes(key.size(), value.size());
  EXPECT_EQ(spool.bytes(), bytes);
  Values values;
  for (uint64_t shard = 0; shard < uint64_t{1} << bits; ++shard) {
    const Result<LoadedRecords> loaded = spool.Load(bits, shard);
    ASSERT_TRUE(loaded) << loaded.error().ToString();
    for (const char* const at : loaded->pointers()) {
      const uint64_t hash = base::Hash(RecordRef(at).key());
      ASSERT_EQ(bits == 0 ? 0 : hash >> (64 - bits), shard);
    }
    Collect(*loaded, &values);
  }
  EXPECT_EQ(values, ValuesOf(records));
}

TEST(RecordSpool, WhatFitsIntoMemoryIsNotWritten) {
  io::SimFileSystem fs;
  {
    const auto spool = NewSpool(&fs, kAmple);
    const Records records = RandomRecords(1, 5000, 100);
    AddAll(spool.get(), records);
    for (const uint32_t bits : {0, 1, 5, 10}) ExpectHoldsExactly(*spool, records, bits);
  }
  EXPECT_EQ(fs.calls(), 0u);
}

TEST(RecordSpool, AnEmptyOneHasEmptyShards) {
  io::SimFileSystem fs;
  const auto spool = NewSpool(&fs, 1 << 20);
  ExpectHoldsExactly(*spool, {}, 3);
  LoadedRecords loaded = spool->Load(0, 0).value();
  EXPECT_EQ(loaded.size(), 0u);
  EXPECT_TRUE(loaded.RemoveDuplicates(true).ok());
  EXPECT_TRUE(loaded.RemoveDuplicates(false).ok());
}

TEST(RecordSpool, AnyAmountOfMemoryGivesTheSameRecords) {
  for (const uint64_t memory : {uint64_t{0}, uint64_t{600}, uint64_t{5'000}, uint64_t{40'000},
                                uint64_t{1} << 20, uint64_t{4} << 20}) {
    SCOPED_TRACE(memory);
    const auto fs = io::NewMemoryFileSystem();
    {
      const auto spool = NewSpool(fs.get(), memory);
      const Records records = RandomRecords(memory, memory < 5'000 ? 1000 : 20'000, 300);
      AddAll(spool.get(), records);
      EXPECT_EQ(fs->Exists(kSpoolPath).value(), memory < uint64_t{4} << 20);
      for (const uint32_t bits : {0, 4, 10}) ExpectHoldsExactly(*spool, records, bits);
      // Adding goes on after that.
      Records more = RandomRecords(7, 1000, 300);
      AddAll(spool.get(), more);
      more.insert(more.begin(), records.begin(), records.end());
      ExpectHoldsExactly(*spool, more, 2);
    }
    EXPECT_TRUE(fs->List("/").value().empty());
  }
}

TEST(RecordSpool, EmptyAndLargestKeysAndValuesLargerThanTheMemoryReadBack) {
  const auto fs = io::NewMemoryFileSystem();
  const auto spool = NewSpool(fs.get(), 100'000);
  Records records = RandomRecords(3, 100, 100);
  base::Random random(4);
  std::string large;
  while (large.size() < 1'000'003) base::Append(&large, random.Next());
  records.emplace_back("", "of the empty key");
  records.emplace_back("empty", "");
  records.emplace_back(std::string(65'535, 'k'), "");
  records.emplace_back("large", large);
  records.emplace_back("large", large.substr(1));
  records.emplace_back("", "again");
  AddAll(spool.get(), records);
  ExpectHoldsExactly(*spool, records, 0);
  ExpectHoldsExactly(*spool, records, 10);
}

TEST(RecordSpool, KeysThatAreTooLargeAreRefusedAndAddingGoesOn) {
  io::SimFileSystem fs;
  const auto spool = NewSpool(&fs, kAmple);
  EXPECT_EQ(spool->Add(std::string(65'536, 'k'), "").code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(spool->Add("key", "value").ok());
  ExpectHoldsExactly(*spool, {{"key", "value"}}, 0);
}

TEST(RecordSpool, TheLastRecordOfEachKeyStays) {
  const auto fs = io::NewMemoryFileSystem();
  const auto spool = NewSpool(fs.get(), 50'000);
  Records records = RandomRecords(5, 20'000, 50);
  for (int i = 0; i < 3000; ++i) records.emplace_back("often", std::to_string(i));
  AddAll(spool.get(), records);
  for (const uint32_t bits : {0, 3, 10}) {
    Values values;
    for (uint64_t shard = 0; shard < uint64_t{1} << bits; ++shard) {
      LoadedRecords loaded = spool->Load(bits, shard).value();
      ASSERT_TRUE(loaded.RemoveDuplicates(true).ok());
      Collect(loaded, &values);
    }
    Values expected = ValuesOf(records);
    for (auto& [key, of_key] : expected) of_key = {of_key.back()};
    EXPECT_EQ(values, expected);
  }
}

TEST(RecordSpool, AKeyThatIsThereTwiceIsNamed) {
  const auto fs = io::NewMemoryFileSystem();
  const auto refused = [&](const Records& records) {
    const auto spool = NewSpool(fs.get(), 50'000);
    AddAll(spool.get(), records);
    LoadedRecords loaded = spool->Load(0, 0).value();
    const Status status = loaded.RemoveDuplicates(false);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  Records records;
  for (int i = 0; i < 5000; ++i) records.emplace_back("key" + std::to_string(i), "value");
  {
    const auto spool = NewSpool(fs.get(), 50'000);
    AddAll(spool.get(), records);
    LoadedRecords loaded = spool->Load(0, 0).value();
    EXPECT_TRUE(loaded.RemoveDuplicates(false).ok());
    EXPECT_EQ(loaded.size(), records.size());
  }
  records.emplace_back("key77", "again");
  EXPECT_NE(refused(records).find("'key77'"), std::string::npos);
  const std::string odd = "\n'" + std::string(100, 'x');
  EXPECT_NE(refused({{odd, ""}, {odd, ""}})
                .find("'\\x0A\\x27" + std::string(62, 'x') + "'... (102 bytes)"),
            std::string::npos);
}

TEST(RecordSpool, EveryCallThatFailsIsReported) {
  const Records records = RandomRecords(6, 300, 300);
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    io::SimFileSystem fs;
    Status status;
    bool happened = false;
    {
      const auto spool = NewSpool(&fs, 10'000);
      fs.SetFault({.at_call = call, .error = EIO});
      for (const auto& [key, value] : records) {
        status = spool->Add(key, value);
        if (!status.ok()) break;
      }
      if (!status.ok()) {
        EXPECT_EQ(spool->Add("more", "").code(), StatusCode::kIoError);
        EXPECT_EQ(spool->Load(0, 0).status().code(), StatusCode::kIoError);
      }
      for (uint64_t shard = 0; status.ok() && shard < 4; ++shard) {
        status = spool->Load(2, shard).status();
      }
      happened = fs.FaultHappened();
      fs.ClearFault();
      if (!happened) {
        ASSERT_TRUE(status.ok());
        ExpectHoldsExactly(*spool, records, 1);
      }
    }
    EXPECT_TRUE(fs.List("/").value().empty());
    if (!happened) break;
    ++failed;
    ASSERT_EQ(status.code(), StatusCode::kIoError) << call;
    EXPECT_NE(status.message().find(kSpoolPath), std::string_view::npos);
  }
  EXPECT_GE(failed, 50u);
}

TEST(RecordSpool, AFullDiskIsReportedAndTheFileGoes) {
  io::SimFileSystem fs;
  fs.SetCapacity(100'000);
  {
    const auto spool = NewSpool(&fs, 30'000);
    Status status;
    for (int i = 0; i < 10'000 && status.ok(); ++i) {
      status = spool->Add("key" + std::to_string(i), std::string(100, 'v'));
    }
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(spool->Load(0, 0).status().code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(fs.BytesUsed(), 0u);
}

TEST(RecordSpool, ADamagedFileIsFound) {
  io::SimFileSystem fs;
  const auto spool = NewSpool(&fs, 30'000);
  AddAll(spool.get(), RandomRecords(8, 1000, 100));
  const uint64_t bytes = fs.FileSize(kSpoolPath).value();
  ASSERT_GT(bytes, 30'000u);
  for (uint64_t at = 0; at < bytes; at += 997) {
    ASSERT_TRUE(fs.FlipBit(kSpoolPath, 8 * at + at % 8).ok());
    const auto loaded = spool->Load(0, 0);
    ASSERT_EQ(loaded.status().code(), StatusCode::kCorruption) << at;
    ASSERT_EQ(loaded.error().message().find("/spool: "), 0u);
    ASSERT_TRUE(fs.FlipBit(kSpoolPath, 8 * at + at % 8).ok());
  }
  EXPECT_TRUE(spool->Load(0, 0));
  ASSERT_TRUE(fs.Open(kSpoolPath, io::OpenMode::kReadWrite).value()->Truncate(bytes - 1).ok());
  EXPECT_EQ(spool->Load(0, 0).status().code(), StatusCode::kCorruption);
}

TEST(RecordSpool, AFileThatABuildLeftBehindIsReplaced) {
  const auto fs = io::NewMemoryFileSystem();
  ASSERT_TRUE(fs->Open(kSpoolPath, io::OpenMode::kCreate).value()->WriteAt(0, "old").ok());
  const auto spool = NewSpool(fs.get(), 10'000);
  const Records records = RandomRecords(9, 1000, 100);
  AddAll(spool.get(), records);
  ExpectHoldsExactly(*spool, records, 2);
}

TEST(RecordSpool, ShardsHoldAtMostWhatTheyShouldOnAverage) {
  constexpr uint64_t kMebi = uint64_t{1} << 20;
  EXPECT_EQ(RecordSpool::ShardBits(0, 0), 0u);
  EXPECT_EQ(RecordSpool::ShardBits(4 * kMebi, 256 * kMebi), 0u);
  EXPECT_EQ(RecordSpool::ShardBits(4 * kMebi + 1, 0), 1u);
  EXPECT_EQ(RecordSpool::ShardBits(1, 256 * kMebi + 1), 1u);
  EXPECT_EQ(RecordSpool::ShardBits(100 * kMebi, 512 * kMebi), 5u);
  EXPECT_EQ(RecordSpool::ShardBits(5, 100'000 * kMebi), 9u);
  EXPECT_EQ(RecordSpool::ShardBits(UINT64_MAX, UINT64_MAX), 10u);
}

}  // namespace
}  // namespace basalt::shared_map
