#include "vector/candidate_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "base/random.h"

namespace basalt::vector {
namespace {

struct Expected {
  uint32_t distance;
  uint32_t slot;
  bool passes;
  bool is_expanded = false;

  friend bool operator<(const Expected& a, const Expected& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.slot < b.slot;
  }
};

// The same by sorting all and cutting.
class Model {
 public:
  explicit Model(size_t ef) : ef_(ef) {}

  uint32_t bound() const {
    return passing() < ef_ ? std::numeric_limits<uint32_t>::max() : all_.back().distance;
  }
  size_t passing() const {
    return static_cast<size_t>(std::ranges::count_if(all_, [](auto& e) { return e.passes; }));
  }
  void Add(uint32_t distance, uint32_t slot, bool passes) {
    all_.push_back({distance, slot, passes});
    std::sort(all_.begin(), all_.end());
    size_t passed = 0;
    for (size_t i = 0; i < all_.size(); ++i) {
      passed += static_cast<size_t>(all_[i].passes);
      if (passed == ef_) all_.resize(i + 1);
    }
  }
  bool Next(uint32_t* slot) {
    for (Expected& entry : all_) {
      if (entry.is_expanded) continue;
      entry.is_expanded = true;
      *slot = entry.slot;
      return true;
    }
    return false;
  }
  const std::vector<Expected>& all() const { return all_; }

 private:
  size_t ef_;
  std::vector<Expected> all_;
};

TEST(CandidatePool, HoldsTheNearestThatPassAndWhatLiesBetween) {
  CandidatePool pool;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Random random(seed);
    const size_t ef = random.Between(1, 20);
    const uint64_t passing_one_in = random.Between(1, 5);
    pool.Reset(ef);
    Model model(ef);
    for (uint32_t slot = 0; slot < 200; ++slot) {
      if (random.OneIn(3)) {
        uint32_t next = 0;
        uint32_t expected = 0;
        const uint32_t peeked = pool.Peek();
        const bool has_next = pool.Next(&next);
        ASSERT_EQ(has_next, model.Next(&expected)) << "seed " << seed;
        ASSERT_EQ(next, expected) << "seed " << seed;
        ASSERT_EQ(peeked, has_next ? next : CandidatePool::kNoEntry) << "seed " << seed;
      }
      const auto distance = static_cast<uint32_t>(random.Below(60));
      ASSERT_EQ(pool.bound(), model.bound()) << "seed " << seed;
      if (distance >= pool.bound()) continue;
      const bool passes = random.OneIn(passing_one_in);
      pool.Add(distance, slot, passes);
      model.Add(distance, slot, passes);
      ASSERT_EQ(pool.size(), model.all().size()) << "seed " << seed;
      ASSERT_EQ(pool.passing(), model.passing()) << "seed " << seed;
      for (size_t i = 0; i < pool.size(); ++i) {
        ASSERT_EQ(pool.At(i).slot(), model.all()[i].slot) << "seed " << seed;
        ASSERT_EQ(pool.At(i).distance(), model.all()[i].distance) << "seed " << seed;
        ASSERT_EQ(pool.At(i).passes(), model.all()[i].passes) << "seed " << seed;
      }
    }
  }
}

TEST(CandidatePool, KeepsTheGreatestSlotsAndDistances) {
  CandidatePool pool;
  pool.Reset(2);
  pool.Add(0xFFFF'FFFE, (1u << 30) - 1, true);
  EXPECT_EQ(pool.At(0).slot(), (1u << 30) - 1);
  EXPECT_EQ(pool.At(0).distance(), 0xFFFF'FFFE);
  uint32_t slot = 0;
  EXPECT_TRUE(pool.Next(&slot));
  EXPECT_EQ(slot, (1u << 30) - 1);
  EXPECT_EQ(pool.At(0).slot(), (1u << 30) - 1);
  EXPECT_FALSE(pool.Next(&slot));
}

}  // namespace
}  // namespace basalt::vector
