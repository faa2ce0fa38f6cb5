#include "table/block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "table/block_builder.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

std::string RawForm(const std::vector<Record>& records) {
  BlockBuilder builder;
  for (const Record& record : records) {
    builder.Add(record.key, record.tag, record.time_ms, record.value);
  }
  std::string raw(builder.raw_bytes_max(), '\xEE');
  raw.resize(builder.Write(raw.data()));
  return raw;
}

Result<std::shared_ptr<const Block>> Parse(std::string_view raw,
                                           Block::Content content = Block::Content::kData) {
  BlockBuffer buffer = BlockBuffer::Allocate(raw.size());
  if (!raw.empty()) std::memcpy(buffer.bytes.get(), raw.data(), raw.size());
  return Block::Parse(std::move(buffer), content);
}

std::vector<Record> RecordsOfBlock(base::Random* random, size_t count) {
  std::vector<Record> records;
  const bool timed = random->OneIn(2);
  const std::string stem = RandomBytes(random, random->Below(12), 4);
  for (size_t i = 0; i < count; ++i) {
    std::string key = stem;
    key.append(RandomBytes(random, random->Below(24), 1 + random->Below(3)));
    const std::string value = RandomBytes(random, random->Below(60), 256);
    if (random->OneIn(5)) {
      records.push_back(Delete(std::move(key), i + 1));
    } else if (timed && random->OneIn(4)) {
      records.push_back(Merge(std::move(key), i + 1, "+" + value, 1 + random->Next() / 2));
    } else {
      const uint64_t expiry_ms = timed && random->OneIn(3) ? random->Below(1000) : 0;
      records.push_back(Put(std::move(key), i + 1, value, expiry_ms));
    }
  }
  Sort(&records);
  return records;
}

void ExpectRecords(const Block& block, const std::vector<Record>& records) {
  ASSERT_EQ(block.count(), records.size());
  BlockCursor cursor;
  cursor.Reset(block);
  cursor.MoveTo(0);
  for (uint32_t i = 0; i < block.count(); ++i, cursor.Next()) {
    ASSERT_TRUE(cursor.Valid());
    ASSERT_EQ((Record{std::string(cursor.key()), cursor.tag(), std::string(cursor.value()),
                      cursor.time_ms()}),
              records[i]);
    ASSERT_EQ(block.time_ms(i), records[i].time_ms);
    ASSERT_EQ(block.Key(i), records[i].key);
    ASSERT_EQ(block.key_size(i), records[i].key.size());
    ASSERT_TRUE(block.KeyEquals(i, records[i].key));
    ASSERT_FALSE(block.KeyEquals(i, std::string(records[i].key).append(1, '\0')));
  }
  ASSERT_FALSE(cursor.Valid());
  cursor.MoveTo(block.count() - 1);
  for (uint32_t i = block.count(); i-- > 0; cursor.Prev()) {
    ASSERT_TRUE(cursor.Valid());
    ASSERT_EQ(cursor.key(), records[i].key);
  }
  ASSERT_FALSE(cursor.Valid());
}

TEST(Block, ReadsBackWhatTheBuilderTook) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    const std::vector<Record> records = RecordsOfBlock(&random, 1 + random.Below(200));
    const auto block = Parse(RawForm(records));
    ASSERT_TRUE(block) << block.error().ToString();
    ASSERT_NO_FATAL_FAILURE(ExpectRecords(**block, records));
  }
}

TEST(Block, LowerBoundIsTheModels) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    const std::vector<Record> records = RecordsOfBlock(&random, 1 + random.Below(100));
    const auto block = Parse(RawForm(records)).value();
    for (int i = 0; i < 1000; ++i) {
      Record target = records[random.Below(records.size())];
      if (random.OneIn(2)) target.key.resize(random.Below(target.key.size() + 3));
      if (random.OneIn(2)) target.tag += random.Below(3) - 1;
      const auto expected = std::lower_bound(records.begin(), records.end(), target);
      ASSERT_EQ(block->LowerBound(target.key, target.tag),
                static_cast<uint32_t>(expected - records.begin()));
    }
  }
}

TEST(Block, StoresNoByteOfAKeyTwice) {
  const std::string raw =
      RawForm({Put("shared/12345678/a", 1, ""), Put("shared/12345679/b", 2, "")});
  // Shared: "shared/1234567"; then 3 bytes a key, which lie in the prefix column.
  EXPECT_EQ(raw.size(), Block::kHeaderBytes + 2 * Block::RecordBytes(false, false) + 14);
}

TEST(Block, RecordsOutOfOrderAreRefused) {
  const std::vector<std::vector<Record>> bad = {
      {Put("b", 1, ""), Put("a", 2, "")},
      {Put("a", 1, ""), Put("a", 2, "")},
      {Put("a", 1, ""), Put("a", 1, "")},
      {Put(std::string("a\0", 2), 1, ""), Put("a", 2, "")},
      {Put("12345678b", 1, ""), Put("12345678a", 2, ""), Put("9", 3, "")},
  };
  for (const std::vector<Record>& records : bad) {
    // The builder takes what the first and the last key share for all keys' prefix.
    const auto block = Parse(RawForm(records));
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().code(), StatusCode::kCorruption);
    EXPECT_NE(block.error().message().find("out of order"), std::string_view::npos)
        << block.error().ToString();
  }
}

TEST(Block, KindsThatThisVersionDoesNotReadAreNamed) {
  const auto with_kind = [](RecordKind kind) {
    return RawForm({Record{"key", base::MakeTag(1, kind), "value"}});
  };
  const std::vector<std::pair<RecordKind, std::string_view>> kinds = {
      {RecordKind::kDeleteRange, "range delete"},
      {RecordKind::kBlobReference, "blob reference"},
      {static_cast<RecordKind>(200), "200"}};
  for (const auto& [kind, name] : kinds) {
    const auto block = Parse(with_kind(kind));
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().code(), StatusCode::kUnsupported);
    EXPECT_NE(block.error().message().find(name), std::string_view::npos);
  }
  EXPECT_EQ(Parse(with_kind(RecordKind::kDelete)).error().code(), StatusCode::kCorruption);
  EXPECT_EQ(Parse(with_kind(RecordKind::kMerge)).error().code(), StatusCode::kCorruption);
  EXPECT_TRUE(Parse(with_kind(RecordKind::kPut)));
}

TEST(Block, TimesTakeNoBytesUnlessOneIsNotZero) {
  const std::vector<Record> timeless = {Put("a", 1, "x"), Delete("b", 2)};
  std::vector<Record> timed = timeless;
  timed[0].time_ms = 77;
  EXPECT_EQ(RawForm(timed).size(), RawForm(timeless).size() + 2 * sizeof(uint64_t));
  const auto block = Parse(RawForm(timed)).value();
  EXPECT_EQ(block->time_ms(0), 77u);
  EXPECT_EQ(block->time_ms(1), 0u);
}

TEST(Block, TimesThatCannotBeAreRefused) {
  const auto expect_refused = [](const std::vector<Record>& records, std::string_view what) {
    const auto block = Parse(RawForm(records));
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().code(), StatusCode::kCorruption);
    EXPECT_NE(block.error().message().find(what), std::string_view::npos)
        << block.error().ToString();
  };
  EXPECT_TRUE(Parse(RawForm({Merge("a", 1, "+", 5)})));
  expect_refused({Merge("a", 1, "", 5)}, "without an operator");
  expect_refused({Merge("a", 1, "+1", 0)}, "without a time");
  expect_refused({Merge("a", 2, "+1", 0), Put("a", 1, "", 9)}, "without a time");
  Record with_time = Delete("a", 1);
  with_time.time_ms = 5;
  expect_refused({with_time}, "a delete with a time");

  std::string raw = RawForm({Put("key", 1, "value", 9)});
  base::Store<uint64_t>(raw.data() + Block::kHeaderBytes + 16, 0);
  const auto all_zero = Parse(raw);
  ASSERT_FALSE(all_zero);
  EXPECT_EQ(all_zero.error().code(), StatusCode::kCorruption);
}

TEST(Block, UnknownFlagsAreRefused) {
  std::string raw = RawForm({Put("key", 1, "value")});
  base::Store<uint32_t>(raw.data() + 4, 4);
  EXPECT_EQ(Parse(raw).error().code(), StatusCode::kUnsupported);
}

TEST(Block, AnyChangedByteIsRefusedOrLeavesAnOrderedBlock) {
  base::Random random(7);
  const std::vector<Record> records = RecordsOfBlock(&random, 20);
  const std::string raw = RawForm(records);
  for (size_t at = 0; at < raw.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = raw;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto block = Parse(changed);
      if (!block) continue;
      std::vector<Record> seen;
      BlockCursor cursor;
      cursor.Reset(**block);
      for (cursor.MoveTo(0); cursor.Valid(); cursor.Next()) {
        seen.push_back({std::string(cursor.key()), cursor.tag(), std::string(cursor.value())});
      }
      ASSERT_TRUE(std::is_sorted(seen.begin(), seen.end())) << "byte " << at << " bit " << bit;
      for (uint32_t i = 0; i < seen.size(); ++i) {
        ASSERT_EQ((*block)->LowerBound(seen[i].key, seen[i].tag), i);
      }
    }
  }
}

TEST(Block, EveryTruncationAndEveryExtensionIsRefused) {
  base::Random random(8);
  const std::string raw = RawForm(RecordsOfBlock(&random, 20));
  for (size_t size = 0; size < raw.size(); ++size) {
    ASSERT_FALSE(Parse(std::string_view(raw).substr(0, size))) << size;
  }
  ASSERT_FALSE(Parse(std::string(raw).append(1, '\0')));
}

TEST(Block, AnIndexHoldsHandlesOnly) {
  const std::string handles = RawForm({Put("a", 1, std::string(16, 'h'))});
  EXPECT_TRUE(Parse(handles, Block::Content::kIndex));
  EXPECT_FALSE(Parse(RawForm({Put("a", 1, std::string(15, 'h'))}), Block::Content::kIndex));
  EXPECT_FALSE(Parse(RawForm({Put("a", 1, std::string(16, 'h'), 5)}), Block::Content::kIndex));
}

}  // namespace
}  // namespace basalt::table
