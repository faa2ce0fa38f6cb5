#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "basalt/vector.h"
#include "vector/kernels.h"
#include "vector/rotation.h"

// How vectors become codes of a byte a coordinate, whose L2 distances stand for those of the
// metric. A search compares codes, which are a quarter as long, and only the nearest ones' vectors.
//
// A vector is first made one whose L2 distances order as the metric's do:
//
//   L2              itself
//   cosine          divided by its length: the L2 distance is twice the cosine's
//   inner product   with one more coordinate, sqrt(M^2 - its length^2), M being the greatest length
//                   of the sample; a query has 0 there. The L2 distance is M^2 + |query|^2 - 2 *
//                   the product. (S. Bachrach et al., "Speeding up the Xbox recommender system",
//                   2014.) A longer vector gets 0 and looks a little too near; what is returned is
//                   exact.
//
// It is rotated (rotation.h), and each coordinate becomes 64 + (x - centre) / step, from 0 to 127.
// The centre is the sample's mean, and one step serves all coordinates: that which makes the error
// of the sample's coordinates least. The two ends mean anything beyond, so that data that no longer
// look like the sample are only found less well: Encode counts coordinates beyond, and whoever sees
// many makes a new code book.
//
// Seven bits and no more: then the squares of four differences are summed in one step by VNNI, and
// in two by AVX2 and SSE.
//
// Serialised (little-endian):
//
//   u8 metric | u8[3] 0 | u32 dimension | u64 seed | f32 step | f32 norm_max | f32 error | u32 0 |
//   f32 centre, one a coordinate
//
// `error` is the mean square of what a coordinate is off by.
//
// Cost of a code: a copy, the rotation, one pass: 0.3 us for 128 coordinates.

namespace basalt::vector {

/// Immutable and thread-safe.
class CodeBook {
 public:
  /// From a sample of `rows` vectors of `dimension` floats, one behind the other; at least one. A
  /// thousand are as good as more. InvalidArgument: the metric has no floats, or the dimension is
  /// not in 1 to kVectorDimensionMax. Throws std::bad_alloc.
  static Result<CodeBook> Fit(VectorMetric metric, size_t dimension, uint64_t seed,
                              const float* sample, size_t rows);
  /// Reads what AppendTo wrote, and takes it from the front of `bytes`. Corruption: it is not that.
  static Result<CodeBook> Parse(std::string_view* bytes);
  void AppendTo(std::string* out) const;

  VectorMetric metric() const noexcept { return metric_; }
  size_t dimension() const noexcept { return dimension_; }
  /// Of a code; a multiple of kCodeAlignment.
  size_t code_bytes() const noexcept { return code_bytes_; }
  uint64_t seed() const noexcept { return seed_; }

  /// Memory that Encode needs.
  size_t scratch_floats() const noexcept { return rotation_.dimension(); }
  /// The code of a vector of dimension() floats. Gives how many coordinates lay beyond the ends.
  size_t Encode(const float* vector, uint8_t* code, float* scratch) const noexcept;
  /// The code by which a vector is looked for, and what turns distances of codes into its own.
  struct Query {
    double scale;  ///< The metric's distance is about scale * (code distance - bias) + offset.
    double bias;   ///< What the errors of two codes add to their distance.
    double offset;
    double spread;  ///< The standard deviation of a distance's square root.
  };
  Query EncodeQuery(const float* vector, uint8_t* code, float* scratch) const noexcept;

  /// What the metric's distance is about, and what it hardly ever is below, when the codes' is.
  static double Distance(const Query& query, uint32_t code_distance) noexcept;
  static double DistanceAtLeast(const Query& query, uint32_t code_distance) noexcept;
  /// The code distance that a distance of at most `distance` hardly ever exceeds.
  static uint32_t CodeDistanceAtMost(const Query& query, double distance) noexcept;

 private:
  CodeBook(VectorMetric metric, size_t dimension, uint64_t seed);
  /// Puts a vector's coordinates into `out`, not yet rotated; gives its squared length.
  double Transform(const float* vector, bool is_query, float* out) const noexcept;
  void Pad(uint8_t* code) const noexcept;

  VectorMetric metric_;
  size_t dimension_;
  size_t code_bytes_;
  uint64_t seed_;
  float step_ = 1;
  float norm_max_ = 0;
  float error_ = 0;
  std::vector<float> centre_;
  Rotation rotation_;
};

}  // namespace basalt::vector
