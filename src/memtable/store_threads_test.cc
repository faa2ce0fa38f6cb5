#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
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

#include "basalt/memtable.h"
#include "base/random.h"
#include "base/test_history.h"
#include "base/test_update.h"
#include "memtable/store_test_support.h"

namespace basalt {
namespace {

/// Generations so small that sealing and compaction never rest.
constexpr MemTableOptions kBusy = {.memory_budget = 32 * kMiB, .generation_bytes = 64 * kKiB};

uint64_t NumberIn(std::string_view value) {
  return std::stoull(std::string(value.substr(0, value.find(' '))));
}

/// Threads that do something at least once, and again until this is destroyed.
class Repeated {
 public:
  explicit Repeated(std::vector<std::function<void()>> actions) {
    for (std::function<void()>& action : actions) {
      threads_.emplace_back([this, action = std::move(action)] {
        do {
          action();
        } while (!done_.load(std::memory_order_acquire));
      });
    }
  }
  ~Repeated() {
    done_.store(true, std::memory_order_release);
    for (std::thread& thread : threads_) thread.join();
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

void RunTogether(size_t count, const std::function<void(uint64_t)>& run) {
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < count; ++i) threads.emplace_back([&run, i] { run(i); });
  for (std::thread& thread : threads) thread.join();
}

// Threads record what they do to a few keys (base/test_history.h).

using base::KeyHistory;
using base::kNoVersion;
using base::TicketSpan;

constexpr uint64_t kNeverSeen = 999'999'999;  // Written, but hidden within its own batch.

/// What all threads share.
struct World {
  MemTable* table;
  std::atomic<uint64_t> tickets{1};
  std::atomic<uint64_t> versions{1};
};

/// One thread.
class Actor {
 public:
  static constexpr uint64_t kKeys = 60;

  Actor(World* world, uint64_t seed) : world_(world), random_(seed) {}

  void Run(int operations) {
    for (int i = 0; i < operations; ++i) Step();
  }
  const KeyHistory& history(uint64_t key) const { return histories_[key]; }

 private:
  static std::string Name(uint64_t key) { return Numbered("key", 100 + key); }

  void Step() {
    key_ = random_.Below(kKeys);
    switch (random_.Below(20)) {
      case 0:
        return Note(kNoVersion, [this] { return world_->table->Delete(Name(key_)); });
      case 1:
        return DeleteRange();
      case 2:
      case 3:
        return Update();
      case 4:
      case 5:
        return WriteBatchOfSome();
      case 6:
      case 7:
      case 8:
      case 9:
        return Put();
      case 10:
        return GetAtSnapshot();
      case 11:
        return Iterate();
      case 12:
        return MultiGet();
      case 13:
        if (random_.OneIn(40)) {
          EXPECT_TRUE(IsOk(world_->table->Seal()));
        }
        return Get();
      default:
        return Get();
    }
  }

  uint64_t Ticket() { return world_->tickets.fetch_add(1); }
  std::string NewValue(uint64_t* version) {
    static constexpr std::array<size_t, 4> kSizes = {1, 90, 113, 700};
    *version = world_->versions.fetch_add(1);
    return std::to_string(*version) + ' ' + std::string(kSizes[random_.Below(4)], 'v');
  }
  template <class Write>
  void Note(uint64_t version, const Write& write) {
    TicketSpan span{.begin = Ticket()};
    const Status status = write();
    span.end = Ticket();
    EXPECT_TRUE(IsOk(status));
    histories_[key_].writes.push_back({version, span});
  }
  void NoteRead(uint64_t key, std::optional<std::string_view> value, TicketSpan span) {
    histories_[key].reads.push_back({value ? NumberIn(*value) : kNoVersion, span});
  }

  void Put() {
    uint64_t version = 0;
    const std::string value = NewValue(&version);
    Note(version, [&] { return world_->table->Put(Name(key_), value); });
  }

  void Update() {
    uint64_t version = kNoVersion;
    const bool erases = random_.OneIn(4);
    TicketSpan span{.begin = Ticket()};
    const Status status = world_->table->Update(
        Name(key_),
        base::ByValue([&](std::optional<std::string_view>) -> Result<std::optional<std::string>> {
          if (erases) return std::nullopt;
          return NewValue(&version);
        }));
    span.end = Ticket();
    EXPECT_TRUE(IsOk(status));
    // A delete of what is absent need not be written, and hides nothing.
    histories_[key_].writes.push_back({version, span});
  }

  void WriteBatchOfSome() {
    WriteBatch batch;
    std::vector<std::pair<uint64_t, uint64_t>> last;
    for (uint64_t key = key_; key < kKeys && last.size() < 5; key += 1 + random_.Below(8)) {
      if (random_.OneIn(3))
        batch.Put(Name(key), std::to_string(kNeverSeen) + " hidden by the next");
      if (random_.OneIn(4)) {
        batch.Delete(Name(key));
        last.emplace_back(key, kNoVersion);
      } else {
        uint64_t version = 0;
        batch.Put(Name(key), NewValue(&version));
        last.emplace_back(key, version);
      }
    }
    TicketSpan span{.begin = Ticket()};
    const Status status = world_->table->Write(batch);
    span.end = Ticket();
    EXPECT_TRUE(IsOk(status));
    for (const auto& [key, version] : last) histories_[key].writes.push_back({version, span});
  }

  void DeleteRange() {
    const uint64_t end = std::min(key_ + random_.Below(6), kKeys);
    TicketSpan span{.begin = Ticket()};
    const Status status = world_->table->DeleteRange(Name(key_), Name(end));
    span.end = Ticket();
    EXPECT_TRUE(IsOk(status));
    for (uint64_t key = key_; key < end; ++key)
      histories_[key].writes.push_back({kNoVersion, span});
  }

  void Get() {
    TicketSpan span{.begin = Ticket()};
    const Result<MaybeValue> value = world_->table->Get(Name(key_));
    span.end = Ticket();
    ASSERT_TRUE(value);
    NoteRead(key_, *value ? std::optional((*value)->view()) : std::nullopt, span);
  }

  void GetAtSnapshot() {
    TicketSpan span{.begin = Ticket()};
    const Snapshot snapshot = SnapshotOf(*world_->table);
    span.end = Ticket();
    for (uint64_t key = key_; key < kKeys; key += 7) {
      const auto value = GetFrom(*world_->table, Name(key), {.snapshot = &snapshot});
      NoteRead(key, value ? std::optional<std::string_view>(*value) : std::nullopt, span);
    }
  }

  void Iterate() {
    const uint64_t end = std::min(key_ + 20, kKeys);
    const std::string lower = Name(key_);
    const std::string upper = Name(end);
    TicketSpan span{.begin = Ticket()};
    const auto it = world_->table->NewIterator({.lower = lower, .upper = upper});
    span.end = Ticket();
    const Contents all = random_.OneIn(2) ? ReadForwards(it.get()) : ReadBackwards(it.get());
    auto next = all.begin();
    for (uint64_t key = key_; key < end; ++key) {
      if (next != all.end() && next->first == Name(key)) {
        NoteRead(key, next->second, span);
        ++next;
      } else {
        NoteRead(key, std::nullopt, span);
      }
    }
    EXPECT_TRUE(next == all.end()) << "out of order or of bounds: " << next->first;
  }

  void MultiGet() {
    constexpr size_t kCount = 12;
    std::array<uint64_t, kCount> keys;
    std::array<std::string, kCount> names;
    std::array<std::string_view, kCount> asked;
    std::array<Result<MaybeValue>, kCount> values;
    for (size_t i = 0; i < kCount; ++i) {
      keys[i] = random_.Below(kKeys);
      names[i] = Name(keys[i]);
      asked[i] = names[i];
    }
    TicketSpan span{.begin = Ticket()};
    const Status status = world_->table->MultiGet(asked, values);
    span.end = Ticket();
    ASSERT_TRUE(IsOk(status));
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(values[i]);
      const MaybeValue& value = *values[i];
      NoteRead(keys[i], value ? std::optional(value->view()) : std::nullopt, span);
    }
  }

  World* const world_;
  base::Random random_;
  uint64_t key_ = 0;
  std::array<KeyHistory, kKeys> histories_;
};

class MemTableHistoryTest : public testing::TestWithParam<uint32_t> {};

TEST_P(MemTableHistoryTest, NoReadReturnsWhatWasGoneBeforeItBegan) {
  constexpr uint64_t kActors = 4;
  constexpr int kOperations = 10'000;
  const uint64_t seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  MemTableOptions options = kBusy;
  options.shards = GetParam();
  options.generation_bytes = GetParam() * 64 * kKiB / (GetParam() > 1 ? 4 : 1);
  const auto table = NewTable(options);
  World world{.table = table.get()};
  std::vector<Actor> actors;
  for (uint64_t i = 0; i < kActors; ++i) actors.emplace_back(&world, seed * kActors + i);
  RunTogether(kActors, [&](uint64_t i) { actors[i].Run(kOperations); });

  size_t reads = 0;
  for (uint64_t key = 0; key < Actor::kKeys && !HasFailure(); ++key) {
    KeyHistory all;
    for (const Actor& actor : actors) all.Append(actor.history(key));
    reads += all.reads.size();
    base::HistoryCheck(key, std::move(all), /*may_lose=*/false).Run();
  }
  EXPECT_GT(reads, kActors * kOperations / 2);
  table->WaitForBackgroundWork();
  const MemTableStats stats = table->GetStats();
  EXPECT_GT(stats.seals, 10u);
  EXPECT_GT(stats.compactions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Shards, MemTableHistoryTest, testing::Values(1u, 16u));

// Batches are whole

/// Each writer moves amounts between accounts of its own, in batches that leave their sum as it is.
class Accounts {
 public:
  static constexpr uint64_t kWriters = 2;
  static constexpr uint64_t kAccounts = 10;
  static constexpr uint64_t kSum = 1'000'000;

  Accounts() {
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      WriteBatch batch;
      for (uint64_t i = 0; i < kAccounts; ++i) {
        batch.Put(Key(writer, i), Amount(kSum / kAccounts));
      }
      EXPECT_TRUE(IsOk(table_->Write(batch)));
    }
  }

  void Transfer(uint64_t writer, int transfers) {
    base::Random random(writer);
    std::array<uint64_t, kAccounts> amounts;
    amounts.fill(kSum / kAccounts);
    for (int i = 0; i < transfers; ++i) {
      const uint64_t from = random.Below(kAccounts);
      const uint64_t to = random.Below(kAccounts);
      const uint64_t moved = random.Below(amounts[from] + 1);
      amounts[from] -= moved;
      amounts[to] += moved;
      WriteBatch batch;
      if (random.OneIn(8)) {  // all are gone and back within the batch
        batch.DeleteRange(Key(writer, 0), Key(writer, kAccounts));
        for (uint64_t j = 0; j < kAccounts; ++j) batch.Put(Key(writer, j), Amount(amounts[j]));
      } else {
        batch.Put(Key(writer, from), Amount(amounts[from]));
        if (random.OneIn(4)) batch.Delete(Key(writer, to));
        batch.Put(Key(writer, to), Amount(amounts[to]));
      }
      ASSERT_TRUE(IsOk(table_->Write(batch)));
    }
  }

  void CheckSnapshot() {
    const Snapshot snapshot = SnapshotOf(*table_);
    for (int again = 0; again < 2; ++again) {
      for (uint64_t writer = 0; writer < kWriters; ++writer) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < kAccounts; ++i) {
          const auto value = GetFrom(*table_, Key(writer, i), {.snapshot = &snapshot});
          ASSERT_TRUE(value) << Key(writer, i);
          sum += NumberIn(*value);
        }
        ASSERT_EQ(sum, kSum) << "a snapshot saw half a batch";
      }
    }
  }

  void CheckMultiGet() {
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      std::array<std::string, kAccounts> names;
      std::array<std::string_view, kAccounts> keys;
      std::array<Result<MaybeValue>, kAccounts> results;
      for (uint64_t i = 0; i < kAccounts; ++i) keys[i] = names[i] = Key(writer, i);
      ASSERT_TRUE(IsOk(table_->MultiGet(keys, results)));
      uint64_t sum = 0;
      for (const Result<MaybeValue>& result : results) {
        ASSERT_TRUE(result && *result);
        sum += NumberIn((*result)->view());
      }
      ASSERT_EQ(sum, kSum) << "MultiGet saw half a batch";
    }
  }

  void CheckScan() {
    const auto it = table_->NewIterator();
    for (const Contents& all : {ReadForwards(it.get()), ReadBackwards(it.get())}) {
      ASSERT_EQ(all.size(), kWriters * kAccounts);
      uint64_t sum = 0;
      for (const auto& [key, value] : all) sum += NumberIn(value);
      ASSERT_EQ(sum, kWriters * kSum) << "an iterator saw half a batch";
    }
  }

  void CheckGets() {
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      for (uint64_t i = 0; i < kAccounts; ++i) {
        ASSERT_TRUE(GetFrom(*table_, Key(writer, i))) << "seen within a batch that rewrites it";
      }
    }
  }

  MemTable& table() { return *table_; }

 private:
  static std::string Key(uint64_t writer, uint64_t account) {
    return Numbered(Numbered("writer", writer) + "/", 100 + account);
  }
  static std::string Amount(uint64_t amount) {
    return std::to_string(amount) + ' ' + std::string(amount % 150, 'a');
  }

  const std::unique_ptr<MemTable> table_ = NewTable(kBusy);
};

TEST(MemTableThreads, BatchesAreWholeToEveryReader) {
  Accounts accounts;
  {
    const Repeated others({[&] { accounts.CheckSnapshot(); }, [&] { accounts.CheckMultiGet(); },
                           [&] { accounts.CheckScan(); }, [&] { accounts.CheckGets(); },
                           [&] {
                             ASSERT_TRUE(IsOk(accounts.table().Seal()));
                             ASSERT_TRUE(IsOk(accounts.table().Compact()));
                           }});
    RunTogether(Accounts::kWriters, [&](uint64_t i) { accounts.Transfer(i, 5'000); });
  }
  accounts.CheckScan();
  EXPECT_GT(accounts.table().GetStats().compactions, 0u);
}

TEST(MemTableThreads, WhatABatchHidesItselfIsNeverSeen) {
  const auto table = NewTable(kBusy);
  ASSERT_TRUE(IsOk(table->Put("put", "seen")));
  const auto read = [&] {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(GetFrom(*table, "put"), "seen");
      ASSERT_EQ(GetFrom(*table, "deleted"), std::nullopt);
    }
  };
  const Repeated others({read, read});
  for (int i = 0; i < 50'000; ++i) {
    WriteBatch batch;
    batch.Put("put", "hidden by the next");
    batch.Put("put", "seen");
    batch.Put("deleted", "hidden by the next");
    batch.Delete("deleted");
    ASSERT_TRUE(IsOk(table->Write(batch)));
  }
}

// Every batch sets all keys to its own number. An iterator walks slowly, and must see one number.
TEST(MemTableThreads, IteratorsStayRightWhileGenerationsAreCompactedAway) {
  constexpr uint64_t kKeys = 300;
  const auto table = NewTable(kBusy);
  const auto write_round = [&](uint64_t round) {
    WriteBatch batch;
    if (round % 3 == 0) batch.DeleteRange("key", "kez");
    for (uint64_t i = 0; i < kKeys; ++i) {
      batch.Put(Numbered("key", i), Numbered("", round) + std::string(round % 200, ' '));
    }
    ASSERT_TRUE(IsOk(table->Write(batch)));
  };
  write_round(1);
  const auto walk = [&] {
    const auto it = table->NewIterator();
    for (const bool forwards : {true, false}) {
      std::optional<uint64_t> round;
      uint64_t count = 0;
      for (forwards ? it->SeekToFirst() : it->SeekToLast(); it->Valid();
           forwards ? it->Next() : it->Prev()) {
        if (!round) round = NumberIn(it->value());
        ASSERT_EQ(NumberIn(it->value()), *round) << it->key();
        if (++count % 100 == 0) std::this_thread::yield();
      }
      ASSERT_EQ(count, kKeys);
    }
  };
  const Repeated others({walk, walk, [&] { ASSERT_TRUE(IsOk(table->Compact())); }});
  for (uint64_t round = 2; round < 400; ++round) write_round(round);
}

TEST(MemTableThreads, SnapshotsReadTheSameAgainAndAgain) {
  constexpr uint64_t kKeys = 100;
  const auto table = NewTable(kBusy);
  std::atomic<uint64_t> checked{0};
  const auto write = [&](uint64_t seed, uint64_t writes) {
    base::Random random(seed);
    for (uint64_t i = 0; i < writes; ++i) {
      const std::string key = Numbered("key", random.Below(kKeys));
      if (random.OneIn(5)) {
        ASSERT_TRUE(IsOk(table->Delete(key)));
      } else if (random.OneIn(50)) {
        ASSERT_TRUE(IsOk(table->DeleteRange(key, key + "5")));
      } else {
        ASSERT_TRUE(IsOk(table->Put(key, Numbered(std::string(i % 300, 'v'), i))));
      }
    }
  };
  const auto read = [&] {
    const Snapshot snapshot = SnapshotOf(*table);
    const Contents first = Scan(*table, {.snapshot = &snapshot});
    for (int again = 0; again < 5; ++again) {
      ASSERT_EQ(Scan(*table, {.snapshot = &snapshot}), first);
      auto next = first.begin();
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string key = Numbered("key", i);
        next = std::ranges::lower_bound(first, key, {}, &Contents::value_type::first);
        const auto value = GetFrom(*table, key, {.snapshot = &snapshot});
        if (next != first.end() && next->first == key) {
          ASSERT_EQ(value, next->second) << key;
        } else {
          ASSERT_EQ(value, std::nullopt) << key;
        }
      }
    }
    checked.fetch_add(1);
  };
  {
    const Repeated others({read, read, [&] {
                             ASSERT_TRUE(IsOk(table->Seal()));
                             ASSERT_TRUE(IsOk(table->Compact()));
                           }});
    RunTogether(2, [&](uint64_t i) { write(i, 10'000); });
    while (checked.load() < 4) std::this_thread::yield();
  }
  EXPECT_EQ(table->GetStats().snapshots, 0u);
}

TEST(MemTableThreads, ConcurrentUpdatesLoseNothing) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kCounters = 3;
  constexpr uint64_t kIncrements = 1'500;
  const auto table = NewTable(kBusy);
  {
    const Repeated others({[&] {
      ASSERT_TRUE(IsOk(table->Seal()));
      ASSERT_TRUE(IsOk(table->Compact()));
    }});
    RunTogether(kThreads, [&](uint64_t thread) {
      for (uint64_t i = 0; i < kIncrements; ++i) {
        const auto increment =
            [](std::optional<std::string_view> value) -> Result<std::optional<std::string>> {
          const uint64_t next = value ? NumberIn(*value) + 1 : 1;
          return std::to_string(next) + ' ' + std::string(100, 'c');
        };
        ASSERT_TRUE(IsOk(table->Update(Numbered("counter", (i + thread) % kCounters),
                                       base::ByValue(increment))));
      }
    });
  }
  uint64_t sum = 0;
  for (const auto& [key, value] : Scan(*table)) sum += NumberIn(value);
  EXPECT_EQ(sum, kThreads * kIncrements);
}

// Each Update takes what it finds, and each put gives one thing to take: batches, puts and updates
// agree on one order.
TEST(MemTableThreads, UpdatesAndPutsAndBatchesAgreeOnOneOrder) {
  constexpr uint64_t kPutsAWriter = 3'000;
  const auto table = NewTable(kBusy);
  std::atomic<uint64_t> versions{1};
  std::atomic<uint64_t> takes{0};
  std::vector<std::vector<uint64_t>> taken(2);
  {
    std::vector<std::function<void()>> takers;
    for (std::vector<uint64_t>& mine : taken) {
      takers.emplace_back([&table, &mine, &takes] {
        uint64_t seen = 0;
        const auto take =
            [&seen](std::optional<std::string_view> value) -> Result<std::optional<std::string>> {
          seen = value ? NumberIn(*value) : 0;
          return std::nullopt;
        };
        ASSERT_TRUE(IsOk(table->Update("key", base::ByValue(take))));
        if (seen == 0) return;
        mine.push_back(seen);
        takes.fetch_add(1);
      });
    }
    const Repeated others(std::move(takers));
    RunTogether(2, [&](uint64_t writer) {
      for (uint64_t i = 0; i < kPutsAWriter || takes.load() < 10; ++i) {
        const std::string value = std::to_string(versions.fetch_add(1));
        if (writer == 0) {
          ASSERT_TRUE(IsOk(table->Put("key", value)));
        } else {
          WriteBatch batch;
          batch.Put("other", value);
          batch.Put("key", value);
          ASSERT_TRUE(IsOk(table->Write(batch)));
        }
      }
    });
  }
  std::vector<uint64_t> all = taken[0];
  all.insert(all.end(), taken[1].begin(), taken[1].end());
  std::ranges::sort(all);
  EXPECT_TRUE(std::ranges::adjacent_find(all) == all.end()) << "one value was taken twice";
}

TEST(MemTableThreads, WhatWaitsWhileEveryProcessorWritesIsSortedAfterwards) {
  constexpr uint64_t kPile = 32768;  // so many more in a segment ask for the background
  constexpr uint64_t kRecords = kPile + kPile / 2;
  const uint64_t writers = std::max(1U, std::thread::hardware_concurrency());
  const auto table = MemTable::Create({.memory_budget = (1 + writers) * 64 * kMiB,
                                       .generation_bytes = (1 + writers) * 16 * kMiB})
                         .value();
  RunTogether(writers, [&](uint64_t writer) {
    for (uint64_t i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(table->Put(Numbered("key", writer * kRecords + i), "value").ok());
    }
  });
  const auto unsorted = [&] {
    const MemTableStats stats = table->GetStats();
    return stats.records - stats.sorted_records;
  };
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (unsorted() >= writers * kPile && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(unsorted(), writers * kPile);
}

// Lifetimes

TEST(MemTableThreads, HandlesMayEndOnAnyThreadBeforeTheirIterators) {
  for (uint64_t round = 0; round < 100; ++round) {
    auto table = NewTable(kBusy);
    for (uint64_t i = 0; i < 400; ++i) {
      ASSERT_TRUE(IsOk(table->Put(Numbered("key", i), std::string(300, 'v'))));
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      auto snapshot = std::make_unique<Snapshot>(SnapshotOf(*table));
      auto it = table->NewIterator({.snapshot = i == 0 ? snapshot.get() : nullptr});
      auto value = std::make_unique<Value>(table->Get("key7").value().value());
      threads.emplace_back(
          [it = std::move(it), snapshot = std::move(snapshot), value = std::move(value)]() mutable {
            EXPECT_EQ(ReadForwards(it.get()).size(), 400u);
            snapshot.reset();
            EXPECT_EQ(ReadBackwards(it.get()).size(), 400u);
            it.reset();
            EXPECT_EQ(value->view(), std::string(300, 'v'));
          });
    }
    if (round % 3 == 0) {
      ASSERT_TRUE(IsOk(table->Seal()));
    }
    if (round % 2 == 0) {
      std::thread([table = std::move(table)]() mutable { table.reset(); }).join();
    } else {
      table.reset();
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// The budget

TEST(MemTableThreads, WritersThatWaitAtTheBudgetAllGetRoom) {
  constexpr uint64_t kWriters = 4;
  const auto table = NewTable({.memory_budget = 1 * kMiB});
  RunTogether(kWriters, [&](uint64_t writer) {
    for (uint64_t i = 0; i < 4'000; ++i) {
      const std::string key = Numbered(Numbered("writer", writer) + "/", i % 10);
      ASSERT_TRUE(IsOk(table->Put(key, Numbered(std::string(1'000, 'v'), i)))) << i;
      if (i % 64 == 0) {
        ASSERT_LE(table->GetStats().memory_bytes, 3 * kMiB);
      }
    }
  });
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    for (uint64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(GetFrom(*table, Numbered(Numbered("writer", writer) + "/", i)),
                Numbered(std::string(1'000, 'v'), 3'990 + i));
    }
  }
}

TEST(MemTableThreads, WritersThatCannotGetRoomAllEnd) {
  constexpr uint64_t kWriters = 4;
  for (const bool compaction : {true, false}) {
    SCOPED_TRACE(compaction);
    const auto table = NewTable({.memory_budget = 1 * kMiB, .compaction = compaction});
    std::array<uint64_t, kWriters> written{};
    RunTogether(kWriters, [&](uint64_t writer) {
      for (int failures = 0; failures < 5;) {
        const std::string key = Numbered(Numbered("writer", writer) + "/", written[writer]);
        const Status status = table->Put(key, std::string(300, 'v'));
        if (status.ok()) {
          ++written[writer];
        } else {
          ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
          ++failures;
        }
      }
    });
    uint64_t sum = 0;
    for (const uint64_t count : written) sum += count;
    EXPECT_EQ(Scan(*table).size(), sum) << "what was acknowledged is there, and nothing else";
    EXPECT_GT(sum, 300u);
  }
}

}  // namespace
}  // namespace basalt
