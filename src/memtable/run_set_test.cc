#include "memtable/run_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "base/test_memory.h"
#include "memtable/generation_iterator.h"
#include "memtable/generation_test_support.h"

namespace basalt::memtable {
namespace {

using base::MemoryThatFails;
using base::SequenceNumber;

/// Finished records with given keys, of one keyspace.
class Versions {
 public:
  SortEntry Add(std::string_view key, SequenceNumber sequence, RecordKind kind = RecordKind::kPut,
                uint64_t time_ms = 0) {
    const size_t bytes = RecordSource{.key = key, .value = {}, .time_ms = time_ms}.ByteSize();
    memory_.push_back(std::make_unique<uint64_t[]>(bytes / sizeof(uint64_t) + 1));
    const uint8_t flags = time_ms != 0 ? Record::kFlagTime : 0;
    auto* const record =
        new (memory_.back().get()) Record{.tag = base::MakeTag(sequence, kind),
                                          .previous = 0,
                                          .value_size = 0,
                                          .key_size = static_cast<uint16_t>(key.size()),
                                          .kind = static_cast<uint8_t>(kind),
                                          .flags = flags};
    if (time_ms != 0) std::memcpy(record->body(), &time_ms, sizeof time_ms);
    if (!key.empty()) std::memcpy(record->body() + record->key_offset(), key.data(), key.size());
    records_.push_back(record);
    return {record, base::KeyPrefix(key)};
  }
  SortEntry Add(std::string_view key) { return Add(key, records_.size() + 1); }

  /// Those with a sequence <= `visible`, in internal order.
  std::vector<const Record*> Sorted(SequenceNumber visible = base::kMaxSequence) const {
    std::vector<const Record*> sorted;
    for (const Record* record : records_) {
      if (base::TagSequence(record->tag) <= visible) sorted.push_back(record);
    }
    std::sort(sorted.begin(), sorted.end(), [](const Record* a, const Record* b) {
      return std::pair(a->key(), ~a->tag.load()) < std::pair(b->key(), ~b->tag.load());
    });
    return sorted;
  }
  size_t size() const { return records_.size(); }

 private:
  std::vector<std::unique_ptr<uint64_t[]>> memory_;
  std::vector<const Record*> records_;
};

void Append(RunSet& set, uint32_t keyspace, std::vector<SortEntry> entries) {
  RunSet::Tail tails[] = {{keyspace, std::move(entries)}};
  set.Append(tails);
}

void MergeWhatWaits(RunSet& set) {
  while (auto merge = set.TakeMerge()) {
    merge->Run();
    set.PutBack(&*merge);
  }
}

void MergeAll(RunSet& set, uint32_t keyspace) {
  while (auto merge = set.TakeMergeOfAll(keyspace)) {
    merge->Run();
    set.PutBack(&*merge);
  }
}

// Each run in order, and all together what is expected.
void ExpectHolds(const RunSet& set, uint32_t keyspace, const Versions& versions) {
  std::vector<const Record*> held;
  const auto add = [&held](const SortedRun& run) {
    for (size_t i = 0; i < run.size(); ++i) {
      const Record& record = run[i];
      held.push_back(&record);
      ASSERT_EQ(run.view().entries[i].prefix, base::KeyPrefix(record.key(), run.view().shared));
      if (i != 0) {
        ASSERT_LT(CompareRecords(run[i - 1], record), 0);
      }
    }
  };
  const auto runs = set.Of(keyspace);
  ASSERT_NE(runs, nullptr);
  for (const auto& run : *runs) ASSERT_NO_FATAL_FAILURE(add(*run));
  ASSERT_NO_FATAL_FAILURE(add(set.FreshOf(keyspace)));
  std::sort(held.begin(), held.end());
  std::vector<const Record*> expected = versions.Sorted();
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(held, expected);
}

std::string RandomKey(base::Random* random) {
  std::string key(random->OneIn(3) ? 0 : random->Below(20), 'p');
  const size_t size = random->Below(12);
  for (size_t i = 0; i < size; ++i) key.push_back(static_cast<char>(random->Below(4) * 84));
  return key;
}

TEST(RunSet, HasNothingOfAKeyspaceThatItNeverMet) {
  const RunSet set(Sorter::kVector);
  EXPECT_EQ(set.Of(3), nullptr);
  EXPECT_TRUE(set.Keyspaces().empty());
  EXPECT_EQ(set.entry_count() + set.run_count() + set.memory_bytes(), 0u);
}

/// So many runs at most hold `entries` where each has less than a quarter of the one before it, but
/// for the newest ones.
uint64_t RunsMax(uint64_t entries) {
  static_assert(RunSet::kSizeRatio == 4);
  return std::min<uint64_t>(entries, (std::bit_width(entries) + 1) / 2 + 1);
}

TEST(RunSet, RunsStayFewAndFallInSizeWhateverTheTails) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(Numbered("seed ", seed));
    base::Random random(seed);
    // The first seeds have tails of one size, the others of all sizes.
    static constexpr size_t kSizes[] = {1, 2, 31, 33, 1000};
    Versions versions;
    RunSet set(Sorter::kVector);
    while (versions.size() < 20'000) {
      const size_t size =
          seed <= std::size(kSizes) ? kSizes[seed - 1] : random.Below(1u << random.Below(13)) + 1;
      std::vector<SortEntry> tail;
      for (size_t i = 0; i < size; ++i) {
        tail.push_back(
            versions.Add(random.OneIn(2) ? RandomKey(&random) : Numbered("key", random.Next())));
      }
      Append(set, 0, std::move(tail));
      MergeWhatWaits(set);
      const auto runs = set.Of(0);
      const SortedRun fresh = set.FreshOf(0);
      ASSERT_EQ(runs->size() + (fresh.size() != 0 ? 1 : 0), set.run_count());
      ASSERT_LE(set.run_count(), RunsMax(versions.size()));
      uint64_t bytes = fresh.size() * sizeof(SortEntry);
      for (size_t i = 0; i < runs->size(); ++i) {
        const SortedRun& run = *(*runs)[i];
        bytes += run.memory_bytes();
        ASSERT_GE(run.memory_bytes(), run.size() * sizeof(SortEntry));
        if (i == 0) continue;
        ASSERT_LT(RunSet::kSizeRatio * run.size(), (*runs)[i - 1]->size());
        ASSERT_LT(RunSet::kTailRatio * run.tails(), (*runs)[i - 1]->size());
      }
      ASSERT_EQ(set.entry_count(), versions.size());
      ASSERT_EQ(set.memory_bytes(), bytes);
    }
    ExpectHolds(set, 0, versions);
    MergeAll(set, 0);
    ASSERT_EQ(set.run_count(), 1u);
    ExpectHolds(set, 0, versions);
  }
}

TEST(RunSet, OfManyEntriesAMergeHoldsAQuarterTwiceAtMost) {
  constexpr size_t kFreely = 2'000;
  constexpr size_t kTail = 500;
  Versions versions;
  RunSet set(Sorter::kVector, kFreely);
  base::Random random(1);
  while (versions.size() < 60'000) {
    std::vector<SortEntry> tail;
    for (size_t i = 0; i < kTail; ++i) tail.push_back(versions.Add(Numbered("k", random.Next())));
    Append(set, 0, std::move(tail));
    while (auto merge = set.TakeMerge()) {
      const uint64_t before = set.memory_bytes();
      merge->Run();
      set.PutBack(&*merge);
      const uint64_t largest = std::max(kFreely, versions.size() / RunSet::kMergedPart);
      ASSERT_LE(before - set.memory_bytes(), largest * (sizeof(SortEntry) + 1));
    }
    ASSERT_LE(set.run_count(), 2 * RunSet::kMergedPart + RunsMax(versions.size() / kTail));
  }
  ExpectHolds(set, 0, versions);
  MergeAll(set, 0);
  ASSERT_EQ(set.run_count(), 1u);
  ExpectHolds(set, 0, versions);
}

TEST(RunSet, WhatSomebodyHoldsNeverChanges) {
  constexpr size_t kMany = RunSet::kInsertedMax + 1;
  Versions versions;
  RunSet set(Sorter::kVector);
  const auto many = [&](char first) {
    std::vector<SortEntry> entries;
    for (size_t i = 0; i < kMany; ++i) entries.push_back(versions.Add(Numbered({&first, 1}, i)));
    return entries;
  };
  Append(set, 0, many('m'));
  Append(set, 0, {versions.Add("b")});
  const auto runs_before = set.Of(0);
  const SortedRun fresh_before = set.FreshOf(0);
  Append(set, 0, {versions.Add("a")});
  EXPECT_EQ(set.FreshOf(0).size(), 2u);
  Append(set, 0, many('k'));
  EXPECT_EQ(set.FreshOf(0).size(), 0u);
  EXPECT_EQ(set.Of(0)->front()->size(), 2 * kMany + 2);

  ASSERT_EQ(runs_before->size(), 1u);
  EXPECT_EQ(runs_before->front()->size(), kMany);
  EXPECT_EQ((*runs_before->front())[0].key(), "m0");
  ASSERT_EQ(fresh_before.size(), 1u);
  EXPECT_EQ(fresh_before[0].key(), "b");
}

TEST(RunSet, FreshEntriesKeepTheirOrderWhateverTheirKeysShare) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(Numbered("seed ", seed));
    base::Random random(seed);
    Versions versions;
    RunSet set(Sorter::kVector);
    for (size_t i = 0; i < 300; ++i) {
      const std::string key = random.OneIn(3) ? RandomKey(&random) : Numbered("shared by", i % 7);
      Append(set, 0, {versions.Add(seed % 2 == 0 ? "all share" + key : key)});
      ASSERT_NO_FATAL_FAILURE(ExpectHolds(set, 0, versions));
    }
    EXPECT_GT(set.FreshOf(0).size(), 0u);
  }
}

TEST(RunSet, OneRecordIsAppendedWhereItsPlaceIsReady) {
  Versions versions;
  RunSet set(Sorter::kVector);
  const SortEntry first = versions.Add("first");
  EXPECT_FALSE(set.AppendOne(0, *first.record)) << "of a keyspace that it never met";
  Append(set, 0, {first});
  while (versions.size() < FreshRun::kEntriesMax) {
    EXPECT_TRUE(set.AppendOne(0, *versions.Add(Numbered("next ", versions.size())).record));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectHolds(set, 0, versions));
  EXPECT_EQ(set.entry_count(), versions.size());
  EXPECT_EQ(set.run_count(), 1u);

  const SortEntry last = versions.Add("last");
  EXPECT_FALSE(set.AppendOne(0, *last.record)) << "there is no room";
  Append(set, 0, {last});
  EXPECT_EQ(set.FreshOf(0).size(), 0u);
  EXPECT_TRUE(set.AppendOne(0, *versions.Add("one more").record));
  ASSERT_NO_FATAL_FAILURE(ExpectHolds(set, 0, versions));
  EXPECT_EQ(set.entry_count(), versions.size());
}

std::vector<SortEntry> Decimals(Versions* versions, size_t count) {
  std::vector<SortEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    entries.push_back(versions->Add(Numbered("k", versions->size() * 7919 % 100'003)));
  }
  return entries;
}

TEST(RunSet, OthersAppendBehindAMergeThatIsOut) {
  Versions versions;
  RunSet set(Sorter::kVector);
  Append(set, 0, Decimals(&versions, RunSet::kMergedAtOnceMax));
  Append(set, 0, Decimals(&versions, RunSet::kMergedAtOnceMax));
  auto merge = set.TakeMerge();
  ASSERT_TRUE(merge);
  EXPECT_EQ(set.Of(0)->size(), 2u);
  for (int i = 0; i < 3'000; ++i) Append(set, 0, Decimals(&versions, 2));
  EXPECT_FALSE(set.TakeMerge()) << "one at a time";
  // The two that are read stand as they were; what came meanwhile has been merged.
  EXPECT_EQ((*set.Of(0))[1]->size(), RunSet::kMergedAtOnceMax);
  EXPECT_LE(set.run_count(), 2u + 13);
  ExpectHolds(set, 0, versions);

  merge->Run();
  set.PutBack(&*merge);
  EXPECT_EQ(set.Of(0)->front()->size(), 2 * RunSet::kMergedAtOnceMax);
  ExpectHolds(set, 0, versions);
  MergeWhatWaits(set);
  EXPECT_LE(set.run_count(), RunsMax(versions.size()));
  ExpectHolds(set, 0, versions);
  MergeAll(set, 0);
  EXPECT_EQ(set.memory_bytes(), set.Of(0)->front()->memory_bytes());
}

TEST(RunSet, AMergeThatIsOutIsCountedAndOneThatFailedChangesNothing) {
  Versions versions;
  RunSet set(Sorter::kVector);
  Append(set, 0, Decimals(&versions, 5'000));
  Append(set, 0, Decimals(&versions, 4'000));
  const uint64_t bytes = set.memory_bytes();
  auto merge = set.TakeMerge();
  ASSERT_TRUE(merge);
  EXPECT_GE(set.memory_bytes(), bytes + 9'000 * sizeof(SortEntry));
  set.PutBack(&*merge);  // as after a Run that threw
  EXPECT_EQ(set.memory_bytes(), bytes);
  EXPECT_EQ(set.run_count(), 2u);
  ExpectHolds(set, 0, versions);

  Append(set, 0, Decimals(&versions, 1));
  MergeAll(set, 0);
  EXPECT_EQ(set.run_count(), 1u);
  ExpectHolds(set, 0, versions);
}

TEST(RunSet, AMergeOfAllHoldsTwiceOnlyWhatItIsMerging) {
  Versions versions;
  RunSet set(Sorter::kVector);
  constexpr size_t kFall = RunSet::kSizeRatio + 1;
  for (size_t size = 65'536; size >= 512; size /= kFall) Append(set, 0, Decimals(&versions, size));
  ASSERT_EQ(set.run_count(), 4u);
  constexpr uint64_t kSampleBytes = 256;  // The smallest run has none, and each may have one more.
  uint64_t bytes = set.memory_bytes();
  uint64_t most = 0;
  while (auto merge = set.TakeMergeOfAll(0)) {
    most = std::max(most, set.memory_bytes());
    merge->Run();
    set.PutBack(&*merge);
    EXPECT_LE(set.memory_bytes(), bytes + kSampleBytes);
    bytes = set.memory_bytes();
    ExpectHolds(set, 0, versions);
  }
  EXPECT_EQ(set.run_count(), 1u);
  EXPECT_LE(most, 2 * set.memory_bytes() + kSampleBytes);
}

TEST(RunSet, KeyspacesHaveRunsOfTheirOwn) {
  base::Random random(5);
  constexpr uint32_t kKeyspaces = 5;
  std::vector<Versions> versions(kKeyspaces);
  RunSet set(Sorter::kVector);
  for (int round = 0; round < 300; ++round) {
    std::vector<RunSet::Tail> tails;
    for (uint32_t keyspace = 0; keyspace < kKeyspaces; ++keyspace) {
      if (!random.OneIn(keyspace + 1)) continue;
      tails.push_back({keyspace, Decimals(&versions[keyspace], random.Between(1, 200))});
    }
    set.Append(tails);
    MergeWhatWaits(set);
  }
  EXPECT_EQ(set.Keyspaces().size(), kKeyspaces);
  for (uint32_t keyspace = 0; keyspace < kKeyspaces; ++keyspace) {
    ExpectHolds(set, keyspace, versions[keyspace]);
    MergeAll(set, keyspace);
    EXPECT_EQ(set.Of(keyspace)->size(), 1u);
  }
  EXPECT_EQ(set.run_count(), kKeyspaces);
}

TEST(SortedRun, RunsThatShareDifferentNumbersOfBytesMerge) {
  const std::string common = "a prefix of more than twenty bytes/";
  for (const size_t shared_a : {0, 3, 20, 35}) {
    for (const size_t shared_b : {0, 3, 8, 35}) {
      for (const size_t count_b : {1, 5, 400}) {
        SCOPED_TRACE(testing::Message() << shared_a << " " << shared_b << " " << count_b);
        Versions versions;
        const auto entries = [&](size_t count, size_t shared) {
          base::Random random(count + shared);
          std::vector<SortEntry> made;
          for (size_t i = 0; i < count; ++i) {
            made.push_back(versions.Add(common.substr(0, shared) + std::to_string(random.Next())));
          }
          return SortedRun::Sort(std::move(made));
        };
        const SortedRun merged =
            SortedRun::Merge(entries(400, shared_a), entries(count_b, shared_b));
        const auto expected = versions.Sorted();
        ASSERT_EQ(merged.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(&merged[i], expected[i]) << "at " << i;
          ASSERT_EQ(merged.LowerBound(expected[i]->key(), expected[i]->tag), i);
          ASSERT_EQ(merged.UpperBound(expected[i]->key(), expected[i]->tag), i + 1);
          ASSERT_EQ(merged.view().entries[i].prefix,
                    base::KeyPrefix(expected[i]->key(), merged.view().shared));
        }
      }
    }
  }
}

TEST(SortedRun, FewEntriesMergeInWhateverOrderTheyComeFromTwoRuns) {
  constexpr size_t kEntriesMax = 10;
  for (const bool is_one_key : {false, true}) {
    for (size_t count = 1; count <= kEntriesMax; ++count) {
      Versions versions;
      for (size_t i = 0; i < count; ++i) {
        versions.Add(is_one_key ? "key" : Numbered("key ", i), count - i);
      }
      const auto sorted = versions.Sorted();
      // Bit i: the run of the i-th.
      for (uint32_t order = 0; order < uint32_t{1} << count; ++order) {
        std::vector<SortEntry> entries[2];
        for (size_t i = 0; i < count; ++i) {
          entries[order >> i & 1].push_back({sorted[i], base::KeyPrefix(sorted[i]->key())});
        }
        const SortedRun merged = SortedRun::Merge(SortedRun::Sort(std::move(entries[0])),
                                                  SortedRun::Sort(std::move(entries[1])));
        ASSERT_EQ(merged.size(), count);
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(&merged[i], sorted[i]) << order;
      }
    }
  }
}

// Runs above some size have samples of their entries.
TEST(SortedRun, ASearchInALargeRunFindsEveryEntryAndWhatLiesBetween) {
  for (const uint64_t keys : {1, 40, 700, 1'000'000}) {
    SCOPED_TRACE(Numbered("keys ", keys));
    base::Random random(keys);
    Versions versions;
    std::vector<SortEntry> made;
    for (int i = 0; i < 3'000; ++i) {
      made.push_back(versions.Add(Numbered("shared", 2 * random.Below(keys))));
    }
    const SortedRun run = SortedRun::Sort(std::move(made));
    const auto expected = versions.Sorted();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(run.LowerBound(expected[i]->key(), expected[i]->tag), i);
      ASSERT_EQ(run.UpperBound(expected[i]->key(), expected[i]->tag), i + 1);
    }
    for (const std::string& key :
         {std::string(), std::string("s"), std::string("shared"), std::string("shared9"),
          std::string("sharee"), Numbered("shared", keys), Numbered("shared", keys + 1)}) {
      const auto place =
          std::partition_point(expected.begin(), expected.end(),
                               [&](const Record* record) { return record->key() < key; });
      ASSERT_EQ(run.LowerBound(key, base::kNewestTag),
                static_cast<size_t>(place - expected.begin()))
          << key;
    }
  }
}

/// An iterator over runs of its own making beside the sorted versions that it should show.
class Walk {
 public:
  explicit Walk(uint64_t seed) : random_(seed) {
    const size_t count = random_.Below(1u << random_.Below(12));
    const size_t runs_max = random_.Between(1, 20);
    const bool few_keys = random_.OneIn(3);
    const uint64_t others = random_.OneIn(2) ? 100 : 5;
    const std::string edge(8, '\xFF');
    const SequenceNumber visible = random_.OneIn(3) ? count / 2 : count;
    std::vector<std::vector<SortEntry>> parts(runs_max + 1);
    for (size_t i = 0; i < count; ++i) {
      std::string key = few_keys ? Numbered("k", random_.Below(5)) : RandomKey(&random_);
      if (random_.OneIn(20)) key.insert(0, edge);
      // What the iterator gets as its own is all visible.
      const size_t part = i < visible ? random_.Below(parts.size()) : random_.Below(runs_max);
      parts[part].push_back(
          versions_.Add(key, i + 1, random_.OneIn(others) ? RecordKind::kDelete : RecordKind::kPut,
                        random_.OneIn(others) ? 1 : 0));
    }
    SortedRun own = SortedRun::Sort(std::move(parts.back()), Sorter::kComparison);
    parts.pop_back();
    auto runs = std::make_shared<RunList>();
    for (auto& part : parts) {
      runs->push_back(
          std::make_shared<const SortedRun>(SortedRun::Sort(std::move(part), Sorter::kComparison)));
    }
    expected_ = versions_.Sorted(visible);
    iterator_ =
        std::make_unique<GenerationIterator>(nullptr, std::move(runs), std::move(own), visible);
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      if (!iterator_->Valid() || random_.OneIn(12)) {
        Jump();
      } else if (random_.OneIn(4)) {
        forward_ = !forward_;
        Step();
      } else {
        Step();
      }
      Check();
    }
  }

  // Turns after so many steps that the iterator is far ahead of what it shows.
  void RunInStretches(int stretches) {
    for (; stretches > 0 && !testing::Test::HasFatalFailure(); --stretches) {
      if (!iterator_->Valid()) Jump();
      Check();
      forward_ = !forward_;
      for (uint64_t steps = random_.Below(150); steps > 0 && iterator_->Valid(); --steps) {
        Step();
        Check();
      }
    }
  }

  // Forward by what the iterator gives at once, as far as that goes, and by steps between.
  void RunAhead(int steps) {
    if (!iterator_->Valid()) Jump();
    for (; steps > 0 && iterator_->Valid() && !testing::Test::HasFatalFailure(); --steps) {
      if (random_.OneIn(4)) {
        forward_ = !random_.OneIn(3);
        Step();
      } else {
        PassPlain();
      }
      Check();
    }
  }

  void WalkThrough() {
    size_t seen = 0;
    at_ = 0;
    for (iterator_->SeekToFirst(); iterator_->Valid(); iterator_->Next(), ++at_, ++seen) Check();
    EXPECT_EQ(seen, expected_.size());
    at_ = static_cast<ptrdiff_t>(expected_.size()) - 1;
    for (iterator_->SeekToLast(); iterator_->Valid(); iterator_->Prev(), --at_, --seen) Check();
    EXPECT_EQ(seen, 0u);
  }

 private:
  void Step() {
    if (forward_) {
      iterator_->Next();
      ++at_;
    } else {
      iterator_->Prev();
      --at_;
    }
  }

  void PassPlain() {
    const SequenceNumber at =
        random_.OneIn(3) ? random_.Below(versions_.size() + 1) : base::kMaxSequence;
    for (size_t passed = 0;;) {
      const std::span<const base::PlainPut> ahead = iterator_->PlainAhead(passed, at);
      at_ += static_cast<ptrdiff_t>(passed);
      for (size_t i = 0; i < ahead.size(); ++i) {
        const size_t place = static_cast<size_t>(at_) + 1 + i;
        ASSERT_LT(place, expected_.size());
        const Record& record = *expected_[place];
        ASSERT_EQ(ahead[i].key(), record.key());
        ASSERT_EQ(ahead[i].value().data(), record.value().data());
        ASSERT_EQ(ahead[i].value().size(), record.value().size());
        ASSERT_EQ(record.kind, static_cast<uint8_t>(RecordKind::kPut));
        ASSERT_EQ(record.time_ms(), 0u);
        ASSERT_LE(base::TagSequence(record.tag), at);
        ASSERT_NE(record.key(), expected_[place - 1]->key());
      }
      if (passed != 0) Check();
      passed = random_.Below(ahead.size() + 1);
      if (passed == 0) return;
    }
  }

  void Jump() {
    const bool to_known = !expected_.empty() && random_.OneIn(2);
    const Record* const known = to_known ? expected_[random_.Below(expected_.size())] : nullptr;
    const std::string key = to_known ? std::string(known->key()) : RandomKey(&random_);
    const base::Tag tag =
        to_known ? known->tag.load() : base::SeekTag(random_.Below(versions_.size() + 2));
    const auto order = [&](const Record* record) {
      return base::CompareInternal(record->key(), record->tag, key, tag);
    };
    switch (random_.Below(4)) {
      case 0:
        iterator_->SeekToFirst();
        at_ = 0;
        break;
      case 1:
        iterator_->SeekToLast();
        at_ = static_cast<ptrdiff_t>(expected_.size()) - 1;
        break;
      case 2:
        iterator_->Seek(key, tag);
        at_ = std::partition_point(expected_.begin(), expected_.end(),
                                   [&](const Record* record) { return order(record) < 0; }) -
              expected_.begin();
        break;
      default:
        iterator_->SeekForPrev(key, tag);
        at_ = std::partition_point(expected_.begin(), expected_.end(),
                                   [&](const Record* record) { return order(record) <= 0; }) -
              expected_.begin() - 1;
    }
  }

  void Check() {
    const bool inside = at_ >= 0 && at_ < static_cast<ptrdiff_t>(expected_.size());
    ASSERT_EQ(iterator_->Valid(), inside);
    if (!inside) return;
    const Record& record = *expected_[static_cast<size_t>(at_)];
    ASSERT_EQ(iterator_->key(), record.key());
    ASSERT_EQ(iterator_->tag(), record.tag.load());
  }

  base::Random random_;
  Versions versions_;
  std::vector<const Record*> expected_;
  std::unique_ptr<base::RecordIterator> iterator_;
  ptrdiff_t at_ = 0;
  bool forward_ = true;
};

TEST(GenerationIterator, ManyRunsReadLikeOneInBothDirectionsWithTurnsAndSeeks) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(Numbered("seed ", seed));
    Walk walk(seed);
    walk.WalkThrough();
    walk.Run(600);
    walk.RunInStretches(20);
    walk.RunAhead(600);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(GenerationIterator, AWalkWithoutMemoryForAWideWindowGoesOnWithASmallOne) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(Numbered("seed ", seed));
    Walk walk(seed);
    {
      const MemoryThatFails none(0, MemoryThatFails::kAll, MemoryThatFails::Of::kNothrow);
      walk.WalkThrough();
      walk.Run(300);
      walk.RunAhead(300);
    }
    walk.RunInStretches(20);
    walk.RunAhead(300);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(GenerationIterator, NearlyAllOfAWalkOverPlainPutsIsGivenManyAtOnce) {
  constexpr size_t kRecords = 10'000;
  for (const size_t key_bytes : {size_t{2}, size_t{5}, size_t{8}, size_t{30}}) {
    base::Random random(key_bytes);
    Versions versions;
    auto runs = std::make_shared<RunList>();
    for (size_t i = 0; i < kRecords;) {
      std::vector<SortEntry> part;
      for (size_t size = random.Below(2'000) + 1; size > 0 && i < kRecords; --size, ++i) {
        std::string key(key_bytes, 'k');
        key[key_bytes - 1] = static_cast<char>(i);
        key[key_bytes - 2] = static_cast<char>(i >> 8);
        part.push_back(versions.Add(key));
      }
      runs->push_back(
          std::make_shared<const SortedRun>(SortedRun::Sort(std::move(part), Sorter::kComparison)));
    }
    GenerationIterator iterator(nullptr, runs, {}, base::kMaxSequence);
    size_t moves = 0;
    size_t given = 0;
    for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next()) {
      ++moves;
      for (size_t passed = 0;;) {
        passed = iterator.PlainAhead(passed, base::kMaxSequence).size();
        if (passed == 0) break;
        given += passed;
        ++moves;
      }
    }
    EXPECT_EQ(given, kRecords - 1) << "of keys of " << key_bytes << " bytes";
    EXPECT_LT(moves, kRecords / 25) << "of keys of " << key_bytes << " bytes";
  }
}

TEST(GenerationRuns, AScanAfterEveryInsertSeesItAndRunsStayFew) {
  const auto table = Generation::Create({.budget_bytes = 8 << 20});
  base::Random random(1);
  Versions versions;
  for (SequenceNumber sequence = 1; sequence <= 10'000; ++sequence) {
    const std::string key = Numbered("key", random.Below(5'000));
    versions.Add(key, sequence);
    Put(*table, key, "v", sequence);
    const auto iterator = table->NewIterator(0, sequence);
    iterator->Seek(key, base::kNewestTag);
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->key(), key);
    ASSERT_EQ(base::TagSequence(iterator->tag()), sequence);
    ASSERT_EQ(table->unsorted_count(), 0u);
    ASSERT_EQ(table->sorted_count(), sequence);
    ASSERT_LE(table->run_count(), RunsMax(sequence));
  }
  const auto iterator = table->NewIterator(0, 10'000);
  iterator->SeekToFirst();
  for (const Record* record : versions.Sorted()) {
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(iterator->key(), record->key());
    ASSERT_EQ(iterator->tag(), record->tag.load());
    iterator->Next();
  }
  EXPECT_FALSE(iterator->Valid());
}

TEST(GenerationRuns, SortAllLeavesOneRunAKeyspace) {
  for (const Sorter sorter : {Sorter::kVector, Sorter::kRadix, Sorter::kComparison}) {
    const auto table = Generation::Create({.budget_bytes = 8 << 20, .sorter = sorter});
    SequenceNumber sequence = 1;
    for (int round = 0; round < 100; ++round) {
      WriteBatch batch;
      for (int i = 0; i < 100 / (round + 1) + 1; ++i) {
        for (uint32_t keyspace = 0; keyspace < 3; ++keyspace) {
          batch.Put(Numbered("k", (sequence + batch.count()) * 7919 % 1000), "v",
                    {.keyspace = KeyspaceId{keyspace}});
        }
      }
      table->Insert(MustReserve(*table, batch), sequence);
      sequence += batch.count();
      EXPECT_EQ(table->unsorted_count(), batch.count());
      table->SortTail();
      EXPECT_EQ(table->unsorted_count(), 0u);
    }
    EXPECT_EQ(table->sorted_count(), sequence - 1);
    EXPECT_GT(table->run_count(), 3u);
    const std::vector<std::string> before = ScanAll(*table, sequence, 1);
    table->SortAll();
    EXPECT_EQ(table->run_count(), 3u);
    EXPECT_EQ(table->sorted_count(), sequence - 1);
    EXPECT_EQ(ScanAll(*table, sequence, 1), before);
    EXPECT_EQ(before.size(), (sequence - 1) / 3);
  }
}

TEST(GenerationRuns, AnUnfinishedRecordHoldsBackItsShardAndNothingIsLost) {
  const auto table = Generation::Create({.budget_bytes = 8 << 20, .shards = 1});
  SequenceNumber sequence = 0;
  std::vector<std::string> expected;
  const auto put = [&](const std::string& key) {
    Put(*table, key, "v", ++sequence);
    expected.push_back(key + "@" + std::to_string(sequence) + "=v");
  };
  for (int i = 0; i < 100; ++i) put(Numbered("a", 1000 + i));
  WriteBatch late;
  late.Put("b", "v");
  Generation::Reservation reservation = MustReserve(*table, late);
  for (int i = 0; i < 100; ++i) {
    put(Numbered("c", 1000 + i));
    ASSERT_EQ(ScanAll(*table, sequence), expected);
    ASSERT_EQ(ScanAllBackwards(*table, sequence), expected);
    ASSERT_EQ(table->sorted_count(), 100u);
    ASSERT_EQ(table->unsorted_count(), i + 2u);
  }
  table->SortAll();
  EXPECT_EQ(table->sorted_count(), 100u);
  table->Insert(std::move(reservation), ++sequence);
  expected.insert(expected.begin() + 100, "b@" + std::to_string(sequence) + "=v");
  EXPECT_EQ(ScanAll(*table, sequence), expected);
  EXPECT_EQ(table->sorted_count(), 201u);
  EXPECT_EQ(table->unsorted_count(), 0u);
}

TEST(GenerationRuns, MemoryCountsTheRunsInPlaceOfTheOrderThatTheyCover) {
  const auto table = Generation::Create({.budget_bytes = 8 << 20, .shards = 16});
  WriteBatch batch;
  for (int i = 0; i < 10'000; ++i) batch.Put(Numbered("key", i), "v");
  table->Insert(MustReserve(*table, batch), 1);
  const uint64_t before = table->memory_bytes();
  table->SortTail();
  // Of the segment's order entries 256, 512 and then 1,024 share a chunk, of which 11 are full. Of
  // the run's 10,000, 313 are sampled.
  EXPECT_EQ(table->memory_bytes(), before + 10'000 * sizeof(SortEntry) + 313 * sizeof(uint64_t) -
                                       ((4 + 8 + 9 * 16) << 10));
}

TEST(GenerationRuns, ScansAndMergesOfManyThreadsLoseNothing) {
  constexpr SequenceNumber kRecords = 60'000;
  const auto table = Generation::Create({.budget_bytes = 64 << 20});
  std::atomic<SequenceNumber> visible{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (SequenceNumber at = 0; at < kRecords;) {
        at = visible.load(std::memory_order_acquire);
        const auto iterator = table->NewIterator(0, at);
        SequenceNumber count = 0;
        for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
        ASSERT_EQ(count, at);
      }
    });
  }
  threads.emplace_back([&] {
    while (visible.load(std::memory_order_acquire) < kRecords) table->SortAll();
  });
  threads.emplace_back([&] {
    while (visible.load(std::memory_order_acquire) < kRecords) table->SortTail();
  });
  for (SequenceNumber sequence = 1; sequence <= kRecords; ++sequence) {
    Put(*table, Numbered("k", sequence * 7919 % 100'003), "v", sequence);
    visible.store(sequence, std::memory_order_release);
  }
  for (std::thread& thread : threads) thread.join();
  table->SortAll();
  EXPECT_EQ(table->run_count(), 1u);
  EXPECT_EQ(table->sorted_count(), kRecords);
  EXPECT_EQ(ScanAll(*table, kRecords).size(), kRecords);
}

}  // namespace
}  // namespace basalt::memtable
