#pragma once

#include <cstdint>

#include "base/coding.h"

namespace basalt::phash {

/// An array of numbers of `width` bits each, 0 to 64, packed from the lowest bit of the first byte
/// on. A number is read by two 8-byte loads, in any alignment, that stay within Words() words.
struct PackedBits {
  /// Room for `count` numbers, a word more than they fill.
  static constexpr uint64_t Words(uint64_t count, uint32_t width) noexcept {
    return width == 0 ? 0 : (count * width + 63) / 64 + 1;
  }
  static uint64_t Get(const char* bytes, uint64_t i, uint32_t width) noexcept {
    if (width == 0) return 0;
    const uint64_t bit = i * width;
    const char* const word = bytes + 8 * (bit / 64);
    const uint64_t shift = bit % 64;
    const uint64_t joined = base::Load<uint64_t>(word) >> shift | base::Load<uint64_t>(word + 8)
                                                                      << 1 << (63 - shift);
    return width == 64 ? joined : joined & ((uint64_t{1} << width) - 1);
  }
  /// Sets a number that is zero so far. `value` is below 2^width.
  static void Add(char* bytes, uint64_t i, uint32_t width, uint64_t value) noexcept {
    if (width == 0) return;
    const uint64_t bit = i * width;
    char* const word = bytes + 8 * (bit / 64);
    const uint64_t shift = bit % 64;
    base::Store(word, base::Load<uint64_t>(word) | value << shift);
    base::Store(word + 8, base::Load<uint64_t>(word + 8) | value >> 1 >> (63 - shift));
  }
};

}  // namespace basalt::phash
