#include "base/surviving_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/random.h"

namespace basalt::base {
namespace {

struct RecordVersion {
  std::string key;
  SequenceNumber sequence;
  RecordKind kind;
  uint64_t time_ms;
  std::string value;
};

/// Walks versions that are in internal order; forward only.
class VectorIterator final : public RecordIterator {
 public:
  explicit VectorIterator(std::vector<RecordVersion> versions) : versions_(std::move(versions)) {
    Publish();
  }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(std::string_view, Tag) override {}
  void SeekForPrev(std::string_view, Tag) override {}
  void Prev() override {}
  void Next() override {
    ++at_;
    Publish();
  }

 private:
  void Publish() {
    valid_ = at_ < versions_.size();
    if (!valid_) return;
    // A copy each time: what was shown before must not be used any more.
    present_ = std::make_unique<RecordVersion>(versions_[at_]);
    key_ = present_->key;
    value_ = present_->value;
    tag_ = MakeTag(present_->sequence, present_->kind);
    time_ms_ = present_->time_ms;
  }

  const std::vector<RecordVersion> versions_;
  size_t at_ = 0;
  std::unique_ptr<RecordVersion> present_;
};

struct RangeDelete {
  SequenceNumber sequence;
  std::string begin;
  std::string end;
};

/// The newest of the ranges up to a sequence number that covers a key.
class RangeDeletes {
 public:
  explicit RangeDeletes(std::vector<RangeDelete> ranges) : ranges_(std::move(ranges)) {}
  SequenceNumber SequenceAt(std::string_view key, SequenceNumber at) const {
    SequenceNumber newest = 0;
    for (const RangeDelete& range : ranges_) {
      if (range.sequence <= at && range.begin <= key && key < range.end) {
        newest = std::max(newest, range.sequence);
      }
    }
    return newest;
  }
  std::function<SequenceNumber(std::string_view, SequenceNumber)> AsRule() const {
    return [this](std::string_view key, SequenceNumber at) { return SequenceAt(key, at); };
  }

 private:
  const std::vector<RangeDelete> ranges_;
};

std::vector<RecordVersion> Survivors(std::vector<RecordVersion> versions,
                                     SurvivingRecords::Rules rules) {
  VectorIterator source(std::move(versions));
  SurvivingRecords records(&source, std::move(rules));
  std::vector<RecordVersion> kept;
  while (records.Next()) {
    kept.push_back({std::string(records.key()), TagSequence(records.tag()), TagKind(records.tag()),
                    records.time_ms(), std::string(records.value())});
  }
  return kept;
}

std::string Number(int64_t number) {
  std::string bytes(8, '\0');
  Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}
std::string MergeValue(MergeOperator op, const std::string& operand) {
  return std::string(1, static_cast<char>(op)) + operand;
}

/// What a reader at `at` and `now_ms` sees of one key; the answer of a failed merge is "error".
std::optional<std::string> Read(const std::vector<RecordVersion>& newest_first,
                                const std::vector<RangeDelete>& ranges, SequenceNumber at,
                                uint64_t now_ms) {
  std::vector<PendingMerge> merges;
  std::optional<std::string> below;
  uint64_t expiry_ms = 0;
  for (const RecordVersion& version : newest_first) {
    if (version.sequence > at) continue;
    const bool is_covered = std::ranges::any_of(ranges, [&](const RangeDelete& range) {
      return range.sequence <= at && range.sequence > version.sequence &&
             range.begin <= version.key && version.key < range.end;
    });
    if (is_covered) break;
    if (version.kind == RecordKind::kMerge) {
      merges.push_back({version.value, version.time_ms});
      continue;
    }
    if (version.kind == RecordKind::kPut) {
      below = version.value;
      expiry_ms = version.time_ms;
    }
    break;
  }
  if (!merges.empty()) {
    const auto merged = ApplyMerges(
        merges, below ? std::optional<std::string_view>(*below) : std::nullopt, expiry_ms, now_ms);
    if (!merged) return "error";
    below = merged->value;
    expiry_ms = merged->expiry_ms;
  }
  if (expiry_ms != 0 && expiry_ms <= now_ms) return std::nullopt;
  return below;
}

RecordVersion RandomVersion(Random* random, SequenceNumber sequence) {
  RecordVersion version{"key", sequence, RecordKind::kPut, 0, {}};
  switch (random->Below(8)) {
    case 0:
    case 1:
      version.kind = RecordKind::kDelete;
      break;
    case 2:
    case 3:
    case 4: {
      version.kind = RecordKind::kMerge;
      version.time_ms = 100 + sequence;
      const auto op = static_cast<MergeOperator>(1 + random->Below(4));
      version.value = MergeValue(op, op == MergeOperator::kAppend
                                         ? std::string("x")
                                         : Number(static_cast<int64_t>(random->Below(9)) - 4));
      break;
    }
    default:
      if (random->Below(2) == 0) version.time_ms = 95 + random->Below(40);
      version.value =
          random->Below(4) == 0 ? "text" : Number(static_cast<int64_t>(random->Below(100)));
  }
  return version;
}

TEST(SurvivingRecords, AMergeThatCameAfterTheExpiryIsNotCombinedWithWhatExpiresLaterForASnapshot) {
  const std::string one = MergeValue(MergeOperator::kAdd, Number(1));
  const std::vector<RecordVersion> versions = {{"key", 4, RecordKind::kMerge, 86, one},
                                               {"key", 3, RecordKind::kMerge, 34, one},
                                               {"key", 2, RecordKind::kPut, 40, Number(5)}};
  // The oldest snapshot's time is 25.
  const auto kept = Survivors(versions, {.boundaries = {1, 4}, .now_ms = 25});
  std::vector<PendingMerge> merges;
  for (const RecordVersion& version : kept) {
    if (version.kind == RecordKind::kMerge) merges.push_back({version.value, version.time_ms});
  }
  ASSERT_EQ(kept.back().kind, RecordKind::kPut);
  const auto merged = ApplyMerges(merges, kept.back().value, kept.back().time_ms, /*now_ms=*/100);
  EXPECT_EQ(merged->value, Number(1)) << "of the merge that was written at 86 alone";
  EXPECT_EQ(merged->expiry_ms, 0U);
}

// What every reader at a boundary sees, now and later, is the same before and after, with what lies
// below the output.
TEST(SurvivingRecords, ChangeNothingThatAnybodyCanSee) {
  Random random(7);
  uint64_t dropped = 0;
  for (int round = 0; round < 200'000; ++round) {
    const SequenceNumber last = 1 + random.Below(8);
    const bool is_bottom = random.Below(2) == 0;
    const SequenceNumber below_last = is_bottom ? 0 : random.Below(last + 1);
    const SequenceNumber source_last = random.Between(below_last, last);
    std::vector<RecordVersion> above;
    std::vector<RecordVersion> source;
    std::vector<RecordVersion> below;
    for (SequenceNumber sequence = last; sequence >= 1; --sequence) {
      if (random.Below(4) == 0) continue;
      RecordVersion version = RandomVersion(&random, sequence);
      auto& place = sequence > source_last ? above : sequence > below_last ? source : below;
      place.push_back(std::move(version));
    }
    std::vector<RangeDelete> ranges;
    while (random.Below(3) == 0) {
      ranges.push_back({1 + random.Below(last), random.Below(2) == 0 ? "a" : "kez", "z"});
    }
    std::vector<SequenceNumber> boundaries;
    for (SequenceNumber sequence = 1; sequence <= last; ++sequence) {
      if (random.Below(4) == 0) boundaries.push_back(sequence);
    }
    if (boundaries.empty()) boundaries.push_back(last);
    const uint64_t now_ms = 100 + last + random.Below(30);  // not before any merge was written

    const RangeDeletes range_deletes(ranges);
    SurvivingRecords::Rules rules;
    rules.boundaries = boundaries;
    rules.cover_of = range_deletes.AsRule();
    rules.now_ms = now_ms;
    rules.is_bottom = [&](std::string_view) { return is_bottom; };
    rules.has_merges_above = std::ranges::any_of(
        above, [](const RecordVersion& version) { return version.kind == RecordKind::kMerge; });
    const bool knows_below = random.Below(2) == 0;
    rules.expiry_below = [&](std::string_view,
                             const SurvivingRecords::Chain& chain) -> std::optional<uint64_t> {
      EXPECT_GE(chain.count, 2U);
      if (!knows_below) return std::nullopt;
      for (const RecordVersion& version : below) {
        if (version.kind == RecordKind::kMerge) continue;
        const bool matters =
            version.time_ms > chain.earliest_ms && version.time_ms <= chain.latest_ms;
        return matters ? version.time_ms : 0;
      }
      return 0;
    };
    std::vector<RecordVersion> after = Survivors(source, std::move(rules));
    dropped += source.size() - after.size();
    for (size_t i = 1; i < after.size(); ++i) {
      ASSERT_GT(after[i - 1].sequence, after[i].sequence) << "round " << round;
    }
    source.insert(source.begin(), above.begin(), above.end());
    after.insert(after.begin(), above.begin(), above.end());
    std::vector<RecordVersion> before = source;
    before.insert(before.end(), below.begin(), below.end());
    after.insert(after.end(), below.begin(), below.end());
    // Whoever reads above the last boundary is served, too: snapshots may still be taken there.
    for (SequenceNumber at = boundaries.back() + 1; at <= last; ++at) {
      boundaries.push_back(at);
    }
    for (const SequenceNumber at : boundaries) {
      for (const uint64_t then : {now_ms, now_ms + 5, now_ms + 100}) {
        ASSERT_EQ(Read(before, ranges, at, then), Read(after, ranges, at, then))
            << "round " << round << " at " << at << " now " << then;
      }
    }
  }
  EXPECT_GT(dropped, 100'000U);
}

TEST(SurvivingRecords, KeepOneVersionAKeyWhereNobodyLooksBack) {
  SurvivingRecords::Rules rules;
  rules.boundaries = {100};
  rules.is_bottom = [](std::string_view) { return true; };
  const std::vector<RecordVersion> kept =
      Survivors({{"a", 9, RecordKind::kPut, 0, "new"},
                 {"a", 5, RecordKind::kPut, 0, "old"},
                 {"b", 8, RecordKind::kDelete, 0, ""},
                 {"b", 7, RecordKind::kPut, 0, "gone"},
                 {"c", 6, RecordKind::kMerge, 50, MergeValue(MergeOperator::kAdd, Number(2))},
                 {"c", 4, RecordKind::kPut, 0, Number(40)}},
                std::move(rules));
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].value, "new");
  EXPECT_EQ(kept[1].kind, RecordKind::kPut);
  EXPECT_EQ(kept[1].value, Number(42));
  EXPECT_EQ(kept[1].sequence, 6U);
}

// When the readers go that alone see a version, writing it again drops it; and no other one.
TEST(SurvivingRecords, SayWhichReadersAVersionIsKeptFor) {
  uint64_t dropped = 0;
  uint64_t kept = 0;
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random(seed);
    const SequenceNumber last = 1 + random.Below(12);
    std::vector<RecordVersion> versions;
    for (SequenceNumber sequence = last; sequence >= 1; --sequence) {
      const RecordKind kind = random.OneIn(4) ? RecordKind::kDelete : RecordKind::kPut;
      if (!random.OneIn(4)) versions.push_back({"key", sequence, kind, 0, ""});
    }
    std::vector<RangeDelete> ranges;
    while (random.OneIn(3)) ranges.push_back({1 + random.Below(last), "a", "z"});
    const RangeDeletes range_deletes(ranges);
    std::vector<SequenceNumber> boundaries;
    for (SequenceNumber sequence = 1; sequence < last; ++sequence) {
      if (random.OneIn(3)) boundaries.push_back(sequence);
    }
    boundaries.push_back(last);
    std::vector<SequenceNumber> left;
    for (const SequenceNumber boundary : boundaries) {
      if (boundary == last || random.OneIn(2)) left.push_back(boundary);
    }

    VectorIterator source(versions);
    SurvivingRecords records(&source,
                             {.boundaries = boundaries, .cover_of = range_deletes.AsRule()});
    std::vector<RecordVersion> first;
    std::vector<SequenceNumber> needed;
    while (records.Next()) {
      const SequenceNumber sequence = TagSequence(records.tag());
      first.push_back({"key", sequence, TagKind(records.tag()), 0, ""});
      const bool is_seen = std::ranges::any_of(left, [&](SequenceNumber reader) {
        return reader >= records.oldest_reader() && reader < records.hidden_from();
      });
      if (records.hidden_from() == 0 || is_seen) needed.push_back(sequence);
    }
    const std::vector<RecordVersion> second =
        Survivors(first, {.boundaries = left, .cover_of = range_deletes.AsRule()});
    std::vector<SequenceNumber> found;
    for (const RecordVersion& version : second) found.push_back(version.sequence);
    ASSERT_EQ(found, needed) << "seed " << seed;
    dropped += first.size() - second.size();
    kept += second.size();
  }
  EXPECT_GT(dropped, 1000U);
  EXPECT_GT(kept, 1000U);
}

TEST(SurvivingRecords, AnExpiredPutAboveTheBottomBecomesADelete) {
  SurvivingRecords::Rules rules;
  rules.boundaries = {100};
  rules.now_ms = 1000;
  const std::vector<RecordVersion> kept =
      Survivors({{"a", 9, RecordKind::kPut, 1000, "x"}, {"b", 8, RecordKind::kPut, 1001, "y"}},
                std::move(rules));
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].kind, RecordKind::kDelete);
  EXPECT_EQ(kept[0].time_ms, 0U);
  EXPECT_EQ(kept[1].kind, RecordKind::kPut);
  EXPECT_EQ(kept[1].time_ms, 1001U);
}

TEST(SurvivingRecords, CountAVersionOnceThatIsThereTwice) {
  const std::pair<SequenceNumber, std::vector<std::string>> kept_by_visible[] = {
      {3, {"a9", "a5", "b8", "c6", "c4"}},
      {7, {"a9", "a5", "b8", "c6"}},
      {100, {"a9", "b8", "c6"}}};
  for (const auto& [visible, expected] : kept_by_visible) {
    SurvivingRecords::Rules rules;
    rules.boundaries = {visible};
    const std::vector<RecordVersion> kept =
        Survivors({{"a", 9, RecordKind::kPut, 0, "new"},
                   {"a", 9, RecordKind::kPut, 0, "new"},
                   {"a", 5, RecordKind::kPut, 0, "old"},
                   {"a", 5, RecordKind::kPut, 0, "old"},
                   {"b", 8, RecordKind::kPut, 20, "expired"},
                   {"b", 8, RecordKind::kDelete, 0, ""},
                   {"c", 6, RecordKind::kMerge, 50, MergeValue(MergeOperator::kAdd, Number(2))},
                   {"c", 4, RecordKind::kPut, 0, Number(40)},
                   {"c", 4, RecordKind::kPut, 0, Number(40)}},
                  std::move(rules));
    std::vector<std::string> found;
    for (const RecordVersion& version : kept) {
      found.push_back(version.key + std::to_string(version.sequence));
    }
    EXPECT_EQ(found, expected) << "visible " << visible;
  }
}

RecordVersion AddAt(SequenceNumber sequence, int64_t number, uint64_t time_ms) {
  return {"a", sequence, RecordKind::kMerge, time_ms,
          MergeValue(MergeOperator::kAdd, Number(number))};
}

/// "sequence:number" of what is left of additions.
std::vector<std::string> Sums(const std::vector<RecordVersion>& versions,
                              SurvivingRecords::Rules rules) {
  std::vector<std::string> sums;
  for (const RecordVersion& version : Survivors(versions, std::move(rules))) {
    EXPECT_EQ(version.kind, RecordKind::kMerge);
    const auto number = static_cast<int64_t>(Load<uint64_t>(version.value.data() + 1));
    sums.push_back(std::to_string(version.sequence) + ":" + std::to_string(number));
  }
  return sums;
}

TEST(SurvivingRecords, AdjacentMergesBecomeOneAboveAnUnknownValue) {
  const std::vector<RecordVersion> additions = {AddAt(9, 1, 59), AddAt(8, 2, 58), AddAt(5, 4, 55),
                                                AddAt(2, 8, 52)};
  const auto combined = [&](std::vector<SequenceNumber> boundaries,
                            std::optional<uint64_t> expiry_ms) {
    SurvivingRecords::Rules rules;
    rules.boundaries = std::move(boundaries);
    rules.now_ms = 100;
    rules.expiry_below = [=](std::string_view key, const SurvivingRecords::Chain& chain) {
      EXPECT_EQ(key, "a");
      EXPECT_EQ(chain.oldest, 2U);
      EXPECT_EQ(chain.earliest_ms, 52U);
      EXPECT_EQ(chain.latest_ms, 59U);
      EXPECT_EQ(chain.count, 4U);
      return expiry_ms;
    };
    return Sums(additions, std::move(rules));
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(combined({20}, 0), Strings({"9:15"}));
  EXPECT_EQ(combined({20}, 70), Strings({"9:15"}));
  EXPECT_EQ(combined({20}, 50), Strings({"9:15"}));
  EXPECT_EQ(combined({20}, 56), Strings({"9:3", "5:12"})) << "they expire with the value";
  EXPECT_EQ(combined({20}, 55), Strings({"9:7", "2:8"}));
  EXPECT_EQ(combined({20}, std::nullopt), Strings({"9:1", "8:2", "5:4", "2:8"}));
  EXPECT_EQ(combined({7, 20}, 0), Strings({"9:3", "5:12"}));
  EXPECT_EQ(combined({8, 20}, 0), Strings({"9:1", "8:14"}));
}

TEST(SurvivingRecords, MergesOfOneMomentAreCombinedWhateverLiesBelow) {
  SurvivingRecords::Rules rules;
  rules.boundaries = {20};
  EXPECT_EQ(
      Sums({AddAt(9, 1, 58), AddAt(8, 2, 58), AddAt(5, 4, 57), AddAt(2, 8, 57)}, std::move(rules)),
      std::vector<std::string>({"9:3", "5:12"}));
}

TEST(SurvivingRecords, WhatDoesNotFitTogetherStaysForReadersToBeTold) {
  SurvivingRecords::Rules rules;
  rules.boundaries = {100};
  rules.is_bottom = [](std::string_view) { return true; };
  const std::vector<RecordVersion> kept =
      Survivors({{"a", 9, RecordKind::kMerge, 50, MergeValue(MergeOperator::kAdd, Number(1))},
                 {"a", 8, RecordKind::kPut, 0, "text"}},
                std::move(rules));
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].kind, RecordKind::kMerge);
  EXPECT_EQ(kept[1].value, "text");
}

}  // namespace
}  // namespace basalt::base
