#include "embed/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

// Vectors of SVE have no size that a compiler knows: NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Compiled once for each instruction set; the processor's best is chosen when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "embed/kernels.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace basalt::embed {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<uint32_t>;
using Vector = hn::Vec<Floats>;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kPanel = 2 * kLanes;
constexpr uint32_t kUpperHalf = 0xFFFF'0000U;

/// Rows whose sums fit into the registers, beside the weights.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr size_t kTileRows = 12;
#else
constexpr size_t kTileRows = 6;
#endif

uint16_t ToBFloat16(float value) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  // To the nearest; ties to even.
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void PackBFloat16(const float* source, size_t column_stride, size_t depth_stride, size_t columns,
                  size_t depth, uint16_t* out) noexcept {
  for (size_t begin = 0; begin < columns; begin += kPanel) {
    for (size_t k = 0; k < depth; k += 2) {
      for (size_t column = begin; column < begin + kPanel; ++column) {
        const float* const from = source + column * column_stride + k * depth_stride;
        const bool is_used = column < columns;
        *out++ = is_used ? ToBFloat16(from[0]) : uint16_t{0};
        *out++ = is_used ? ToBFloat16(from[depth_stride]) : uint16_t{0};
      }
    }
  }
}

void PackFloat(const float* source, size_t column_stride, size_t depth_stride, size_t columns,
               size_t depth, float* out) noexcept {
  for (size_t begin = 0; begin < columns; begin += kPanel) {
    const size_t used = std::min(kPanel, columns - begin);
    for (size_t k = 0; k < depth; ++k, out += kPanel) {
      const float* const from = source + begin * column_stride + k * depth_stride;
      for (size_t i = 0; i < used; ++i) out[i] = from[i * column_stride];
      std::fill(out + used, out + kPanel, 0.0F);
    }
  }
}

/// What two registers of columns have: weights of one depth, or a bias.
struct Pair {
  Vector first;
  Vector second;
};

HWY_INLINE Pair LoadPair(const float* at) noexcept {
  const Floats d;
  return {hn::LoadU(d, at), hn::LoadU(d, at + kLanes)};
}

using Bits = hn::Vec<Words>;
HWY_INLINE Pair LowerHalves(Bits first, Bits second) noexcept {
  const Floats d;
  return {hn::BitCast(d, hn::ShiftLeft<16>(first)), hn::BitCast(d, hn::ShiftLeft<16>(second))};
}
HWY_INLINE Pair UpperHalves(Bits first, Bits second) noexcept {
  const Floats d;
  const Bits mask = hn::Set(Words(), kUpperHalf);
  return {hn::BitCast(d, hn::And(first, mask)), hn::BitCast(d, hn::And(second, mask))};
}

/// The sums of some rows. Nested, so that each stays in a register.
template <size_t kCount>
struct Tile {
  Vector first;
  Vector second;
  Tile<kCount - 1> others;

  HWY_INLINE void Begin(const Pair& bias) noexcept {
    first = bias.first;
    second = bias.second;
    if constexpr (kCount > 1) others.Begin(bias);
  }
  HWY_INLINE void Add(const float* x, size_t stride, const Pair& weights) noexcept {
    const Vector value = hn::Set(Floats(), *x);
    first = hn::MulAdd(value, weights.first, first);
    second = hn::MulAdd(value, weights.second, second);
    if constexpr (kCount > 1) others.Add(x + stride, stride, weights);
  }
  HWY_INLINE void Store(float* out, size_t stride) const noexcept {
    hn::StoreU(first, Floats(), out);
    hn::StoreU(second, Floats(), out + kLanes);
    if constexpr (kCount > 1) others.Store(out + stride, stride);
  }
};
template <>
struct Tile<0> {};

template <size_t kCount>
HWY_INLINE void AddProducts(const float* rows, size_t stride, const float* panel, size_t depth,
                            Tile<kCount>* sums) noexcept {
  for (size_t k = 0; k < depth; ++k, panel += kPanel) {
    sums->Add(rows + k, stride, LoadPair(panel));
  }
}

template <size_t kCount>
HWY_INLINE void AddProducts(const float* rows, size_t stride, const uint16_t* panel, size_t depth,
                            Tile<kCount>* sums) noexcept {
  const Words words;
  for (size_t k = 0; k < depth; k += 2, panel += 2 * kPanel) {
    const auto* const at = reinterpret_cast<const uint32_t*>(panel);
    const Bits first = hn::LoadU(words, at);
    const Bits second = hn::LoadU(words, at + kLanes);
    sums->Add(rows + k, stride, LowerHalves(first, second));
    sums->Add(rows + k + 1, stride, UpperHalves(first, second));
  }
}

template <size_t kCount, class Weight>
void MultiplyTile(const float* rows, size_t stride, const Weight* panel, size_t depth,
                  const Pair& bias, float* out, size_t out_stride) noexcept {
  Tile<kCount> sums;
  sums.Begin(bias);
  AddProducts(rows, stride, panel, depth, &sums);
  sums.Store(out, out_stride);
}

/// With as many rows as `count` says, which is at most kCount.
template <size_t kCount, class Weight>
void MultiplyRows(size_t count, const float* rows, size_t stride, const Weight* panel, size_t depth,
                  const Pair& bias, float* out, size_t out_stride) noexcept {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      MultiplyRows<kCount - 1>(count, rows, stride, panel, depth, bias, out, out_stride);
      return;
    }
  }
  MultiplyTile<kCount>(rows, stride, panel, depth, bias, out, out_stride);
}

template <class Weight>
void Multiply(const Rows& rows, const Weight* packed, size_t columns, size_t depth,
              const float* bias, float* out, size_t out_stride) noexcept {
  const Floats d;
  const size_t tiles = (rows.count + kTileRows - 1) / kTileRows;
  for (size_t column = 0; column < columns; column += kPanel) {
    const Pair begin = bias != nullptr ? LoadPair(bias + column) : Pair{hn::Zero(d), hn::Zero(d)};
    // Tiles of about the same size: one of few rows would use few of the registers.
    for (size_t tile = 0; tile < tiles; ++tile) {
      const size_t first = tile * rows.count / tiles;
      const size_t count = (tile + 1) * rows.count / tiles - first;
      MultiplyRows<kTileRows>(count, rows.data + first * rows.stride, rows.stride, packed, depth,
                              begin, out + first * out_stride + column, out_stride);
    }
    packed += kPanel * depth;
  }
}

void MultiplyBFloat16(const Rows& rows, const uint16_t* packed, size_t columns, size_t depth,
                      const float* bias, float* out, size_t out_stride,
                      uint16_t* /*scratch*/) noexcept {
  Multiply(rows, packed, columns, depth, bias, out, out_stride);
}
void MultiplyFloat(const Rows& rows, const float* packed, size_t columns, size_t depth,
                   const float* bias, float* out, size_t out_stride) noexcept {
  Multiply(rows, packed, columns, depth, bias, out, out_stride);
}

/// Calls `step(at, lanes)` for whole registers and, with fewer lanes, for what is left.
template <class Step>
HWY_INLINE void ForEachRegister(size_t count, const Step& step) noexcept {
  size_t at = 0;
  for (; at + kLanes <= count; at += kLanes) step(at, kLanes);
  if (at < count) step(at, count - at);
}

HWY_INLINE Vector Load(const float* at, size_t lanes) noexcept {
  const Floats d;
  if (lanes == kLanes) return hn::LoadU(d, at);
#if HWY_MEM_OPS_MIGHT_FAULT
  // A masked load would read whole registers, beyond the row.
  HWY_ALIGN float padded[kLanes] = {};
  std::copy_n(at, lanes, padded);
  return hn::Load(d, padded);
#else
  return hn::MaskedLoad(hn::FirstN(d, lanes), d, at);
#endif
}

HWY_INLINE void Store(Vector value, float* at, size_t lanes) noexcept {
  const Floats d;
  if (lanes == kLanes) {
    hn::StoreU(value, d, at);
  } else {
    hn::BlendedStore(value, hn::FirstN(d, lanes), d, at);
  }
}

/// erf for x >= 0: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26; |error| below
/// 1.5e-7.
HWY_INLINE Vector Erf(Vector x) noexcept {
  const Floats d;
  const Vector t = hn::Div(hn::Set(d, 1.0F), hn::MulAdd(hn::Set(d, 0.3275911F), x, hn::Set(d, 1)));
  Vector sum = hn::Set(d, 1.061405429F);
  sum = hn::MulAdd(sum, t, hn::Set(d, -1.453152027F));
  sum = hn::MulAdd(sum, t, hn::Set(d, 1.421413741F));
  sum = hn::MulAdd(sum, t, hn::Set(d, -0.284496736F));
  sum = hn::MulAdd(sum, t, hn::Set(d, 0.254829592F));
  const Vector bell = hn::Exp(d, hn::Neg(hn::Mul(x, x)));
  return hn::NegMulAdd(hn::Mul(sum, t), bell, hn::Set(d, 1.0F));
}

void Gelu(float* x, size_t count) noexcept {
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    const Floats d;
    const Vector value = Load(x + at, lanes);
    const Vector erf = hn::CopySign(Erf(hn::Mul(hn::Abs(value), hn::Set(d, 0.70710678F))), value);
    const Vector half = hn::Mul(value, hn::Set(d, 0.5F));
    Store(hn::MulAdd(half, erf, half), x + at, lanes);
  });
}

void Softmax(float* row, size_t count, float scale) noexcept {
  const Floats d;
  const float greatest = *std::max_element(row, row + count);
  Vector sums = hn::Zero(d);
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    const Vector below = hn::Sub(Load(row + at, lanes), hn::Set(d, greatest));
    const Vector power = hn::Exp(d, hn::Mul(below, hn::Set(d, scale)));
    Store(power, row + at, lanes);
    sums = hn::Add(sums, lanes == kLanes ? power : hn::IfThenElseZero(hn::FirstN(d, lanes), power));
  });
  const Vector factor = hn::Div(hn::Set(d, 1.0F), hn::SumOfLanes(d, sums));
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    Store(hn::Mul(Load(row + at, lanes), factor), row + at, lanes);
  });
}

void LayerNorm(float* row, const float* residual, size_t count, const float* weight,
               const float* bias, float epsilon) noexcept {
  const Floats d;
  Vector sums = hn::Zero(d);
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    Vector value = Load(row + at, lanes);
    if (residual != nullptr) {
      value = hn::Add(value, Load(residual + at, lanes));
      Store(value, row + at, lanes);
    }
    sums = hn::Add(sums, value);
  });
  const float per_element = 1.0F / static_cast<float>(count);
  const Vector mean = hn::Mul(hn::SumOfLanes(d, sums), hn::Set(d, per_element));
  Vector squares = hn::Zero(d);
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    const Vector off = hn::Sub(Load(row + at, lanes), mean);
    const Vector square = hn::Mul(off, off);
    squares = hn::Add(squares,
                      lanes == kLanes ? square : hn::IfThenElseZero(hn::FirstN(d, lanes), square));
  });
  const Vector variance = hn::Mul(hn::SumOfLanes(d, squares), hn::Set(d, per_element));
  const Vector factor = hn::Div(hn::Set(d, 1.0F), hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon))));
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    const Vector off = hn::Mul(hn::Sub(Load(row + at, lanes), mean), factor);
    Store(hn::MulAdd(off, Load(weight + at, lanes), Load(bias + at, lanes)), row + at, lanes);
  });
}

void Add(float* sum, const float* row, size_t count) noexcept {
  ForEachRegister(count, [&](size_t at, size_t lanes) HWY_ATTR {
    Store(hn::Add(Load(sum + at, lanes), Load(row + at, lanes)), sum + at, lanes);
  });
}

Kernels MakeKernels() {
  return {.instruction_set = hwy::TargetName(HWY_TARGET),
          .panel = kPanel,
          .pack_bfloat16 = PackBFloat16,
          .pack_float = PackFloat,
          .multiply_bfloat16 = MultiplyBFloat16,
          .multiply_float = MultiplyFloat,
          .gelu = Gelu,
          .softmax = Softmax,
          .layer_norm = LayerNorm,
          .add = Add};
}

}  // namespace HWY_NAMESPACE
}  // namespace basalt::embed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace basalt::embed {

HWY_EXPORT(MakeKernels);

Kernels ChosenKernels() noexcept { return HWY_DYNAMIC_DISPATCH(MakeKernels)(); }

const Kernels& ProcessorKernels() noexcept {
  static const Kernels kernels = [] {
    Kernels chosen = ChosenKernels();
    AddBFloat16Product(&chosen);
    return chosen;
  }();
  return kernels;
}

}  // namespace basalt::embed

#endif  // HWY_ONCE
