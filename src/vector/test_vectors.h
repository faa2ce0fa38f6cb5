#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "basalt/vector.h"
#include "base/random.h"

// Vectors for tests, and what their distances are.

namespace basalt::vector {

inline double Float16ToDouble(uint16_t bits) noexcept {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(0x400 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class Element>
Element ElementAt(const void* vector, size_t i) noexcept {
  Element element;
  std::memcpy(&element, static_cast<const char*>(vector) + i * sizeof(Element), sizeof(Element));
  return element;
}

/// An element as a number, without rounding.
inline double NumberAt(VectorElement element, const void* vector, size_t i) noexcept {
  switch (element) {
    case VectorElement::kFloat32:
      return ElementAt<float>(vector, i);
    case VectorElement::kFloat16:
      return Float16ToDouble(ElementAt<uint16_t>(vector, i));
    case VectorElement::kBFloat16:
      return std::bit_cast<float>(uint32_t{ElementAt<uint16_t>(vector, i)} << 16);
    case VectorElement::kInt8:
      return ElementAt<int8_t>(vector, i);
    case VectorElement::kUint8:
      return ElementAt<uint8_t>(vector, i);
    case VectorElement::kBit:
      return ElementAt<uint8_t>(vector, i / 8) >> (i % 8) & 1;
  }
  return 0;
}

/// A distance in float64, and how far from it the library's may lie.
struct Reference {
  double distance;
  double bound;
};

inline Reference ReferenceDistance(VectorMetric metric, VectorElement element, const void* a,
                                   const void* b, size_t dimension) noexcept {
  double square = 0;
  double product = 0;
  double magnitude = 0;
  double a_square = 0;
  double b_square = 0;
  for (size_t i = 0; i < dimension; ++i) {
    const double x = NumberAt(element, a, i);
    const double y = NumberAt(element, b, i);
    square += (x - y) * (x - y);
    product += x * y;
    magnitude += std::abs(x * y);
    a_square += x * x;
    b_square += y * y;
  }
  const bool is_float = element <= VectorElement::kBFloat16;
  const double n = static_cast<double>(dimension);
  const double relative = is_float ? (n / 4 + 8) * 0x1p-23 : 0x1p-24;
  const double absolute = is_float ? n * 0x1p-126 : 0;
  switch (metric) {
    case VectorMetric::kL2:
      return {square, relative * square + absolute};
    case VectorMetric::kInnerProduct:
      return {-product, relative * magnitude + absolute};
    case VectorMetric::kCosine: {
      const double lengths = std::sqrt(a_square) * std::sqrt(b_square);
      // Of a distance up to 2.
      const double bound = is_float ? 2 * relative : 0x1p-23;
      return {lengths == 0 ? 1 : std::clamp(1 - product / lengths, 0.0, 2.0), bound};
    }
    case VectorMetric::kHamming:
      return {square, 0};
  }
  return {};
}

/// Elements of both signs and of many magnitudes, among them zeros and the greatest and least of
/// integers.
inline std::vector<uint8_t> RandomVector(VectorElement element, size_t dimension,
                                         base::Random* random) {
  std::vector<uint8_t> bytes(VectorBytes(element, dimension));
  if (element >= VectorElement::kInt8) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random->Next());
    if (random->OneIn(4)) std::ranges::fill(bytes, static_cast<uint8_t>(random->Next()));
    return bytes;
  }
  const double scale = std::ldexp(1, static_cast<int>(random->Below(9)) - 4);
  for (size_t i = 0; i < dimension; ++i) {
    const auto value = static_cast<float>((random->NextDouble() * 2 - 1) * scale);
    if (element == VectorElement::kFloat32) {
      std::memcpy(bytes.data() + 4 * i, &value, 4);
      continue;
    }
    uint16_t half = 0;
    if (element == VectorElement::kBFloat16) {
      half = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    } else {
      do {
        half = static_cast<uint16_t>(random->Next());
      } while ((half & 0x7C00) > 0x5000);  // Up to 63.
    }
    std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  return bytes;
}

inline double Gaussian(base::Random* random) {
  const double radius = std::sqrt(-2 * std::log(1 - random->NextDouble()));
  return radius * std::cos(6.283185307179586 * random->NextDouble());
}

/// Draws vectors around some centres.
class Clusters {
 public:
  Clusters(size_t centres, size_t dimension, double spread, base::Random* random)
      : dimension_(dimension), spread_(spread), random_(random) {
    for (size_t i = 0; i < centres * dimension; ++i) {
      centres_.push_back(static_cast<float>(Gaussian(random)));
    }
  }
  std::vector<float> Next() {
    const size_t first = random_->Below(centres_.size() / dimension_) * dimension_;
    std::vector<float> vector(dimension_);
    for (size_t i = 0; i < dimension_; ++i) {
      vector[i] = centres_[first + i] + static_cast<float>(Gaussian(random_) * spread_);
    }
    return vector;
  }

 private:
  size_t dimension_;
  double spread_;
  base::Random* random_;
  std::vector<float> centres_;
};

}  // namespace basalt::vector
