#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "io/memory_file_system.h"
#include "table/block_index.h"
#include "table/bloom_filter.h"
#include "table/filter_pages.h"
#include "table/stored_block.h"
#include "table/table.h"
#include "table/table_format.h"
#include "table/test_records.h"
#include "table/test_reseal.h"

namespace basalt::table {
namespace {

/// A table whose index has many parts and whose filter has several pages: 12,000 keys in blocks of
/// some 40, and an index entry of some 250 bytes for each block.
class TableInParts : public testing::Test {
 protected:
  void SetUp() override {
    fs_ = io::NewMemoryFileSystem();
    spot_ = {.fs = fs_.get(), .budget = NoRoomAtAll()};
    for (uint64_t i = 0; i < 12'000; ++i) records_.push_back(Put(Key(2 * i), i + 1, Value(i)));
    ASSERT_TRUE(WriteTable(spot_, records_));
    bytes_ = io::ReadWholeFile(fs_.get(), spot_.path, 32 << 20).value();
    const SectionEntry root = Section(SectionKind::kIndexRoot);
    BlockBuffer buffer = BlockBuffer::Allocate(root.size);
    std::memcpy(buffer.bytes.get(), bytes_.data() + root.offset, root.size);
    const SectionEntry parts = Section(SectionKind::kIndexParts);
    index_ = BlockIndex::InParts(Block::Parse(std::move(buffer), Block::Content::kIndex).value(),
                                 parts.offset, parts.offset + parts.size)
                 .value();
    ASSERT_GT(index_.part_count(), 10u);
  }

  // Odd numbers are of no record.
  static std::string Key(uint64_t number) {
    return std::string(240, 'k') + std::to_string(1'000'000 + number);
  }
  static std::string Value(uint64_t i) { return std::string(i % 300, static_cast<char>(i)); }

  SectionEntry Section(SectionKind kind) const {
    const auto trailer = FromBytes<FileTrailer>(bytes_, bytes_.size() - sizeof(FileTrailer));
    for (uint32_t i = 0; i < trailer.section_count; ++i) {
      const auto entry =
          FromBytes<SectionEntry>(bytes_, trailer.section_table_offset + i * sizeof(SectionEntry));
      if (entry.kind == static_cast<uint32_t>(kind)) return entry;
    }
    ADD_FAILURE() << "no section " << static_cast<uint32_t>(kind);
    return {};
  }

  void Flip(uint64_t at) {
    const char flipped = static_cast<char>(bytes_[at] ^ 1);
    ASSERT_TRUE(
        fs_->Open(spot_.path, io::OpenMode::kReadWrite).value()->WriteAt(at, {&flipped, 1}).ok());
  }
  void Replace(const std::string& bytes) {
    ASSERT_EQ(bytes.size(), bytes_.size());
    ASSERT_TRUE(fs_->Open(spot_.path, io::OpenMode::kReadWrite).value()->WriteAt(0, bytes).ok());
  }

  static Result<bool> Get(const Table& table, std::string_view key, TableRead* found) {
    return table.Get(key, base::Hash(key), kEver, true, found);
  }
  void ExpectFound(const Table& table, const Record& record) {
    TableRead found;
    const auto read = Get(table, record.key, &found);
    ASSERT_TRUE(read) << read.error().ToString();
    ASSERT_TRUE(*read);
    ASSERT_EQ(found.tag, record.tag);
    ASSERT_TRUE(found.value == record.value);
  }

  std::vector<uint64_t> Faults(const Table& table) {
    std::vector<uint64_t> offsets;
    const Status status = table.Verify({}, [&](uint64_t offset, const Status& fault) {
      EXPECT_EQ(fault.code(), StatusCode::kCorruption) << fault.ToString();
      offsets.push_back(offset);
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return offsets;
  }

  std::unique_ptr<io::FileSystem> fs_;
  TableSpot spot_;
  std::vector<Record> records_;
  std::string bytes_;
  BlockIndex index_;
};

TEST_F(TableInParts, WhatStaysInMemoryIsSmallAndCharged) {
  const auto cache = NewCache(1 << 20);
  spot_.budget = NoRoom();
  const uint64_t whole = OpenTable(spot_, cache).value()->metadata_bytes();
  spot_.budget = NoRoomAtAll();
  auto table = OpenTable(spot_, cache).value();
  EXPECT_TRUE(table->is_in_parts());
  EXPECT_FALSE(table->has_point_index());
  EXPECT_LT(table->metadata_bytes(), whole / 20);
  EXPECT_EQ(spot_.budget->charged_bytes(), table->metadata_bytes());
  for (const Record& record : records_) ASSERT_NO_FATAL_FAILURE(ExpectFound(*table, record));
  // All that lookups have read counts in the cache, and no more is charged to the table.
  EXPECT_LE(cache->GetStats().bytes, uint64_t{1} << 20);
  EXPECT_EQ(spot_.budget->charged_bytes(), table->metadata_bytes());
  table.reset();
  EXPECT_EQ(spot_.budget->charged_bytes(), 0u);
}

TEST_F(TableInParts, TheIndexComesBeforeTheFilterAndBothBeforeAPointIndex) {
  const auto cache = NewCache(1 << 20);
  spot_.budget = RoomFor(uint64_t{1} << 30);
  const uint64_t all = OpenTable(spot_, cache).value()->metadata_bytes();
  spot_.budget = NoRoomAtAll();
  const uint64_t least = OpenTable(spot_, cache).value()->metadata_bytes();
  bool had_index_alone = false;
  for (uint64_t limit = 0; limit < all + 2000; limit += 2000) {
    spot_.budget = std::make_shared<MetadataBudget>(limit, limit / 2);
    const auto table = OpenTable(spot_, cache).value();
    EXPECT_LE(table->metadata_bytes(), limit + least) << limit;
    EXPECT_FALSE(table->has_point_index() && table->is_in_parts());
    had_index_alone |= table->is_in_parts() && table->metadata_bytes() > 5 * least;
    ASSERT_NO_FATAL_FAILURE(ExpectFound(*table, records_[limit % records_.size()]));
  }
  EXPECT_TRUE(had_index_alone);
  EXPECT_FALSE(OpenTable(spot_, cache).value()->is_in_parts());
}

TEST_F(TableInParts, WithoutACacheNothingIsReadInParts) {
  const auto table = OpenTable(spot_).value();
  EXPECT_FALSE(table->is_in_parts());
  EXPECT_EQ(spot_.budget->charged_bytes(), table->metadata_bytes());
  ASSERT_NO_FATAL_FAILURE(ExpectFound(*table, records_[5000]));
}

TEST_F(TableInParts, ALookupTouchesOnePageOnePartAndOneBlock) {
  const auto cache = NewCache(64 << 20);
  const auto table = OpenTable(spot_, cache).value();
  const uint64_t hash = base::Hash(records_[7000].key);
  TableRead found;
  EXPECT_EQ(table->GetCached(records_[7000].key, hash, kEver, &found),
            Table::CachedAnswer::kUnknown);
  EXPECT_EQ(cache->GetStats().entries, 0u);
  ASSERT_NO_FATAL_FAILURE(ExpectFound(*table, records_[7000]));
  EXPECT_EQ(cache->GetStats().entries, 3u);
  EXPECT_EQ(table->GetCached(records_[7000].key, hash, kEver, &found), Table::CachedAnswer::kFound);
  EXPECT_TRUE(found.value == records_[7000].value);

  // Absent keys need the pages of the filter and, but for one in a hundred, nothing else.
  for (uint64_t i = 0; i < 5000; ++i) ASSERT_FALSE(*Get(*table, Key(2 * i + 1), &found));
  const uint64_t pages =
      (Section(SectionKind::kFilter).size + FilterPages::kPageBytes - 1) / FilterPages::kPageBytes;
  EXPECT_GT(pages, 2u);
  EXPECT_GE(cache->GetStats().entries, pages + 2);
  EXPECT_LT(cache->GetStats().entries, pages + 2 * 5000 / 30);
}

TEST_F(TableInParts, ABlockThatIsNotToBeKeptStillLeavesItsPartInTheCache) {
  const auto cache = NewCache(64 << 20);
  const auto table = OpenTable(spot_, cache).value();
  const auto it = table->NewIterator(/*fill_cache=*/false);
  size_t seen = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++seen;
  EXPECT_EQ(seen, records_.size());
  EXPECT_EQ(cache->GetStats().entries, index_.part_count());
}

TEST_F(TableInParts, ADamagedPartFailsOnlyWhatNeedsIt) {
  const size_t part = index_.part_count() / 2;
  Flip(index_.handle(part).offset + 100);
  const auto table = OpenTable(spot_, NewCache(1 << 20)).value();
  size_t failed = 0;
  for (const Record& record : records_) {
    TableRead found;
    const auto read = Get(*table, record.key, &found);
    if (index_.FindPart(record.key, base::SeekTag(kEver)) != part) {
      ASSERT_TRUE(read && *read) << read.status().ToString();
      ASSERT_TRUE(found.value == record.value);
      continue;
    }
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), StatusCode::kCorruption);
    EXPECT_NE(read.error().message().find("index part at offset"), std::string_view::npos);
    ++failed;
  }
  EXPECT_GT(failed, 0u);
  EXPECT_LT(failed, records_.size() / 5);
  EXPECT_EQ(Faults(*table), std::vector<uint64_t>{index_.handle(part).offset});

  // Iterators and sizes need it as well.
  const auto it = table->NewIterator(true);
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
  }
  EXPECT_EQ(it->status().code(), StatusCode::kCorruption);
  const auto in_part = std::ranges::find_if(records_, [&](const Record& record) {
    return index_.FindPart(record.key, record.tag) == part;
  });
  it->Seek(in_part->key, in_part->tag);
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kCorruption);
  it->SeekForPrev(in_part->key, in_part->tag);
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kCorruption);
  EXPECT_FALSE(table->FindBlock(in_part->key, in_part->tag));
  it->Seek(records_[0].key, records_[0].tag);
  EXPECT_TRUE(it->Valid());

  // With room for it the index is gathered, and the table not opened.
  spot_.budget = NoRoom();
  EXPECT_EQ(OpenTable(spot_, NewCache(1 << 20)).status().code(), StatusCode::kCorruption);
}

TEST_F(TableInParts, ADamagedPageFailsOnlyWhatNeedsIt) {
  const auto table = OpenTable(spot_, NewCache(1 << 20)).value();
  const SectionEntry filter = Section(SectionKind::kFilter);
  Flip(filter.offset + FilterPages::kPageBytes + 100);
  size_t failed = 0;
  for (uint64_t i = 0; i < 2 * records_.size(); ++i) {
    const std::string key = Key(i);
    const uint64_t line =
        BloomFilter::LineOf(base::Hash(key), filter.size / sizeof(BloomFilter::Line));
    const bool is_damaged = line * sizeof(BloomFilter::Line) / FilterPages::kPageBytes == 1;
    TableRead found;
    const auto read = Get(*table, key, &found);
    ASSERT_EQ(!read, is_damaged);
    if (read) {
      ASSERT_EQ(*read, i % 2 == 0);
      continue;
    }
    EXPECT_EQ(read.error().code(), StatusCode::kCorruption);
    EXPECT_NE(read.error().message().find("filter page at offset " +
                                          std::to_string(filter.offset + FilterPages::kPageBytes)),
              std::string_view::npos);
    ++failed;
  }
  EXPECT_GT(failed, 100u);
  EXPECT_EQ(Faults(*table), std::vector<uint64_t>{filter.offset});
  // What is read whole is checked whole.
  EXPECT_EQ(OpenTable(spot_, NewCache(1 << 20)).status().code(), StatusCode::kCorruption);
}

// Under right checksums: the root knows what each part must hold.
TEST_F(TableInParts, PartsThatDoNotFitTheRootAreErrors) {
  const IndexPartHandle second = index_.handle(1);
  const IndexPartHandle third = index_.handle(2);
  ASSERT_EQ(second.payload_bytes, third.payload_bytes);
  const auto expect_errors = [&](const std::string& changed) {
    std::string resealed = changed;
    ResealTable(&resealed);
    ASSERT_NO_FATAL_FAILURE(Replace(resealed));
    const auto table = OpenTable(spot_, NewCache(1 << 20));
    ASSERT_TRUE(table) << table.error().ToString();
    size_t failed = 0;
    for (const Record& record : records_) {
      TableRead found;
      const auto read = Get(**table, record.key, &found);
      ASSERT_TRUE(!read || (*read && found.value == record.value));
      failed += read ? 0 : 1;
    }
    EXPECT_GT(failed, 0u);
    EXPECT_FALSE(Faults(**table).empty());
    spot_.budget = NoRoom();
    EXPECT_FALSE(OpenTable(spot_, NewCache(1 << 20)));
    spot_.budget = NoRoomAtAll();
  };
  // Two parts that changed places.
  std::string changed = bytes_;
  changed.replace(second.offset, second.payload_bytes, bytes_, third.offset, third.payload_bytes);
  changed.replace(third.offset, third.payload_bytes, bytes_, second.offset, second.payload_bytes);
  ASSERT_NO_FATAL_FAILURE(expect_errors(changed));
  // A part twice.
  changed = bytes_;
  changed.replace(third.offset, third.payload_bytes, bytes_, second.offset, second.payload_bytes);
  ASSERT_NO_FATAL_FAILURE(expect_errors(changed));
}

TEST_F(TableInParts, ATableThatLostItsRootOrItsPartsIsRefused) {
  const auto trailer = FromBytes<FileTrailer>(bytes_, bytes_.size() - sizeof(FileTrailer));
  for (uint32_t i = 0; i < trailer.section_count; ++i) {
    const uint64_t at = trailer.section_table_offset + i * sizeof(SectionEntry);
    auto entry = FromBytes<SectionEntry>(bytes_, at);
    const auto kind = static_cast<SectionKind>(entry.kind);
    if (kind != SectionKind::kIndexRoot && kind != SectionKind::kIndexParts) continue;
    entry.kind = 99;
    entry.flags = 0;
    std::string changed = bytes_;
    std::memcpy(changed.data() + at, &entry, sizeof entry);
    ResealTable(&changed);
    ASSERT_NO_FATAL_FAILURE(Replace(changed));
    const auto table = OpenTable(spot_, NewCache(1 << 20));
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code(), StatusCode::kCorruption);
    EXPECT_NE(table.error().message().find("lists no index"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace basalt::table
