#include "vector/rotation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/test_dispatch.h"

namespace basalt::vector {
namespace {

std::vector<float> RandomFloats(size_t count, base::Random* random) {
  std::vector<float> floats(count);
  for (float& x : floats) x = static_cast<float>(random->NextDouble() * 2 - 1);
  return floats;
}

double SquaredLength(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

TEST(Rotation, KeepsLengthsAndDistances) {
  base::Random random(1);
  for (size_t dimension = 1; dimension <= 600; dimension += dimension < 70 ? 1 : 37) {
    const Rotation rotation(7, dimension);
    std::vector<float> a = RandomFloats(dimension, &random);
    std::vector<float> b = RandomFloats(dimension, &random);
    std::vector<float> difference(dimension);
    for (size_t i = 0; i < dimension; ++i) difference[i] = a[i] - b[i];
    const double length = SquaredLength(a);
    const double distance = SquaredLength(difference);
    rotation.Apply(a.data());
    rotation.Apply(b.data());
    for (size_t i = 0; i < dimension; ++i) difference[i] = a[i] - b[i];
    EXPECT_NEAR(SquaredLength(a), length, 1e-5 * length) << dimension;
    EXPECT_NEAR(SquaredLength(difference), distance, 1e-5 * distance) << dimension;
  }
}

// What one coordinate holds is then held by all, none of them much more than its share.
TEST(Rotation, SpreadsEachCoordinateOverAll) {
  for (const size_t dimension : {64u, 100u, 127u, 128u, 129u, 384u, 768u}) {
    const Rotation rotation(3, dimension);
    for (size_t i = 0; i < dimension; ++i) {
      std::vector<float> x(dimension);
      x[i] = 1;
      rotation.Apply(x.data());
      size_t held = 0;
      for (const float value : x) {
        EXPECT_LT(std::abs(value), 7 / std::sqrt(static_cast<float>(dimension))) << dimension;
        held += static_cast<size_t>(value != 0);
      }
      EXPECT_GT(held, dimension / 2) << dimension << ", coordinate " << i;
    }
  }
}

TEST(Rotation, GivesTheSameBitsByEveryInstructionSet) {
  base::Random random(2);
  for (size_t dimension = 1; dimension <= 400; ++dimension) {
    const Rotation rotation(5, dimension);
    const std::vector<float> input = RandomFloats(dimension, &random);
    const std::vector<float> centre = RandomFloats(dimension, &random);
    std::vector<float> expected;
    std::vector<uint8_t> expected_codes;
    size_t expected_beyond = 0;
    for (const int64_t target : base::DispatchTargets()) {
      const base::ForcedTarget forced(target);
      std::vector<float> x = input;
      rotation.Apply(x.data());
      std::vector<uint8_t> codes(dimension);
      const size_t beyond = QuantizeTo7Bits(x.data(), centre.data(), 40, dimension, codes.data());
      if (expected.empty()) {
        expected = x;
        expected_codes = codes;
        expected_beyond = beyond;
      }
      ASSERT_EQ(x, expected) << hwy::TargetName(target) << ", dimension " << dimension;
      ASSERT_EQ(codes, expected_codes) << hwy::TargetName(target) << ", dimension " << dimension;
      ASSERT_EQ(beyond, expected_beyond) << hwy::TargetName(target) << ", dimension " << dimension;
    }
  }
}

TEST(Rotation, QuantizesToTheNearestStepAndCountsWhatLiesBeyond) {
  const std::vector<float> x = {0, 0.49F, 0.5F, -0.01F, 31.4F, 32, -32, -32.1F, 1e9F, -1e9F};
  const std::vector<float> centre(x.size());
  std::vector<uint8_t> codes(x.size());
  EXPECT_EQ(QuantizeTo7Bits(x.data(), centre.data(), 2, x.size(), codes.data()), 4u);
  EXPECT_EQ(codes, (std::vector<uint8_t>{64, 64, 65, 63, 126, 127, 0, 0, 127, 0}));
}

}  // namespace
}  // namespace basalt::vector
