// What a database can do to keys, on the memtable alone, flushed, and compacted: each test runs its
// steps with a flush or compaction wherever there may be one.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "base/test_update.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Number(int64_t number) {
  std::string bytes(8, '\0');
  __builtin_memcpy(bytes.data(), &number, 8);
  return bytes;
}

/// What happens between two steps of a test.
enum class Between { kNothing, kFlush, kCompact, kReopen };

const char* NameOf(Between between) {
  constexpr const char* kNames[] = {"InMemory", "Flushed", "Compacted", "Reopened"};
  return kNames[static_cast<size_t>(between)];
}

class Operations : public testing::TestWithParam<Between> {
 protected:
  void SetUp() override { Open(); }

  db::Environment Environment() {
    db::Environment environment;
    environment.fs = &fs_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = 64 << 10;
    environment.table_bytes = 16 << 10;
    return environment;
  }
  void Open() {
    auto opened = db::OpenDatabase("/db", options_, Environment());
    ASSERT_TRUE(opened) << opened.error().ToString();
    db_ = std::move(*opened);
  }
  void Reopen() {
    ASSERT_TRUE(db_->Close().ok());
    db_.reset();
    while (executor_.RunOne()) {
    }
    Open();
  }
  /// Between two steps.
  void Pass(KeyspaceId keyspace = KeyspaceId::kDefault) {
    switch (GetParam()) {
      case Between::kNothing:
        return;
      case Between::kFlush:
        ASSERT_TRUE(db_->Flush().ok());
        return;
      case Between::kCompact: {
        const Status compacted = db_->CompactRange(std::nullopt, std::nullopt, keyspace);
        ASSERT_TRUE(compacted.ok()) << compacted.ToString();
        return;
      }
      case Between::kReopen:
        Reopen();
    }
  }
  /// The value, or "(absent)", or the code of the error.
  std::string Get(std::string_view key, const ReadOptions& options = {}) {
    const auto value = db_->Get(key, options);
    if (!value) return "(" + value.error().ToString() + ")";
    return *value ? (*value)->ToString() : "(absent)";
  }
  std::string Scan(const ReadOptions& options = {}) {
    std::string forward;
    const auto it = db_->NewIterator(options);
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      forward.append(it->key()).append("=").append(it->value()).append(" ");
    }
    EXPECT_TRUE(it->status().ok()) << it->status().ToString();
    std::string backward;
    for (it->SeekToLast(); it->Valid(); it->Prev()) {
      backward.insert(0, std::string(it->key()) + "=" + std::string(it->value()) + " ");
    }
    EXPECT_EQ(forward, backward);
    return forward;
  }

  io::SimFileSystem fs_;
  io::SimClock clock_;
  io::ManualExecutor executor_{1};
  DBOptions options_{.memory_budget = 4 << 20};
  std::unique_ptr<DB> db_;
};

INSTANTIATE_TEST_SUITE_P(, Operations,
                         testing::Values(Between::kNothing, Between::kFlush, Between::kCompact,
                                         Between::kReopen),
                         [](const auto& param) { return NameOf(param.param); });

TEST_P(Operations, ARangeDeleteHidesWhatIsOlderAndNothingElse) {
  for (const char* key : {"a", "b", "c", "d"}) ASSERT_TRUE(db_->Put(key, "1").ok());
  Pass();
  ASSERT_TRUE(db_->DeleteRange("b", "d").ok());
  Pass();
  EXPECT_EQ(Scan(), "a=1 d=1 ");
  EXPECT_EQ(Get("b"), "(absent)");
  EXPECT_EQ(Get("d"), "1");
  ASSERT_TRUE(db_->Put("c", "2").ok());
  Pass();
  EXPECT_EQ(Scan(), "a=1 c=2 d=1 ");
  EXPECT_EQ(Get("c"), "2");
  ASSERT_TRUE(db_->DeleteRange("d", "b").ok()) << "an empty range is no error";
  EXPECT_EQ(Scan(), "a=1 c=2 d=1 ");
}

TEST_P(Operations, ASnapshotSeesWhatARangeDeleteHides) {
  ASSERT_TRUE(db_->Put("a", "1").ok());
  ASSERT_TRUE(db_->Put("b", "1").ok());
  if (GetParam() == Between::kReopen) return;  // a snapshot does not outlive its database
  Pass();
  {
    const Snapshot snapshot = db_->GetSnapshot().value();
    ASSERT_TRUE(db_->DeleteRange("a", "z").ok());
    Pass();
    EXPECT_EQ(Scan(), "");
    EXPECT_EQ(Scan({.snapshot = &snapshot}), "a=1 b=1 ");
    EXPECT_EQ(Get("a", {.snapshot = &snapshot}), "1");
  }
  Pass();
  ASSERT_TRUE(db_->CompactRange().ok());
  EXPECT_EQ(db_->GetStats().range_deletes, 0U);
  EXPECT_EQ(Scan(), "");
}

// So many that lookups and iterators search in flattened ones.
TEST_P(Operations, ManyRangeDeletesHideWhatTheyCoverAndNoMore) {
  std::map<std::string, std::string> model;
  const auto expected = [](const std::map<std::string, std::string>& contents) {
    std::string text;
    for (const auto& [key, value] : contents)
      text.append(key).append("=").append(value).append(" ");
    return text;
  };
  const auto key = [](uint64_t number) { return "k" + std::to_string(100 + number); };
  struct Moment {
    Snapshot snapshot;
    std::map<std::string, std::string> contents;
  };
  std::vector<Moment> moments;
  base::Random random(1);
  for (uint64_t i = 0; i < 600; ++i) {
    WriteBatch batch;
    const std::string put = key(random.Below(200));
    const std::string value = std::to_string(i);
    batch.Put(put, value);
    model[put] = value;
    const uint64_t first = random.Below(200);
    const std::string begin = key(first);
    const std::string end = key(first + random.Below(5));
    batch.DeleteRange(begin, end);
    model.erase(model.lower_bound(begin), model.lower_bound(end));
    ASSERT_TRUE(db_->Write(batch).ok());
    if (i % 150 == 149) Pass();
    if (i % 40 == 0 && GetParam() != Between::kReopen) {
      moments.push_back({db_->GetSnapshot().value(), model});
    }
  }
  moments.push_back({db_->GetSnapshot().value(), model});
  for (const Moment& moment : moments) {
    const Snapshot* const snapshot = &moment.snapshot;
    EXPECT_EQ(Scan({.snapshot = snapshot}), expected(moment.contents));
    for (uint64_t i = 0; i < 200; ++i) {
      const auto found = moment.contents.find(key(i));
      EXPECT_EQ(Get(key(i), {.snapshot = snapshot}),
                found == moment.contents.end() ? "(absent)" : found->second)
          << key(i);
    }
  }
  EXPECT_EQ(Scan(), expected(model));
}

TEST_P(Operations, RangeDeletesInABatchApplyInOrder) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.DeleteRange("a", "c");
  batch.Put("b", "2");
  ASSERT_TRUE(db_->Write(batch).ok());
  Pass();
  EXPECT_EQ(Scan(), "b=2 ");
}

TEST_P(Operations, WhatARangeDeleteCoversLeavesTheDisk) {
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(db_->Put("key" + std::to_string(i), std::string(100, 'x')).ok());
  }
  ASSERT_TRUE(db_->CompactRange().ok());
  const uint64_t before = db_->ApproximateSize(std::nullopt, std::nullopt).value();
  EXPECT_GT(before, 10'000U);
  ASSERT_TRUE(db_->DeleteRange("key", "kez").ok());
  Pass();
  ASSERT_TRUE(db_->Flush().ok());
  while (executor_.RunOne()) {
  }
  EXPECT_EQ(db_->ApproximateSize(std::nullopt, std::nullopt).value(), 0U);
  EXPECT_EQ(db_->GetStats().range_deletes, 0U);
}

TEST_P(Operations, MergesCombineWithWhatIsThere) {
  ASSERT_TRUE(db_->Merge("sum", MergeOperator::kAdd, Number(5)).ok());
  Pass();
  ASSERT_TRUE(db_->Merge("sum", MergeOperator::kAdd, Number(-7)).ok());
  ASSERT_TRUE(db_->Put("low", Number(10)).ok());
  ASSERT_TRUE(db_->Put("high", Number(10)).ok());
  Pass();
  ASSERT_TRUE(db_->Merge("low", MergeOperator::kMin, Number(3)).ok());
  ASSERT_TRUE(db_->Merge("high", MergeOperator::kMax, Number(3)).ok());
  ASSERT_TRUE(db_->Merge("text", MergeOperator::kAppend, "ab").ok());
  Pass();
  ASSERT_TRUE(db_->Merge("text", MergeOperator::kAppend, "c").ok());
  Pass();
  EXPECT_EQ(Get("sum"), Number(-2));
  EXPECT_EQ(Get("low"), Number(3));
  EXPECT_EQ(Get("high"), Number(10));
  EXPECT_EQ(Get("text"), "abc");
  EXPECT_EQ(Scan(),
            "high=" + Number(10) + " low=" + Number(3) + " sum=" + Number(-2) + " text=abc ");
  ASSERT_TRUE(db_->Delete("text").ok());
  Pass();
  ASSERT_TRUE(db_->Merge("text", MergeOperator::kAppend, "z").ok());
  Pass();
  EXPECT_EQ(Get("text"), "z");
}

TEST_P(Operations, MergesAreFoundWhereverTheirVersionsLie) {
  const std::string filler(24 << 10, 'f');  // two fill a memtable, so that one lies sealed
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    const std::string key = "k" + std::to_string(seed);
    std::string expected = "(absent)";
    std::vector<std::pair<Snapshot, std::string>> snapshots;
    for (int i = 0; i < 200; ++i) {
      const std::string piece = std::to_string(i) + " ";
      const uint64_t kind = random.Below(100);
      if (kind < 2) {
        ASSERT_TRUE(db_->Put(key, piece).ok());
        expected = piece;
      } else if (kind < 4) {
        ASSERT_TRUE(db_->Delete(key).ok());
        expected = "(absent)";
      } else if (kind < 6) {
        ASSERT_TRUE(db_->DeleteRange(key, key + "~").ok());
        expected = "(absent)";
      } else if (kind < 10) {
        Pass();
      } else if (kind < 15) {
        ASSERT_TRUE(db_->Put("filler", filler).ok());
      } else if (kind < 20 && GetParam() != Between::kReopen) {
        snapshots.emplace_back(db_->GetSnapshot().value(), expected);
      } else {
        ASSERT_TRUE(db_->Merge(key, MergeOperator::kAppend, piece).ok());
        expected = (expected == "(absent)" ? "" : expected) + piece;
      }
      ASSERT_EQ(Get(key), expected);
    }
    for (const auto& [snapshot, seen] : snapshots) {
      ASSERT_EQ(Get(key, {.snapshot = &snapshot}), seen);
    }
  }
}

TEST_P(Operations, AMergeThatDoesNotFitIsToldAndLosesNothing) {
  ASSERT_TRUE(db_->Put("a", "text").ok());
  Pass();
  ASSERT_TRUE(db_->Merge("a", MergeOperator::kAdd, Number(1)).ok());
  Pass();
  EXPECT_EQ(db_->Get("a").error().code(), StatusCode::kFailedPrecondition);
  const auto it = db_->NewIterator();
  it->SeekToFirst();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(it->status().message().find("key 'a'"), std::string_view::npos)
      << it->status().ToString();
  const auto keys = db_->NewIterator({.keys_only = true});
  keys->SeekToFirst();
  ASSERT_TRUE(keys->Valid()) << keys->status().ToString();
  EXPECT_EQ(keys->key(), "a");
  keys->SeekToLast();
  EXPECT_TRUE(keys->Valid()) << keys->status().ToString();
  ASSERT_TRUE(db_->Put("a", Number(1)).ok());
  Pass();
  EXPECT_EQ(Get("a"), Number(1));
  EXPECT_EQ(db_->Merge("a", MergeOperator::kAdd, "one").code(), StatusCode::kInvalidArgument);
}

TEST_P(Operations, ExpiryIsExact) {
  ASSERT_TRUE(db_->Put("a", "1", {.ttl = seconds(10)}).ok());
  ASSERT_TRUE(db_->Put("b", "1").ok());
  Pass();
  clock_.Advance(9'999'000);
  Pass();
  EXPECT_EQ(Scan(), "a=1 b=1 ");
  clock_.Advance(1'000);
  Pass();
  EXPECT_EQ(Scan(), "b=1 ");
  EXPECT_EQ(Get("a"), "(absent)");
  EXPECT_EQ(db_->Put("a", "1", {.ttl = milliseconds(-1)}).code(), StatusCode::kInvalidArgument);
}

TEST_P(Operations, AnExpiredValueHidesOlderOnesForEver) {
  ASSERT_TRUE(db_->Put("a", "old").ok());
  Pass();
  ASSERT_TRUE(db_->Put("a", "new", {.ttl = seconds(1)}).ok());
  Pass();
  clock_.Advance(2'000'000);
  EXPECT_EQ(Get("a"), "(absent)");
  Pass();
  Pass();
  EXPECT_EQ(Get("a"), "(absent)");
  EXPECT_EQ(Scan(), "");
  EXPECT_TRUE(db_->PutIfAbsent("a", "third").value());
  Pass();
  EXPECT_EQ(Get("a"), "third");
}

TEST_P(Operations, ExpiryOutlivesAClockThatGoesBack) {
  ASSERT_TRUE(db_->Put("a", "1", {.ttl = seconds(1)}).ok());
  clock_.Advance(2'000'000);
  EXPECT_EQ(Get("a"), "(absent)");
  ASSERT_TRUE(db_->Put("b", "1").ok());
  ASSERT_TRUE(db_->Flush().ok());
  clock_.SetWall(clock_.WallMillis() - 3'600'000);
  Pass();
  EXPECT_EQ(Get("a"), "(absent)");
}

TEST_P(Operations, ValuesExpireAlsoAfterAJumpOfTheClockAndBack) {
  const uint64_t before = clock_.WallMillis();
  ASSERT_TRUE(db_->Put("old", "1", {.ttl = seconds(10)}).ok());
  clock_.SetWall(before + 365ULL * 86'400'000);
  ASSERT_TRUE(db_->Put("a", "1", {.ttl = seconds(10)}).ok());
  EXPECT_EQ(Get("old"), "(absent)");
  clock_.SetWall(before);
  Pass();
  ASSERT_TRUE(db_->Put("b", "1", {.ttl = seconds(20)}).ok());
  clock_.Advance(9'999'000);
  Pass();
  EXPECT_EQ(Scan(), "a=1 b=1 ") << "what has expired does not come back";
  clock_.Advance(1'000);
  EXPECT_EQ(Scan(), "b=1 ");
  Pass();
  clock_.Advance(9'999'000);
  Pass();
  EXPECT_EQ(Scan(), "b=1 ");
  clock_.Advance(1'000);
  Pass();
  EXPECT_EQ(Scan(), "");
}

TEST_P(Operations, MergeAndUpdateKeepTheExpiry) {
  ASSERT_TRUE(db_->Put("a", "1", {.ttl = seconds(10)}).ok());
  ASSERT_TRUE(db_->Put("b", "1", {.ttl = seconds(10)}).ok());
  Pass();
  ASSERT_TRUE(db_->Merge("a", MergeOperator::kAppend, "2").ok());
  ASSERT_TRUE(db_->Update("b", base::ByValue([](std::optional<std::string_view> value) {
                            return std::optional<std::string>(std::string(*value) + "3");
                          }))
                  .ok());
  Pass();
  EXPECT_EQ(Scan(), "a=12 b=13 ");
  clock_.Advance(10'000'000);
  Pass();
  EXPECT_EQ(Scan(), "");
  // What comes after the end begins anew, without an end.
  ASSERT_TRUE(db_->Merge("a", MergeOperator::kAppend, "4").ok());
  Pass();
  EXPECT_EQ(Scan(), "a=4 ");
  clock_.Advance(1'000'000'000);
  Pass();
  EXPECT_EQ(Scan(), "a=4 ");
}

TEST_P(Operations, AnIteratorSaysWhenWhatItShowsExpires) {
  const KeyspaceId apart = db_->CreateKeyspace("apart").value();
  const WallTime start = WallTime(milliseconds(clock_.WallMillis()));
  ASSERT_TRUE(db_->Put("a", "1", {.ttl = seconds(10)}).ok());
  ASSERT_TRUE(db_->Put("b", "1").ok());
  ASSERT_TRUE(db_->Put("c", "1", {.ttl = seconds(20)}).ok());
  ASSERT_TRUE(db_->Put("d", "1", {.ttl = seconds(30)}).ok());
  ASSERT_TRUE(db_->Put("e", "1", {.ttl = seconds(40)}).ok());
  ASSERT_TRUE(db_->Put("a", "1", {.keyspace = apart, .ttl = milliseconds(1)}).ok());
  Pass();
  const auto before = db_->GetSnapshot();
  ASSERT_TRUE(before);
  ASSERT_TRUE(db_->Merge("c", MergeOperator::kAppend, "2").ok());
  ASSERT_TRUE(db_->Put("d", "2").ok());
  ASSERT_TRUE(db_->PutIfAbsent("f", "1", {.ttl = seconds(50)}).value());
  ASSERT_TRUE(db_->Merge("g", MergeOperator::kAppend, "1").ok());
  const auto expect = [&](const std::vector<std::optional<seconds>>& ttls, ReadOptions options) {
    std::vector<std::optional<WallTime>> expected;
    for (const auto& ttl : ttls) {
      expected.push_back(ttl ? std::optional(start + *ttl) : std::nullopt);
    }
    for (const bool keys_only : {false, true}) {
      options.keys_only = keys_only;
      const auto it = db_->NewIterator(options);
      std::vector<std::optional<WallTime>> forward;
      for (it->SeekToFirst(); it->Valid(); it->Next()) forward.push_back(it->expiry());
      EXPECT_EQ(forward, expected);
      std::vector<std::optional<WallTime>> backward;
      for (it->SeekToLast(); it->Valid(); it->Prev()) backward.push_back(it->expiry());
      std::ranges::reverse(backward);
      EXPECT_EQ(backward, expected);
    }
  };
  const std::optional<seconds> never;
  expect({seconds(10), never, seconds(20), seconds(30), seconds(40)}, {.snapshot = &*before});
  Pass();
  expect({seconds(10), never, seconds(20), never, seconds(40), seconds(50), never}, {});
  clock_.Advance(15'000'000);
  expect({never, seconds(20), never, seconds(40), seconds(50), never}, {});
}

TEST_P(Operations, APutUntilAMomentExpiresAtIt) {
  options_.default_ttl = seconds(1);
  Reopen();
  const WallTime expiry = WallTime(milliseconds(clock_.WallMillis())) + seconds(10);
  ASSERT_TRUE(db_->Put("hidden", "1", {.ttl = seconds(100)}).ok());
  Pass();
  clock_.Advance(7'654'321);
  WriteBatch batch;
  batch.Put("a", "1", {.expiry = expiry});
  batch.Put("hidden", "2", {.expiry = expiry - seconds(5)});
  batch.Put("late", "1", {.expiry = WallTime::max()});
  batch.Put("b", "1");
  ASSERT_TRUE(db_->Write(batch).ok());
  Pass();
  EXPECT_EQ(Get("hidden"), "(absent)");
  EXPECT_EQ(Scan(), "a=1 b=1 late=1 ");
  const auto it = db_->NewIterator();
  it->SeekToLast();
  EXPECT_EQ(it->expiry(), WallTime::max());
  it->SeekToFirst();
  EXPECT_EQ(it->expiry(), expiry);
  clock_.SetWall(static_cast<uint64_t>(expiry.time_since_epoch().count()) - 1);
  EXPECT_EQ(Scan(), "a=1 late=1 ");
  clock_.Advance(1'000);
  EXPECT_EQ(Scan(), "late=1 ");
  Pass();
  EXPECT_EQ(Get("hidden"), "(absent)");
}

TEST_P(Operations, PutIfAbsentPutsOnce) {
  EXPECT_TRUE(db_->PutIfAbsent("a", "1").value());
  Pass();
  EXPECT_FALSE(db_->PutIfAbsent("a", "2").value());
  EXPECT_EQ(Get("a"), "1");
  ASSERT_TRUE(db_->Delete("a").ok());
  Pass();
  EXPECT_TRUE(db_->PutIfAbsent("a", "3", {.ttl = seconds(1)}).value());
  Pass();
  EXPECT_EQ(Get("a"), "3");
  clock_.Advance(1'000'000);
  EXPECT_EQ(Get("a"), "(absent)");
}

TEST_P(Operations, KeyspacesDoNotMix) {
  const KeyspaceId users = db_->CreateKeyspace("users").value();
  const KeyspaceId mails = db_->CreateKeyspace("mails").value();
  EXPECT_EQ(db_->CreateKeyspace("users").error().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(db_->CreateKeyspace("").error().code(), StatusCode::kInvalidArgument);
  WriteBatch batch;
  batch.Put("a", "default");
  batch.Put("a", "user", {.keyspace = users});
  batch.Put("a", "mail", {.keyspace = mails});
  ASSERT_TRUE(db_->Write(batch).ok());
  Pass(users);
  EXPECT_EQ(Get("a"), "default");
  EXPECT_EQ(Get("a", {.keyspace = users}), "user");
  ASSERT_TRUE(db_->DeleteRange("a", "z", {.keyspace = users}).ok());
  ASSERT_TRUE(db_->Put("b", "user", {.keyspace = users}).ok());
  Pass(users);
  EXPECT_EQ(Scan(), "a=default ");
  EXPECT_EQ(Scan({.keyspace = users}), "b=user ");
  EXPECT_EQ(Scan({.keyspace = mails}), "a=mail ");
  EXPECT_EQ(db_->OpenKeyspace("mails").value(), mails);
  EXPECT_EQ(db_->ListKeyspaces().value().size(), 3U);
}

TEST_P(Operations, ADroppedKeyspaceIsGoneAndItsNameIsFree) {
  const KeyspaceId first = db_->CreateKeyspace("temporary").value();
  ASSERT_TRUE(db_->Put("a", "1", {.keyspace = first}).ok());
  Pass(first);
  const auto before = db_->NewIterator({.keyspace = first});
  ASSERT_TRUE(db_->DropKeyspace(first).ok());
  before->SeekToFirst();
  EXPECT_TRUE(before->Valid()) << "an open iterator keeps what it sees";
  if (GetParam() != Between::kCompact) Pass();
  EXPECT_EQ(db_->Get("a", {.keyspace = first}).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(db_->Put("a", "1", {.keyspace = first}).code(), StatusCode::kNotFound);
  EXPECT_EQ(db_->NewIterator({.keyspace = first})->status().code(), StatusCode::kNotFound);
  EXPECT_EQ(db_->OpenKeyspace("temporary").error().code(), StatusCode::kNotFound);
  const KeyspaceId second = db_->CreateKeyspace("temporary").value();
  EXPECT_NE(second, first) << "ids are never used again";
  EXPECT_EQ(Scan({.keyspace = second}), "");
  EXPECT_EQ(db_->DropKeyspace(KeyspaceId::kDefault).code(), StatusCode::kInvalidArgument);
}

TEST_P(Operations, AKeyspaceWithoutALogLosesWhatWasNotFlushed) {
  const KeyspaceId sessions =
      db_->CreateKeyspace("sessions", {.durability = Durability::kMemory}).value();
  ASSERT_TRUE(db_->Put("a", "1", {.keyspace = sessions}).ok());
  ASSERT_TRUE(db_->Flush().ok());
  ASSERT_TRUE(db_->Put("b", "1", {.keyspace = sessions}).ok());
  ASSERT_TRUE(db_->Put("c", "1").ok());
  EXPECT_EQ(Scan({.keyspace = sessions}), "a=1 b=1 ");
  db_.reset();  // without Close, as if killed
  while (executor_.RunOne()) {
  }
  Open();
  EXPECT_EQ(Scan({.keyspace = sessions}), "a=1 ");
  EXPECT_EQ(Scan(), "c=1 ");
  ASSERT_TRUE(db_->Put("d", "1", {.keyspace = sessions}).ok());
  Reopen();
  EXPECT_EQ(Scan({.keyspace = sessions}), "a=1 d=1 ") << "Close flushes";
  WriteBatch mixed;
  mixed.Put("a", "1");
  mixed.Put("a", "1", {.keyspace = sessions});
  EXPECT_EQ(db_->Write(mixed).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(db_->Put("a", "1", {.durability = Durability::kPower, .keyspace = sessions}).code(),
            StatusCode::kInvalidArgument);
}

TEST_P(Operations, AKeyspaceOrWriteAtKIntervalSurvivesAKilledProcess) {
  const KeyspaceId events =
      db_->CreateKeyspace("events", {.durability = Durability::kInterval}).value();
  ASSERT_TRUE(db_->Put("a", "1", {.keyspace = events}).ok());
  ASSERT_TRUE(db_->Put("b", "1", {.durability = Durability::kInterval}).ok());
  db_.reset();  // without Close, as if killed
  while (executor_.RunOne()) {
  }
  options_.durability = Durability::kInterval;
  Open();
  EXPECT_EQ(Scan({.keyspace = events}), "a=1 ");
  EXPECT_EQ(Scan(), "b=1 ");
}

TEST_P(Operations, ADatabaseWithoutALogKeepsWhatIsFlushedOrClosed) {
  options_.durability = Durability::kMemory;
  Reopen();
  ASSERT_TRUE(db_->Put("a", "1").ok());
  ASSERT_TRUE(db_->Sync().ok()) << "flushes what has no log";
  ASSERT_TRUE(db_->Put("b", "1").ok());
  EXPECT_EQ(db_->GetStats().log_bytes_written, 0U);
  EXPECT_EQ(db_->CreateKeyspace("x", {.durability = Durability::kPower}).error().code(),
            StatusCode::kInvalidArgument);
  db_.reset();  // without Close
  while (executor_.RunOne()) {
  }
  Open();
  EXPECT_EQ(Scan(), "a=1 ");
  ASSERT_TRUE(db_->Put("c", "1").ok());
  Reopen();
  EXPECT_EQ(Scan(), "a=1 c=1 ");
}

TEST_P(Operations, OptionsOfABatchAreItsRecordsOwn) {
  WriteBatch batch;
  batch.Put("a", "1");
  EXPECT_EQ(db_->Write(batch, {.ttl = seconds(1)}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(db_->Write(batch, {.keyspace = KeyspaceId{7}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(db_->Delete("a", {.ttl = seconds(1)}).code(), StatusCode::kInvalidArgument);
}

TEST_P(Operations, TheDefaultTtlIsForPutsThatNameNone) {
  options_.default_ttl = seconds(5);
  Reopen();
  ASSERT_TRUE(db_->Put("a", "1").ok());
  ASSERT_TRUE(db_->Put("b", "1", {.ttl = seconds(50)}).ok());
  Pass();
  clock_.Advance(5'000'000);
  Pass();
  EXPECT_EQ(Scan(), "b=1 ");
}

class IdleDatabase : public testing::Test {
 protected:
  IdleDatabase() {
    environment_.fs = &fs_;
    environment_.clock = &clock_;
    environment_.executor = &executor_;
    Open();
  }
  void Open(DBOptions options = {}) {
    options.memory_budget = 64 << 20;
    db_ = db::OpenDatabase("/db", options, environment_).value();
  }
  void Fill(milliseconds ttl) {
    for (int i = 0; i < 1'000; ++i) {
      ASSERT_TRUE(db_->Put("key" + std::to_string(i), "x", {.ttl = ttl}).ok());
    }
    ASSERT_TRUE(db_->Flush().ok());
    executor_.RunAll();
  }
  /// Nobody calls meanwhile. Gives how many jobs have run.
  size_t Wait(milliseconds time) {
    clock_.Advance(1'000 * static_cast<uint64_t>(time.count()));
    executor_.Elapse(time);
    return executor_.RunAll();
  }
  uint64_t Records() const {
    uint64_t records = 0;
    for (const LevelStats& level : db_->GetStats().levels) records += level.records;
    return records;
  }

  io::SimFileSystem fs_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  db::Environment environment_;
  std::unique_ptr<DB> db_;
};

TEST_F(IdleDatabase, GivesBackWhatHasExpired) {
  Fill(seconds(100));
  EXPECT_EQ(Wait(milliseconds(99'999)), 0U);
  EXPECT_EQ(Records(), 1'000U);
  EXPECT_GT(Wait(milliseconds(1)), 0U);
  EXPECT_EQ(Records(), 0U);
  EXPECT_EQ(Wait(std::chrono::hours(10'000)), 0U) << "nothing is left that time could change";
}

TEST_F(IdleDatabase, LooksAgainEachHourForClocksMayDriftApart) {
  Fill(std::chrono::hours(30));
  EXPECT_EQ(Wait(std::chrono::hours(1)), 1U);
  clock_.Advance(1'000'000ULL * 3'600 * 29);  // the machine sleeps
  EXPECT_EQ(Records(), 1'000U);
  executor_.Elapse(std::chrono::hours(1));
  executor_.RunAll();
  EXPECT_EQ(Records(), 0U);
}

TEST_F(IdleDatabase, KnowsAfterOpeningWhatIsDue) {
  Fill(seconds(100));
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  EXPECT_EQ(Wait(seconds(50)), 0U) << "a closed database has no timer";
  Open();
  Wait(seconds(50));
  EXPECT_EQ(Records(), 0U);
}

TEST_F(IdleDatabase, RewritesItsTablesAfterAMonth) {
  Fill(milliseconds(0));
  const uint64_t compactions = db_->GetStats().compactions;
  for (int hour = 0; hour < 24 * 30 - 1; ++hour) Wait(std::chrono::hours(1));
  EXPECT_EQ(db_->GetStats().compactions, compactions);
  Wait(std::chrono::hours(1));
  EXPECT_EQ(db_->GetStats().compactions, compactions + 1);
  EXPECT_EQ(Records(), 1'000U);
}

TEST_F(IdleDatabase, IsNotKeptByItsTimer) {
  Fill(seconds(100));
  const auto it = db_->NewIterator();
  db_.reset();  // the iterator keeps it
  EXPECT_EQ(Wait(seconds(100)), 0U);
  it->SeekToFirst();
  EXPECT_TRUE(it->Valid());
  // Nothing else does: the lock is free.
  const auto reader = db::OpenDatabaseReadOnly("/db", {}, environment_).value();
  EXPECT_EQ(Wait(seconds(100)), 0U);
}

TEST_F(IdleDatabase, MayBeDestroyedByACallbackOfItsOwnJob) {
  db_.reset();
  DBOptions options;
  options.on_event = [this](const Event& event) {
    if (event.kind == Event::Kind::kCompaction) db_.reset();
  };
  Open(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(db_->Put("a" + std::to_string(i), "stays").ok());
  Fill(seconds(100));
  EXPECT_GT(Wait(seconds(100)), 0U);
  EXPECT_EQ(db_, nullptr);
  Open();  // its timer, of a day, does not hold the lock
  EXPECT_EQ(Records(), 100U);
}

TEST(Scans, DeletesThatAScanHasToPassAreFlushedAndCompactedAway) {
  io::SimFileSystem fs;
  io::SimClock clock;
  io::ManualExecutor executor{1};
  db::Environment environment;
  environment.fs = &fs;
  environment.clock = &clock;
  environment.executor = &executor;
  const auto db = db::OpenDatabase("/db", {.memory_budget = 64 << 20}, environment).value();
  const auto key_of = [](int i) { return std::to_string(1'000'000 + i); };
  for (int i = 0; i < 40'000; ++i) ASSERT_TRUE(db->Put(key_of(i), "x").ok());
  ASSERT_TRUE(db->CompactRange().ok());
  for (int i = 1000; i < 30'000; ++i) ASSERT_TRUE(db->Delete(key_of(i)).ok());
  const auto scan = [&] {
    const auto it = db->NewIterator();
    it->Seek(key_of(1000));
    return it->Valid() ? std::string(it->key()) : "(none)";
  };
  EXPECT_EQ(scan(), key_of(30'000));
  while (executor.RunOne()) {
  }
  EXPECT_EQ(scan(), key_of(30'000));
  uint64_t records = 0;
  for (const LevelStats& level : db->GetStats().levels) records += level.records;
  EXPECT_EQ(records, 11'000U) << "deletes, and what they hide, are gone";
}

TEST_P(Operations, OpenReadOnlyReadsAndWritesNothing) {
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(db_->Put("key" + std::to_string(i), std::string(100, 'x')).ok());
  }
  Pass();
  ASSERT_TRUE(db_->DeleteRange("key1", "key2").ok());
  ASSERT_TRUE(db_->Put("key1", "new").ok());
  const std::string expected = Scan();
  const auto reader = db::OpenDatabaseReadOnly("/db", {.memory_budget = 1 << 20}, Environment());
  ASSERT_TRUE(reader) << reader.error().ToString();
  // What is written from now on is not seen.
  ASSERT_TRUE(db_->Put("key2", "newer").ok());
  ASSERT_TRUE(db_->CompactRange().ok());
  std::string found;
  const auto it = (*reader)->NewIterator();
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    found.append(it->key()).append("=").append(it->value()).append(" ");
  }
  ASSERT_TRUE(it->status().ok()) << it->status().ToString();
  EXPECT_TRUE(found == expected);
  EXPECT_EQ((*reader)->Get("key1").value()->ToString(), "new");
  for (const Status& status :
       {Status((*reader)->Put("a", "1")), (*reader)->Flush(), (*reader)->CompactRange(),
        (*reader)->Sync(), (*reader)->CreateKeyspace("new").status()}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
  }
  EXPECT_EQ((*reader)->GetStats().memory_budget, uint64_t{1} << 20);
  EXPECT_TRUE((*reader)->Close().ok());
}

TEST(OpenReadOnly, LeavesADirectoryAsItIs) {
  io::SimFileSystem fs;
  io::SimClock clock;
  io::ManualExecutor executor{1};
  db::Environment environment;
  environment.fs = &fs;
  environment.clock = &clock;
  environment.executor = &executor;
  EXPECT_EQ(db::OpenDatabaseReadOnly("/db", {}, environment).error().code(), StatusCode::kNotFound);
  ASSERT_TRUE(db::OpenDatabase("/db", {}, environment).value()->Put("a", "1").ok());
  const auto before = fs.List("/db").value();
  uint64_t changes = 0;
  fs.SetObserver([&](uint64_t, std::string_view operation, std::string_view) {
    const bool reads = operation == "open" || operation == "read" || operation == "list" ||
                       operation == "stat" || operation == "size" || operation == "map" ||
                       operation == "mark";
    changes += reads ? 0 : 1;
  });
  {
    const auto reader = db::OpenDatabaseReadOnly("/db", {}, environment).value();
    EXPECT_EQ(reader->Get("a").value()->ToString(), "1");
  }
  fs.SetObserver({});
  EXPECT_EQ(changes, 0U);
  EXPECT_EQ(fs.List("/db").value(), before);
}

TEST(Destroy, RemovesADatabaseAndNothingElse) {
  const std::string path = testing::TempDir() + "/destroy_test";
  ASSERT_TRUE(DB::Open(path).value()->Put("a", "1").ok());
  {
    const auto open = DB::Open(path).value();
    EXPECT_EQ(DB::Destroy(path).code(), StatusCode::kBusy);
  }
  ASSERT_TRUE(DB::Destroy(path).ok());
  EXPECT_EQ(DB::Destroy(path).code(), StatusCode::kNotFound);
  EXPECT_EQ(DB::Open(path, {.create_if_missing = false}).error().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace basalt
