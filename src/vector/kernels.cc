#include "vector/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

// Vectors of SVE have no size that a compiler knows: NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Compiled once for each instruction set; the processor's best is chosen when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "vector/rows.h"

#ifndef BASALT_VECTOR_KERNELS_ONCE
#define BASALT_VECTOR_KERNELS_ONCE

namespace basalt::vector {

inline float CosineDistance(double product, double query_square, double row_square) noexcept {
  const double lengths = std::sqrt(query_square * row_square);
  const double distance = lengths == 0 ? 1 : 1 - product / lengths;
  return static_cast<float>(distance < 0 ? 0 : distance > 2 ? 2 : distance);  // NaN stays.
}

inline float FromFloat16(uint16_t bits) noexcept {
  const uint32_t magnitude = bits & 0x7FFFu;
  const bool is_finite = magnitude < 0x7C00;
  // The exponent counts from -15 instead of -127, and is all ones for what is no finite number.
  const float scale = is_finite ? 0x1p112F : 1.0F;
  const uint32_t widened = (magnitude << 13) | (is_finite ? 0 : 0x7F80'0000u);
  const float result = std::bit_cast<float>(widened) * scale;
  return (bits & 0x8000) != 0 ? -result : result;
}

}  // namespace basalt::vector

#endif  // BASALT_VECTOR_KERNELS_ONCE

HWY_BEFORE_NAMESPACE();
namespace basalt::vector {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// Without vectors: the same sums in plain C++.

using Float32 = float;
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

inline float Widen(float element) noexcept { return element; }
inline float Widen(Float16 element) noexcept { return FromFloat16(element.bits); }
inline float Widen(BFloat16 element) noexcept {
  return std::bit_cast<float>(uint32_t{element.bits} << 16);
}
inline int32_t Widen(int8_t element) noexcept { return element; }
inline int32_t Widen(uint8_t element) noexcept { return element; }

struct Square {
  template <class Number>
  static Number Term(Number a, Number b) noexcept {
    return (a - b) * (a - b);
  }
};
struct Product {
  template <class Number>
  static Number Term(Number a, Number b) noexcept {
    return a * b;
  }
};

// Rows need not be aligned.
template <class Element>
auto At(const void* row, size_t i) noexcept {
  Element element;
  std::memcpy(&element, static_cast<const char*>(row) + i * sizeof(Element), sizeof(Element));
  return Widen(element);
}

template <class Op, class Element>
auto SumOf(const void* a, const void* b, size_t dimension) noexcept {
  decltype(Widen(Element())) sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= dimension; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      sums[j] += Op::Term(At<Element>(a, i + j), At<Element>(b, i + j));
    }
  }
  for (; i < dimension; ++i) sums[i % 4] += Op::Term(At<Element>(a, i), At<Element>(b, i));
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <VectorMetric metric, class Element, class Rows>
void Distances(const void* query, const Rows& rows, size_t dimension, float* distances) noexcept {
  double query_square = 0;
  if constexpr (metric == VectorMetric::kCosine) {
    query_square = static_cast<double>(SumOf<Product, Element>(query, query, dimension));
  }
  for (size_t i = 0; i < rows.count; ++i) {
    if constexpr (metric == VectorMetric::kL2) {
      distances[i] = static_cast<float>(SumOf<Square, Element>(query, rows[i], dimension));
    } else {
      const auto product = SumOf<Product, Element>(query, rows[i], dimension);
      if constexpr (metric == VectorMetric::kInnerProduct) {
        distances[i] = -static_cast<float>(product);
      } else {
        const auto square = SumOf<Product, Element>(rows[i], rows[i], dimension);
        distances[i] =
            CosineDistance(static_cast<double>(product), query_square, static_cast<double>(square));
      }
    }
  }
}

inline uint32_t DifferingBits(const uint8_t* a, const uint8_t* b, size_t bytes) noexcept {
  uint32_t bits = 0;
  for (size_t i = 0; i < bytes; ++i) {
    bits += static_cast<uint32_t>(std::popcount(static_cast<uint8_t>(a[i] ^ b[i])));
  }
  return bits;
}

template <class Rows>
void CodeDistances(const uint8_t* query, const Rows& rows, size_t bytes,
                   uint32_t* distances) noexcept {
  for (size_t i = 0; i < rows.count; ++i) {
    distances[i] = static_cast<uint32_t>(SumOf<Square, uint8_t>(query, rows[i], bytes));
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// A vector of the `count` elements behind the first `from`, fewer than its lanes, and zeros. `row`
// has from + count elements, and may have none before.
template <class D, class T = typename D::T>
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* row, size_t from, size_t count) noexcept {
#if HWY_MEM_OPS_MIGHT_FAULT
  const size_t lanes = hn::Lanes(d);
  if (from + count >= lanes) {
    const auto last = hn::LoadU(d, row + (from + count - lanes));
    return hn::IfThenZeroElse(hn::FirstN(d, lanes - count), last);
  }
  HWY_ALIGN T padded[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(padded, reinterpret_cast<const char*>(row) + from * sizeof(T), count * sizeof(T));
  return hn::Load(d, padded);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, row + from);
#endif
}

// Elements that are summed as floats. `from` counts elements; a vector has as many as floats fit.

struct Float32 {
  using Stored = float;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const float* row) noexcept {
    return hn::LoadU(d, row);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Rest(D d, const float* row, size_t from, size_t count) noexcept {
    return LoadRest(d, row, from, count);
  }
};

template <class Half>
struct HalfFloat {
  using Stored = uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const uint16_t* row) noexcept {
    const hn::Rebind<uint16_t, D> d16;
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<Half, D>(), hn::LoadU(d16, row)));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Rest(D d, const uint16_t* row, size_t from, size_t count) noexcept {
    const hn::Rebind<uint16_t, D> d16;
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<Half, D>(), LoadRest(d16, row, from, count)));
  }
};
using Float16 = HalfFloat<hwy::float16_t>;
using BFloat16 = HalfFloat<hwy::bfloat16_t>;

struct Square {
  template <class V>
  static HWY_INLINE V Add(V a, V b, V sum) noexcept {
    const V difference = hn::Sub(a, b);
    return hn::MulAdd(difference, difference, sum);
  }
};
struct Product {
  template <class V>
  static HWY_INLINE V Add(V a, V b, V sum) noexcept {
    return hn::MulAdd(a, b, sum);
  }
};

template <class V>
HWY_INLINE auto Fold(V v) noexcept {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(d) * sizeof(hn::TFromV<V>) > 16) {
    const hn::Half<decltype(d)> half;
    return Fold(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

// The sum of each vector's lanes.
template <class V>
HWY_INLINE void StoreSums(V a, V b, V c, V e, hn::TFromV<V>* sums) noexcept {
  const auto a4 = Fold(a);
  const auto b4 = Fold(b);
  const auto c4 = Fold(c);
  const auto e4 = Fold(e);
  const hn::DFromV<decltype(a4)> d;
  const auto ab = hn::Add(hn::InterleaveLower(d, a4, b4), hn::InterleaveUpper(d, a4, b4));
  const auto ce = hn::Add(hn::InterleaveLower(d, c4, e4), hn::InterleaveUpper(d, c4, e4));
  hn::StoreU(hn::Add(hn::ConcatLowerLower(d, ce, ab), hn::ConcatUpperUpper(d, ce, ab)), d, sums);
}
template <class V>
HWY_INLINE hn::TFromV<V> SumOfLanes(V v) noexcept {
  const auto folded = Fold(v);
  return hn::GetLane(hn::SumOfLanes(hn::DFromV<decltype(folded)>(), folded));
}

template <class Op, class Element>
HWY_INLINE float SumOf(const void* query, const void* row, size_t dimension) noexcept {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto* const q = static_cast<const typename Element::Stored*>(query);
  const auto* const r = static_cast<const typename Element::Stored*>(row);
  auto sum0 = hn::Zero(d);
  auto sum1 = sum0;
  auto sum2 = sum0;
  auto sum3 = sum0;
  size_t i = 0;
  for (; i + 4 * lanes <= dimension; i += 4 * lanes) {
    sum0 = Op::Add(Element::Load(d, q + i), Element::Load(d, r + i), sum0);
    sum1 = Op::Add(Element::Load(d, q + i + lanes), Element::Load(d, r + i + lanes), sum1);
    sum2 = Op::Add(Element::Load(d, q + i + 2 * lanes), Element::Load(d, r + i + 2 * lanes), sum2);
    sum3 = Op::Add(Element::Load(d, q + i + 3 * lanes), Element::Load(d, r + i + 3 * lanes), sum3);
  }
  for (; i + lanes <= dimension; i += lanes) {
    sum0 = Op::Add(Element::Load(d, q + i), Element::Load(d, r + i), sum0);
  }
  if (i < dimension) {
    sum1 =
        Op::Add(Element::Rest(d, q, i, dimension - i), Element::Rest(d, r, i, dimension - i), sum1);
  }
  return SumOfLanes(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
}

template <class Op, class Element>
HWY_INLINE void FourSums(const void* query, const void* const* rows, size_t dimension,
                         float* sums) noexcept {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  using Stored = typename Element::Stored;
  const auto* const q = static_cast<const Stored*>(query);
  const auto* const a = static_cast<const Stored*>(rows[0]);
  const auto* const b = static_cast<const Stored*>(rows[1]);
  const auto* const c = static_cast<const Stored*>(rows[2]);
  const auto* const e = static_cast<const Stored*>(rows[3]);
  auto a0 = hn::Zero(d), b0 = a0, c0 = a0, e0 = a0;
  auto a1 = a0, b1 = a0, c1 = a0, e1 = a0;
  size_t i = 0;
  for (; i + 2 * lanes <= dimension; i += 2 * lanes) {
    const auto q0 = Element::Load(d, q + i);
    const auto q1 = Element::Load(d, q + i + lanes);
    a0 = Op::Add(q0, Element::Load(d, a + i), a0);
    b0 = Op::Add(q0, Element::Load(d, b + i), b0);
    c0 = Op::Add(q0, Element::Load(d, c + i), c0);
    e0 = Op::Add(q0, Element::Load(d, e + i), e0);
    a1 = Op::Add(q1, Element::Load(d, a + i + lanes), a1);
    b1 = Op::Add(q1, Element::Load(d, b + i + lanes), b1);
    c1 = Op::Add(q1, Element::Load(d, c + i + lanes), c1);
    e1 = Op::Add(q1, Element::Load(d, e + i + lanes), e1);
  }
  if (i + lanes <= dimension) {
    const auto q0 = Element::Load(d, q + i);
    a0 = Op::Add(q0, Element::Load(d, a + i), a0);
    b0 = Op::Add(q0, Element::Load(d, b + i), b0);
    c0 = Op::Add(q0, Element::Load(d, c + i), c0);
    e0 = Op::Add(q0, Element::Load(d, e + i), e0);
    i += lanes;
  }
  if (i < dimension) {
    const size_t rest = dimension - i;
    const auto q0 = Element::Rest(d, q, i, rest);
    a1 = Op::Add(q0, Element::Rest(d, a, i, rest), a1);
    b1 = Op::Add(q0, Element::Rest(d, b, i, rest), b1);
    c1 = Op::Add(q0, Element::Rest(d, c, i, rest), c1);
    e1 = Op::Add(q0, Element::Rest(d, e, i, rest), e1);
  }
  StoreSums(hn::Add(a0, a1), hn::Add(b0, b1), hn::Add(c0, c1), hn::Add(e0, e1), sums);
}

// Elements that are summed as 32-bit integers: pairs of 16-bit products.

template <class D16, class V8>
HWY_INLINE hn::Vec<D16> LowerOf(D16 d16, V8 bytes) noexcept {
  using Element = hn::TFromV<V8>;
  const hn::DFromV<V8> d8;
  if constexpr (std::is_signed_v<Element>) {
    return hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveLower(d8, bytes, bytes)));
  } else {
    return hn::BitCast(d16, hn::InterleaveLower(d8, bytes, hn::Zero(d8)));
  }
}
template <class D16, class V8>
HWY_INLINE hn::Vec<D16> UpperOf(D16 d16, V8 bytes) noexcept {
  using Element = hn::TFromV<V8>;
  const hn::DFromV<V8> d8;
  if constexpr (std::is_signed_v<Element>) {
    return hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, bytes)));
  } else {
    return hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, hn::Zero(d8)));
  }
}

template <class D32>
struct IntegerSums {
  hn::Vec<D32> lower, lower_high, upper, upper_high;

  explicit HWY_INLINE IntegerSums(D32 d) noexcept
      : lower(hn::Zero(d)), lower_high(lower), upper(lower), upper_high(lower) {}
  template <class V8>
  HWY_INLINE void AddProduct(V8 a, V8 b) noexcept {
    const D32 d;
    const hn::Repartition<int16_t, D32> d16;
    lower = hn::ReorderWidenMulAccumulate(d, LowerOf(d16, a), LowerOf(d16, b), lower, lower_high);
    upper = hn::ReorderWidenMulAccumulate(d, UpperOf(d16, a), UpperOf(d16, b), upper, upper_high);
  }
  template <class V8>
  HWY_INLINE void AddSquare(V8 a, V8 b) noexcept {
    const hn::Repartition<uint8_t, D32> d8;
    const auto difference = hn::BitCast(d8, hn::Sub(hn::Max(a, b), hn::Min(a, b)));
    AddProduct(difference, difference);
  }
  HWY_INLINE hn::Vec<D32> Sum() const noexcept {
    return hn::Add(hn::Add(lower, lower_high), hn::Add(upper, upper_high));
  }
};

template <class Op, class Element, class Sums, class V8>
HWY_INLINE void AddIntegers(Sums* sums, V8 a, V8 b) noexcept {
  if constexpr (std::is_same_v<Op, Square>) {
    sums->AddSquare(a, b);
  } else {
    sums->AddProduct(a, b);
  }
}

template <class Op, class Element>
HWY_INLINE int32_t IntegerSumOf(const void* query, const void* row, size_t dimension) noexcept {
  const hn::ScalableTag<int32_t> d;
  const hn::Repartition<Element, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d8);
  const auto* const q = static_cast<const Element*>(query);
  const auto* const r = static_cast<const Element*>(row);
  IntegerSums<decltype(d)> even(d);
  IntegerSums<decltype(d)> odd(d);
  size_t i = 0;
  for (; i + 2 * lanes <= dimension; i += 2 * lanes) {
    AddIntegers<Op, Element>(&even, hn::LoadU(d8, q + i), hn::LoadU(d8, r + i));
    AddIntegers<Op, Element>(&odd, hn::LoadU(d8, q + i + lanes), hn::LoadU(d8, r + i + lanes));
  }
  if (i + lanes <= dimension) {
    AddIntegers<Op, Element>(&even, hn::LoadU(d8, q + i), hn::LoadU(d8, r + i));
    i += lanes;
  }
  if (i < dimension) {
    AddIntegers<Op, Element>(&odd, LoadRest(d8, q, i, dimension - i),
                             LoadRest(d8, r, i, dimension - i));
  }
  return SumOfLanes(hn::Add(even.Sum(), odd.Sum()));
}

template <class Element>
inline constexpr bool kIsInteger = std::is_integral_v<Element>;

template <class Op, class Element>
HWY_INLINE auto OneSum(const void* query, const void* row, size_t dimension) noexcept {
  if constexpr (kIsInteger<Element>) {
    return IntegerSumOf<Op, Element>(query, row, dimension);
  } else {
    return SumOf<Op, Element>(query, row, dimension);
  }
}

// Each distance is one sum of terms.
template <class Op, class Element, class Rows>
HWY_INLINE void Sums(const void* query, const Rows& rows, size_t dimension, float* sums) noexcept {
  size_t i = 0;
  size_t bytes = dimension;
  if constexpr (!kIsInteger<Element>) bytes *= sizeof(typename Element::Stored);
  rows.PrefetchFirst(bytes);
  if constexpr (!kIsInteger<Element>) {
    for (const size_t end = rows.FourAtATime(); i < end; i += 4) {
      rows.PrefetchBehind(i, 4, bytes);
      const void* const four[] = {rows[i], rows[i + 1], rows[i + 2], rows[i + 3]};
      FourSums<Op, Element>(query, four, dimension, sums + i);
    }
  }
  for (; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    sums[i] = static_cast<float>(OneSum<Op, Element>(query, rows[i], dimension));
  }
}

template <VectorMetric metric, class Element, class Rows>
HWY_INLINE void Distances(const void* query, const Rows& rows, size_t dimension,
                          float* distances) noexcept {
  if constexpr (metric == VectorMetric::kL2) {
    Sums<Square, Element>(query, rows, dimension, distances);
  } else if constexpr (metric == VectorMetric::kInnerProduct) {
    Sums<Product, Element>(query, rows, dimension, distances);
    for (size_t i = 0; i < rows.count; ++i) distances[i] = -distances[i];
  } else {
    const auto query_square = OneSum<Product, Element>(query, query, dimension);
    for (size_t i = 0; i < rows.count; ++i) {
      const auto product = OneSum<Product, Element>(query, rows[i], dimension);
      const auto square = OneSum<Product, Element>(rows[i], rows[i], dimension);
      distances[i] = CosineDistance(product, query_square, square);
    }
  }
}

HWY_INLINE uint32_t DifferingBits(const uint8_t* a, const uint8_t* b, size_t bytes) noexcept {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d8);
  auto bits = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    const auto differing = hn::Xor(hn::LoadU(d8, a + i), hn::LoadU(d8, b + i));
    bits = hn::Add(bits, hn::SumsOf8(hn::PopulationCount(differing)));
  }
  if (i < bytes) {
    const auto differing = hn::Xor(LoadRest(d8, a, i, bytes - i), LoadRest(d8, b, i, bytes - i));
    bits = hn::Add(bits, hn::SumsOf8(hn::PopulationCount(differing)));
  }
  return static_cast<uint32_t>(SumOfLanes(bits));
}

// The sum of the squares of each four of the differences, which have 7 bits.
template <class D32, class V8>
HWY_INLINE hn::Vec<D32> AddCodes(D32 d, V8 a, V8 b, hn::Vec<D32> sum) noexcept {
  const hn::Repartition<int8_t, D32> d8;
  const auto difference = hn::Abs(hn::Sub(hn::BitCast(d8, a), hn::BitCast(d8, b)));
#if HWY_TARGET == HWY_AVX3
  const __m512i pairs = _mm512_maddubs_epi16(difference.raw, difference.raw);
  return hn::Add(sum, hn::Vec<D32>{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
#elif HWY_TARGET == HWY_AVX2
  const __m256i pairs = _mm256_maddubs_epi16(difference.raw, difference.raw);
  return hn::Add(sum, hn::Vec<D32>{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  const __m128i pairs = _mm_maddubs_epi16(difference.raw, difference.raw);
  return hn::Add(sum, hn::Vec<D32>{_mm_madd_epi16(pairs, _mm_set1_epi16(1))});
#else
  IntegerSums<D32> sums(d);
  sums.AddProduct(difference, difference);
  return hn::Add(sum, sums.Sum());
#endif
}

HWY_INLINE void FourCodeSums(const uint8_t* query, const void* const* rows, size_t bytes,
                             int32_t* sums) noexcept {
  const hn::ScalableTag<int32_t> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d8);
  const auto* const a = static_cast<const uint8_t*>(rows[0]);
  const auto* const b = static_cast<const uint8_t*>(rows[1]);
  const auto* const c = static_cast<const uint8_t*>(rows[2]);
  const auto* const e = static_cast<const uint8_t*>(rows[3]);
  auto a0 = hn::Zero(d), b0 = a0, c0 = a0, e0 = a0;
  size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    const auto q0 = hn::LoadU(d8, query + i);
    a0 = AddCodes(d, q0, hn::LoadU(d8, a + i), a0);
    b0 = AddCodes(d, q0, hn::LoadU(d8, b + i), b0);
    c0 = AddCodes(d, q0, hn::LoadU(d8, c + i), c0);
    e0 = AddCodes(d, q0, hn::LoadU(d8, e + i), e0);
  }
  if (i < bytes) {
    const size_t rest = bytes - i;
    const auto q0 = LoadRest(d8, query, i, rest);
    a0 = AddCodes(d, q0, LoadRest(d8, a, i, rest), a0);
    b0 = AddCodes(d, q0, LoadRest(d8, b, i, rest), b0);
    c0 = AddCodes(d, q0, LoadRest(d8, c, i, rest), c0);
    e0 = AddCodes(d, q0, LoadRest(d8, e, i, rest), e0);
  }
  StoreSums(a0, b0, c0, e0, sums);
}

HWY_INLINE int32_t OneCodeSum(const uint8_t* query, const void* row, size_t bytes) noexcept {
  const hn::ScalableTag<int32_t> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d8);
  const auto* const r = static_cast<const uint8_t*>(row);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    sum = AddCodes(d, hn::LoadU(d8, query + i), hn::LoadU(d8, r + i), sum);
  }
  if (i < bytes) {
    sum = AddCodes(d, LoadRest(d8, query, i, bytes - i), LoadRest(d8, r, i, bytes - i), sum);
  }
  return SumOfLanes(sum);
}

template <class Rows>
HWY_INLINE void CodeDistances(const uint8_t* query, const Rows& rows, size_t bytes,
                              uint32_t* distances) noexcept {
  rows.PrefetchFirst(bytes);
  size_t i = 0;
  for (const size_t end = rows.FourAtATime(); i < end; i += 4) {
    rows.PrefetchBehind(i, 4, bytes);
    const void* const four[] = {rows[i], rows[i + 1], rows[i + 2], rows[i + 3]};
    int32_t sums[4];
    FourCodeSums(query, four, bytes, sums);
    std::memcpy(distances + i, sums, sizeof sums);
  }
  for (; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    distances[i] = static_cast<uint32_t>(OneCodeSum(query, rows[i], bytes));
  }
}

#endif

template <class Rows>
HWY_INLINE void HammingDistances(const void* query, const Rows& rows, size_t dimension,
                                 float* distances) noexcept {
  const auto* const q = static_cast<const uint8_t*>(query);
  const size_t bytes = dimension / 8;
  const auto last_mask = static_cast<uint8_t>((1u << dimension % 8) - 1);
  rows.PrefetchFirst(bytes);
  for (size_t i = 0; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    const auto* const r = static_cast<const uint8_t*>(rows[i]);
    uint32_t bits = DifferingBits(q, r, bytes);
    if (last_mask != 0) {
      const auto last = static_cast<uint8_t>((q[bytes] ^ r[bytes]) & last_mask);
      bits += static_cast<uint32_t>(std::popcount(last));
    }
    distances[i] = static_cast<float>(bits);
  }
}

// What stands in the table.

template <VectorMetric metric, class Element>
void ToRows(const void* query, const void* rows, size_t stride, size_t count, size_t dimension,
            float* distances) noexcept {
  Distances<metric, Element>(query, StridedRows{rows, stride, count}, dimension, distances);
}
template <VectorMetric metric, class Element>
void ToEach(const void* query, const void* const* rows, size_t count, size_t dimension,
            float* distances) noexcept {
  Distances<metric, Element>(query, GatheredRows{rows, count}, dimension, distances);
}
void BitsToRows(const void* query, const void* rows, size_t stride, size_t count, size_t dimension,
                float* distances) noexcept {
  HammingDistances(query, StridedRows{rows, stride, count}, dimension, distances);
}
void BitsToEach(const void* query, const void* const* rows, size_t count, size_t dimension,
                float* distances) noexcept {
  HammingDistances(query, GatheredRows{rows, count}, dimension, distances);
}
void CodeToRows(const uint8_t* query, const uint8_t* rows, size_t stride, size_t count,
                size_t bytes, uint32_t* distances) noexcept {
  CodeDistances(query, StridedRows{rows, stride, count}, bytes, distances);
}
void CodeToEach(const uint8_t* query, const uint8_t* const* rows, size_t count, size_t bytes,
                uint32_t* distances) noexcept {
  CodeDistances(query, GatheredRows{reinterpret_cast<const void* const*>(rows), count}, bytes,
                distances);
}

template <class Element>
constexpr std::array<DistanceFunctions, Kernels::kMetrics> OfElement() noexcept {
  return {DistanceFunctions{ToRows<VectorMetric::kL2, Element>, ToEach<VectorMetric::kL2, Element>},
          DistanceFunctions{ToRows<VectorMetric::kInnerProduct, Element>,
                            ToEach<VectorMetric::kInnerProduct, Element>},
          DistanceFunctions{ToRows<VectorMetric::kCosine, Element>,
                            ToEach<VectorMetric::kCosine, Element>}};
}

Kernels MakeKernels() {
  return {.instruction_set = hwy::TargetName(HWY_TARGET),
          .numbers = {OfElement<Float32>(), OfElement<Float16>(), OfElement<BFloat16>(),
                      OfElement<int8_t>(), OfElement<uint8_t>()},
          .hamming = {BitsToRows, BitsToEach},
          .codes = {CodeToRows, CodeToEach}};
}

}  // namespace HWY_NAMESPACE
}  // namespace basalt::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace basalt::vector {

HWY_EXPORT(MakeKernels);

Kernels ChosenKernels() noexcept { return HWY_DYNAMIC_DISPATCH(MakeKernels)(); }

const Kernels& ProcessorKernels() noexcept {
  static const Kernels kernels = [] {
    Kernels chosen = ChosenKernels();
    AddAvx512Extensions(&chosen);
    return chosen;
  }();
  return kernels;
}

const DistanceFunctions* Kernels::Find(VectorMetric metric, VectorElement element) const noexcept {
  const auto m = static_cast<size_t>(metric);
  const auto e = static_cast<size_t>(element);
  if (element == VectorElement::kBit) return metric == VectorMetric::kHamming ? &hamming : nullptr;
  return m < kMetrics && e < kNumberTypes ? &numbers[e][m] : nullptr;
}

}  // namespace basalt::vector

#endif  // HWY_ONCE
