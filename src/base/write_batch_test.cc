#include "basalt/write_batch.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/batch_cursor.h"
#include "base/coding.h"
#include "base/random.h"

namespace basalt {
namespace {

using std::chrono::milliseconds;

/// The bytes of one record, sound or not.
std::string RecordBytes(uint8_t kind, uint8_t flags, uint16_t key_size, uint32_t value_size,
                        std::string_view rest) {
  std::string bytes;
  base::Append(&bytes, kind);
  base::Append(&bytes, flags);
  base::Append(&bytes, key_size);
  base::Append(&bytes, value_size);
  return bytes.append(rest);
}

template <class Integer>
std::string Bytes(Integer value) {
  std::string bytes;
  base::Append(&bytes, value);
  return bytes;
}

/// "key=value" for each record, as ForEach gives them.
std::vector<std::string> Texts(const WriteBatch& batch) {
  std::vector<std::string> texts;
  const Status status = batch.ForEach([&texts](const WriteBatch::Record& record) {
    std::string text(record.kind == RecordKind::kDelete ? "-" : "");
    texts.push_back(text.append(record.key).append("=").append(record.value));
    return Status();
  });
  EXPECT_TRUE(status.ok());
  return texts;
}

/// Writes its record number `index` once more, out of the views that ForEach gives.
void AppendAgain(WriteBatch* batch, size_t index) {
  WriteBatch::Record again{};
  const auto take = [&](const WriteBatch::Record& record) {
    if (index-- == 0) again = record;
    return Status();
  };
  EXPECT_TRUE(batch->ForEach(take).ok());
  switch (again.kind) {
    case RecordKind::kPut:
      batch->Put(again.key, again.value);
      break;
    case RecordKind::kDeleteRange:
      batch->DeleteRange(again.key, again.value);
      break;
    case RecordKind::kMerge:
      batch->Merge(again.key, again.merge_operator, again.value);
      break;
    default:
      FAIL() << "no test writes this kind";
  }
}

TEST(WriteBatch, StartsEmpty) {
  const WriteBatch batch;
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.byte_size(), 0u);
  EXPECT_TRUE(Texts(batch).empty());
}

TEST(WriteBatch, KeepsRecordsInOrder) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Delete("b");
  batch.Put("", "");
  EXPECT_EQ(batch.count(), 3u);
  EXPECT_EQ(Texts(batch), (std::vector<std::string>{"a=1", "-b=", "="}));
}

TEST(WriteBatch, BytesAreTheDocumentedOnes) {
  WriteBatch batch;
  batch.Put("key", "value", {.keyspace = KeyspaceId{9}, .ttl = milliseconds(5)});
  batch.Put("key", "value", {.expiry = WallTime(milliseconds(5))});
  batch.Delete("gone");
  const std::string expected =
      RecordBytes(1, 3, 3, 5, Bytes(uint32_t{9}) + Bytes(uint64_t{5}) + "keyvalue") +
      RecordBytes(1, 6, 3, 5, Bytes(uint64_t{5}) + "keyvalue") + RecordBytes(2, 0, 4, 0, "gone");
  EXPECT_EQ(batch.bytes(), expected);
}

TEST(WriteBatch, ForEachGivesKeyspaceAndTtl) {
  WriteBatch batch;
  batch.Put("k", "v", {.keyspace = KeyspaceId{7}, .ttl = milliseconds(1500)});
  batch.Delete("k", KeyspaceId{8});
  std::vector<std::pair<KeyspaceId, std::optional<milliseconds>>> seen;
  EXPECT_TRUE(batch
                  .ForEach([&seen](const WriteBatch::Record& record) {
                    seen.emplace_back(record.keyspace, record.ttl);
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(seen, (std::vector<std::pair<KeyspaceId, std::optional<milliseconds>>>{
                      {KeyspaceId{7}, milliseconds(1500)}, {KeyspaceId{8}, std::nullopt}}));
}

TEST(WriteBatch, ForEachGivesTheExpiryApartFromATtl) {
  WriteBatch batch;
  const WallTime expiry{milliseconds(1'764'297'600'000)};
  batch.Put("k", "v", {.keyspace = KeyspaceId{7}, .expiry = expiry});
  batch.Put("k", "v", {.ttl = milliseconds(5)});
  EXPECT_TRUE(batch.has_ttl());
  for (const WriteBatch& read : {batch, WriteBatch::Parse(batch.bytes()).value()}) {
    std::vector<std::pair<std::optional<milliseconds>, std::optional<WallTime>>> seen;
    EXPECT_TRUE(read.ForEach([&seen](const WriteBatch::Record& record) {
                      seen.emplace_back(record.ttl, record.expiry);
                      return Status();
                    })
                    .ok());
    EXPECT_EQ(seen, (std::vector<std::pair<std::optional<milliseconds>, std::optional<WallTime>>>{
                        {std::nullopt, expiry}, {milliseconds(5), std::nullopt}}));
  }
}

TEST(WriteBatch, GoesBackToAMark) {
  WriteBatch batch;
  batch.Put("k", "v");
  batch.RequireAbsent("stays");
  const WriteBatch::Mark mark = batch.mark();
  const std::string bytes(batch.bytes());
  batch.Put("later", "v", {.ttl = milliseconds(5)});
  batch.Merge("k", MergeOperator::kAppend, "x");
  batch.RequirePresent("later");
  batch.Put("k", "v", {.ttl = milliseconds(-1)});
  EXPECT_FALSE(batch.status().ok());

  batch.TruncateTo(mark);
  EXPECT_TRUE(batch.status().ok());
  EXPECT_EQ(batch.bytes(), bytes);
  EXPECT_EQ(batch.count(), 1u);
  EXPECT_FALSE(batch.Has(RecordKind::kMerge));
  EXPECT_FALSE(batch.has_ttl());
  std::vector<std::string> required;
  EXPECT_TRUE(batch
                  .ForEachCondition([&](const WriteBatch::Requirement& condition) {
                    required.emplace_back(condition.key);
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(required, std::vector<std::string>{"stays"});
}

TEST(WriteBatch, AFaultBeforeAMarkStays) {
  WriteBatch batch;
  batch.Put("k", "v", {.ttl = milliseconds(-1)});
  const WriteBatch::Mark mark = batch.mark();
  batch.Put("k", "v");
  batch.TruncateTo(mark);
  EXPECT_EQ(batch.status().code(), StatusCode::kInvalidArgument);
}

TEST(WriteBatch, AnExpiryBefore1970IsRemembered) {
  for (const int64_t ms : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    WriteBatch batch;
    batch.Put("k", "v", {.expiry = WallTime(milliseconds(ms))});
    EXPECT_EQ(batch.count(), 0u);
    EXPECT_EQ(batch.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(batch.status().message().find(" " + std::to_string(ms) + " ms since 1970"),
              std::string_view::npos);
  }
}

TEST(WriteBatch, ForEachStopsAtTheFirstError) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  batch.Put("c", "3");
  int visits = 0;
  const Status status = batch.ForEach([&visits](const WriteBatch::Record& record) {
    ++visits;
    return record.key == "b" ? Status(StatusCode::kAborted, "at b") : Status();
  });
  EXPECT_EQ(status.message(), "at b");
  EXPECT_EQ(visits, 2);
}

TEST(WriteBatch, LargestKeyFitsAndALargerOneIsRemembered) {
  WriteBatch batch;
  batch.Put(std::string(kMaxKeyBytes, 'k'), "v");
  EXPECT_TRUE(batch.status().ok());
  batch.Put(std::string(kMaxKeyBytes + 1, 'k'), "v");
  batch.Put("a", "1");
  EXPECT_EQ(batch.count(), 2u);
  EXPECT_EQ(batch.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(batch.status().message(),
            "write batch: the key has 65536 bytes, at most 65535 are possible");
}

TEST(WriteBatch, AValueOfFourGibibytesIsRemembered) {
  // Address space only: the size is refused before a byte is read.
  const size_t size = size_t{1} << 32;
  void* space = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(space, MAP_FAILED);
  WriteBatch batch;
  batch.Put("k", std::string_view(static_cast<const char*>(space), size));
  munmap(space, size);
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(batch.status().message(),
            "write batch: the value has 4294967296 bytes, at most 4294967295 are possible");
}

TEST(WriteBatch, ANegativeTtlIsRemembered) {
  WriteBatch batch;
  batch.Put("k", "v", {.ttl = milliseconds(-1)});
  EXPECT_EQ(batch.count(), 0u);
  EXPECT_EQ(batch.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(batch.status().message().find("-1 ms"), std::string_view::npos);
}

TEST(WriteBatch, ARangeDeleteKeepsItsEndsAndAnEmptyOneAddsNothing) {
  WriteBatch batch;
  batch.DeleteRange("a", "m", KeyspaceId{7});
  batch.DeleteRange("m", "m");
  batch.DeleteRange("m", "a");
  EXPECT_TRUE(batch.status().ok());
  ASSERT_EQ(batch.count(), 1u);
  EXPECT_TRUE(batch
                  .ForEach([](const WriteBatch::Record& record) {
                    EXPECT_EQ(record.kind, RecordKind::kDeleteRange);
                    EXPECT_EQ(record.keyspace, KeyspaceId{7});
                    EXPECT_EQ(record.key, "a");
                    EXPECT_EQ(record.value, "m");
                    return Status();
                  })
                  .ok());
  batch.DeleteRange("a", std::string(kMaxKeyBytes + 1, 'z'));
  EXPECT_EQ(batch.status().code(), StatusCode::kInvalidArgument);
}

TEST(WriteBatch, TheFirstFaultStaysUntilClear) {
  WriteBatch batch;
  batch.Put("k", "v", {.ttl = milliseconds(-1)});
  batch.Put(std::string(kMaxKeyBytes + 1, 'k'), "v");
  EXPECT_NE(batch.status().message().find("ttl"), std::string_view::npos);
  batch.Clear();
  EXPECT_TRUE(batch.status().ok());
  EXPECT_TRUE(batch.empty());
}

TEST(WriteBatch, KnowsWhatKindsItHas) {
  WriteBatch batch;
  EXPECT_FALSE(batch.Has(RecordKind::kPut));
  batch.Put("a", "1");
  batch.Merge("b", MergeOperator::kAppend, "2");
  EXPECT_TRUE(batch.Has(RecordKind::kPut));
  EXPECT_TRUE(batch.Has(RecordKind::kMerge));
  EXPECT_FALSE(batch.Has(RecordKind::kDelete));
  EXPECT_FALSE(batch.has_ttl());
  batch.Put("c", "3", {.ttl = milliseconds(5)});
  EXPECT_TRUE(batch.has_ttl());

  const WriteBatch parsed = WriteBatch::Parse(batch.bytes()).value();
  EXPECT_TRUE(parsed.Has(RecordKind::kMerge));
  EXPECT_FALSE(parsed.Has(RecordKind::kDeleteRange));
  EXPECT_TRUE(parsed.has_ttl());

  WriteBatch moved = std::move(batch);
  EXPECT_TRUE(moved.Has(RecordKind::kMerge));
  EXPECT_FALSE(batch.Has(RecordKind::kMerge));  // NOLINT(bugprone-use-after-move): specified.
  EXPECT_FALSE(batch.has_ttl());
  batch = std::move(moved);
  EXPECT_TRUE(batch.Has(RecordKind::kMerge));
  EXPECT_TRUE(batch.has_ttl());
  batch.Clear();
  EXPECT_FALSE(batch.Has(RecordKind::kPut));
  EXPECT_FALSE(batch.has_ttl());
}

TEST(WriteBatch, KnowsWhetherItHasOnlyPlainPuts) {
  EXPECT_FALSE(WriteBatch().has_only_plain_puts());
  WriteBatch plain;
  plain.Put("a", "1");
  plain.Put("b", "2");
  EXPECT_TRUE(plain.has_only_plain_puts());
  EXPECT_TRUE(WriteBatch::Parse(plain.bytes()).value().has_only_plain_puts());
  for (const auto& add : std::initializer_list<void (*)(WriteBatch*)>{
           [](WriteBatch* batch) { batch->Delete("c"); },
           [](WriteBatch* batch) { batch->DeleteRange("c", "d"); },
           [](WriteBatch* batch) { batch->Merge("c", MergeOperator::kAppend, "3"); },
           [](WriteBatch* batch) { batch->Put("c", "3", {.keyspace = KeyspaceId{1}}); },
           [](WriteBatch* batch) { batch->Put("c", "3", {.ttl = milliseconds(5)}); },
           [](WriteBatch* batch) { batch->Put("c", "3", {.ttl = milliseconds(0)}); }}) {
    WriteBatch batch = plain;
    const WriteBatch::Mark before = batch.mark();
    add(&batch);
    EXPECT_FALSE(batch.has_only_plain_puts());
    EXPECT_FALSE(WriteBatch::Parse(batch.bytes()).value().has_only_plain_puts());
    batch.TruncateTo(before);
    EXPECT_TRUE(batch.has_only_plain_puts());
  }
}

TEST(WriteBatch, CopiesAreApartAndMovesLeaveEmpty) {
  WriteBatch batch;
  batch.Put("a", "1");
  WriteBatch copy = batch;
  copy.Put("b", "2");
  EXPECT_EQ(batch.count(), 1u);
  WriteBatch moved = std::move(copy);
  EXPECT_EQ(moved.count(), 2u);
  EXPECT_EQ(copy.count(), 0u);  // NOLINT(bugprone-use-after-move): what a move leaves is specified.
  EXPECT_EQ(copy.byte_size(), 0u);
  copy.Put("c", "3");
  EXPECT_EQ(Texts(copy), (std::vector<std::string>{"c=3"}));
  batch = std::move(moved);
  EXPECT_EQ(Texts(batch), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(moved.byte_size(), 0u);  // NOLINT(bugprone-use-after-move): as above.
}

TEST(WriteBatch, ParseGivesTheSameBatch) {
  const uint64_t seed = 31;
  base::Random random(seed);
  for (int round = 0; round < 200; ++round) {
    WriteBatch batch;
    const uint64_t records = random.Below(20);
    for (uint64_t i = 0; i < records; ++i) {
      const std::string key(random.Below(300), static_cast<char>(random.Next()));
      const auto keyspace = static_cast<KeyspaceId>(random.OneIn(3) ? random.Below(4) : 0);
      if (random.OneIn(3)) {
        batch.Delete(key, keyspace);
      } else {
        const std::string value(random.Below(2000), static_cast<char>(random.Next()));
        std::optional<milliseconds> ttl;
        if (random.OneIn(2)) ttl = milliseconds(random.Below(5));
        batch.Put(key, value, {.keyspace = keyspace, .ttl = ttl});
      }
    }
    const Result<WriteBatch> parsed = WriteBatch::Parse(batch.bytes());
    ASSERT_TRUE(parsed) << parsed.error().ToString() << ", seed " << seed;
    ASSERT_EQ(parsed->bytes(), batch.bytes());
    ASSERT_EQ(parsed->count(), records);
    ASSERT_EQ(Texts(*parsed), Texts(batch));
    base::BatchCursor cursor(parsed->bytes());
    size_t walked = 0;
    while (cursor.Next()) ++walked;
    ASSERT_EQ(walked, records);
  }
}

TEST(WriteBatch, ParseTakesAllDefinedKinds) {
  std::string bytes;
  for (uint8_t kind = 1; kind <= 5; ++kind) {
    const bool is_merge = kind == static_cast<uint8_t>(RecordKind::kMerge);
    bytes += RecordBytes(kind, 0, 1, is_merge ? 2 : 0, is_merge ? "k\4a" : "k");
  }
  const Result<WriteBatch> batch = WriteBatch::Parse(bytes);
  ASSERT_TRUE(batch) << batch.error().ToString();
  EXPECT_EQ(batch->count(), 5u);
}

TEST(WriteBatch, ParseOfATruncatedBatchIsCorruptionWithItsOffset) {
  WriteBatch batch;
  batch.Put("first", "record");
  const size_t second = batch.byte_size();
  batch.Put("key", "value", {.keyspace = KeyspaceId{9}, .ttl = milliseconds(5)});
  for (size_t size = 0; size <= batch.byte_size(); ++size) {
    const Result<WriteBatch> parsed = WriteBatch::Parse(batch.bytes().substr(0, size));
    if (size == 0 || size == second || size == batch.byte_size()) {
      EXPECT_TRUE(parsed) << size;
      continue;
    }
    ASSERT_FALSE(parsed) << size;
    EXPECT_EQ(parsed.error().code(), StatusCode::kCorruption);
    EXPECT_EQ(parsed.error().message(),
              "parse write batch: record at offset " + std::to_string(size < second ? 0 : second) +
                  ": truncated, the bytes end at offset " + std::to_string(size));
  }
}

struct MalformedCase {
  const char* name;
  std::string bytes;
  StatusCode code;
  const char* message_part;
};

TEST(WriteBatch, ParseRefusesMalformedRecordsByName) {
  const std::vector<MalformedCase> cases = {
      {"kind 0", RecordBytes(0, 0, 0, 0, ""), StatusCode::kUnsupported, "unknown kind 0"},
      {"kind 6", RecordBytes(6, 0, 0, 0, ""), StatusCode::kUnsupported, "unknown kind 6"},
      {"an expiry without a time", RecordBytes(1, 4, 0, 0, ""), StatusCode::kCorruption,
       "an expiry without a time"},
      {"an expiry of a merge", RecordBytes(4, 6, 1, 2, Bytes(uint64_t{5}) + "k\4a"),
       StatusCode::kCorruption, "in a record that is not a put"},
      {"flag 16", RecordBytes(1, 16, 0, 0, ""), StatusCode::kUnsupported, "unknown flags 16"},
      {"no expiry of a delete", RecordBytes(2, 8, 1, 0, "k"), StatusCode::kCorruption,
       "in a record that is not a put"},
      {"no expiry beside a time", RecordBytes(1, 10, 0, 0, Bytes(uint64_t{5})),
       StatusCode::kCorruption, "no expiry beside a time"},
      {"flag 128", RecordBytes(1, 129, 0, 0, ""), StatusCode::kUnsupported, "unknown flags 129"},
      {"keyspace zero", RecordBytes(1, 1, 0, 0, Bytes(uint32_t{0})), StatusCode::kCorruption,
       "keyspace zero"},
      {"time zero", RecordBytes(1, 2, 0, 0, Bytes(uint64_t{0})), StatusCode::kCorruption, "time 0"},
      {"time beyond 63 bits", RecordBytes(1, 2, 0, 0, Bytes(uint64_t{1} << 63)),
       StatusCode::kCorruption, "time 9223372036854775808"},
      {"delete with value", RecordBytes(2, 0, 0, 1, "v"), StatusCode::kCorruption, "a delete with"},
      {"delete with time", RecordBytes(2, 2, 0, 0, Bytes(uint64_t{1})), StatusCode::kCorruption,
       "a delete with"},
      {"range delete with time", RecordBytes(3, 2, 0, 0, Bytes(uint64_t{1})),
       StatusCode::kCorruption, "a range delete with"},
      {"range delete to no key",
       RecordBytes(3, 0, 0, uint32_t{kMaxKeyBytes} + 1, std::string(kMaxKeyBytes + 1, 'e')),
       StatusCode::kCorruption, "an end that is not a key"},
      {"value longer than all bytes", RecordBytes(1, 0, 1, UINT32_MAX, "kv"),
       StatusCode::kCorruption, "truncated"},
  };
  WriteBatch sound;
  sound.Put("sound", "record");
  for (const MalformedCase& malformed : cases) {
    const Result<WriteBatch> parsed =
        WriteBatch::Parse(std::string(sound.bytes()) + malformed.bytes);
    ASSERT_FALSE(parsed) << malformed.name;
    EXPECT_EQ(parsed.error().code(), malformed.code) << malformed.name;
    EXPECT_NE(parsed.error().message().find("record at offset 19: "), std::string_view::npos)
        << parsed.error().ToString();
    EXPECT_NE(parsed.error().message().find(malformed.message_part), std::string_view::npos)
        << parsed.error().ToString();
  }
}

// Whether a batch grows by a record is a matter of its capacity: of so many, some do.
TEST(WriteBatch, ARecordMayBeMadeOfViewsIntoTheBatch) {
  WriteBatch batch;
  batch.Put("k", "v");  // Lies in the string itself.
  batch.Put("account/17", std::string(300, 'v'));
  batch.DeleteRange("account/2", "account/3");
  batch.Merge("name", MergeOperator::kAppend, " Lovelace");
  const std::vector<std::string> once = Texts(batch);
  std::vector<std::string> expected;
  for (int copies = 0; copies < 64; ++copies) {
    expected.insert(expected.end(), once.begin(), once.end());
    ASSERT_EQ(Texts(batch), expected) << copies;
    for (size_t i = 0; i < once.size(); ++i) AppendAgain(&batch, i);
  }
  EXPECT_TRUE(batch.status().ok());
}

TEST(WriteBatch, AShortBatchMayBeAddedToItself) {
  WriteBatch batch;
  batch.Put("k", "v");
  AppendAgain(&batch, 0);
  EXPECT_EQ(Texts(batch), (std::vector<std::string>{"k=v", "k=v"}));
}

TEST(WriteBatch, TheBytesOfARefusedBatchAreRefused) {
  WriteBatch batch;
  batch.Put("debit", "1");
  batch.Put("credit", "2", {.ttl = milliseconds(-1)});
  const Result<WriteBatch> parsed = WriteBatch::Parse(batch.bytes());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code(), StatusCode::kCorruption);
  EXPECT_NE(parsed.error().message().find("WriteBatch::status"), std::string_view::npos)
      << parsed.error().ToString();
  batch.Clear();
  EXPECT_TRUE(WriteBatch::Parse(batch.bytes()));
}

}  // namespace
}  // namespace basalt
