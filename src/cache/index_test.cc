#include "cache/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/random.h"

namespace basalt::cache {
namespace {

constexpr uint64_t kIndexSeed = 0xBA5A17;
constexpr uint64_t kPlenty = uint64_t{1} << 40;

/// All that the index asks of an entry.
struct TestEntry {
  std::string text;
  uint64_t number = 0;
  std::string_view key() const noexcept { return text; }
};

using EntryIndex = BasicIndex<std::atomic, TestEntry>;

/// Segments are split when they are expected to be between this and twice as full, as shards do it:
/// between 45 and 90 %.
constexpr uint64_t kSplitAt = EntryIndex::kBuckets * EntryIndex::kSlots * 45 / 100;
constexpr size_t kSplitLiveMin = kSplitAt / 2;

/// An index with a domain of its own, and entries that stay for the whole test.
class IndexTest : public testing::Test {
 protected:
  IndexTest() { EXPECT_TRUE(index_.Start()); }

  uint64_t HashOf(std::string_view key) const { return index_.HashOf(key); }
  TestEntry* Make(std::string key) {
    entries_.push_back({.text = std::move(key), .number = entries_.size()});
    return &entries_.back();
  }
  /// The next of an endless row of keys for which `fits(hash)` holds.
  template <class Fits>
  TestEntry* MakeWhere(const Fits& fits) {
    for (;;) {
      std::string key = "key " + std::to_string(next_key_++);
      if (fits(HashOf(key))) return Make(std::move(key));
    }
  }
  TestEntry* MakeInBucket(size_t bucket) {
    return MakeWhere([&](uint64_t hash) { return hash % EntryIndex::kBuckets == bucket; });
  }

  EntryIndex::Found Find(const TestEntry* entry) const {
    return index_.Find(HashOf(entry->text), entry->text);
  }
  /// As a shard puts it: replaces, or fills, and grows where it has to.
  void Put(TestEntry* entry) {
    const uint64_t hash = HashOf(entry->text);
    if (const auto found = Find(entry)) return index_.Replace(found, entry, false);
    if (index_.IsCrowded(hash, live_, kSplitAt)) index_.Split(hash, kSplitLiveMin);
    auto room = index_.FindRoom(hash);
    while (room.slot == nullptr) {
      ASSERT_TRUE(index_.Split(hash, 0));
      room = index_.FindRoom(hash);
    }
    index_.Fill(room, hash, entry, false, 0);
    ++live_;
  }
  void Remove(const TestEntry* entry, uint64_t ghost_number = 0) {
    const auto found = Find(entry);
    ASSERT_TRUE(found);
    index_.Remove(found, ghost_number);
    --live_;
  }

  size_t CountSegments() const {
    size_t segments = 1;
    for (EntryIndex::Cursor cursor; index_.AdvanceSegment(&cursor);) ++segments;
    return segments;
  }
  /// Every live slot is in its home or in the buddy, and the buddies' are counted there.
  void ExpectConsistent() {
    size_t live = 0;
    EntryIndex::Cursor cursor;
    do {
      const EntryIndex::Bucket* const bucket = index_.At(cursor);
      const EntryIndex::Bucket* const buddy = index_.At({cursor.hash, cursor.bucket ^ 1});
      for (const auto& slot : bucket->slots) {
        const uint64_t word = slot.load();
        if (!Word::IsLive(word)) continue;
        ++live;
        const uint64_t home = HashOf(EntryIndex::EntryOf(word)->text) % EntryIndex::kBuckets;
        ASSERT_EQ(home, (word & Word::kAway) == 0 ? cursor.bucket : cursor.bucket ^ 1);
      }
      const auto is_away = [](const auto& slot) {
        return Word::IsLive(slot.load()) && (slot.load() & Word::kAway) != 0;
      };
      ASSERT_EQ(bucket->away.load(),
                static_cast<uint64_t>(std::ranges::count_if(buddy->slots, is_away)));
    } while (index_.Advance(&cursor));
    ASSERT_EQ(live, live_);
  }
  /// Segments and one directory of them, when nothing is retired.
  void ExpectChargedExactly() {
    index_.Collect();
    ASSERT_EQ(budget_.used_bytes(), index_.bytes());
    const size_t segments = CountSegments();
    ASSERT_EQ(index_.segments(), segments);
    const uint64_t directory_words =
        (index_.bytes() - segments * sizeof(EntryIndex::Segment)) / sizeof(uint64_t);
    ASSERT_TRUE(std::has_single_bit(directory_words)) << directory_words;
    ASSERT_GE(directory_words, segments);
  }

  base::EpochDomain domain_;
  MemoryBudget budget_{kPlenty};
  EntryIndex index_{&domain_, &budget_, kIndexSeed};
  std::deque<TestEntry> entries_;
  uint64_t next_key_ = 0;
  size_t live_ = 0;
};

struct RandomOptions {
  uint64_t seed;
  int shard_bits;
};

class RandomChanges : public IndexTest, public testing::WithParamInterface<RandomOptions> {
 protected:
  /// Keys of one shard have some bits of their hashes in common.
  static bool IsOfShard(uint64_t hash) {
    const uint64_t mask = (uint64_t{1} << GetParam().shard_bits) - 1;
    return (EntryIndex::ShardBits(hash) & mask) == (3 & mask);
  }
};

TEST_P(RandomChanges, AgreeWithAMapWhateverIsSplitAndJoinedMeanwhile) {
  SCOPED_TRACE("seed " + std::to_string(GetParam().seed));
  base::Random random(GetParam().seed);
  std::vector<std::string> keys;
  for (int i = 0; i < 6'000; ++i) {
    keys.push_back(MakeWhere([&](uint64_t hash) { return IsOfShard(hash); })->text);
  }
  std::unordered_map<std::string, TestEntry*> model;
  uint64_t ghost_number = 0;
  int joins = 0;
  for (int step = 0; step < 40'000 && !HasFatalFailure(); ++step) {
    const std::string& key = keys[random.Below(keys.size())];
    const auto known = model.find(key);
    const auto found = index_.Find(HashOf(key), key);
    ASSERT_EQ(found.entry(), known == model.end() ? nullptr : known->second) << key;
    // First it grows, then it changes, then it shrinks.
    if (random.Below(40'000) >= static_cast<uint64_t>(step) || random.OneIn(3)) {
      Put(model[key] = Make(key));
    } else if (found) {
      Remove(found.entry(), random.OneIn(2) ? ++ghost_number : 0);
      model.erase(known);
    }
    if (random.OneIn(500)) index_.Split(HashOf(key), 0);
    if (random.OneIn(50)) joins += index_.Join(HashOf(keys[random.Below(keys.size())])) ? 1 : 0;
    if (step % 2'000 != 0) continue;
    ExpectConsistent();
    ExpectChargedExactly();
    for (const std::string& each : keys) {
      const auto expected = model.find(each);
      ASSERT_EQ(index_.Find(HashOf(each), each).entry(),
                expected == model.end() ? nullptr : expected->second);
    }
  }
  EXPECT_GT(joins, 10);
}

INSTANTIATE_TEST_SUITE_P(Index, RandomChanges,
                         testing::Values(RandomOptions{1, 0}, RandomOptions{2, 0},
                                         RandomOptions{3, 4}, RandomOptions{4, 7}),
                         [](const auto& info) {
                           return "Seed" + std::to_string(info.param.seed) + "ShardBits" +
                                  std::to_string(info.param.shard_bits);
                         });

TEST_F(IndexTest, AllKeysAreFoundAfterEachSplit) {
  base::Random random(5);
  std::vector<TestEntry*> present;
  for (int i = 0; i < 400; ++i) {
    present.push_back(Make("key " + std::to_string(i)));
    Put(present.back());
  }
  for (int split = 0; split < 60; ++split) {
    const size_t segments = CountSegments();
    ASSERT_TRUE(index_.Split(HashOf(present[random.Below(present.size())]->text), 0));
    ASSERT_EQ(CountSegments(), segments + 1);
    for (const TestEntry* entry : present) ASSERT_EQ(Find(entry).entry(), entry);
    ExpectConsistent();
  }
}

TEST_F(IndexTest, WhereFewEntriesAreLeftAllSegmentsAreJoinedIntoOne) {
  for (int i = 0; i < 8'000; ++i) Put(Make("key " + std::to_string(i)));
  ASSERT_GT(CountSegments(), 20u);
  uint64_t ghost_number = 0;
  std::vector<const TestEntry*> present;
  for (const TestEntry& entry : entries_) {
    if (entry.number % 80 == 0) {
      present.push_back(&entry);
      EntryIndex::SetFrequency(Find(&entry).slot, static_cast<uint8_t>(entry.number / 80 % 4));
    } else {
      Remove(&entry, ++ghost_number);
    }
  }
  EntryIndex::Cursor cursor;
  for (int looks = 0; CountSegments() > 1; ++looks) {
    ASSERT_LT(looks, 10'000);
    const size_t segments = CountSegments();
    if (!index_.Join(cursor.hash)) {
      index_.AdvanceSegment(&cursor);
      continue;
    }
    ASSERT_EQ(CountSegments(), segments - 1);
    ExpectConsistent();
    for (const TestEntry* entry : present) {
      const auto found = Find(entry);
      ASSERT_EQ(found.entry(), entry);
      ASSERT_EQ(EntryIndex::Frequency(found.slot), entry->number / 80 % 4);
    }
  }
  ExpectChargedExactly();
  EXPECT_FALSE(index_.Join(0)) << "it has no sibling";
  // It grows again.
  for (int i = 0; i < 2'000; ++i) Put(Make("new " + std::to_string(i)));
  for (const TestEntry* entry : present) ASSERT_EQ(Find(entry).entry(), entry);
  ExpectConsistent();
}

TEST_F(IndexTest, SegmentsThatHoldTooMuchTogetherOrAreNotEquallyDeepAreNotJoined) {
  std::vector<TestEntry*> present;
  for (size_t i = 0; i < 2 * EntryIndex::kSlots; ++i) {
    present.push_back(MakeInBucket(i % 2));
    Put(present.back());
  }
  ASSERT_TRUE(index_.Split(0, 0));
  EXPECT_FALSE(index_.Join(0)) << "a pair of buckets would be full";
  Remove(present.back());
  present.pop_back();
  ASSERT_TRUE(index_.Split(0, 0));
  EXPECT_FALSE(index_.Join(~uint64_t{0})) << "its sibling is divided further";
  EXPECT_EQ(CountSegments(), 3u);
  EXPECT_TRUE(index_.Join(0));
  EXPECT_TRUE(index_.Join(~uint64_t{0}));
  EXPECT_EQ(CountSegments(), 1u);
  for (const TestEntry* entry : present) EXPECT_EQ(Find(entry).entry(), entry);
  ExpectConsistent();
}

TEST_F(IndexTest, AnEmptyOneBeginsAnewAndIsSmallOnceItsReadersHaveLeft) {
  const uint64_t bytes_at_first = index_.bytes();
  EXPECT_FALSE(index_.Reset()) << "it is as small as it can be";
  for (int i = 0; i < 3'000; ++i) Put(Make("key " + std::to_string(i)));
  for (const TestEntry& entry : entries_) Remove(&entry, 1 + entry.number);
  auto* const reader = domain_.TakeSlot();
  domain_.Enter(reader);
  const EntryIndex::Bucket* const seen = &index_.Home(0);
  EXPECT_TRUE(index_.Reset());
  EXPECT_NE(&index_.Home(0), seen);
  index_.Collect();
  EXPECT_GT(index_.bytes(), 2 * bytes_at_first) << "it is still being read";
  EXPECT_EQ(seen->away.load(), 0);
  domain_.Leave(reader);
  index_.Collect();
  EXPECT_EQ(index_.bytes(), bytes_at_first);
  ExpectChargedExactly();
  for (int i = 0; i < 500; ++i) {
    TestEntry* const entry = Make("new " + std::to_string(i));
    Put(entry);
    ASSERT_EQ(Find(entry).entry(), entry);
  }
}

TEST_F(IndexTest, ASplitIsRefusedWhereThereAreTooFewLiveSlots) {
  for (int i = 0; i < 10; ++i) Put(Make("key " + std::to_string(i)));
  EXPECT_FALSE(index_.Split(0, 11));
  EXPECT_EQ(CountSegments(), 1u);
  EXPECT_TRUE(index_.Split(0, 10));
  EXPECT_EQ(CountSegments(), 2u);
}

TEST_F(IndexTest, ASplitWithoutBudgetChangesNothing) {
  for (int i = 0; i < 20; ++i) Put(Make("key " + std::to_string(i)));
  // The first one finds room in the directory.
  ASSERT_TRUE(index_.Split(0, 0));
  index_.Collect();
  const uint64_t bytes = index_.bytes();
  // Neither the segments nor, in the second case, the directory have room.
  for (const uint64_t room :
       {2 * sizeof(EntryIndex::Segment) - 1, 2 * sizeof(EntryIndex::Segment)}) {
    budget_.set_capacity_bytes(bytes + room);
    EXPECT_FALSE(index_.Split(0, 0));
    EXPECT_EQ(index_.bytes(), bytes);
    EXPECT_EQ(budget_.used_bytes(), bytes);
    EXPECT_EQ(CountSegments(), 2u);
  }
  for (const TestEntry& entry : entries_) EXPECT_EQ(Find(&entry).entry(), &entry);
  budget_.set_capacity_bytes(kPlenty);
  EXPECT_TRUE(index_.Split(0, 0));
}

TEST_F(IndexTest, RetiredSegmentsAreChargedUntilTheirReadersHaveLeft) {
  for (int i = 0; i < 50; ++i) Put(Make("key " + std::to_string(i)));
  auto* const reader = domain_.TakeSlot();
  domain_.Enter(reader);
  for (int i = 0; i < 50; i += 5) index_.Split(HashOf(entries_[static_cast<size_t>(i)].text), 0);
  const uint64_t bytes = index_.bytes();
  EXPECT_GE(bytes, (CountSegments() + 10) * sizeof(EntryIndex::Segment));
  index_.Collect();
  EXPECT_EQ(index_.bytes(), bytes);
  EXPECT_EQ(budget_.used_bytes(), bytes);
  domain_.Leave(reader);
  index_.Collect();
  EXPECT_LT(index_.bytes(), bytes);
  ExpectChargedExactly();
}

TEST(Index, ItsBudgetIsRefundedAtItsEndAlsoWhatIsRetired) {
  base::EpochDomain domain;
  MemoryBudget budget(kPlenty);
  auto* const reader = domain.TakeSlot();
  domain.Enter(reader);
  {
    EntryIndex index(&domain, &budget, kIndexSeed);
    ASSERT_TRUE(index.Start());
    for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(index.Split(i << 61, 0));
    ASSERT_TRUE(index.Reset());
    for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(index.Split(i << 61, 0));
    EXPECT_EQ(budget.used_bytes(), index.bytes());
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  domain.Leave(reader);
}

TEST_F(IndexTest, ABucketTakesSevenKeysAndItsBuddyTheNextSeven) {
  std::vector<TestEntry*> present;
  for (size_t i = 0; i < 2 * EntryIndex::kSlots; ++i) {
    TestEntry* const entry = MakeInBucket(4);
    const auto room = index_.FindRoom(HashOf(entry->text));
    ASSERT_NE(room.slot, nullptr);
    EXPECT_EQ(room.is_away, i >= EntryIndex::kSlots);
    Put(entry);
    present.push_back(entry);
  }
  EXPECT_EQ(index_.FindRoom(HashOf(MakeInBucket(4)->text)).slot, nullptr);
  EXPECT_EQ(index_.FindRoom(HashOf(MakeInBucket(5)->text)).slot, nullptr);
  for (const TestEntry* entry : present) EXPECT_EQ(Find(entry).entry(), entry);
  ExpectConsistent();
  for (const TestEntry* entry : present) Remove(entry, 1);
  for (const TestEntry* entry : present) EXPECT_FALSE(Find(entry));
  ExpectConsistent();
}

TEST_F(IndexTest, ReplacingKeepsTheFrequencyAndThatAKeyIsAway) {
  for (size_t i = 0; i < EntryIndex::kSlots; ++i) Put(MakeInBucket(4));
  TestEntry* const away = MakeInBucket(4);
  Put(away);
  index_.RaiseFrequency(Find(away));
  index_.RaiseFrequency(Find(away));
  TestEntry* const other = Make(away->text);
  index_.Replace(Find(away), other, true);
  const auto found = Find(away);
  EXPECT_EQ(found.entry(), other);
  EXPECT_EQ(EntryIndex::Frequency(found.slot), 2u);
  EXPECT_NE(found.word & Word::kAway, 0u);
  EXPECT_NE(found.word & Word::kExpires, 0u);
  ExpectConsistent();
  index_.MarkExpiring(found, false);
  EXPECT_EQ(Find(away).word, found.word & ~Word::kExpires);
  index_.MarkExpiring(Find(away), true);
  EXPECT_EQ(Find(away).word, found.word);
}

TEST_F(IndexTest, AFrequencyRisesToThreeAndATouchedSlotIsNotLinkedAnew) {
  TestEntry* const entry = Make("key");
  Put(entry);
  const auto stale = Find(entry);
  for (uint8_t expected = 1; expected <= 5; ++expected) {
    index_.RaiseFrequency(Find(entry));
    EXPECT_EQ(EntryIndex::Frequency(Find(entry).slot), std::min<uint8_t>(expected, 3));
    EXPECT_EQ(Find(entry).entry(), entry);
  }
  TestEntry* const other = Make("key");
  index_.Replace(Find(entry), other, false);
  const uint64_t word = Find(other).word;
  index_.RaiseFrequency(stale);
  EXPECT_EQ(Find(other).word, word);
  Remove(other, 0);
  index_.RaiseFrequency(stale);
  EXPECT_FALSE(Find(other));
}

TEST_F(IndexTest, EachSlotHasAFrequencyOfItsOwnThatASplitKeeps) {
  std::vector<TestEntry*> entries;
  for (size_t i = 0; i < 2 * EntryIndex::kSlots; ++i) {
    entries.push_back(MakeInBucket(4));
    Put(entries.back());
    for (size_t hits = 0; hits < i % 4; ++hits) index_.RaiseFrequency(Find(entries[i]));
  }
  for (const bool splits : {false, true}) {
    if (splits) {
      ASSERT_TRUE(index_.Split(HashOf(entries[0]->text), 0));
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(EntryIndex::Frequency(Find(entries[i]).slot), i % 4);
    }
  }
}

TEST_F(IndexTest, AKeyThatComesBackMeetsItsGhost) {
  TestEntry* const entry = MakeInBucket(4);
  for (size_t i = 0; i < 3; ++i) Put(MakeInBucket(4));
  Put(entry);
  const auto* const slot = Find(entry).slot;
  Remove(entry, 17);
  EXPECT_FALSE(Find(entry));
  const auto room = index_.FindRoom(HashOf(entry->text));
  EXPECT_EQ(room.ghost_number, 17u);
  EXPECT_EQ(room.slot, slot);
  Put(entry);
  EXPECT_EQ(Find(entry).entry(), entry);
  // What was erased leaves none.
  Remove(entry, 0);
  EXPECT_EQ(index_.FindRoom(HashOf(entry->text)).ghost_number, 0u);
  EXPECT_EQ(index_.FindRoom(HashOf(MakeInBucket(4)->text)).ghost_number, 0u);
}

TEST_F(IndexTest, NewKeysTakeEmptySlotsFirstAndThenTheOldestGhosts) {
  constexpr size_t kGhosts = 9;
  std::vector<TestEntry*> present;
  for (size_t i = 0; i < 13; ++i) Put(present.emplace_back(MakeInBucket(4)));
  base::Random random(9);
  std::map<uint64_t, const EntryIndex::AtomicWord*> ghosts;
  for (size_t i = 0; i < kGhosts; ++i) {
    const uint64_t number = random.Between(1, uint64_t{1} << 44);
    ghosts[number] = Find(present[i]).slot;
    Remove(present[i], number);
  }
  const auto room = index_.FindRoom(HashOf(MakeInBucket(4)->text));
  EXPECT_EQ(room.slot->load(), 0u) << "one slot was never used";
  Put(MakeInBucket(4));
  for (const auto& [number, slot] : ghosts) {
    TestEntry* const entry = MakeInBucket(4);
    const auto oldest = index_.FindRoom(HashOf(entry->text));
    ASSERT_EQ(Word::GhostNumber(oldest.slot->load()), number);
    ASSERT_EQ(oldest.slot, slot);
    Put(entry);
    ASSERT_EQ(Find(entry).slot, slot);
  }
  ExpectConsistent();
  EXPECT_EQ(index_.FindRoom(HashOf(MakeInBucket(4)->text)).slot, nullptr);
}

TEST_F(IndexTest, GhostsAreMatchedAlsoAfterASplit) {
  std::vector<TestEntry*> evicted;
  for (size_t i = 0; i < 40; ++i) Put(evicted.emplace_back(MakeInBucket(i % 16)));
  for (size_t i = 0; i < evicted.size(); ++i) Remove(evicted[i], i + 1);
  ASSERT_TRUE(index_.Split(0, 0));
  for (size_t i = 0; i < evicted.size(); ++i) {
    EXPECT_EQ(index_.FindRoom(HashOf(evicted[i]->text)).ghost_number, i + 1);
    EXPECT_FALSE(Find(evicted[i]));
  }
  ExpectConsistent();
}

TEST_F(IndexTest, AHashFindsItsEntryIfThePredicateAcceptsIt) {
  std::vector<TestEntry*> present;
  for (int i = 0; i < 300; ++i) Put(present.emplace_back(Make("key " + std::to_string(i))));
  for (const TestEntry* entry : present) {
    const uint64_t hash = HashOf(entry->text);
    EXPECT_EQ(index_.FindHash(hash, [](const TestEntry&) { return true; }).entry(), entry);
    EXPECT_FALSE(index_.FindHash(hash, [](const TestEntry&) { return false; }));
    // The same place and tag, but not the same hash.
    EXPECT_FALSE(index_.FindHash(hash ^ (uint64_t{1} << 40),
                                 [](const TestEntry& other) { return !other.text.empty(); }));
  }
}

/// What a walk meets, by number.
void CountVisits(const EntryIndex::Bucket& bucket, std::unordered_map<uint64_t, int>* visits) {
  for (const auto& slot : bucket.slots) {
    const uint64_t word = slot.load();
    if (Word::IsLive(word)) ++(*visits)[EntryIndex::EntryOf(word)->number];
  }
}

TEST_F(IndexTest, AWalkByBucketsMeetsEveryEntryOnce) {
  for (int i = 0; i < 5'000; ++i) Put(Make("key " + std::to_string(i)));
  std::unordered_map<uint64_t, int> visits;
  EntryIndex::Cursor cursor;
  do {
    CountVisits(*index_.At(cursor), &visits);
  } while (index_.Advance(&cursor));
  EXPECT_EQ(visits.size(), 5'000u);
  for (const auto& [number, count] : visits) ASSERT_EQ(count, 1) << number;
  EXPECT_EQ(cursor.hash, 0u) << "it is at the first bucket again";
  EXPECT_EQ(cursor.bucket, 0u);
}

TEST_F(IndexTest, AWalkBySegmentsMeetsEveryEntryOnceAlsoWhenSegmentsAreSplitMeanwhile) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    for (int i = 0; i < 500; ++i) {
      Put(Make("key " + std::to_string(seed) + " " + std::to_string(i)));
    }
    std::unordered_map<uint64_t, int> visits;
    size_t splits = 0;
    EntryIndex::Cursor cursor;
    for (bool more = true; more;) {
      EntryIndex::Cursor bucket = cursor;
      do {
        CountVisits(*index_.At(bucket), &visits);
      } while (++bucket.bucket < EntryIndex::kBuckets);
      more = index_.AdvanceSegment(&cursor);
      // Before the cursor, behind it, or where it stands and has not been yet.
      splits += index_.Split(random.OneIn(2) ? cursor.hash : random.Next(), 20) ? 1 : 0;
    }
    EXPECT_GE(splits, 5u);
    EXPECT_EQ(visits.size(), entries_.size());
    for (const auto& [number, count] : visits) ASSERT_EQ(count, 1) << number;
  }
}

TEST_F(IndexTest, AWalkByBucketsMissesNothingWhenSegmentsAreSplitMeanwhile) {
  for (int i = 0; i < 3'000; ++i) Put(Make("key " + std::to_string(i)));
  base::Random random(3);
  std::unordered_map<uint64_t, int> visits;
  EntryIndex::Cursor cursor;
  do {
    CountVisits(*index_.At(cursor), &visits);
    if (random.OneIn(10)) index_.Split(random.OneIn(2) ? cursor.hash : random.Next(), 20);
  } while (index_.Advance(&cursor));
  EXPECT_EQ(visits.size(), 3'000u);
}

TEST_F(IndexTest, AtEverySizeItTakesTwoToThreeSlotsAnEntry) {
  for (size_t i = 1; i <= 100'000; ++i) {
    Put(Make("key " + std::to_string(i)));
    if (i < 10'000 || i % 5'000 != 0) continue;
    ExpectChargedExactly();
    const double bytes_an_entry = static_cast<double>(index_.bytes()) / static_cast<double>(i);
    const double slots_an_entry =
        static_cast<double>(CountSegments() * EntryIndex::kBuckets * EntryIndex::kSlots) /
        static_cast<double>(i);
    EXPECT_GT(slots_an_entry, 1.8) << i << " entries";
    EXPECT_LT(slots_an_entry, 3.0) << i << " entries";
    EXPECT_LT(bytes_an_entry, 28) << i << " entries";
  }
  ExpectConsistent();
}

TEST_F(IndexTest, KeysOfTheSameHashPlaceAndTagAreToldApart) {
  // Equal in the bits of the bucket and of the tag.
  constexpr uint64_t kBucketsAndTags = EntryIndex::kBuckets << 16;
  std::unordered_map<uint64_t, TestEntry*> by_bits;
  TestEntry* one = nullptr;
  TestEntry* other = nullptr;
  while (other == nullptr) {
    one = MakeWhere([](uint64_t) { return true; });
    const auto [known, is_new] = by_bits.try_emplace(HashOf(one->text) % kBucketsAndTags, one);
    if (!is_new) other = known->second;
  }
  Put(one);
  EXPECT_FALSE(Find(other));
  const uint64_t hash = HashOf(other->text);
  EXPECT_EQ(EntryIndex::GlanceAt(index_.Home(hash), hash).candidate(), one);
  Put(other);
  EXPECT_EQ(Find(one).entry(), one);
  EXPECT_EQ(Find(other).entry(), other);
  Remove(one);
  EXPECT_FALSE(Find(one));
  EXPECT_EQ(Find(other).entry(), other);
}

TEST_F(IndexTest, AGlanceAtTheNeighbourTellsOfAKeyThatIsAway) {
  constexpr size_t kBucket = 6;
  // Each with a tag of its own, so that one candidate can be right only.
  std::unordered_set<uint64_t> tags;
  const auto make = [&] {
    return MakeWhere([&](uint64_t hash) {
      return hash % EntryIndex::kBuckets == kBucket &&
             tags.insert((hash / EntryIndex::kBuckets) & 0xFFFF).second;
    });
  };
  for (size_t i = 0; i < EntryIndex::kSlots; ++i) Put(make());
  TestEntry* const away = make();
  const TestEntry* const absent = make();
  const auto home_of = [&](const TestEntry* entry) -> const EntryIndex::Bucket& {
    return index_.Home(HashOf(entry->text));
  };
  const auto glance = [&](const TestEntry* entry) {
    return EntryIndex::GlanceAt(home_of(entry), HashOf(entry->text));
  };
  EXPECT_TRUE(glance(away).is_absent);
  EXPECT_FALSE(glance(away).may_be_away());

  Put(away);
  EXPECT_TRUE(glance(away).may_be_away());
  const EntryIndex::Glance found = EntryIndex::GlanceAway(home_of(away), HashOf(away->text));
  EXPECT_EQ(found.candidate(), away);
  EXPECT_FALSE(found.is_absent);
  std::atomic<uint8_t> nowhere{0};
  EntryIndex::Raise(found.frequency, &nowhere);
  EXPECT_EQ(EntryIndex::Frequency(Find(away).slot), 1);

  EXPECT_TRUE(glance(absent).may_be_away());
  const EntryIndex::Glance none = EntryIndex::GlanceAway(home_of(absent), HashOf(absent->text));
  EXPECT_EQ(none.candidate(), nullptr);
  EXPECT_TRUE(none.is_absent);
}

}  // namespace
}  // namespace basalt::cache
