#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// A random rotation: it spreads what a few coordinates of a vector hold over all of them, so that
// all can be kept with the same few bits. Distances stay as they are.
//
// Of n coordinates, let p be the greatest power of two up to n. Three times: the sign of some
// coordinates is changed, as the seed says; the first p go through a Hadamard transform, and, where
// p is less than n, so do the last p. Each step is a sum or a difference of two floats, or a
// product with 1 / sqrt(p): every processor gives the same bits.
//
// Source: N. Ailon, B. Chazelle, "The fast Johnson-Lindenstrauss transform and approximate nearest
// neighbors" (2009), for one transform; repeating it is common practice.
//
// Cost: 3 or 6 times p log2(p) additions: 0.2 us for 128 coordinates, 1 us for 384.

namespace basalt::vector {

/// Immutable and thread-safe.
class Rotation {
 public:
  Rotation(uint64_t seed, size_t dimension);

  size_t dimension() const noexcept { return dimension_; }
  void Apply(float* coordinates) const noexcept;

 private:
  size_t dimension_;
  size_t steps_;
  std::vector<uint32_t> signs_;  ///< Of each step and coordinate: the sign bit, or nothing.
};

/// The nearest code of each coordinate: 64 + (coordinate - centre) * scale, rounded down, from 0 to
/// 127. Gives how many lay beyond.
size_t QuantizeTo7Bits(const float* coordinates, const float* centre, float scale, size_t count,
                       uint8_t* codes) noexcept;

}  // namespace basalt::vector
