#pragma once

#include <cstdint>

namespace basalt::phash {

inline uint64_t MulHigh(uint64_t a, uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{a} * b) >> 64);
}

/// Hashes a 64-bit number: a bijection that is a part of the format. All bits of the result except
/// the lowest depend on all bits of the number.
inline uint64_t Mix(uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 32)) * 0xD6E8'FEB8'6659'FD93;
  return (hash ^ (hash >> 32)) * 0xD6E8'FEB8'6659'FD93;
}

/// One level of a perfect hash function: maps mixed hashes to slots by a seed for each bucket.
struct Level {
  /// For shift seeds. Dense seeds may have shorter slices.
  static constexpr uint32_t kSliceLog2 = 10;

  const uint8_t* seeds;  ///< One for each bucket. 0: the next level places the bucket's keys.
  uint64_t buckets;
  uint64_t slice_begins;  ///< keys - slice + 1
  uint64_t keys;
  uint32_t drop;  ///< 32 - log2 of a slice's slots
  bool dense;

  uint64_t Bucket(uint64_t mixed) const noexcept { return MulHigh(mixed, buckets); }
  /// `seed` is not 0.
  uint64_t Slot(uint64_t mixed, uint32_t seed) const noexcept {
    return MulHigh(mixed, slice_begins) +
           (dense ? DenseOffset(mixed, seed, drop) : ShiftOffset(mixed, seed));
  }
  /// The middle of the range of slots that Slot can return.
  uint64_t Middle(uint64_t mixed) const noexcept {
    return MulHigh(mixed, slice_begins) + (uint64_t{1} << 31 >> drop);
  }

  static uint32_t ShiftOffset(uint64_t mixed, uint32_t seed) noexcept {
    const uint32_t start = static_cast<uint32_t>(mixed) >> (32 - kSliceLog2);
    return (start + 4 * seed) & ((uint32_t{1} << kSliceLog2) - 1);
  }
  static uint32_t DenseOffset(uint64_t mixed, uint32_t seed, uint32_t drop) noexcept {
    return (static_cast<uint32_t>(mixed) + seed * DenseStep(mixed)) >> drop;
  }
  static uint32_t DenseStep(uint64_t mixed) noexcept {
    return static_cast<uint32_t>((mixed * 0x9E37'79B9'7F4A'7C15) >> 32);
  }
};

}  // namespace basalt::phash
