#include "base/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"

namespace basalt::base {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};

TEST(ChunkPool, BlocksAreAlignedToTheirSizeAndDisjoint) {
  ChunkPool pool;
  Random random(1);
  std::map<char*, size_t> taken;
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 60 || random.Next() % 2 == 0) {
      const size_t bytes = ChunkPool::kBlockBytesMin << random.Next() % 10;
      char* const block = pool.Take(bytes);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % bytes, 0u);
      const auto next = taken.lower_bound(block);
      if (next != taken.end()) {
        ASSERT_LE(block + bytes, next->first);
      }
      if (next != taken.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, block);
      }
      taken.emplace(block, bytes);
    } else {
      auto victim = taken.begin();
      std::advance(victim, static_cast<ptrdiff_t>(random.Next() % taken.size()));
      pool.Give(victim->first, victim->second);
      taken.erase(victim);
    }
  }
  for (const auto& [block, bytes] : taken) pool.Give(block, bytes);
  EXPECT_EQ(pool.kept_bytes(), pool.slab_bytes()) << "given halves were not joined to whole slabs";
}

TEST(ChunkPool, GivenMemoryIsTakenAgain) {
  ChunkPool pool;
  char* const first = pool.Take(64 << 10);
  pool.Give(first, 64 << 10);
  EXPECT_EQ(pool.Take(64 << 10), first);
  pool.Give(first, 64 << 10);
  EXPECT_EQ(pool.slab_bytes(), ChunkPool::kSlabBytes);
}

TEST(ChunkPool, KeepsNoMoreFreeSlabsThanAllowed) {
  ChunkPool pool(2 * ChunkPool::kSlabBytes);
  std::vector<char*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.Take(ChunkPool::kSlabBytes));
  EXPECT_EQ(pool.slab_bytes(), 5 * ChunkPool::kSlabBytes);
  for (char* const block : blocks) pool.Give(block, ChunkPool::kSlabBytes);
  EXPECT_EQ(pool.kept_bytes(), 2 * ChunkPool::kSlabBytes);
  EXPECT_EQ(pool.slab_bytes(), 2 * ChunkPool::kSlabBytes);
}

TEST(ChunkPool, KeepsMoreWhileThatIsWanted) {
  ChunkPool pool(ChunkPool::kSlabBytes);
  pool.KeepMore(2 * ChunkPool::kSlabBytes);
  std::vector<char*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.Take(ChunkPool::kSlabBytes));
  for (char* const block : blocks) pool.Give(block, ChunkPool::kSlabBytes);
  EXPECT_EQ(pool.kept_bytes(), 3 * ChunkPool::kSlabBytes);
  pool.KeepMore(-2 * static_cast<int64_t>(ChunkPool::kSlabBytes));
  EXPECT_EQ(pool.kept_bytes(), ChunkPool::kSlabBytes);
  EXPECT_EQ(pool.slab_bytes(), ChunkPool::kSlabBytes);
}

TEST(ChunkPool, LargeBlocksAreTakenFromWhatIsKept) {
  constexpr size_t kSlabBytes = ChunkPool::kSlabBytes;
  ChunkPool pool;
  char* const large = pool.Take(4 * kSlabBytes);
  ASSERT_NE(large, nullptr);
  std::memset(large, 1, 4 * kSlabBytes);
  pool.Give(large, 4 * kSlabBytes);
  EXPECT_EQ(pool.kept_bytes(), 4 * kSlabBytes);

  // A slab, a part and the rest come from it, wherever they lie in it.
  char* const slab = pool.Take(kSlabBytes);
  char* const part = pool.Take(2 * kSlabBytes);
  char* const small = pool.Take(ChunkPool::kBlockBytesMin);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  EXPECT_EQ(pool.slab_bytes(), 2 * kSlabBytes) << "taken slabs; larger blocks are their owner's";
  for (const char* const block : {slab, part, small}) {
    EXPECT_GE(block, large);
    EXPECT_LT(block, large + 4 * kSlabBytes);
  }

  // What comes back is joined in any order.
  pool.Give(part, 2 * kSlabBytes);
  pool.Give(small, ChunkPool::kBlockBytesMin);
  pool.Give(slab, kSlabBytes);
  EXPECT_EQ(pool.Take(4 * kSlabBytes), large);
  pool.Give(large, 4 * kSlabBytes);
}

TEST(ChunkPool, TheSmallestRangeThatIsLargeEnoughServes) {
  constexpr size_t kSlabBytes = ChunkPool::kSlabBytes;
  ChunkPool pool;
  char* const large = pool.Take(8 * kSlabBytes);
  pool.Give(large, 8 * kSlabBytes);
  char* const last = pool.Take(2 * kSlabBytes);
  char* const between = pool.Take(kSlabBytes);
  pool.Give(last, 2 * kSlabBytes);  // alone: `between` is taken
  EXPECT_EQ(pool.Take(2 * kSlabBytes), last);
  char* const first = pool.Take(5 * kSlabBytes);
  EXPECT_EQ(first, large);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  pool.Give(first, 5 * kSlabBytes);
  pool.Give(between, kSlabBytes);
  pool.Give(last, 2 * kSlabBytes);
  EXPECT_EQ(pool.Take(8 * kSlabBytes), large);
  pool.Give(large, 8 * kSlabBytes);
}

TEST(ChunkPool, ZerosAreZerosAlsoInMemoryThatWasUsed) {
  ChunkPool pool;
  for (const size_t bytes : {ChunkPool::kBlockBytesMin, ChunkPool::kSlabBytes, size_t{8} << 20}) {
    for (int round = 0; round < 2; ++round) {
      char* const block = pool.TakeZeros(bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(std::all_of(block, block + bytes, [](char byte) { return byte == 0; }));
      std::memset(block, 1, bytes);
      pool.Give(block, bytes);
      EXPECT_NE(pool.kept_bytes(), 0u) << "the second round finds what the first one used";
    }
  }
}

TEST(ChunkPool, KeepsOfLargeBlocksNoMoreThanAllowed) {
  constexpr size_t kSlabBytes = ChunkPool::kSlabBytes;
  ChunkPool pool(4 * kSlabBytes);
  char* const three = pool.Take(3 * kSlabBytes);
  char* const two = pool.Take(2 * kSlabBytes);
  pool.Give(three, 3 * kSlabBytes);
  pool.Give(two, 2 * kSlabBytes);
  EXPECT_EQ(pool.kept_bytes(), 3 * kSlabBytes);
  pool.KeepMore(-static_cast<int64_t>(2 * kSlabBytes));
  EXPECT_EQ(pool.kept_bytes(), 2 * kSlabBytes) << "a range is unmapped in part";
  // Of another size than whole slabs: not kept.
  char* const odd = pool.Take(2 * kSlabBytes + ChunkPool::kBlockBytesMin);
  pool.Give(odd, 2 * kSlabBytes + ChunkPool::kBlockBytesMin);
  EXPECT_EQ(pool.kept_bytes(), 2 * kSlabBytes);
}

/// Takes blocks of a page that fill some slabs, and gives all but every n-th.
std::vector<char*> TakeAndLeaveEvery(ChunkPool* pool, size_t n, size_t slabs) {
  constexpr size_t kBytes = ChunkPool::kBlockBytesMin;
  std::vector<char*> taken;
  for (size_t i = 0; i < slabs * ChunkPool::kSlabBytes / kBytes; ++i) {
    taken.push_back(pool->Take(kBytes));
    std::memset(taken.back(), static_cast<int>(i % 100 + 1), kBytes);
  }
  std::vector<char*> left;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (i % n == 0) {
      left.push_back(taken[i]);
    } else {
      pool->Give(taken[i], kBytes);
    }
  }
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i][0], static_cast<char>(i * n % 100 + 1)) << "a block in use was released";
    EXPECT_EQ(left[i][kBytes - 1], left[i][0]);
  }
  return left;
}

TEST(ChunkPool, FreePagesBetweenBlocksGoBackToTheSystem) {
  constexpr size_t kSlabs = 10;
  ChunkPool pool(/*kept_bytes_max=*/0);
  const std::vector<char*> left = TakeAndLeaveEvery(&pool, 10, kSlabs);
  EXPECT_EQ(pool.slab_bytes(), kSlabs * ChunkPool::kSlabBytes) << "each slab holds something";
  // Besides what is kept, the newest slab.
  EXPECT_LT(pool.resident_bytes(), pool.slab_bytes() / 10 + 2 * ChunkPool::kSlabBytes);
  pool.ReleaseFreePages();
  EXPECT_EQ(pool.resident_bytes(), left.size() * ChunkPool::kBlockBytesMin);
  for (char* block : left) pool.Give(block, ChunkPool::kBlockBytesMin);
  EXPECT_EQ(pool.slab_bytes(), 0U);
}

TEST(ChunkPool, FreePagesBetweenBlocksAreKeptUpToTheBound) {
  constexpr size_t kSlabs = 10;
  ChunkPool pool(/*kept_bytes_max=*/0);
  pool.KeepMore(kSlabs * ChunkPool::kSlabBytes);
  const std::vector<char*> left = TakeAndLeaveEvery(&pool, 2, kSlabs);
  EXPECT_EQ(pool.resident_bytes(), pool.slab_bytes());
  for (char* block : left) pool.Give(block, ChunkPool::kBlockBytesMin);
}

TEST(ChunkPool, ReleasedPagesAreTakenAfterAllOthers) {
  ChunkPool pool;
  std::vector<char*> blocks = TakeAndLeaveEvery(&pool, 2, 4);
  pool.ReleaseFreePages();
  const size_t released = pool.slab_bytes() - pool.resident_bytes();
  ASSERT_EQ(released, pool.slab_bytes() / 2);
  char* const given = blocks.back();
  pool.Give(given, ChunkPool::kBlockBytesMin);
  EXPECT_EQ(pool.Take(ChunkPool::kBlockBytesMin), given);
  for (size_t taken = 0; taken < released; taken += ChunkPool::kBlockBytesMin) {
    blocks.push_back(pool.Take(ChunkPool::kBlockBytesMin));
  }
  EXPECT_EQ(pool.resident_bytes(), pool.slab_bytes());
  EXPECT_EQ(pool.slab_bytes(), 4 * ChunkPool::kSlabBytes);
  for (char* block : blocks) pool.Give(block, ChunkPool::kBlockBytesMin);
}

TEST(ChunkPool, ThreadsTakeAndGiveAtOnce) {
  ChunkPool pool;
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&pool, seed] {
      Random random(seed);
      std::vector<std::pair<char*, size_t>> taken;
      for (int step = 0; step < 5'000; ++step) {
        if (taken.size() < 10) {
          const size_t bytes = random.OneIn(20) ? (random.Below(3) + 1) * ChunkPool::kSlabBytes
                                                : ChunkPool::kBlockBytesMin << random.Next() % 6;
          char* const block = pool.Take(bytes);
          std::memset(block, static_cast<int>(seed), 64);
          taken.emplace_back(block, bytes);
        } else {
          ASSERT_EQ(taken.front().first[63], static_cast<char>(seed));
          pool.Give(taken.front().first, taken.front().second);
          taken.erase(taken.begin());
        }
      }
      for (const auto& [block, bytes] : taken) pool.Give(block, bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.kept_bytes(), pool.slab_bytes());
}

/// Waits for the background.
bool ComesToKeep(const ChunkPool& pool, size_t bytes) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (pool.kept_bytes() != bytes && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return pool.kept_bytes() == bytes;
}

TEST(ChunkPool, ASlabThatIsMadeReadyHasItsPages) {
  constexpr size_t kPageBytes = 4096;
  const auto pool = std::make_shared<ChunkPool>();
  char* const first = pool->Take(ChunkPool::kSlabBytes);
  pool->MakeReady();
  pool->MakeReady();
  ASSERT_TRUE(ComesToKeep(*pool, ChunkPool::kSlabBytes));
  char* const ready = pool->Take(ChunkPool::kSlabBytes);
  EXPECT_EQ(pool->slab_bytes(), 2 * ChunkPool::kSlabBytes);
  std::vector<unsigned char> pages(ChunkPool::kSlabBytes / kPageBytes);
  ASSERT_EQ(mincore(ready, ChunkPool::kSlabBytes, pages.data()), 0);
  EXPECT_TRUE(std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; }));
  pool->Give(first, ChunkPool::kSlabBytes);
  pool->Give(ready, ChunkPool::kSlabBytes);
}

// A job that touched a pool that is gone would be seen by the sanitizers.
TEST(ChunkPool, MayGoWhileASlabIsMadeReady) {
  for (int i = 0; i < 100; ++i) std::make_shared<ChunkPool>()->MakeReady();
}

TEST(Arena, OneThatGrowsBySlabsHasTheNextMadeReady) {
  constexpr size_t kRecordBytes = 1000;
  const auto pool = std::make_shared<ChunkPool>();
  ByteBudget budget(kNoLimit);
  Arena arena(pool.get(), &budget, ChunkPool::kSlabBytes);
  Arena::Cursor cursor;
  for (size_t bytes = 0; bytes < 3 * ChunkPool::kSlabBytes; bytes += kRecordBytes) {
    ASSERT_NE(arena.Allocate(&cursor, kRecordBytes, /*within_limit=*/true).position, 0u);
  }
  EXPECT_TRUE(ComesToKeep(*pool, ChunkPool::kSlabBytes));
  EXPECT_LT(budget.used_bytes(), pool->slab_bytes());  // what is ready costs nothing until taken
}

/// Of a column.
constexpr uint32_t kBlockBytes = 16;
constexpr uint32_t kBlockUnits = kBlockBytes / Arena::kUnitBytes;

class ArenaSizes : public testing::TestWithParam<size_t> {};

TEST_P(ArenaSizes, PositionsLeadBackToWhatWasWrittenThere) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  {
    Arena arena(&pool, &budget, GetParam());
    Arena::Cursor cursor;
    Random random(GetParam());
    struct Block {
      Arena::Position position;
      size_t bytes;
    };
    std::vector<Block> blocks;
    for (uint32_t i = 0; i < 8'000; ++i) {
      const size_t bytes = random.Next() % 200 == 0 ? random.Next() % 300'000 : random.Next() % 400;
      const Arena::Position position = arena.Allocate(&cursor, bytes + 4, true).position;
      ASSERT_NE(position, 0u);
      char* const at = arena.At(position);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % Arena::kUnitBytes, 0u);
      std::memset(at, static_cast<int>(i), bytes + 4);
      std::memcpy(at + bytes, &i, sizeof i);
      blocks.push_back({position, bytes});
    }
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      const char* const at = arena.At(blocks[i].position);
      uint32_t stored;
      std::memcpy(&stored, at + blocks[i].bytes, sizeof stored);
      ASSERT_EQ(stored, i);
      ASSERT_TRUE(std::all_of(at, at + blocks[i].bytes,
                              [i](char byte) { return byte == static_cast<char>(i); }));
    }
    EXPECT_GT(budget.used_bytes(), 0u);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(pool.kept_bytes(), pool.slab_bytes());
}

INSTANTIATE_TEST_SUITE_P(ChunkBytesMax, ArenaSizes,
                         testing::Values(4 << 10, 8 << 10, 64 << 10, 2 << 20));

TEST(Arena, BlocksOfAColumnLieWithoutGapsAndCanBeWalked) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  Arena arena(&pool, &budget, 16 << 10);
  Arena::Cursor cursor;
  constexpr uint32_t kBlocks = 20'000;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(arena.PrepareBlock(&cursor, true));
    ASSERT_EQ(arena.Allocate(&cursor, kBlockBytes, true).position,
              Arena::kFirstPosition + i * kBlockUnits);
    std::memcpy(arena.At(Arena::kFirstPosition + i * kBlockUnits), &i, sizeof i);
  }
  for (uint32_t i = 0; i < kBlocks;) {
    const char* at = arena.At(Arena::kFirstPosition + i * kBlockUnits);
    const size_t units = arena.ContiguousUnits(Arena::kFirstPosition + i * kBlockUnits);
    ASSERT_GT(units, 0u);
    ASSERT_EQ(units % kBlockUnits, 0u);
    for (size_t j = 0; j < units && i < kBlocks; j += kBlockUnits, ++i, at += kBlockBytes) {
      uint32_t stored;
      std::memcpy(&stored, at, sizeof stored);
      ASSERT_EQ(stored, i);
    }
  }
}

TEST(Arena, ChargesExactlyItsChunks) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  Arena arena(&pool, &budget, 16 << 10);
  Arena::Cursor cursor;
  arena.Allocate(&cursor, 16, true);
  EXPECT_EQ(budget.used_bytes(), 4u << 10);
  arena.Allocate(&cursor, (4 << 10) - 16, true);
  EXPECT_EQ(budget.used_bytes(), 4u << 10);
  arena.Allocate(&cursor, 16, true);
  EXPECT_EQ(budget.used_bytes(), 12u << 10);
  arena.Allocate(&cursor, 100'000, true);  // memory of its own, behind a header
  EXPECT_EQ(budget.used_bytes(), (12u << 10) + 100'000 + 8);
  arena.Allocate(&cursor, 16, true);
  EXPECT_EQ(budget.used_bytes(), (12u << 10) + 100'000 + 8) << "the open chunk was left";
}

TEST(Arena, TheFirstChunksOfAColumnAreGivenBackWhileItGrows) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  {
    Arena arena(&pool, &budget, 16 << 10);
    Arena::Cursor cursor;
    uint32_t blocks = 0;
    const auto position_of = [](uint32_t block) {
      return Arena::kFirstPosition + block * kBlockUnits;
    };
    const auto grow_to = [&](uint32_t count) {
      for (; blocks < count; ++blocks) {
        const Arena::Position position = arena.Allocate(&cursor, kBlockBytes, true).position;
        ASSERT_EQ(position, position_of(blocks));
        std::memcpy(arena.At(position), &blocks, sizeof blocks);
      }
    };
    grow_to(10'000);  // chunks of 256, 512, then 1,024 blocks
    uint64_t bytes = budget.used_bytes();
    const auto free_before = [&](uint32_t block) {
      arena.FreeBefore(position_of(block));
      const uint64_t freed = bytes - budget.used_bytes();
      bytes = budget.used_bytes();
      return freed;
    };
    EXPECT_EQ(free_before(255), 0u);
    EXPECT_EQ(free_before(256), 4u << 10);
    EXPECT_EQ(free_before(256), 0u);
    EXPECT_EQ(free_before(768 + 1'024 + 1'023), 24u << 10);
    grow_to(20'000);
    bytes = budget.used_bytes();
    for (uint32_t block = 768 + 1'024; block < blocks; ++block) {
      uint32_t stored;
      std::memcpy(&stored, arena.At(position_of(block)), sizeof stored);
      ASSERT_EQ(stored, block);
    }
    grow_to(768 + 20 * 1'024);
    bytes = budget.used_bytes();
    EXPECT_EQ(free_before(blocks), 19u * (16 << 10)) << "all, for all are full";
    grow_to(blocks + 1);
    EXPECT_EQ(budget.used_bytes(), bytes + (16u << 10));
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(pool.kept_bytes(), pool.slab_bytes());
}

TEST(Arena, WritersShareChunksInPiecesThatGrowWithWhatEachHasWritten) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  Arena arena(&pool, &budget, 64 << 10);
  constexpr size_t kWriters = 12;
  constexpr size_t kBytes = 256;
  struct Writer {
    Arena::Cursor cursor;
    std::vector<Arena::Position> blocks;
  };
  std::vector<Writer> writers(kWriters);
  const auto write = [&](size_t writer, size_t blocks) {
    for (size_t i = 0; i < blocks; ++i) {
      auto& its = writers[writer].blocks;
      its.push_back(arena.Allocate(&writers[writer].cursor, kBytes, true).position);
      ASSERT_NE(its.back(), 0u);
      std::memset(arena.At(its.back()), static_cast<int>(writer), kBytes);
    }
  };
  write(0, 1'000);
  const uint64_t before = budget.used_bytes();
  for (size_t writer = 1; writer < kWriters; ++writer) write(writer, 1);
  EXPECT_LE(budget.used_bytes(), before + (64u << 10)) << "eleven pages for eleven writers";
  for (size_t writer = 1; writer < kWriters; ++writer) write(writer, 10 * writer);
  for (size_t writer = 0; writer < kWriters; ++writer) {
    for (const Arena::Position position : writers[writer].blocks) {
      const char* const at = arena.At(position);
      ASSERT_TRUE(std::all_of(at, at + kBytes,
                              [&](char byte) { return byte == static_cast<char>(writer); }))
          << "writer " << writer;
    }
  }
}

TEST(Arena, LargeBlocksTakeNoPositionsFromSmallOnes) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  {
    Arena arena(&pool, &budget, ChunkPool::kSlabBytes);
    Arena::Cursor cursor;
    const Arena::Position first = arena.Allocate(&cursor, 64, true).position;
    std::vector<Arena::Position> large;
    for (int i = 0; i < 1'000; ++i) {
      large.push_back(arena.Allocate(&cursor, Arena::kOwnChunkBytes + 8, true).position);
      ASSERT_NE(large.back(), 0u);
      std::memset(arena.At(large.back()), i, Arena::kOwnChunkBytes + 8);
    }
    EXPECT_EQ(arena.Allocate(&cursor, 64, true).position, first + 64 / Arena::kUnitBytes);
    for (int i = 0; i < 1'000; ++i) {
      ASSERT_EQ(arena.At(large[static_cast<size_t>(i)])[Arena::kOwnChunkBytes],
                static_cast<char>(i));
    }
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(Arena, ThreadsWithCursorsOfTheirOwnWriteAtOnce) {
  ChunkPool pool;
  ByteBudget budget(kNoLimit);
  {
    Arena arena(&pool, &budget, 16 << 10);
    std::vector<std::thread> threads;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&arena, seed] {
        Random random(seed);
        Arena::Cursor cursor;
        std::vector<std::pair<Arena::Position, size_t>> blocks;
        for (int i = 0; i < 5'000; ++i) {
          const size_t bytes = i % 500 == 0 ? 70'000 : 1 + random.Next() % 300;
          blocks.emplace_back(arena.Allocate(&cursor, bytes, true).position, bytes);
          std::memset(arena.At(blocks.back().first), static_cast<int>(seed), bytes);
          // While the others' chunks move the addresses on.
          const Arena::Position older = blocks[random.Next() % blocks.size()].first;
          ASSERT_EQ(*arena.At(older), static_cast<char>(seed));
        }
        for (const auto& [position, bytes] : blocks) {
          const char* const at = arena.At(position);
          ASSERT_TRUE(std::all_of(at, at + bytes,
                                  [&](char byte) { return byte == static_cast<char>(seed); }));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(pool.kept_bytes(), pool.slab_bytes());
}

TEST(Arena, RefusesWhatWouldPassTheBudgetUnlessToldOtherwise) {
  ChunkPool pool;
  ByteBudget budget(8 << 10);
  Arena arena(&pool, &budget, 4 << 10);
  Arena::Cursor cursor;
  EXPECT_NE(arena.Allocate(&cursor, 2'000, true).position, 0u);
  EXPECT_EQ(arena.Allocate(&cursor, 9'000, true).position, 0u);
  EXPECT_EQ(budget.used_bytes(), 4u << 10);
  EXPECT_NE(arena.Allocate(&cursor, 9'000, false).position, 0u);
  EXPECT_EQ(arena.Allocate(&cursor, 3'000, true).position, 0u);
  EXPECT_NE(arena.Allocate(&cursor, 2'000, true).position, 0u)
      << "what is left of the open chunk fits";
}

TEST(Arena, ChunksTakeAtMostASixtyFourthOfTheBudget) {
  EXPECT_EQ(Arena::ChunkBytesMax(0), 4u << 10);
  EXPECT_EQ(Arena::ChunkBytesMax(256 << 10), 4u << 10);
  EXPECT_EQ(Arena::ChunkBytesMax(16 << 20), 256u << 10);
  EXPECT_EQ(Arena::ChunkBytesMax(17 << 20), 256u << 10);
  EXPECT_EQ(Arena::ChunkBytesMax(uint64_t{1} << 40), 2u << 20);
}

}  // namespace
}  // namespace basalt::base
