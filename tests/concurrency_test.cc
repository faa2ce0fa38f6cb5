// Writers, readers, iterators, snapshots, flushes and compactions together, on real threads. Meant
// for ThreadSanitizer as much as for its own assertions.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/coding.h"
#include "base/random.h"
#include "base/test_update.h"
#include "base/thread_pool.h"
#include "db/environment.h"
#include "io/memory_file_system.h"

namespace basalt {
namespace {

constexpr size_t kPairs = 64;

std::string LeftKey(uint64_t pair) { return "left" + std::to_string(pair); }
std::string RightKey(uint64_t pair) { return "right" + std::to_string(pair); }

/// In memory, with memtables so small that flushes and compactions never rest.
db::Environment SmallEnvironment() {
  auto environment = db::Environment::System(2);
  EXPECT_TRUE(environment) << environment.error().ToString();
  environment->owned_fs = io::NewMemoryFileSystem();
  environment->fs = environment->owned_fs.get();
  environment->memtable_bytes = 32 << 10;
  environment->table_bytes = 16 << 10;
  return *environment;
}

std::unique_ptr<DB> OpenIn(const db::Environment& environment) {
  auto opened = db::OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, environment);
  EXPECT_TRUE(opened) << opened.error().ToString();
  return std::move(*opened);
}

std::unique_ptr<DB> OpenSmall() { return OpenIn(SmallEnvironment()); }

/// Flushes and compacts all the time, until it is destroyed.
class Unrest {
 public:
  explicit Unrest(DB* db)
      : thread_([this, db] {
          while (!done_.load(std::memory_order_acquire)) {
            EXPECT_TRUE(db->Flush().ok());
            EXPECT_TRUE(db->CompactRange().ok());
          }
        }) {}
  ~Unrest() {
    done_.store(true, std::memory_order_release);
    thread_.join();
  }
  Unrest(const Unrest&) = delete;
  Unrest& operator=(const Unrest&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void RunThreads(uint64_t count, const std::function<void(uint64_t thread)>& run) {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < count; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
}

uint64_t Number(std::string_view value) { return std::stoull(std::string(value)); }

/// Each writer owns some pairs of keys and always writes both with one number, which only grows.
class PairsUnderLoad : public testing::Test {
 protected:
  void WritePairs(uint64_t writer, uint64_t writers, uint64_t rounds) {
    base::Random random(writer);
    for (uint64_t round = 1; round <= rounds; ++round) {
      const uint64_t pair = random.Below(kPairs / writers) * writers + writer;
      const std::string value = std::to_string(round);
      WriteBatch batch;
      batch.Put(LeftKey(pair), value);
      batch.Put("filler" + std::to_string(random.Below(500)), std::string(100, 'f'));
      batch.Put(RightKey(pair), value);
      const Status written = db_->Write(
          batch, {.durability = random.OneIn(16) ? Durability::kPower : Durability::kProcess});
      ASSERT_TRUE(written.ok()) << written.ToString();
    }
  }

  /// Both sides of every pair, at one moment; each must be equal and never go back.
  void ReadPairs(uint64_t seed) {
    base::Random random(seed);
    std::vector<uint64_t> seen(kPairs, 0);
    while (!done_.load(std::memory_order_acquire)) {
      const uint64_t pair = random.Below(kPairs);
      const std::string keys[] = {LeftKey(pair), RightKey(pair)};
      const std::string_view views[] = {keys[0], keys[1]};
      Result<MaybeValue> results[2];
      if (random.OneIn(2)) {
        ASSERT_TRUE(db_->MultiGet(views, results).ok());
      } else {
        const auto snapshot = db_->GetSnapshot();
        ASSERT_TRUE(snapshot);
        for (size_t i = 0; i < 2; ++i) {
          results[i] = db_->Get(views[i], {.snapshot = &*snapshot});
        }
      }
      ASSERT_TRUE(results[0] && results[1]);
      ASSERT_EQ(results[0]->has_value(), results[1]->has_value()) << "half a batch is visible";
      if (!results[0]->has_value()) continue;
      const uint64_t left = Number((*results[0])->view());
      ASSERT_EQ(left, Number((*results[1])->view())) << "two halves of different batches";
      ASSERT_GE(left, seen[pair]) << "an older value came back";
      seen[pair] = left;
    }
  }

  void IteratePairs(bool backward) {
    while (!done_.load(std::memory_order_acquire)) {
      const auto it = db_->NewIterator();
      std::vector<std::optional<uint64_t>> left(kPairs);
      std::vector<std::optional<uint64_t>> right(kPairs);
      for (backward ? it->SeekToLast() : it->SeekToFirst(); it->Valid();
           backward ? it->Prev() : it->Next()) {
        const std::string_view key = it->key();
        if (key.starts_with("left")) left[Number(key.substr(4))] = Number(it->value());
        if (key.starts_with("right")) right[Number(key.substr(5))] = Number(it->value());
      }
      ASSERT_TRUE(it->status().ok()) << it->status().ToString();
      ASSERT_EQ(left, right) << "an iterator saw half a batch";
    }
  }

  std::unique_ptr<DB> db_ = OpenSmall();
  std::atomic<bool> done_{false};
};

TEST_F(PairsUnderLoad, BatchesAreSeenWholeByGetsSnapshotsAndIterators) {
  std::vector<std::thread> readers;
  readers.emplace_back([&] { ReadPairs(1); });
  readers.emplace_back([&] { ReadPairs(2); });
  readers.emplace_back([&] { IteratePairs(false); });
  readers.emplace_back([&] { IteratePairs(true); });
  readers.emplace_back([&] {
    while (!done_.load(std::memory_order_acquire)) {
      ASSERT_TRUE(db_->Flush().ok());
      ASSERT_TRUE(db_->CompactRange().ok());
      ASSERT_TRUE(db_->Sync().ok());
      static_cast<void>(db_->GetStats());
    }
  });
  constexpr uint64_t kWriters = 3;
  std::vector<std::thread> writers;
  for (uint64_t i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] { WritePairs(i, kWriters, 3000); });
  }
  for (std::thread& writer : writers) writer.join();
  done_.store(true, std::memory_order_release);
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(db_->GetStats().flushes, 0U);
  EXPECT_GT(db_->GetStats().compactions, 0U);
  EXPECT_TRUE(db_->Close().ok());
}

// Between the moments at which the two keys can be found in the memtable lie hundreds of others.
TEST(ConcurrentBatches, TwoGetsInARowNeverGoBackFromOneBatchToTheOneBefore) {
  const auto db = DB::Open(":memory:").value();
  constexpr uint64_t kBatches = 1000;
  constexpr uint64_t kOthers = 400;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t number = 1; number <= kBatches; ++number) {
      WriteBatch batch;
      batch.Put("left", std::to_string(number));
      for (uint64_t i = 0; i < kOthers; ++i) batch.Put("other" + std::to_string(i), "value");
      batch.Put("right", std::to_string(number));
      EXPECT_TRUE(db->Write(batch).ok());
    }
    done.store(true, std::memory_order_release);
  });
  const auto get = [&](std::string_view key) {
    const auto value = db->Get(key);
    EXPECT_TRUE(value) << value.error().ToString();
    return value && *value ? Number((*value)->view()) : 0;
  };
  while (!done.load(std::memory_order_acquire)) {
    for (const auto& [first, second] : {std::pair("left", "right"), std::pair("right", "left")}) {
      const uint64_t seen = get(first);
      EXPECT_GE(get(second), seen) << first << " is of a batch that is not complete";
    }
  }
  writer.join();
  EXPECT_EQ(get("right"), kBatches);
}

TEST(ConcurrentUpdates, NoneOfManyIncrementsIsLost) {
  const auto db = OpenSmall();
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kIncrements = 300;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&db] {
      for (uint64_t n = 0; n < kIncrements; ++n) {
        const Status updated = db->Update(
            "counter",
            base::ByValue(
                [](std::optional<std::string_view> value) -> Result<std::optional<std::string>> {
                  return std::optional(std::to_string(value ? Number(*value) + 1 : 1));
                }));
        ASSERT_TRUE(updated.ok()) << updated.ToString();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*db->Get("counter"))->ToString(), std::to_string(kThreads * kIncrements));
}

/// Counts up by what was read before. Its values are long, so that memtables are sealed often.
void ExpectCounted(const std::function<Status(DB* db)>& count_up) {
  const auto db = OpenSmall();
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kIncrements = 1'000;
  RunThreads(kThreads, [&](uint64_t) {
    for (uint64_t n = 0; n < kIncrements; ++n) {
      const Status counted = count_up(db.get());
      ASSERT_TRUE(counted.ok()) << counted.ToString();
    }
  });
  EXPECT_EQ(Number((*db->Get("counter"))->ToString()), kThreads * kIncrements);
}

std::string LongNumber(uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(1'000 - digits.size(), '0') + digits;
}

TEST(ConcurrentUpdates, NoneIsLostWhileMemtablesAreSealed) {
  ExpectCounted([](DB* db) -> Status {
    return db->Update("counter", [](EntryUpdate& entry) {
      entry.Set(LongNumber(entry.exists() ? Number(entry.value()) + 1 : 1));
      return Status();
    });
  });
}

TEST(ConcurrentUpdates, NoConditionHoldsOfAnOlderMemtable) {
  ExpectCounted([](DB* db) -> Status {
    while (true) {
      const auto before = db->GetEntry("counter");
      if (!before) return before.error();
      WriteBatch batch;
      if (*before) {
        batch.RequireUnchanged("counter", (*before)->version);
        batch.Put("counter", LongNumber(Number((*before)->value.view()) + 1));
      } else {
        batch.RequireAbsent("counter");
        batch.Put("counter", LongNumber(1));
      }
      const Status written = db->Write(batch);
      if (written.code() != StatusCode::kAborted) return written;
    }
  });
}

/// What merges make of numbers; 0 when it is absent.
uint64_t MergedNumber(const DB& db, const std::string& key) {
  const auto value = db.Get(key);
  EXPECT_TRUE(value) << value.error().ToString();
  if (!value || !*value) return 0;
  EXPECT_EQ((*value)->size(), 8U);
  return base::Load<uint64_t>((*value)->view().data());
}

TEST(ConcurrentMerges, AddsOfManyThreadsSumUpExactlyAlsoOverReopening) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kCounters = 8;
  constexpr uint64_t kAdds = 1000;
  const db::Environment environment = SmallEnvironment();
  const auto counter = [](uint64_t i) { return "counter" + std::to_string(i); };
  std::atomic<uint64_t> sums[kCounters] = {};
  for (uint64_t round = 0; round < 4; ++round) {
    const auto db = OpenIn(environment);
    for (uint64_t i = 0; i < kCounters; ++i) {
      ASSERT_EQ(MergedNumber(*db, counter(i)), sums[i]) << "after opening " << round << " times";
    }
    {
      const Unrest unrest(db.get());
      RunThreads(kThreads, [&](uint64_t thread) {
        base::Random random(round * kThreads + thread);
        uint64_t seen[kCounters] = {};
        for (uint64_t n = 0; n < kAdds; ++n) {
          const uint64_t i = random.Below(kCounters);
          const uint64_t operand = random.Below(1000);
          std::string bytes(sizeof(operand), '\0');
          base::Store(bytes.data(), operand);
          ASSERT_TRUE(db->Merge(counter(i), MergeOperator::kAdd, bytes).ok());
          sums[i] += operand;
          seen[i] += operand;  // at least these are in it
          const uint64_t sum = MergedNumber(*db, counter(i));
          ASSERT_GE(sum, seen[i]) << "an add was lost";
          seen[i] = sum;
          ASSERT_TRUE(
              db->Put("filler" + std::to_string(random.Below(200)), std::string(60, 'f')).ok());
        }
      });
    }
    for (uint64_t i = 0; i < kCounters; ++i) ASSERT_EQ(MergedNumber(*db, counter(i)), sums[i]);
    if (round % 2 == 0) {
      ASSERT_TRUE(db->Close().ok());
    }
  }
}

TEST(ConcurrentPutsIfAbsent, SucceedOnceForEachKey) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kKeys = 5000;
  const auto db = OpenSmall();
  const auto key = [](uint64_t i) { return "key" + std::to_string(i); };
  // The thread that put it, plus one.
  std::array<std::atomic<uint64_t>, kKeys> winners{};
  std::latch start(kThreads);  // they are to meet at the same keys
  {
    const Unrest unrest(db.get());
    RunThreads(kThreads, [&](uint64_t thread) {
      start.arrive_and_wait();
      for (uint64_t i = 0; i < kKeys; ++i) {
        const auto put = db->PutIfAbsent(key(i), std::to_string(thread + 1));
        ASSERT_TRUE(put) << put.error().ToString();
        if (*put) {
          ASSERT_EQ(winners[i].exchange(thread + 1), 0U) << "it was absent twice";
        }
        const auto value = db->Get(key(i));
        ASSERT_TRUE(value && *value) << "neither put nor there";
      }
    });
  }
  for (uint64_t i = 0; i < kKeys; ++i) {
    EXPECT_EQ(Number((*db->Get(key(i)))->ToString()), winners[i]) << key(i);
  }
}

/// Each writer owns some keys and puts ascending numbers, while others delete ranges over all.
class RangeDeletesUnderLoad : public testing::Test {
 protected:
  static constexpr uint64_t kKeys = 32;
  static constexpr uint64_t kWriters = 3;

  static std::string Key(uint64_t i) { return "key" + std::to_string(100 + i); }
  /// 0: absent.
  uint64_t NumberOf(uint64_t i) {
    const auto value = db_->Get(Key(i));
    EXPECT_TRUE(value) << value.error().ToString();
    return value && *value ? Number((*value)->view()) : 0;
  }

  void Put(uint64_t writer) {
    base::Random random(writer);
    for (uint64_t number = 1; number <= 6000; ++number) {
      const uint64_t i = random.Below(kKeys / kWriters) * kWriters + writer;
      ASSERT_TRUE(db_->Put(Key(i), std::to_string(number)).ok());
      acknowledged_[i].store(number, std::memory_order_release);
      const uint64_t found = NumberOf(i);
      ASSERT_TRUE(found == number || found == 0) << "found " << found << " after " << number;
      if (found == 0) {
        ASSERT_EQ(NumberOf(i), 0U) << "what was deleted came back";
      }
    }
  }

  void DeleteAll() {
    while (!done_.load(std::memory_order_acquire)) {
      uint64_t before[kKeys];
      for (uint64_t i = 0; i < kKeys; ++i) before[i] = acknowledged_[i].load();
      ASSERT_TRUE(db_->DeleteRange("key", "kez").ok());
      for (uint64_t i = 0; i < kKeys; ++i) {
        const uint64_t found = NumberOf(i);
        ASSERT_TRUE(found == 0 || found > before[i])
            << "found " << found << ", though " << before[i] << " was deleted";
      }
    }
  }

  void Scan() {
    uint64_t seen[kKeys] = {};
    while (!done_.load(std::memory_order_acquire)) {
      const auto it = db_->NewIterator();
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        const uint64_t i = Number(it->key().substr(3)) - 100;
        const uint64_t number = Number(it->value());
        ASSERT_GE(number, seen[i]) << "an older value came back";
        seen[i] = number;
      }
      ASSERT_TRUE(it->status().ok()) << it->status().ToString();
    }
  }

  const db::Environment environment_ = SmallEnvironment();
  std::unique_ptr<DB> db_ = OpenIn(environment_);
  std::array<std::atomic<uint64_t>, kKeys> acknowledged_{};
  std::atomic<bool> done_{false};
};

TEST_F(RangeDeletesUnderLoad, EveryKeyHasOneHistory) {
  {
    const Unrest unrest(db_.get());
    std::vector<std::thread> others;
    others.emplace_back([this] { DeleteAll(); });
    others.emplace_back([this] { Scan(); });
    RunThreads(kWriters, [this](uint64_t writer) { Put(writer); });
    done_.store(true, std::memory_order_release);
    for (std::thread& other : others) other.join();
  }
  std::vector<uint64_t> last;
  for (uint64_t i = 0; i < kKeys; ++i) {
    last.push_back(NumberOf(i));
    EXPECT_TRUE(last[i] == 0 || last[i] == acknowledged_[i]) << Key(i);
  }
  db_.reset();
  db_ = OpenIn(environment_);
  for (uint64_t i = 0; i < kKeys; ++i) EXPECT_EQ(NumberOf(i), last[i]) << "after reopening";
}

TEST(HandleLifetime, IteratorsSnapshotsAndValuesOutliveTheHandle) {
  auto db = OpenSmall();
  const std::string large(1000, 'v');
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(db->Put("key" + std::to_string(i), large).ok());
  auto snapshot = db->GetSnapshot();
  ASSERT_TRUE(snapshot);
  const auto it = db->NewIterator();
  it->SeekToFirst();
  auto value = db->Get("key7");
  ASSERT_TRUE(value && *value);
  std::thread([handle = std::move(db)]() mutable { handle.reset(); }).join();
  size_t count = 0;
  for (; it->Valid(); it->Next()) ++count;
  EXPECT_TRUE(it->status().ok()) << it->status().ToString();
  EXPECT_EQ(count, 500U);
  EXPECT_EQ((*value)->view(), large);
}

TEST(HandleLifetime, ADatabaseCanBeReopenedAsSoonAsItsHandleIsGone) {
  const db::Environment environment = SmallEnvironment();
  for (int round = 0; round < 20; ++round) {
    auto db = db::OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, environment);
    ASSERT_TRUE(db) << "round " << round << ": " << db.error().ToString();
    for (int i = 0; i < 300; ++i) {  // flushes and compactions are under way when it ends
      ASSERT_TRUE((*db)->Put("key" + std::to_string(i), std::string(500, 'v')).ok());
    }
  }
}

// Timers fire, are set anew and cancelled, while handles come and go.
TEST(HandleLifetime, EndsTimersAtAnyMoment) {
  const auto environment = SmallEnvironment();
  base::Random random(1);
  for (int round = 0; round < 200; ++round) {
    auto db = OpenIn(environment);
    for (uint64_t i = 0; i < 100; ++i) {
      const auto ttl = std::chrono::milliseconds(1 + random.Below(4));
      ASSERT_TRUE(db->Put("key" + std::to_string(i), "value", {.ttl = ttl}).ok());
    }
    ASSERT_TRUE(db->Flush().ok());
    std::unique_ptr<Iterator> it;
    if (random.OneIn(2)) it = db->NewIterator();
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(6'000)));
    if (random.OneIn(2)) {
      ASSERT_TRUE(db->Close().ok());
    }
    db.reset();
  }
}

TEST(HandleLifetime, ClosesBesideACompactionByHandAtAnyMoment) {
  const auto environment = SmallEnvironment();
  base::Random random(1);
  for (int round = 0; round < 1000; ++round) {
    auto db = OpenIn(environment);
    ASSERT_TRUE(db->Put("key", "value").ok());
    std::thread compacting([&db] { static_cast<void>(db->CompactRange()); });
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(200)));
    ASSERT_TRUE(db->Close().ok());
    compacting.join();
  }
}

/// Whether a thread of this process sleeps, waiting for a lock, say.
bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end != line.npos && line.substr(name_end).starts_with(") S");
}

TEST(HandleLifetime, ASecondCloseWaitsForTheFirst) {
  std::promise<void> flushed;
  std::promise<void> second_waits;
  const db::Environment environment = SmallEnvironment();
  DBOptions options{.memory_budget = uint64_t{4} << 20};
  // Holds the first one up until the second waits.
  options.on_event = [&](const Event& event) {
    if (event.kind != Event::Kind::kFlush) return;
    flushed.set_value();
    second_waits.get_future().wait();
  };
  const auto db = db::OpenDatabase("/db", options, environment).value();
  ASSERT_TRUE(db->Put("key", "value").ok());
  std::jthread flusher([&] { static_cast<void>(db->Flush()); });
  flushed.get_future().wait();
  std::jthread first([&] { EXPECT_TRUE(db->Close().ok()); });
  while (db->Get("key")) std::this_thread::yield();
  std::atomic<pid_t> second_thread{0};
  std::atomic<bool> second_returned{false};
  std::jthread second([&] {
    second_thread = gettid();
    EXPECT_TRUE(db->Close().ok());
    second_returned = true;
  });
  while (!second_returned && !Sleeps(second_thread)) std::this_thread::yield();
  EXPECT_FALSE(second_returned);
  second_waits.set_value();
  second.join();
  // What is closed can be opened.
  const auto again = db::OpenDatabase("/db", {}, environment);
  EXPECT_TRUE(again) << again.error().ToString();
}

TEST(HandleLifetime, CloseEndsIteratorsAndSnapshotsWithAClearError) {
  const auto db = OpenSmall();
  ASSERT_TRUE(db->Put("key", "value").ok());
  auto snapshot = db->GetSnapshot();
  ASSERT_TRUE(snapshot);
  auto value = db->Get("key");
  const auto it = db->NewIterator();
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  ASSERT_TRUE(db->Close().ok());
  ASSERT_TRUE(db->Close().ok()) << "Close is idempotent";
  it->Next();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(db->Get("key", {.snapshot = &*snapshot}).error().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(db->Put("key", "other").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*value)->view(), "value");
}

}  // namespace
}  // namespace basalt
