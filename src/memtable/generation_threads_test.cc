#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/epoch.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/test_equal_hashes.h"
#include "memtable/generation.h"
#include "memtable/generation_test_support.h"

namespace basalt::memtable {
namespace {

using base::SequenceNumber;

/// Hands out sequences and advances what is visible over finished batches in order, as a commit
/// queue does.
class Commits {
 public:
  SequenceNumber Assign(size_t count) {
    const std::lock_guard lock(mutex_);
    const SequenceNumber first = next_;
    next_ += count;
    open_[first] = {next_ - 1, false};
    return first;
  }
  void Finished(SequenceNumber first) {
    const std::lock_guard lock(mutex_);
    open_[first].second = true;
    while (!open_.empty() && open_.begin()->second.second) {
      visible_.store(open_.begin()->second.first, std::memory_order_release);
      open_.erase(open_.begin());
    }
  }
  SequenceNumber visible() const { return visible_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  SequenceNumber next_ = 1;
  std::map<SequenceNumber, std::pair<SequenceNumber, bool>> open_;  // first -> last, finished
  std::atomic<SequenceNumber> visible_{0};
};

std::string ValueFor(std::string_view key, uint64_t number) {
  std::string value = Numbered(std::string(key) + "/", number);
  value.append(number % 150, '.');
  return value;
}

/// Writers, readers and iterators at once. Values name their key and a number that only grows for
/// one key (each key has one writer), so that a reader can tell a value that is stale, torn or
/// another's.
class History {
 public:
  explicit History(uint32_t shards)
      : table_(Generation::Create({.budget_bytes = 512 << 20, .shards = shards})) {}

  void Run(int batches_a_writer) {
    std::vector<std::thread> threads;
    std::atomic<bool> done{false};
    std::vector<std::thread> writers;
    for (size_t writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([this, writer, batches_a_writer] { Write(writer, batches_a_writer); });
    }
    for (uint64_t reader = 0; reader < 2; ++reader) {
      threads.emplace_back([this, reader, &done] {
        base::Random random(100 + reader);
        while (!done.load()) CheckGet(&random);
      });
    }
    threads.emplace_back([this, &done] {
      while (!done.load()) CheckScan();
    });
    for (std::thread& writer : writers) writer.join();
    done.store(true);
    for (std::thread& thread : threads) thread.join();
    CheckScan();
    EXPECT_EQ(table_->record_count(), commits_.visible());
  }

 private:
  static constexpr size_t kWriters = 2;
  static constexpr size_t kKeysAWriter = 500;

  static std::string Key(size_t writer, size_t i) {
    return Numbered(Numbered("writer", writer) + "/key", i);
  }

  void Write(size_t writer, int batches) {
    base::Random random(writer);
    std::vector<uint64_t> numbers(kKeysAWriter);
    for (int i = 0; i < batches; ++i) {
      WriteBatch batch;
      std::vector<std::pair<size_t, uint64_t>> written;
      const size_t records = random.Between(1, 8);
      for (size_t j = 0; j < records; ++j) {
        const size_t k = random.Below(kKeysAWriter);
        const std::string key = Key(writer, k);
        batch.Put(key, ValueFor(key, ++numbers[k]));
        written.emplace_back(k, numbers[k]);
      }
      Generation::Reservation reservation = MustReserve(*table_, batch);
      if (random.OneIn(10)) {  // one that fails, and is tried again
        Generation::Reservation failed = MustReserve(*table_, batch);
        table_->Abandon(std::move(failed));
      }
      const SequenceNumber first = commits_.Assign(records);
      table_->Insert(std::move(reservation), first);
      commits_.Finished(first);
      // Announced only when it is surely visible.
      if (commits_.visible() < first + records - 1) continue;
      for (const auto& [k, number] : written) {
        announced_[writer * kKeysAWriter + k].store(number, std::memory_order_release);
      }
    }
  }

  void CheckGet(base::Random* random) {
    const size_t writer = random->Below(kWriters);
    const size_t k = random->Below(kKeysAWriter);
    const uint64_t floor = announced_[writer * kKeysAWriter + k].load(std::memory_order_acquire);
    const SequenceNumber visible = commits_.visible();
    const std::string key = Key(writer, k);
    FoundRecord found;
    const bool is_found = table_->Get(0, key, base::Hash(key), visible, &found);
    if (!is_found) {
      ASSERT_EQ(floor, 0u) << "a visible write of " << key << " was not found";
      return;
    }
    ASSERT_LE(base::TagSequence(found.tag), visible);
    ASSERT_EQ(base::TagKind(found.tag), RecordKind::kPut);
    const std::string value = found.value.ToString();
    const uint64_t number = std::stoull(value.substr(key.size() + 1));
    ASSERT_EQ(value, ValueFor(key, number));
    ASSERT_GE(number, floor);
  }

  // Each sequence is one record, so exactly `visible` of them are there.
  void CheckScan() {
    const SequenceNumber visible = commits_.visible();
    const auto iterator = table_->NewIterator(0, visible);
    std::string last_key;
    base::Tag last_tag = 0;
    uint64_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      if (count != 0) {
        ASSERT_LT(base::CompareInternal(last_key, last_tag, iterator->key(), iterator->tag()), 0);
      }
      ASSERT_TRUE(iterator->value().starts_with(std::string(iterator->key()) + "/"));
      last_key = iterator->key();
      last_tag = iterator->tag();
      ++count;
    }
    ASSERT_EQ(count, visible);
  }

  std::shared_ptr<Generation> table_;
  Commits commits_;
  std::array<std::atomic<uint64_t>, kWriters * kKeysAWriter> announced_{};
};

TEST(MemTableThreads, WritersReadersAndIteratorsAgreeOnHistory) {
  for (const uint32_t shards : {1, 16}) {
    SCOPED_TRACE(Numbered("shards: ", shards));
    History(shards).Run(4'000);
  }
}

TEST(MemTableThreads, WhatIsThereIsFoundWhileTheIndexDoubles) {
  const auto table = Generation::Create({.budget_bytes = 512 << 20, .shards = 1});
  constexpr uint64_t kKeys = 100'000;
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      base::Random random(reader);
      for (uint64_t there = 0; there < kKeys;) {
        there = written.load(std::memory_order_acquire);
        if (there == 0) continue;
        const uint64_t i = random.Below(there);
        ASSERT_EQ(GetAt(*table, std::to_string(i), there), std::to_string(i + 1) + "=");
      }
    });
  }
  for (uint64_t i = 0; i < kKeys; ++i) {
    Put(*table, std::to_string(i), "", i + 1);
    written.store(i + 1, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
}

/// One record by Generation::Put, with the next number of `last`.
Generation::Placed PutNext(Generation* table, std::string_view key, std::string_view value,
                           std::atomic<SequenceNumber>* last) {
  const base::EpochGuard inside;
  bool has_piled_up = false;
  const auto assign = [&](base::Tag) { return last->fetch_add(1) + 1; };
  return table->Put({.key = key, .value = value}, base::Hash(key), inside.thread_number(), assign,
                    &has_piled_up);
}

// From an empty index to one that has doubled often, some times over; in segments of their own.
TEST(MemTableThreads, WritersBesideOneAnotherLoseNothingWhileTheIndexDoubles) {
  constexpr uint64_t kWriters = 3;
  constexpr uint64_t kKeysOfWriter = 4'000;
  for (int round = 0; round < 40; ++round) {
    const auto table = Generation::Create({.budget_bytes = 64 << 20, .shards = 4});
    std::atomic<SequenceNumber> last{0};
    std::vector<std::thread> writers;
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        for (uint64_t i = 0; i < kKeysOfWriter; ++i) {
          const std::string key = Numbered(Numbered("writer", writer) + "/", i);
          if (writer == 0) {
            WriteBatch batch;
            batch.Put(key, "");
            Generation::Reservation reservation = MustReserve(*table, batch);
            table->Insert(std::move(reservation), last.fetch_add(1) + 1);
          } else {
            ASSERT_EQ(PutNext(table.get(), key, "", &last), Generation::Placed::kYes);
          }
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    uint64_t lost = 0;
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      for (uint64_t i = 0; i < kKeysOfWriter; ++i) {
        const std::string key = Numbered(Numbered("writer", writer) + "/", i);
        if (!GetAt(*table, key, base::kMaxSequence)) ++lost;
      }
    }
    ASSERT_EQ(lost, 0u) << "in round " << round;
    ASSERT_EQ(table->record_count(), kWriters * kKeysOfWriter);
  }
}

// Writers race to the chains of few keys, many of them with a number that is late. In the end each
// version is there, as of its number.
TEST(MemTableThreads, VersionsThatRaceToOneChainAreAllInIt) {
  constexpr uint64_t kWriters = 4;
  constexpr uint64_t kKeys = 3;
  constexpr uint64_t kVersionsOfWriter = 160;
  constexpr SequenceNumber kAtOnce = 16;
  for (int round = 0; round < 60; ++round) {
    const auto table = Generation::Create({.budget_bytes = 64 << 20, .shards = 4});
    std::atomic<SequenceNumber> last{0};
    std::array<std::vector<std::pair<SequenceNumber, uint64_t>>, kWriters> written;
    std::vector<std::thread> writers;
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        base::Random random(writer);
        for (SequenceNumber done = 0; done < kVersionsOfWriter; done += kAtOnce) {
          if (writer % 2 == 0) {
            for (SequenceNumber i = 0; i < kAtOnce; ++i) {
              ASSERT_EQ(PutNext(table.get(), std::to_string(random.Below(kKeys)), "put", &last),
                        Generation::Placed::kYes);
            }
            continue;
          }
          // The last one first.
          const SequenceNumber first = last.fetch_add(kAtOnce) + 1;
          for (SequenceNumber sequence = first + kAtOnce; sequence-- > first;) {
            const uint64_t key = random.Below(kKeys);
            Put(*table, std::to_string(key), std::to_string(writer), sequence);
            written[writer].emplace_back(sequence, key);
          }
        }
      });
    }
    for (std::thread& writer : writers) writer.join();

    ASSERT_EQ(table->record_count(), kWriters * kVersionsOfWriter);
    for (uint64_t writer = 1; writer < kWriters; writer += 2) {
      for (const auto& [sequence, key] : written[writer]) {
        ASSERT_EQ(GetAt(*table, std::to_string(key), sequence),
                  std::to_string(sequence) + '=' + std::to_string(writer));
      }
    }
    uint64_t versions = 0;
    for (uint64_t key = 0; key < kKeys; ++key) {
      for (SequenceNumber at = last.load(); at > 0; ++versions) {
        const auto version = GetAt(*table, std::to_string(key), at);
        if (!version) break;
        at = std::stoull(*version) - 1;
      }
    }
    ASSERT_EQ(versions, kWriters * kVersionsOfWriter);
    ASSERT_EQ(ScanAll(*table, last.load()).size(), versions);
  }
}

// A reader waits for each key that a writer is about to insert: what the index leads to is
// finished. The two take turns, which is slow on a busy machine: bounded by time, too.
TEST(MemTableThreads, ARecordThatIsFoundIsFinished) {
  const auto table = Generation::Create({.budget_bytes = 64 << 20, .shards = 1});
  constexpr uint64_t kKeysMax = 50'000;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  std::atomic<uint64_t> seen{0};
  std::atomic<uint64_t> keys{kKeysMax};
  std::thread reader([&] {
    for (uint64_t i = 0; i < keys.load(std::memory_order_acquire);) {
      const std::string key = std::to_string(i);
      FoundRecord found;
      bool is_found = false;
      for (int look = 0; look < 1'000 && !is_found; ++look) {
        is_found = table->Get(0, key, base::Hash(key), base::kMaxSequence, &found);
      }
      if (!is_found) {
        std::this_thread::yield();
        continue;
      }
      EXPECT_EQ(base::TagSequence(found.tag), i + 1) << "an unfinished record was found";
      seen.store(++i, std::memory_order_release);
    }
  });
  for (uint64_t i = 0; i < kKeysMax; ++i) {
    if (std::chrono::steady_clock::now() > deadline) {
      keys.store(i, std::memory_order_release);
      break;
    }
    Put(*table, std::to_string(i), "", i + 1);
    while (seen.load(std::memory_order_acquire) + 2 < i) std::this_thread::yield();
  }
  reader.join();
  EXPECT_GE(seen.load(), 1u);
}

TEST(MemTableThreads, AThousandShortLivedThreads) {
  const auto table = Generation::Create({});
  constexpr uint64_t kThreads = 1'000;
  for (uint64_t begin = 0; begin < kThreads; begin += 50) {
    std::vector<std::thread> threads;
    for (uint64_t i = begin; i < begin + 50; ++i) {
      threads.emplace_back([&table, i] {
        Put(*table, Numbered("thread", i), "v", i + 1);
        EXPECT_EQ(GetAt(*table, Numbered("thread", i), base::kMaxSequence),
                  std::to_string(i + 1) + "=v");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(ScanAll(*table, kThreads).size(), kThreads);
}

// More threads than have segments of their own, with records one by one, in batches and abandoned,
// under few shards and many.
TEST(MemTableThreads, ThreadsWithSegmentsAndThreadsThatShareThemLoseNothing) {
  constexpr uint64_t kThreads = 40;
  constexpr SequenceNumber kRounds = 60;
  constexpr SequenceNumber kRecordsInRound = 22;
  constexpr SequenceNumber kRecords = kRounds * kRecordsInRound;
  for (const uint32_t shards : {1, 2, 16, 64}) {
    SCOPED_TRACE(Numbered("shards: ", shards));
    const auto table = Generation::Create({.budget_bytes = 64 << 20, .shards = shards});
    const auto put_at_once = [&](const std::string& key, SequenceNumber sequence) {
      const base::EpochGuard inside;
      bool has_piled_up = false;
      const auto assign = [&](base::Tag) { return sequence; };
      ASSERT_EQ(table->Put({.key = key, .value = "at once"}, base::Hash(key),
                           inside.thread_number(), assign, &has_piled_up),
                Generation::Placed::kYes);
    };
    const auto write = [&](uint64_t thread) {
      const std::string stem = Numbered("thread", thread) + "/";
      SequenceNumber sequence = thread * kRecords;
      for (SequenceNumber round = 0; round < kRounds; ++round) {
        Put(*table, Numbered(stem, sequence), "alone", sequence + 1);
        ++sequence;
        WriteBatch lost;
        lost.Put(Numbered(stem, sequence), "lost");
        table->Abandon(MustReserve(*table, lost));
        put_at_once(Numbered(stem, sequence), sequence + 1);
        ++sequence;
        WriteBatch batch;
        for (uint64_t i = 0; i < 20; ++i) batch.Put(Numbered(stem, sequence + i), "together");
        table->Insert(MustReserve(*table, batch), sequence + 1);
        sequence += 20;
        if (round % 16 == 0) table->SortTail();
      }
    };
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(write, i);
    for (std::thread& thread : threads) thread.join();

    EXPECT_EQ(table->record_count(), kThreads * kRecords);
    const std::vector<std::string> all = ScanAll(*table, kThreads * kRecords);
    ASSERT_EQ(all.size(), kThreads * kRecords);
    for (const std::string& record : all) ASSERT_EQ(record.find("lost"), std::string::npos);
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      const SequenceNumber first = thread * kRecords;
      const std::string stem = Numbered("thread", thread) + "/";
      for (const auto& [number, value] : {std::pair{first, "alone"},
                                          {first + 1, "at once"},
                                          {first + kRecords - 1, "together"}}) {
        EXPECT_EQ(GetAt(*table, Numbered(stem, number), kThreads * kRecords),
                  std::to_string(number + 1) + "=" + value);
      }
    }
  }
}

// Iterators are busy with what lies behind an unfinished record of one thread's segment, before
// they come to another's, whose records are sorted meanwhile, and the memory of whose order is
// taken for new records.
TEST(MemTableThreads, OrderThatIsBeingGatheredIsNotGivenBack) {
  constexpr int kRecordsBehind = 40'000;
  constexpr int kRounds = 150;
  constexpr int kRecordsInRound = 3'000;
  const auto table = Generation::Create({.budget_bytes = 32 << 20, .shards = 2});
  std::atomic<SequenceNumber> visible{0};
  SequenceNumber number = 0;
  const auto reserve = [&] {
    WriteBatch batch;
    batch.Put(Numbered("k", ++number), "v");
    return MustReserve(*table, batch);
  };
  const auto put = [&](int records) {
    for (; records > 0; --records) {
      const SequenceNumber sequence = visible.load(std::memory_order_relaxed) + 1;
      Put(*table, Numbered("k", ++number), "v", sequence);
      visible.store(sequence, std::memory_order_release);
    }
  };

  Generation::Reservation unfinished = reserve();
  put(kRecordsBehind);
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int round = 0; round < kRounds; ++round) {
      Generation::Reservation first_of_round = reserve();
      put(kRecordsInRound);
      const SequenceNumber sequence = visible.load(std::memory_order_relaxed) + 1;
      table->Insert(std::move(first_of_round), sequence);
      visible.store(sequence, std::memory_order_release);
      table->SortTail();
    }
    is_done.store(true, std::memory_order_release);
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!is_done.load(std::memory_order_acquire)) {
        const SequenceNumber at = visible.load(std::memory_order_acquire);
        const auto iterator = table->NewIterator(0, at);
        SequenceNumber count = 0;
        for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
        ASSERT_EQ(count, at);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  table->Abandon(std::move(unfinished));
  EXPECT_EQ(ScanAll(*table, base::kMaxSequence).size(), visible.load());
}

TEST(MemTableThreads, IteratorsShareOneSortingAndSeeTheSame) {
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  WriteBatch batch;
  for (uint64_t i = 0; i < 20'000; ++i) batch.Put(Numbered("key", i), "v");
  table->Insert(MustReserve(*table, batch), 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&table] { EXPECT_EQ(ScanAll(*table, 20'000).size(), 20'000u); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Two threads write each key.
TEST(MemTableThreads, WritersOfKeysOfOneHashLoseNone) {
  const std::vector<std::string> keys = base::KeysOfOneHash(300);
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&keys, &table, thread] {
      for (uint64_t i = thread / 2; i < keys.size(); i += 2) {
        Put(*table, keys[i], "v", 2 * i + 1 + thread % 2);
        ASSERT_TRUE(GetAt(*table, keys[i], base::kMaxSequence));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(GetAt(*table, keys[i], base::kMaxSequence), Numbered("", 2 * i + 2) + "=v");
    EXPECT_EQ(GetAt(*table, keys[i], 2 * i + 1), Numbered("", 2 * i + 1) + "=v");
  }
}

}  // namespace
}  // namespace basalt::memtable
