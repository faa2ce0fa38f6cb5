#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/check.h"
#include "base/test_update.h"
#include "memtable/store_test_support.h"

namespace basalt {
namespace {

// Options and arguments

TEST(MemTable, EachInvalidOptionIsNamed) {
  const std::vector<std::pair<std::string, MemTableOptions>> cases = {
      {"memory_budget", {.memory_budget = 0}},
      {"memory_budget", {.memory_budget = 256 * kKiB - 1}},
      {"shards is 256, and needs a memory_budget of at least 6291456",
       {.memory_budget = 4 * kMiB, .shards = 256}},
      {"generation_bytes", {.memory_budget = 8 * kMiB, .generation_bytes = 1}},
      {"generation_bytes", {.memory_budget = 8 * kMiB, .generation_bytes = 64 * kKiB - 1}},
      {"generation_bytes", {.memory_budget = 8 * kMiB, .generation_bytes = 4 * kMiB + 1}},
      {"shards", {.shards = 3}},
      {"shards", {.shards = 512}},
      {"at_budget", {.at_budget = static_cast<AtBudget>(7)}},
  };
  for (const auto& [name, options] : cases) {
    const auto table = MemTable::Create(options);
    ASSERT_FALSE(table) << name;
    EXPECT_EQ(table.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(table.error().message().find(name), std::string_view::npos)
        << table.error().message() << " does not name " << name;
  }
}

TEST(MemTable, OptionsAtTheirLimitsWork) {
  const std::vector<MemTableOptions> cases = {
      {},
      {.memory_budget = 256 * kKiB},
      {.memory_budget = 256 * kKiB, .generation_bytes = 64 * kKiB},
      {.memory_budget = 64 * kMiB, .generation_bytes = 4 * kMiB, .shards = 256},
      {.shards = 1},
      {.shards = 256},
      {.at_budget = AtBudget::kRefuse, .compaction = false},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const auto table = NewTable(cases[i]);
    EXPECT_EQ(table->GetStats().memory_budget, cases[i].memory_budget);
    ASSERT_TRUE(IsOk(table->Put("key", "value")));
    EXPECT_EQ(GetFrom(*table, "key"), "value");
    EXPECT_EQ(Scan(*table), (Contents{{"key", "value"}}));
  }
}

TEST(MemTable, AKeyThatIsTooLongIsRefusedAndTheLongestIsNot) {
  const auto table = NewTable();
  const std::string longest(65'535, 'k');
  const std::string too_long(65'536, 'k');
  ASSERT_TRUE(IsOk(table->Put(longest, "value")));
  EXPECT_EQ(GetFrom(*table, longest), "value");
  EXPECT_EQ(table->Put(too_long, "value").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table->Delete(too_long).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table->DeleteRange("a", std::string(65'536, 'z')).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table->DeleteRange(too_long, "z").code(), StatusCode::kInvalidArgument);
  const auto update = [](std::optional<std::string_view>) -> Result<std::optional<std::string>> {
    return std::optional<std::string>("updated");
  };
  EXPECT_EQ(table->Update(too_long, base::ByValue(update)).code(), StatusCode::kInvalidArgument);
  WriteBatch batch;
  batch.Put("other", "value");
  batch.Put(too_long, "value");
  EXPECT_EQ(table->Write(batch).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Scan(*table), (Contents{{longest, "value"}}));
  EXPECT_EQ(table->GetStats().last_sequence, 1u);
}

TEST(MemTable, AnEmptyBatchIsFineAndDurabilityMeansNothing) {
  const auto table = NewTable();
  EXPECT_TRUE(IsOk(table->Write(WriteBatch())));
  EXPECT_EQ(table->GetStats().last_sequence, 0u);
  for (const Durability durability :
       {Durability::kInterval, Durability::kProcess, Durability::kPower}) {
    WriteBatch batch;
    batch.Put("key", "value");
    EXPECT_TRUE(IsOk(table->Write(batch, {.durability = durability})));
  }
  EXPECT_EQ(GetFrom(*table, "key"), "value");
}

TEST(MemTable, MultiGetAnswersInOrderAndRefusesSpansOfDifferentLength) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("a", "1")));
  ASSERT_TRUE(IsOk(table->Put("b", std::string(5'000, 'b'))));
  ASSERT_TRUE(IsOk(table->Put("c", "3")));
  ASSERT_TRUE(IsOk(table->Delete("c")));
  const std::array<std::string_view, 6> keys = {"b", "absent", "a", "b", "c", ""};
  std::array<Result<MaybeValue>, 6> results;
  ASSERT_TRUE(IsOk(table->MultiGet(keys, results)));
  const std::array<std::optional<std::string>, 6> expected = {
      std::string(5'000, 'b'), std::nullopt, "1",
      std::string(5'000, 'b'), std::nullopt, std::nullopt};
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(results[i]) << results[i].error().ToString();
    ASSERT_EQ(results[i]->has_value(), expected[i].has_value()) << keys[i];
    if (expected[i]) {
      EXPECT_EQ((*results[i])->ToString(), *expected[i]);
    }
  }
  std::array<Result<MaybeValue>, 5> too_few;
  EXPECT_EQ(table->MultiGet(keys, too_few).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsOk(table->MultiGet(std::span<const std::string_view>(), {})));
}

TEST(MemTable, MultiGetReplacesWhateverTheResultsHeld) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("short", "1")));
  ASSERT_TRUE(IsOk(table->Put("long", std::string(5'000, 'b'))));
  const auto new_value = [](std::string_view held) -> Result<MaybeValue> {
    if (held == "error") return Status(StatusCode::kCorruption, "of an earlier call");
    if (held == "absent") return MaybeValue();
    return MaybeValue(Value::Copy(held));
  };
  const std::vector<std::string> held = {"error", "absent", "few bytes", std::string(200, 'h')};
  const std::array<std::string_view, 3> keys = {"short", "long", "absent"};
  for (const std::string& before : held) {
    std::array<Result<MaybeValue>, 3> results = {new_value(before), new_value(before),
                                                 new_value(before)};
    ASSERT_TRUE(IsOk(table->MultiGet(keys, results)));
    for (const auto& result : results) ASSERT_TRUE(result) << result.error().ToString();
    EXPECT_EQ(results[0]->value(), "1");
    EXPECT_EQ(results[1]->value(), std::string(5'000, 'b'));
    EXPECT_FALSE(results[2]->has_value());
  }
}

TEST(MemTable, MultiGetOfManyKeysOverManyGenerations) {
  const auto table = NewTable(Still());
  constexpr uint64_t kKeys = 2'000;
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), Numbered("value", i))));
    if (i % 400 == 0) {
      ASSERT_TRUE(IsOk(table->Seal()));
    }
  }
  std::vector<std::string> names;
  for (uint64_t i = 0; i < 2 * kKeys; ++i) names.push_back(Numbered("key", i));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Result<MaybeValue>> results(keys.size());
  ASSERT_TRUE(IsOk(table->MultiGet(keys, results)));
  for (uint64_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(results[i]);
    ASSERT_EQ(results[i]->has_value(), i < kKeys) << names[i];
    if (i < kKeys) {
      ASSERT_EQ((*results[i])->ToString(), Numbered("value", i));
    }
  }
}

TEST(MemTable, ASnapshotOfAnotherStoreIsRefused) {
  const auto table = NewTable();
  const auto other = NewTable();
  ASSERT_TRUE(IsOk(table->Put("key", "value")));
  ASSERT_TRUE(IsOk(other->Put("key", "value")));
  const Snapshot snapshot = SnapshotOf(*other);
  const Result<MaybeValue> value = table->Get("key", {.snapshot = &snapshot});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), StatusCode::kInvalidArgument);
  const std::array<std::string_view, 1> keys = {"key"};
  std::array<Result<MaybeValue>, 1> results;
  const Status status = table->MultiGet(keys, results, {.snapshot = &snapshot});
  EXPECT_EQ(status.ok() ? results[0].error().code() : status.code(), StatusCode::kInvalidArgument);
  const auto it = table->NewIterator({.snapshot = &snapshot});
  it->SeekToFirst();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kInvalidArgument);
}

TEST(MemTable, APrefixExcludesBounds) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("key", "value")));
  const std::array<ReadOptions, 2> cases = {ReadOptions{.lower = "a", .prefix = "k"},
                                            ReadOptions{.upper = "z", .prefix = "k"}};
  for (const ReadOptions& options : cases) {
    const auto it = table->NewIterator(options);
    EXPECT_FALSE(it->Valid());
    it->SeekToFirst();
    EXPECT_FALSE(it->Valid());
    it->SeekToLast();
    EXPECT_FALSE(it->Valid());
    EXPECT_EQ(it->status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(MemTableArguments, ABatchTakesNoKeyspaceAndNoTtlOfItsOwn) {
  const auto table = NewTable();
  WriteBatch batch;
  batch.Put("key", "value");
  for (const WriteOptions& options : {WriteOptions{.keyspace = KeyspaceId{7}},
                                      WriteOptions{.ttl = std::chrono::milliseconds(1)}}) {
    EXPECT_EQ(table->Write(batch, options).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(Scan(*table).empty());
}

// Single writes and lookups

TEST(MemTable, PutsAndDeletesAreSeenAtOnceAtEachStage) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    ASSERT_TRUE(IsOk(table->Put("a", "1")));
    ASSERT_TRUE(IsOk(table->Put("b", "1")));
    ASSERT_TRUE(IsOk(table->Put("c", "1")));
    stage.reach(*table);
    EXPECT_EQ(GetFrom(*table, "a"), "1");
    ASSERT_TRUE(IsOk(table->Put("a", "2")));
    ASSERT_TRUE(IsOk(table->Delete("b")));
    ASSERT_TRUE(IsOk(table->Delete("absent")));
    EXPECT_EQ(GetFrom(*table, "a"), "2");
    EXPECT_EQ(GetFrom(*table, "b"), std::nullopt);
    stage.reach(*table);
    EXPECT_EQ(GetFrom(*table, "a"), "2");
    EXPECT_EQ(GetFrom(*table, "b"), std::nullopt);
    EXPECT_EQ(GetFrom(*table, "c"), "1");
    EXPECT_EQ(Scan(*table), (Contents{{"a", "2"}, {"c", "1"}}));
  }
}

TEST(MemTable, EmptyKeysEmptyValuesAndAnyBytes) {
  const auto table = NewTable(Still());
  using std::string_literals::operator""s;
  const Contents all = {{"", "of the empty key"}, {"\0"s, ""},
                        {"\0\0"s, "\0\xFF"s},     {"a", ""},
                        {"a\0"s, "a zero"},       {"\xFF", "last but one"},
                        {"\xFF\xFF", "last"}};
  for (const auto& [key, value] : all) ASSERT_TRUE(IsOk(table->Put(key, value)));
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    stage.reach(*table);
    for (const auto& [key, value] : all) EXPECT_EQ(GetFrom(*table, key), value);
    EXPECT_EQ(Scan(*table), all);
  }
}

TEST(MemTable, TheLaterRecordOfABatchWins) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    WriteBatch batch;
    batch.Put("a", "1");
    batch.Put("b", "1");
    batch.Delete("a");
    batch.Put("a", "2");
    batch.Delete("b");
    ASSERT_TRUE(IsOk(table->Write(batch)));
    stage.reach(*table);
    EXPECT_EQ(Scan(*table), (Contents{{"a", "2"}}));
    EXPECT_EQ(GetFrom(*table, "b"), std::nullopt);
  }
}

TEST(MemTable, KeyspacesAreApart) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    const KeyspaceId one = table->CreateKeyspace("one").value();
    const KeyspaceId empty = table->CreateKeyspace("empty").value();
    const KeyspaceId last = table->CreateKeyspace("last").value();
    ASSERT_TRUE(IsOk(table->Put("key", "default")));
    ASSERT_TRUE(IsOk(table->Put("key", "one", {.keyspace = one})));
    ASSERT_TRUE(IsOk(table->Put("key", "last", {.keyspace = last})));
    ASSERT_TRUE(IsOk(table->Put("more", "one", {.keyspace = one})));
    stage.reach(*table);
    EXPECT_EQ(GetFrom(*table, "key"), "default");
    EXPECT_EQ(GetFrom(*table, "key", {.keyspace = one}), "one");
    EXPECT_EQ(GetFrom(*table, "key", {.keyspace = last}), "last");
    EXPECT_EQ(GetFrom(*table, "key", {.keyspace = empty}), std::nullopt);
    EXPECT_EQ(Scan(*table), (Contents{{"key", "default"}}));
    EXPECT_EQ(Scan(*table, {.keyspace = one}), (Contents{{"key", "one"}, {"more", "one"}}));
    EXPECT_TRUE(Scan(*table, {.keyspace = empty}).empty());

    ASSERT_TRUE(IsOk(table->DeleteRange("a", "z", {.keyspace = one})));
    stage.reach(*table);
    EXPECT_TRUE(Scan(*table, {.keyspace = one}).empty());
    EXPECT_EQ(GetFrom(*table, "key", {.keyspace = one}), std::nullopt);
    EXPECT_EQ(GetFrom(*table, "key"), "default");
    ASSERT_TRUE(IsOk(table->Delete("key", {.keyspace = last})));
    stage.reach(*table);
    EXPECT_EQ(GetFrom(*table, "key", {.keyspace = last}), std::nullopt);
    EXPECT_EQ(GetFrom(*table, "key"), "default");
    const auto update =
        [](std::optional<std::string_view> before) -> Result<std::optional<std::string>> {
      EXPECT_EQ(before, std::nullopt);
      return std::optional<std::string>("updated");
    };
    ASSERT_TRUE(IsOk(table->Update("key", base::ByValue(update), {.keyspace = last})));
    EXPECT_EQ(Scan(*table, {.keyspace = last}), (Contents{{"key", "updated"}}));
    EXPECT_EQ(Scan(*table), (Contents{{"key", "default"}}));
  }
}

// Iterators and snapshots

/// Keys "b" to "h" without "e", each over several generations and with hidden versions.
class MemTableScan : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    for (const char* key : {"b", "d", "f", "h", "e"}) ASSERT_TRUE(IsOk(table_->Put(key, "old")));
    ASSERT_TRUE(IsOk(table_->Seal()));
    for (const char* key : {"c", "g", "i"}) ASSERT_TRUE(IsOk(table_->Put(key, key)));
    for (const char* key : {"b", "h"}) ASSERT_TRUE(IsOk(table_->Put(key, key)));
    ASSERT_TRUE(IsOk(table_->Seal()));
    for (const char* key : {"d", "f"}) ASSERT_TRUE(IsOk(table_->Put(key, key)));
    for (const char* key : {"e", "i"}) ASSERT_TRUE(IsOk(table_->Delete(key)));
    Stages()[GetParam()].reach(*table_);
  }

  const std::unique_ptr<MemTable> table_ = NewTable(Still());
};

TEST_P(MemTableScan, SeesTheNewestOfEachKeyInBothDirections) {
  EXPECT_EQ(Scan(*table_),
            (Contents{{"b", "b"}, {"c", "c"}, {"d", "d"}, {"f", "f"}, {"g", "g"}, {"h", "h"}}));
}

TEST_P(MemTableScan, SeeksToTheNeighboursOfWhatIsAbsent) {
  const auto it = table_->NewIterator();
  EXPECT_FALSE(it->Valid());
  it->Next();
  EXPECT_FALSE(it->Valid());
  const auto seek = [&](std::string_view target) {
    it->Seek(target);
    return it->Valid() ? std::string(it->key()) : "none";
  };
  const auto seek_for_prev = [&](std::string_view target) {
    it->SeekForPrev(target);
    return it->Valid() ? std::string(it->key()) : "none";
  };
  EXPECT_EQ(seek(""), "b");
  EXPECT_EQ(seek("d"), "d");
  EXPECT_EQ(seek("da"), "f");
  EXPECT_EQ(seek("e"), "f");
  EXPECT_EQ(seek("h"), "h");
  EXPECT_EQ(seek("ha"), "none");
  EXPECT_EQ(seek("i"), "none");
  EXPECT_EQ(seek_for_prev("z"), "h");
  EXPECT_EQ(seek_for_prev("i"), "h");
  EXPECT_EQ(seek_for_prev("e"), "d");
  EXPECT_EQ(seek_for_prev("d"), "d");
  EXPECT_EQ(seek_for_prev("bb"), "b");
  EXPECT_EQ(seek_for_prev("a"), "none");
  EXPECT_TRUE(IsOk(it->status()));
}

TEST_P(MemTableScan, TurnsRoundAnywhere) {
  const auto it = table_->NewIterator();
  const auto at = [&] { return it->Valid() ? std::string(it->key()) : "none"; };
  it->Seek("e");
  EXPECT_EQ(at(), "f");
  it->Prev();
  EXPECT_EQ(at(), "d");
  it->Prev();
  EXPECT_EQ(at(), "c");
  it->Next();
  EXPECT_EQ(at(), "d");
  it->Next();
  EXPECT_EQ(at(), "f");
  EXPECT_EQ(it->value(), "f");
  it->Prev();
  EXPECT_EQ(at(), "d");
  EXPECT_EQ(it->value(), "d");
  it->SeekToLast();
  EXPECT_EQ(at(), "h");
  it->Next();
  EXPECT_EQ(at(), "none");
  it->Prev();
  EXPECT_EQ(at(), "none") << "beyond an end, an iterator stays there until it seeks";
  it->SeekToFirst();
  EXPECT_EQ(at(), "b");
  it->Prev();
  EXPECT_EQ(at(), "none");
}

TEST_P(MemTableScan, StaysWithinItsBounds) {
  EXPECT_EQ(KeysOf(*table_, {.lower = "c"}), "c d f g h");
  EXPECT_EQ(KeysOf(*table_, {.upper = "g"}), "b c d f");
  EXPECT_EQ(KeysOf(*table_, {.lower = "bb", .upper = "ff"}), "c d f");
  EXPECT_EQ(KeysOf(*table_, {.lower = "e", .upper = "f"}), "");
  EXPECT_EQ(KeysOf(*table_, {.lower = "g", .upper = "c"}), "");
  EXPECT_EQ(KeysOf(*table_, {.lower = "c", .upper = "c"}), "");
  EXPECT_EQ(KeysOf(*table_, {.upper = ""}), "");
  EXPECT_EQ(KeysOf(*table_, {.lower = ""}), "b c d f g h");
  const auto it = table_->NewIterator({.lower = "c", .upper = "g"});
  it->Seek("a");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "c");
  it->Prev();
  EXPECT_FALSE(it->Valid());
  it->SeekForPrev("z");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "f");
  it->Next();
  EXPECT_FALSE(it->Valid());
  it->Seek("g");
  EXPECT_FALSE(it->Valid());
  it->SeekForPrev("b");
  EXPECT_FALSE(it->Valid());
}

TEST_P(MemTableScan, KeysOnlyLeavesValuesEmpty) {
  const Contents all = Scan(*table_, {.lower = "c", .upper = "g", .keys_only = true});
  EXPECT_EQ(all, (Contents{{"c", ""}, {"d", ""}, {"f", ""}}));
}

INSTANTIATE_TEST_SUITE_P(Stages, MemTableScan, testing::Range<size_t>(0, Stages().size()));

// So many that an iterator gets what it shows in many portions.
TEST(MemTable, AWalkOverManyKeepsToItsMomentItsBoundsAndItsPlace) {
  constexpr size_t kKeys = 500;
  const auto table = NewTable(Still());
  const auto key = [](size_t i) { return std::to_string(10'000 + i); };
  for (size_t i = 0; i < kKeys; ++i) ASSERT_TRUE(IsOk(table->Put(key(i), Numbered("v", i))));
  const Snapshot before = SnapshotOf(*table);
  Contents now;
  Contents then;
  for (size_t i = 0; i < kKeys; ++i) {
    then.emplace_back(key(i), Numbered("v", i));
    if (i % 90 == 60) {
      ASSERT_TRUE(IsOk(table->Delete(key(i))));
      continue;
    }
    now.push_back(then.back());
    if (i % 70 != 50) continue;
    now.back().second = "new";
    ASSERT_TRUE(IsOk(table->Put(key(i), "new")));
  }
  EXPECT_EQ(Scan(*table), now);
  EXPECT_EQ(Scan(*table, {.snapshot = &before}), then);

  for (size_t size = 0; size <= now.size(); ++size) {
    const std::string upper = size == now.size() ? "2" : now[size].first;
    const auto it = table->NewIterator({.upper = upper});
    ASSERT_EQ(ReadForwards(it.get()),
              Contents(now.begin(), now.begin() + static_cast<ptrdiff_t>(size)));
    it->Next();
    ASSERT_FALSE(it->Valid());
  }
  const auto it = table->NewIterator();
  for (size_t turn = 1; turn < now.size(); ++turn) {
    it->SeekToFirst();
    for (size_t i = 0; i < turn; ++i) it->Next();
    const auto expect_at = [&](size_t i) {
      ASSERT_TRUE(it->Valid());
      ASSERT_EQ(it->key(), now[i].first);
      ASSERT_EQ(it->value(), now[i].second);
    };
    ASSERT_NO_FATAL_FAILURE(expect_at(turn));
    it->Prev();
    ASSERT_NO_FATAL_FAILURE(expect_at(turn - 1));
    it->Next();
    ASSERT_NO_FATAL_FAILURE(expect_at(turn));
    it->Seek(it->key());
    ASSERT_NO_FATAL_FAILURE(expect_at(turn));
  }
}

TEST(MemTable, APrefixSelectsExactlyItsKeys) {
  using std::string_literals::operator""s;
  const auto table = NewTable();
  for (const std::string& key : {"a"s, "a\0"s, "ab"s, "a\xFF"s, "a\xFF\xFF"s, "b"s, "\xFF"s,
                                 "\xFF\xFF"s, "\xFF\xFF\1"s, ""s}) {
    ASSERT_TRUE(IsOk(table->Put(key, "value")));
  }
  const auto count = [&](std::string_view prefix) {
    return Scan(*table, {.prefix = prefix}).size();
  };
  EXPECT_EQ(count("a"), 5u);
  EXPECT_EQ(count("a\xFF"), 2u);
  EXPECT_EQ(count("\xFF"), 3u);
  EXPECT_EQ(count("\xFF\xFF"), 2u);
  EXPECT_EQ(count("b"), 1u);
  EXPECT_EQ(count("c"), 0u);
  EXPECT_EQ(count(""), 10u);
}

TEST(MemTable, IteratorsAndSnapshotsKeepSeeingTheirMoment) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    ASSERT_TRUE(IsOk(table->Put("a", "1")));
    ASSERT_TRUE(IsOk(table->Put("b", "1")));
    ASSERT_TRUE(IsOk(table->Put("c", "1")));
    const Snapshot snapshot = SnapshotOf(*table);
    EXPECT_EQ(snapshot.sequence(), 3u);
    const auto it = table->NewIterator();
    ASSERT_TRUE(IsOk(table->Put("a", "2")));
    ASSERT_TRUE(IsOk(table->Delete("b")));
    ASSERT_TRUE(IsOk(table->DeleteRange("c", "d")));
    ASSERT_TRUE(IsOk(table->Put("d", "2")));
    stage.reach(*table);
    const Contents before = {{"a", "1"}, {"b", "1"}, {"c", "1"}};
    EXPECT_EQ(ReadForwards(it.get()), before);
    EXPECT_EQ(ReadBackwards(it.get()), before);
    EXPECT_EQ(Scan(*table, {.snapshot = &snapshot}), before);
    for (const auto& [key, value] : before) {
      EXPECT_EQ(GetFrom(*table, key, {.snapshot = &snapshot}), value);
    }
    EXPECT_EQ(GetFrom(*table, "d", {.snapshot = &snapshot}), std::nullopt);
    const std::array<std::string_view, 2> keys = {"a", "d"};
    std::array<Result<MaybeValue>, 2> results;
    ASSERT_TRUE(IsOk(table->MultiGet(keys, results, {.snapshot = &snapshot})));
    EXPECT_EQ(results[0].value()->ToString(), "1");
    EXPECT_FALSE(results[1].value());
    EXPECT_EQ(Scan(*table), (Contents{{"a", "2"}, {"d", "2"}}));
  }
}

TEST(MemTable, AnIteratorOutlivesItsSnapshot) {
  const auto table = NewTable(Still());
  ASSERT_TRUE(IsOk(table->Put("key", "old")));
  std::unique_ptr<Iterator> it;
  {
    const Snapshot snapshot = SnapshotOf(*table);
    ASSERT_TRUE(IsOk(table->Put("key", "new")));
    it = table->NewIterator({.snapshot = &snapshot});
  }
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_EQ(ReadForwards(it.get()), (Contents{{"key", "old"}}));
  EXPECT_EQ(Scan(*table), (Contents{{"key", "new"}}));
}

// Update

using UpdateResult = Result<std::optional<std::string>>;

TEST(MemTable, UpdateSetsAndDeletes) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Update(
      "key", base::ByValue([](std::optional<std::string_view> before) -> UpdateResult {
        EXPECT_EQ(before, std::nullopt);
        return std::optional<std::string>("first");
      }))));
  EXPECT_EQ(GetFrom(*table, "key"), "first");
  ASSERT_TRUE(IsOk(table->Seal()));
  ASSERT_TRUE(IsOk(table->Update(
      "key", base::ByValue([](std::optional<std::string_view> before) -> UpdateResult {
        return std::optional<std::string>(std::string(*before) + " second");
      }))));
  EXPECT_EQ(GetFrom(*table, "key"), "first second");
  ASSERT_TRUE(
      IsOk(table->Update("key", base::ByValue([](std::optional<std::string_view>) -> UpdateResult {
                           return std::nullopt;
                         }))));
  EXPECT_EQ(GetFrom(*table, "key"), std::nullopt);
  ASSERT_TRUE(IsOk(table->Update(
      "key", base::ByValue([](std::optional<std::string_view> before) -> UpdateResult {
        EXPECT_EQ(before, std::nullopt);
        return std::nullopt;
      }))));
  EXPECT_EQ(GetFrom(*table, "key"), std::nullopt);
}

TEST(MemTable, AnUpdateThatFailsOrThrowsChangesNothing) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("key", "value")));
  const Status failed =
      table->Update("key", base::ByValue([](std::optional<std::string_view>) -> UpdateResult {
                      return Status(StatusCode::kAborted, "not today");
                    }));
  EXPECT_EQ(failed.code(), StatusCode::kAborted);
  EXPECT_EQ(failed.message(), "not today");
  const auto throws = [](std::optional<std::string_view>) -> UpdateResult {
    throw std::runtime_error("thrown by the function");
  };
  EXPECT_THROW(static_cast<void>(table->Update("key", base::ByValue(throws))), std::runtime_error);
  EXPECT_THROW(static_cast<void>(table->Update("absent", base::ByValue(throws))),
               std::runtime_error);
  EXPECT_EQ(Scan(*table), (Contents{{"key", "value"}}));
  EXPECT_EQ(table->GetStats().last_sequence, 1u);
  ASSERT_TRUE(IsOk(table->Put("key", "later")));
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_EQ(Scan(*table), (Contents{{"key", "later"}}));
}

TEST(MemTable, UpdateAsksAgainWhenTheKeyHasChanged) {
  const std::vector<std::function<Status(MemTable&)>> changes = {
      [](MemTable& table) { return table.Put("key", "changed"); },
      [](MemTable& table) { return table.Delete("key"); },
      [](MemTable& table) { return table.DeleteRange("a", "z"); },
      [](MemTable& table) {
        BASALT_RETURN_IF_ERROR(table.Put("key", "changed"));
        BASALT_RETURN_IF_ERROR(table.Seal());
        return table.Compact();
      },
      [](MemTable& table) {
        BASALT_RETURN_IF_ERROR(table.DeleteRange("a", "z"));
        return table.Compact();
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    const auto table = NewTable();
    ASSERT_TRUE(IsOk(table->Put("key", "first")));
    std::vector<std::string> seen;
    const auto update = [&](std::optional<std::string_view> before) -> UpdateResult {
      seen.emplace_back(before.value_or("absent"));
      if (seen.size() == 1) {
        EXPECT_TRUE(IsOk(changes[i](*table)));
      }
      return std::optional<std::string>("after " + seen.back());
    };
    ASSERT_TRUE(IsOk(table->Update("key", base::ByValue(update))));
    const std::string last = i == 0 || i == 3 ? "changed" : "absent";
    EXPECT_EQ(seen, (std::vector<std::string>{"first", last}));
    EXPECT_EQ(GetFrom(*table, "key"), "after " + last);
  }
}

TEST(MemTable, UpdateAsksOnceWhereOnlyOtherKeysChangeHoweverManyGenerationsTheyFill) {
  for (const bool is_there : {true, false}) {
    const auto table = NewTable();
    if (is_there) {
      ASSERT_TRUE(IsOk(table->Put("key", "value")));
    }
    int calls = 0;
    ASSERT_TRUE(IsOk(table->Update(
        "key", base::ByValue([&](std::optional<std::string_view> before) -> UpdateResult {
          if (++calls == 100) return Status(StatusCode::kAborted, "it is asked again and again");
          for (uint64_t i = 0; i < 3; ++i) {
            EXPECT_TRUE(IsOk(table->Put(Numbered("other", i), "value")));
            EXPECT_TRUE(IsOk(table->Seal()));
          }
          return std::string(before.value_or("no value")) + ", changed";
        }))));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(GetFrom(*table, "key"), is_there ? "value, changed" : "no value, changed");
  }
}

TEST(MemTable, AnUpdatesFunctionMayUseTheTable) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("other", "value")));
  ASSERT_TRUE(
      IsOk(table->Update("key", base::ByValue([&](std::optional<std::string_view>) -> UpdateResult {
                           EXPECT_TRUE(IsOk(table->Put("third", "written inside")));
                           EXPECT_EQ(Scan(*table).size(), 2u);
                           return GetFrom(*table, "other");
                         }))));
  EXPECT_EQ(KeysOf(*table), "key other third");
}

// Background work and figures

// Four become one, four of these again: as many are left as the digits of their number, to base 4,
// add up to. Up to 64 that is nine at most.
TEST(MemTable, SealedGenerationsOfLikeSizeStayFew) {
  const auto table = NewTable({.shards = 1});
  for (uint64_t seals = 1; seals <= 64; ++seals) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = std::to_string(seals) + " " + std::to_string(i);
      ASSERT_TRUE(IsOk(table->Put(key, std::string(500, 'v'))));
    }
    ASSERT_TRUE(IsOk(table->Seal()));
    table->WaitForBackgroundWork();
    uint64_t digits = 0;
    for (uint64_t left = seals; left > 0; left /= 4) digits += left % 4;
    ASSERT_EQ(table->GetStats().sealed_generations, digits) << seals;
  }
}

TEST(MemTable, SealEndsAGenerationThatHoldsAnything) {
  const auto table = NewTable(Still());
  ASSERT_TRUE(IsOk(table->Seal()));
  EXPECT_EQ(table->GetStats().seals, 0u);
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), "v")));
    ASSERT_TRUE(IsOk(table->Seal()));
    ASSERT_TRUE(IsOk(table->Seal()));
    EXPECT_EQ(table->GetStats().seals, i);
    EXPECT_EQ(table->GetStats().sealed_generations, i);
  }
  ASSERT_TRUE(IsOk(table->Compact()));
  const MemTableStats stats = table->GetStats();
  EXPECT_EQ(stats.sealed_generations, 1u);
  EXPECT_EQ(stats.compactions, 1u);
  EXPECT_EQ(stats.compacted_records, 5u);
  EXPECT_EQ(stats.dropped_records, 0u);
  EXPECT_EQ(KeysOf(*table), "key1 key2 key3 key4 key5");
}

TEST(MemTable, WaitForBackgroundWorkLeavesAllSorted) {
  const auto table = NewTable(Still());
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i * 7 % 20'000), "v")));
    if (i == 5'000) {
      ASSERT_TRUE(IsOk(table->Seal()));
    }
  }
  table->WaitForBackgroundWork();
  const MemTableStats stats = table->GetStats();
  EXPECT_EQ(stats.records, 20'000u);
  EXPECT_EQ(stats.sorted_records, 20'000u);
  EXPECT_GE(stats.sorted_runs, 2u);
}

TEST(MemTable, ALargeBatchIsSortedByItsWriterAndASmallerOneIsNot) {
  for (const uint64_t kib : {uint64_t{200}, uint64_t{300}}) {
    const auto table = NewTable(Still());
    WriteBatch batch;
    while (batch.byte_size() < kib * kKiB) {
      batch.Put(Numbered("key", batch.count() * 7'919 % 10'000), std::string(100, 'v'));
    }
    ASSERT_TRUE(IsOk(table->Write(batch)));
    const MemTableStats stats = table->GetStats();
    EXPECT_EQ(stats.records, batch.count());
    EXPECT_EQ(stats.sorted_records, kib > 256 ? batch.count() : 0) << kib << " KiB";
  }
}

TEST(MemTable, TheBackgroundSortsAfterSixtyFourSmallBatches) {
  const auto table = NewTable(Still());
  const auto write_one = [&](uint64_t number) {
    WriteBatch batch;
    batch.Put(Numbered("a", number), "v");
    batch.Put(Numbered("b", number), "v");
    ASSERT_TRUE(IsOk(table->Write(batch)));
  };
  for (uint64_t i = 1; i < 64; ++i) write_one(i);
  EXPECT_EQ(table->GetStats().sorted_records, 0u);
  write_one(64);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (table->GetStats().sorted_records < 128 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(table->GetStats().sorted_records, 128u);
}

TEST(MemTable, SealedGenerationsAreMergedInTheBackground) {
  const auto table = NewTable({.memory_budget = 64 * kMiB, .generation_bytes = 256 * kKiB});
  for (uint64_t i = 0; i < 40'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i % 100), std::string(100, 'v'))));
  }
  ASSERT_TRUE(IsOk(table->Seal()));
  table->WaitForBackgroundWork();
  const MemTableStats stats = table->GetStats();
  EXPECT_GT(stats.seals, 10u);
  EXPECT_GT(stats.compactions, 0u);
  EXPECT_GT(stats.dropped_records, 20'000u);
  EXPECT_LT(stats.sealed_generations, stats.seals);
  EXPECT_EQ(Scan(*table).size(), 100u);
}

TEST(MemTable, StatsCountWhatIsThere) {
  const auto table = NewTable(Still());
  ASSERT_TRUE(IsOk(table->Put("a", "123")));
  ASSERT_TRUE(IsOk(table->Put("a", "4567")));
  ASSERT_TRUE(IsOk(table->Delete("bc")));
  WriteBatch batch;
  batch.Put("def", "89");
  batch.Put("g", "");
  ASSERT_TRUE(IsOk(table->Write(batch)));
  std::optional<Snapshot> first = SnapshotOf(*table);
  std::optional<Snapshot> second = SnapshotOf(*table);
  MemTableStats stats = table->GetStats();
  EXPECT_EQ(stats.records, 5u);
  EXPECT_EQ(stats.range_deletes, 0u);
  EXPECT_EQ(stats.last_sequence, 5u);
  EXPECT_EQ(first->sequence(), 5u);
  EXPECT_EQ(stats.snapshots, 2u);
  EXPECT_EQ(stats.logical_bytes, 4u + 5u + 2u + 5u + 1u);
  EXPECT_GT(stats.memory_bytes, stats.logical_bytes);
  EXPECT_EQ(stats.sealed_generations, 0u);
  EXPECT_EQ(stats.waits, 0u);
  first.reset();
  EXPECT_EQ(table->GetStats().snapshots, 1u);
  second.reset();
  ASSERT_TRUE(IsOk(table->DeleteRange("d", "e")));
  EXPECT_EQ(table->GetStats().range_deletes, 1u);
  ASSERT_TRUE(IsOk(table->Compact()));
  stats = table->GetStats();
  EXPECT_EQ(stats.snapshots, 0u);
  EXPECT_EQ(stats.records, 2u);
  EXPECT_EQ(stats.range_deletes, 0u);
  EXPECT_EQ(stats.logical_bytes, 5u + 1u);
  EXPECT_EQ(stats.last_sequence, 6u) << "compaction gives no new sequence numbers";
}

TEST(MemTable, CompactKeepsExactlyWhatSnapshotsNeed) {
  const auto table = NewTable(Still());
  std::vector<Snapshot> snapshots;
  for (uint64_t i = 0; i < 10; ++i) {
    for (int j = 0; j < 3; ++j) {
      ASSERT_TRUE(IsOk(table->Put("key", Numbered(j == 2 ? "kept" : "hidden", i))));
    }
    ASSERT_TRUE(IsOk(table->Put("deleted", "value")));
    if (i % 2 == 0) snapshots.push_back(SnapshotOf(*table));
    ASSERT_TRUE(IsOk(table->Delete("deleted")));
  }
  ASSERT_TRUE(IsOk(table->Compact()));
  for (uint64_t i = 0; i < snapshots.size(); ++i) {
    EXPECT_EQ(GetFrom(*table, "key", {.snapshot = &snapshots[i]}), Numbered("kept", 2 * i));
    EXPECT_EQ(GetFrom(*table, "deleted", {.snapshot = &snapshots[i]}), "value");
  }
  EXPECT_EQ(Scan(*table), (Contents{{"key", "kept9"}}));
  // Of "key" 5 versions and the newest, of "deleted" 5 values and the delete that hides the last.
  EXPECT_EQ(table->GetStats().records, 12u);
  snapshots.clear();
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_EQ(table->GetStats().records, 1u);
  EXPECT_EQ(Scan(*table), (Contents{{"key", "kept9"}}));
}

TEST(MemTable, CompactGivesMemoryBack) {
  const auto table = NewTable({.memory_budget = 64 * kMiB, .compaction = false});
  for (uint64_t i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), std::string(1'000, 'v'))));
  }
  const uint64_t full = table->GetStats().memory_bytes;
  EXPECT_GT(full, 10 * kMiB);
  ASSERT_TRUE(IsOk(table->DeleteRange("key", "kez")));
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_LT(table->GetStats().memory_bytes, full / 10);
  EXPECT_TRUE(Scan(*table).empty());
}

// Lifetimes

TEST(MemTable, ValuesIteratorsAndSnapshotsOutliveTheHandle) {
  auto table = NewTable({.memory_budget = 64 * kMiB});
  const std::array<size_t, 4> sizes = {10, 1'000, 100'000, 3 << 20};
  for (const size_t size : sizes) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", size), std::string(size, 'v'))));
  }
  const auto early = table->NewIterator();
  const Snapshot snapshot = SnapshotOf(*table);
  ASSERT_TRUE(IsOk(table->Seal()));
  const auto late = table->NewIterator({.snapshot = &snapshot});
  std::vector<Value> values;
  for (const size_t size : sizes) {
    values.push_back(table->Get(Numbered("key", size)).value().value());
  }
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("more", i), std::string(10'000, 'm'))));
  }
  table.reset();
  EXPECT_EQ(ReadForwards(early.get()).size(), sizes.size());
  EXPECT_EQ(ReadBackwards(late.get()).size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(values[i].view(), std::string(sizes[i], 'v'));
  }
}

TEST(MemTable, DestroyingTheHandleWaitsForNobody) {
  std::vector<std::unique_ptr<Iterator>> iterators;
  for (int i = 0; i < 50; ++i) {
    auto table = NewTable({.memory_budget = 4 * kMiB, .generation_bytes = 64 * kKiB});
    for (int j = 0; j < 500; ++j) {
      ASSERT_TRUE(IsOk(table->Put(Numbered("key", j), std::string(300, 'v'))));
    }
    iterators.push_back(table->NewIterator());
  }
  for (const auto& it : iterators) EXPECT_EQ(ReadForwards(it.get()).size(), 500u);
}

// What stores of this kind have been seen to get wrong.

TEST(MemTableRegression, AnOlderValueNeverReappearsAfterABackgroundSort) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable();
    for (uint64_t i = 0; i < 500; ++i) {
      // Whichever thread's memory comes first in any order of threads, old must not win.
      std::thread([&] { ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), "old"))); }).join();
      if (i % 2 == 0) {
        ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), "new")));
      } else {
        std::thread([&] { ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), "new"))); }).join();
      }
      if (i % 100 == 0) stage.reach(*table);
    }
    stage.reach(*table);
    for (uint64_t i = 0; i < 500; ++i) ASSERT_EQ(GetFrom(*table, Numbered("key", i)), "new");
    const Contents all = Scan(*table);
    EXPECT_EQ(all.size(), 500u);
    for (const auto& [key, value] : all) ASSERT_EQ(value, "new") << key;
  }
}

TEST(MemTableRegression, ADeleteNeverComesBack) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable();
    for (uint64_t i = 0; i < 300; ++i) {
      const std::string key = Numbered("key", i);
      std::thread([&] { ASSERT_TRUE(IsOk(table->Put(key, "value"))); }).join();
      if (i % 50 == 0) stage.reach(*table);
      if (i % 3 == 0) {
        ASSERT_TRUE(IsOk(table->Delete(key)));
      } else if (i % 3 == 1) {
        std::thread([&] { ASSERT_TRUE(IsOk(table->Delete(key))); }).join();
      } else {
        ASSERT_TRUE(IsOk(table->DeleteRange(key, key + '\0')));
      }
      // Keeps the value alive for a while, beside the delete.
      if (i % 70 == 0) {
        const Snapshot snapshot = SnapshotOf(*table);
        stage.reach(*table);
      }
    }
    for (int again = 0; again < 3; ++again) {
      stage.reach(*table);
      for (uint64_t i = 0; i < 300; ++i) {
        ASSERT_EQ(GetFrom(*table, Numbered("key", i)), std::nullopt);
      }
      EXPECT_TRUE(Scan(*table).empty());
    }
  }
}

TEST(MemTableRegression, ValuesReturnedByGetSurviveSealing) {
  const auto table = NewTable({.memory_budget = 16 * kMiB, .generation_bytes = 256 * kKiB});
  const std::array<size_t, 6> sizes = {0, 100, 113, 4'000, 70'000, 200'000};
  std::vector<Value> values;
  for (const size_t size : sizes) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", size), std::string(size, 'v'))));
    values.push_back(table->Get(Numbered("key", size)).value().value());
  }
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(IsOk(table->Seal()));
    for (const size_t size : sizes) {
      ASSERT_TRUE(IsOk(table->Put(Numbered("key", size), std::string(size, 'o'))));
      static_cast<void>(GetFrom(*table, Numbered("key", size)));
    }
    ASSERT_TRUE(IsOk(table->Compact()));
    table->WaitForBackgroundWork();
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(values[i].view(), std::string(sizes[i], 'v'));
    EXPECT_EQ(GetFrom(*table, Numbered("key", sizes[i])), std::string(sizes[i], 'o'));
  }
}

TEST(MemTableRegression, APutLargerThanAChunkWorks) {
  const auto table = NewTable();
  const std::string three(3 * kMiB, '3');
  const std::string forty(40 * kMiB, '4');
  ASSERT_TRUE(IsOk(table->Put("small", "s")));
  ASSERT_TRUE(IsOk(table->Put("three", three)));
  ASSERT_TRUE(IsOk(table->Put("forty", forty)));
  ASSERT_TRUE(IsOk(table->Put("tail", "t")));
  const auto check = [&] {
    EXPECT_TRUE(GetFrom(*table, "three") == three);
    EXPECT_TRUE(GetFrom(*table, "forty") == forty);
    EXPECT_EQ(KeysOf(*table), "forty small tail three");
  };
  check();
  ASSERT_TRUE(IsOk(table->Seal()));
  check();
  ASSERT_TRUE(IsOk(table->Compact()));
  check();
}

TEST(MemTableRegression, AnUpdateLargerThanAGenerationWorks) {
  const auto table =
      MemTable::Create({.memory_budget = 32 << 20, .generation_bytes = 1 << 20, .shards = 16})
          .value();
  const std::string large(3 << 20, 'l');
  for (const char* const key : {"key", "key", "other"}) {
    ASSERT_TRUE(IsOk(table->Update(key, base::ByValue([&](std::optional<std::string_view> before)
                                                          -> Result<std::optional<std::string>> {
                                     return before ? std::string(*before) + "!" : large;
                                   }))));
  }
  EXPECT_EQ(GetFrom(*table, "key"), large + "!");
}

TEST(MemTableRegression, AThousandShortLivedThreadsWork) {
  const auto table = NewTable();
  constexpr uint64_t kThreads = 1'000;
  for (uint64_t begin = 0; begin < kThreads; begin += 50) {
    std::vector<std::thread> threads;
    for (uint64_t i = begin; i < begin + 50; ++i) {
      threads.emplace_back([&table, i] {
        ASSERT_TRUE(IsOk(table->Put(Numbered("thread", i), Numbered("value", i))));
        EXPECT_EQ(GetFrom(*table, Numbered("thread", i)), Numbered("value", i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(Scan(*table).size(), kThreads);
  EXPECT_LT(table->GetStats().memory_bytes, 4 * kMiB) << "a thread must not cost memory";
}

TEST(MemTableRegression, TwoTablesInOneThreadDoNotMix) {
  auto one = NewTable();
  auto two = NewTable();
  for (uint64_t i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(IsOk(one->Put(Numbered("key", i), "of one")));
    ASSERT_EQ(GetFrom(*two, Numbered("key", i)), std::nullopt);
    if (i % 2 == 0) {
      ASSERT_TRUE(IsOk(two->Put(Numbered("key", i), "of two")));
    }
    ASSERT_EQ(GetFrom(*one, Numbered("key", i)), "of one");
  }
  EXPECT_EQ(Scan(*one).size(), 2'000u);
  EXPECT_EQ(Scan(*two).size(), 1'000u);
  one.reset();
  // Takes the place of the one that is gone, perhaps at its address.
  one = NewTable();
  EXPECT_EQ(GetFrom(*one, "key0"), std::nullopt);
  EXPECT_EQ(GetFrom(*two, "key0"), "of two");
}

TEST(MemTableRegression, ABatchLargerThanAGenerationWorks) {
  const auto table = NewTable({.memory_budget = 128 * kMiB, .generation_bytes = 64 * kKiB});
  constexpr uint64_t kRecords = 300'000;
  ASSERT_TRUE(IsOk(table->Put("before", "value")));
  WriteBatch batch;
  for (uint64_t i = 0; i < kRecords; ++i) {
    batch.Put(Numbered("key", i % (kRecords / 2)), Numbered("value", i));
  }
  ASSERT_TRUE(IsOk(table->Write(batch)));
  ASSERT_TRUE(IsOk(table->Put("key7", "after")));
  const auto check = [&] {
    const auto it = table->NewIterator();
    uint64_t count = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) ++count;
    EXPECT_EQ(count, kRecords / 2 + 1);
    EXPECT_EQ(GetFrom(*table, "key0"), Numbered("value", kRecords / 2));
    EXPECT_EQ(GetFrom(*table, "key7"), "after");
    EXPECT_EQ(GetFrom(*table, Numbered("key", kRecords / 2 - 1)), Numbered("value", kRecords - 1));
  };
  check();
  table->WaitForBackgroundWork();
  check();
  ASSERT_TRUE(IsOk(table->Compact()));
  check();
  EXPECT_EQ(table->GetStats().records, kRecords / 2 + 1);
}

// Long keys and many shards: the room for a batch is not the sum of its bytes.
TEST(MemTableRegression, ABatchThatFillsEachShardOfAGenerationWorks) {
  for (const uint32_t shards : {1, 4, 16}) {
    for (const size_t key_size : {10, 2'000, 60'000}) {
      SCOPED_TRACE(testing::Message() << shards << " shards, keys of " << key_size);
      const auto table =
          NewTable({.memory_budget = 64 * kMiB, .generation_bytes = 256 * kKiB, .shards = shards});
      ASSERT_TRUE(IsOk(table->Put("before", "value")));
      for (uint64_t round = 0; round < 3; ++round) {
        WriteBatch batch;
        for (uint64_t i = 0; batch.byte_size() < 300 * kKiB; ++i) {
          batch.Put(Numbered(std::string(key_size, 'k'), i), Numbered("value", round));
        }
        ASSERT_TRUE(IsOk(table->Write(batch)));
        EXPECT_EQ(Scan(*table).size(), batch.count() + 1);
      }
      EXPECT_LT(table->GetStats().memory_bytes, 16 * kMiB);
    }
  }
}

TEST(MemTableRegression, ALargeBatchWithARangeDeleteFitsAFreshGeneration) {
  for (const uint32_t shards : {1, 16}) {
    for (const size_t bytes : {100 * kKiB, 250 * kKiB, 1'000 * kKiB}) {
      SCOPED_TRACE(testing::Message() << shards << " shards, " << bytes << " bytes");
      const auto table = NewTable({.memory_budget = 64 * kMiB,
                                   .generation_bytes = 256 * kKiB,
                                   .shards = shards,
                                   .compaction = false});
      ASSERT_TRUE(IsOk(table->Put("before", "value")));
      WriteBatch batch;
      for (uint64_t i = 0; batch.byte_size() < bytes; ++i) {
        batch.Put(Numbered("key", i), std::string(500, 'v'));
      }
      batch.DeleteRange("b", "c");
      ASSERT_TRUE(IsOk(table->Write(batch)));
      EXPECT_EQ(Scan(*table).size(), batch.count() - 1);
      EXPECT_LE(table->GetStats().seals, 1u);
    }
  }
}

TEST(MemTableRegression, AThousandSmallTablesCostLittle) {
  // What they claim are blocks of the pool, not of malloc. (Sanitizers' malloc says nothing.)
  constexpr uint64_t kTables = 1'000;
  const uint64_t heap_bytes_before = mallinfo2().uordblks;
  std::vector<std::unique_ptr<MemTable>> tables;
  for (uint64_t i = 0; i < kTables; ++i) {
    tables.push_back(NewTable());
    ASSERT_TRUE(IsOk(tables.back()->Put("key", Numbered("value", i))));
    ASSERT_LE(tables.back()->GetStats().memory_bytes, 64 * kKiB);
  }
  EXPECT_LE((mallinfo2().uordblks - heap_bytes_before) / kTables, 18 * kKiB);
  for (uint64_t i = 0; i < kTables; ++i) {
    EXPECT_EQ(Scan(*tables[i]), (Contents{{"key", Numbered("value", i)}}));
  }
}

}  // namespace
}  // namespace basalt
