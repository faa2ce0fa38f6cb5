#pragma once

#include <cstddef>
#include <cstdint>

#include "basalt/status.h"

// Distances of vectors. Read VectorMetric first, then VectorDistance.

namespace basalt {

/// How the distance of two vectors is computed. Near vectors have a small distance.
enum class VectorMetric : uint8_t {
  kL2 = 0,            ///< The sum of the squared differences.
  kInnerProduct = 1,  ///< The inner product with its sign changed.
  kCosine = 2,        ///< 1 minus the cosine of the angle: 0 to 2. With a zero vector: 1.
  kHamming = 3,       ///< The number of bits that differ. Only for kBit, which has no other metric.
};

/// How an element of a vector is stored. Little-endian, one after the other, with any alignment.
enum class VectorElement : uint8_t {
  kFloat32 = 0,
  kFloat16 = 1,   ///< IEEE 754 binary16
  kBFloat16 = 2,  ///< the upper half of a float32
  kInt8 = 3,
  kUint8 = 4,
  kBit = 5,  ///< Element i is bit i % 8 of byte i / 8. Unused bits of the last byte are ignored.
};

/// The greatest number of elements. Sums of integers then stay within 31 bits.
inline constexpr size_t kVectorDimensionMax = 32'768;

/// Bytes of a vector.
constexpr size_t VectorBytes(VectorElement element, size_t dimension) noexcept {
  switch (element) {
    case VectorElement::kFloat32:
      return 4 * dimension;
    case VectorElement::kFloat16:
    case VectorElement::kBFloat16:
      return 2 * dimension;
    case VectorElement::kInt8:
    case VectorElement::kUint8:
      return dimension;
    case VectorElement::kBit:
      return (dimension + 7) / 8;
  }
  return 0;
}

namespace vector {
struct DistanceFunctions;
}  // namespace vector

/// Computes distances between vectors of one metric, element type and dimension, with the best
/// instructions of the processor.
///
///     auto distance = basalt::VectorDistance::Create(basalt::VectorMetric::kCosine,
///                                                    basalt::VectorElement::kFloat32, 384);
///     float near = (*distance)(a, b);
///     distance->ToRows(query, rows, 384 * sizeof(float), count, distances);
///
/// Distances of integers and bits are exact, then rounded to a float. Distances of floats are
/// summed as floats, in at least four parts. The error is at most
///
///     (dimension / 4 + 8) * 2^-23 * the sum of the magnitudes of all terms + dimension * 2^-126
///
/// The terms are the squares under kL2 and the products under kInnerProduct. Under kCosine the
/// error is at most 2 * (dimension / 4 + 8) * 2^-23. Processors differ within these bounds.
/// Elements must be finite; sums beyond the range of a float are infinite.
///
/// Immutable and thread-safe. A copy is two words.
class VectorDistance {
 public:
  /// InvalidArgument: the metric does not support the element type, or the dimension is not in 1 to
  /// kVectorDimensionMax.
  static Result<VectorDistance> Create(VectorMetric metric, VectorElement element,
                                       size_t dimension);

  /// From `a` to `b`, each of VectorBytes() bytes.
  float operator()(const void* a, const void* b) const noexcept {
    float distance;
    ToRows(a, b, 0, 1, &distance);
    return distance;
  }
  /// From `query` to `count` rows. Each row begins `stride` bytes after the one before. Faster than
  /// single calls; rows that are not in a cache are processed at the speed of memory.
  void ToRows(const void* query, const void* rows, size_t stride, size_t count,
              float* distances) const noexcept;
  /// From `query` to `count` rows at any addresses. The next rows are prefetched while one is
  /// compared.
  void ToEach(const void* query, const void* const* rows, size_t count,
              float* distances) const noexcept;

  size_t dimension() const noexcept { return dimension_; }

 private:
  VectorDistance(const vector::DistanceFunctions* functions, size_t dimension) noexcept
      : functions_(functions), dimension_(dimension) {}

  const vector::DistanceFunctions* functions_;
  size_t dimension_;
};

/// The instruction set that this process computes distances with, such as "AVX3" or "NEON".
const char* VectorInstructionSet() noexcept;

}  // namespace basalt
