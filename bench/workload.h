#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/workload/compressible_values.h"
#include "tools/workload/number_key.h"

// What every subject is given, byte for byte the same: keys of 16 decimal digits, values of 100
// bytes that compress to about half.
//
// A store of n keys holds the even numbers 0, 2 .. 2n - 2, so that the odd ones are missing keys
// that lie between present ones and have the same length.

namespace basalt::bench {

using Key = workload::NumberKey;

inline constexpr size_t kKeyBytes = Key::kBytes;
inline constexpr size_t kValueBytes = 100;

inline Key PresentKey(uint64_t index) noexcept { return Key(2 * index); }
inline Key MissingKey(uint64_t index) noexcept { return Key(2 * index + 1); }

/// At(i) is the value of the `i`th put.
class Values : public workload::CompressibleValues {
 public:
  explicit Values(uint64_t seed) : CompressibleValues(seed, kValueBytes) {}
};

/// The indices 0 .. count - 1 in random order.
std::vector<uint32_t> Permutation(uint32_t count, uint64_t seed);

}  // namespace basalt::bench
