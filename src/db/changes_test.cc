// Changes that are followed: by a listener, by a watch, and by a reader of the log.

#include "basalt/changes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "base/test_update.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

/// "lsn:first-last" and each record as text.
std::string TextOf(const CommittedBatch& batch) {
  std::string text = std::to_string(batch.commit().lsn) + ':' +
                     std::to_string(batch.first_sequence()) + '-' +
                     std::to_string(batch.commit().sequence);
  EXPECT_TRUE(batch
                  .ForEach([&](const WriteBatch::Record& record) {
                    text += ' ' + std::to_string(static_cast<int>(record.kind)) + ' ' +
                            std::string(record.key) + '=' + std::string(record.value);
                    if (record.expiry) {
                      text += '@' + std::to_string(record.expiry->time_since_epoch().count());
                    }
                    return Status();
                  })
                  .ok());
  return text;
}

std::vector<std::string> ReadRest(ChangeReader* reader) {
  std::vector<std::string> batches;
  while (true) {
    const Result<bool> has_next = reader->Next();
    EXPECT_TRUE(has_next) << has_next.error().ToString();
    if (!has_next || !*has_next) return batches;
    batches.push_back(TextOf(reader->batch()));
  }
}

class ChangesTest : public testing::Test {
 protected:
  void Open(uint64_t log_keep_bytes = uint64_t{1} << 30) {
    Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    db_ =
        OpenDatabase("/db", {.memory_budget = uint64_t{1} << 20, .log_keep_bytes = log_keep_bytes},
                     environment)
            .value();
  }
  Subscription Listen(std::vector<std::string>* heard) {
    return db_
        ->AddListener([heard](const CommittedBatch& batch) { heard->push_back(TextOf(batch)); })
        .value();
  }
  /// A random write of any kind.
  void Write(base::Random* random) {
    const std::string key = "key" + std::to_string(random->Below(50));
    const std::string value(random->Below(3'000), static_cast<char>('a' + random->Below(26)));
    Status status;
    switch (random->Below(7)) {
      case 0:
        status = db_->Delete(key);
        break;
      case 1:
        status = db_->DeleteRange(key, key + "z");
        break;
      case 2:
        status = db_->Merge("list" + key, MergeOperator::kAppend, value.substr(0, 20));
        break;
      case 3: {
        WriteBatch batch;
        for (int i = 0; i < 5; ++i) batch.Put(key + std::to_string(i), value.substr(0, 200));
        batch.Delete(key);
        status = db_->Write(batch);
        break;
      }
      case 4:
        status = db_->Update(key, [&](EntryUpdate& entry) {
          entry.Set(std::string(entry.value().substr(0, 10)) + "updated");
          return Status();
        });
        break;
      default:
        status = db_->Put(key, value, {.ttl = std::chrono::milliseconds(random->Below(2) * 5'000)});
        break;
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  io::SimFileSystem disk_;
  io::SimClock clock_{1'764'000'000'000};
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
};

TEST_F(ChangesTest, AListenerReceivesEachBatchInOrderAsItWasApplied) {
  Open();
  ASSERT_TRUE(db_->Put("before", "x").ok());
  std::vector<std::string> heard;
  Subscription subscription = Listen(&heard);
  EXPECT_EQ(subscription.sequence(), 1U);
  const Commit put = db_->Put("a", "1", {.ttl = std::chrono::milliseconds(5)}).value();
  WriteBatch batch;
  batch.Put("b", "2");
  batch.DeleteRange("c", "d");
  const Commit written = db_->Write(batch).value();
  EXPECT_EQ(put.sequence, 2U);
  EXPECT_EQ(written.sequence, 4U);
  EXPECT_EQ(heard, (std::vector<std::string>{"2:2-2 1 a=1@1764000000005", "3:3-4 1 b=2 3 c=d"}));
  subscription = Subscription();
  ASSERT_TRUE(db_->Delete("a").ok());
  EXPECT_EQ(heard.size(), 2U);
}

TEST_F(ChangesTest, AListenerSeesInTheStoreWhatItHears) {
  Open();
  std::string seen;
  const Subscription subscription = db_->AddListener([&](const CommittedBatch&) {
                                         const MaybeValue value = db_->Get("a").value();
                                         seen = std::string(value->view());
                                       })
                                        .value();
  ASSERT_TRUE(db_->Put("a", "1").ok());
  EXPECT_EQ(seen, "1");
  ASSERT_TRUE(db_->Put("a", "2").ok());
  EXPECT_EQ(seen, "2");
}

TEST_F(ChangesTest, ListenersOfSeveralWritersHearOneOrder) {
  Open();
  std::vector<std::string> heard[2];
  std::vector<Subscription> subscriptions;
  for (auto& each : heard) subscriptions.push_back(Listen(&each));
  const auto reader = db_->Changes(1).value();
  std::vector<std::thread> threads;
  constexpr int kThreads = 4;
  constexpr int kWrites = 200;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kWrites; ++i) {
        const std::string key = std::to_string(thread) + "/" + std::to_string(i);
        EXPECT_TRUE(db_->Put(key, "value").ok());
      }
    });
  }
  std::vector<std::string> read;
  while (read.size() < kThreads * kWrites) {
    for (std::string& batch : ReadRest(reader.get())) read.push_back(std::move(batch));
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heard[0].size(), static_cast<size_t>(kThreads * kWrites));
  EXPECT_TRUE(heard[0] == heard[1]);
  EXPECT_TRUE(heard[0] == read);
}

TEST_F(ChangesTest, AWatchSeesItsKeyOrPrefixAlone) {
  Open();
  std::vector<std::string> key_changes;
  std::vector<std::string> prefix_changes;
  const auto record = [](std::vector<std::string>* changes) {
    return [changes](const Change& change) {
      changes->push_back(std::to_string(static_cast<int>(change.kind)) + ' ' +
                         std::string(change.key) + '=' + std::string(change.value) + ' ' +
                         std::to_string(change.version));
    };
  };
  const Subscription of_key = db_->Watch({.key = "user/1"}, record(&key_changes)).value();
  const Subscription of_prefix =
      db_->Watch({.key = "user/", .is_prefix = true}, record(&prefix_changes)).value();
  ASSERT_TRUE(db_->Put("user/1", "a").ok());
  ASSERT_TRUE(db_->Put("user/2", "b").ok());
  ASSERT_TRUE(db_->Put("other", "c").ok());
  ASSERT_TRUE(db_->DeleteRange("t", "v").ok());
  ASSERT_TRUE(db_->DeleteRange("user/2", "user/3").ok());
  EXPECT_EQ(key_changes, (std::vector<std::string>{"1 user/1=a 1", "3 t=v 4"}));
  EXPECT_EQ(prefix_changes, (std::vector<std::string>{"1 user/1=a 1", "1 user/2=b 2", "3 t=v 4",
                                                      "3 user/2=user/3 5"}));
}

TEST_F(ChangesTest, AReaderSeesEachBatchOnceThroughFlushesAndOpenings) {
  const uint64_t seed = 5;
  base::Random random(seed);
  std::vector<std::string> heard;
  uint64_t next_lsn = 1;
  std::vector<std::string> read;
  for (int opening = 0; opening < 5; ++opening) {
    Open();
    const Subscription subscription = Listen(&heard);
    const auto reader = db_->Changes(next_lsn).value();
    for (int i = 0; i < 400; ++i) {
      ASSERT_NO_FATAL_FAILURE(Write(&random)) << "seed " << seed;
      if (random.OneIn(40)) {
        for (std::string& batch : ReadRest(reader.get())) read.push_back(std::move(batch));
      }
      if (random.OneIn(60)) {
        ASSERT_TRUE(db_->Flush().ok());
      }
      executor_.RunAll();
    }
    if (opening % 2 == 0) {  // Else the rest is read after the next opening.
      for (std::string& batch : ReadRest(reader.get())) read.push_back(std::move(batch));
    }
    next_lsn = read.empty() ? 1 : std::stoull(read.back()) + 1;
    if (opening == 1) {
      ASSERT_TRUE(db_->Close().ok());  // Else it ends as a killed process does.
      EXPECT_EQ(reader->Next().error().code(), StatusCode::kFailedPrecondition);
    }
    db_.reset();
  }
  Open();
  for (std::string& batch : ReadRest(db_->Changes(next_lsn).value().get())) {
    read.push_back(std::move(batch));
  }
  EXPECT_EQ(read.size(), heard.size());
  EXPECT_TRUE(read == heard);
  EXPECT_TRUE(ReadRest(db_->Changes(1).value().get()) == heard);
}

TEST_F(ChangesTest, WhatIsGoneFromTheLogIsOutOfRange) {
  Open(0);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(db_->Put("key", std::to_string(i)).ok());
  ASSERT_TRUE(db_->Flush().ok());
  executor_.RunAll();
  ASSERT_TRUE(db_->Put("key", "last").ok());
  const auto gone = db_->Changes(3).value()->Next();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(gone.error().sub_code(), SubCode::kLogGone);
  EXPECT_EQ(ReadRest(db_->Changes(11).value().get()),
            (std::vector<std::string>{"11:11-11 1 key=last"}));
  EXPECT_TRUE(ReadRest(db_->Changes(12).value().get()).empty());
  EXPECT_EQ(db_->Changes(13).error().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(db_->Changes(0).error().code(), StatusCode::kInvalidArgument);
}

TEST_F(ChangesTest, AWriteThatFailedIsNotFollowed) {
  Open();
  std::vector<std::string> heard;
  const Subscription subscription = Listen(&heard);
  ASSERT_TRUE(db_->Put("a", "1").ok());
  WriteBatch refused;
  refused.RequireAbsent("a");
  refused.Put("b", "2");
  EXPECT_EQ(db_->Write(refused).error().code(), StatusCode::kAborted);
  ASSERT_TRUE(db_->Put("c", "3").ok());
  EXPECT_EQ(heard, ReadRest(db_->Changes(1).value().get()));
  EXPECT_EQ(heard.size(), 2U);
}

}  // namespace
}  // namespace basalt::db
