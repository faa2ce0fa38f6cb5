#include "basalt/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/client.h"
#include "basalt/db.h"
#include "basalt/memtable.h"
#include "basalt/transaction.h"
#include "base/coding.h"
#include "base/random.h"
#ifdef BASALT_SERVER
#include "server/server.h"
#endif

// What every Store does, asked of each of them through the interface alone.

namespace basalt {
namespace {

using std::chrono::milliseconds;
using Records = std::vector<std::pair<std::string, std::string>>;

testing::AssertionResult Ok(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

std::string Counter(int64_t number) {
  std::string bytes(8, '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}

int64_t NumberOf(std::string_view bytes) {
  return bytes.size() == 8 ? static_cast<int64_t>(base::Load<uint64_t>(bytes.data())) : 0;
}

std::optional<std::string> StringOf(const Result<MaybeValue>& value) {
  EXPECT_TRUE(value) << value.error().ToString();
  if (!value || !*value) return std::nullopt;
  return (*value)->ToString();
}

Records Forward(Iterator* it) {
  Records all;
  for (it->SeekToFirst(); it->Valid(); it->Next()) all.emplace_back(it->key(), it->value());
  EXPECT_TRUE(Ok(it->status()));
  return all;
}

Records Backward(Iterator* it) {
  Records all;
  for (it->SeekToLast(); it->Valid(); it->Prev()) all.emplace_back(it->key(), it->value());
  EXPECT_TRUE(Ok(it->status()));
  return Records(all.rbegin(), all.rend());
}

enum class Kind : uint8_t { kDisk, kMemory, kMemTable, kRemote };

class StoreTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kMemTable) {
      store_ = MemTable::Create({.memory_budget = 32 << 20}).value();
      return;
    }
    std::string path = ":memory:";
    if (GetParam() == Kind::kDisk) {
      directory_ = std::filesystem::temp_directory_path() /
                   ("basalt_store_test_" + std::to_string(getpid()));
      std::filesystem::remove_all(directory_);
      path = directory_.string();
    }
    auto db = DB::Open(path, {.memory_budget = 32 << 20}).value();
    if (GetParam() == Kind::kRemote) return Serve(std::move(db));
    store_ = std::move(db);
  }
  void TearDown() override {
    store_.reset();
#ifdef BASALT_SERVER
    server_.reset();
#endif
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  Store& store() { return *store_; }
  std::optional<std::string> Get(std::string_view key, const ReadOptions& options = {}) {
    return StringOf(store().Get(key, options));
  }
  uint64_t VersionOf(std::string_view key) {
    const auto entry = store().GetEntry(key).value();
    return entry ? entry->version : 0;
  }
  Records Scan(const ReadOptions& options = {}) {
    const auto it = store().NewIterator(options);
    Records all = Forward(it.get());
    EXPECT_EQ(Backward(it.get()), all);
    return all;
  }
  void PutAll(const Records& records) {
    for (const auto& [key, value] : records) ASSERT_TRUE(Ok(store().Put(key, value)));
  }

 private:
  /// The store is a database that a server of this process has.
  void Serve([[maybe_unused]] std::unique_ptr<DB> db) {
#ifdef BASALT_SERVER
    served_ = std::move(db);
    server_ = server::Server::Start(served_.get(), {.port = 0, .threads = 2}).value();
    const std::string url = "redis://127.0.0.1:" + std::to_string(server_->port());
    // Under a sanitizer, on a machine with other work, an answer may take long.
    store_ = net::RemoteStore::Connect(url, {.timeout = std::chrono::minutes(2)}).value();
#endif
  }

  std::filesystem::path directory_;
#ifdef BASALT_SERVER
  std::unique_ptr<DB> served_;
  std::unique_ptr<server::Server> server_;
#endif
  std::unique_ptr<Store> store_;
};

// Single keys

TEST_P(StoreTest, SaysWhatItCanDo) {
  const Capabilities can = store().capabilities();
  EXPECT_TRUE(can.ordered && can.snapshots && can.transactions && can.expiry && can.merges &&
              can.keyspaces);
}

TEST_P(StoreTest, PutsGetsAndDeletes) {
  EXPECT_EQ(Get("key"), std::nullopt);
  ASSERT_TRUE(Ok(store().Put("key", "1")));
  ASSERT_TRUE(Ok(store().Put("", "empty key")));
  ASSERT_TRUE(Ok(store().Put("empty", "")));
  EXPECT_EQ(Get("key"), "1");
  EXPECT_EQ(Get(""), "empty key");
  EXPECT_EQ(Get("empty"), "");
  EXPECT_TRUE(store().Contains("empty").value());
  EXPECT_FALSE(store().Contains("absent").value());
  ASSERT_TRUE(Ok(store().Delete("key")));
  ASSERT_TRUE(Ok(store().Delete("never there")));
  EXPECT_EQ(Get("key"), std::nullopt);
  EXPECT_EQ(store().Put(std::string(kMaxKeyBytes + 1, 'k'), "value").code(),
            StatusCode::kInvalidArgument);
  const std::string large(1 << 20, 'v');
  ASSERT_TRUE(Ok(store().Put("large", large)));
  EXPECT_EQ(Get("large"), large);
}

TEST_P(StoreTest, EachWriteIsLaterThanTheOneBefore) {
  uint64_t last = 0;
  const auto is_later = [&](const Result<Commit>& commit) {
    ASSERT_TRUE(commit) << commit.error().ToString();
    EXPECT_GT(commit->sequence, last);
    last = commit->sequence;
  };
  is_later(store().Put("a", "1"));
  EXPECT_EQ(VersionOf("a"), last);
  is_later(store().Merge("a", MergeOperator::kAppend, "2"));
  EXPECT_EQ(VersionOf("a"), last);
  WriteBatch batch;
  batch.Put("b", "1");
  batch.Put("c", "1");
  is_later(store().Write(batch));
  EXPECT_EQ(VersionOf("b"), last - 1);
  EXPECT_EQ(VersionOf("c"), last);
  is_later(store().Delete("a"));
  is_later(store().DeleteRange("a", "d"));
  is_later(store().Update("a", [](EntryUpdate& entry) {
    entry.Set("new");
    return Status();
  }));
  EXPECT_EQ(VersionOf("a"), last);
  EXPECT_GE(store().GetSnapshot().value().sequence(), last);
}

TEST_P(StoreTest, PutIfAbsentKeepsWhatIsThere) {
  EXPECT_TRUE(store().PutIfAbsent("key", "1").value());
  EXPECT_FALSE(store().PutIfAbsent("key", "2").value());
  EXPECT_EQ(Get("key"), "1");
  ASSERT_TRUE(Ok(store().Delete("key")));
  EXPECT_TRUE(store().PutIfAbsent("key", "3").value());
  EXPECT_EQ(Get("key"), "3");
}

TEST_P(StoreTest, MultiGetAnswersEachKeyAlsoOfSeveralKeyspaces) {
  const KeyspaceId other = store().CreateKeyspace("other").value();
  PutAll({{"a", "1"}, {"b", "2"}});
  ASSERT_TRUE(Ok(store().Put("a", "of another", {.keyspace = other})));
  std::vector<Result<MaybeValue>> results(3);
  ASSERT_TRUE(Ok(store().MultiGet(std::vector<std::string_view>{"b", "absent", "a"}, results)));
  EXPECT_EQ(StringOf(results[0]), "2");
  EXPECT_EQ(StringOf(results[1]), std::nullopt);
  EXPECT_EQ(StringOf(results[2]), "1");
  ASSERT_TRUE(Ok(store().MultiGet(
      std::vector<KeyspaceKey>{{other, "a"}, {KeyspaceId::kDefault, "a"}, {other, "b"}}, results)));
  EXPECT_EQ(StringOf(results[0]), "of another");
  EXPECT_EQ(StringOf(results[1]), "1");
  EXPECT_EQ(StringOf(results[2]), std::nullopt);
  EXPECT_EQ(store().MultiGet(std::vector<std::string_view>{"a"}, results).code(),
            StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, UpdateSeesTheEntryAndChangesIt) {
  const Commit put = store().Put("key", "1").value();
  ASSERT_TRUE(Ok(store().Update("key", [&](EntryUpdate& entry) {
    EXPECT_TRUE(entry.exists());
    EXPECT_EQ(entry.value(), "1");
    EXPECT_EQ(entry.version(), put.sequence);
    EXPECT_FALSE(entry.expiry());
    entry.Set("2");
    return Status();
  })));
  EXPECT_EQ(Get("key"), "2");
  EXPECT_EQ(store().Update("key", [](EntryUpdate&) { return Status(); }).value().sequence, 0u);
  EXPECT_EQ(store()
                .Update("key",
                        [](EntryUpdate& entry) {
                          entry.Set("3");
                          return Status(StatusCode::kCancelled, "no");
                        })
                .code(),
            StatusCode::kCancelled);
  EXPECT_EQ(Get("key"), "2");
  ASSERT_TRUE(Ok(store().Update("key", [](EntryUpdate& entry) {
    entry.Delete();
    return Status();
  })));
  EXPECT_EQ(Get("key"), std::nullopt);
}

// Batches

TEST_P(StoreTest, ABatchIsAppliedInOrder) {
  PutAll({{"a", "old"}, {"b", "old"}, {"c", "old"}});
  WriteBatch batch;
  batch.Put("a", "1");
  batch.DeleteRange("a", "c");
  batch.Put("b", "2");
  batch.Delete("c");
  batch.Merge("d", MergeOperator::kAppend, "3");
  ASSERT_TRUE(Ok(store().Write(batch)));
  EXPECT_EQ(Scan(), (Records{{"b", "2"}, {"d", "3"}}));
  EXPECT_EQ(store().Write(WriteBatch()).value().sequence, 0u);
  EXPECT_EQ(store().Write(batch, {.keyspace = KeyspaceId{1}}).code(), StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, ABatchWhoseConditionsDoNotHoldChangesNothing) {
  ASSERT_TRUE(Ok(store().Put("there", "1")));
  const uint64_t version = VersionOf("there");
  struct Case {
    const char* name;
    void (*require)(WriteBatch& batch, uint64_t version);
    bool holds;
  };
  const Case cases[] = {
      {"absent", [](WriteBatch& b, uint64_t) { b.RequireAbsent("nowhere"); }, true},
      {"not absent", [](WriteBatch& b, uint64_t) { b.RequireAbsent("there"); }, false},
      {"present", [](WriteBatch& b, uint64_t) { b.RequirePresent("there"); }, true},
      {"not present", [](WriteBatch& b, uint64_t) { b.RequirePresent("nowhere"); }, false},
      {"unchanged", [](WriteBatch& b, uint64_t v) { b.RequireUnchanged("there", v); }, true},
      {"changed", [](WriteBatch& b, uint64_t v) { b.RequireUnchanged("there", v - 1); }, false},
      {"never written", [](WriteBatch& b, uint64_t) { b.RequireUnchanged("nowhere", 0); }, true},
      {"one of two",
       [](WriteBatch& b, uint64_t) {
         b.RequirePresent("there");
         b.RequireAbsent("there");
       },
       false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(Ok(store().Delete("result")));
    WriteBatch batch;
    batch.Put("result", c.name);
    c.require(batch, version);
    const auto written = store().Write(batch);
    EXPECT_EQ(written.has_value(), c.holds);
    EXPECT_EQ(Get("result").has_value(), c.holds);
    if (c.holds) continue;
    EXPECT_EQ(written.error().code(), StatusCode::kAborted);
    EXPECT_EQ(written.error().sub_code(), SubCode::kCondition);
  }
}

TEST_P(StoreTest, ConditionalBatchesOfManyThreadsLoseNothing) {
  constexpr int kThreads = 3;
  constexpr int kEach = 150;
  ASSERT_TRUE(Ok(store().Put("counter", Counter(0))));
  const auto add_one = [&] {
    for (;;) {
      const auto entry = store().GetEntry("counter").value();
      WriteBatch batch;
      batch.Put("counter", Counter(NumberOf(entry->value.view()) + 1));
      batch.RequireUnchanged("counter", entry->version);
      const auto written = store().Write(batch);
      if (written) return;
      ASSERT_EQ(written.error().sub_code(), SubCode::kCondition) << written.error().ToString();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) add_one();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("counter"), Counter(kThreads * kEach));
}

// Expiry

TEST_P(StoreTest, ARecordExpires) {
  ASSERT_TRUE(Ok(store().Put("long", "1", {.ttl = std::chrono::hours(1)})));
  ASSERT_TRUE(Ok(store().Put("past", "old")));
  ASSERT_TRUE(Ok(store().Put("past", "new", {.expiry = WallTime(milliseconds(1))})));
  WriteBatch batch;
  batch.Put("soon", "1", {.ttl = milliseconds(20)});
  ASSERT_TRUE(Ok(store().Write(batch)));
  EXPECT_TRUE(store().GetEntry("long").value()->expiry);
  EXPECT_EQ(Get("past"), std::nullopt) << "it hides what was there";
  while (Get("soon")) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_FALSE(store().Contains("soon").value());
  EXPECT_EQ(Scan(), (Records{{"long", "1"}}));
  const auto it = store().NewIterator();
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->expiry(), store().GetEntry("long").value()->expiry);
  EXPECT_EQ(store().Put("key", "value", {.ttl = milliseconds(-1)}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store().Delete("key", {.ttl = milliseconds(1)}).code(), StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, ASnapshotGoesOnToSeeWhatExpiresLater) {
  milliseconds ttl(20);
  std::optional<Snapshot> snapshot;
  for (;; ttl *= 2) {  // Until the snapshot is early enough.
    ASSERT_TRUE(Ok(store().Put("key", "1", {.ttl = ttl})));
    const auto entry = store().GetEntry("key").value();
    snapshot = store().GetSnapshot().value();
    if (entry && snapshot->time() < *entry->expiry) break;
  }
  while (Get("key")) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(Get("key", {.snapshot = &*snapshot}), "1");
  EXPECT_EQ(Scan({.snapshot = &*snapshot}), (Records{{"key", "1"}}));
  EXPECT_TRUE(Scan().empty());
}

TEST_P(StoreTest, UpdateKeepsOrSetsTheExpiry) {
  ASSERT_TRUE(Ok(store().Put("key", "1", {.ttl = std::chrono::hours(1)})));
  const auto expiry = store().GetEntry("key").value()->expiry;
  ASSERT_TRUE(Ok(store().Update("key", [&](EntryUpdate& entry) {
    EXPECT_EQ(entry.expiry(), expiry);
    entry.Set("2");
    return Status();
  })));
  EXPECT_EQ(store().GetEntry("key").value()->expiry, expiry);
  ASSERT_TRUE(Ok(store().Update("key", [&](EntryUpdate& entry) {
    entry.SetExpiry(std::nullopt);
    return Status();
  })));
  EXPECT_FALSE(store().GetEntry("key").value()->expiry);
  EXPECT_EQ(Get("key"), "2");
}

// Merges

TEST_P(StoreTest, MergesCombineWithWhatIsThere) {
  for (const int64_t number : {5, 7, -3}) {
    ASSERT_TRUE(Ok(store().Merge("add", MergeOperator::kAdd, Counter(number))));
    ASSERT_TRUE(Ok(store().Merge("min", MergeOperator::kMin, Counter(number))));
    ASSERT_TRUE(Ok(store().Merge("max", MergeOperator::kMax, Counter(number))));
    ASSERT_TRUE(Ok(store().Merge("text", MergeOperator::kAppend, std::to_string(number))));
  }
  const Records expected = {
      {"add", Counter(9)}, {"max", Counter(7)}, {"min", Counter(-3)}, {"text", "57-3"}};
  EXPECT_EQ(Scan(), expected);
  for (const auto& [key, value] : expected) EXPECT_EQ(Get(key), value) << key;
  EXPECT_TRUE(store().Contains("add").value());
  EXPECT_EQ(store().Merge("add", MergeOperator::kAdd, "1").code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(Ok(store().Put("add", "no number")));
  ASSERT_TRUE(Ok(store().Merge("add", MergeOperator::kAdd, Counter(1))));
  EXPECT_EQ(store().Get("add").code(), StatusCode::kFailedPrecondition);
}

TEST_P(StoreTest, AMergeKeepsTheExpiry) {
  ASSERT_TRUE(Ok(store().Put("key", Counter(1), {.ttl = std::chrono::hours(1)})));
  const auto expiry = store().GetEntry("key").value()->expiry;
  ASSERT_TRUE(Ok(store().Merge("key", MergeOperator::kAdd, Counter(2))));
  EXPECT_EQ(store().GetEntry("key").value()->expiry, expiry);
  EXPECT_EQ(Get("key"), Counter(3));
}

// Keyspaces

TEST_P(StoreTest, KeyspaceOptionsAreKeptOrRefused) {
  const auto lasting =
      store().CreateKeyspace("lasting", {.default_ttl = std::chrono::milliseconds(3'600'000)});
  if (lasting) {
    ASSERT_TRUE(Ok(store().Put("key", "value", {.keyspace = *lasting})));
    EXPECT_TRUE(store().GetEntry("key", {.keyspace = *lasting}).value()->expiry.has_value());
  } else {
    EXPECT_EQ(lasting.code(), StatusCode::kUnsupported) << lasting.status().ToString();
  }
  EXPECT_EQ(store().CreateKeyspace("packed", {.compression = Compression::kNone}).code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(store().OpenKeyspace("packed").code(), StatusCode::kNotFound);
}

TEST_P(StoreTest, KeyspacesComeAndGo) {
  EXPECT_EQ(store().OpenKeyspace("one").code(), StatusCode::kNotFound);
  const KeyspaceId one = store().CreateKeyspace("one").value();
  EXPECT_EQ(store().CreateKeyspace("one").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(store().OpenOrCreateKeyspace("one").value(), one);
  ASSERT_EQ(store().ListKeyspaces().value().size(), 2u);
  EXPECT_EQ(store().ListKeyspaces().value()[1].name, "one");
  ASSERT_TRUE(Ok(store().Put("key", "default")));
  ASSERT_TRUE(Ok(store().Put("key", "one", {.keyspace = one})));
  EXPECT_EQ(Get("key"), "default");
  EXPECT_EQ(Scan({.keyspace = one}), (Records{{"key", "one"}}));
  ASSERT_TRUE(Ok(store().DropKeyspace(one)));
  EXPECT_EQ(store().Get("key", {.keyspace = one}).code(), StatusCode::kNotFound);
  EXPECT_EQ(store().Put("key", "1", {.keyspace = one}).code(), StatusCode::kNotFound);
  EXPECT_EQ(store().NewIterator({.keyspace = one})->status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store().DropKeyspace(one).code(), StatusCode::kNotFound);
  EXPECT_EQ(store().DropKeyspace(KeyspaceId::kDefault).code(), StatusCode::kInvalidArgument);
  const KeyspaceId again = store().CreateKeyspace("one").value();
  EXPECT_NE(again, one);
  EXPECT_TRUE(Scan({.keyspace = again}).empty());
  EXPECT_EQ(Get("key"), "default");
}

// Iterators and snapshots

TEST_P(StoreTest, IteratorsWalkInOrderWithinTheirBounds) {
  PutAll({{"a", "1"}, {"b/1", "2"}, {"b/2", "3"}, {"c", "4"}, {"d", "5"}});
  ASSERT_TRUE(Ok(store().Delete("c")));
  EXPECT_EQ(Scan(), (Records{{"a", "1"}, {"b/1", "2"}, {"b/2", "3"}, {"d", "5"}}));
  EXPECT_EQ(Scan({.lower = "b", .upper = "b/2"}), (Records{{"b/1", "2"}}));
  EXPECT_EQ(Scan({.prefix = "b/"}), (Records{{"b/1", "2"}, {"b/2", "3"}}));
  EXPECT_EQ(Scan({.prefix = "b/", .keys_only = true}), (Records{{"b/1", ""}, {"b/2", ""}}));
  const auto it = store().NewIterator();
  it->Seek("b/15");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "b/2");
  it->Prev();
  EXPECT_EQ(it->key(), "b/1");
  it->SeekForPrev("c");
  EXPECT_EQ(it->key(), "b/2");
  it->Next();
  EXPECT_EQ(it->key(), "d");
  it->Next();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(store().NewIterator({.lower = "a", .prefix = "b"})->status().code(),
            StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, SnapshotsAndIteratorsKeepTheirMoment) {
  PutAll({{"a", "1"}, {"b", "1"}});
  const Snapshot snapshot = store().GetSnapshot().value();
  const auto it = store().NewIterator();
  ASSERT_TRUE(Ok(store().Put("a", "2")));
  ASSERT_TRUE(Ok(store().DeleteRange("b", "c")));
  ASSERT_TRUE(Ok(store().Merge("c", MergeOperator::kAppend, "3")));
  const Records before = {{"a", "1"}, {"b", "1"}};
  EXPECT_EQ(Scan({.snapshot = &snapshot}), before);
  EXPECT_EQ(Forward(it.get()), before);
  EXPECT_EQ(Get("b", {.snapshot = &snapshot}), "1");
  EXPECT_EQ(Scan(), (Records{{"a", "2"}, {"c", "3"}}));
  const auto other = MemTable::Create().value();
  EXPECT_EQ(other->Get("a", {.snapshot = &snapshot}).code(), StatusCode::kInvalidArgument);
}

// Transactions

TEST_P(StoreTest, ATransactionSeesItsOwnWritesAndNobodyElseDoesBeforeTheCommit) {
  const KeyspaceId other = store().CreateKeyspace("other").value();
  PutAll({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  Transaction tx = store().Begin().value();
  ASSERT_TRUE(Ok(tx.Put("a", "2")));
  ASSERT_TRUE(Ok(tx.Delete("b")));
  ASSERT_TRUE(Ok(tx.Merge("c", MergeOperator::kAppend, "+")));
  ASSERT_TRUE(Ok(tx.Put("d", "new", {.keyspace = other})));
  EXPECT_FALSE(tx.PutIfAbsent("a", "3").value());
  EXPECT_TRUE(tx.PutIfAbsent("e", "5").value());
  ASSERT_TRUE(Ok(tx.Update("e", [](EntryUpdate& entry) {
    entry.Set(std::string(entry.value()) + "5");
    return Status();
  })));
  const Records inside = {{"a", "2"}, {"c", "1+"}, {"e", "55"}};
  EXPECT_EQ(StringOf(tx.Get("c")), "1+");
  EXPECT_EQ(StringOf(tx.Get("d", {.keyspace = other})), "new");
  const auto it = tx.NewIterator();
  EXPECT_EQ(Forward(it.get()), inside);
  EXPECT_EQ(Backward(it.get()), inside);
  EXPECT_EQ(Scan(), (Records{{"a", "1"}, {"b", "1"}, {"c", "1"}}));
  const auto committed = tx.Commit();
  ASSERT_TRUE(committed) << committed.error().ToString();
  EXPECT_FALSE(tx.is_open());
  EXPECT_EQ(Scan(), inside);
  EXPECT_EQ(Get("d", {.keyspace = other}), "new");
  EXPECT_LE(VersionOf("e"), committed->sequence);
  EXPECT_EQ(tx.Get("a").code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(it->Valid());
}

TEST_P(StoreTest, ARollbackAndASavepointTakeWritesBack) {
  Transaction tx = store().Begin().value();
  ASSERT_TRUE(Ok(tx.Put("a", "1")));
  const auto savepoint = tx.SetSavepoint();
  ASSERT_TRUE(Ok(tx.Put("a", "2")));
  ASSERT_TRUE(Ok(tx.Put("b", "2")));
  ASSERT_TRUE(Ok(tx.RollbackTo(savepoint)));
  EXPECT_EQ(StringOf(tx.Get("a")), "1");
  EXPECT_EQ(StringOf(tx.Get("b")), std::nullopt);
  ASSERT_TRUE(Ok(tx.Commit()));
  EXPECT_EQ(Scan(), (Records{{"a", "1"}}));
  {
    Transaction dropped = store().Begin().value();
    ASSERT_TRUE(Ok(dropped.Put("c", "1")));
  }
  Transaction rolled_back = store().Begin().value();
  ASSERT_TRUE(Ok(rolled_back.Put("d", "1")));
  rolled_back.Rollback();
  EXPECT_EQ(Scan(), (Records{{"a", "1"}}));
}

/// What makes the commit of a transaction that has read "read" and "absent" and has scanned
/// ["scan/", "scan0") fail, or not.
struct Between {
  const char* name;
  void (*write)(Store& store);
  bool conflicts;
};

constexpr Between kBetween[] = {
    {"nothing", [](Store&) {}, false},
    {"another key", [](Store& s) { ASSERT_TRUE(Ok(s.Put("else", "1"))); }, false},
    {"a put of a read key", [](Store& s) { ASSERT_TRUE(Ok(s.Put("read", "1"))); }, true},
    {"the same value again", [](Store& s) { ASSERT_TRUE(Ok(s.Put("read", "value"))); }, true},
    {"a put of an absent key", [](Store& s) { ASSERT_TRUE(Ok(s.Put("absent", "1"))); }, true},
    {"a delete", [](Store& s) { ASSERT_TRUE(Ok(s.Delete("read"))); }, true},
    {"a range delete", [](Store& s) { ASSERT_TRUE(Ok(s.DeleteRange("rea", "reb"))); }, true},
    {"a range delete elsewhere", [](Store& s) { ASSERT_TRUE(Ok(s.DeleteRange("x", "z"))); }, false},
    {"a merge", [](Store& s) { ASSERT_TRUE(Ok(s.Merge("read", MergeOperator::kAppend, "1"))); },
     true},
    {"a batch",
     [](Store& s) {
       WriteBatch batch;
       batch.Put("else", "1");
       batch.Delete("absent");
       ASSERT_TRUE(Ok(s.Write(batch)));
     },
     true},
    {"an update",
     [](Store& s) {
       ASSERT_TRUE(Ok(s.Update("read", [](EntryUpdate& entry) {
         entry.Set("1");
         return Status();
       })));
     },
     true},
    {"another transaction",
     [](Store& s) {
       ASSERT_TRUE(Ok(Transact(s, [](Transaction& tx) { return tx.Put("read", "1"); })));
     },
     true},
    {"a phantom", [](Store& s) { ASSERT_TRUE(Ok(s.Put("scan/15", "1"))); }, true},
    {"a phantom behind the last", [](Store& s) { ASSERT_TRUE(Ok(s.Put("scan/9", "1"))); }, true},
    {"a range delete in the scan",
     [](Store& s) { ASSERT_TRUE(Ok(s.DeleteRange("scan/2", "scan/3"))); }, true},
    {"a put beside the scan", [](Store& s) { ASSERT_TRUE(Ok(s.Put("scan0", "1"))); }, false},
};

TEST_P(StoreTest, ACommitIsAbortedByAnyChangeOfWhatWasRead) {
  for (const Between& between : kBetween) {
    SCOPED_TRACE(between.name);
    ASSERT_TRUE(Ok(store().DeleteRange("", "zz")));
    PutAll({{"read", "value"}, {"scan/1", "1"}, {"scan/2", "2"}});
    Transaction tx = store().Begin().value();
    EXPECT_EQ(StringOf(tx.Get("read")), "value");
    EXPECT_EQ(StringOf(tx.Get("absent")), std::nullopt);
    const auto it = tx.NewIterator({.prefix = "scan/"});
    EXPECT_EQ(Forward(it.get()).size(), 2u);
    between.write(store());
    EXPECT_EQ(StringOf(tx.Get("read")), "value") << "reads come from one snapshot";
    ASSERT_TRUE(Ok(tx.Put("result", "1")));
    const auto committed = tx.Commit();
    EXPECT_EQ(committed.has_value(), !between.conflicts);
    EXPECT_EQ(Get("result").has_value(), !between.conflicts);
    if (!committed) {
      EXPECT_EQ(committed.error().code(), StatusCode::kAborted);
      EXPECT_EQ(committed.error().sub_code(), SubCode::kConflict);
    }
  }
}

TEST_P(StoreTest, AnUntrackedReadIsNotLookedAt) {
  ASSERT_TRUE(Ok(store().Put("key", "1")));
  Transaction tx = store().Begin().value();
  EXPECT_EQ(StringOf(tx.Get("key", {.track = false})), "1");
  ASSERT_TRUE(Ok(store().Put("key", "2")));
  ASSERT_TRUE(Ok(tx.Put("other", "1")));
  EXPECT_TRUE(Ok(tx.Commit()));
}

TEST_P(StoreTest, ACommitIsAbortedWhenSomethingReadHasExpired) {
  milliseconds ttl(20);
  for (;; ttl *= 2) {
    ASSERT_TRUE(Ok(store().Put("key", "1", {.ttl = ttl})));
    Transaction tx = store().Begin().value();
    if (!StringOf(tx.Get("key"))) continue;  // It has expired before it was read.
    while (Get("key")) std::this_thread::sleep_for(milliseconds(1));
    ASSERT_TRUE(Ok(tx.Put("other", "1")));
    EXPECT_EQ(tx.Commit().code(), StatusCode::kAborted);
    return;
  }
}

TEST_P(StoreTest, ACommitIsAbortedWhenAKeyspaceReadWasDropped) {
  const KeyspaceId one = store().CreateKeyspace("one").value();
  Transaction tx = store().Begin().value();
  EXPECT_EQ(StringOf(tx.Get("key", {.keyspace = one})), std::nullopt);
  ASSERT_TRUE(Ok(store().DropKeyspace(one)));
  ASSERT_TRUE(Ok(tx.Put("other", "1")));
  EXPECT_EQ(tx.Commit().code(), StatusCode::kAborted);
  Transaction writer = store().Begin().value();
  ASSERT_TRUE(Ok(writer.Put("key", "1", {.keyspace = one})));
  EXPECT_EQ(writer.Commit().code(), StatusCode::kNotFound);
}

TEST_P(StoreTest, ABatchsConditionsInATransactionAreLookedAtByTheCommit) {
  ASSERT_TRUE(Ok(store().Put("key", "1")));
  WriteBatch batch;
  batch.Put("result", "1");
  batch.RequireAbsent("key");
  Transaction tx = store().Begin().value();
  ASSERT_TRUE(Ok(tx.Write(batch)));
  EXPECT_EQ(tx.Commit().code(), StatusCode::kAborted);
  ASSERT_TRUE(Ok(store().Delete("key")));
  Transaction again = store().Begin().value();
  ASSERT_TRUE(Ok(again.Write(batch)));
  EXPECT_TRUE(Ok(again.Commit()));
  EXPECT_EQ(Get("result"), "1");
}

TEST_P(StoreTest, TransactionsWithMoreReadsThanTheirMemoryHoldsStayRight) {
  for (int i = 0; i < 2'000; ++i) {
    ASSERT_TRUE(Ok(store().Put("key" + std::to_string(i), "value")));
  }
  for (const bool conflicts : {false, true}) {
    Transaction tx = store().Begin({.memory_limit = 4'096}).value();
    for (int i = 0; i < 2'000; ++i) {
      ASSERT_TRUE(StringOf(tx.Get("key" + std::to_string(i))));
    }
    if (conflicts) {
      ASSERT_TRUE(Ok(store().Put("key777", "other")));
    }
    ASSERT_TRUE(Ok(tx.Put("zz", "1")));
    EXPECT_EQ(tx.Commit().has_value(), !conflicts);
  }
}

// Money goes from account to account, by transactions that read both, or all by a scan, and only
// plain puts and batches touch other keys. The sum is the same at every moment that somebody sees.
TEST_P(StoreTest, TransfersOfManyThreadsKeepTheSum) {
  constexpr int kAccounts = 6;
  constexpr int64_t kSum = kAccounts * 100;
  constexpr int kThreads = 3;
  constexpr int kEach = 120;
  const auto account = [](uint64_t i) { return "account/" + std::to_string(i); };
  for (int i = 0; i < kAccounts; ++i) ASSERT_TRUE(Ok(store().Put(account(i), Counter(100))));
  const auto sum_of = [](const Records& records) {
    int64_t sum = 0;
    for (const auto& [key, value] : records) sum += NumberOf(value);
    return sum;
  };
  const auto transfer = [&](Transaction& tx, base::Random* random) -> Status {
    const uint64_t from = random->Below(kAccounts);
    const uint64_t to = (from + 1 + random->Below(kAccounts - 1)) % kAccounts;
    int64_t has = 0;
    int64_t gets = 0;
    if (random->OneIn(4)) {
      const Records all = Forward(tx.NewIterator({.prefix = "account/"}).get());
      if (sum_of(all) != kSum) return Status(StatusCode::kCorruption, "a scan saw another sum");
      has = NumberOf(all[from].second);
      gets = NumberOf(all[to].second);
    } else {
      has = NumberOf(*StringOf(tx.Get(account(from))));
      gets = NumberOf(*StringOf(tx.Get(account(to))));
    }
    const int64_t amount = 1 + static_cast<int64_t>(random->Below(10));
    if (Status put = tx.Put(account(from), Counter(has - amount)); !put.ok()) return put;
    return tx.Put(account(to), Counter(gets + amount));
  };
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < kEach; ++i) {
        const auto done = Transact(store(), [&](Transaction& tx) { return transfer(tx, &random); },
                                   {.attempts = 100'000});
        ASSERT_TRUE(done) << done.error().ToString();
      }
    });
  }
  std::thread beside([&] {
    for (uint64_t i = 0; !is_done.load(); ++i) {
      ASSERT_TRUE(Ok(store().Put("beside/" + std::to_string(i % 50), Counter(1))));
      if (i % 4 == 0) {
        const Snapshot now = store().GetSnapshot().value();
        const auto it = store().NewIterator({.snapshot = &now, .prefix = "account/"});
        ASSERT_EQ(sum_of(Forward(it.get())), kSum);
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  is_done = true;
  beside.join();
  EXPECT_EQ(sum_of(Scan({.prefix = "account/"})), kSum);
}

// Each thread reads a key that the others write by plain puts, and copies what it has read into a
// key of its own: the copy must be of the version that was the newest when the transaction took its
// place in the order.
TEST_P(StoreTest, PlainPutsOfAReadKeyAreNeverMissed) {
  constexpr int kCommits = 150;
  std::atomic<bool> is_done{false};
  std::thread writer([&] {
    for (int64_t i = 1; !is_done.load(); ++i) {
      ASSERT_TRUE(Ok(store().Put("source", Counter(i))));
      if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int i = 0; i < kCommits; ++i) {
    uint64_t read_version = 0;
    const auto copied =
        Transact(store(),
                 [&](Transaction& tx) -> Status {
                   auto entry = tx.GetEntry("source");
                   if (!entry) return entry.error();
                   read_version = *entry ? (*entry)->version : 0;
                   return tx.Put("copy", *entry ? (*entry)->value.view() : std::string_view());
                 },
                 {.attempts = 1'000'000});
    ASSERT_TRUE(copied) << copied.error().ToString();
    // A version between the one that was read and the commit would be one that it has missed. All
    // later versions are above the commit.
    const auto now = store().GetEntry("source").value();
    if (now) {
      EXPECT_TRUE(now->version == read_version || now->version > copied->sequence)
          << "read " << read_version << ", committed " << copied->sequence << ", now "
          << now->version;
    }
  }
  is_done = true;
  writer.join();
}

std::string NameOf(const testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"disk", "memory", "memtable", "remote"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, StoreTest,
                         testing::Values(Kind::kDisk, Kind::kMemory, Kind::kMemTable), NameOf);
#ifdef BASALT_SERVER
INSTANTIATE_TEST_SUITE_P(Served, StoreTest, testing::Values(Kind::kRemote), NameOf);
#endif

}  // namespace
}  // namespace basalt
