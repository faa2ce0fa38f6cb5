#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace basalt::base {

/// The first of `n` items, ascending by `number(item)`, for which that is >= target; n when there
/// is none. No branch depends on the data, so that nothing is mispredicted. O(log n).
template <class Item, class Number = std::identity>
size_t FirstNotBelow(const Item* items, size_t n, uint64_t target,
                     const Number& number = {}) noexcept {
  if (n == 0) return 0;
  const Item* first = items;
  while (n > 1) {
    const size_t half = n / 2;
    n -= half;
    // Or the compiler makes a branch of it.
    const bool is_below = std::invoke(number, first[half - 1]) < target;
    first += half & (size_t{0} - static_cast<size_t>(is_below));
  }
  return static_cast<size_t>(first - items) + (std::invoke(number, *first) < target ? 1 : 0);
}

}  // namespace basalt::base
