#include "embed/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>
#include <string_view>
#endif

// The product of bfloat16 where the processor adds two of them to a float at once (AVX512-BF16).

namespace basalt::embed {

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// g++ warns about the vectors that its own intrinsics leave undefined (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace {

#define BASALT_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define BASALT_INLINE inline __attribute__((always_inline))

constexpr size_t kLanes = 16;
constexpr size_t kPanel = 2 * kLanes;
constexpr size_t kTileRows = 12;

/// Rounds `rows` to bfloat16, one row after the other. The depth is even.
BASALT_BF16 void RoundRows(const Rows& rows, size_t depth, uint16_t* out) noexcept {
  for (size_t r = 0; r < rows.count; ++r, out += depth) {
    const float* const row = rows.data + r * rows.stride;
    for (size_t k = 0; k < depth; k += kLanes) {
      const size_t left = depth - k;
      const auto mask = static_cast<__mmask16>(left < kLanes ? (1U << left) - 1 : 0xFFFFU);
      const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, row + k));
      _mm256_mask_storeu_epi16(out + k, mask, reinterpret_cast<__m256i>(rounded));
    }
  }
}

BASALT_BF16 BASALT_INLINE __m512bh LoadPairs(const uint16_t* at) noexcept {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(at));
}
BASALT_BF16 BASALT_INLINE __m512bh Broadcast(const uint16_t* at) noexcept {
  int both;
  std::memcpy(&both, at, sizeof both);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
}

/// The sums of some rows. Nested, so that each stays in a register.
template <size_t kCount>
struct Tile {
  __m512 first;
  __m512 second;
  Tile<kCount - 1> others;

  BASALT_BF16 BASALT_INLINE void Begin(__m512 bias_first, __m512 bias_second) noexcept {
    first = bias_first;
    second = bias_second;
    if constexpr (kCount > 1) others.Begin(bias_first, bias_second);
  }
  BASALT_BF16 BASALT_INLINE void Add(const uint16_t* x, size_t stride, __m512bh weights_first,
                                     __m512bh weights_second) noexcept {
    const __m512bh values = Broadcast(x);
    first = _mm512_dpbf16_ps(first, values, weights_first);
    second = _mm512_dpbf16_ps(second, values, weights_second);
    if constexpr (kCount > 1) others.Add(x + stride, stride, weights_first, weights_second);
  }
  BASALT_BF16 BASALT_INLINE void Store(float* out, size_t stride) const noexcept {
    _mm512_storeu_ps(out, first);
    _mm512_storeu_ps(out + kLanes, second);
    if constexpr (kCount > 1) others.Store(out + stride, stride);
  }
};
template <>
struct Tile<0> {};

/// With as many rows as `count` says, which is at most kCount.
template <size_t kCount>
BASALT_BF16 void MultiplyRows(size_t count, const uint16_t* rows, const uint16_t* panel,
                              size_t depth, const float* bias, float* out,
                              size_t out_stride) noexcept {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      MultiplyRows<kCount - 1>(count, rows, panel, depth, bias, out, out_stride);
      return;
    }
  }
  Tile<kCount> sums;
  sums.Begin(bias == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(bias),
             bias == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(bias + kLanes));
  for (size_t k = 0; k < depth; k += 2, panel += 2 * kPanel) {
    sums.Add(rows + k, depth, LoadPairs(panel), LoadPairs(panel + kPanel));
  }
  sums.Store(out, out_stride);
}

BASALT_BF16 void MultiplyBFloat16(const Rows& rows, const uint16_t* packed, size_t columns,
                                  size_t depth, const float* bias, float* out, size_t out_stride,
                                  uint16_t* scratch) noexcept {
  RoundRows(rows, depth, scratch);
  const size_t tiles = (rows.count + kTileRows - 1) / kTileRows;
  for (size_t column = 0; column < columns; column += kPanel, packed += kPanel * depth) {
    for (size_t tile = 0; tile < tiles; ++tile) {
      const size_t first = tile * rows.count / tiles;
      const size_t count = (tile + 1) * rows.count / tiles - first;
      MultiplyRows<kTileRows>(count, scratch + first * depth, packed, depth,
                              bias == nullptr ? nullptr : bias + column,
                              out + first * out_stride + column, out_stride);
    }
  }
}

}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

bool AddBFloat16Product(Kernels* kernels) noexcept {
  const bool is_avx512 = std::string_view(kernels->instruction_set).starts_with("AVX3");
  if (!is_avx512 || kernels->panel != kPanel || !__builtin_cpu_supports("avx512bf16")) return false;
  kernels->multiply_bfloat16 = MultiplyBFloat16;
  return true;
}

#else

bool AddBFloat16Product(Kernels*) noexcept { return false; }

#endif

}  // namespace basalt::embed
