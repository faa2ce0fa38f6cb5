// Transactions on a database: which changes of what was read abort a commit, and which do not.

#include "basalt/transaction.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/coding.h"
#include "base/random.h"
#include "db/commit_history.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string CounterBytes(int64_t number) {
  std::string bytes(8, '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}

class TransactionTest : public testing::Test {
 protected:
  TransactionTest() {
    Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    DBOptions options;
    options.memory_budget = uint64_t{16} << 20;
    db_ = OpenDatabase("/db", options, environment).value();
  }

  Transaction Begin(const TransactionOptions& options = {}) { return db_->Begin(options).value(); }
  void Put(std::string_view key, std::string_view value, const WriteOptions& options = {}) {
    ASSERT_TRUE(db_->Put(key, value, options).ok());
  }
  std::string Get(std::string_view key, const ReadOptions& options = {}) const {
    return TextOf(db_->Get(key, options));
  }
  static std::string Get(Transaction& tx, std::string_view key, const ReadOptions& options = {}) {
    return TextOf(tx.Get(key, options));
  }
  static std::string TextOf(const Result<MaybeValue>& found) {
    if (!found) return found.error().ToString();
    return *found ? (*found)->ToString() : "(absent)";
  }
  /// The keys of a walk, each with a space behind it.
  static std::string Walk(Transaction& tx, const ReadOptions& options = {}) {
    const std::unique_ptr<Iterator> it = tx.NewIterator(options);
    std::string keys;
    for (it->SeekToFirst(); it->Valid(); it->Next()) keys += std::string(it->key()) + " ";
    EXPECT_TRUE(it->status().ok()) << it->status().ToString();
    return keys;
  }

  static void ExpectCommitted(Transaction& tx) {
    const Result<Commit> committed = tx.Commit();
    EXPECT_TRUE(committed.ok()) << committed.error().ToString();
    EXPECT_FALSE(tx.is_open());
  }
  static void ExpectConflict(Transaction& tx, std::string_view named) {
    const Result<Commit> committed = tx.Commit();
    ASSERT_FALSE(committed.ok());
    EXPECT_EQ(committed.error().code(), StatusCode::kAborted);
    EXPECT_EQ(committed.error().sub_code(), SubCode::kConflict);
    EXPECT_NE(committed.error().message().find(named), std::string_view::npos)
        << committed.error().ToString();
    EXPECT_FALSE(tx.is_open());
  }
  /// The history of commits ends before this: commits above must be found in memtables and tables.
  void ForgetHistory() { Put("unrelated", std::string(CommitHistory::kBatchBytesMax + 1, 'u')); }

  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
};

// Anomalies

TEST_F(TransactionTest, LostUpdateIsRefused) {
  Put("counter", "1");
  Transaction first = Begin();
  Transaction second = Begin();
  EXPECT_EQ(Get(first, "counter"), "1");
  EXPECT_EQ(Get(second, "counter"), "1");
  ASSERT_TRUE(first.Put("counter", "2").ok());
  ASSERT_TRUE(second.Put("counter", "2").ok());
  ExpectCommitted(first);
  ExpectConflict(second, "key 'counter' of keyspace 0");
  EXPECT_EQ(Get("counter"), "2");
}

TEST_F(TransactionTest, WriteSkewIsRefused) {
  Put("on call/a", "yes");
  Put("on call/b", "yes");
  Transaction first = Begin();
  Transaction second = Begin();
  for (Transaction* tx : {&first, &second}) {
    EXPECT_EQ(Get(*tx, "on call/a"), "yes");
    EXPECT_EQ(Get(*tx, "on call/b"), "yes");
  }
  ASSERT_TRUE(first.Put("on call/a", "no").ok());
  ASSERT_TRUE(second.Put("on call/b", "no").ok());
  ExpectCommitted(second);
  ExpectConflict(first, "on call/b");
}

TEST_F(TransactionTest, PhantomByInsertIntoAScannedGapIsRefused) {
  Put("k1", "");
  Put("k5", "");
  Transaction tx = Begin();
  EXPECT_EQ(Walk(tx, {.prefix = "k"}), "k1 k5 ");
  ASSERT_TRUE(tx.Put("count", "2").ok());
  Put("k3", "");
  ExpectConflict(tx, "k3");
}

TEST_F(TransactionTest, PhantomByInsertBehindTheLastKeyOfAScanIsRefused) {
  Put("k1", "");
  Transaction forward = Begin();
  EXPECT_EQ(Walk(forward, {.prefix = "k"}), "k1 ");
  Transaction backward = Begin();
  const auto it = backward.NewIterator({.prefix = "k"});
  it->SeekToLast();
  it->Prev();
  EXPECT_FALSE(it->Valid());
  for (Transaction* tx : {&forward, &backward}) ASSERT_TRUE(tx->Put("count", "1").ok());
  Put("k9", "");
  ExpectConflict(forward, "k9");
  ExpectConflict(backward, "k9");
}

TEST_F(TransactionTest, InsertBesideWhatAScanHasPassedIsNoConflict) {
  for (const char* key : {"k1", "k3", "k5"}) Put(key, "");
  Transaction tx = Begin();
  const auto it = tx.NewIterator();
  it->Seek("k2");
  ASSERT_EQ(it->key(), "k3");
  ASSERT_TRUE(tx.Put("other", "").ok());
  Put("k1", "changed");
  Put("k4", "");
  ExpectCommitted(tx);
}

TEST_F(TransactionTest, PhantomByDeleteRangeIsRefused) {
  for (const char* key : {"k1", "k3", "k5"}) Put(key, "");
  Transaction scan = Begin();
  EXPECT_EQ(Walk(scan, {.prefix = "k"}), "k1 k3 k5 ");
  Transaction point = Begin();
  EXPECT_EQ(Get(point, "k3"), "");
  Transaction beside = Begin();
  EXPECT_EQ(Get(beside, "k5"), "");
  for (Transaction* tx : {&scan, &point, &beside}) ASSERT_TRUE(tx->Put("count", "3").ok());
  ASSERT_TRUE(db_->DeleteRange("k2", "k5").ok());
  ExpectConflict(scan, "k2");
  ExpectConflict(point, "k2");
  ExpectCommitted(beside);
}

// Fekete, O'Neil and O'Neil, "A read-only transaction anomaly under snapshot isolation", 2004: a
// report that sees the deposit must not be followed by a withdrawal that does not.
TEST_F(TransactionTest, ReadOnlyAnomalyIsRefused) {
  Put("checking", "0");
  Put("savings", "0");
  Transaction withdrawal = Begin();
  EXPECT_EQ(Get(withdrawal, "checking"), "0");
  EXPECT_EQ(Get(withdrawal, "savings"), "0");
  Transaction deposit = Begin();
  EXPECT_EQ(Get(deposit, "savings"), "0");
  ASSERT_TRUE(deposit.Put("savings", "20").ok());
  ExpectCommitted(deposit);
  Transaction report = Begin();
  EXPECT_EQ(Get(report, "checking"), "0");
  EXPECT_EQ(Get(report, "savings"), "20");
  ExpectCommitted(report);
  ASSERT_TRUE(withdrawal.Put("checking", "-11").ok());
  ExpectConflict(withdrawal, "savings");
}

TEST_F(TransactionTest, AnAbsentKeyThatIsPutIsAConflict) {
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "k"), "(absent)");
  ASSERT_TRUE(tx.Put("other", "").ok());
  Put("k", "");
  ExpectConflict(tx, "'k'");
}

TEST_F(TransactionTest, MergeCountsAsAWrite) {
  Put("counter", CounterBytes(1));
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "counter"), CounterBytes(1));
  ASSERT_TRUE(tx.Put("copy", CounterBytes(1)).ok());
  ASSERT_TRUE(db_->Merge("counter", MergeOperator::kAdd, CounterBytes(1)).ok());
  ExpectConflict(tx, "counter");
}

TEST_F(TransactionTest, OwnMergesDoNotReadWhatTheyBuildOn) {
  Put("counter", CounterBytes(1));
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "other"), "(absent)");
  ASSERT_TRUE(tx.Merge("counter", MergeOperator::kAdd, CounterBytes(10)).ok());
  ASSERT_TRUE(db_->Merge("counter", MergeOperator::kAdd, CounterBytes(100)).ok());
  ExpectCommitted(tx);
  EXPECT_EQ(Get("counter"), CounterBytes(111));
}

TEST_F(TransactionTest, ExpiryCountsAsAChange) {
  Put("token", "valid", {.ttl = seconds(10)});
  Transaction point = Begin();
  EXPECT_EQ(Get(point, "token"), "valid");
  Transaction scan = Begin();
  EXPECT_EQ(Walk(scan, {.prefix = "t"}), "token ");
  Transaction batched = Begin();
  const std::vector<std::string_view> keys{"absent", "token"};
  std::array<Result<MaybeValue>, 2> found{MaybeValue(), MaybeValue()};
  ASSERT_TRUE(batched.MultiGet(keys, found).ok());
  Transaction early = Begin();
  EXPECT_EQ(Get(early, "token"), "valid");
  for (Transaction* tx : {&point, &scan, &batched, &early}) {
    ASSERT_TRUE(tx->Put("used", "token").ok());
  }
  ExpectCommitted(early);
  clock_.Advance(10'000'000);
  ExpectConflict(point, "expired");
  ExpectConflict(scan, "expired");
  ExpectConflict(batched, "expired");
}

TEST_F(TransactionTest, DroppedKeyspaceIsAConflict) {
  const KeyspaceId keyspace = db_->CreateKeyspace("second").value();
  Put("k", "v", {.keyspace = keyspace});
  Transaction point = Begin();
  EXPECT_EQ(Get(point, "k", {.keyspace = keyspace}), "v");
  Transaction scan = Begin();
  EXPECT_EQ(Walk(scan, {.keyspace = keyspace}), "k ");
  Transaction writer = Begin();
  ASSERT_TRUE(writer.Put("k", "w", {.keyspace = keyspace}).ok());
  for (Transaction* tx : {&point, &scan}) ASSERT_TRUE(tx->Put("copy", "v").ok());
  ASSERT_TRUE(db_->DropKeyspace(keyspace).ok());
  ExpectConflict(point, "keyspace " + std::to_string(static_cast<uint32_t>(keyspace)));
  ExpectConflict(scan, "dropped");
  EXPECT_EQ(writer.Commit().error().code(), StatusCode::kNotFound);
}

TEST_F(TransactionTest, ChangesOfOtherKeyspacesAreNoConflict) {
  const KeyspaceId keyspace = db_->CreateKeyspace("second").value();
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "k"), "(absent)");
  EXPECT_EQ(Walk(tx), "");
  ASSERT_TRUE(tx.Put("k", "v").ok());
  Put("k", "v", {.keyspace = keyspace});
  ExpectCommitted(tx);
}

TEST_F(TransactionTest, UntrackedReadsDoNotConflict) {
  Put("k1", "");
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "k1", {.track = false}), "");
  EXPECT_EQ(Walk(tx, {.track = false}), "k1 ");
  ASSERT_TRUE(tx.Put("own", "").ok());
  EXPECT_EQ(Walk(tx, {.track = false}), "k1 own ");
  Put("k1", "changed");
  Put("k2", "");
  ExpectCommitted(tx);
}

TEST_F(TransactionTest, ReadsOfOwnWritesDoNotConflict) {
  Transaction tx = Begin();
  ASSERT_TRUE(tx.Put("k", "own").ok());
  ASSERT_TRUE(tx.DeleteRange("m", "p").ok());
  EXPECT_EQ(Get(tx, "k"), "own");
  EXPECT_EQ(Get(tx, "n"), "(absent)");
  Put("k", "theirs");
  Put("n", "theirs");
  ExpectCommitted(tx);
  EXPECT_EQ(Get("k"), "own");
  EXPECT_EQ(Get("n"), "(absent)");
}

TEST_F(TransactionTest, AReadOnlyTransactionNeverConflicts) {
  Put("k", "1");
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "k"), "1");
  Put("k", "2");
  EXPECT_EQ(Get(tx, "k"), "1");
  ExpectCommitted(tx);
}

// Own writes

TEST_F(TransactionTest, IteratorsWalkOwnWritesInBothDirections) {
  for (const char* key : {"a", "c", "e", "g"}) Put(key, "stored");
  Transaction tx = Begin();
  ASSERT_TRUE(tx.Put("b", "own").ok());
  ASSERT_TRUE(tx.Put("c", "own").ok());
  ASSERT_TRUE(tx.DeleteRange("d", "f").ok());
  ASSERT_TRUE(tx.Put("f", "own").ok());
  ASSERT_TRUE(tx.Delete("g").ok());
  const auto it = tx.NewIterator();
  ASSERT_TRUE(tx.Put("z", "later").ok());
  std::string walked;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    walked += std::string(it->key()) + "=" + std::string(it->value()) + " ";
  }
  EXPECT_EQ(walked, "a=stored b=own c=own f=own ");
  walked.clear();
  for (it->SeekToLast(); it->Valid(); it->Prev()) walked += std::string(it->key()) + " ";
  EXPECT_EQ(walked, "f c b a ");
  it->Seek("c");
  it->Prev();
  EXPECT_EQ(it->key(), "b");
  it->Next();
  it->Next();
  EXPECT_EQ(it->key(), "f");
  ExpectCommitted(tx);
  it->SeekToFirst();
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(TransactionTest, SavepointsTakeBackWritesAndKeepReads) {
  Put("read", "1");
  Transaction tx = Begin();
  ASSERT_TRUE(tx.Put("k", "first").ok());
  const Transaction::Savepoint outer = tx.SetSavepoint();
  ASSERT_TRUE(tx.Put("k", "second").ok());
  const Transaction::Savepoint inner = tx.SetSavepoint();
  ASSERT_TRUE(tx.DeleteRange("a", "z").ok());
  EXPECT_EQ(Get(tx, "read", {.keyspace = KeyspaceId::kDefault}), "(absent)");
  ASSERT_TRUE(tx.RollbackTo(inner).ok());
  EXPECT_EQ(Get(tx, "k"), "second");
  EXPECT_EQ(Get(tx, "read"), "1");
  ASSERT_TRUE(tx.RollbackTo(outer).ok());
  EXPECT_EQ(Get(tx, "k"), "first");
  EXPECT_EQ(tx.count(), 1u);
  EXPECT_EQ(tx.RollbackTo(inner).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(tx.RollbackTo(outer).ok());
  Put("read", "2");
  ExpectConflict(tx, "read");
}

TEST_F(TransactionTest, RollbackToKeepsConditionsFromBefore) {
  Put("there", "");
  Transaction tx = Begin();
  WriteBatch early;
  early.RequireAbsent("there");
  ASSERT_TRUE(tx.Write(early).ok());
  const Transaction::Savepoint point = tx.SetSavepoint();
  ASSERT_TRUE(tx.Put("k", "v").ok());
  ASSERT_TRUE(tx.RollbackTo(point).ok());
  ASSERT_TRUE(tx.Put("k", "w").ok());
  const Result<Commit> committed = tx.Commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().sub_code(), SubCode::kCondition);
}

TEST_F(TransactionTest, AnEndedTransactionAnswersFailedPrecondition) {
  Transaction tx = Begin();
  ASSERT_TRUE(tx.Put("k", "v").ok());
  tx.Rollback();
  EXPECT_EQ(Get("k"), "(absent)");
  EXPECT_EQ(tx.Get("k").error().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(tx.Put("k", "v").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(tx.Commit().error().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(tx.NewIterator()->status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(TransactionTest, AMergeThatCannotBeAppliedSpoilsItsKeyOnly) {
  Put("text", "stored");
  Transaction tx = Begin();
  ASSERT_TRUE(tx.Put("own", "text").ok());
  ASSERT_TRUE(tx.Merge("own", MergeOperator::kAdd, CounterBytes(1)).ok());
  ASSERT_TRUE(tx.Merge("text", MergeOperator::kAdd, CounterBytes(1)).ok());
  for (const char* key : {"own", "text"}) {
    EXPECT_EQ(tx.Get(key).error().code(), StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(Get(tx, "other"), "(absent)");
  ASSERT_TRUE(tx.Put("own", CounterBytes(1)).ok());
  ASSERT_TRUE(tx.Merge("own", MergeOperator::kAdd, CounterBytes(1)).ok());
  EXPECT_EQ(Get(tx, "own"), CounterBytes(2));
  ExpectCommitted(tx);
  EXPECT_EQ(Get("own"), CounterBytes(2));
}

TEST_F(TransactionTest, PutIfAbsentAndUpdateSeeOwnWrites) {
  Transaction tx = Begin();
  EXPECT_TRUE(tx.PutIfAbsent("k", "1").value());
  EXPECT_FALSE(tx.PutIfAbsent("k", "2").value());
  ASSERT_TRUE(tx.Update("k", [](EntryUpdate& entry) {
                  EXPECT_EQ(entry.value(), "1");
                  EXPECT_EQ(entry.version(), 0u);
                  entry.Set("3");
                  return Status();
                }).ok());
  ExpectCommitted(tx);
  EXPECT_EQ(Get("k"), "3");
}

// Conditions

TEST_F(TransactionTest, ConditionsOfABatch) {
  Put("there", "1");
  const uint64_t version = (*db_->GetEntry("there")).value().version;
  const auto write = [&](const std::function<void(WriteBatch*)>& require) {
    WriteBatch batch;
    require(&batch);
    batch.Put("written", "yes");
    const Result<Commit> written = db_->Write(batch);
    if (written) {
      EXPECT_EQ(Get("written"), "yes");
      EXPECT_TRUE(db_->Delete("written").ok());
      return true;
    }
    EXPECT_EQ(written.error().code(), StatusCode::kAborted);
    EXPECT_EQ(written.error().sub_code(), SubCode::kCondition);
    EXPECT_NE(written.error().message().find("of keyspace 0"), std::string_view::npos);
    EXPECT_EQ(Get("written"), "(absent)");
    return false;
  };
  EXPECT_TRUE(write([](WriteBatch* batch) { batch->RequireAbsent("absent"); }));
  EXPECT_FALSE(write([](WriteBatch* batch) { batch->RequireAbsent("there"); }));
  EXPECT_TRUE(write([](WriteBatch* batch) { batch->RequirePresent("there"); }));
  EXPECT_FALSE(write([](WriteBatch* batch) { batch->RequirePresent("absent"); }));
  EXPECT_TRUE(write([](WriteBatch* batch) { batch->RequireUnchanged("absent", 0); }));
  EXPECT_FALSE(write([](WriteBatch* batch) { batch->RequireUnchanged("there", 0); }));
  const auto unchanged = [&](WriteBatch* batch) { batch->RequireUnchanged("there", version); };
  EXPECT_TRUE(write(unchanged));
  EXPECT_FALSE(write([&](WriteBatch* batch) {
    unchanged(batch);
    batch->RequirePresent("absent");
  }));
  Put("there", "1");
  EXPECT_FALSE(write(unchanged));
}

TEST_F(TransactionTest, ADeletedKeyIsNotUnchangedEvenWhenItsDeleteIsCompactedAway) {
  Put("k", "1");
  Put("stays", "1");
  const uint64_t version = (*db_->GetEntry("k")).value().version;
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_TRUE(db_->DeleteRange("k", "l").ok());
  ASSERT_TRUE(db_->CompactRange().ok());
  WriteBatch batch;
  batch.RequireUnchanged("k", version);
  batch.Put("k", "2");
  const Result<Commit> written = db_->Write(batch);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().sub_code(), SubCode::kCondition);
}

TEST_F(TransactionTest, AnExpiredKeyIsAbsentToConditions) {
  Put("k", "1", {.ttl = seconds(1)});
  const uint64_t version = (*db_->GetEntry("k")).value().version;
  clock_.Advance(1'000'000);
  WriteBatch unchanged;
  unchanged.RequireUnchanged("k", version);
  unchanged.Put("k", "2");
  EXPECT_EQ(db_->Write(unchanged).error().sub_code(), SubCode::kCondition);
  WriteBatch absent;
  absent.RequireAbsent("k");
  absent.Put("k", "2");
  EXPECT_TRUE(db_->Write(absent).ok());
}

TEST_F(TransactionTest, ConditionsOfATransactionAreLookedAtByTheCommit) {
  Transaction holds = Begin();
  Transaction fails = Begin();
  WriteBatch absent;
  absent.RequireAbsent("k");
  absent.Put("k", "v");
  for (Transaction* tx : {&holds, &fails}) {
    EXPECT_EQ(Get(*tx, "other"), "(absent)");
    ASSERT_TRUE(tx->Write(absent).ok());
  }
  ExpectCommitted(holds);
  const Result<Commit> failed = fails.Commit();
  EXPECT_EQ(failed.error().code(), StatusCode::kAborted);
}

// Reads from one moment and conditions at another are no serial order.
TEST_F(TransactionTest, ACommitOfConditionsAloneLooksAtReadsToo) {
  Put("read", "1");
  Transaction tx = Begin();
  EXPECT_EQ(Get(tx, "read"), "1");
  WriteBatch present;
  present.RequirePresent("flag");
  ASSERT_TRUE(tx.Write(present).ok());
  Put("read", "2");
  Put("flag", "");
  EXPECT_EQ(tx.Commit().error().code(), StatusCode::kAborted);
}

// Retries

TEST_F(TransactionTest, TransactRetriesUntilNothingHasChanged) {
  Put("k", "0");
  int calls = 0;
  const Result<Commit> committed = Transact(*db_, [&](Transaction& tx) -> Status {
    ++calls;
    const std::string value = Get(tx, "k");
    if (calls < 4) Put("k", std::to_string(calls));
    return tx.Put("k", value + "!");
  });
  ASSERT_TRUE(committed.ok());
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(Get("k"), "3!");
}

TEST_F(TransactionTest, TransactGivesUpAfterItsAttempts) {
  int calls = 0;
  const auto interfere = [&](Transaction& tx) -> Status {
    ++calls;
    EXPECT_EQ(Get(tx, "k"), Get("k"));
    Put("k", std::to_string(calls));
    return tx.Put("k", "mine");
  };
  const Result<Commit> committed =
      Transact(*db_, interfere, {.attempts = 5, .backoff = std::chrono::microseconds(1)});
  EXPECT_EQ(committed.error().code(), StatusCode::kAborted);
  EXPECT_EQ(calls, 5);
}

TEST_F(TransactionTest, TransactDoesNotRetryOtherErrors) {
  int calls = 0;
  const Result<Commit> committed = Transact(*db_, [&](Transaction& tx) {
    ++calls;
    EXPECT_TRUE(tx.Put("k", "v").ok());
    return Status(StatusCode::kNotFound, "mine");
  });
  EXPECT_EQ(committed.error().code(), StatusCode::kNotFound);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Get("k"), "(absent)");
}

// Memory

TEST_F(TransactionTest, MemoryLimitMakesTrackingCoarserButMissesNothing) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    const auto key = [](uint64_t number) { return std::to_string(100'000 + number); };
    Transaction tx = Begin({.memory_limit = 4096});
    std::vector<std::string> read;
    for (uint64_t i = 0; i < 300; ++i) {
      read.push_back(key(random.Below(10'000)));
      ASSERT_TRUE(tx.Get(read.back()).ok());
    }
    ASSERT_TRUE(tx.Put("x", "").ok());
    ASSERT_LE(tx.memory_bytes(), 4096u + 512u);
    const std::string& changed = read[random.Below(read.size())];
    Put(changed, "");
    ASSERT_EQ(tx.Commit().error().code(), StatusCode::kAborted);
  }
}

TEST_F(TransactionTest, WritesAboveTheMemoryLimitChangeNothing) {
  Transaction tx = Begin({.memory_limit = 4096});
  ASSERT_TRUE(tx.Put("k", "v").ok());
  const Status refused = tx.Put("large", std::string(3000, 'v'));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.sub_code(), SubCode::kBatchTooLarge);
  EXPECT_EQ(Get(tx, "large"), "(absent)");
  ExpectCommitted(tx);
  EXPECT_EQ(Get("k"), "v");
}

// Snapshots older than the recorded history

enum class Place { kMemtable, kTable, kCompactedTable };

class OldSnapshot : public TransactionTest, public testing::WithParamInterface<Place> {
 protected:
  /// Makes the store forget what the history had, and moves all writes to their place.
  void Settle() {
    ForgetHistory();
    if (GetParam() == Place::kMemtable) return;
    ASSERT_TRUE(db_->Flush().ok());
    if (GetParam() == Place::kTable) return;
    ASSERT_TRUE(db_->CompactRange().ok());
  }
  /// One of several reads of the same things, each with a write.
  Transaction Reading(const std::function<void(Transaction&)>& read) {
    Transaction tx = Begin();
    read(tx);
    EXPECT_TRUE(tx.Put("written", "").ok());
    return tx;
  }
};

TEST_P(OldSnapshot, SeesPutsDeletesAndMerges) {
  for (const char* key : {"delete", "keep", "merge", "put"}) Put(key, CounterBytes(1));
  ASSERT_TRUE(db_->Flush().ok());
  const auto get = [](const char* key) {
    return [key](Transaction& tx) { EXPECT_EQ(Get(tx, key), CounterBytes(1)); };
  };
  Transaction of_put = Reading(get("put"));
  Transaction of_delete = Reading(get("delete"));
  Transaction of_merge = Reading(get("merge"));
  Transaction of_keep = Reading(get("keep"));
  Transaction of_absent =
      Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "absent"), "(absent)"); });
  Put("put", "2");
  Put("absent", "2");
  ASSERT_TRUE(db_->Delete("delete").ok());
  ASSERT_TRUE(db_->Merge("merge", MergeOperator::kAdd, CounterBytes(1)).ok());
  Settle();
  ExpectConflict(of_put, "put");
  ExpectConflict(of_delete, "delete");
  ExpectConflict(of_merge, "merge");
  ExpectConflict(of_absent, "absent");
  ExpectCommitted(of_keep);
}

TEST_P(OldSnapshot, SeesPhantoms) {
  for (const char* key : {"a1", "a5", "b1", "c1", "d1"}) Put(key, "");
  ASSERT_TRUE(db_->Flush().ok());
  const auto walk = [](std::string_view prefix) {
    return [prefix](Transaction& tx) { EXPECT_NE(Walk(tx, {.prefix = prefix}), ""); };
  };
  Transaction of_a = Reading(walk("a"));
  Transaction of_b = Reading(walk("b"));
  Transaction of_c = Reading(walk("c"));
  Transaction of_d = Reading(walk("d"));
  Put("a3", "");
  ASSERT_TRUE(db_->Delete("b1").ok());
  ASSERT_TRUE(db_->Merge("c2", MergeOperator::kAppend, "x").ok());
  Settle();
  ExpectConflict(of_a, "a3");
  ExpectConflict(of_b, "b1");
  ExpectConflict(of_c, "c2");
  ExpectCommitted(of_d);
}

TEST_P(OldSnapshot, SeesRangeDeletes) {
  for (const char* key : {"a1", "a5", "b1"}) Put(key, "");
  ASSERT_TRUE(db_->Flush().ok());
  Transaction point = Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "a5"), ""); });
  Transaction scan =
      Reading([](Transaction& tx) { EXPECT_EQ(Walk(tx, {.prefix = "a"}), "a1 a5 "); });
  Transaction beside = Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "a1"), ""); });
  Transaction other = Reading([](Transaction& tx) { EXPECT_EQ(Walk(tx, {.prefix = "b"}), "b1 "); });
  ASSERT_TRUE(db_->DeleteRange("a2", "a9").ok());
  Settle();
  ExpectConflict(point, "a5");
  ExpectConflict(scan, "of keyspace 0");
  ExpectCommitted(beside);
  ExpectCommitted(other);
}

TEST_P(OldSnapshot, SeesChangesFromBeforeAndAfterTheHistoryEnds) {
  Put("k", "1");
  Put("l", "1");
  Transaction before = Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "k"), "1"); });
  Transaction after = Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "l"), "1"); });
  Put("k", "2");
  Settle();
  Put("l", "2");
  ExpectConflict(before, "k");
  ExpectConflict(after, "l");
}

TEST_P(OldSnapshot, MoreCommitsThanAreLookedAtUnderTheLock) {
  Put("k", "1");
  Transaction changed = Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "k"), "1"); });
  Transaction unchanged = Reading([](Transaction& tx) { EXPECT_EQ(Get(tx, "l"), "(absent)"); });
  Put("k", "2");
  for (int i = 0; i < 1000; ++i) Put("many " + std::to_string(i), "");
  if (GetParam() != Place::kMemtable) {
    ASSERT_TRUE(db_->Flush().ok());
  }
  ExpectConflict(changed, "k");
  ExpectCommitted(unchanged);
}

// What a compaction drops for good must not be missed: the reader of an Update holds no snapshot.
TEST_P(OldSnapshot, AnUpdateDoesNotBringBackWhatWasDeletedMeanwhile) {
  Put("k", "old");
  Put("other", "");
  ASSERT_TRUE(db_->Flush().ok());
  int calls = 0;
  const Result<Commit> updated = db_->Update("k", [&](EntryUpdate& entry) {
    if (++calls == 1) {
      EXPECT_TRUE(db_->DeleteRange("k", "l").ok());
      Settle();
    }
    entry.Set(entry.exists() ? std::string(entry.value()) + "+" : "new");
    return Status();
  });
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ(Get("k"), "new");
}

INSTANTIATE_TEST_SUITE_P(Places, OldSnapshot,
                         testing::Values(Place::kMemtable, Place::kTable, Place::kCompactedTable),
                         [](const auto& place) {
                           switch (place.param) {
                             case Place::kMemtable:
                               return "Memtable";
                             case Place::kTable:
                               return "Table";
                             case Place::kCompactedTable:
                               return "CompactedTable";
                           }
                           return "";
                         });

}  // namespace
}  // namespace basalt::db
