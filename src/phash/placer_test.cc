#include "phash/placer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "base/random.h"
#include "base/test_dispatch.h"
#include "phash/dense_search.h"
#include "phash/level.h"
#include "phash/taken_slots.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

/// The seed from 1 to 255 that puts keys on free slots of their own, with the least sum of slots;
/// of several the least. Tries them all. `slot(i, seed)` is key i's slot.
template <class Slot, class IsTaken>
uint32_t PlainBest(size_t keys, const Slot& slot, const IsTaken& is_taken) {
  uint32_t best = 0;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (uint32_t seed = 1; seed < 256; ++seed) {
    std::set<uint64_t> slots;
    uint64_t sum = 0;
    bool fits = true;
    for (size_t i = 0; i < keys && fits; ++i) {
      const uint64_t at = slot(i, seed);
      sum += at;
      fits = !is_taken(at) && slots.insert(at).second;
    }
    if (fits && sum < least) {
      least = sum;
      best = seed;
    }
  }
  return best;
}

TEST(DenseSearch, EveryInstructionSetFindsTheSeedThatAPlainSearchFinds) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const std::vector<int64_t> targets = base::DispatchTargets();
  ASSERT_FALSE(targets.empty());
  base::Random random(seed);
  uint64_t found = 0;
  uint64_t not_found = 0;
  for (uint64_t round = 0; round < 6'000 / kSlowdown; ++round) {
    const auto slice_log2 = static_cast<uint32_t>(random.Between(1, 10));
    const auto slots = static_cast<uint32_t>(random.Between(1, 3'000));
    // 128 bytes and a word behind the begin of the last slice.
    std::vector<uint64_t> words(slots / 64 + 18);
    const double full = random.OneIn(4) ? 0.98 : random.NextDouble();
    for (uint32_t bit = 0; bit < 64 * words.size(); ++bit) {
      if (random.NextDouble() < full) words[bit / 64] |= uint64_t{1} << (bit % 64);
    }
    std::vector<DenseKey> keys(random.Between(1, 16));
    for (DenseKey& key : keys) {
      key = {static_cast<uint32_t>(random.Below(slots)), static_cast<uint32_t>(random.Next()),
             static_cast<uint32_t>(random.Next()) | 1};
    }
    if (random.OneIn(10)) keys.back() = keys.front();
    const uint32_t expected = PlainBest(
        keys.size(), [&](size_t i, uint32_t s) { return keys[i].Slot(s, slice_log2); },
        [&](uint64_t slot) { return (words[slot / 64] >> (slot % 64) & 1) != 0; });
    ++(expected == 0 ? not_found : found);
    for (const int64_t target : targets) {
      const base::ForcedTarget forced(target);
      ASSERT_EQ(FindDenseSeed(keys, words.data(), slice_log2), expected)
          << hwy::TargetName(target) << ", " << keys.size() << " keys, slice 2^" << slice_log2;
    }
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(not_found, 100u);
}

TEST(Placer, ShiftSeedsAreThoseThatAPlainSearchFinds) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  const LevelShape shape(9'000, PerfectHashSeeds::kShift);
  ASSERT_FALSE(shape.dense());
  const Level level = {.seeds = nullptr,
                       .buckets = shape.buckets(),
                       .slice_begins = shape.slice_begins(),
                       .keys = shape.keys(),
                       .drop = 32 - shape.slice_log2(),
                       .dense = false};
  uint64_t found = 0;
  uint64_t not_found = 0;
  for (uint64_t round = 0; round < 4'000 / kSlowdown; ++round) {
    TakenSlots slots(shape);
    uint64_t* const words = slots.Words(0);
    const double full = random.OneIn(3) ? 0.99 : random.NextDouble();
    std::vector<bool> taken(shape.keys());
    for (uint64_t slot = 0; slot < shape.keys(); ++slot) {
      if (random.NextDouble() >= full) continue;
      taken[slot] = true;
      words[slot / 256 * 4 + slot % 4] |= uint64_t{1} << (slot / 4 % 64);
    }
    // Of one bucket, which may be the first or the last; some keys in the same row of slots.
    const uint64_t bucket = random.OneIn(5)   ? 0
                            : random.OneIn(4) ? shape.buckets() - 1
                                              : random.Below(shape.buckets());
    __extension__ using Wide = unsigned __int128;
    const auto least =
        static_cast<uint64_t>(((Wide{bucket} << 64) + shape.buckets() - 1) / shape.buckets());
    std::vector<uint64_t> hashes(random.Between(1, Placer::kBucketKeysMax));
    for (uint64_t& hash : hashes) {
      hash = least + random.Below(std::numeric_limits<uint64_t>::max() / shape.buckets());
      if (random.OneIn(2)) hash &= ~uint64_t{3};
      ASSERT_EQ(shape.Bucket(hash), bucket);
    }
    const uint32_t expected = PlainBest(
        hashes.size(), [&](size_t i, uint32_t s) { return level.Slot(hashes[i], s); },
        [&](uint64_t slot) { return taken[slot]; });
    ++(expected == 0 ? not_found : found);

    const std::vector<uint32_t> begins = {0, static_cast<uint32_t>(hashes.size())};
    uint8_t chosen = 77;
    std::vector<uint64_t> bumped;
    std::vector<uint64_t> repeated;
    Placer(shape).Place({.hashes = hashes, .begins = begins},
                        {.origin = slots.Origin(0), .words = words}, &chosen, &bumped, &repeated);
    ASSERT_EQ(chosen, expected) << hashes.size() << " keys of bucket " << bucket;
    ASSERT_EQ(bumped.size(), expected == 0 ? hashes.size() : 0);
    if (expected != 0) {
      for (const uint64_t hash : hashes) taken[level.Slot(hash, expected)] = true;
    }
    std::vector<uint64_t> holes;
    slots.AppendHoles(0, &holes);
    std::vector<uint64_t> expected_holes;
    for (uint64_t slot = 0; slot < shape.keys(); ++slot) {
      if (!taken[slot]) expected_holes.push_back(slot);
    }
    ASSERT_EQ(holes, expected_holes);
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(not_found, 100u);
}

TEST(Placer, BucketsOfTooManyKeysAndEqualOnesAreBumped) {
  for (const PerfectHashSeeds seeds : kBothKinds) {
    const LevelShape shape(9'000, seeds);
    TakenSlots slots(shape);
    // Hashes of bucket 0 are small numbers; bucket 1 has two equal ones, bucket 2 none.
    std::vector<uint64_t> hashes;
    for (uint64_t i = 0; i <= Placer::kBucketKeysMax; ++i) hashes.push_back(i * 0x0123'4567'89AB);
    const uint64_t second = std::numeric_limits<uint64_t>::max() / shape.buckets() + 5;
    ASSERT_EQ(shape.Bucket(second), 1u);
    hashes.insert(hashes.end(), {second, second + 77, second});
    const std::vector<uint32_t> begins = {0, 17, 20, 20};
    std::vector<uint8_t> chosen(3, 77);
    std::vector<uint64_t> bumped;
    std::vector<uint64_t> repeated;
    Placer(shape).Place({.hashes = hashes, .begins = begins},
                        {.origin = 0, .words = slots.Words(0)}, chosen.data(), &bumped, &repeated);
    EXPECT_EQ(chosen, std::vector<uint8_t>(3, 0));
    std::sort(bumped.begin(), bumped.end());
    std::sort(hashes.begin(), hashes.end());
    EXPECT_EQ(bumped, hashes);
    EXPECT_EQ(repeated, std::vector<uint64_t>{second});
  }
}

TEST(Placer, HashesAreGroupedByBucket) {
  const LevelShape shape(200'000, PerfectHashSeeds::kShift);
  ASSERT_EQ(shape.parts(), 3u);
  std::vector<uint64_t> hashes;
  for (const uint64_t hash : RandomHashes(200'000, 1)) {
    if (shape.Part(hash) == 1) hashes.push_back(hash);
  }
  const uint64_t count = shape.buckets_per_part();
  constexpr uint32_t kFirstPlace = 1'000;
  std::vector<uint64_t> grouped(hashes.size());
  std::vector<uint32_t> begins(count);
  GroupByBucket(shape, count, count, hashes, grouped.data(), kFirstPlace, begins.data());
  begins.push_back(kFirstPlace + static_cast<uint32_t>(hashes.size()));
  ASSERT_EQ(begins.front(), kFirstPlace);
  for (uint64_t i = 0; i < count; ++i) {
    for (uint32_t at = begins[i]; at < begins[i + 1]; ++at) {
      ASSERT_EQ(shape.Bucket(grouped[at - kFirstPlace]), count + i);
    }
  }
  std::sort(hashes.begin(), hashes.end());
  std::sort(grouped.begin(), grouped.end());
  EXPECT_EQ(grouped, hashes);
}

}  // namespace
}  // namespace basalt::phash
