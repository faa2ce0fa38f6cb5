#include "vector/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "vector/rows.h"
#endif

// What processors with AVX-512 may have beyond it, each asked for by itself:
//
//   VNNI        four products of 8-bit numbers, or two of 16-bit ones, added to a 32-bit sum at
//   once:
//               codes, and the sums of 8-bit integers
//   BF16        two products of bfloat16 added to a float at once: their inner product
//   VPOPCNTDQ   the bits of 64-bit numbers counted: Hamming
//
// AVX512-FP16 is not used: its sums have 11 bits. Plain AVX-512 widens float16 as it loads it.

namespace basalt::vector {

#if defined(__x86_64__)

// g++ warns about the vectors that its own intrinsics leave undefined (GCC bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace {

// Highway's macros set the instruction set for a part of a file; here it differs by function.
#define BASALT_AVX512_SET "avx512f,avx512bw,avx512dq,avx512vl,bmi2"
#define BASALT_AVX512 __attribute__((target(BASALT_AVX512_SET)))
#define BASALT_VNNI __attribute__((target(BASALT_AVX512_SET ",avx512vnni")))
#define BASALT_BF16 __attribute__((target(BASALT_AVX512_SET ",avx512bf16")))
#define BASALT_POPCNT __attribute__((target(BASALT_AVX512_SET ",avx512vpopcntdq")))
#define BASALT_INLINE inline __attribute__((always_inline))

constexpr size_t kVectorBytes = 64;

BASALT_AVX512 BASALT_INLINE __m512i LoadBytes(const void* at) noexcept {
  return _mm512_loadu_si512(at);
}
// `count` bytes, fewer than a vector has, and zeros.
BASALT_AVX512 BASALT_INLINE __m512i LoadBytes(const void* at, size_t count) noexcept {
  return _mm512_maskz_loadu_epi8(_bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(count)), at);
}

BASALT_AVX512 BASALT_INLINE __m512i LoadUpTo(const void* at, size_t count) noexcept {
  return count == kVectorBytes ? LoadBytes(at) : LoadBytes(at, count);
}

BASALT_AVX512 BASALT_INLINE __m128 Fold(__m512 v) noexcept {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
BASALT_AVX512 BASALT_INLINE __m128i Fold(__m512i v) noexcept {
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// Each Add adds what two vectors of bytes give to a vector of sums. `Correction` is what the sum of
// a whole row then lacks, which depends on the query alone.

struct CodeSquares {
  BASALT_VNNI static BASALT_INLINE __m512i Add(__m512i query, __m512i row, __m512i sum) noexcept {
    const __m512i difference = _mm512_abs_epi8(_mm512_sub_epi8(query, row));
    return _mm512_dpbusd_epi32(sum, difference, difference);
  }
  static int32_t Correction(const uint8_t*, size_t) noexcept { return 0; }
};

// The squares of differences of 8 bits.
BASALT_VNNI BASALT_INLINE __m512i AddSquares(__m512i difference, __m512i sum) noexcept {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i lower = _mm512_unpacklo_epi8(difference, zero);
  const __m512i upper = _mm512_unpackhi_epi8(difference, zero);
  return _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sum, lower, lower), upper, upper);
}
struct UnsignedSquares {
  BASALT_VNNI static BASALT_INLINE __m512i Add(__m512i query, __m512i row, __m512i sum) noexcept {
    return AddSquares(_mm512_sub_epi8(_mm512_max_epu8(query, row), _mm512_min_epu8(query, row)),
                      sum);
  }
  static int32_t Correction(const uint8_t*, size_t) noexcept { return 0; }
};
struct SignedSquares {
  BASALT_VNNI static BASALT_INLINE __m512i Add(__m512i query, __m512i row, __m512i sum) noexcept {
    return AddSquares(_mm512_sub_epi8(_mm512_max_epi8(query, row), _mm512_min_epi8(query, row)),
                      sum);
  }
  static int32_t Correction(const uint8_t*, size_t) noexcept { return 0; }
};

// One factor of dpbusd is signed, the other is not: the row is moved by 128 to be what the query is
// not.
struct UnsignedProducts {
  BASALT_VNNI static BASALT_INLINE __m512i Add(__m512i query, __m512i row, __m512i sum) noexcept {
    return _mm512_dpbusd_epi32(sum, query, _mm512_xor_si512(row, _mm512_set1_epi8(-128)));
  }
  static int32_t Correction(const uint8_t* query, size_t bytes) noexcept {
    int32_t sum = 0;
    for (size_t i = 0; i < bytes; ++i) sum += query[i];
    return 128 * sum;
  }
};
struct SignedProducts {
  BASALT_VNNI static BASALT_INLINE __m512i Add(__m512i query, __m512i row, __m512i sum) noexcept {
    return _mm512_dpbusd_epi32(sum, _mm512_xor_si512(row, _mm512_set1_epi8(-128)), query);
  }
  static int32_t Correction(const uint8_t* query, size_t bytes) noexcept {
    int32_t sum = 0;
    for (size_t i = 0; i < bytes; ++i) sum += static_cast<int8_t>(query[i]);
    return -128 * sum;
  }
};

struct FourRows {
  const uint8_t *a, *b, *c, *d;

  template <class Rows>
  BASALT_INLINE FourRows(const Rows& rows, size_t i) noexcept
      : a(At(rows, i)), b(At(rows, i + 1)), c(At(rows, i + 2)), d(At(rows, i + 3)) {}

 private:
  template <class Rows>
  static BASALT_INLINE const uint8_t* At(const Rows& rows, size_t i) noexcept {
    return static_cast<const uint8_t*>(rows[i]);
  }
};

template <class Op>
BASALT_VNNI BASALT_INLINE __m128i FourSums(const uint8_t* query, const FourRows& rows,
                                           size_t bytes) noexcept {
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  __m512i c = a;
  __m512i d = a;
  size_t i = 0;
  for (; i + kVectorBytes <= bytes; i += kVectorBytes) {
    const __m512i q = LoadBytes(query + i);
    a = Op::Add(q, LoadBytes(rows.a + i), a);
    b = Op::Add(q, LoadBytes(rows.b + i), b);
    c = Op::Add(q, LoadBytes(rows.c + i), c);
    d = Op::Add(q, LoadBytes(rows.d + i), d);
  }
  if (i < bytes) {
    const __m512i q = LoadBytes(query + i, bytes - i);
    a = Op::Add(q, LoadBytes(rows.a + i, bytes - i), a);
    b = Op::Add(q, LoadBytes(rows.b + i, bytes - i), b);
    c = Op::Add(q, LoadBytes(rows.c + i, bytes - i), c);
    d = Op::Add(q, LoadBytes(rows.d + i, bytes - i), d);
  }
  return _mm_hadd_epi32(_mm_hadd_epi32(Fold(a), Fold(b)), _mm_hadd_epi32(Fold(c), Fold(d)));
}

template <class Op>
BASALT_VNNI BASALT_INLINE int32_t OneSum(const uint8_t* query, const void* row,
                                         size_t bytes) noexcept {
  const auto* const r = static_cast<const uint8_t*>(row);
  __m512i even = _mm512_setzero_si512();
  __m512i odd = even;
  size_t i = 0;
  for (; i + 2 * kVectorBytes <= bytes; i += 2 * kVectorBytes) {
    even = Op::Add(LoadBytes(query + i), LoadBytes(r + i), even);
    odd = Op::Add(LoadBytes(query + i + kVectorBytes), LoadBytes(r + i + kVectorBytes), odd);
  }
  if (i + kVectorBytes <= bytes) {
    even = Op::Add(LoadBytes(query + i), LoadBytes(r + i), even);
    i += kVectorBytes;
  }
  if (i < bytes) odd = Op::Add(LoadBytes(query + i, bytes - i), LoadBytes(r + i, bytes - i), odd);
  const __m128i sum = Fold(_mm512_add_epi32(even, odd));
  return _mm_cvtsi128_si32(_mm_hadd_epi32(_mm_hadd_epi32(sum, sum), sum));
}

template <class Rows>
BASALT_VNNI BASALT_INLINE void CodeDistances(const uint8_t* query, const Rows& rows, size_t bytes,
                                             uint32_t* distances) noexcept {
  rows.PrefetchFirst(bytes);
  size_t i = 0;
  for (const size_t end = rows.FourAtATime(); i < end; i += 4) {
    rows.PrefetchBehind(i, 4, bytes);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(distances + i),
                     FourSums<CodeSquares>(query, FourRows(rows, i), bytes));
  }
  for (; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    distances[i] = static_cast<uint32_t>(OneSum<CodeSquares>(query, rows[i], bytes));
  }
}

template <class Op, bool negated, class Rows>
BASALT_VNNI BASALT_INLINE void ByteDistances(const void* query, const Rows& rows, size_t bytes,
                                             float* distances) noexcept {
  const auto* const q = static_cast<const uint8_t*>(query);
  const int32_t correction = Op::Correction(q, bytes);
  rows.PrefetchFirst(bytes);
  size_t i = 0;
  for (const size_t end = rows.FourAtATime(); i < end; i += 4) {
    rows.PrefetchBehind(i, 4, bytes);
    __m128i sums =
        _mm_add_epi32(FourSums<Op>(q, FourRows(rows, i), bytes), _mm_set1_epi32(correction));
    if constexpr (negated) sums = _mm_sub_epi32(_mm_setzero_si128(), sums);
    _mm_storeu_ps(distances + i, _mm_cvtepi32_ps(sums));
  }
  for (; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    const int32_t sum = OneSum<Op>(q, rows[i], bytes) + correction;
    distances[i] = static_cast<float>(negated ? -sum : sum);
  }
}

BASALT_BF16 BASALT_INLINE __m512 AddBFloat16(const uint8_t* query, const uint8_t* row, size_t bytes,
                                             __m512 sum) noexcept {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(LoadUpTo(query, bytes)),
                          reinterpret_cast<__m512bh>(LoadUpTo(row, bytes)));
}

template <class Rows>
BASALT_BF16 BASALT_INLINE void BFloat16Products(const void* query, const Rows& rows,
                                                size_t dimension, float* distances) noexcept {
  const auto* const q = static_cast<const uint8_t*>(query);
  const size_t bytes = 2 * dimension;
  rows.PrefetchFirst(bytes);
  for (size_t i = 0; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    const auto* const r = static_cast<const uint8_t*>(rows[i]);
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                      _mm512_setzero_ps()};
    size_t at = 0;
    for (; at + 4 * kVectorBytes <= bytes; at += 4 * kVectorBytes) {
      for (size_t j = 0; j < 4; ++j) {
        const size_t part = at + j * kVectorBytes;
        sums[j] = AddBFloat16(q + part, r + part, kVectorBytes, sums[j]);
      }
    }
    for (; at < bytes; at += kVectorBytes) {
      sums[0] = AddBFloat16(q + at, r + at, std::min(bytes - at, kVectorBytes), sums[0]);
    }
    const __m128 sum =
        Fold(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
    distances[i] = -_mm_cvtss_f32(_mm_hadd_ps(_mm_hadd_ps(sum, sum), sum));
  }
}

template <class Rows>
BASALT_POPCNT BASALT_INLINE void HammingDistances(const void* query, const Rows& rows,
                                                  size_t dimension, float* distances) noexcept {
  const auto* const q = static_cast<const uint8_t*>(query);
  const size_t bytes = dimension / 8;
  const auto last_mask = static_cast<uint8_t>((1u << dimension % 8) - 1);
  rows.PrefetchFirst(bytes);
  for (size_t i = 0; i < rows.count; ++i) {
    rows.PrefetchBehind(i, 1, bytes);
    const auto* const r = static_cast<const uint8_t*>(rows[i]);
    __m512i bits = _mm512_setzero_si512();
    for (size_t at = 0; at < bytes; at += kVectorBytes) {
      const size_t rest = std::min(bytes - at, kVectorBytes);
      bits = _mm512_add_epi64(bits, _mm512_popcnt_epi64(_mm512_xor_si512(LoadUpTo(q + at, rest),
                                                                         LoadUpTo(r + at, rest))));
    }
    auto sum = static_cast<uint32_t>(_mm512_reduce_add_epi64(bits));
    if (last_mask != 0) {
      const auto last = static_cast<uint8_t>((q[bytes] ^ r[bytes]) & last_mask);
      sum += static_cast<uint32_t>(std::popcount(last));
    }
    distances[i] = static_cast<float>(sum);
  }
}

// What stands in the table.

BASALT_VNNI void CodesToRows(const uint8_t* query, const uint8_t* rows, size_t stride, size_t count,
                             size_t bytes, uint32_t* distances) noexcept {
  CodeDistances(query, StridedRows{rows, stride, count}, bytes, distances);
}
BASALT_VNNI void CodesToEach(const uint8_t* query, const uint8_t* const* rows, size_t count,
                             size_t bytes, uint32_t* distances) noexcept {
  CodeDistances(query, GatheredRows{reinterpret_cast<const void* const*>(rows), count}, bytes,
                distances);
}
template <class Op, bool negated>
BASALT_VNNI void BytesToRows(const void* query, const void* rows, size_t stride, size_t count,
                             size_t dimension, float* distances) noexcept {
  ByteDistances<Op, negated>(query, StridedRows{rows, stride, count}, dimension, distances);
}
template <class Op, bool negated>
BASALT_VNNI void BytesToEach(const void* query, const void* const* rows, size_t count,
                             size_t dimension, float* distances) noexcept {
  ByteDistances<Op, negated>(query, GatheredRows{rows, count}, dimension, distances);
}
BASALT_BF16 void BFloat16ToRows(const void* query, const void* rows, size_t stride, size_t count,
                                size_t dimension, float* distances) noexcept {
  BFloat16Products(query, StridedRows{rows, stride, count}, dimension, distances);
}
BASALT_BF16 void BFloat16ToEach(const void* query, const void* const* rows, size_t count,
                                size_t dimension, float* distances) noexcept {
  BFloat16Products(query, GatheredRows{rows, count}, dimension, distances);
}
BASALT_POPCNT void BitsToRows(const void* query, const void* rows, size_t stride, size_t count,
                              size_t dimension, float* distances) noexcept {
  HammingDistances(query, StridedRows{rows, stride, count}, dimension, distances);
}
BASALT_POPCNT void BitsToEach(const void* query, const void* const* rows, size_t count,
                              size_t dimension, float* distances) noexcept {
  HammingDistances(query, GatheredRows{rows, count}, dimension, distances);
}

}  // namespace

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

bool AddAvx512Extensions(Kernels* kernels) noexcept {
  if (std::string_view(kernels->instruction_set).substr(0, 4) != "AVX3") return false;
  constexpr auto kL2 = static_cast<size_t>(VectorMetric::kL2);
  constexpr auto kProduct = static_cast<size_t>(VectorMetric::kInnerProduct);
  __builtin_cpu_init();
  bool added = false;
  if (__builtin_cpu_supports("avx512vnni")) {
    auto& of_signed = kernels->numbers[static_cast<size_t>(VectorElement::kInt8)];
    auto& of_unsigned = kernels->numbers[static_cast<size_t>(VectorElement::kUint8)];
    of_signed[kL2] = {BytesToRows<SignedSquares, false>, BytesToEach<SignedSquares, false>};
    of_signed[kProduct] = {BytesToRows<SignedProducts, true>, BytesToEach<SignedProducts, true>};
    of_unsigned[kL2] = {BytesToRows<UnsignedSquares, false>, BytesToEach<UnsignedSquares, false>};
    of_unsigned[kProduct] = {BytesToRows<UnsignedProducts, true>,
                             BytesToEach<UnsignedProducts, true>};
    kernels->codes = {CodesToRows, CodesToEach};
    added = true;
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    kernels->numbers[static_cast<size_t>(VectorElement::kBFloat16)][kProduct] = {BFloat16ToRows,
                                                                                 BFloat16ToEach};
    added = true;
  }
  if (__builtin_cpu_supports("avx512vpopcntdq")) {
    kernels->hamming = {BitsToRows, BitsToEach};
    added = true;
  }
  if (added) kernels->instruction_set = "AVX3 with extensions";
  return added;
}

#else

bool AddAvx512Extensions(Kernels*) noexcept { return false; }

#endif

}  // namespace basalt::vector
