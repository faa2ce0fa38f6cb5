#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/random.h"
#include "memtable/store_test_support.h"

namespace basalt {
namespace {

TEST(MemTableDeleteRange, HidesWhatWasBeforeAndNotWhatComesAfter) {
  for (const Stage& stage : Stages()) {
    for (const Stage& later : Stages()) {
      SCOPED_TRACE(std::string(stage.name) + ", then " + later.name);
      const auto table = NewTable(Still());
      for (const char* key : {"a", "b", "c", "d"}) ASSERT_TRUE(IsOk(table->Put(key, "before")));
      stage.reach(*table);
      ASSERT_TRUE(IsOk(table->DeleteRange("b", "d")));
      EXPECT_EQ(KeysOf(*table), "a d");
      later.reach(*table);
      EXPECT_EQ(KeysOf(*table), "a d");
      EXPECT_EQ(GetFrom(*table, "b"), std::nullopt);
      EXPECT_EQ(GetFrom(*table, "d"), "before") << "the end is exclusive";
      ASSERT_TRUE(IsOk(table->Put("c", "after")));
      EXPECT_EQ(GetFrom(*table, "c"), "after");
      EXPECT_EQ(KeysOf(*table), "a c d");
      stage.reach(*table);
      EXPECT_EQ(GetFrom(*table, "c"), "after");
      EXPECT_EQ(GetFrom(*table, "b"), std::nullopt);
      EXPECT_EQ(KeysOf(*table), "a c d");
      ASSERT_TRUE(IsOk(table->Compact()));
      EXPECT_EQ(Scan(*table), (Contents{{"a", "before"}, {"c", "after"}, {"d", "before"}}));
      const MemTableStats stats = table->GetStats();
      EXPECT_EQ(stats.records, 3u);
      EXPECT_EQ(stats.range_deletes, 0u);
    }
  }
}

TEST(MemTableDeleteRange, EmptyOrInvertedRangesDoNothing) {
  const auto table = NewTable();
  ASSERT_TRUE(IsOk(table->Put("b", "value")));
  EXPECT_TRUE(IsOk(table->DeleteRange("b", "b")));
  EXPECT_TRUE(IsOk(table->DeleteRange("c", "a")));
  EXPECT_TRUE(IsOk(table->DeleteRange("", "")));
  WriteBatch batch;
  batch.DeleteRange("b", "b");
  batch.DeleteRange("z", "");
  EXPECT_TRUE(IsOk(table->Write(batch)));
  EXPECT_EQ(KeysOf(*table), "b");
  EXPECT_EQ(table->GetStats().range_deletes, 0u);
}

TEST(MemTableDeleteRange, AnEmptyTableAndAnEmptyGenerationTakeOne) {
  const auto table = NewTable(Still());
  ASSERT_TRUE(IsOk(table->DeleteRange("a", "z")));
  EXPECT_EQ(table->GetStats().range_deletes, 1u);
  EXPECT_EQ(KeysOf(*table), "");
  ASSERT_TRUE(IsOk(table->Put("key", "value")));
  EXPECT_EQ(KeysOf(*table), "key");
  ASSERT_TRUE(IsOk(table->Seal()));
  ASSERT_TRUE(IsOk(table->DeleteRange("a", "z")));
  ASSERT_TRUE(IsOk(table->Seal()));
  EXPECT_EQ(KeysOf(*table), "");
  EXPECT_EQ(GetFrom(*table, "key"), std::nullopt);
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_EQ(KeysOf(*table), "");
  EXPECT_EQ(table->GetStats().records, 0u);
}

TEST(MemTableDeleteRange, InABatchItHidesOnlyWhatStandsBeforeIt) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    const KeyspaceId other = table->CreateKeyspace("other").value();
    ASSERT_TRUE(IsOk(table->Put("a", "old")));
    ASSERT_TRUE(IsOk(table->Put("b", "old")));
    WriteBatch batch;
    batch.Put("c", "in front");
    batch.DeleteRange("a", "x");
    batch.Put("b", "behind");
    batch.DeleteRange("x", "z", other);
    batch.Put("y", "of another keyspace", {.keyspace = other});
    ASSERT_TRUE(IsOk(table->Write(batch)));
    stage.reach(*table);
    EXPECT_EQ(Scan(*table), (Contents{{"b", "behind"}}));
    EXPECT_EQ(GetFrom(*table, "c"), std::nullopt);
    EXPECT_EQ(GetFrom(*table, "b"), "behind");
    EXPECT_EQ(KeysOf(*table, {.keyspace = other}), "y");
  }
}

// So many that lookups and iterators search in flattened ones.
TEST(MemTableDeleteRange, ManyHideWhatTheyCoverAndNoMore) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    std::map<std::string, std::string> model;
    std::vector<std::pair<Snapshot, std::map<std::string, std::string>>> moments;
    base::Random random(1);
    for (uint64_t i = 0; i < 600; ++i) {
      const std::string put = Numbered("key", 100 + random.Below(200));
      const uint64_t first = 100 + random.Below(200);
      const std::string begin = Numbered("key", first);
      const std::string end = Numbered("key", first + random.Below(5));
      model[put] = std::to_string(i);
      model.erase(model.lower_bound(begin), model.lower_bound(end));
      if (random.OneIn(2)) {
        ASSERT_TRUE(IsOk(table->Put(put, std::to_string(i))));
        ASSERT_TRUE(IsOk(table->DeleteRange(begin, end)));
      } else {
        WriteBatch batch;
        batch.Put(put, std::to_string(i));
        batch.DeleteRange(begin, end);
        ASSERT_TRUE(IsOk(table->Write(batch)));
      }
      if (i % 200 == 150) stage.reach(*table);
      if (i % 40 == 0) moments.emplace_back(SnapshotOf(*table), model);
    }
    moments.emplace_back(SnapshotOf(*table), model);
    for (const auto& [snapshot, contents] : moments) {
      EXPECT_EQ(Scan(*table, {.snapshot = &snapshot}), Contents(contents.begin(), contents.end()));
      for (uint64_t i = 100; i < 300; ++i) {
        const std::string key = Numbered("key", i);
        const auto found = contents.find(key);
        EXPECT_EQ(GetFrom(*table, key, {.snapshot = &snapshot}),
                  found == contents.end() ? std::nullopt : std::optional(found->second))
            << key;
      }
    }
    EXPECT_EQ(Scan(*table), Contents(model.begin(), model.end()));
    for (const auto& [key, value] : model) EXPECT_EQ(GetFrom(*table, key), value);
  }
}

TEST(MemTableDeleteRange, OverlappingOnesOfManyMomentsAndSnapshotsBetween) {
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    const auto table = NewTable(Still());
    std::vector<std::pair<Snapshot, std::string>> moments;
    const auto remember = [&] {
      moments.emplace_back(SnapshotOf(*table), KeysOf(*table));
      stage.reach(*table);
    };
    for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
      ASSERT_TRUE(IsOk(table->Put(key, "1")));
    }
    remember();
    ASSERT_TRUE(IsOk(table->DeleteRange("b", "e")));
    remember();
    ASSERT_TRUE(IsOk(table->Put("c", "2")));
    remember();
    ASSERT_TRUE(IsOk(table->DeleteRange("a", "d")));
    remember();
    ASSERT_TRUE(IsOk(table->Put("b", "3")));
    ASSERT_TRUE(IsOk(table->Delete("f")));
    remember();
    ASSERT_TRUE(IsOk(table->DeleteRange("", "\xFF")));
    remember();
    ASSERT_TRUE(IsOk(table->Put("e", "4")));
    remember();
    const std::vector<std::string> expected = {"a b c d e f", "a e f", "a c e f", "e f",
                                               "b e",         "",      "e"};
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(moments[i].second, expected[i]) << "as written, " << i;
      EXPECT_EQ(KeysOf(*table, {.snapshot = &moments[i].first}), expected[i]) << "later, " << i;
      for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
        EXPECT_EQ(GetFrom(*table, key, {.snapshot = &moments[i].first}).has_value(),
                  expected[i].find(key) != std::string::npos)
            << key << " at " << i;
      }
    }
    moments.clear();
    ASSERT_TRUE(IsOk(table->Compact()));
    EXPECT_EQ(Scan(*table), (Contents{{"e", "4"}}));
    EXPECT_EQ(table->GetStats().records, 1u);
    EXPECT_EQ(table->GetStats().range_deletes, 0u);
  }
}

TEST(MemTableDeleteRange, ThousandsOfThemStayRightAndGoAway) {
  const auto table = NewTable(Still());
  constexpr uint64_t kKeys = 3'000;
  for (uint64_t i = 0; i < kKeys; ++i)
    ASSERT_TRUE(IsOk(table->Put(Numbered("k", 10'000 + i), "v")));
  for (uint64_t i = 0; i + 2 < kKeys; i += 3) {
    ASSERT_TRUE(IsOk(table->DeleteRange(Numbered("k", 10'000 + i), Numbered("k", 10'000 + i + 2))));
  }
  for (const Stage& stage : Stages()) {
    SCOPED_TRACE(stage.name);
    stage.reach(*table);
    const Contents all = Scan(*table);
    ASSERT_EQ(all.size(), kKeys / 3);
    for (uint64_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i].first, Numbered("k", 10'000 + 3 * i + 2));
    }
    EXPECT_EQ(GetFrom(*table, "k10300"), std::nullopt);
    EXPECT_EQ(GetFrom(*table, "k10302"), "v");
  }
  EXPECT_EQ(table->GetStats().range_deletes, 0u);
}

}  // namespace
}  // namespace basalt
