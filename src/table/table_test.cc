#include "table/table.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/merging_iterator.h"
#include "base/random.h"
#include "io/memory_file_system.h"
#include "table/block_ref.h"
#include "table/concatenating_iterator.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

// Compares lookups of one key at one moment.
void ExpectGet(const Table& table, const std::vector<Record>& records, const std::string& key,
               base::SequenceNumber at) {
  VectorIterator model(&records);
  model.Seek(key, base::SeekTag(at));
  const bool expected = model.Valid() && model.key() == key;
  TableRead found;
  const Result<bool> result = table.Get(key, base::Hash(key), at, true, &found);
  ASSERT_TRUE(result) << result.error().ToString();
  ASSERT_EQ(*result, expected);
  if (!expected) return;
  ASSERT_EQ(found.tag, model.tag());
  ASSERT_EQ(found.time_ms, model.time_ms());
  ASSERT_TRUE(found.value == model.value());
}

void ExpectSamePlace(const base::RecordIterator& it, const base::RecordIterator& model) {
  ASSERT_TRUE(it.status().ok()) << it.status().ToString();
  ASSERT_EQ(it.Valid(), model.Valid());
  if (!it.Valid()) return;
  ASSERT_EQ(Present(it), Present(model));
}

// Seeks both ways to a place, then steps once each way from where that led.
void ExpectSeeks(base::RecordIterator* it, VectorIterator* model, std::string_view key,
                 base::Tag tag) {
  for (const bool forward : {true, false}) {
    for (const bool step_forward : {true, false}) {
      forward ? it->Seek(key, tag) : it->SeekForPrev(key, tag);
      forward ? model->Seek(key, tag) : model->SeekForPrev(key, tag);
      ASSERT_NO_FATAL_FAILURE(ExpectSamePlace(*it, *model));
      if (!it->Valid()) continue;
      step_forward ? it->Next() : it->Prev();
      step_forward ? model->Next() : model->Prev();
      ASSERT_NO_FATAL_FAILURE(ExpectSamePlace(*it, *model));
    }
  }
}

void ExpectIteration(base::RecordIterator* it, const std::vector<Record>& records) {
  size_t i = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++i) {
    ASSERT_LT(i, records.size());
    ASSERT_EQ(Present(*it), records[i]);
  }
  ASSERT_TRUE(it->status().ok()) << it->status().ToString();
  ASSERT_EQ(i, records.size());
  for (it->SeekToLast(); it->Valid(); it->Prev()) {
    ASSERT_GT(i, 0u);
    ASSERT_EQ(Present(*it), records[--i]);
  }
  ASSERT_TRUE(it->status().ok()) << it->status().ToString();
  ASSERT_EQ(i, 0u);
}

// Every key, its neighbours, and its moments.
void ExpectSameAsModel(const Table& table, const std::vector<Record>& records) {
  const auto it = table.NewIterator(true);
  ASSERT_NO_FATAL_FAILURE(ExpectIteration(it.get(), records));
  VectorIterator model(&records);
  const size_t step = std::max<size_t>(1, records.size() / 500);
  for (size_t i = 0; i < records.size(); i += step) {
    const std::string& key = records[i].key;
    const base::Tag tag = records[i].tag;
    for (const base::Tag near : {tag - 1, tag, tag + 1, base::Tag{0}, base::kNewestTag}) {
      ASSERT_NO_FATAL_FAILURE(ExpectSeeks(it.get(), &model, key, near));
    }
    std::string before = key.substr(0, key.size() - (key.empty() ? 0 : 1));
    for (const std::string& near : {key + '\0', before, before + '\xFF', std::string()}) {
      ASSERT_NO_FATAL_FAILURE(ExpectSeeks(it.get(), &model, near, tag));
      ASSERT_NO_FATAL_FAILURE(ExpectGet(table, records, near, kEver));
    }
    const base::SequenceNumber sequence = base::TagSequence(tag);
    for (const base::SequenceNumber at : {sequence, sequence - 1, sequence + 1, kEver}) {
      ASSERT_NO_FATAL_FAILURE(ExpectGet(table, records, key, at & kEver));
    }
  }
}

void ExpectNoFaults(const Table& table) {
  uint64_t bytes = 0;
  const Status status = table.Verify(
      [&](uint64_t done) {
        bytes += done;
        return true;
      },
      [](uint64_t offset, const Status& fault) {
        ADD_FAILURE() << "at " << offset << ": " << fault.ToString();
      });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(bytes, table.properties().file_bytes);
}

void ExpectSameProperties(const TableProperties& a, const TableProperties& b) {
  EXPECT_EQ(a.file_id, b.file_id);
  EXPECT_EQ(a.keyspace, b.keyspace);
  EXPECT_EQ(a.file_bytes, b.file_bytes);
  EXPECT_EQ(a.records, b.records);
  EXPECT_EQ(a.deletes, b.deletes);
  EXPECT_EQ(a.merges, b.merges);
  EXPECT_EQ(a.expiring, b.expiring);
  EXPECT_EQ(a.raw_key_bytes, b.raw_key_bytes);
  EXPECT_EQ(a.raw_value_bytes, b.raw_value_bytes);
  EXPECT_EQ(a.smallest_sequence, b.smallest_sequence);
  EXPECT_EQ(a.largest_sequence, b.largest_sequence);
  EXPECT_EQ(a.earliest_expiry_ms, b.earliest_expiry_ms);
  EXPECT_EQ(a.latest_expiry_ms, b.latest_expiry_ms);
  EXPECT_EQ(CutKey(a.smallest_key), CutKey(b.smallest_key));
  EXPECT_EQ(CutKey(a.largest_key), CutKey(b.largest_key));
}

// Writes the records, opens the table with caches of several sizes and room for all, some or none
// of its metadata, and compares everything.
void ExpectRoundTrip(std::vector<Record> records, Compression compression = Compression::kLz4,
                     bool at_last_level = false) {
  Sort(&records);
  const auto fs = io::NewMemoryFileSystem();
  TableSpot spot{
      .fs = fs.get(), .keyspace = 7, .compression = compression, .at_last_level = at_last_level};
  const auto written = WriteTable(spot, records);
  ASSERT_TRUE(written) << written.error().ToString();
  struct Memory {
    uint64_t capacity;
    std::shared_ptr<MetadataBudget> budget;
  };
  for (const auto& [capacity, budget] :
       {Memory{0, nullptr}, Memory{64 << 10, NoRoom()}, Memory{64 << 10, NoRoomAtAll()},
        Memory{64 << 20, nullptr}, Memory{64 << 20, NoRoomAtAll()}}) {
    spot.budget = budget;
    const auto table = OpenTable(spot, NewCache(capacity));
    ASSERT_TRUE(table) << table.error().ToString();
    ExpectSameProperties((*table)->properties(), *written);
    EXPECT_EQ(written->smallest_key, records.front().key);
    EXPECT_EQ(written->largest_key, records.back().key);
    EXPECT_EQ(written->records, records.size());
    ExpectNoFaults(**table);
    if (capacity == 0 && records.size() > 1000) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectSameAsModel(**table, records));
  }
}

TEST(TableDeathTest, RecordsThatNoReaderTakesAreAFailedCheck) {
  const auto fs = io::NewMemoryFileSystem();
  Record with_time = Delete("a", 1);
  with_time.time_ms = 1;
  for (const Record& record :
       {with_time, Merge("a", 1, "", 1), Merge("a", 1, "+", 0),
        Record{"a", base::MakeTag(1, RecordKind::kDelete), "value"},
        Record{"a", base::MakeTag(1, RecordKind::kDeleteRange), "value"},
        Record{"a", base::MakeTag(1, RecordKind::kBlobReference), "value"}}) {
    EXPECT_DEATH((void)WriteTable({.fs = fs.get()}, {record}), "");
  }
}

TEST(Table, RandomVersionsReadBackAsWritten) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    const size_t key_bytes_max = 1 + random.Below(40);
    const size_t value_bytes_max = random.Below(400);
    ASSERT_NO_FATAL_FAILURE(
        ExpectRoundTrip(RandomRecords(&random, 2000, key_bytes_max, value_bytes_max),
                        static_cast<Compression>(seed % 3), /*at_last_level=*/true));
  }
}

TEST(Table, AnIndexOfManyPartsLeadsToEveryRecord) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    // Two blocks or three to a part; keys that have much in common, and versions that fill parts.
    std::vector<Record> records;
    base::SequenceNumber sequence = 1;
    for (int i = 0; i < 80; ++i) {
      const std::string key = std::string(3000, 'k') + RandomBytes(&random, random.Below(8), 3);
      for (uint64_t versions = random.OneIn(8) ? 30 : 1; versions > 0; --versions) {
        records.push_back(Put(key, sequence++, RandomBytes(&random, random.Below(9000), 2)));
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(std::move(records)));
  }
}

// Of a few long pieces, so that neighbours share from nothing to nearly all; blocks end between
// them everywhere.
TEST(Table, LongKeysReadBackHoweverMuchTheyShare) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    std::vector<std::string> pieces;
    for (int i = 0; i < 4; ++i) {
      pieces.push_back(RandomBytes(&random, 1 + random.Below(600), random.OneIn(2) ? 2 : 256));
    }
    std::vector<Record> records;
    for (base::SequenceNumber sequence = 1; sequence <= 300; ++sequence) {
      std::string key;
      for (uint64_t i = 1 + random.Below(6); i > 0; --i) key += pieces[random.Below(4)];
      key += RandomBytes(&random, random.Below(4), 2);
      records.push_back(Put(std::move(key), sequence, RandomBytes(&random, random.Below(3000), 2)));
    }
    ASSERT_NO_FATAL_FAILURE(
        ExpectRoundTrip(std::move(records), static_cast<Compression>(seed % 3), true));
  }
}

/// How large a table of these records is that does not compress.
uint64_t FileBytesOf(const std::vector<Record>& records) {
  const auto fs = io::NewMemoryFileSystem();
  const auto written = WriteTable({.fs = fs.get(), .compression = Compression::kNone}, records);
  return written->file_bytes;
}

TEST(Table, RandomLongKeysStandInItOnce) {
  for (const size_t bytes : {1'000, 4'000, 60'000}) {
    base::Random random(bytes);
    std::vector<Record> records;
    for (int i = 0; i < 100; ++i) records.push_back(Put(RandomBytes(&random, bytes, 256), 1, "v"));
    Sort(&records);
    // The properties have the first one again, and index, index root and properties the last one.
    EXPECT_LT(FileBytesOf(records), bytes * 105 + 20'000) << bytes;
  }
}

TEST(Table, ALongPrefixStandsInABlockOnce) {
  base::Random random(1);
  const std::string prefix = RandomBytes(&random, 60'000, 256);
  std::vector<Record> records;
  for (uint64_t i = 0; i < 3'000; ++i) records.push_back(Put(prefix + Numbered("", i), 1, "v"));
  Sort(&records);
  EXPECT_LT(FileBytesOf(records), 20 * prefix.size());
  // As many values as make it large by themselves.
  for (Record& record : records) record.value = std::string(1'000, 'v');
  EXPECT_LT(FileBytesOf(records), 3'000 * 1'000 * 6);
}

TEST(Table, OneRecordIsATable) { ExpectRoundTrip({Put("key", 5, "value")}); }

TEST(Table, EmptyKeyAndEmptyValueAreRecords) {
  ExpectRoundTrip(
      {Put("", 3, ""), Delete("", 2), Put("", 1, "x"), Put(std::string(1, '\0'), 4, "")});
}

TEST(Table, KeysThatArePrefixesOfOthersWithZerosStayApart) {
  std::vector<Record> records;
  base::SequenceNumber sequence = 1;
  for (const std::string stem : {"", "a", "abcdefg", "abcdefgh", "abcdefghi"}) {
    for (size_t zeros = 0; zeros < 20; ++zeros) {
      records.push_back(Put(stem + std::string(zeros, '\0'), sequence++, "v"));
    }
  }
  ExpectRoundTrip(records);
}

TEST(Table, KeysOf65535BytesReadBack) {
  const std::string stem(65'534, 'k');
  ExpectRoundTrip({Put(stem + "a", 1, "1"), Put(stem + "b", 2, "2"), Put(stem, 3, "3"),
                   Put(std::string(65'535, '\0'), 4, "4"),
                   Put(std::string(65'535, '\xFF'), 5, "")});
}

TEST(Table, AHugeValueHasABlockOfItsOwn) {
  base::Random random(1);
  const std::string huge = RandomBytes(&random, 300 << 10, 256);
  const std::string squeezable(300 << 10, 'x');
  const std::vector<Record> records = {Put("a", 1, "small"), Put("b", 2, huge),
                                       Put("c", 3, squeezable), Put("d", 4, "small")};
  ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(records));

  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  ASSERT_TRUE(WriteTable(spot, records));
  const auto table = OpenTable(spot).value();
  EXPECT_EQ(table->block_count(), 4u);
}

TEST(Table, OneKeysVersionsSpanManyBlocks) {
  std::vector<Record> records;
  for (base::SequenceNumber sequence = 1; sequence <= 3000; ++sequence) {
    records.push_back(Put("key", sequence, std::string(64, static_cast<char>(sequence))));
  }
  records.push_back(Put("kex", 5000, "before"));
  records.push_back(Put("kez", 5001, "after"));
  ExpectRoundTrip(records);
}

// Of some 150 bytes that have much in common.
std::vector<Record> TextRecords(base::Random* random, size_t count) {
  std::vector<Record> records;
  for (size_t i = 0; i < count; ++i) {
    std::string value = R"({"name": "user", "address": "somewhere", "number": )";
    value.append(std::to_string(random->Next())).append(R"(, "country": "none", "score": )");
    value.append(std::to_string(random->Below(100))).append(R"(, "comment": ""})");
    records.push_back(Put(Numbered("key", 1'000'000 + i), i + 1, std::move(value)));
  }
  return records;
}

uint64_t FileBytes(const std::vector<Record>& records, Compression compression,
                   bool at_last_level) {
  const auto fs = io::NewMemoryFileSystem();
  return WriteTable({.fs = fs.get(), .compression = compression, .at_last_level = at_last_level},
                    records)
      .value()
      .file_bytes;
}

TEST(Table, TheLastLevelIsZstandardWithADictionary) {
  base::Random random(6);
  // Less than is waited for, enough for a dictionary, and more than is waited for.
  for (const size_t count : {10, 1000, 2500, 8000}) {
    SCOPED_TRACE(count);
    const std::vector<Record> records = TextRecords(&random, count);
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(records, Compression::kLz4ThenZstd, true));
    const uint64_t lz4 = FileBytes(records, Compression::kLz4, true);
    EXPECT_EQ(FileBytes(records, Compression::kLz4ThenZstd, false), lz4);
    const uint64_t zstd = FileBytes(records, Compression::kLz4ThenZstd, true);
    EXPECT_TRUE(count < 1000 || zstd < lz4) << zstd << " and " << lz4;
  }
}

TEST(Table, BlocksEndWhereTheOptionsSay) {
  base::Random random(9);
  const std::vector<Record> records = TextRecords(&random, 3000);
  const auto fs = io::NewMemoryFileSystem();
  size_t blocks[2];
  for (const size_t block_bytes : {kBlockBytes, kBlockBytesBeyondMemory}) {
    const TableSpot spot{
        .fs = fs.get(), .path = "/" + std::to_string(block_bytes), .block_bytes = block_bytes};
    ASSERT_TRUE(WriteTable(spot, records));
    const auto table = OpenTable(spot).value();
    ASSERT_NO_FATAL_FAILURE(ExpectSameAsModel(*table, records));
    blocks[block_bytes == kBlockBytes ? 0 : 1] = table->block_count();
  }
  EXPECT_NEAR(static_cast<double>(blocks[1]) / static_cast<double>(blocks[0]), 2, 0.2);
}

TEST(Table, TheDictionaryIsCharged) {
  base::Random random(7);
  const std::vector<Record> records = TextRecords(&random, 5000);
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot lz4{.fs = fs.get(), .path = "/lz4"};
  const TableSpot zstd{.fs = fs.get(),
                       .path = "/zstd",
                       .compression = Compression::kLz4ThenZstd,
                       .at_last_level = true};
  ASSERT_TRUE(WriteTable(lz4, records));
  ASSERT_TRUE(WriteTable(zstd, records));
  EXPECT_GT(OpenTable(zstd).value()->metadata_bytes(),
            OpenTable(lz4).value()->metadata_bytes() + (16 << 10));
}

TEST(Table, AHugeValueIsReadBackWhateverTheCompression) {
  base::Random random(8);
  std::vector<Record> records = TextRecords(&random, 3000);
  // The largest that Zstandard is asked to take, about, and beyond it; first, amid, and last.
  records.push_back(Put("a", 9000, std::string((1 << 20) - 100, 'x')));
  records.push_back(Put("b", 9001, std::string(5 << 20, 'y')));
  records.push_back(Put("key1001", 9002, RandomBytes(&random, 2 << 20, 4)));
  records.push_back(Put("z", 9003, RandomBytes(&random, 300 << 10, 256)));
  Sort(&records);
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{
      .fs = fs.get(), .compression = Compression::kLz4ThenZstd, .at_last_level = true};
  ASSERT_TRUE(WriteTable(spot, records));
  const auto table = OpenTable(spot, NewCache(64 << 20)).value();
  ASSERT_NO_FATAL_FAILURE(ExpectIteration(table->NewIterator(true).get(), records));
  for (const std::string key : {"a", "b", "key1001", "key1000001", "z"}) {
    ASSERT_NO_FATAL_FAILURE(ExpectGet(*table, records, key, kEver));
  }
  ExpectNoFaults(*table);
}

TEST(Table, LargeValuesFollowOneAnotherAndSmallOnes) {
  base::Random random(9);
  constexpr size_t kLone = size_t{1} << 20;  // from here on a value has a block of its own
  std::vector<Record> records;
  base::SequenceNumber sequence = 1;
  for (const char* key : {"a", "b"}) {
    for (const size_t bytes : {kLone - 1, kLone, size_t{10}}) {
      records.push_back(
          Put(key, sequence++, RandomBytes(&random, bytes, bytes % 2 == 0 ? 256 : 3)));
    }
  }
  // Most of it compresses, and the beginning does not.
  records.push_back(
      Put("e", sequence++, RandomBytes(&random, kLone / 4, 256) + std::string(kLone, 'x')));
  for (const Compression compression :
       {Compression::kNone, Compression::kLz4, Compression::kLz4ThenZstd}) {
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(records, compression, /*at_last_level=*/true));
  }
  EXPECT_LT(FileBytes({records.back()}, Compression::kLz4, true), kLone / 2);
}

TEST(Table, ValuesOutliveTheirTableAndItsCache) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  const std::string large(10'000, 'l');
  const std::string middle(Value::kInlineBytes + 1, 'm');
  const std::string small(Value::kInlineBytes, 's');
  ASSERT_TRUE(
      WriteTable(spot, {Put("large", 1, large), Put("middle", 2, middle), Put("small", 3, small)}));
  TableRead found_large;
  TableRead found_middle;
  TableRead found_small;
  {
    const auto table = OpenTable(spot, NewCache(1 << 20)).value();
    ASSERT_TRUE(table->Get("large", base::Hash("large"), kEver, true, &found_large).value());
    ASSERT_TRUE(table->Get("middle", base::Hash("middle"), kEver, true, &found_middle).value());
    ASSERT_TRUE(table->Get("small", base::Hash("small"), kEver, true, &found_small).value());
  }
  EXPECT_TRUE(found_large.value == large);
  EXPECT_TRUE(found_middle.value == middle);
  EXPECT_TRUE(found_small.value == small);
}

// A value that pins its block keeps all of it in memory: many small ones once kept blocks of forty
// times their bytes.
TEST(Table, OnlyValuesOfAQuarterOfTheirBlockPinIt) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  std::vector<Record> records;
  for (uint64_t i = 0; i < 2'000; ++i)
    records.push_back(Put(Numbered("key", i), 1, std::string(500, 'v')));
  Sort(&records);
  const std::string large(9'000, 'l');
  records.push_back(Put("large", 1, large));
  ASSERT_TRUE(WriteTable(spot, records));
  const auto cache = NewCache(64 << 20);
  const auto table = OpenTable(spot, cache).value();
  // Read from the file first, then from the cache.
  for (const uint64_t kept : {0, 1}) {
    std::vector<TableRead> held(records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      const std::string& key = records[i].key;
      ASSERT_TRUE(table->Get(key, base::Hash(key), kEver, /*fill_cache=*/true, &held[i]).value());
    }
    EXPECT_GT(cache->GetStats().entries, 50u);
    EXPECT_EQ(cache->GetStats().pinned_entries, 1u) << kept;
    for (size_t i = 0; i < records.size(); ++i) {
      ASSERT_TRUE(held[i].value == records[i].value) << records[i].key;
    }
  }
}

TEST(Table, AnIteratorKeepsItsTableAlive) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  base::Random random(2);
  std::vector<Record> records = RandomRecords(&random, 1000, 20, 100);
  Sort(&records);
  ASSERT_TRUE(WriteTable(spot, records));
  const auto it = OpenTable(spot).value()->NewIterator(false);
  ExpectIteration(it.get(), records);
}

TEST(Table, BlocksStayInTheCacheOnlyWhenAskedTo) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  base::Random random(3);
  std::vector<Record> records = RandomRecords(&random, 2000, 20, 200);
  Sort(&records);
  ASSERT_TRUE(WriteTable(spot, records));
  const auto cache = NewCache(64 << 20);
  const auto table = OpenTable(spot, cache).value();
  ExpectIteration(table->NewIterator(false).get(), records);
  EXPECT_EQ(cache->GetStats().entries, 0u);
  ExpectIteration(table->NewIterator(true).get(), records);
  EXPECT_EQ(cache->GetStats().entries, table->block_count());
  const uint64_t misses = cache->GetStats().misses;
  ExpectIteration(table->NewIterator(false).get(), records);
  EXPECT_EQ(cache->GetStats().misses, misses);
}

// Writes the table of "key0" to "key9999"; its records.
std::vector<Record> WriteTenThousand(const TableSpot& spot) {
  std::vector<Record> records;
  for (uint64_t i = 0; i < 10'000; ++i) records.push_back(Put(Numbered("key", i), 1, "v"));
  Sort(&records);
  EXPECT_TRUE(WriteTable(spot, records));
  return records;
}

TEST(Table, TheFilterKeepsAbsentKeysFromBlocks) {
  const auto fs = io::NewMemoryFileSystem();
  WriteTenThousand({.fs = fs.get()});
  for (const bool has_point_index : {false, true}) {
    const TableSpot spot{.fs = fs.get(), .budget = has_point_index ? nullptr : NoRoom()};
    const auto cache = NewCache(64 << 20);
    const auto table = OpenTable(spot, cache).value();
    ASSERT_EQ(table->has_point_index(), has_point_index);
    for (uint64_t i = 0; i < 10'000; ++i) {
      const std::string key = Numbered("kez", i);
      TableRead found;
      ASSERT_FALSE(table->Get(key, base::Hash(key), kEver, true, &found).value());
    }
    const auto stats = cache->GetStats();
    EXPECT_LT(stats.hits + stats.misses, has_point_index ? 70u : 200u);
  }
}

TEST(Table, TheFirstPlaceIsNearlyAlwaysTheKeys) {
  const auto fs = io::NewMemoryFileSystem();
  const std::vector<Record> records = WriteTenThousand({.fs = fs.get()});
  const auto table = OpenTable({.fs = fs.get()}, NewCache(64 << 20)).value();
  size_t right = 0;
  for (const Record& record : records) {
    const auto place = table->FirstPlace(base::Hash(record.key));
    ASSERT_TRUE(place.has_value());
    table->PrefetchRecord(*place);  // of a block that was never seen, and of one that was
    const BlockRef block = table->ReadBlock(place->block, /*fill_cache=*/true).value();
    right += block->KeyEquals(place->ordinal, record.key) ? 1 : 0;
  }
  EXPECT_GT(right, 9'900u);
  size_t absent_found = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    absent_found += table->FirstPlace(base::Hash(Numbered("kez", i))).has_value() ? 1 : 0;
  }
  EXPECT_LT(absent_found, 100u);

  const auto without_index = OpenTable({.fs = fs.get(), .budget = NoRoom()}).value();
  EXPECT_FALSE(without_index->FirstPlace(base::Hash(records.front().key)).has_value());
}

TEST(Table, APresentKeyCostsOneLookupInTheCache) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  const std::vector<Record> records = WriteTenThousand(spot);
  const auto cache = NewCache(64 << 20);
  const auto table = OpenTable(spot, cache).value();
  for (const Record& record : records) {
    TableRead found;
    ASSERT_TRUE(table->Get(record.key, base::Hash(record.key), kEver, true, &found).value());
  }
  const auto stats = cache->GetStats();
  EXPECT_EQ(stats.entries, table->block_count());
  EXPECT_EQ(stats.misses, table->block_count());
  EXPECT_LT(stats.hits + stats.misses, 10'100u);
}

TEST(Table, PointIndexesAreKeptWhileAllFitTheBudget) {
  const auto fs = io::NewMemoryFileSystem();
  TableSpot spot{.fs = fs.get()};
  std::vector<Record> records;
  for (uint64_t i = 0; i < 1000; ++i) records.push_back(Put(Numbered("key", i), 1, "v"));
  Sort(&records);
  ASSERT_TRUE(WriteTable(spot, records));
  const uint64_t with_index = OpenTable(spot).value()->metadata_bytes();
  spot.budget = NoRoom();
  const uint64_t with_filter = OpenTable(spot).value()->metadata_bytes();
  EXPECT_GT(with_index, with_filter);
  EXPECT_GT(with_filter, records.size());  // 10 bits a key, and the block index

  // Room for one table with its point index, and for another one's but for a byte.
  spot.budget = std::make_shared<MetadataBudget>(~uint64_t{0}, 2 * with_index - 1);
  auto first = OpenTable(spot).value();
  EXPECT_TRUE(first->has_point_index());
  EXPECT_EQ(spot.budget->charged_bytes(), first->metadata_bytes());
  auto second = OpenTable(spot).value();
  EXPECT_TRUE(second->has_point_index());
  const auto third = OpenTable(spot).value();
  EXPECT_FALSE(third->has_point_index());
  EXPECT_EQ(third->metadata_bytes(), with_filter);
  EXPECT_EQ(spot.budget->charged_bytes(), 2 * with_index + with_filter);
  for (const auto& table : {first, second, third}) ExpectSameAsModel(*table, records);

  first.reset();
  second.reset();
  EXPECT_EQ(spot.budget->charged_bytes(), with_filter);
  EXPECT_TRUE(OpenTable(spot).value()->has_point_index());
}

TEST(Table, AFailedOpenChargesNothing) {
  const auto fs = io::NewMemoryFileSystem();
  TableSpot spot{.fs = fs.get(), .budget = RoomFor(1 << 20)};
  ASSERT_TRUE(WriteTable(spot, {Put("key", 1, "value")}));
  // The properties, which are damaged, lie behind the point index.
  std::string bytes = io::ReadWholeFile(fs.get(), spot.path, 1 << 20).value();
  const size_t largest_key = bytes.rfind("keykey");
  ASSERT_NE(largest_key, std::string::npos);
  ASSERT_TRUE(
      fs->Open(spot.path, io::OpenMode::kReadWrite).value()->WriteAt(largest_key, "x").ok());
  EXPECT_FALSE(OpenTable(spot));
  EXPECT_EQ(spot.budget->charged_bytes(), 0u);
}

TEST(Table, ATableWithoutRecordsIsRefused) {
  const auto fs = io::NewMemoryFileSystem();
  const auto result = WriteTable({.fs = fs.get()}, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), StatusCode::kFailedPrecondition);
}

TEST(TableDeathTest, RecordsOutOfOrderAreAFailedCheck) {
  const auto fs = io::NewMemoryFileSystem();
  EXPECT_DEATH((void)WriteTable({.fs = fs.get()}, {Put("b", 1, ""), Put("a", 2, "")}), "");
  EXPECT_DEATH((void)WriteTable({.fs = fs.get()}, {Put("a", 1, ""), Put("a", 1, "")}), "");
  EXPECT_DEATH((void)WriteTable({.fs = fs.get()}, {Put("a", 1, ""), Put("a", 2, "")}), "");
}

TEST(Table, PropertiesCountWhatExpiresAndWhatMerges) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  const auto written =
      WriteTable(spot, {Merge("a", 7, "+1", 5), Put("b", 1, "x", 2000), Put("c", 2, "y", 1000),
                        Put("d", 3, "z"), Delete("e", 4), Merge("f", 6, "+2", 9000)});
  ASSERT_TRUE(written);
  const auto table = OpenTable(spot).value();
  ASSERT_NO_FATAL_FAILURE(ExpectSameProperties(table->properties(), *written));
  EXPECT_EQ(written->records, 6u);
  EXPECT_EQ(written->deletes, 1u);
  EXPECT_EQ(written->merges, 2u);
  EXPECT_EQ(written->expiring, 2u);
  EXPECT_EQ(written->earliest_expiry_ms, 1000u);
  EXPECT_EQ(written->latest_expiry_ms, 2000u);
}

TEST(Table, AFileOfTheRightSizeIsEstimatedWhileItIsWritten) {
  const auto fs = io::NewMemoryFileSystem();
  const auto file = fs->Open("/t", io::OpenMode::kCreate).value();
  TableBuilder builder(file.get(), {.file_id = 1, .compression = Compression::kNone});
  for (uint64_t i = 0; i < 5000; ++i) {
    const std::string key = Numbered("key", 100'000 + i);
    ASSERT_TRUE(
        builder.Add(key, base::MakeTag(1, RecordKind::kPut), 0, std::string(100, 'v')).ok());
  }
  const uint64_t estimate = builder.file_bytes();
  ASSERT_TRUE(builder.Finish().ok());
  EXPECT_EQ(builder.properties().file_bytes, file->Size().value());
  EXPECT_EQ(builder.file_bytes(), file->Size().value());
  EXPECT_GT(estimate, builder.file_bytes() * 9 / 10);
  EXPECT_LE(estimate, builder.file_bytes());
}

TEST(Table, VerifyStopsWhenItIsToldTo) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  ASSERT_TRUE(WriteTable(spot, {Put("key", 1, "value")}));
  const Status status = OpenTable(spot).value()->Verify([](uint64_t) { return false; }, {});
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
}

TEST(Table, ASeekToAnIteratorsOwnKeyFindsIt) {
  const auto fs = io::NewMemoryFileSystem();
  base::Random random(5);
  std::vector<Record> records = RandomRecords(&random, 1000, 20, 200);
  Sort(&records);
  const size_t half = records.size() / 2;
  const auto middle = records.begin() + static_cast<ptrdiff_t>(half);
  const TableSpot low{.fs = fs.get(), .path = "/low", .file_id = 1};
  const TableSpot high{.fs = fs.get(), .path = "/high", .file_id = 2};
  const TableSpot whole{.fs = fs.get(), .path = "/whole", .file_id = 3};
  ASSERT_TRUE(WriteTable(low, {records.begin(), middle}));
  ASSERT_TRUE(WriteTable(high, {middle, records.end()}));
  ASSERT_TRUE(WriteTable(whole, records));
  const auto cache = NewCache(1 << 20);
  const std::vector<std::shared_ptr<const Table>> run = {OpenTable(low, cache).value(),
                                                         OpenTable(high, cache).value()};
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  for (const auto& table : run) children.push_back(table->NewIterator(true));
  std::vector<std::unique_ptr<base::RecordIterator>> iterators;
  iterators.push_back(OpenTable(whole, cache).value()->NewIterator(true));
  iterators.push_back(NewConcatenatingIterator(std::make_unique<OpenTables>(run), true));
  iterators.push_back(base::NewMergingIterator(std::move(children)));
  for (const auto& it : iterators) {
    for (const Record& record : records) {
      it->Seek(record.key, record.tag);
      ASSERT_EQ(Present(*it), record);
      // To the first version of the key, and the last: often in another block or table.
      it->Seek(it->key(), base::kNewestTag);
      ASSERT_EQ(it->key(), record.key);
      it->SeekForPrev(it->key(), 0);
      ASSERT_EQ(it->key(), record.key);
      it->Seek(it->key(), record.tag);
      ASSERT_EQ(Present(*it), record);
    }
  }
}

TEST(ConcatenatingIterator, ARunOfTablesReadsAsOne) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    std::vector<Record> records = RandomRecords(&random, 1500, 6, 50);
    Sort(&records);
    const auto fs = io::NewMemoryFileSystem();
    std::vector<std::shared_ptr<const Table>> tables;
    // Cut anywhere, also between versions of one key.
    for (size_t begin = 0; begin < records.size();) {
      const size_t end = std::min(records.size(), begin + 1 + random.Below(400));
      const TableSpot spot{.fs = fs.get(), .path = Numbered("/", begin), .file_id = begin + 1};
      ASSERT_TRUE(WriteTable(spot, {records.begin() + static_cast<ptrdiff_t>(begin),
                                    records.begin() + static_cast<ptrdiff_t>(end)}));
      tables.push_back(OpenTable(spot).value());
      begin = end;
    }
    const auto it = NewConcatenatingIterator(std::make_unique<OpenTables>(tables), true);
    ASSERT_NO_FATAL_FAILURE(ExpectIteration(it.get(), records));
    VectorIterator model(&records);
    for (const Record& record : records) {
      for (const base::Tag tag : {record.tag, record.tag + 1, record.tag - 1}) {
        ASSERT_NO_FATAL_FAILURE(ExpectSeeks(it.get(), &model, record.key, tag));
      }
      ASSERT_NO_FATAL_FAILURE(ExpectSeeks(it.get(), &model, record.key + '\0', record.tag));
    }
  }
}

TEST(ConcatenatingIterator, ASeekThatWasOnlyBegunGivesWayToAnother) {
  const auto fs = io::NewMemoryFileSystem();
  std::vector<std::shared_ptr<const Table>> tables;
  std::vector<Record> all;
  for (uint64_t t = 0; t < 3; ++t) {
    std::vector<Record> records;
    for (uint64_t i = 0; i < 500; ++i) {
      records.push_back(
          Put(Numbered("key", 1'000'000 + 1'000 * t + 2 * i), 1, std::string(100, 'v')));
    }
    const TableSpot spot{.fs = fs.get(), .path = Numbered("/", t), .file_id = 1 + t};
    ASSERT_TRUE(WriteTable(spot, records));
    tables.push_back(OpenTable(spot).value());
    all.insert(all.end(), records.begin(), records.end());
  }
  const auto it = NewConcatenatingIterator(std::make_unique<OpenTables>(tables), true);
  base::Random random(5);
  for (int i = 0; i < 2'000; ++i) {
    const std::string other = all[random.Below(all.size())].key;
    const auto steps = static_cast<int>(random.Below(base::RecordIterator::kSeekSteps));
    for (int step = 0; step < steps; ++step) it->SeekStep(step, other, base::kNewestTag);
    const size_t wanted = random.Below(all.size());
    const std::string target = all[wanted].key;
    if (random.OneIn(2)) {
      it->Seek(target, base::kNewestTag);
    } else {
      for (int step = 0; step < base::RecordIterator::kSeekSteps; ++step) {
        it->SeekStep(step, target, base::kNewestTag);
      }
    }
    ASSERT_TRUE(it->Valid());
    ASSERT_EQ(it->key(), target);
    it->Next();
    ASSERT_EQ(it->Valid(), wanted + 1 < all.size());
    if (it->Valid()) {
      ASSERT_EQ(it->key(), all[wanted + 1].key);
    }
  }
}

TEST(ConcatenatingIterator, ARunOfNoTablesIsEmpty) {
  const std::vector<std::shared_ptr<const Table>> none;
  const auto it = NewConcatenatingIterator(std::make_unique<OpenTables>(none), true);
  it->SeekToFirst();
  EXPECT_FALSE(it->Valid());
  it->SeekToLast();
  EXPECT_FALSE(it->Valid());
  it->Seek("a", 1);
  EXPECT_FALSE(it->Valid());
  it->SeekForPrev("a", 1);
  EXPECT_FALSE(it->Valid());
  EXPECT_TRUE(it->status().ok());
}

}  // namespace
}  // namespace basalt::table
