#include "memtable/sorter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "base/test_dispatch.h"
#include "memtable/sorted_run.h"

namespace basalt::memtable {
namespace {

/// Records with given keys and tags, and what std::sort makes of them.
class RandomVersions {
 public:
  void Add(std::string_view key, base::SequenceNumber sequence) {
    const size_t bytes = RecordSource{.key = key, .value = {}}.ByteSize();
    memory_.push_back(std::make_unique<uint64_t[]>(bytes / sizeof(uint64_t) + 1));
    auto* const record =
        new (memory_.back().get()) Record{.tag = base::MakeTag(sequence, RecordKind::kPut),
                                          .previous = 0,
                                          .value_size = 0,
                                          .key_size = static_cast<uint16_t>(key.size()),
                                          .kind = static_cast<uint8_t>(RecordKind::kPut),
                                          .flags = 0};
    if (!key.empty()) std::memcpy(record->body(), key.data(), key.size());
    records_.push_back(record);
  }
  void Add(std::string_view key) { Add(key, records_.size() + 1); }

  std::vector<SortEntry> Entries(size_t begin, size_t end) const {
    std::vector<SortEntry> entries;
    for (size_t i = begin; i < end; ++i) {
      entries.push_back({records_[i], base::KeyPrefix(records_[i]->key())});
    }
    return entries;
  }
  std::vector<SortEntry> Entries() const { return Entries(0, records_.size()); }

  std::vector<const Record*> Expected() const {
    std::vector<const Record*> expected = records_;
    std::sort(expected.begin(), expected.end(), [](const Record* a, const Record* b) {
      return std::pair(a->key(), ~a->tag.load()) < std::pair(b->key(), ~b->tag.load());
    });
    return expected;
  }
  size_t size() const { return records_.size(); }

 private:
  std::vector<std::unique_ptr<uint64_t[]>> memory_;
  std::vector<const Record*> records_;
};

void ExpectSortedLikeStdSort(const RandomVersions& versions) {
  const std::vector<const Record*> expected = versions.Expected();
  for (const Sorter sorter : {Sorter::kVector, Sorter::kRadix, Sorter::kComparison}) {
    SCOPED_TRACE(testing::Message() << "sorter " << static_cast<int>(sorter));
    std::vector<SortEntry> entries = versions.Entries();
    const size_t shared = SortEntries(entries, sorter);
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(entries[i].record, expected[i]) << "at " << i;
      ASSERT_EQ(entries[i].prefix, base::KeyPrefix(entries[i].record->key(), shared));
    }
    ASSERT_EQ(shared, base::SharedBytes(expected.front()->key(), expected.back()->key()));
  }
}

std::string RandomBytes(base::Random* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random->Next());
  return bytes;
}

TEST(Sorter, EveryCountOfRandomKeysIsSorted) {
  base::Random random(1);
  for (size_t count : {1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 500, 20'000}) {
    RandomVersions versions;
    for (size_t i = 0; i < count; ++i) versions.Add(RandomBytes(&random, 16));
    ExpectSortedLikeStdSort(versions);
  }
}

// Each in a process of its own, where it is the first to ask what there is.
TEST(SorterDeathTest, EveryInstructionSetGivesTheSame) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int64_t target : base::DispatchTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const auto sort = [target] {
      const base::ForcedTarget forced(target);
      base::Random random(3);
      for (const size_t count : {33, 64, 257, 1000, 5000}) {
        RandomVersions versions;
        for (size_t i = 0; i < count; ++i) versions.Add(std::to_string(random.Below(count / 4)));
        ExpectSortedLikeStdSort(versions);
      }
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(sort(), testing::ExitedWithCode(0), "");
  }
}

TEST(Sorter, NothingIsNothing) {
  std::vector<SortEntry> none;
  for (const Sorter sorter : {Sorter::kVector, Sorter::kRadix, Sorter::kComparison}) {
    EXPECT_EQ(SortEntries(none, sorter), 0u);
  }
}

TEST(Sorter, DecimalKeysThatShareTheirFirstEightBytes) {
  base::Random random(2);
  RandomVersions versions;
  for (int i = 0; i < 20'000; ++i) {
    std::string digits = std::to_string(random.Below(50'000));
    versions.Add(std::string(16 - digits.size(), '0') + digits);
  }
  ExpectSortedLikeStdSort(versions);
}

TEST(Sorter, OneKeyOfManyThatSharesLess) {
  base::Random random(2);
  for (const size_t place : {0, 1, 2'000, 4'999}) {
    for (const std::string& odd :
         {std::string("commoner"), std::string("common"), std::string("x")}) {
      RandomVersions versions;
      for (size_t i = 0; i < 5'000; ++i) {
        versions.Add(i == place ? odd : "common to all but one " + RandomBytes(&random, 10));
      }
      ExpectSortedLikeStdSort(versions);
    }
  }
}

TEST(Sorter, KeysThatArePrefixesOfOthersWithZerosBehind) {
  base::Random random(3);
  for (const size_t common : {0, 3, 8, 13, 100}) {
    RandomVersions versions;
    for (int i = 0; i < 3'000; ++i) {
      std::string key(common, 'c');
      key.append(random.Below(40), '\0');
      if (random.OneIn(4)) key.push_back('\1');
      if (random.OneIn(4)) key.append(random.Below(20), '\0');
      versions.Add(key);
    }
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(Sorter, ManyVersionsOfOneKeyDescendInSequence) {
  base::Random random(4);
  for (const size_t key_size : {0, 5, 8, 16, 2'000}) {
    RandomVersions versions;
    std::vector<base::SequenceNumber> sequences;
    for (base::SequenceNumber sequence = 1; sequence <= 5'000; ++sequence) {
      sequences.push_back(sequence);
    }
    std::shuffle(sequences.begin(), sequences.end(), random);
    for (const base::SequenceNumber sequence : sequences) {
      versions.Add(std::string(key_size, 'k'), sequence);
    }
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(Sorter, CommonPrefixOfTwoThousandBytes) {
  base::Random random(5);
  RandomVersions versions;
  const std::string common = RandomBytes(&random, 2'000);
  for (int i = 0; i < 4'000; ++i) versions.Add(common + RandomBytes(&random, random.Below(30)));
  versions.Add("another");  // so that the long prefix is a tie and not what all share
  ExpectSortedLikeStdSort(versions);
}

TEST(Sorter, EveryKeyOneByteLongerThanTheOneBefore) {
  for (const char byte : {'\0', 'x'}) {
    RandomVersions versions;
    for (size_t i = 0; i < 4'000; ++i) versions.Add(std::string((i * 7) % 4'000, byte));
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(Sorter, EveryKeyBranchesEightBytesLater) {
  RandomVersions versions;
  for (size_t i = 0; i < 2'000; ++i) {
    versions.Add(std::string(8 * ((i * 7) % 2'000), 'x') + "branch" + std::to_string(i));
  }
  ExpectSortedLikeStdSort(versions);
}

TEST(Sorter, SortedAndReversedKeys) {
  for (const bool is_reversed : {false, true}) {
    RandomVersions versions;
    for (int i = 0; i < 5'000; ++i) {
      const std::string digits = std::to_string(100'000 + (is_reversed ? 5'000 - i : i));
      versions.Add("stem of some length" + digits);
    }
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(Sorter, EmptyKeysAmongShortOnesOfZeros) {
  base::Random random(7);
  RandomVersions versions;
  for (int i = 0; i < 2'000; ++i) {
    versions.Add(std::string(random.Below(4), '\0') + std::string(random.Below(2), '\1'));
  }
  ExpectSortedLikeStdSort(versions);
}

TEST(Sorter, ZeroBytesAtBothEnds) {
  base::Random random(8);
  for (const size_t middle : {0, 6, 16}) {
    RandomVersions versions;
    for (int i = 0; i < 3'000; ++i) {
      std::string key(random.Below(20), '\0');
      key += RandomBytes(&random, random.Below(middle + 1));
      key.append(random.Below(20), '\0');
      versions.Add(key);
    }
    ExpectSortedLikeStdSort(versions);
  }
}

// The greatest prefix is what a vectorised sort fills up with.
TEST(Sorter, ManyKeysOfTheGreatestBytes) {
  base::Random random(11);
  for (size_t size = 30; size < 400; size += 7) {
    for (const uint32_t one_in : {1, 2, 10}) {
      RandomVersions versions;
      for (size_t i = 0; i < size; ++i) {
        versions.Add(random.OneIn(one_in) ? std::string(random.Below(20), '\xFF')
                                          : RandomBytes(&random, 12));
      }
      ExpectSortedLikeStdSort(versions);
    }
  }
}

// Each byte of the prefix differs alone, so that the radix sort skips all the others.
TEST(Sorter, KeysThatDifferInOneByte) {
  base::Random random(9);
  for (size_t byte = 0; byte < 20; ++byte) {
    RandomVersions versions;
    for (int i = 0; i < 1'000; ++i) {
      std::string key(20, 'k');
      key[byte] = static_cast<char>(random.Next());
      versions.Add(key);
    }
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(Sorter, RandomLengths) {
  base::Random random(10);
  for (const size_t length_max : {3, 9, 17, 300}) {
    RandomVersions versions;
    for (int i = 0; i < 5'000; ++i) versions.Add(RandomBytes(&random, random.Below(length_max)));
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(Sorter, KeysOfTheLargestSize) {
  base::Random random(6);
  RandomVersions versions;
  for (int i = 0; i < 60; ++i) {
    std::string key(65'535, 'm');
    key[65'535 - 1 - random.Below(3)] = static_cast<char>(random.Next());
    versions.Add(key);
  }
  ExpectSortedLikeStdSort(versions);
}

TEST(Sorter, RandomShapes) {
  for (uint64_t seed = 100; seed < 160; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    RandomVersions versions;
    std::vector<std::string> stems = {""};
    const size_t count = random.Between(1, 3'000);
    for (size_t i = 0; i < count; ++i) {
      std::string key = stems[random.Below(stems.size())];
      const size_t more = random.Below(12);
      for (size_t j = 0; j < more; ++j) key.push_back(static_cast<char>(random.Below(3) * 127));
      if (random.OneIn(8)) stems.push_back(key);
      versions.Add(key);
    }
    ExpectSortedLikeStdSort(versions);
  }
}

TEST(SortedRun, MergingInPiecesGivesWhatSortingAllGives) {
  for (uint64_t seed = 200; seed < 240; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    RandomVersions versions;
    const size_t count = random.Between(1, 2'000);
    std::string common(random.Below(30), 'c');
    for (size_t i = 0; i < count; ++i) {
      // Now and then fewer bytes are shared from here on.
      if (random.OneIn(count / 3 + 1)) common.resize(random.Below(common.size() + 1));
      versions.Add(common + RandomBytes(&random, random.Below(12)));
    }
    SortedRun merged;
    for (size_t begin = 0; begin < count;) {
      const size_t end = begin + random.Between(1, count - begin);
      merged = SortedRun::Merge(merged, SortedRun::Sort(versions.Entries(begin, end)));
      begin = end;
    }
    const std::vector<const Record*> expected = versions.Expected();
    ASSERT_EQ(merged.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(&merged[i], expected[i]) << "at " << i;
      const std::string_view key = expected[i]->key();
      const base::Tag tag = expected[i]->tag.load();
      ASSERT_EQ(merged.LowerBound(key, tag), i);
      ASSERT_EQ(merged.UpperBound(key, tag), i + 1);
    }
  }
}

TEST(SortedRun, SearchFindsPlacesBetweenAndAroundItsKeys) {
  RandomVersions versions;
  for (const char* key : {"stem/b", "stem/d", "stem/d", "stem/f"}) versions.Add(key);
  const SortedRun run = SortedRun::Sort(versions.Entries());
  EXPECT_EQ(run.LowerBound("", base::kNewestTag), 0u);
  EXPECT_EQ(run.LowerBound("ste", base::kNewestTag), 0u);
  EXPECT_EQ(run.LowerBound("stem/a", base::kNewestTag), 0u);
  EXPECT_EQ(run.LowerBound("stem/b", base::kNewestTag), 0u);
  EXPECT_EQ(run.UpperBound("stem/b", 0), 1u);
  EXPECT_EQ(run.LowerBound("stem/d", base::SeekTag(2)), 2u);
  EXPECT_EQ(run.LowerBound("stem/e", base::kNewestTag), 3u);
  EXPECT_EQ(run.LowerBound("stem/g", base::kNewestTag), 4u);
  EXPECT_EQ(run.LowerBound("sten", base::kNewestTag), 4u);
  EXPECT_EQ(run.LowerBound("t", base::kNewestTag), 4u);
}

}  // namespace
}  // namespace basalt::memtable
