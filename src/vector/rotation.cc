#include "vector/rotation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/random.h"

// Vectors of SVE have no size that a compiler knows: NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Compiled once for each instruction set; the processor's best is chosen when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/rotation.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace basalt::vector {
namespace HWY_NAMESPACE {

// Every instruction set does the same additions and products, in any order that gives the same
// bits.

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void Hadamard(float* x, size_t count, float scale) {
  for (size_t h = 1; h < count; h *= 2) {
    for (size_t i = 0; i < count; i += 2 * h) {
      for (size_t j = i; j < i + h; ++j) {
        const float a = x[j];
        const float b = x[j + h];
        x[j] = a + b;
        x[j + h] = a - b;
      }
    }
  }
  for (size_t i = 0; i < count; ++i) x[i] *= scale;
}

void FlipSigns(const uint32_t* signs, size_t count, float* x) {
  for (size_t i = 0; i < count; ++i) {
    x[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(x[i]) ^ signs[i]);
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void Butterflies(D d, float* x, size_t count, size_t h) {
  for (size_t i = 0; i < count; i += 2 * h) {
    for (size_t j = i; j < i + h; j += hn::Lanes(d)) {
      const auto a = hn::LoadU(d, x + j);
      const auto b = hn::LoadU(d, x + j + h);
      hn::StoreU(hn::Add(a, b), d, x + j);
      hn::StoreU(hn::Sub(a, b), d, x + j + h);
    }
  }
}

// `count` is a power of two.
void Hadamard(float* x, size_t count, float scale) {
  if (count < 4) {
    if (count == 2) {
      const float a = x[0];
      const float b = x[1];
      x[0] = (a + b) * scale;
      x[1] = (a - b) * scale;
    }
    return;
  }
  // Of neighbours, then of pairs: within registers. [a b c d] is added to itself with signs
  // changed.
  const hn::CappedTag<float, 4> d4;
  HWY_ALIGN const float odd_signs[4] = {0.0F, -0.0F, 0.0F, -0.0F};
  HWY_ALIGN const float upper_signs[4] = {0.0F, 0.0F, -0.0F, -0.0F};
  const auto odd = hn::Load(d4, odd_signs);
  const auto upper = hn::Load(d4, upper_signs);
  for (size_t i = 0; i < count; i += 4) {
    auto v = hn::LoadU(d4, x + i);
    v = hn::Add(hn::Shuffle2301(v), hn::Xor(v, odd));
    v = hn::Add(hn::Shuffle1032(v), hn::Xor(v, upper));
    hn::StoreU(v, d4, x + i);
  }
  const hn::CappedTag<float, 8> d8;
  const hn::ScalableTag<float> d;
  size_t h = 4;
  for (; h < count && h < 8; h *= 2) Butterflies(d4, x, count, h);
  for (; h < count && h < 16; h *= 2) Butterflies(d8, x, count, h);
  for (; h < count; h *= 2) Butterflies(d, x, count, h);
  const auto scales = hn::Set(d4, scale);
  for (size_t i = 0; i < count; i += 4) {
    hn::StoreU(hn::Mul(hn::LoadU(d4, x + i), scales), d4, x + i);
  }
}

void FlipSigns(const uint32_t* signs, size_t count, float* x) {
  const hn::CappedTag<float, 4> d;
  const hn::CappedTag<uint32_t, 4> bits;
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const auto flip = hn::BitCast(d, hn::LoadU(bits, signs + i));
    hn::StoreU(hn::Xor(hn::LoadU(d, x + i), flip), d, x + i);
  }
  for (; i < count; ++i) {
    x[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(x[i]) ^ signs[i]);
  }
}

#endif

void Rotate(float* x, size_t dimension, const uint32_t* signs, size_t steps) {
  const size_t block = std::bit_floor(dimension);
  const float scale = 1 / std::sqrt(static_cast<float>(block));
  for (size_t step = 0; step < steps; ++step) {
    FlipSigns(signs + step * dimension, dimension, x);
    Hadamard(x + (step % 2 == 0 ? 0 : dimension - block), block, scale);
  }
}

size_t Quantize(const float* x, const float* centre, float scale, size_t count, uint8_t* codes) {
  size_t beyond = 0;
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::CappedTag<float, 4> d;
  const hn::CappedTag<int32_t, 4> d32;
  const hn::CappedTag<uint8_t, 4> d8;
  const auto zero = hn::Zero(d);
  const auto end = hn::Set(d, 128.0F);
  const auto last = hn::Set(d, 127.0F);
  const auto middle = hn::Set(d, 64.0F);
  const auto scales = hn::Set(d, scale);
  for (; i + 4 <= count; i += 4) {
    const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, centre + i));
    const auto v = hn::Add(hn::Mul(centred, scales), middle);
    beyond += hn::CountTrue(d, hn::Or(hn::Lt(v, zero), hn::Ge(v, end)));
    const auto code = hn::ConvertTo(d32, hn::Min(hn::Max(v, zero), last));
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
  }
#endif
  for (; i < count; ++i) {
    const float product = (x[i] - centre[i]) * scale;
    const float v = product + 64.0F;
    beyond += static_cast<size_t>(v < 0 || v >= 128);
    codes[i] = static_cast<uint8_t>(v > 0 ? std::min(v, 127.0F) : 0.0F);
  }
  return beyond;
}

}  // namespace HWY_NAMESPACE
}  // namespace basalt::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace basalt::vector {

HWY_EXPORT(Rotate);
HWY_EXPORT(Quantize);

Rotation::Rotation(uint64_t seed, size_t dimension)
    : dimension_(dimension), steps_(std::has_single_bit(dimension) ? 3 : 6) {
  base::Random random(seed);
  signs_.resize(steps_ * dimension);
  for (uint32_t& sign : signs_) sign = static_cast<uint32_t>(random.Next() >> 63 << 31);
}

void Rotation::Apply(float* coordinates) const noexcept {
  HWY_DYNAMIC_DISPATCH(Rotate)(coordinates, dimension_, signs_.data(), steps_);
}

size_t QuantizeTo7Bits(const float* coordinates, const float* centre, float scale, size_t count,
                       uint8_t* codes) noexcept {
  return HWY_DYNAMIC_DISPATCH(Quantize)(coordinates, centre, scale, count, codes);
}

}  // namespace basalt::vector

#endif  // HWY_ONCE
