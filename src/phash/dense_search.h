#pragma once

#include <cstdint>
#include <span>

namespace basalt::phash {

/// One key of a bucket under dense seeds.
struct DenseKey {
  uint32_t begin;  ///< Of its slice.
  uint32_t start;  ///< Its place in the slice, as a fraction of it, in 2^-32,
  uint32_t step;   ///< which each seed moves by so much.

  uint32_t Slot(uint32_t seed, uint32_t slice_log2) const noexcept {
    return begin + ((start + seed * step) >> (32 - slice_log2));
  }
};

/// The seed, 1 to 255, that puts all keys (at most 16) on slots of their own whose bits in `words`
/// are zero; of several the one with the least sum of slots, and of those the least. 0: there is
/// none. The same on every processor. Reads 132 bytes from the 32-bit word on in which a slice
/// begins.
uint32_t FindDenseSeed(std::span<const DenseKey> keys, const uint64_t* words,
                       uint32_t slice_log2) noexcept;

}  // namespace basalt::phash
