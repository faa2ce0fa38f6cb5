#pragma once

#include <cstddef>
#include <cstdint>

namespace basalt::base {

/// The first of `n` >= 1 ascending numbers that is >= target; n when there is none. No branch
/// depends on the data, so that nothing is mispredicted. O(log n).
inline size_t FirstNotBelow(const uint64_t* numbers, size_t n, uint64_t target) noexcept {
  const uint64_t* first = numbers;
  while (n > 1) {
    const size_t half = n / 2;
    first = first[half - 1] < target ? first + half : first;
    n -= half;
  }
  return static_cast<size_t>(first - numbers) + (*first < target ? 1 : 0);
}

}  // namespace basalt::base
