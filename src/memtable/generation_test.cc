#include "memtable/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/epoch.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/test_equal_hashes.h"
#include "memtable/generation_test_support.h"

namespace basalt::memtable {
namespace {

using base::SequenceNumber;

TEST(Generation, APutIsFoundFromItsSequenceOn) {
  const auto table = Generation::Create({});
  Put(*table, "key", "value", 7);
  EXPECT_EQ(GetAt(*table, "key", 6), std::nullopt);
  EXPECT_EQ(GetAt(*table, "key", 7), "7=value");
  EXPECT_EQ(GetAt(*table, "key", base::kMaxSequence), "7=value");
  EXPECT_EQ(GetAt(*table, "kex", base::kMaxSequence), std::nullopt);
}

TEST(Generation, ADeleteIsFoundAsSuch) {
  const auto table = Generation::Create({});
  Put(*table, "key", "value", 1);
  WriteBatch batch;
  batch.Delete("key");
  table->Insert(MustReserve(*table, batch), 2);
  EXPECT_EQ(GetAt(*table, "key", 1), "1=value");
  EXPECT_EQ(GetAt(*table, "key", 2), "2 deleted");
  EXPECT_EQ(ScanAll(*table, 2), (std::vector<std::string>{"key@2 deleted", "key@1=value"}));
}

TEST(Generation, ARecordHasAKeyspaceAndATimeOnlyIfTheyAreNotZero) {
  const auto table = Generation::Create({});
  SequenceNumber sequence = 0;
  for (const uint32_t keyspace : {0u, 1u, 0xFFFF'FFFFu}) {
    for (const uint64_t time_ms : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      for (const std::string_view key : {"", "k", "key of some length"}) {
        const std::string value = Numbered("value ", ++sequence);
        const RecordSource source{
            .keyspace = keyspace, .key = key, .value = value, .time_ms = time_ms};
        EXPECT_EQ(source.ByteSize(), 20 + (keyspace != 0 ? 4u : 0u) + (time_ms != 0 ? 8u : 0u) +
                                         key.size() + value.size());
        auto reservation = table->Reserve(source);
        table->Insert(std::move(reservation.value()), sequence);
        FoundRecord found;
        ASSERT_TRUE(table->Get(keyspace, key, base::Hash(key), sequence, &found));
        EXPECT_EQ(found.value.view(), value);
        EXPECT_EQ(found.time_ms, time_ms);
        const auto iterator = table->NewIterator(keyspace, sequence);
        iterator->Seek(key, base::MakeTag(sequence, RecordKind::kPut));
        ASSERT_TRUE(iterator->Valid());
        EXPECT_EQ(iterator->key(), key);
        EXPECT_EQ(iterator->value(), value);
        EXPECT_EQ(iterator->time_ms(), time_ms);
      }
    }
  }
  EXPECT_EQ(table->record_count(), sequence);
}

TEST(Generation, NothingIsVisibleBeforeInsert) {
  const auto table = Generation::Create({});
  WriteBatch batch;
  batch.Put("key", "value");
  Generation::Reservation reservation = MustReserve(*table, batch);
  EXPECT_EQ(GetAt(*table, "key", base::kMaxSequence), std::nullopt);
  EXPECT_TRUE(ScanAll(*table, base::kMaxSequence).empty());
  EXPECT_TRUE(table->empty());
  table->Insert(std::move(reservation), 1);
  EXPECT_EQ(GetAt(*table, "key", 1), "1=value");
  EXPECT_EQ(table->record_count(), 1u);
}

TEST(Generation, ABatchGivesItsRecordsConsecutiveSequencesAndTheLaterWins) {
  const auto table = Generation::Create({});
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  batch.Put("a", "3");
  batch.Delete("b");
  table->Insert(MustReserve(*table, batch), 10);
  EXPECT_EQ(GetAt(*table, "a", 10), "10=1");
  EXPECT_EQ(GetAt(*table, "a", 13), "12=3");
  EXPECT_EQ(GetAt(*table, "b", 12), "11=2");
  EXPECT_EQ(GetAt(*table, "b", 13), "13 deleted");
}

TEST(Generation, KeyspacesDoNotSeeEachOther) {
  const auto table = Generation::Create({});
  WriteBatch batch;
  batch.Put("key", "zero");
  batch.Put("key", "one", {.keyspace = KeyspaceId{1}});
  batch.Put("key", "many", {.keyspace = KeyspaceId{0xFFFF'FFFF}});
  table->Insert(MustReserve(*table, batch), 1);
  EXPECT_EQ(GetAt(*table, "key", 9), "1=zero");
  EXPECT_EQ(GetAt(*table, "key", 9, 1), "2=one");
  EXPECT_EQ(GetAt(*table, "key", 9, 0xFFFF'FFFF), "3=many");
  EXPECT_EQ(GetAt(*table, "key", 9, 2), std::nullopt);
  EXPECT_EQ(ScanAll(*table, 9, 1), (std::vector<std::string>{"key@2=one"}));
  EXPECT_TRUE(ScanAll(*table, 9, 2).empty());
}

TEST(Generation, ALateSmallerSequenceIsLinkedBehindTheLargerOnes) {
  const auto table = Generation::Create({});
  for (const SequenceNumber sequence : {50, 20, 40, 10, 30, 60}) {
    Put(*table, "key", Numbered("v", sequence), sequence);
  }
  for (SequenceNumber at = 5; at < 70; ++at) {
    const SequenceNumber expected = std::min<SequenceNumber>(at / 10 * 10, 60);
    const auto got = GetAt(*table, "key", at);
    if (expected == 0) {
      EXPECT_EQ(got, std::nullopt);
    } else {
      EXPECT_EQ(got, Numbered(Numbered("", expected) + "=v", expected));
    }
  }
  EXPECT_EQ(ScanAll(*table, 40),
            (std::vector<std::string>{"key@40=v40", "key@30=v30", "key@20=v20", "key@10=v10"}));
}

// One shard, so that the unfinished record stands before the others in order of arrival.
TEST(Generation, ARunNeverPassesAnUnfinishedRecord) {
  const auto table = Generation::Create({.shards = 1});
  WriteBatch first;
  first.Put("a", "first");
  Generation::Reservation unfinished = MustReserve(*table, first);
  std::vector<std::string> others;
  for (SequenceNumber sequence = 2; sequence < 2'000; ++sequence) {
    const std::string key = Numbered("b", 10'000 + sequence);
    Put(*table, key, "v", sequence);
    others.push_back(Numbered(key + "@", sequence) + "=v");
  }
  EXPECT_EQ(ScanAll(*table, 2'000), others);
  table->Insert(std::move(unfinished), 1);
  others.insert(others.begin(), "a@1=first");
  EXPECT_EQ(ScanAll(*table, 2'000), others);
  EXPECT_EQ(ScanAllBackwards(*table, 2'000), others);
}

TEST(Generation, AnIteratorSeesWhatIsFinishedBeyondAnUnfinishedRecord) {
  const auto table = Generation::Create({.shards = 1});
  for (SequenceNumber sequence = 1; sequence <= 100; ++sequence) {
    Put(*table, Numbered("k", sequence), "v", sequence);
  }
  EXPECT_EQ(ScanAll(*table, 100).size(), 100u);
  WriteBatch batch;
  batch.Put("k050", "unfinished");
  Generation::Reservation unfinished = MustReserve(*table, batch);
  Put(*table, "k049", "beyond", 102);
  Put(*table, "k051", "beyond and too new", 103);
  EXPECT_EQ(ScanAll(*table, 100).size(), 100u);
  const std::vector<std::string> seen = ScanAll(*table, 102);
  EXPECT_EQ(seen.size(), 101u);
  EXPECT_EQ(seen.front(), "k049@102=beyond");
  table->Insert(std::move(unfinished), 101);
  EXPECT_EQ(ScanAll(*table, 103).size(), 103u);
}

TEST(Generation, AbandonedRecordsAreNeverSeenAndBlockNothing) {
  const auto table = Generation::Create({.shards = 1});
  for (uint64_t i = 0; i < 1'000; ++i) {
    WriteBatch batch;
    batch.Put(Numbered("abandoned", i), "v");
    batch.Put("key", "abandoned");
    table->Abandon(MustReserve(*table, batch));
  }
  EXPECT_TRUE(table->empty());
  EXPECT_TRUE(ScanAll(*table, base::kMaxSequence).empty());
  Put(*table, "key", "value", 1);
  EXPECT_EQ(GetAt(*table, "key", base::kMaxSequence), "1=value");
  EXPECT_EQ(GetAt(*table, "abandoned7", base::kMaxSequence), std::nullopt);
  EXPECT_EQ(ScanAll(*table, base::kMaxSequence), (std::vector<std::string>{"key@1=value"}));
  EXPECT_EQ(table->record_count(), 1u);
}

TEST(Generation, KeysAndValuesOfAllSizes) {
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  const std::vector<size_t> key_sizes = {0, 1, 7, 8, 9, 100, 4'096, 65'534, 65'535};
  const std::vector<size_t> value_sizes = {0, 1, 112, 113, 65'536, 65'537, 1 << 20};
  std::vector<std::string> keys;
  SequenceNumber sequence = 0;
  for (const size_t key_size : key_sizes) {
    for (const size_t value_size : value_sizes) {
      std::string key(key_size, 'k');
      Put(*table, key, std::string(value_size, static_cast<char>('a' + sequence % 26)),
          sequence + 1);
      FoundRecord found;
      ASSERT_TRUE(table->Get(0, key, base::Hash(key), base::kMaxSequence, &found));
      ASSERT_EQ(found.value, std::string(value_size, static_cast<char>('a' + sequence % 26)));
      ++sequence;
    }
  }
  EXPECT_EQ(ScanAll(*table, sequence).size(), sequence);
}

TEST(Generation, KeysThatArePrefixesOfOthersWithZerosBehindStayInOrder) {
  const auto table = Generation::Create({});
  std::vector<std::string> keys;
  for (const char* stem : {"", "a", "abcdefg", "abcdefgh"}) {
    for (size_t zeros = 0; zeros < 20; ++zeros) {
      keys.push_back(stem + std::string(zeros, '\0'));
      keys.push_back(stem + std::string(zeros, '\0') + "\1");
    }
  }
  base::Random random(1);
  std::shuffle(keys.begin(), keys.end(), random);
  for (size_t i = 0; i < keys.size(); ++i) Put(*table, keys[i], "v", i + 1);
  std::sort(keys.begin(), keys.end());
  const auto iterator = table->NewIterator(0, base::kMaxSequence);
  iterator->SeekToFirst();
  for (const std::string& key : keys) {
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->key(), key);
    iterator->Next();
  }
  EXPECT_FALSE(iterator->Valid());
}

TEST(Generation, ValuesAndIteratorsOutliveTheTable) {
  auto pool = std::make_shared<ChunkPool>();
  auto table = Generation::Create({.pool = pool});
  const std::string large(200'000, 'L');
  const std::string medium(5'000, 'M');
  Put(*table, "large", large, 1);
  Put(*table, "medium", medium, 2);
  FoundRecord found_large;
  FoundRecord found_medium;
  ASSERT_TRUE(table->Get(0, "large", base::Hash("large"), 2, &found_large));
  ASSERT_TRUE(table->Get(0, "medium", base::Hash("medium"), 2, &found_medium));
  auto iterator = table->NewIterator(0, 2);
  const std::weak_ptr<Generation> watch = table;
  table.reset();
  iterator->SeekToFirst();
  EXPECT_EQ(iterator->value(), large);
  iterator.reset();
  EXPECT_FALSE(watch.expired()) << "a value above 64 KiB must pin the table";
  EXPECT_EQ(found_large.value, large);
  found_large.value = Value();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(found_medium.value, medium);
  EXPECT_EQ(pool->kept_bytes(), pool->slab_bytes()) << "the table did not give all chunks back";
}

TEST(Generation, ReserveRefusesWhatPassesTheBudgetAndTakesNothing) {
  constexpr uint64_t kBudget = 1 << 20;
  const auto table = Generation::Create({.budget_bytes = kBudget});
  SequenceNumber sequence = 0;
  size_t payload_bytes = 0;
  for (;; ++sequence) {
    WriteBatch batch;
    batch.Put(Numbered("key", sequence), std::string(100, 'v'));
    auto reservation = table->Reserve(batch.bytes(), 1);
    if (!reservation) {
      EXPECT_EQ(reservation.error().code(), StatusCode::kResourceExhausted);
      EXPECT_NE(reservation.error().message().find("budget"), std::string::npos);
      break;
    }
    table->Insert(std::move(*reservation), sequence + 1);
    payload_bytes += 100 + 9;
  }
  // But for words that doublings of the index have left behind, until they are worth collecting.
  EXPECT_LE(table->memory_bytes(), kBudget + (64u << 10));
  EXPECT_GT(payload_bytes, kBudget / 2) << "the table was refused when it was far from full";
  EXPECT_EQ(table->record_count(), sequence);
  EXPECT_EQ(ScanAll(*table, base::kMaxSequence).size(), sequence);

  WriteBatch large;
  for (uint64_t i = 0; i < 1'000; ++i) large.Put(Numbered("large", i), std::string(500, 'v'));
  const uint64_t before = table->memory_bytes();
  EXPECT_FALSE(table->Reserve(large.bytes(), large.count()));
  EXPECT_EQ(table->memory_bytes(), before);
}

TEST(Generation, ABatchRefusedHalfWayLeavesNothingToSee) {
  const auto table = Generation::Create({.budget_bytes = 64 << 10});
  Put(*table, "first", "v", 1);
  WriteBatch batch;
  for (uint64_t i = 0; i < 30; ++i) batch.Put(Numbered("k", i), std::string(3'000, 'v'));
  EXPECT_FALSE(table->Reserve(batch.bytes(), batch.count()));
  EXPECT_EQ(ScanAll(*table, base::kMaxSequence), (std::vector<std::string>{"first@1=v"}));
}

// Whether the records' memory is used up first or the index's.
TEST(Generation, WhatIsRefusedKeepsNothingFromBeingSorted) {
  const auto put = [](Generation& table, const std::string& key, SequenceNumber sequence) {
    const base::EpochGuard inside;
    bool has_piled_up = false;
    const auto assign = [sequence](base::Tag) { return sequence; };
    return table.Put({.key = key, .value = {}}, base::Hash(key), inside.thread_number(), assign,
                     &has_piled_up) == Generation::Placed::kYes;
  };
  const auto insert = [](Generation& table, const std::string& key, SequenceNumber sequence,
                         size_t count) {
    WriteBatch batch;
    for (size_t i = 0; i < count; ++i) batch.Put(Numbered(key + "/", i), "");
    auto reservation = table.Reserve(batch.bytes(), batch.count());
    if (reservation) table.Insert(std::move(*reservation), sequence);
    return reservation.has_value();
  };
  for (uint64_t budget = 64 << 10; budget <= 256 << 10; budget += 4 << 10) {
    for (const size_t batch_size : {0, 1, 50}) {
      SCOPED_TRACE(Numbered("budget ", budget) + Numbered(", batches of ", batch_size));
      const auto table = Generation::Create({.budget_bytes = budget, .shards = 2});
      SequenceNumber sequence = 1;
      const auto write = [&] {
        const std::string key = Numbered("key", sequence);
        return batch_size == 0 ? put(*table, key, sequence)
                               : insert(*table, key, sequence, batch_size);
      };
      while (write()) sequence += std::max<size_t>(batch_size, 1);
      ASSERT_EQ(table->record_count(), sequence - 1);
      table->SortAll();
      EXPECT_EQ(table->unsorted_count(), 0u);
      EXPECT_EQ(table->sorted_count(), sequence - 1);
    }
  }
}

TEST(Generation, AnEmptyTableAcceptsABatchAboveItsBudget) {
  const auto table = Generation::Create({.budget_bytes = 64 << 10});
  WriteBatch batch;
  for (uint64_t i = 0; i < 2'000; ++i) batch.Put(Numbered("k", i), std::string(200, 'v'));
  Generation::Reservation first = MustReserve(*table, batch);
  EXPECT_FALSE(table->Reserve(batch.bytes(), batch.count())) << "only one batch may pass it";
  table->Abandon(std::move(first));
  table->Insert(MustReserve(*table, batch), 1);
  EXPECT_EQ(table->record_count(), 2'000u);
  EXPECT_FALSE(table->Reserve(batch.bytes(), batch.count()));
  EXPECT_EQ(ScanAll(*table, base::kMaxSequence).size(), 2'000u);
}

TEST(Generation, AnEmptyBatchIsLegal) {
  const auto table = Generation::Create({});
  table->Insert(MustReserve(*table, WriteBatch()), 1);
  EXPECT_TRUE(table->empty());
  EXPECT_EQ(GetAt(*table, "", 1), std::nullopt);
}

TEST(Generation, LookupsReadFewBucketsWhateverTheNumberOfShards) {
  for (const uint32_t shards : {1, 16, 64, 256}) {
    const auto table = Generation::Create({.budget_bytes = 256 << 20, .shards = shards});
    WriteBatch batch;
    for (uint64_t i = 0; i < 100'000; ++i) batch.Put(Numbered("key", i), "");
    table->Insert(MustReserve(*table, batch), 1);
    EXPECT_LT(table->MeanIndexProbes(), 1.5) << shards << " shards";
    EXPECT_GE(table->MeanIndexProbes(), 1.0);
  }
}

TEST(Generation, OverwritingOneKeyDoesNotGrowTheIndex) {
  const auto table = Generation::Create({.budget_bytes = 64 << 20, .shards = 1});
  Put(*table, "key", "", 1);
  for (SequenceNumber sequence = 2; sequence <= 50'000; ++sequence) {
    Put(*table, "key", "", sequence);
  }
  // 20 + 3 bytes in units of 8, and 16 of order: 40 a record, and at most two open chunks.
  EXPECT_LT(table->memory_bytes(), 50'000u * 40 + (2u << 20));
  EXPECT_EQ(GetAt(*table, "key", 25'000), "25000=");

  const uint64_t bytes = table->memory_bytes();
  for (SequenceNumber sequence = 50'001; sequence <= 100'000; ++sequence) {
    const base::EpochGuard inside;
    bool has_piled_up = false;
    ASSERT_EQ(table->Put(
                  {.key = "key", .value = ""}, base::Hash("key"), inside.thread_number(),
                  [sequence](base::Tag) { return sequence; }, &has_piled_up),
              Generation::Placed::kYes);
  }
  // As much again, and a chunk and a half.
  EXPECT_LE(table->memory_bytes(), bytes + 50'000u * 40 + (3u << 19));
  EXPECT_EQ(GetAt(*table, "key", 75'000), "75000=");
}

/// A memtable beside a plain map of all finished versions, driven by one seed.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {
    static constexpr uint32_t kShards[] = {0, 1, 2, 16};
    table_ = Generation::Create({.budget_bytes = 4 << 20, .shards = kShards[random_.Below(4)]});
    // Few or many keys, short or long, with zeros and common prefixes.
    const size_t keys = random_.OneIn(2) ? 5 : 400;
    const std::string common(random_.OneIn(2) ? 0 : random_.Below(20), 'p');
    for (size_t i = 0; i < keys; ++i) {
      std::string key = common;
      const size_t size = random_.Below(14);
      for (size_t j = 0; j < size; ++j) key.push_back(static_cast<char>(random_.Below(3) * 127));
      keys_.push_back(std::move(key));
    }
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      switch (random_.Below(10)) {
        case 0:
        case 1:
        case 2:
        case 3:
          StartBatch();
          break;
        case 4:
        case 5:
          EndSomeBatch();
          break;
        case 6:
        case 7:
        case 8:
          CheckGet();
          break;
        default:
          CheckIterator();
      }
    }
    while (!open_.empty()) EndSomeBatch();
    for (uint64_t i = 0; i < 20; ++i) CheckGet();
    CheckIterator();
  }

 private:
  using Version = std::tuple<uint32_t, std::string, uint64_t>;  // keyspace, key, ~tag
  struct OpenBatch {
    Generation::Reservation reservation;
    WriteBatch batch;
    SequenceNumber first;
    bool dropped;
  };

  const std::string& SomeKey() { return keys_[random_.Below(keys_.size())]; }

  void StartBatch() {
    OpenBatch open{};
    const size_t records = random_.OneIn(3) ? random_.Between(1, 30) : 1;
    for (size_t i = 0; i < records; ++i) {
      const auto keyspace = KeyspaceId{random_.OneIn(5) ? 1u : 0u};
      if (random_.OneIn(5)) {
        open.batch.Delete(SomeKey(), keyspace);
      } else {
        open.batch.Put(SomeKey(), std::string(random_.Below(150), 'v'), {.keyspace = keyspace});
      }
    }
    auto reservation = table_->Reserve(open.batch.bytes(), open.batch.count());
    if (!reservation) return;
    open.reservation = std::move(*reservation);
    open.dropped = random_.OneIn(6);
    open.first = last_sequence_ + 1;
    if (!open.dropped) last_sequence_ += records;
    open_.push_back(std::move(open));
    if (random_.OneIn(2)) EndSomeBatch();
  }

  void EndSomeBatch() {
    if (open_.empty()) return;
    const auto chosen = open_.begin() + static_cast<ptrdiff_t>(random_.Below(open_.size()));
    OpenBatch open = std::move(*chosen);
    open_.erase(chosen);
    if (open.dropped) {
      table_->Abandon(std::move(open.reservation));
      return;
    }
    table_->Insert(std::move(open.reservation), open.first);
    SequenceNumber sequence = open.first;
    const Status status = open.batch.ForEach([&](const WriteBatch::Record& record) {
      const base::Tag tag = base::MakeTag(sequence++, record.kind);
      versions_[{static_cast<uint32_t>(record.keyspace), std::string(record.key), ~tag}] =
          std::string(record.value);
      return Status();
    });
    ASSERT_TRUE(status.ok());
  }

  // Below every batch that is not in yet.
  SequenceNumber SomeVisible() {
    SequenceNumber visible = last_sequence_;
    for (const OpenBatch& open : open_) {
      if (!open.dropped) visible = std::min(visible, open.first - 1);
    }
    return random_.OneIn(2) ? visible : random_.Below(visible + 1);
  }

  void CheckGet() {
    const uint32_t keyspace = random_.OneIn(5) ? 1 : 0;
    const std::string& key = SomeKey();
    const SequenceNumber at = random_.OneIn(3) ? base::kMaxSequence : SomeVisible();
    FoundRecord found;
    const bool is_found = table_->Get(keyspace, key, base::Hash(key), at, &found);
    const auto expected = versions_.lower_bound({keyspace, key, ~base::SeekTag(at)});
    const bool is_expected = expected != versions_.end() &&
                             std::get<0>(expected->first) == keyspace &&
                             std::get<1>(expected->first) == key;
    ASSERT_EQ(is_found, is_expected);
    if (!is_found) return;
    ASSERT_EQ(found.tag, ~std::get<2>(expected->first));
    ASSERT_EQ(found.value, expected->second);
  }

  void CheckIterator() {
    const uint32_t keyspace = random_.OneIn(5) ? 1 : 0;
    const SequenceNumber visible = SomeVisible();
    std::vector<Expected> expected;
    for (const auto& [version, value] : versions_) {
      const auto& [of_keyspace, key, inverse] = version;
      if (of_keyspace == keyspace && base::TagSequence(~inverse) <= visible) {
        expected.push_back({key, inverse, value});
      }
    }
    const auto iterator = table_->NewIterator(keyspace, visible);
    size_t at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at) {
      ASSERT_LT(at, expected.size());
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*iterator, expected[at]));
    }
    ASSERT_EQ(at, expected.size());
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
      ASSERT_GT(at, 0u);
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*iterator, expected[--at]));
    }
    ASSERT_EQ(at, 0u);
    for (uint64_t i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(CheckWalk(*iterator, expected));
  }

  struct Expected {
    std::string key;
    uint64_t inverse_tag;
    std::string value;
  };

  static void ExpectAt(const base::RecordIterator& iterator, const Expected& expected) {
    ASSERT_EQ(iterator.key(), expected.key);
    ASSERT_EQ(iterator.tag(), ~expected.inverse_tag);
    ASSERT_EQ(iterator.value(), expected.value);
  }

  // A seek that is given up, another one, then steps in both directions.
  void CheckWalk(base::RecordIterator& iterator, const std::vector<Expected>& expected) {
    const std::string given_up = SomeKey();
    const auto seek_steps = static_cast<int>(random_.Below(base::RecordIterator::kSeekSteps));
    for (int step = 0; step < seek_steps; ++step) {
      iterator.SeekStep(step, given_up, base::kNewestTag);
    }
    const std::string key = random_.OneIn(8) ? SomeKey() + "x" : SomeKey();
    const base::Tag tag =
        random_.OneIn(2) ? base::kNewestTag : base::SeekTag(random_.Below(last_sequence_ + 2));
    const auto before = [](const Expected& entry, const std::pair<std::string, uint64_t>& target) {
      return std::pair(entry.key, entry.inverse_tag) < target;
    };
    auto at = std::lower_bound(expected.begin(), expected.end(), std::pair(key, ~tag), before);
    if (random_.OneIn(2)) {
      iterator.Seek(key, tag);
    } else {
      iterator.SeekForPrev(key, tag);  // no version has a tag that ends like a seek tag
      if (at == expected.begin()) {
        ASSERT_FALSE(iterator.Valid());
        return;
      }
      --at;
    }
    for (int step = 0; step < 12; ++step) {
      ASSERT_EQ(iterator.Valid(), at != expected.end());
      if (at == expected.end()) return;
      ASSERT_NO_FATAL_FAILURE(ExpectAt(iterator, *at));
      if (random_.OneIn(2)) {
        iterator.Next();
        ++at;
      } else {
        iterator.Prev();
        if (at == expected.begin()) {
          ASSERT_FALSE(iterator.Valid());
          return;
        }
        --at;
      }
    }
  }

  base::Random random_;
  std::shared_ptr<Generation> table_;
  std::vector<std::string> keys_;
  std::map<Version, std::string> versions_;
  std::vector<OpenBatch> open_;
  SequenceNumber last_sequence_ = 0;
};

TEST(Generation, BehavesLikeAMapOfVersions) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(Numbered("seed ", seed));
    Model(seed).Run(600);
    if (HasFatalFailure()) return;
  }
}

// Anybody can make such keys.
TEST(Generation, KeysOfOneHashAreFoundByFewProbes) {
  const std::vector<std::string> keys = base::KeysOfOneHash(5000);
  const size_t stored = keys.size() / 2;
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  base::SequenceNumber sequence = 0;
  for (int version = 0; version < 2; ++version) {
    for (size_t i = 0; i < stored; ++i) Put(*table, keys[i], "v", ++sequence);
  }
  EXPECT_LT(table->MeanIndexProbes(), 2);
  for (size_t i = 0; i < stored; ++i) {
    EXPECT_EQ(GetAt(*table, keys[i], sequence), Numbered("", stored + i + 1) + "=v");
    EXPECT_EQ(GetAt(*table, keys[i], stored), Numbered("", i + 1) + "=v");
  }
  for (size_t i = stored; i < keys.size(); ++i) EXPECT_FALSE(GetAt(*table, keys[i], sequence));
}

}  // namespace
}  // namespace basalt::memtable
