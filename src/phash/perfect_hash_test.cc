#include "basalt/perfect_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "phash/format.h"
#include "phash/function.h"
#include "phash/level.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

template <class Key>
PerfectHash BuildFrom(const std::vector<Key>& keys, const PerfectHashOptions& options = {}) {
  const PerfectHashBuilder builder(options);
  if constexpr (std::is_same_v<Key, uint64_t>) {
    return builder.BuildFromHashes(keys).value();
  } else {
    return builder.Build(keys).value();
  }
}

void ExpectEveryNumberOfKeys(PerfectHashSeeds seeds) {
  const std::vector<uint64_t> all = RandomHashes(5000, 1);
  for (size_t count = 0; count <= all.size(); count += count < 300 ? 1 : kSlowdown * 2 - 1) {
    const std::vector<uint64_t> hashes(all.begin(), all.begin() + static_cast<ptrdiff_t>(count));
    const PerfectHash function = BuildFrom(hashes, {.seeds = seeds, .threads = 1});
    ASSERT_EQ(function.seeds(), seeds);
    ASSERT_TRUE(IsBijective(function, hashes)) << count << " keys";
  }
}

TEST(PerfectHash, EveryNumberOfKeysUpTo5000IsBijectiveUnderShiftSeeds) {
  ExpectEveryNumberOfKeys(PerfectHashSeeds::kShift);
}

TEST(PerfectHash, EveryNumberOfKeysUpTo5000IsBijectiveUnderDenseSeeds) {
  ExpectEveryNumberOfKeys(PerfectHashSeeds::kDense);
}

TEST(PerfectHash, RandomNumbersOfKeysUpToTenMillionAreBijective) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    // Every order of magnitude alike.
    for (int i = 0; i < 4; ++i) {
      const double log_max = std::log(2e6 / static_cast<double>(kSlowdown));
      const double log = std::log(5e3) + random.NextDouble() * (log_max - std::log(5e3));
      const std::vector<uint64_t> hashes =
          RandomHashes(static_cast<uint64_t>(std::exp(log)), random.Next());
      ASSERT_TRUE(IsBijective(BuildFrom(hashes, {.seeds = seeds}), hashes))
          << hashes.size() << " keys";
    }
    const std::vector<uint64_t> hashes = RandomHashes(10'000'000 / kSlowdown, random.Next());
    ASSERT_TRUE(IsBijective(BuildFrom(hashes, {.seeds = seeds}), hashes));
  }
}

TEST(PerfectHash, NumbersOfKeysWhereTheShapeChangesAreBijective) {
  const std::vector<uint64_t> all = RandomHashes(750'001, 3);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint64_t at : {8'192, 65'536, 120'000, 180'000, 500'000, 750'000}) {
      for (const uint64_t count : {at - 1, at, at + 1}) {
        const std::vector<uint64_t> hashes(all.begin(),
                                           all.begin() + static_cast<ptrdiff_t>(count));
        ASSERT_TRUE(IsBijective(BuildFrom(hashes, {.seeds = seeds}), hashes)) << count << " keys";
      }
    }
  }
}

TEST(PerfectHash, StructuredNumbersAsHashesAreBijective) {
  struct Pattern {
    const char* name;
    uint64_t (*number)(uint64_t i);
  };
  const Pattern patterns[] = {
      {"counting", [](uint64_t i) { return i; }},
      {"counting down from the greatest", [](uint64_t i) { return ~i; }},
      {"multiples of 100", [](uint64_t i) { return 100 * i; }},
      {"multiples of 2^32", [](uint64_t i) { return i << 32; }},
      {"high bits only", [](uint64_t i) { return i << 44; }},
      {"reversed bits",
       [](uint64_t i) {
         uint64_t reversed = 0;
         for (int bit = 0; bit < 64; ++bit) reversed |= (i >> bit & 1) << (63 - bit);
         return reversed;
       }},
      {"Gray code", [](uint64_t i) { return i ^ (i >> 1); }},
      {"squares", [](uint64_t i) { return i * i; }},
      {"multiples of the golden ratio", [](uint64_t i) { return i * 0x9E37'79B9'7F4A'7C15; }},
      {"both halves alike", [](uint64_t i) { return i << 32 | i; }},
      {"powers of two and their neighbours",
       [](uint64_t i) {
         // 2^b + offset for far more offsets than b: distinct from b = 32 on.
         return (uint64_t{1} << (32 + i % 32)) + i / 32;
       }},
  };
  for (const Pattern& pattern : patterns) {
    for (const PerfectHashSeeds seeds : kBothKinds) {
      for (const uint64_t count : {uint64_t{40}, uint64_t{5'000}, 500'000 / kSlowdown}) {
        std::vector<uint64_t> hashes(count);
        for (uint64_t i = 0; i < count; ++i) hashes[i] = pattern.number(i);
        ASSERT_TRUE(IsBijective(BuildFrom(hashes, {.seeds = seeds}), hashes))
            << pattern.name << ", " << count << " keys";
      }
    }
  }
}

/// The number that Mix makes `mixed` of.
uint64_t Unmix(uint64_t mixed) {
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0xD6E8'FEB8'6659'FD93 * inverse;
  for (int i = 0; i < 2; ++i) {
    mixed *= inverse;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

TEST(PerfectHash, HashesChosenToMeetInOneBucketOrSliceAreBijective) {
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint64_t count : {40, 1'000, 20'000, 600'000}) {
      // All in the first bucket, all in the last, and all with one place in their slices.
      for (const int kind : {0, 1, 2}) {
        std::vector<uint64_t> hashes(count);
        for (uint64_t i = 0; i < count; ++i) {
          hashes[i] = Unmix(kind == 0 ? i : kind == 1 ? ~i : i << 40);
          ASSERT_EQ(Unmix(Mix(hashes[i])), hashes[i]);
        }
        ASSERT_TRUE(IsBijective(BuildFrom(hashes, {.seeds = seeds}), hashes))
            << count << " keys, " << kind;
      }
    }
  }
}

TEST(PerfectHash, KeysWithLongSharedPrefixesAreBijective) {
  for (const size_t shared : {1, 16, 128, 241, 1000}) {
    const std::vector<std::string> keys = NumberedKeys(20'000, std::string(shared, 'p'));
    for (const PerfectHashSeeds seeds : kBothKinds) {
      const std::vector<std::string_view> views = Views(keys);
      ASSERT_TRUE(IsBijective(BuildFrom(views, {.seeds = seeds}), views)) << shared << " bytes";
    }
  }
}

TEST(PerfectHash, KeysThatArePrefixesOfOthersFromTheEmptyOneOnAreBijective) {
  const std::string longest(2'000, '\0');
  std::vector<std::string_view> keys;
  for (size_t size = 0; size <= longest.size(); ++size) keys.emplace_back(longest.data(), size);
  EXPECT_TRUE(IsBijective(BuildFrom(keys), keys));
  const std::vector<std::string_view> only_the_empty = {""};
  EXPECT_TRUE(IsBijective(BuildFrom(only_the_empty), only_the_empty));
}

TEST(PerfectHash, KeysOfASourceAreBijective) {
  for (const uint64_t count : {0, 1, 32, 33, 5'000, 200'000}) {
    const std::vector<std::string> keys = NumberedKeys(count);
    const VectorSource source(Views(keys), 777);
    const auto function = PerfectHashBuilder().Build(source);
    ASSERT_TRUE(function) << function.error().ToString();
    ASSERT_TRUE(IsBijective(*function, Views(keys))) << count << " keys";
  }
}

TEST(PerfectHash, AKeyAndItsHashHaveTheSameNumber) {
  const std::vector<std::string> keys = NumberedKeys(1'000);
  const PerfectHash function = BuildFrom(Views(keys));
  EXPECT_EQ(function.hash_seed(), 0u);
  for (const std::string& key : keys) {
    ASSERT_EQ(function.Index(key), function.Index(function.HashKey(key)));
  }
}

TEST(PerfectHash, ForeignKeysGetNumbersBelowTheSize) {
  base::Random random(4);
  for (const uint64_t count : {0, 1, 2, 31, 33, 500, 9'000, 150'000}) {
    const PerfectHash function = BuildFrom(RandomHashes(count, 5));
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t index = function.Index(random.Next());
      ASSERT_TRUE(index < count || (count == 0 && index == 0)) << index << " of " << count;
    }
    EXPECT_LT(function.Index("foreign"), std::max<uint64_t>(count, 1));
  }
}

TEST(PerfectHash, IndexManyGivesWhatIndexGives) {
  for (const uint64_t keys : {0, 20, 1'000, 140'000}) {
    const std::vector<std::string> some = NumberedKeys(keys);
    const PerfectHash function = BuildFrom(Views(some));
    // Half of what is asked for are keys.
    const std::vector<std::string> asked = NumberedKeys(10'000, keys == 1'000 ? "other " : "key ");
    const std::vector<std::string_view> views = Views(asked);
    std::vector<uint64_t> hashes;
    for (const std::string_view key : views) hashes.push_back(function.HashKey(key));
    for (size_t count = 0; count <= 10'000; count = count < 100 ? count + 1 : count * 100) {
      constexpr uint64_t kUntouched = ~uint64_t{0};
      std::vector<uint64_t> by_hash(count + 1, kUntouched);
      std::vector<uint64_t> by_key(count + 1, kUntouched);
      function.IndexMany(std::span(hashes).first(count), by_hash);
      function.IndexMany(std::span(views).first(count), by_key);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(by_hash[i], function.Index(hashes[i])) << i << " of " << count;
        ASSERT_EQ(by_key[i], function.Index(views[i])) << i << " of " << count;
      }
      ASSERT_EQ(by_hash[count], kUntouched);
      ASSERT_EQ(by_key[count], kUntouched);
    }
  }
}

TEST(PerfectHash, AMillionKeysTakeAsFewBitsAsPromised) {
  const std::vector<uint64_t> hashes = RandomHashes(1'000'000, 6);
  EXPECT_LE(BuildFrom(hashes, {.seeds = PerfectHashSeeds::kShift}).bits_per_key(), 2.2);
  EXPECT_LE(BuildFrom(hashes, {.seeds = PerfectHashSeeds::kDense}).bits_per_key(), 2.0);
}

TEST(PerfectHash, LevelsAddUp) {
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint64_t count : {0, 1, 32, 33, 8'192, 300'000}) {
      const PerfectHash function = BuildFrom(RandomHashes(count, 7), {.seeds = seeds});
      uint64_t bytes = sizeof(Header);
      uint64_t keys = count;
      for (const PerfectHash::LevelFigures& level : function.levels()) {
        EXPECT_LE(level.keys, keys);
        EXPECT_EQ(level.buckets == 0, level.slice == 0);
        keys = level.keys;
        bytes += level.bytes;
      }
      EXPECT_EQ(bytes, function.bytes().size()) << count;
      EXPECT_EQ(function.levels().empty(), count == 0);
      if (count > 0) {
        EXPECT_EQ(function.levels().front().keys, count);
        EXPECT_DOUBLE_EQ(function.bits_per_key(),
                         8 * static_cast<double>(bytes) / static_cast<double>(count));
      }
    }
  }
}

TEST(PerfectHash, NoKeysHaveNoBitsAndTheNumberZero) {
  const PerfectHash function = BuildFrom(std::vector<uint64_t>());
  EXPECT_EQ(function.size(), 0u);
  EXPECT_EQ(function.bits_per_key(), 0.0);
  EXPECT_EQ(function.Index("anything"), 0u);
}

TEST(PerfectHash, ApproximateIndexIsAtMostHalfASliceAwayFromWhatTheFirstLevelPlaces) {
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint64_t count : {1, 32, 33, 100, 2'000, 10'000, 100'000, 1'000'000}) {
      const std::vector<uint64_t> hashes = RandomHashes(count, 11);
      const PerfectHash built = BuildFrom(hashes, {.seeds = seeds});
      const phash::Function function = phash::Function::Open(built.bytes()).value();
      const auto levels = function.levels();
      const uint64_t half = levels[0].slice / 2;
      uint64_t far = 0;
      for (const uint64_t hash : hashes) {
        const uint64_t near = function.ApproximateIndex(hash);
        ASSERT_LT(near, count);
        const uint64_t index = function.Index(hash);
        far += std::max(near, index) - std::min(near, index) > half;
      }
      const uint64_t not_placed = levels.size() == 1 ? 0 : levels[1].keys;
      // The fewest keys lie in a table, which has no slices.
      EXPECT_LE(far, half == 0 ? count : not_placed) << count;
      if (count == 1'000'000) {
        EXPECT_LE(far, count * 3 / 100);
      }
    }
  }
}

TEST(PerfectHash, SeedsAreShiftUnlessAskedForOtherwise) {
  const std::vector<uint64_t> hashes = RandomHashes(100'000, 8);
  const PerfectHash unasked = BuildFrom(hashes);
  const PerfectHash asked = BuildFrom(hashes, {.seeds = PerfectHashSeeds::kShift});
  EXPECT_EQ(unasked.seeds(), PerfectHashSeeds::kShift);
  EXPECT_EQ(unasked.bytes(), asked.bytes());
}

TEST(PerfectHash, CopiesShareMemoryAndOutliveTheirOrigin) {
  const std::vector<uint64_t> hashes = RandomHashes(100'000, 9);
  auto origin = std::make_unique<PerfectHash>(BuildFrom(hashes));
  PerfectHash copy = *origin;
  EXPECT_EQ(copy.bytes().data(), origin->bytes().data());
  const PerfectHash moved = std::move(*origin);
  origin.reset();
  EXPECT_TRUE(IsBijective(copy, hashes));
  copy = BuildFrom(RandomHashes(50, 10));
  EXPECT_TRUE(IsBijective(moved, hashes));
}

}  // namespace
}  // namespace basalt::phash
