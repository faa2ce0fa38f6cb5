#include "phash/level_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

/// The least hash whose product with `count` reaches part `part` of 2^64.
uint64_t LeastHash(uint64_t part, uint64_t count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(((Wide{part} << 64) + count - 1) / count);
}

void ExpectSound(const LevelShape& shape, base::Random* random) {
  SCOPED_TRACE(testing::Message() << shape.keys() << " keys, "
                                  << (shape.dense() ? "dense" : "shift"));
  constexpr uint64_t kGreatest = std::numeric_limits<uint64_t>::max();
  ASSERT_LE(shape.slice(), shape.keys());
  ASSERT_LE(shape.buckets(), std::numeric_limits<uint32_t>::max());
  ASSERT_EQ(shape.buckets(), shape.chunks() * shape.buckets_per_chunk());
  ASSERT_EQ(shape.buckets(), shape.parts() * shape.buckets_per_part());
  ASSERT_EQ(shape.parts(), shape.chunks() * shape.parts_per_chunk());
  ASSERT_EQ(shape.Bucket(kGreatest), shape.buckets() - 1);
  ASSERT_EQ(shape.SliceBegin(kGreatest) + shape.slice(), shape.keys());
  ASSERT_EQ(shape.FirstSliceBegin(0), 0u);
  ASSERT_EQ(shape.FirstSliceBegin(shape.chunks()), shape.slice_begins());
  ASSERT_LT(shape.SeamBuckets(), shape.buckets_per_chunk());
  for (uint64_t chunk = 0; chunk + 1 < shape.chunks(); ++chunk) {
    const uint64_t first = LeastHash(chunk + 1, shape.chunks());
    ASSERT_EQ(shape.Part(first), (chunk + 1) * shape.parts_per_chunk());
    ASSERT_EQ(shape.Part(first - 1) + 1, (chunk + 1) * shape.parts_per_chunk());
    ASSERT_EQ(shape.Bucket(first), (chunk + 1) * shape.buckets_per_chunk());
    ASSERT_EQ(shape.Bucket(first - 1) + 1, (chunk + 1) * shape.buckets_per_chunk());
    ASSERT_EQ(shape.FirstSliceBegin(chunk + 1), shape.SliceBegin(first));
    // What comes before the seam stays inside its chunk; the seam stays out of the next but one.
    const uint64_t seam = (chunk + 1) * shape.buckets_per_chunk() - shape.SeamBuckets();
    const uint64_t last_before_seam = LeastHash(seam, shape.buckets()) - 1;
    ASSERT_LT(shape.Bucket(last_before_seam), seam);
    ASSERT_LE(shape.SliceBegin(last_before_seam) + shape.slice(), shape.FirstSliceBegin(chunk + 1));
    ASSERT_LE(shape.SliceBegin(first - 1) + shape.slice(), shape.FirstSliceBegin(chunk + 2));
  }
  for (int i = 0; i < 20; ++i) {
    const uint64_t hash = random->Next();
    ASSERT_EQ(shape.Part(hash), shape.Bucket(hash) / shape.buckets_per_part());
    const uint64_t chunk = shape.Part(hash) / shape.parts_per_chunk();
    ASSERT_GE(shape.SliceBegin(hash), shape.FirstSliceBegin(chunk));
    ASSERT_LE(shape.SliceBegin(hash), shape.FirstSliceBegin(chunk + 1));
  }
}

TEST(LevelShape, SlicesBeforeTheSeamStayInsideTheirChunkForEveryNumberOfKeysUpTo5000) {
  base::Random random(1);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (uint64_t keys = kTableKeys + 1; keys <= 5'000; ++keys) {
      ExpectSound(LevelShape(keys, seeds), &random);
    }
  }
}

TEST(LevelShape, SlicesBeforeTheSeamStayInsideTheirChunkForManyKeys) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    // Wherever the number of chunks or of their parts may change.
    for (uint64_t some = 1; some <= 2'000; ++some) {
      for (const uint64_t times : {60'000, 65'536, 250'000}) {
        ExpectSound(LevelShape(times * some - 1, seeds), &random);
        ExpectSound(LevelShape(times * some, seeds), &random);
      }
    }
    for (int i = 0; i < 1'000; ++i) {
      const double log = random.NextDouble() * std::log(1e9 / 5e3);
      ExpectSound(LevelShape(static_cast<uint64_t>(5e3 * std::exp(log)), seeds), &random);
    }
    ExpectSound(LevelShape(PerfectHashBuilder::kKeysMax, seeds), &random);
  }
}

}  // namespace
}  // namespace basalt::phash
