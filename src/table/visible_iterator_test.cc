#include "base/visible_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hidden_stretches.h"
#include "base/merge_operator.h"
#include "base/merging_iterator.h"
#include "base/random.h"
#include "base/range_cover.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

/// What an iterator shows of a key.
struct Shown {
  std::string value;
  std::optional<WallTime> expiry;

  friend bool operator==(const Shown&, const Shown&) = default;
};
using ShownRecords = std::map<std::string, Shown>;

Shown ShownBy(const Iterator& it) { return {std::string(it.value()), it.expiry()}; }

std::string AppendValue(const std::string& operand) {
  return static_cast<char>(MergeOperator::kAppend) + operand;
}

// How many versions a key may have: few, and about as many as are passed one by one.
const std::vector<uint64_t> kVersionCounts = {1, 2, 5, 15, 16, 17, 18, 60};

// Sorted versions of a few keys with unique sequence numbers from 1 on, of all kinds.
std::vector<Record> Versions(base::Random* random) {
  std::vector<std::string> keys;
  for (uint64_t key = random->Below(6) + 1; key > 0; --key) {
    const uint64_t versions = kVersionCounts[random->Below(kVersionCounts.size())];
    keys.insert(keys.end(), versions, Numbered("key", key));
  }
  for (size_t i = keys.size() - 1; i > 0; --i) std::swap(keys[i], keys[random->Below(i + 1)]);
  const uint64_t merges_of_100 = std::vector<uint64_t>{0, 20, 99}[random->Below(3)];
  std::vector<Record> records;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t kind = random->Below(100);
    if (kind < merges_of_100) {
      records.push_back(Merge(keys[i], i + 1, AppendValue(Numbered("+", i)), 1));
    } else if (kind % 5 == 0) {
      records.push_back(Delete(keys[i], i + 1));
    } else {
      const uint64_t expiry_ms = kind % 5 == 1 ? 10 : kind % 5 == 2 ? 30 : 0;
      records.push_back(Put(keys[i], i + 1, Numbered("value", i), expiry_ms));
    }
  }
  Sort(&records);
  return records;
}

// What a reader at `at` sees at moment 20, found by looking at every version.
ShownRecords SeenRecords(const std::vector<Record>& records, base::SequenceNumber at,
                         const base::RangeCovers& ranges) {
  std::map<std::string, std::vector<const Record*>> versions;  // newest first
  for (const Record& record : records) {
    if (base::TagSequence(record.tag) <= at) versions[record.key].push_back(&record);
  }
  ShownRecords seen;
  for (const auto& [key, newest_first] : versions) {
    std::vector<base::PendingMerge> merges;
    const Record* below = nullptr;
    for (const Record* record : newest_first) {
      if (ranges.StretchOf(key).sequence > base::TagSequence(record->tag)) break;
      const RecordKind kind = base::TagKind(record->tag);
      if (kind == RecordKind::kPut) below = record;
      if (kind != RecordKind::kMerge) break;
      merges.push_back({record->value, record->time_ms});
    }
    constexpr uint64_t kNow = 20;
    uint64_t expiry_ms = below == nullptr ? 0 : below->time_ms;
    std::optional<std::string> value;
    if (below != nullptr) value = below->value;
    if (!merges.empty()) {
      auto merged = base::ApplyMerges(
          merges, value ? std::optional<std::string_view>(*value) : std::nullopt, expiry_ms, kNow);
      value = merged->value;
      expiry_ms = merged->expiry_ms;
    }
    if (!value || (expiry_ms != 0 && expiry_ms <= kNow)) continue;
    std::optional<WallTime> expiry;
    if (expiry_ms != 0) expiry.emplace(std::chrono::milliseconds(expiry_ms));
    seen[key] = {*value, expiry};
  }
  return seen;
}

// Records of several sources, at random or by age; each leaves out what is hidden in all of it.
std::unique_ptr<base::RecordIterator> Dealt(const std::vector<Record>& records, size_t children,
                                            const base::RangeCovers& ranges, base::Random* random) {
  const bool by_age = random->OneIn(2);
  std::vector<std::vector<Record>> hands(children);
  std::vector<base::SequenceNumber> newest(children, 0);
  for (const Record& record : records) {
    const base::SequenceNumber sequence = base::TagSequence(record.tag);
    const size_t hand =
        by_age ? (sequence - 1) * children / records.size() : random->Below(children);
    hands[hand].push_back(record);
    newest[hand] = std::max(newest[hand], sequence);
  }
  std::vector<std::unique_ptr<base::RecordIterator>> iterators;
  for (size_t i = 0; i < children; ++i) {
    iterators.push_back(base::WithoutHiddenStretches(
        std::make_unique<VectorIterator>(std::move(hands[i])), &ranges, newest[i]));
  }
  return base::NewMergingIterator(std::move(iterators));
}

// Counts what is asked of it.
class CountingIterator final : public base::RecordIterator {
 public:
  CountingIterator(std::vector<Record> records, uint64_t* moves)
      : inner_(std::move(records)), moves_(*moves) {}

  void SeekToFirst() override {
    Count([&] { inner_.SeekToFirst(); });
  }
  void SeekToLast() override {
    Count([&] { inner_.SeekToLast(); });
  }
  void Seek(std::string_view key, base::Tag tag) override {
    Count([&] { inner_.Seek(key, tag); });
  }
  void SeekForPrev(std::string_view key, base::Tag tag) override {
    Count([&] { inner_.SeekForPrev(key, tag); });
  }
  void Next() override {
    Count([&] { inner_.Next(); });
  }
  void Prev() override {
    Count([&] { inner_.Prev(); });
  }

 private:
  template <class Move>
  void Count(Move move) {
    ++moves_;
    move();
    ShowAs(inner_);
  }

  VectorIterator inner_;
  uint64_t& moves_;
};

TEST(VisibleIterator, ShowsWhatAReaderSeesHoweverManyVersionsThereAre) {
  for (uint64_t seed = 1; seed <= 1'500; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    const std::vector<Record> records = Versions(&random);
    const base::SequenceNumber at =
        random.OneIn(2) ? base::kMaxSequence : random.Below(records.size() + 1);
    std::vector<std::vector<base::RangeCover::Range>> ranges(3);  // of two covers, and loose ones
    const std::vector<std::string> ends = {"", "key1", "key2", "key3", "key4", "key5", "key7"};
    for (uint64_t i = random.Below(4); i > 0; --i) {
      const base::SequenceNumber sequence = random.Below(records.size()) + 1;
      if (sequence > at) continue;
      ranges[random.Below(3)].push_back(
          {ends[random.Below(ends.size())], ends[random.Below(ends.size())], sequence});
    }
    const base::RangeCover first(ranges[0]);
    const base::RangeCover second(ranges[1]);
    const auto cover = std::make_shared<base::RangeCovers>(
        std::vector<const base::RangeCover*>{&first, &second}, ranges[2]);
    const ShownRecords seen = SeenRecords(records, at, *cover);

    const auto it =
        base::NewVisibleIterator({.ranges = cover,
                                  .at = at,
                                  .now_ms = 20,
                                  .source = Dealt(records, random.Below(4) + 1, *cover, &random),
                                  .records_stay = random.OneIn(2)},
                                 {});
    ShownRecords forward;
    for (it->SeekToFirst(); it->Valid(); it->Next()) forward.emplace(it->key(), ShownBy(*it));
    EXPECT_EQ(forward, seen);
    ShownRecords backward;
    for (it->SeekToLast(); it->Valid(); it->Prev()) backward.emplace(it->key(), ShownBy(*it));
    EXPECT_EQ(backward, seen);

    // To and fro, beside the same walk over what is seen.
    for (int walk = 0; walk < 4; ++walk) {
      const std::string target = Numbered("key", random.Below(8));
      auto expected = seen.lower_bound(target);
      it->Seek(target);
      while (expected != seen.end()) {
        ASSERT_TRUE(it->Valid());
        ASSERT_EQ(it->key(), expected->first);
        ASSERT_EQ(ShownBy(*it), expected->second);
        if (random.OneIn(8)) break;
        if (random.OneIn(2) && expected != seen.begin()) {
          --expected;
          it->Prev();
        } else {
          ++expected;
          it->Next();
        }
      }
      if (expected == seen.end()) {
        ASSERT_FALSE(it->Valid());
      }
      ASSERT_TRUE(it->status().ok());
    }
  }
}

TEST(VisibleIterator, PassesManyVersionsOfAKeyInFewMoves) {
  constexpr uint64_t kVersions = 100'000;
  std::vector<Record> records = {Put("a", 1, "first"), Put("c", 2, "last")};
  for (uint64_t i = 0; i < kVersions; ++i) records.push_back(Put("b", 3 + i, Numbered("v", i)));
  Sort(&records);
  uint64_t moves = 0;
  const auto it =
      base::NewVisibleIterator({.source = std::make_unique<CountingIterator>(records, &moves)}, {});
  std::string seen;
  for (it->SeekToFirst(); it->Valid(); it->Next()) seen.append(it->value()).append(" ");
  for (it->SeekToLast(); it->Valid(); it->Prev()) seen.append(it->value()).append(" ");
  EXPECT_EQ(seen, "first v99999 last last v99999 first ");
  EXPECT_LT(moves, 1'000U);
}

TEST(VisibleIterator, PassesAnyNumberOfExpiredMergesOnALimitedStack) {
  constexpr uint64_t kKeys = 200'000;
  std::vector<Record> records;
  records.reserve(2 * kKeys + 1);
  for (uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = Numbered("a", kKeys + i);
    records.push_back(Merge(key, 2 * i + 2, AppendValue("+"), 1));
    records.push_back(Put(key, 2 * i + 1, "expired", 10));
  }
  records.push_back(Put("b", 2 * kKeys + 1, "last"));
  size_t times_told = 0;
  const auto it = base::NewVisibleIterator({.now_ms = 20,
                                            .source = std::make_unique<VectorIterator>(&records),
                                            .on_many_hidden = [&] { ++times_told; }},
                                           {});
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "b");
  EXPECT_EQ(times_told, 1U);
  it->Prev();
  EXPECT_FALSE(it->Valid());
}

TEST(VisibleIterator, PassesAStretchThatIsHiddenInASourceByOneSeek) {
  constexpr uint64_t kRecords = 100'000;
  std::vector<Record> records = {Put("a", 1, "first"), Put("c", 2, "last")};
  for (uint64_t i = 0; i < kRecords; ++i) records.push_back(Put(Numbered("b", i), 3 + i, "v"));
  Sort(&records);
  const base::SequenceNumber newest = 2 + kRecords;
  for (const bool is_hidden : {true, false}) {
    const auto ranges = base::NewRangeCovers(
        {}, {{"b", "b5", newest + 1}, {"b5", "c", newest + (is_hidden ? 2 : 0)}});
    uint64_t moves = 0;
    const auto it = base::NewVisibleIterator(
        {.ranges = ranges,
         .source = base::WithoutHiddenStretches(std::make_unique<CountingIterator>(records, &moves),
                                                ranges.get(), newest)},
        {});
    std::string seen;
    for (it->SeekToFirst(); it->Valid(); it->Next()) seen.append(it->key()).append(" ");
    for (it->SeekToLast(); it->Valid(); it->Prev()) seen.append(it->key()).append(" ");
    if (is_hidden) {
      EXPECT_EQ(seen, "a c c a ");
      EXPECT_LT(moves, 20U);
    } else {
      EXPECT_EQ(seen, "a b99999 c c b99999 a ") << "the newest is as new as the range delete";
      EXPECT_LT(moves, kRecords * 6 / 5) << "the other stretch is passed in both walks";
    }
  }
}

TEST(VisibleIterator, AnErrorEndsTheWalkUntilASeekThatHasNone) {
  std::vector<Record> records = {Put("a", 1, "first")};
  for (uint64_t i = 0; i < 1'000; ++i) records.push_back(Put("b", 2 + i, "v"));
  Sort(&records);
  const Status broken(StatusCode::kIoError, "no disk");
  const base::RangeCovers ranges({}, {{"x", "z", 10'000}});
  for (const bool forward : {true, false}) {
    auto owned = std::make_unique<VectorIterator>(records);
    VectorIterator* const source = owned.get();
    const auto it = base::NewVisibleIterator(
        {.source = base::WithoutHiddenStretches(std::move(owned), &ranges, 2'000)}, {});
    it->Seek("b");
    ASSERT_TRUE(it->Valid());
    source->Break(broken);
    if (forward) {
      it->Next();
    } else {
      it->SeekToLast();
    }
    EXPECT_FALSE(it->Valid());
    EXPECT_EQ(it->status().code(), StatusCode::kIoError);
    source->Break(Status());
    it->SeekToLast();
    ASSERT_TRUE(it->Valid());
    EXPECT_EQ(it->key(), "b");
    it->Prev();
    ASSERT_TRUE(it->Valid()) << it->status().ToString();
    EXPECT_EQ(it->key(), "a");
  }
}

}  // namespace
}  // namespace basalt::table
