#include "cache/entry_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace basalt::cache {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

/// Objects that are filled with a byte each, and what is known of them.
class Objects {
 public:
  explicit Objects(EntryHeap* heap) : heap_(heap) {}
  ~Objects() {
    while (!taken_.empty()) Give(taken_.begin()->first);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  char* Take(size_t bytes, unsigned char fill) {
    char* const object = heap_->Take(bytes);
    EXPECT_NE(object, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % EntryHeap::kAlignment, 0u);
    const size_t usable = EntryHeap::UsableBytes(object);
    EXPECT_GE(usable, bytes);
    const auto next = taken_.lower_bound(object);
    if (next != taken_.end()) {
      EXPECT_LE(object + usable, next->first);
    }
    if (next != taken_.begin()) {
      EXPECT_LE(std::prev(next)->first + EntryHeap::UsableBytes(std::prev(next)->first), object);
    }
    std::memset(object, fill, usable);
    taken_.emplace(object, fill);
    return object;
  }
  void Give(char* object) {
    const auto found = taken_.find(object);
    ASSERT_NE(found, taken_.end());
    const std::string expected(EntryHeap::UsableBytes(object), static_cast<char>(found->second));
    EXPECT_TRUE(std::string_view(object, expected.size()) == expected) << "it was overwritten";
    taken_.erase(found);
    heap_->Give(object);
  }
  char* Pick(base::Random* random) const {
    auto at = taken_.begin();
    std::advance(at, static_cast<ptrdiff_t>(random->Below(taken_.size())));
    return at->first;
  }
  const std::map<char*, unsigned char>& taken() const { return taken_; }

 private:
  EntryHeap* const heap_;
  std::map<char*, unsigned char> taken_;
};

uintptr_t BlockOf(const char* object) {
  return reinterpret_cast<uintptr_t>(object) & ~(kBlockBytes - 1);
}

TEST(EntryHeap, BlocksAreASixteenthOfTheShardWithinBounds) {
  EXPECT_EQ(EntryHeap::BlockBytesFor(1 << 20), 64u << 10);
  EXPECT_EQ(EntryHeap::BlockBytesFor(3 << 20), 128u << 10);
  EXPECT_EQ(EntryHeap::BlockBytesFor(uint64_t{1} << 40), EntryHeap::kBlockBytesMax);
  EXPECT_EQ(EntryHeap::BlockBytesFor(1), EntryHeap::kBlockBytesMin);
}

TEST(EntryHeap, ObjectsLieApartAndBlocksGoBackWhenTheyAreEmpty) {
  const uint64_t seed = 5;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  EntryHeap heap(kBlockBytes);
  {
    Objects objects(&heap);
    for (int step = 0; step < 20'000 && !testing::Test::HasFailure(); ++step) {
      const bool grows = step / 3'000 % 2 == 0;
      if (objects.taken().size() < 5 || random.OneIn(3) != grows) {
        objects.Take(random.Between(1, kBlockBytes / EntryHeap::kObjectShare),
                     static_cast<unsigned char>(random.Below(256)));
      } else {
        objects.Give(objects.Pick(&random));
      }
      std::set<uintptr_t> blocks;
      if (step % 500 != 0) continue;
      for (const auto& [object, fill] : objects.taken()) blocks.insert(BlockOf(object));
      ASSERT_EQ(heap.bytes(), blocks.size() * kBlockBytes);
    }
  }
  EXPECT_EQ(heap.bytes(), 0u);
}

/// Fills blocks and leaves one object of each few.
void Scatter(EntryHeap* heap, Objects* objects, size_t blocks, size_t every) {
  std::vector<char*> taken;
  while (heap->bytes() <= blocks * kBlockBytes) taken.push_back(objects->Take(700, 1));
  for (size_t i = 0; i < taken.size(); ++i) {
    if (i % every != 0) objects->Give(taken[i]);
  }
}

TEST(EntryHeap, IsSparseWhenMoreThanATenthIsFree) {
  EntryHeap heap(kBlockBytes);
  Objects objects(&heap);
  std::vector<char*> taken;
  while (heap.bytes() <= 40 * kBlockBytes) taken.push_back(objects.Take(700, 1));
  EXPECT_FALSE(heap.is_sparse(/*retires=*/false));
  EXPECT_TRUE(heap.is_sparse(/*retires=*/true));
  size_t given = 0;
  for (; !heap.is_sparse(/*retires=*/false); ++given) objects.Give(taken[given * 7 % taken.size()]);
  // Some was free before, in the newest block above all.
  const double given_share = static_cast<double>(given) / static_cast<double>(taken.size());
  EXPECT_GT(given_share, 0.05);
  EXPECT_LT(given_share, 0.1);
}

/// Moves all that is in the block that is being emptied, as a shard does. Gives how many.
size_t MoveAll(EntryHeap* heap, Objects* objects) {
  size_t moved = 0;
  while (char* const object = heap->Emptied()) {
    objects->Take(EntryHeap::UsableBytes(object), 2);
    heap->SkipEmptied();
    objects->Give(object);
    ++moved;
  }
  heap->EndEmptying(/*reopens=*/false);
  return moved;
}

TEST(EntryHeap, EmptyingMovesScatteredObjectsTogether) {
  EntryHeap heap(kBlockBytes);
  Objects objects(&heap);
  Scatter(&heap, &objects, 40, 5);
  const size_t count = objects.taken().size();
  for (int rounds = 0; heap.is_sparse(/*retires=*/false) && heap.StartEmptying(/*retires=*/false);
       ++rounds) {
    ASSERT_LT(rounds, 40);
    ASSERT_GT(MoveAll(&heap, &objects), 0u);
  }
  EXPECT_EQ(objects.taken().size(), count);
  EXPECT_LE(heap.bytes(), 40 * kBlockBytes / 5 + 3 * kBlockBytes);
}

TEST(EntryHeap, FullBlocksAndTheNewestAreEmptiedOnlyWhenTheHeapRetires) {
  EntryHeap heap(kBlockBytes);
  Objects objects(&heap);
  while (heap.bytes() <= 3 * kBlockBytes) objects.Take(700, 1);
  EXPECT_FALSE(heap.StartEmptying(/*retires=*/false));
  int blocks = 0;
  while (heap.StartEmptying(/*retires=*/true)) {
    ++blocks;
    while (char* const object = heap.Emptied()) {
      heap.SkipEmptied();
      objects.Give(object);
    }
    heap.EndEmptying(/*reopens=*/false);
  }
  EXPECT_EQ(blocks, 4);
  EXPECT_EQ(heap.bytes(), 0u);
}

TEST(EntryHeap, AClosedBlockTakesNothingAndGoesWithItsLastObject) {
  EntryHeap heap(kBlockBytes);
  Objects objects(&heap);
  Scatter(&heap, &objects, 3, 10);
  ASSERT_TRUE(heap.StartEmptying(/*retires=*/false));
  std::vector<char*> left;
  for (; char* const object = heap.Emptied(); heap.SkipEmptied()) left.push_back(object);
  ASSERT_FALSE(left.empty());
  heap.EndEmptying(/*reopens=*/false);
  EXPECT_TRUE(heap.IsClosed(left.front()));
  for (int i = 0; i < 100; ++i) EXPECT_NE(BlockOf(objects.Take(100, 3)), BlockOf(left.front()));
  const uint64_t bytes = heap.bytes();
  for (char* const object : left) {
    EXPECT_EQ(heap.bytes(), bytes);
    objects.Give(object);
  }
  EXPECT_EQ(heap.bytes(), bytes - kBlockBytes);
}

TEST(EntryHeap, TheBlockMayBecomeEmptyInTheMiddleOfTheWalk) {
  EntryHeap heap(kBlockBytes);
  Objects objects(&heap);
  Scatter(&heap, &objects, 3, 10);
  ASSERT_TRUE(heap.StartEmptying(/*retires=*/false));
  const uintptr_t block = BlockOf(heap.Emptied());
  std::vector<char*> inside;
  for (const auto& [object, fill] : objects.taken()) {
    if (BlockOf(object) == block) inside.push_back(object);
  }
  for (char* const object : inside) objects.Give(object);
  EXPECT_EQ(heap.Emptied(), nullptr);
  EXPECT_FALSE(heap.is_emptying());
  heap.EndEmptying(/*reopens=*/true);
}

TEST(EntryHeap, AReopenedBlockIsUsedAndNotEmptiedAgainUntilSomethingIsFreed) {
  EntryHeap heap(kBlockBytes);
  Objects objects(&heap);
  std::vector<char*> taken;
  while (heap.bytes() <= kBlockBytes) taken.push_back(objects.Take(700, 1));
  // Two blocks: the newest is never chosen.
  char* const stays = taken[taken.size() / 2];
  for (char* const object : taken) {
    if (BlockOf(object) == BlockOf(stays) && object != stays) objects.Give(object);
  }
  ASSERT_TRUE(heap.StartEmptying(/*retires=*/false));
  ASSERT_EQ(heap.Emptied(), stays);
  heap.SkipEmptied();
  EXPECT_EQ(heap.Emptied(), nullptr);
  heap.EndEmptying(/*reopens=*/true);
  EXPECT_FALSE(heap.IsClosed(stays));
  EXPECT_FALSE(heap.StartEmptying(/*retires=*/false));
  char* other = nullptr;
  while (other == nullptr || BlockOf(other) != BlockOf(stays)) other = objects.Take(3'000, 4);
  objects.Give(stays);
  EXPECT_FALSE(heap.StartEmptying(/*retires=*/false)) << "more is used than when it was tried";
  std::vector<char*> inside;
  for (const auto& [object, fill] : objects.taken()) {
    if (BlockOf(object) == BlockOf(other) && object != other) inside.push_back(object);
  }
  for (char* const object : inside) objects.Give(object);
  objects.Give(other);
}

}  // namespace
}  // namespace basalt::cache
