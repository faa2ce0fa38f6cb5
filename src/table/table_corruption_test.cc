#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "io/memory_file_system.h"
#include "table/block.h"
#include "table/block_ref.h"
#include "table/point_index.h"
#include "table/stored_block.h"
#include "table/table.h"
#include "table/table_format.h"
#include "table/test_records.h"
#include "table/test_reseal.h"

namespace basalt::table {
namespace {

// A table of some blocks in few bytes: long values that compress well.
std::vector<Record> SmallTableRecords() {
  std::vector<Record> records;
  for (base::SequenceNumber i = 1; i <= 20; ++i) {
    records.push_back(Put(Numbered("key", 100 + i), i, std::string(3000, static_cast<char>(i))));
    records.push_back(Put(Numbered("key", 100 + i), i + 50, "newer", i % 5 == 0 ? 1000 * i : 0));
    if (i % 6 == 0) records.push_back(Merge(Numbered("key", 100 + i), i + 80, "+operand", 50 + i));
    if (i % 4 == 0) records.push_back(Delete(Numbered("key", 100 + i), i + 100));
  }
  Sort(&records);
  return records;
}

// A table file that can be changed.
class TableCorruption : public testing::Test {
 protected:
  void SetUp() override {
    fs_ = io::NewMemoryFileSystem();
    spot_ = {.fs = fs_.get()};
    records_ = SmallTableRecords();
    ASSERT_TRUE(WriteTable(spot_, records_));
    bytes_ = io::ReadWholeFile(fs_.get(), spot_.path, 1 << 20).value();
  }

  void Replace(const std::string& bytes) {
    ASSERT_TRUE(fs_->RemoveFile(spot_.path).ok());
    const auto file = fs_->Open(spot_.path, io::OpenMode::kCreate).value();
    ASSERT_TRUE(file->WriteAt(0, bytes).ok());
  }

  // An error must be of the right kind and name the file and the place.
  void ExpectGoodError(const Status& status) {
    ASSERT_TRUE(status.code() == StatusCode::kCorruption ||
                status.code() == StatusCode::kUnsupported)
        << status.ToString();
    ASSERT_NE(status.message().find(spot_.path), std::string_view::npos) << status.ToString();
    ASSERT_NE(status.message().find("offset"), std::string_view::npos) << status.ToString();
  }

  // Reads everything every way: each answer is right, or an error. Gives whether one was an error.
  bool ReadAll(const Table& table) {
    bool failed = false;
    VectorIterator model(&records_);
    for (const Record& record : records_) {
      TableRead found;
      const base::SequenceNumber at = base::TagSequence(record.tag);
      const auto result = table.Get(record.key, base::Hash(record.key), at, true, &found);
      if (!result) {
        ExpectGoodError(result.error());
        failed = true;
        continue;
      }
      EXPECT_TRUE(*result);
      EXPECT_EQ(found.tag, record.tag);
      EXPECT_EQ(found.time_ms, record.time_ms);
      EXPECT_TRUE(found.value == record.value);
    }
    const auto it = table.NewIterator(true);
    size_t i = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next(), ++i) EXPECT_EQ(Present(*it), records_[i]);
    if (!it->status().ok()) {
      ExpectGoodError(it->status());
      failed = true;
    } else {
      EXPECT_EQ(i, records_.size());
    }
    i = records_.size();
    for (it->SeekToLast(); it->Valid(); it->Prev()) EXPECT_EQ(Present(*it), records_[--i]);
    EXPECT_TRUE(i == 0 || !it->status().ok());
    return failed;
  }

  SectionEntry Section(SectionKind kind) {
    const auto trailer = FromBytes<FileTrailer>(bytes_, bytes_.size() - sizeof(FileTrailer));
    SectionEntry entry{};
    for (uint32_t i = 0; i < trailer.section_count && entry.kind != static_cast<uint32_t>(kind);
         ++i) {
      entry =
          FromBytes<SectionEntry>(bytes_, trailer.section_table_offset + i * sizeof(SectionEntry));
    }
    EXPECT_EQ(entry.kind, static_cast<uint32_t>(kind));
    return entry;
  }

  uint64_t KeyCount() { return KeyHashes().size(); }

  // Of records_, each key once.
  std::vector<uint64_t> KeyHashes() {
    std::vector<uint64_t> hashes;
    for (size_t i = 0; i < records_.size(); ++i) {
      if (i == 0 || records_[i].key != records_[i - 1].key) {
        hashes.push_back(base::Hash(records_[i].key));
      }
    }
    return hashes;
  }

  // Begins again with other records.
  void Rewrite(std::vector<Record> records) {
    ASSERT_TRUE(fs_->RemoveFile(spot_.path).ok());
    records_ = std::move(records);
    ASSERT_TRUE(WriteTable(spot_, records_));
    bytes_ = io::ReadWholeFile(fs_.get(), spot_.path, 1 << 20).value();
  }

  void ReplacePointIndex(const PointIndex& index) {
    const SectionEntry entry = Section(SectionKind::kPointIndex);
    ASSERT_EQ(index.bytes().size(), entry.size);
    std::string changed = bytes_;
    changed.replace(entry.offset, entry.size, index.bytes());
    ResealTable(&changed);
    ASSERT_NO_FATAL_FAILURE(Replace(changed));
  }

  uint64_t SecondBlockOffset() {
    const SectionEntry entry = Section(SectionKind::kIndexParts);  // of one part
    BlockBuffer buffer = BlockBuffer::Allocate(entry.size - kBlockTrailerBytes);
    std::memcpy(buffer.bytes.get(), bytes_.data() + entry.offset, buffer.size);
    const auto index = Block::Parse(std::move(buffer), Block::Content::kIndex).value();
    return FromBytes<BlockHandle>(index->value(1)).offset;
  }

  // The offsets at which Verify finds faults.
  std::vector<uint64_t> Faults(const Table& table) {
    std::vector<uint64_t> offsets;
    const Status status = table.Verify({}, [&](uint64_t offset, const Status& fault) {
      ExpectGoodError(fault);
      offsets.push_back(offset);
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offsets;
  }

  // Changes a copy of the file's fixed parts as `change` says, with their checksums made right.
  std::string Resealed(const std::function<void(FileHeader*, FileTrailer*)>& change) {
    std::string bytes = bytes_;
    const uint64_t trailer_offset = bytes.size() - sizeof(FileTrailer);
    auto header = FromBytes<FileHeader>(bytes);
    auto trailer = FromBytes<FileTrailer>(bytes, trailer_offset);
    change(&header, &trailer);
    header.checksum = base::Checksum(header.file_id, 0, BytesOf(header).substr(0, 56));
    trailer.checksum = base::Checksum(trailer.file_id, bytes.size() - sizeof(FileTrailer),
                                      BytesOf(trailer).substr(0, kTrailerChecksummedBytes));
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + trailer_offset, &trailer, sizeof trailer);
    return bytes;
  }

  // Adds a section of an unknown kind in front of the section table.
  std::string WithForeignSection(uint32_t flags) {
    const auto header = FromBytes<FileHeader>(bytes_);
    auto trailer = FromBytes<FileTrailer>(bytes_, bytes_.size() - sizeof(FileTrailer));
    std::string bytes = bytes_.substr(0, trailer.section_table_offset);
    std::string entries =
        bytes_.substr(trailer.section_table_offset, trailer.section_count * sizeof(SectionEntry));
    const std::string section = "what a later version wrote";
    const SectionEntry entry = {.kind = 77,
                                .flags = flags,
                                .offset = bytes.size(),
                                .size = section.size(),
                                .checksum = base::Checksum(header.file_id, bytes.size(), section)};
    entries.append(BytesOf(entry));
    bytes.append(section);
    trailer.section_table_offset = bytes.size();
    trailer.section_table_checksum = base::Checksum(header.file_id, bytes.size(), entries);
    trailer.section_count += 1;
    bytes.append(entries);
    trailer.file_bytes = bytes.size() + sizeof trailer;
    trailer.checksum = base::Checksum(header.file_id, bytes.size(),
                                      BytesOf(trailer).substr(0, kTrailerChecksummedBytes));
    bytes.append(BytesOf(trailer));
    return bytes;
  }

  std::unique_ptr<io::FileSystem> fs_;
  TableSpot spot_;
  std::vector<Record> records_;
  std::string bytes_;
};

TEST_F(TableCorruption, AFlippedBitAtAnyByteGivesAnErrorOrTheRightAnswer) {
  const auto whole = OpenTable(spot_).value();
  ASSERT_GT(whole->block_count(), 3u);
  ASSERT_TRUE(Faults(*whole).empty());
  for (size_t at = 0; at < bytes_.size(); ++at) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    ASSERT_NO_FATAL_FAILURE(Replace(changed));
    for (const auto& budget : {std::shared_ptr<MetadataBudget>(), NoRoom(), NoRoomAtAll()}) {
      const bool has_point_index = budget == nullptr;
      spot_.budget = budget;
      const auto table = OpenTable(spot_, NewCache(1 << 20));
      if (!table) {
        ASSERT_NO_FATAL_FAILURE(ExpectGoodError(table.error()));
        continue;
      }
      // Of point index and filter only one is read.
      const SectionEntry unread =
          Section(has_point_index ? SectionKind::kFilter : SectionKind::kPointIndex);
      const bool is_read = at < unread.offset || at >= unread.offset + unread.size;
      EXPECT_EQ(ReadAll(**table), is_read);
      const std::vector<uint64_t> faults = Faults(**table);
      ASSERT_EQ(faults.size(), 1u);
      EXPECT_LE(faults[0], at);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_F(TableCorruption, VerifyReportsDamageToMetadataBehindAnOpenTable) {
  const auto file = fs_->Open(spot_.path, io::OpenMode::kReadWrite).value();
  const auto table = OpenTable(spot_, NewCache(1 << 20)).value();
  ASSERT_FALSE(ReadAll(*table));
  for (size_t at = 0; at < bytes_.size(); ++at) {
    const char changed = static_cast<char>(bytes_[at] ^ 0x10);
    ASSERT_TRUE(file->WriteAt(at, {&changed, 1}).ok());
    ASSERT_EQ(Faults(*table).size(), 1u) << "byte " << at;
    ASSERT_TRUE(file->WriteAt(at, {&bytes_[at], 1}).ok());
  }
  ASSERT_TRUE(Faults(*table).empty());
}

TEST_F(TableCorruption, VerifyGoesOnBehindAFault) {
  std::string changed = bytes_;
  const auto whole = OpenTable(spot_).value();
  const size_t blocks = whole->block_count();
  // The first bytes of the file's data belong to block 0; the last before the index to the last.
  const SectionEntry index = Section(SectionKind::kIndexParts);
  changed[sizeof(FileHeader)] = static_cast<char>(changed[sizeof(FileHeader)] ^ 1);
  changed[index.offset - 1] = static_cast<char>(changed[index.offset - 1] ^ 1);
  ASSERT_NO_FATAL_FAILURE(Replace(changed));
  const auto table = OpenTable(spot_).value();
  const std::vector<uint64_t> faults = Faults(*table);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0], sizeof(FileHeader));
  EXPECT_GT(faults[1], faults[0]);
  EXPECT_GT(blocks, 2u);
}

TEST_F(TableCorruption, EveryTruncationIsAnError) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    ASSERT_NO_FATAL_FAILURE(Replace(bytes_.substr(0, size)));
    const auto table = OpenTable(spot_, nullptr, bytes_.size());
    ASSERT_FALSE(table) << size;
    EXPECT_EQ(table.error().code(), StatusCode::kCorruption);
    if (size >= 8) {
      EXPECT_NE(table.error().message().find("the manifest says " + std::to_string(bytes_.size())),
                std::string_view::npos)
          << table.error().ToString();
    }
    // Even if the manifest agrees.
    const auto agreed = OpenTable(spot_, nullptr, size == 0 ? 1 : size);
    ASSERT_FALSE(agreed) << size;
    ASSERT_NO_FATAL_FAILURE(ExpectGoodError(agreed.error()));
  }
}

TEST_F(TableCorruption, ALongerFileIsAnError) {
  ASSERT_NO_FATAL_FAILURE(Replace(std::string(bytes_).append(1, '\0')));
  EXPECT_FALSE(OpenTable(spot_, nullptr, bytes_.size()));
  EXPECT_FALSE(OpenTable(spot_, nullptr, bytes_.size() + 1));
}

TEST_F(TableCorruption, AForeignFileIsNoBasaltTable) {
  ASSERT_NO_FATAL_FAILURE(Replace(std::string(5000, 'x')));
  const auto table = OpenTable(spot_);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code(), StatusCode::kCorruption);
  EXPECT_NE(table.error().message().find("not a Basalt table"), std::string_view::npos);
  ASSERT_NO_FATAL_FAILURE(ExpectGoodError(table.error()));
}

TEST_F(TableCorruption, AnotherTableInItsPlaceIsCaughtByItsId) {
  const TableSpot other = {.fs = fs_.get(), .path = "/other", .file_id = 99};
  ASSERT_TRUE(WriteTable(other, records_));
  const std::string foreign = io::ReadWholeFile(fs_.get(), other.path, 1 << 20).value();
  ASSERT_EQ(foreign.size(), bytes_.size());
  ASSERT_NO_FATAL_FAILURE(Replace(foreign));
  const auto table = OpenTable(spot_);
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message().find("another table"), std::string_view::npos);
  TableSpot keyspace = other;
  keyspace.keyspace = 5;
  EXPECT_EQ(OpenTable(keyspace).error().code(), StatusCode::kCorruption);
}

TEST_F(TableCorruption, ABlockOfAnotherTableOrOfAnotherPlaceIsCaught) {
  spot_.path = "/plain";
  spot_.compression = Compression::kNone;
  TableSpot other = spot_;
  other.path = "/other";
  other.file_id = 99;
  ASSERT_TRUE(WriteTable(spot_, records_));
  ASSERT_TRUE(WriteTable(other, records_));
  bytes_ = io::ReadWholeFile(fs_.get(), spot_.path, 1 << 20).value();
  const std::string foreign = io::ReadWholeFile(fs_.get(), other.path, 1 << 20).value();
  const SectionEntry index = Section(SectionKind::kIndexParts);

  // All data blocks of the other table: equal records at equal places, but not these bytes.
  std::string changed = bytes_;
  changed.replace(sizeof(FileHeader), index.offset - sizeof(FileHeader), foreign,
                  sizeof(FileHeader), index.offset - sizeof(FileHeader));
  ASSERT_NO_FATAL_FAILURE(Replace(changed));
  const auto table = OpenTable(spot_).value();
  TableRead found;
  const auto read = table->Get("key101", base::Hash("key101"), 60, true, &found);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), StatusCode::kCorruption);
  EXPECT_EQ(Faults(*table).size(), table->block_count());
}

TEST_F(TableCorruption, TwoBlocksOfOneTableThatChangedPlacesAreCaught) {
  std::vector<Record> records;
  for (base::SequenceNumber i = 1; i <= 4; ++i) {
    records.push_back(Put(Numbered("key", i), i, std::string(16'000, 'v')));
  }
  spot_.path = "/even";
  spot_.compression = Compression::kNone;
  ASSERT_TRUE(WriteTable(spot_, records));
  bytes_ = io::ReadWholeFile(fs_.get(), spot_.path, 1 << 20).value();
  const size_t data_bytes = Section(SectionKind::kIndexParts).offset - sizeof(FileHeader);
  const size_t block_bytes = data_bytes / records.size();
  std::string swapped = bytes_.substr(0, sizeof(FileHeader));
  swapped.append(bytes_, sizeof(FileHeader) + block_bytes, block_bytes);
  swapped.append(bytes_, sizeof(FileHeader), block_bytes);
  swapped.append(bytes_, sizeof(FileHeader) + 2 * block_bytes);
  // Even with checksums that are right: the index knows what each block must hold.
  for (const bool reseal : {false, true}) {
    if (reseal) ResealTable(&swapped);
    ASSERT_NO_FATAL_FAILURE(Replace(swapped));
    const auto table = OpenTable(spot_).value();
    TableRead found;
    for (const std::string key : {"key1", "key2"}) {
      const auto read = table->Get(key, base::Hash(key), 9, true, &found);
      ASSERT_FALSE(read);
      ExpectGoodError(read.error());
    }
    EXPECT_TRUE(table->Get("key3", base::Hash("key3"), 9, true, &found).value());
    EXPECT_EQ(Faults(*table).size(), 2u);
  }
}

TEST_F(TableCorruption, VerifyHoldsThePropertiesAgainstTheRecords) {
  const SectionEntry properties = Section(SectionKind::kProperties);
  // All numbers but the sizes of the keys.
  for (const uint64_t field : {0u, 8u, 16u, 24u, 32u, 40u, 48u, 56u, 72u, 80u}) {
    std::string changed = bytes_;
    char& byte = changed[properties.offset + field];
    byte = static_cast<char>(byte + 1);
    ResealTable(&changed);
    ASSERT_NO_FATAL_FAILURE(Replace(changed));
    const auto table = OpenTable(spot_).value();
    EXPECT_FALSE(ReadAll(*table));
    EXPECT_EQ(Faults(*table), std::vector<uint64_t>{properties.offset}) << "field at " << field;
  }
}

TEST_F(TableCorruption, VerifyAsksTheFilterForEveryKey) {
  const SectionEntry filter = Section(SectionKind::kFilter);
  std::string changed = bytes_;
  std::fill_n(changed.begin() + static_cast<ptrdiff_t>(filter.offset) + 64, filter.size - 64, '\0');
  ResealTable(&changed);
  ASSERT_NO_FATAL_FAILURE(Replace(changed));
  EXPECT_EQ(Faults(*OpenTable(spot_).value()).size(), KeyCount());
}

TEST_F(TableCorruption, VerifyAsksThePointIndexForEveryKey) {
  const SectionEntry entry = Section(SectionKind::kPointIndex);
  std::string changed = bytes_;
  std::fill_n(changed.begin() + static_cast<ptrdiff_t>(entry.offset) + 64, entry.size - 64, '\0');
  ResealTable(&changed);
  ASSERT_NO_FATAL_FAILURE(Replace(changed));
  EXPECT_EQ(Faults(*OpenTable(spot_).value()).size(), KeyCount());
}

TEST_F(TableCorruption, APointIndexThatNamesNoRecordIsAnError) {
  // One block with a full last record, so that any other number is too large.
  ASSERT_NO_FATAL_FAILURE(Rewrite({Put("a", 1, "1"), Put("b", 2, "2"), Put("c", 3, "3")}));
  for (const RecordPlace outside : {RecordPlace{0, 3}, RecordPlace{1, 0}, RecordPlace{7, 77}}) {
    std::vector<RecordPlace> places = {{0, 0}, {0, 1}, outside};
    ASSERT_NO_FATAL_FAILURE(ReplacePointIndex(PointIndex::Build(KeyHashes(), places)));
    const auto table = OpenTable(spot_).value();
    TableRead found;
    EXPECT_TRUE(table->Get("a", base::Hash("a"), 9, true, &found).value());
    const auto read = table->Get("c", base::Hash("c"), 9, true, &found);
    ASSERT_FALSE(read);
    ExpectGoodError(read.error());
    // The key is not found, and the place is wrong.
    const std::vector<uint64_t> faults = Faults(*table);
    ASSERT_EQ(faults.size(), 2u);
    EXPECT_EQ(faults[0], sizeof(FileHeader));
    EXPECT_EQ(faults[1], Section(SectionKind::kPointIndex).offset);
  }
}

TEST_F(TableCorruption, APointIndexOfAnotherKindIsPassedOver) {
  const SectionEntry entry = Section(SectionKind::kPointIndex);
  std::string changed = bytes_;
  changed[entry.offset] = 1;  // the first kind there was
  ResealTable(&changed);
  ASSERT_NO_FATAL_FAILURE(Replace(changed));
  spot_.budget = std::make_shared<MetadataBudget>(1 << 20, 1 << 20);
  const auto table = OpenTable(spot_).value();
  EXPECT_FALSE(table->has_point_index());
  EXPECT_EQ(spot_.budget->charged_bytes(), table->metadata_bytes());
  EXPECT_FALSE(ReadAll(*table));
  EXPECT_TRUE(Faults(*table).empty());
}

TEST_F(TableCorruption, VerifyFindsAPointIndexThatLeadsToAnOlderVersion) {
  ASSERT_NO_FATAL_FAILURE(Rewrite({Put("a", 1, "1"), Put("b", 3, "new"), Put("b", 2, "old")}));
  const std::vector<RecordPlace> right = {{0, 0}, {0, 1}};
  const std::vector<RecordPlace> wrong = {{0, 0}, {0, 2}};
  ASSERT_NO_FATAL_FAILURE(ReplacePointIndex(PointIndex::Build(KeyHashes(), right)));
  EXPECT_TRUE(Faults(*OpenTable(spot_).value()).empty());
  ASSERT_NO_FATAL_FAILURE(ReplacePointIndex(PointIndex::Build(KeyHashes(), wrong)));
  EXPECT_EQ(Faults(*OpenTable(spot_).value()).size(), 1u);
}

TEST_F(TableCorruption, KeysOfEqualHashesAreToldApart) {
  std::vector<Record> records;
  std::vector<RecordPlace> places;
  for (uint32_t i = 0; i < 10; ++i) {
    places.push_back({.block = 0, .ordinal = static_cast<uint32_t>(records.size())});
    records.push_back(Put(Numbered("key", i), 7, "new"));
    records.push_back(Put(Numbered("key", i), 3, Numbered("old", i)));
  }
  ASSERT_NO_FATAL_FAILURE(Rewrite(records));
  constexpr uint64_t kHash = 0x0123'4567'89AB'CDEF;
  ASSERT_NO_FATAL_FAILURE(
      ReplacePointIndex(PointIndex::Build(std::vector<uint64_t>(10, kHash), places)));
  const auto table = OpenTable(spot_).value();
  TableRead found;
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(table->Get(Numbered("key", i), kHash, 9, true, &found).value());
    EXPECT_TRUE(found.value == "new");
    ASSERT_TRUE(table->Get(Numbered("key", i), kHash, 6, true, &found).value());
    EXPECT_TRUE(found.value == Numbered("old", i));
    EXPECT_FALSE(table->Get(Numbered("key", i), kHash, 2, true, &found).value());
  }
  EXPECT_FALSE(table->Get("absent", kHash, 9, true, &found).value());
}

TEST_F(TableCorruption, ACompressionOrARawSizeThatCannotBeIsAnError) {
  const auto expect_error = [&](uint64_t word, StatusCode code) {
    std::string changed = bytes_;
    const Result<std::shared_ptr<Table>> whole = OpenTable(spot_);
    ASSERT_TRUE(whole);
    // The first block ends where the second begins: its trailer's first word is its last but one.
    const uint64_t second = SecondBlockOffset();
    std::memcpy(changed.data() + second - kBlockTrailerBytes, &word, sizeof word);
    ResealTable(&changed);
    ASSERT_NO_FATAL_FAILURE(Replace(changed));
    const auto block = OpenTable(spot_).value()->ReadBlock(0, false);
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().code(), code) << block.error().ToString();
    ExpectGoodError(block.error());
    ASSERT_NO_FATAL_FAILURE(Replace(bytes_));
  };
  const auto stored_as = [](uint64_t method, uint64_t raw_bytes) {
    return raw_bytes << 8 | method;
  };
  expect_error(stored_as(4, 1000), StatusCode::kUnsupported);
  expect_error(stored_as(255, 1000), StatusCode::kUnsupported);
  expect_error(stored_as(0, 1000), StatusCode::kCorruption);
  expect_error(stored_as(1, uint64_t{1} << 40), StatusCode::kCorruption);
  expect_error(stored_as(1, 1000), StatusCode::kCorruption);
  expect_error(stored_as(3, uint64_t{1} << 40), StatusCode::kCorruption);
  expect_error(stored_as(3, 1000), StatusCode::kCorruption);
  expect_error(stored_as(2, 1000), StatusCode::kCorruption);
  expect_error(stored_as(2, kZstdRawBytesMax), StatusCode::kCorruption);
  expect_error(stored_as(2, kZstdRawBytesMax + 1), StatusCode::kCorruption);
}

TEST_F(TableCorruption, ATableWithADictionaryIsCheckedAsWell) {
  base::Random random(1);
  spot_.compression = Compression::kLz4ThenZstd;
  spot_.at_last_level = true;
  std::vector<Record> records;
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string value = "what all values begin with, and then something of their own: ";
    for (int words = 0; words < 5; ++words) value.append(std::to_string(random.Next()));
    records.push_back(Put(Numbered("key", 10'000 + i), i + 1, std::move(value)));
  }
  ASSERT_NO_FATAL_FAILURE(Rewrite(records));
  const SectionEntry dictionary = Section(SectionKind::kDictionary);
  EXPECT_EQ(dictionary.flags, kSectionRequired);
  EXPECT_TRUE(Faults(*OpenTable(spot_).value()).empty());
  for (size_t at = 0; at < bytes_.size(); at += 1 + random.Below(4000)) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    ASSERT_NO_FATAL_FAILURE(Replace(changed));
    const auto table = OpenTable(spot_);
    if (!table) {
      ASSERT_NO_FATAL_FAILURE(ExpectGoodError(table.error()));
    } else {
      EXPECT_EQ(Faults(**table).size(), 1u);
    }
  }
  // Other bytes in its place, under a right checksum.
  std::string changed = bytes_;
  std::fill_n(changed.begin() + static_cast<ptrdiff_t>(dictionary.offset), 200, 'x');
  ResealTable(&changed);
  ASSERT_NO_FATAL_FAILURE(Replace(changed));
  const auto table = OpenTable(spot_);
  ASSERT_FALSE(table);
  ExpectGoodError(table.error());
  EXPECT_NE(table.error().message().find("dictionary"), std::string_view::npos);
}

// As tables were written before there were times: without the feature, and with shorter properties.
TEST_F(TableCorruption, ATableOfBeforeTimesIsRead) {
  std::erase_if(records_, [](const Record& record) { return record.time_ms != 0; });
  ASSERT_NO_FATAL_FAILURE(Rewrite(records_));
  const SectionEntry properties = Section(SectionKind::kProperties);
  const uint64_t trailer_offset = bytes_.size() - sizeof(FileTrailer);
  auto header = FromBytes<FileHeader>(bytes_);
  auto trailer = FromBytes<FileTrailer>(bytes_, trailer_offset);
  const uint64_t table_offset = trailer.section_table_offset;
  const uint64_t last_entry = table_offset + (trailer.section_count - 1) * sizeof(SectionEntry);
  auto entry = FromBytes<SectionEntry>(bytes_, last_entry);
  ASSERT_EQ(entry.offset, properties.offset);
  entry.size -= 16;
  header.required_features = trailer.required_features = 0;
  trailer.section_table_offset -= 16;
  std::memcpy(bytes_.data(), &header, sizeof header);
  std::memcpy(bytes_.data() + last_entry, &entry, sizeof entry);
  std::memcpy(bytes_.data() + trailer_offset, &trailer, sizeof trailer);
  bytes_.erase(properties.offset + 72, 16);
  ResealTable(&bytes_);
  ASSERT_NO_FATAL_FAILURE(Replace(bytes_));
  const auto table = OpenTable(spot_);
  ASSERT_TRUE(table) << table.error().ToString();
  EXPECT_FALSE(ReadAll(**table));
  EXPECT_TRUE(Faults(**table).empty());
}

TEST_F(TableCorruption, ANewerVersionOrAnUnknownFeatureIsUnsupportedAndNamed) {
  ASSERT_NO_FATAL_FAILURE(Replace(Resealed([](FileHeader* header, FileTrailer* trailer) {
    header->format_version = trailer->format_version = 3;
  })));
  Status status = OpenTable(spot_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("version 3"), std::string_view::npos) << status.ToString();

  ASSERT_NO_FATAL_FAILURE(Replace(Resealed([](FileHeader* header, FileTrailer* trailer) {
    header->required_features = trailer->required_features = 16;
  })));
  status = OpenTable(spot_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("features"), std::string_view::npos) << status.ToString();

  ASSERT_NO_FATAL_FAILURE(Replace(Resealed([](FileHeader* header, FileTrailer* trailer) {
    header->optional_features = trailer->optional_features = 4;
  })));
  EXPECT_TRUE(OpenTable(spot_));
}

TEST_F(TableCorruption, ATrailerThatDoesNotMatchTheHeaderIsAnError) {
  const std::vector<std::function<void(FileHeader*, FileTrailer*)>> changes = {
      [](FileHeader*, FileTrailer* trailer) { trailer->keyspace = 1; },
      [](FileHeader*, FileTrailer* trailer) { trailer->optional_features = 1; },
      [](FileHeader*, FileTrailer* trailer) { trailer->format_version = 2; },
      [](FileHeader*, FileTrailer* trailer) { trailer->file_bytes += 1; },
      [](FileHeader*, FileTrailer* trailer) { trailer->section_count = 1u << 31; },
      [](FileHeader*, FileTrailer* trailer) { trailer->section_table_offset = ~uint64_t{0}; },
      [](FileHeader* header, FileTrailer*) { header->reserved[1] = 1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(Replace(Resealed(changes[i])));
    const auto table = OpenTable(spot_);
    ASSERT_FALSE(table) << i;
    EXPECT_EQ(table.error().code(), StatusCode::kCorruption) << table.error().ToString();
  }
}

TEST_F(TableCorruption, AnUnknownSectionIsSkippedUnlessItIsRequired) {
  ASSERT_NO_FATAL_FAILURE(Replace(WithForeignSection(0)));
  const auto table = OpenTable(spot_);
  ASSERT_TRUE(table) << table.error().ToString();
  EXPECT_FALSE(ReadAll(**table));
  EXPECT_TRUE(Faults(**table).empty());

  ASSERT_NO_FATAL_FAILURE(Replace(WithForeignSection(kSectionRequired)));
  const Status status = OpenTable(spot_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("kind 77"), std::string_view::npos) << status.ToString();
  EXPECT_NE(status.message().find("version 1"), std::string_view::npos) << status.ToString();
}

}  // namespace
}  // namespace basalt::table
