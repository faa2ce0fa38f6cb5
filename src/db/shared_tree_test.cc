// The tree that all keyspaces but the default one share.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "db/manifest.h"
#include "db/tree_iterator.h"
#include "db/tree_key.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "table/table_builder.h"

namespace basalt::db {
namespace {

constexpr char kPath[] = "/db";

class SharedTree : public testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open() {
    Environment environment;
    environment.fs = &fs_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = 256 << 10;
    environment.table_bytes = 64 << 10;
    auto opened = OpenDatabase(kPath, {.memory_budget = uint64_t{4} << 20}, environment);
    ASSERT_TRUE(opened) << opened.error().ToString();
    db_ = std::move(*opened);
  }
  void Reopen() {
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    ASSERT_NO_FATAL_FAILURE(Open());
  }

  KeyspaceId Create(const std::string& name) { return db_->CreateKeyspace(name).value(); }
  void Put(KeyspaceId keyspace, const std::string& key, const std::string& value) {
    const Status put = db_->Put(key, value, {.keyspace = keyspace});
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  /// `keys` keys, with values of `bytes` that do not compress.
  void Fill(KeyspaceId keyspace, int keys, size_t bytes) {
    for (int i = 0; i < keys; ++i) {
      std::string value(bytes, '\0');
      for (char& byte : value) byte = static_cast<char>(random_.Below(256));
      ASSERT_NO_FATAL_FAILURE(Put(keyspace, std::to_string(10'000 + i), value));
    }
  }
  size_t Count(KeyspaceId keyspace) const {
    const auto iterator = db_->NewIterator({.keyspace = keyspace});
    size_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
    EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
    size_t backward = 0;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) ++backward;
    EXPECT_EQ(backward, count);
    return count;
  }
  size_t Tables() const {
    size_t tables = 0;
    for (const LevelStats& level : db_->GetStats().levels) tables += level.tables;
    return tables;
  }
  uint64_t TableBytes() const {
    uint64_t bytes = 0;
    for (const LevelStats& level : db_->GetStats().levels) bytes += level.bytes;
    return bytes;
  }
  Manifest ReadTheManifest() { return ReadManifest(&fs_, kPath).value(); }

  io::SimFileSystem fs_;
  io::SimClock clock_;
  io::ManualExecutor executor_{1};
  base::Random random_{1};
  std::unique_ptr<DB> db_;
};

TEST_F(SharedTree, AFlushMakesOneTableForAllKeyspaces) {
  std::vector<KeyspaceId> keyspaces;
  for (int i = 0; i < 50; ++i) keyspaces.push_back(Create("keyspace" + std::to_string(i)));
  for (int flush = 1; flush <= 3; ++flush) {
    for (const KeyspaceId keyspace : keyspaces) Put(keyspace, "key" + std::to_string(flush), "v");
    Put(KeyspaceId::kDefault, "key" + std::to_string(flush), "v");
    ASSERT_TRUE(db_->Flush().ok());
    EXPECT_EQ(Tables(), size_t{2} * static_cast<size_t>(flush)) << "one is the default keyspace's";
  }
  for (const KeyspaceId keyspace : keyspaces) EXPECT_EQ(Count(keyspace), 3U);
  ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, keyspaces.front()).ok());
  EXPECT_EQ(Tables(), 4U) << "all share one, and the default one has three";
  ASSERT_NO_FATAL_FAILURE(Reopen());
  for (const KeyspaceId keyspace : keyspaces) EXPECT_EQ(Count(keyspace), 3U);
}

// Tables of neighbours meet at the empty key and at keys of the greatest byte.
TEST_F(SharedTree, KeyspacesEndWhereTheirKeysDo) {
  const std::vector<std::string> keys = {"", std::string(1, '\0'), "a", "a\xff", "\xff\xff\xff"};
  std::vector<KeyspaceId> keyspaces;
  for (int i = 0; i < 3; ++i) keyspaces.push_back(Create("keyspace" + std::to_string(i)));
  for (const KeyspaceId keyspace : keyspaces) {
    for (const std::string& key : keys) {
      Put(keyspace, key, std::to_string(static_cast<uint32_t>(keyspace)) + key);
    }
  }
  const auto check = [&] {
    for (const KeyspaceId keyspace : keyspaces) {
      const std::string number = std::to_string(static_cast<uint32_t>(keyspace));
      EXPECT_EQ(Count(keyspace), keys.size());
      const auto iterator = db_->NewIterator({.keyspace = keyspace});
      iterator->SeekToFirst();
      for (const std::string& key : keys) {
        const auto value = db_->Get(key, {.keyspace = keyspace});
        ASSERT_TRUE(value && *value);
        EXPECT_EQ((*value)->view(), number + key);
        ASSERT_TRUE(iterator->Valid());
        EXPECT_EQ(iterator->key(), key);
        EXPECT_EQ(iterator->value(), number + key);
        iterator->Next();
      }
      EXPECT_FALSE(iterator->Valid());
      iterator->Seek("\xff\xff\xff\xff");
      EXPECT_FALSE(iterator->Valid());
      iterator->SeekForPrev("");
      ASSERT_TRUE(iterator->Valid());
      EXPECT_EQ(iterator->key(), "");
      const auto prefixed = db_->NewIterator({.keyspace = keyspace, .prefix = "\xff"});
      prefixed->SeekToLast();
      ASSERT_TRUE(prefixed->Valid());
      EXPECT_EQ(prefixed->key(), "\xff\xff\xff");
    }
  };
  check();
  ASSERT_TRUE(db_->Flush().ok());
  check();
  ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, keyspaces[1]).ok());
  check();
  // A range delete covers keys of its own keyspace alone.
  ASSERT_TRUE(db_->DeleteRange("", "\xff\xff\xff\xff", {.keyspace = keyspaces[1]}).ok());
  ASSERT_TRUE(db_->Flush().ok());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Count(keyspaces[0]), keys.size());
    EXPECT_EQ(Count(keyspaces[1]), 0U);
    EXPECT_EQ(Count(keyspaces[2]), keys.size());
    EXPECT_FALSE(*db_->Get("a", {.keyspace = keyspaces[1]}));
    ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, keyspaces[1]).ok());
  }
}

// With its keyspace such a key is longer than a table's key may be.
TEST_F(SharedTree, TheLongestKeysHaveTablesOfTheirOwn) {
  const std::string longest(kMaxKeyBytes, 'k');
  const KeyspaceId first = Create("first");
  const KeyspaceId second = Create("second");
  const auto check = [&] {
    for (const KeyspaceId keyspace : {first, second}) {
      EXPECT_EQ(Count(keyspace), 4U);
      for (const char last : {'a', 'b'}) {
        const std::string key = longest.substr(1) + last;
        const auto value = db_->Get(key, {.keyspace = keyspace});
        ASSERT_TRUE(value) << value.error().ToString();
        ASSERT_TRUE(*value);
        EXPECT_EQ((*value)->view(), std::string(1, last));
      }
    }
  };
  for (const KeyspaceId keyspace : {first, second}) {
    Put(keyspace, "before", "v");
    Put(keyspace, longest.substr(1) + 'a', "a");
    Put(keyspace, longest.substr(1) + 'b', "b");
    Put(keyspace, "z behind", "v");
  }
  check();
  ASSERT_TRUE(db_->Flush().ok());
  check();
  EXPECT_GE(Tables(), 3U);
  // Those of one flush have sequence numbers of one range, and keys apart.
  ASSERT_NO_FATAL_FAILURE(Reopen());
  check();
  ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, first).ok());
  check();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  check();
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  Environment environment;
  environment.fs = &fs_;
  const CheckReport report = CheckDatabase(kPath, environment, {}).value();
  EXPECT_TRUE(report.ok()) << report.findings.front().status.ToString();
}

TEST_F(SharedTree, ADroppedKeyspaceGivesItsOwnTablesBackAtOnce) {
  const KeyspaceId small = Create("small");
  const KeyspaceId large = Create("large");
  Put(small, "key", "value");
  ASSERT_NO_FATAL_FAILURE(Fill(large, 1'000, 1'000));
  ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, large).ok());
  const uint64_t before = TableBytes();
  ASSERT_GT(before, 1'000'000U);
  ASSERT_TRUE(db_->DropKeyspace(large).ok());
  EXPECT_LT(TableBytes(), before / 10);
  EXPECT_EQ(Count(small), 1U);
}

// What it shares with others goes by a compaction that nobody has to ask for.
TEST_F(SharedTree, ADroppedKeyspaceLeavesTheTablesThatItShared) {
  std::vector<KeyspaceId> keyspaces;
  for (int i = 0; i < 8; ++i) {
    keyspaces.push_back(Create("keyspace" + std::to_string(i)));
    ASSERT_NO_FATAL_FAILURE(Fill(keyspaces.back(), 5, 1'000));
  }
  ASSERT_TRUE(db_->CompactRange(std::nullopt, std::nullopt, keyspaces.front()).ok());
  ASSERT_EQ(Tables(), 1U);
  const uint64_t before = TableBytes();
  for (size_t i = 1; i + 1 < keyspaces.size(); ++i) {
    ASSERT_TRUE(db_->DropKeyspace(keyspaces[i]).ok());
  }
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(ReadTheManifest().dropped_keyspaces.size(), 6U);
  executor_.RunAll();
  EXPECT_LT(TableBytes(), before / 2);
  EXPECT_EQ(db_->GetStats().levels.back().records, 10U);
  EXPECT_TRUE(ReadTheManifest().dropped_keyspaces.empty());
  EXPECT_EQ(Count(keyspaces.front()), 5U);
  EXPECT_EQ(Count(keyspaces.back()), 5U);
  const uint64_t compactions = db_->GetStats().compactions;
  executor_.RunAll();
  EXPECT_EQ(db_->GetStats().compactions, compactions) << "it comes to an end";
}

TEST_F(SharedTree, ADroppedKeyspaceIsNotFlushedAnyMore) {
  const KeyspaceId kept = Create("kept");
  const KeyspaceId dropped = Create("dropped");
  Put(kept, "key", "value");
  Put(dropped, "key", "value");
  ASSERT_TRUE(db_->DropKeyspace(dropped).ok());
  ASSERT_TRUE(db_->Flush().ok());
  EXPECT_EQ(db_->GetStats().levels[0].records, 1U);
}

// Iterators

struct Stored {
  std::string key;
  base::Tag tag;
};

class TreeIterators : public testing::Test {
 protected:
  /// A table of these versions, in order. `keyspace`: as in TableProperties.
  std::shared_ptr<TableFile> Make(uint32_t keyspace, const std::vector<Stored>& versions) {
    const uint64_t number = ++last_number_;
    const std::string path = "/" + std::to_string(number) + ".tbl";
    const auto file = fs_.Open(path, io::OpenMode::kCreate).value();
    table::TableBuilder builder(file.get(),
                                {.file_id = number, .keyspace = keyspace, .block_bytes = 200});
    for (const auto& [key, tag] : versions) EXPECT_TRUE(builder.Add(key, tag, 0, "v" + key).ok());
    EXPECT_TRUE(builder.Finish().ok());
    return std::make_shared<TableFile>(&fs_, path, TableFile::Place{.number = number},
                                       builder.properties(), TableFile::Resources{});
  }

  io::SimFileSystem fs_{io::SimFileSystem::Durability::kIgnored};
  uint64_t last_number_ = 0;
};

std::string RandomKey(base::Random* random) {
  std::string key;
  for (uint64_t bytes = random->Below(4); bytes > 0; --bytes) {
    key.push_back("\0a\xff"[random->Below(3)]);
  }
  return key;
}

/// Walks and seeks of a keyspace's iterator against a map of what it holds.
void CheckAgainst(const std::map<std::string, base::Tag>& content, base::RecordIterator* iterator,
                  base::Random* random) {
  const auto expect_at = [&](std::map<std::string, base::Tag>::const_iterator at) {
    ASSERT_EQ(iterator->Valid(), at != content.end());
    if (at == content.end()) return;
    EXPECT_EQ(iterator->key(), at->first);
    EXPECT_EQ(iterator->tag(), at->second);
    EXPECT_TRUE(iterator->value().ends_with(at->first));
  };
  iterator->SeekToFirst();
  for (auto at = content.begin(); at != content.end(); ++at, iterator->Next()) {
    ASSERT_NO_FATAL_FAILURE(expect_at(at));
  }
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  for (auto at = content.rbegin(); at != content.rend(); ++at, iterator->Prev()) {
    ASSERT_NO_FATAL_FAILURE(expect_at(std::prev(at.base())));
  }
  EXPECT_FALSE(iterator->Valid());
  for (int i = 0; i < 20; ++i) {
    const std::string key = RandomKey(random);
    iterator->Seek(key, base::kNewestTag);
    ASSERT_NO_FATAL_FAILURE(expect_at(content.lower_bound(key)));
    iterator->SeekForPrev(key, 0);
    const auto behind = content.upper_bound(key);
    ASSERT_NO_FATAL_FAILURE(
        expect_at(behind == content.begin() ? content.end() : std::prev(behind)));
  }
  // Many at a time.
  iterator->SeekToFirst();
  auto at = content.begin();
  size_t passed = 0;
  while (iterator->Valid()) {
    const auto ahead = iterator->PlainAhead(passed, base::kMaxSequence);
    at = std::next(at, static_cast<ptrdiff_t>(passed));
    ASSERT_NO_FATAL_FAILURE(expect_at(at));
    auto next = at;
    for (const base::PlainPut& put : ahead) {
      ASSERT_NE(++next, content.end());
      EXPECT_EQ(put.key(), next->first);
    }
    passed = ahead.size();
    if (passed > 0) continue;
    iterator->Next();
    ++at;
  }
  EXPECT_EQ(at, content.end());
}

TEST_F(TreeIterators, ShowAKeyspaceOfATableAsAMapOfItsKeys) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    std::map<uint32_t, std::map<std::string, base::Tag>> content;
    for (const uint32_t keyspace : {3U, 255U, 256U, 257U}) {
      for (uint64_t keys = random.Below(30); keys > 0; --keys) {
        content[keyspace][RandomKey(&random)] =
            base::MakeTag(1 + random.Below(100), RecordKind::kPut);
      }
    }
    std::vector<Stored> shared;
    for (const auto& [keyspace, keys] : content) {
      for (const auto& [key, tag] : keys) shared.push_back({TreeKey(keyspace, key), tag});
    }
    if (shared.empty()) continue;
    const auto table = Make(table::kSharedKeyspaces, shared);
    for (const uint32_t keyspace : {3U, 4U, 255U, 256U, 257U, 1000U}) {
      const auto iterator = NewKeyspaceIterator(NewTreeIterator(*table, true).value(), keyspace);
      ASSERT_NO_FATAL_FAILURE(CheckAgainst(content[keyspace], iterator.get(), &random));
    }
    // The same of a table that has one keyspace, and keys without it.
    for (const auto& [keyspace, keys] : content) {
      if (keys.empty()) continue;
      std::vector<Stored> own;
      for (const auto& [key, tag] : keys) own.push_back({key, tag});
      const auto alone = Make(keyspace, own);
      EXPECT_EQ(alone->properties().smallest_key, TreeKey(keyspace, keys.begin()->first));
      for (const uint32_t other : {3U, 255U, 256U, 257U}) {
        const auto iterator = NewKeyspaceIterator(NewTreeIterator(*alone, true).value(), other);
        const auto& expected = other == keyspace ? keys : std::map<std::string, base::Tag>();
        ASSERT_NO_FATAL_FAILURE(CheckAgainst(expected, iterator.get(), &random));
      }
    }
  }
}

TEST(TreeKey, SortsByKeyspaceThenByKey) {
  EXPECT_EQ(TreeKey(0, "key"), "key");
  EXPECT_LT(TreeKey(1, "\xff\xff"), TreeKey(2, ""));
  EXPECT_LT(TreeKey(255, "z"), TreeKey(256, "a"));
  EXPECT_LT(TreeKey(0x00FF'FFFF, "z"), TreeKey(0x0100'0000, ""));
  EXPECT_EQ(KeyspaceOf(TreeKey(0x0102'0304, "key")), 0x0102'0304U);
  const std::string long_key(1'000, 'k');
  for (const std::string& key : {std::string(), std::string("key"), long_key}) {
    const LookupKey lookup(7, key, base::Hash(key));
    EXPECT_EQ(lookup.tree_key(), TreeKey(7, key));
    table::TableProperties properties;
    properties.keyspace = 7;
    EXPECT_EQ(lookup.In(properties).key, key);
    EXPECT_EQ(lookup.In(properties).hash, base::Hash(key));
    properties.keyspace = table::kSharedKeyspaces;
    EXPECT_EQ(lookup.In(properties).key, TreeKey(7, key));
    EXPECT_EQ(lookup.In(properties).hash, base::Hash(TreeKey(7, key)));
  }
}

}  // namespace
}  // namespace basalt::db
