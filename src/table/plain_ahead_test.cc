#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/merging_iterator.h"
#include "base/random.h"
#include "base/visible_iterator.h"
#include "io/memory_file_system.h"
#include "table/block_portion.h"
#include "table/concatenating_iterator.h"
#include "table/test_records.h"

// Tables, rows of tables and mergers must give the same records many at a time as step by step,
// from every position.

namespace basalt::table {
namespace {

using base::PlainPut;
using base::RecordIterator;
using base::SequenceNumber;

/// Tables in memory, and iterators over them.
class Tables {
 public:
  std::shared_ptr<const Table> Add(const std::vector<Record>& records, size_t block_bytes) {
    const std::string path = Numbered("/table", count_++);
    const TableSpot spot{.fs = fs_.get(), .path = path, .block_bytes = block_bytes};
    EXPECT_TRUE(WriteTable(spot, records));
    return OpenTable(spot).value();
  }
  std::unique_ptr<RecordIterator> Walk(const std::vector<Record>& records, size_t block_bytes) {
    return Add(records, block_bytes)->NewIterator(/*fill_cache=*/true);
  }
  /// Over several tables, one behind the other.
  std::unique_ptr<RecordIterator> WalkInRow(const std::vector<Record>& records, size_t tables,
                                            size_t block_bytes) {
    std::vector<std::shared_ptr<const Table>> row;
    const size_t each = records.size() / tables + 1;
    for (size_t at = 0; at < records.size(); at += each) {
      const auto begin = records.begin() + static_cast<ptrdiff_t>(at);
      const size_t size = std::min(each, records.size() - at);
      row.push_back(Add({begin, begin + static_cast<ptrdiff_t>(size)}, block_bytes));
    }
    return NewConcatenatingIterator(std::make_unique<OpenTables>(std::move(row)),
                                    /*fill_cache=*/true);
  }

 private:
  std::shared_ptr<io::FileSystem> fs_ = io::NewMemoryFileSystem();
  uint64_t count_ = 0;
};

std::string Padded(uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(10 - digits.size(), '0') + digits;
}

/// Keys that share beginnings of many lengths, and differ in their first bytes behind them, or far
/// behind.
class Keys {
 public:
  explicit Keys(base::Random* random)
      : random_(*random),
        stem_(std::vector<size_t>{0, 3, 8, 9, 24, 40, 300}[random->Below(7)], 'k'),
        count_(1 + random->Below(400)),
        shape_(random->Below(3)) {}

  std::string Any() const {
    const uint64_t number = random_.Below(count_);
    if (shape_ == 0) return stem_ + Padded(number * 37);
    if (shape_ == 1) return stem_ + Padded(number / 3) + "of the same" + Padded(number % 3);
    std::string key = Numbered(stem_, number);
    if (random_.OneIn(3)) key.append(random_.Below(20), 'x');
    return key;
  }

 private:
  base::Random& random_;
  const std::string stem_;
  const uint64_t count_;
  const uint64_t shape_;
};

/// Mostly plain puts; some keys have several versions.
std::vector<Record> MostlyPuts(base::Random* random, bool with_merges) {
  const Keys keys(random);
  const uint64_t others_in_100 = std::vector<uint64_t>{0, 3, 30}[random->Below(3)];
  const size_t value_bytes_max = random->OneIn(4) ? 2'000 : 100;
  std::vector<Record> records;
  SequenceNumber sequence = 0;
  for (uint64_t i = 1 + random->Below(600); i > 0; --i) {
    std::string key = keys.Any();
    ++sequence;
    if (random->Below(100) >= others_in_100) {
      const size_t bytes = random->Below(value_bytes_max + 1);
      records.push_back(Put(std::move(key), sequence, RandomBytes(random, bytes, 256)));
    } else if (random->OneIn(3)) {
      records.push_back(Delete(std::move(key), sequence));
    } else if (with_merges && random->OneIn(2)) {
      records.push_back(Merge(std::move(key), sequence, "+1", 7));
    } else {
      records.push_back(Put(std::move(key), sequence, "expires", 9));
    }
  }
  Sort(&records);
  return records;
}

std::unique_ptr<RecordIterator> AnyWalk(Tables* tables, const std::vector<Record>& records,
                                        base::Random* random) {
  const size_t block_bytes = std::vector<size_t>{500, 4'000, 300'000}[random->Below(3)];
  if (random->OneIn(3)) return tables->Walk(records, block_bytes);
  if (random->OneIn(2)) return tables->WalkInRow(records, random->Below(4) + 1, block_bytes);
  // Stretches of them at random, or nearly all in one.
  std::vector<std::vector<Record>> hands(random->Below(4) + 2);
  const bool nearly_all_in_one = random->OneIn(2);
  const uint64_t elsewhere_in_100 = nearly_all_in_one ? 7 : random->Below(100);
  size_t hand = 0;
  for (const Record& record : records) {
    if (nearly_all_in_one) hand = 0;
    if (random->Below(100) < elsewhere_in_100) hand = random->Below(hands.size());
    hands[hand].push_back(record);
  }
  std::vector<std::unique_ptr<RecordIterator>> children;
  for (const std::vector<Record>& in_hand : hands) {
    if (!in_hand.empty()) children.push_back(tables->Walk(in_hand, block_bytes));
  }
  return base::NewMergingIterator(std::move(children));
}

class Walker {
 public:
  Walker(std::unique_ptr<RecordIterator> it, const std::vector<Record>& expected,
         base::Random* random)
      : it_(std::move(it)), expected_(expected), random_(*random) {}

  void Run(int moves) {
    for (; moves > 0 && !testing::Test::HasFatalFailure(); --moves) {
      if (!it_->Valid() || random_.OneIn(30)) {
        Jump();
      } else if (random_.OneIn(3)) {
        Step();
      } else {
        PassAhead();
      }
      Check();
    }
  }

 private:
  void Check() const {
    ASSERT_TRUE(it_->status().ok()) << it_->status().ToString();
    const bool is_within = at_ >= 0 && at_ < std::ssize(expected_);
    ASSERT_EQ(it_->Valid(), is_within);
    if (is_within) {
      ASSERT_EQ(Present(*it_), Expected(at_));
    }
  }

  void Jump() {
    const Record target = random_.OneIn(2)
                              ? Expected(static_cast<ptrdiff_t>(random_.Below(expected_.size())))
                              : Put(Numbered("k", random_.Below(100)), 5, "");
    at_ = std::lower_bound(expected_.begin(), expected_.end(), target) - expected_.begin();
    if (random_.OneIn(4)) {
      if (at_ == std::ssize(expected_) || Expected(at_).key != target.key ||
          Expected(at_).tag != target.tag) {
        --at_;
      }
      it_->SeekForPrev(target.key, target.tag);
    } else {
      it_->Seek(target.key, target.tag);
    }
  }

  void Step() {
    if (random_.OneIn(4)) {
      --at_;
      it_->Prev();
    } else if (random_.OneIn(8)) {
      const std::string key = Expected(at_).key;
      while (at_ < std::ssize(expected_) && Expected(at_).key == key) ++at_;
      it_->SkipVersions();
      // As many as one seek can pass: of several sources each may have some more.
      while (it_->Valid() && it_->key() == key) it_->SkipVersions();
    } else {
      ++at_;
      it_->Next();
    }
  }

  void PassAhead() {
    const SequenceNumber newest =
        random_.OneIn(3) ? random_.Below(expected_.size() + 1) : base::kMaxSequence;
    for (size_t passed = 0;;) {
      const std::span<const PlainPut> ahead = it_->PlainAhead(passed, newest);
      at_ += static_cast<ptrdiff_t>(passed);
      for (size_t i = 0; i < ahead.size(); ++i) {
        const ptrdiff_t place = at_ + 1 + static_cast<ptrdiff_t>(i);
        ASSERT_LT(place, std::ssize(expected_));
        const Record& record = Expected(place);
        ASSERT_EQ(ahead[i].key(), record.key);
        ASSERT_EQ(ahead[i].value(), record.value);
        ASSERT_EQ(base::TagKind(record.tag), RecordKind::kPut);
        ASSERT_EQ(record.time_ms, 0u);
        ASSERT_LE(base::TagSequence(record.tag), newest);
        ASSERT_NE(record.key, Expected(place - 1).key);
      }
      if (passed != 0) {
        ASSERT_NO_FATAL_FAILURE(Check());
      }
      passed = random_.OneIn(4) ? random_.Below(ahead.size() + 1) : ahead.size();
      if (passed == 0) return;
    }
  }

  const Record& Expected(ptrdiff_t at) const { return expected_[static_cast<size_t>(at)]; }

  const std::unique_ptr<RecordIterator> it_;
  const std::vector<Record>& expected_;
  base::Random& random_;
  ptrdiff_t at_ = 0;
};

TEST(PlainAhead, IsWhatStepsWouldShowFromWhereverItIsAskedFor) {
  for (uint64_t seed = 1; seed <= 1'000; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    const std::vector<Record> records = MostlyPuts(&random, /*with_merges=*/true);
    Tables tables;
    Walker walker(AnyWalk(&tables, records, &random), records, &random);
    walker.Run(120);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// How many of the records of a whole walk are given at once, in percent.
size_t GivenInAHundred(RecordIterator& it, size_t records) {
  size_t given = 0;
  size_t seen = 0;
  for (it.SeekToFirst(); it.Valid(); it.Next()) {
    ++seen;
    for (size_t passed = 0;;) {
      passed = it.PlainAhead(passed, base::kMaxSequence).size();
      if (passed == 0) break;
      given += passed;
      seen += passed;
    }
  }
  EXPECT_EQ(seen, records);
  return 100 * given / records;
}

TEST(PlainAhead, IsNearlyAllOfAWalkOverPlainPuts) {
  constexpr size_t kRecords = 20'000;
  std::vector<Record> most;
  std::vector<Record> few;
  for (size_t i = 0; i < kRecords; ++i) {
    std::string key = Numbered("user", 1'000'000 + i);
    std::vector<Record>& hand = i % 100 == 50 ? few : most;
    hand.push_back(Put(std::move(key), i + 1, "a value of some bytes"));
  }
  Tables tables;
  EXPECT_GE(GivenInAHundred(*tables.Walk(most, kBlockBytes), most.size()), 98u);
  EXPECT_GE(GivenInAHundred(*tables.WalkInRow(most, 3, kBlockBytes), most.size()), 98u);
  std::vector<std::unique_ptr<RecordIterator>> children;
  children.push_back(tables.Walk(few, kBlockBytes));
  children.push_back(tables.WalkInRow(most, 3, kBlockBytes));
  EXPECT_GE(GivenInAHundred(*base::NewMergingIterator(std::move(children)), kRecords), 90u);
}

using Contents = std::map<std::string, std::string>;

/// What a reader at `newest` sees where nothing has expired and nothing is merged.
Contents Seen(const std::vector<Record>& records, SequenceNumber newest) {
  Contents seen;
  const Record* before = nullptr;
  for (const Record& record : records) {
    if (base::TagSequence(record.tag) > newest) continue;
    const bool is_newest = before == nullptr || before->key != record.key;
    before = &record;
    if (is_newest && base::TagKind(record.tag) == RecordKind::kPut) {
      seen.emplace(record.key, record.value);
    }
  }
  return seen;
}

// The keys of what is given at once lie in room that the next portion overwrites.
TEST(PlainAhead, IsShownByScansAsStepsWouldBe) {
  for (uint64_t seed = 1; seed <= 1'000; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    const std::vector<Record> records = MostlyPuts(&random, /*with_merges=*/false);
    const SequenceNumber at =
        random.OneIn(2) ? base::kMaxSequence : random.Below(records.size() + 1);
    Contents seen = Seen(records, at);
    ReadOptions options{.keys_only = random.OneIn(4)};
    const std::string upper = records[random.Below(records.size())].key;
    if (random.OneIn(3)) {
      options.upper = upper;
      seen.erase(seen.lower_bound(upper), seen.end());
    }
    Tables tables;
    const auto it =
        base::NewVisibleIterator({.at = at, .source = AnyWalk(&tables, records, &random)}, options);
    for (int walk = 0; walk < 6; ++walk) {
      const std::string target = records[random.Below(records.size())].key;
      auto expected = seen.lower_bound(target);
      it->Seek(target);
      while (expected != seen.end()) {
        ASSERT_TRUE(it->Valid());
        ASSERT_EQ(it->key(), expected->first);
        ASSERT_EQ(it->value(), options.keys_only ? "" : expected->second);
        if (expected != seen.begin() && random.OneIn(16)) {
          --expected;
          it->Prev();
        } else {
          ++expected;
          it->Next();
        }
        if (random.OneIn(40)) break;
      }
      if (expected == seen.end()) {
        ASSERT_FALSE(it->Valid());
      }
      ASSERT_TRUE(it->status().ok());
    }
  }
}

TEST(PlainAhead, EndsSoonAfterTheStoreHasBecomeUnusable) {
  std::vector<Record> records;
  for (size_t i = 0; i < 1'000; ++i) {
    records.push_back(Put(Numbered("user", 1'000 + i), i + 1, "value"));
  }
  Tables tables;
  bool is_closed = false;
  const auto it = base::NewVisibleIterator(
      {.check_usable =
           [&] {
             return is_closed ? Status(StatusCode::kFailedPrecondition, "is closed") : Status();
           },
       .source = tables.Walk(records, kBlockBytes)},
      {});
  it->SeekToFirst();
  for (int i = 0; i < 100; ++i) it->Next();
  ASSERT_TRUE(it->Valid());
  is_closed = true;
  for (size_t i = 0; i <= BlockPortion::kRecordsMax && it->Valid(); ++i) it->Next();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
  it->Next();
  it->Prev();
  EXPECT_FALSE(it->Valid());
  EXPECT_EQ(it->status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace basalt::table
