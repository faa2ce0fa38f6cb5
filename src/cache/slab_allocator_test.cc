#include "cache/slab_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"

namespace basalt::cache {
namespace {

constexpr uint64_t kAmpleBudget = uint64_t{1} << 40;
constexpr size_t kSlabHeaderBytes = 64;

size_t CapacityOf(uint8_t size_class) {
  return (SlabAllocator::kSlabBytes - kSlabHeaderBytes) / SlabAllocator::ClassBytes(size_class);
}

uintptr_t SlabAddress(const void* object) {
  return reinterpret_cast<uintptr_t>(object) & ~(SlabAllocator::kSlabBytes - 1);
}

/// An object that looks like an entry: byte 6 is not zero.
char* AllocateFilled(SlabAllocator* slabs, size_t bytes, unsigned char fill) {
  void* const object = slabs->Allocate(bytes);
  if (object != nullptr) std::memset(object, fill, bytes);
  return static_cast<char*>(object);
}

TEST(SlabAllocator, EverySmallSizeGetsTheSmallestClassThatHoldsIt) {
  for (size_t bytes = 1; bytes <= SlabAllocator::kSmallBytesMax; ++bytes) {
    const uint8_t size_class = SlabAllocator::ClassOf(bytes);
    ASSERT_GT(size_class, 0) << bytes;
    ASSERT_LT(size_class, SlabAllocator::kClasses) << bytes;
    ASSERT_GE(SlabAllocator::ClassBytes(size_class), bytes);
    if (size_class > 1) {
      ASSERT_LT(SlabAllocator::ClassBytes(size_class - 1), bytes);
    }
  }
  EXPECT_EQ(SlabAllocator::ClassOf(SlabAllocator::kSmallBytesMax + 1), 0);
}

TEST(SlabAllocator, RoundingUpWastesAFewBytesOnTheMean) {
  size_t wasted_small = 0;
  for (size_t bytes = 1; bytes <= 128; ++bytes) {
    wasted_small += SlabAllocator::ClassBytes(SlabAllocator::ClassOf(bytes)) - bytes;
  }
  EXPECT_LE(wasted_small, 128 * 7 / 2);
  for (size_t first = 129; first <= SlabAllocator::kSmallBytesMax; first += 16) {
    const size_t class_bytes = SlabAllocator::ClassBytes(SlabAllocator::ClassOf(first));
    size_t wasted = 0;
    for (size_t bytes = first; bytes < first + 16; ++bytes) {
      ASSERT_EQ(SlabAllocator::ClassBytes(SlabAllocator::ClassOf(bytes)), class_bytes);
      wasted += class_bytes - bytes;
    }
    EXPECT_LE(wasted * 100, 16 * 6 * class_bytes) << first;
  }
}

/// What an allocator ought to hold, charged and contain.
class SlabModel {
 public:
  struct Object {
    char* at;
    size_t bytes;
    unsigned char fill;
  };

  explicit SlabModel(const SlabAllocator& slabs) : allocator_(slabs) {}

  void Add(char* at, size_t bytes, unsigned char fill) {
    const uint8_t size_class = SlabAllocator::ClassOf(bytes);
    ExpectApart(at, size_class == 0 ? bytes : SlabAllocator::ClassBytes(size_class));
    objects_.emplace(at, Object{at, bytes, fill});
    picks_.push_back(at);
    if (size_class == 0) {
      const uint64_t charged = SlabAllocator::ChargedBytes(at, 0, allocator_.IsLarge(bytes));
      own_bytes_ += charged;
      EXPECT_GE(charged, bytes);
      return;
    }
    auto& slabs = slabs_[size_class];
    const bool is_new = !slabs.contains(SlabAddress(at));
    if (is_new) {
      EXPECT_EQ(FreeObjects(size_class), 0u) << "a slab was taken while others had room";
    }
    ++slabs[SlabAddress(at)];
  }
  /// Before it is freed.
  void Drop(const Object& object) {
    for (size_t i = 0; i < object.bytes; ++i) {
      ASSERT_EQ(static_cast<unsigned char>(object.at[i]), object.fill) << "overwritten at " << i;
    }
    const uint8_t size_class = SlabAllocator::ClassOf(object.bytes);
    if (size_class == 0) {
      own_bytes_ -= SlabAllocator::ChargedBytes(object.at, 0, allocator_.IsLarge(object.bytes));
    } else {
      auto& slabs = slabs_[size_class];
      const uintptr_t slab = SlabAddress(object.at);
      if (--slabs[slab] == 0 && FreeObjects(size_class) > CapacityOf(size_class)) {
        slabs.erase(slab);
      }
    }
    objects_.erase(object.at);
  }
  /// Any object; not when there are none.
  Object Pick(base::Random* random) {
    for (;;) {
      char*& picked = picks_[random->Below(picks_.size())];
      std::swap(picked, picks_.back());
      char* const at = picks_.back();
      picks_.pop_back();
      const auto found = objects_.find(at);
      if (found != objects_.end()) return found->second;
    }
  }
  void DropEmptySlabs() {
    for (auto& [size_class, slabs] : slabs_) {
      std::erase_if(slabs, [](const auto& slab) { return slab.second == 0; });
    }
  }

  size_t FreeObjects(uint8_t size_class) {
    size_t free_objects = 0;
    for (const auto& [slab, used] : slabs_[size_class]) {
      free_objects += CapacityOf(size_class) - used;
    }
    return free_objects;
  }
  uint64_t bytes() const {
    uint64_t bytes = own_bytes_;
    for (const auto& [size_class, slabs] : slabs_) {
      bytes += slabs.size() * SlabAllocator::kSlabBytes;
    }
    return bytes;
  }
  size_t size() const { return objects_.size(); }

  /// ForEachIn meets the objects of each slab, and nothing else.
  void ExpectSlabsVisitTheirObjects() const {
    for (const auto& [size_class, slabs] : slabs_) {
      for (const auto& [slab, used] : slabs) {
        std::set<char*> visited;
        SlabAllocator::ForEachIn(reinterpret_cast<void*>(slab), [&](void* object) {
          EXPECT_TRUE(visited.insert(static_cast<char*>(object)).second);
          EXPECT_TRUE(objects_.contains(static_cast<char*>(object)));
        });
        EXPECT_EQ(visited.size(), used);
      }
    }
  }

 private:
  /// No two objects share a byte.
  void ExpectApart(char* at, size_t bytes) const {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 8, 0u);
    const auto next = objects_.lower_bound(at);
    if (next != objects_.end()) {
      EXPECT_LE(at + bytes, next->first);
    }
    if (next != objects_.begin()) {
      const Object& before = std::prev(next)->second;
      EXPECT_LE(before.at + before.bytes, at);
    }
  }

  const SlabAllocator& allocator_;
  std::map<char*, Object> objects_;
  std::vector<char*> picks_;
  std::map<uint8_t, std::map<uintptr_t, size_t>> slabs_;  ///< Class, slab, objects taken.
  uint64_t own_bytes_ = 0;
};

size_t RandomSize(base::Random* random) {
  if (random->OneIn(20)) return random->Between(513, 20'000);
  // A few classes take the most, so that slabs fill up and empty again.
  if (random->OneIn(4)) return random->Between(16, SlabAllocator::kSmallBytesMax);
  return std::array<size_t, 4>{24, 61, 130, 500}[random->Below(4)];
}

class RandomAllocations : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomAllocations, KeepTheirBytesApartAndAreChargedExactly) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  base::Random random(GetParam());
  MemoryBudget budget(kAmpleBudget);
  {
    SlabAllocator slabs(&budget);
    SlabModel model(slabs);
    const auto free_one = [&] {
      const SlabModel::Object object = model.Pick(&random);
      model.Drop(object);
      slabs.Free(object.at, SlabAllocator::ClassOf(object.bytes), slabs.IsLarge(object.bytes));
    };
    for (int step = 0; step < 30'000 && !HasFailure(); ++step) {
      // Grows and shrinks by turns.
      const bool grows = (step / 4'000) % 2 == 0;
      if (model.size() == 0 || random.OneIn(3) != grows) {
        const size_t bytes = RandomSize(&random);
        const auto fill = static_cast<unsigned char>(random.Between(1, 255));
        char* const object = AllocateFilled(&slabs, bytes, fill);
        ASSERT_NE(object, nullptr);
        model.Add(object, bytes, fill);
      } else {
        free_one();
      }
      if (random.OneIn(2'000) && model.bytes() > 0) {
        const uint64_t before = model.bytes();
        model.DropEmptySlabs();
        EXPECT_EQ(slabs.ReleaseEmptySlabs(), model.bytes() < before);
      }
      ASSERT_EQ(slabs.bytes(), model.bytes());
      ASSERT_EQ(budget.used_bytes(), model.bytes());
      if (step % 1'000 == 0) {
        model.ExpectSlabsVisitTheirObjects();
        for (uint8_t c = 1; c < SlabAllocator::kClasses; ++c) {
          ASSERT_EQ(slabs.free_objects(c), model.FreeObjects(c)) << int{c};
        }
      }
    }
    while (model.size() != 0) free_one();
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(SlabAllocator, RandomAllocations, testing::Range<uint64_t>(1, 5));

TEST(SlabAllocator, OneEmptySlabOfAClassIsKeptAndReleasedOnRequest) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  const uint8_t size_class = SlabAllocator::ClassOf(64);
  std::vector<char*> objects;
  for (size_t i = 0; i < 10 * CapacityOf(size_class); ++i) {
    objects.push_back(AllocateFilled(&slabs, 64, 7));
  }
  EXPECT_EQ(budget.used_bytes(), 10 * SlabAllocator::kSlabBytes);
  EXPECT_EQ(slabs.free_objects(size_class), 0u);
  for (char* object : objects) slabs.Free(object, size_class);
  EXPECT_EQ(budget.used_bytes(), SlabAllocator::kSlabBytes);
  EXPECT_TRUE(slabs.ReleaseEmptySlabs());
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_FALSE(slabs.ReleaseEmptySlabs());
}

TEST(SlabAllocator, AtTheBudgetOnlyFreeObjectsOfSlabsAreStillGiven) {
  MemoryBudget budget(2 * SlabAllocator::kSlabBytes + 100);
  SlabAllocator slabs(&budget);
  const uint8_t size_class = SlabAllocator::ClassOf(100);
  const size_t capacity = CapacityOf(size_class);
  char* last = nullptr;
  for (size_t i = 0; i < 2 * capacity; ++i) {
    last = AllocateFilled(&slabs, 100, 1);
    ASSERT_NE(last, nullptr) << i;
  }
  EXPECT_EQ(slabs.Allocate(100), nullptr);
  EXPECT_EQ(slabs.Allocate(8), nullptr);
  EXPECT_EQ(slabs.Allocate(600), nullptr);
  EXPECT_EQ(budget.used_bytes(), 2 * SlabAllocator::kSlabBytes);
  slabs.Free(last, size_class);
  EXPECT_EQ(slabs.Allocate(100), last);
  EXPECT_EQ(slabs.Allocate(100), nullptr);
}

TEST(SlabAllocator, BeyondTheBudgetIsGivenWhatIsAskedForSoAndCharged) {
  MemoryBudget budget(100);
  SlabAllocator slabs(&budget);
  char* const small = static_cast<char*>(slabs.Allocate(100, /*within_budget=*/false));
  char* const large = static_cast<char*>(slabs.Allocate(5'000, /*within_budget=*/false));
  ASSERT_NE(small, nullptr);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(budget.used_bytes(),
            SlabAllocator::kSlabBytes + SlabAllocator::ChargedBytes(large, 0, false));
  slabs.Free(small, SlabAllocator::ClassOf(100));
  slabs.Free(large, 0);
  slabs.ReleaseEmptySlabs();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(SlabAllocator, ALargeObjectIsRefusedWhenOnlyTheSystemsRoundingPassesTheBudget) {
  MemoryBudget budget(1'000);
  SlabAllocator slabs(&budget);
  EXPECT_EQ(slabs.Allocate(1'000), nullptr);
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(slabs.bytes(), 0u);
  void* const object = slabs.Allocate(900);
  ASSERT_NE(object, nullptr);
  EXPECT_GT(budget.used_bytes(), 900u);
  EXPECT_LE(budget.used_bytes(), 1'000u);
  slabs.Free(object, 0);
}

TEST(SlabAllocator, AVisitOfASlabTellsFreeObjectsFromEntries) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  const uint8_t size_class = SlabAllocator::ClassOf(40);
  std::vector<char*> objects;
  for (int i = 0; i < 50; ++i) objects.push_back(AllocateFilled(&slabs, 40, 0xFF));
  std::set<void*> expected(objects.begin(), objects.end());
  // The first freed one ends the list of free objects, the others have a successor.
  for (int i = 0; i < 50; i += 3) {
    slabs.Free(objects[static_cast<size_t>(i)], size_class);
    expected.erase(objects[static_cast<size_t>(i)]);
  }
  std::set<void*> visited;
  SlabAllocator::ForEachIn(reinterpret_cast<void*>(SlabAddress(objects[0])),
                           [&](void* object) { visited.insert(object); });
  EXPECT_EQ(visited, expected);
}

TEST(SlabAllocator, TheSparsestSlabHasTheFewestBytesInUseOfAllOtherClasses) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  const uint8_t but = SlabAllocator::ClassOf(200);
  EXPECT_EQ(slabs.SparsestSlab(but, /*movable=*/false), nullptr);
  const auto slab_of = [](void* object) { return reinterpret_cast<void*>(SlabAddress(object)); };
  void* const one_of_400 = slab_of(AllocateFilled(&slabs, 400, 1));
  void* const one_of_200 = slab_of(AllocateFilled(&slabs, 200, 1));
  void* many_of_16 = nullptr;
  for (int i = 0; i < 20; ++i) many_of_16 = slab_of(AllocateFilled(&slabs, 16, 1));
  EXPECT_EQ(slabs.SparsestSlab(but, /*movable=*/false), many_of_16)
      << "20 x 16 is less than 1 x 400";
  EXPECT_EQ(slabs.SparsestSlab(SlabAllocator::ClassOf(16), /*movable=*/false), one_of_200);
  for (int i = 0; i < 6; ++i) AllocateFilled(&slabs, 16, 1);
  EXPECT_EQ(slabs.SparsestSlab(but, /*movable=*/false), one_of_400);
}

TEST(SlabAllocator, AFullSlabIsNotOfferedAsTheSparsest) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  const uint8_t size_class = SlabAllocator::ClassOf(512);
  for (size_t i = 0; i < CapacityOf(size_class); ++i) AllocateFilled(&slabs, 512, 1);
  EXPECT_EQ(slabs.SparsestSlab(1, /*movable=*/false), nullptr);
}

TEST(SlabAllocator, ASpareServesWhoAsksForAboutItsSizeAndStaysChargedMeanwhile) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  void* const object = slabs.Allocate(4'000);
  const uint64_t charged = budget.used_bytes();
  slabs.FreeToSpare(object, /*is_large=*/false);
  EXPECT_EQ(budget.used_bytes(), charged);
  EXPECT_FALSE(slabs.HasSpareFor(4'200)) << "too small";
  EXPECT_FALSE(slabs.HasSpareFor(3'000)) << "a quarter would be wasted";
  EXPECT_TRUE(slabs.HasSpareFor(3'900));
  EXPECT_EQ(slabs.Allocate(3'900), object);
  EXPECT_EQ(budget.used_bytes(), charged);
  EXPECT_FALSE(slabs.HasSpareFor(3'900)) << "it is taken";
  slabs.FreeOwn(object, /*is_large=*/false);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(SlabAllocator, ASpareServesOnlyWhoseMemoryIsOfItsKind) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  constexpr size_t kBytes = (size_t{8} << 10) + 1;
  void* const extent = slabs.Allocate(kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(extent) % 64, 0u);
  slabs.FreeToSpare(extent, /*is_large=*/true);
  EXPECT_FALSE(slabs.HasSpareFor(kBytes - 1));
  EXPECT_TRUE(slabs.HasSpareFor(kBytes));
  EXPECT_EQ(slabs.Allocate(kBytes), extent);
  slabs.FreeOwn(extent, /*is_large=*/true);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(SlabAllocator, SparesAreFewAndTheOldestMakesWay) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  constexpr size_t kObjects = 20;
  uint64_t charged = 0;
  for (size_t i = 0; i < kObjects; ++i) {
    const size_t bytes = size_t{1'000} << (i % 10);
    const bool is_large = slabs.IsLarge(bytes);
    void* const object = slabs.Allocate(bytes);
    charged = std::max(charged, SlabAllocator::ChargedBytes(object, 0, is_large));
    slabs.FreeToSpare(object, is_large);
    ASSERT_TRUE(slabs.HasSpareFor(1'000 << (i % 10)));
    ASSERT_LE(budget.used_bytes(), 4 * charged);
  }
  EXPECT_FALSE(slabs.HasSpareFor(1'000));
  EXPECT_TRUE(slabs.ReleaseEmptySlabs());
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_FALSE(slabs.ReleaseEmptySlabs());
}

TEST(SlabAllocator, AllThatIsNotSmallIsLargeWhereTheHeapIsNotUsed) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  void* const before = slabs.Allocate(1'000);
  EXPECT_FALSE(slabs.IsLarge(1'000));
  slabs.UseHeap(false);
  EXPECT_TRUE(slabs.IsLarge(1'000));
  EXPECT_FALSE(slabs.IsLarge(SlabAllocator::kSmallBytesMax));
  void* const after = slabs.Allocate(1'000);
  EXPECT_EQ(slabs.heap().bytes(), slabs.heap().block_bytes());
  slabs.FreeOwn(before, /*is_large=*/false);
  EXPECT_EQ(slabs.heap().bytes(), 0u);
  slabs.FreeOwn(after, /*is_large=*/true);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(SlabAllocator, LargeObjectsAreFreedWithoutTheLockAndRefundedExactly) {
  MemoryBudget budget(kAmpleBudget);
  SlabAllocator slabs(&budget);
  std::array<std::vector<void*>, 2> objects;
  for (size_t i = 0; i < 2'000; ++i) objects[i % 2].push_back(slabs.Allocate(10'600 + i));
  std::vector<std::thread> threads;
  for (const std::vector<void*>& own : objects) {
    threads.emplace_back([&slabs, &own] {
      for (void* object : own) slabs.FreeOwn(object, /*is_large=*/true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(slabs.bytes(), 0u);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

}  // namespace
}  // namespace basalt::cache
