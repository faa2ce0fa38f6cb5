#include "phash/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "phash/level.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

void ExpectPartition(const LevelShape& shape, Partition::Chunks chunks,
                     const std::vector<uint64_t>& hashes, Partition::Input input,
                     uint32_t threads) {
  SCOPED_TRACE(testing::Message() << hashes.size() << " hashes, chunks " << chunks.begin << " to "
                                  << chunks.end << ", " << threads << " threads");
  std::vector<uint64_t> expected;
  for (const uint64_t hash : hashes) {
    const uint64_t mixed = input == Partition::Input::kMixed ? hash : Mix(hash);
    const uint64_t chunk = shape.Part(mixed) / shape.parts_per_chunk();
    if (chunk >= chunks.begin && chunk < chunks.end) expected.push_back(mixed);
  }
  const Partition partition(shape, chunks, hashes, input, threads);
  EXPECT_EQ(partition.chunks().begin, chunks.begin);
  EXPECT_EQ(partition.chunks().end, chunks.end);
  ASSERT_EQ(partition.size(), expected.size());
  std::vector<uint64_t> found;
  const uint64_t parts = shape.parts_per_chunk();
  for (uint64_t part = chunks.begin * parts; part < chunks.end * parts; ++part) {
    for (const uint64_t mixed : partition[part]) {
      ASSERT_EQ(shape.Part(mixed), part);
      found.push_back(mixed);
    }
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  ASSERT_EQ(found, expected);
}

TEST(Partition, EveryHashIsInItsPartOnce) {
  for (const uint64_t keys :
       {uint64_t{33}, uint64_t{5'000}, uint64_t{150'000}, uint64_t{520'000}}) {
    std::vector<uint64_t> hashes = RandomHashes(keys, keys);
    hashes[1] = hashes[0];  // Duplicates stay.
    const LevelShape shape(keys, PerfectHashSeeds::kShift);
    for (uint32_t threads = 1; threads <= 4; ++threads) {
      for (const auto input : {Partition::Input::kMixed, Partition::Input::kToBeMixed}) {
        ExpectPartition(shape, {0, shape.chunks()}, hashes, input, threads);
      }
    }
  }
}

TEST(Partition, HashesOfOtherChunksAreLeftOut) {
  // The shape of more keys has more chunks.
  const LevelShape shape(1'800'000, PerfectHashSeeds::kDense);
  const std::vector<uint64_t> hashes = RandomHashes(300'000, 1);
  const uint64_t end = shape.chunks();
  ASSERT_GE(end, 5u);
  const Partition::Chunks some[] = {{0, 0},       {0, 1}, {end - 1, end},
                                    {2, end - 1}, {3, 4}, {end, end}};
  for (const Partition::Chunks chunks : some) {
    for (const uint32_t threads : {1, 3}) {
      ExpectPartition(shape, chunks, hashes, Partition::Input::kToBeMixed, threads);
    }
  }
}

TEST(Partition, AllHashesMayBelongToOnePart) {
  // As a source of keys can have it that is out for trouble.
  const LevelShape shape(600'000, PerfectHashSeeds::kShift);
  ASSERT_EQ(shape.chunks(), 2u);
  std::vector<uint64_t> hashes = RandomHashes(300'000, 2);
  for (uint64_t& hash : hashes) hash >>= 8;
  ExpectPartition(shape, {0, shape.chunks()}, hashes, Partition::Input::kMixed, 2);
  ExpectPartition(shape, {1, shape.chunks()}, hashes, Partition::Input::kMixed, 2);
}

TEST(Partition, NothingIsParted) {
  const LevelShape shape(600'000, PerfectHashSeeds::kShift);
  ExpectPartition(shape, {0, shape.chunks()}, {}, Partition::Input::kMixed, 4);
}

}  // namespace
}  // namespace basalt::phash
