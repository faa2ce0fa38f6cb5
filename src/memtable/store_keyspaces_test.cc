#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "basalt/memtable.h"
#include "memtable/store_test_support.h"

namespace basalt {
namespace {

TEST(MemTableKeyspaces, AreCreatedOpenedAndListedByName) {
  const auto table = NewTable();
  EXPECT_EQ(table->OpenKeyspace("users").code(), StatusCode::kNotFound);
  const KeyspaceId users =
      table->CreateKeyspace("users", {.default_ttl = std::chrono::milliseconds(3)}).value();
  const KeyspaceId more = table->OpenOrCreateKeyspace("more").value();
  EXPECT_EQ(table->CreateKeyspace("users").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(table->OpenKeyspace("users").value(), users);
  EXPECT_EQ(table->OpenOrCreateKeyspace("more").value(), more);
  const auto list = table->ListKeyspaces().value();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].id, KeyspaceId::kDefault);
  EXPECT_EQ(list[1].name, "users");
  EXPECT_EQ(list[1].options.default_ttl, std::chrono::milliseconds(3));
  EXPECT_EQ(list[2].id, more);
  EXPECT_EQ(table->CreateKeyspace("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table->CreateKeyspace(std::string(256, 'n')).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table->CreateKeyspace("x", {.default_ttl = std::chrono::milliseconds(-1)}).code(),
            StatusCode::kInvalidArgument);
}

TEST(MemTableKeyspaces, OneThatDoesNotExistIsNotFoundByEveryCall) {
  const auto table = NewTable();
  const KeyspaceId none{9};
  const ReadOptions read{.keyspace = none};
  const WriteOptions write{.keyspace = none};
  const auto is_not_found = [](const Status& status) {
    return status.code() == StatusCode::kNotFound && status.sub_code() == SubCode::kKeyspace;
  };
  EXPECT_TRUE(is_not_found(table->Get("key", read).status()));
  EXPECT_TRUE(is_not_found(table->GetEntry("key", read).status()));
  EXPECT_TRUE(is_not_found(table->Contains("key", read).status()));
  EXPECT_TRUE(is_not_found(table->NewIterator(read)->status()));
  std::vector<Result<MaybeValue>> results(2);
  EXPECT_TRUE(
      is_not_found(table->MultiGet(std::vector<std::string_view>{"a", "b"}, results, read)));
  ASSERT_TRUE(IsOk(table->MultiGet(
      std::vector<KeyspaceKey>{{none, "a"}, {KeyspaceId::kDefault, "b"}}, results)));
  EXPECT_TRUE(is_not_found(results[0].status()));
  EXPECT_TRUE(results[1]);
  EXPECT_TRUE(is_not_found(table->Put("key", "value", write)));
  EXPECT_TRUE(is_not_found(table->PutIfAbsent("key", "value", write).status()));
  EXPECT_TRUE(is_not_found(table->Delete("key", write)));
  EXPECT_TRUE(is_not_found(table->DeleteRange("a", "b", write)));
  EXPECT_TRUE(is_not_found(table->Merge("key", MergeOperator::kAppend, "x", write)));
  EXPECT_TRUE(is_not_found(table->Update(
      "key",
      [](EntryUpdate& e) {
        e.Set("1");
        return Status();
      },
      write)));
  WriteBatch batch;
  batch.Put("here", "1");
  batch.Put("key", "value", {.keyspace = none});
  EXPECT_TRUE(is_not_found(table->Write(batch)));
  WriteBatch conditional;
  conditional.Put("here", "1");
  conditional.RequireAbsent("key", none);
  EXPECT_TRUE(is_not_found(table->Write(conditional)));
  EXPECT_TRUE(is_not_found(table->DropKeyspace(none)));
  EXPECT_EQ(table->DropKeyspace(KeyspaceId::kDefault).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(table->GetStats().records, 0u) << "nothing was written";
}

TEST(MemTableKeyspaces, ADropRemovesAllAndTheNameMayBeUsedAgain) {
  const auto table = NewTable(Still());
  const KeyspaceId first = table->CreateKeyspace("name").value();
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), "value", {.keyspace = first})));
  }
  ASSERT_TRUE(IsOk(table->DeleteRange("key1", "key2", {.keyspace = first})));
  ASSERT_TRUE(IsOk(table->Put("key", "of the default one")));
  const Snapshot snapshot = SnapshotOf(*table);
  const auto iterator = table->NewIterator({.keyspace = first});
  const size_t seen = ReadForwards(iterator.get()).size();
  EXPECT_GT(seen, 0u);
  ASSERT_TRUE(IsOk(table->DropKeyspace(first)));
  EXPECT_EQ(table->Get("key1", {.keyspace = first}).code(), StatusCode::kNotFound);
  EXPECT_EQ(table->Get("key1", {.snapshot = &snapshot, .keyspace = first}).code(),
            StatusCode::kNotFound);
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_EQ(table->GetStats().records, 1u) << "its records are gone";
  EXPECT_EQ(table->GetStats().range_deletes, 0u);
  EXPECT_EQ(ReadForwards(iterator.get()).size(), seen) << "it keeps what it sees";
  const KeyspaceId second = table->CreateKeyspace("name").value();
  EXPECT_NE(second, first);
  EXPECT_TRUE(Scan(*table, {.keyspace = second}).empty());
  EXPECT_EQ(KeysOf(*table), "key");
}

TEST(MemTableKeyspaces, TheDefaultTtlIsForPutsThatNameNone) {
  const auto table = NewTable();
  const KeyspaceId kept =
      table->CreateKeyspace("hour", {.default_ttl = std::chrono::hours(1)}).value();
  WriteBatch batch;
  batch.Put("batch", "1", {.keyspace = kept});
  batch.Put("never", "1", {.keyspace = kept, .ttl = std::chrono::milliseconds(0)});
  ASSERT_TRUE(IsOk(table->Write(batch)));
  ASSERT_TRUE(IsOk(table->Put("put", "1", {.keyspace = kept})));
  ASSERT_TRUE(IsOk(table->PutIfAbsent("absent", "1", {.keyspace = kept}).status()));
  for (const char* key : {"batch", "put", "absent"}) {
    EXPECT_TRUE(table->GetEntry(key, {.keyspace = kept}).value()->expiry) << key;
  }
  EXPECT_FALSE(table->GetEntry("never", {.keyspace = kept}).value()->expiry);
  ASSERT_TRUE(IsOk(table->Put("default", "1")));
  EXPECT_FALSE(table->GetEntry("default").value()->expiry);
}

TEST(MemTableKeyspaces, AFullStoreGivesBackWhatADroppedOneHeld) {
  const auto table = NewTable({.memory_budget = 1 * kMiB});
  const KeyspaceId first = table->CreateKeyspace("first").value();
  const std::string value(1'000, 'v');
  Status written;
  for (uint64_t i = 0; written.ok(); ++i) {
    written = table->Put(Numbered("key", i), value, {.keyspace = first});
  }
  EXPECT_EQ(written.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(written.sub_code(), SubCode::kBudget);
  ASSERT_TRUE(IsOk(table->DropKeyspace(first)));
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), value)));
  }
}

}  // namespace
}  // namespace basalt
