#include "phash/taken_slots.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

/// The word and bit of a slot, as the head comment of TakenSlots has them.
struct Place {
  uint64_t word;
  uint64_t bit;
};
Place PlaceOf(uint64_t slot, bool dense) {
  if (dense) return {slot / 64, slot % 64};
  return {slot / 256 * 4 + slot % 4, slot % 256 / 4};
}

class Slots {
 public:
  explicit Slots(const LevelShape& shape) : shape_(shape), taken_(shape) {}

  void Take(uint64_t chunk, uint64_t slot) {
    const auto [word, bit] = PlaceOf(slot - taken_.Origin(chunk), shape_.dense());
    taken_.Words(chunk)[word] |= uint64_t{1} << bit;
  }
  bool IsTaken(uint64_t chunk, uint64_t slot) {
    const auto [word, bit] = PlaceOf(slot - taken_.Origin(chunk), shape_.dense());
    return (taken_.Words(chunk)[word] >> bit & 1) != 0;
  }
  /// The chunk's own slots.
  uint64_t Begin(uint64_t chunk) const { return shape_.FirstSliceBegin(chunk); }
  uint64_t End(uint64_t chunk) const {
    return chunk + 1 == shape_.chunks() ? shape_.keys() : shape_.FirstSliceBegin(chunk + 1);
  }
  TakenSlots& taken() { return taken_; }

 private:
  LevelShape shape_;
  TakenSlots taken_;
};

TEST(TakenSlots, HolesAreTheSlotsThatNobodyTook) {
  base::Random random(1);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    for (const uint64_t keys : {33, 64, 1'000, 5'000, 8'192, 100'000, 131'072, 600'000}) {
      const LevelShape shape(keys, seeds);
      for (const double share : {0.0, 0.03, 0.5, 1.0}) {
        Slots slots(shape);
        std::vector<uint64_t> expected;
        for (uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
          for (uint64_t slot = slots.Begin(chunk); slot < slots.End(chunk); ++slot) {
            if (random.NextDouble() < share) {
              expected.push_back(slot);
            } else {
              slots.Take(chunk, slot);
            }
          }
        }
        std::vector<uint64_t> holes;
        for (uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
          slots.taken().AppendHoles(chunk, &holes);
        }
        ASSERT_EQ(holes, expected) << keys << " keys, " << share;
      }
    }
  }
}

TEST(TakenSlots, ChunksTellEachOtherOfTheSlotsThatTheirSeamReaches) {
  base::Random random(2);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    const LevelShape shape(1'200'000, seeds);
    ASSERT_GT(shape.chunks(), 3u);
    Slots slots(shape);
    for (uint64_t chunk = 0; chunk + 1 < shape.chunks(); ++chunk) {
      const uint64_t next = slots.Begin(chunk + 1);
      std::vector<uint64_t> of_next;
      std::vector<uint64_t> of_seam;
      for (uint64_t slot = next; slot < next + shape.slice(); ++slot) {
        if (random.OneIn(3)) {
          of_next.push_back(slot);
          slots.Take(chunk + 1, slot);
        } else if (random.OneIn(3)) {
          of_seam.push_back(slot);
        }
      }
      slots.taken().AskNext(chunk);
      for (const uint64_t slot : of_next) ASSERT_TRUE(slots.IsTaken(chunk, slot)) << slot;
      for (const uint64_t slot : of_seam) ASSERT_FALSE(slots.IsTaken(chunk, slot)) << slot;
      for (const uint64_t slot : of_seam) slots.Take(chunk, slot);
      slots.taken().TellNext(chunk);
      for (const uint64_t slot : of_seam) ASSERT_TRUE(slots.IsTaken(chunk + 1, slot)) << slot;
      std::vector<uint64_t> holes;
      slots.taken().AppendHoles(chunk + 1, &holes);
      ASSERT_EQ(holes.size(),
                slots.End(chunk + 1) - slots.Begin(chunk + 1) - of_next.size() - of_seam.size());
    }
  }
}

}  // namespace
}  // namespace basalt::phash
