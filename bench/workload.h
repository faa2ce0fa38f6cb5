#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What every subject is given, byte for byte the same: keys of 16 decimal digits, values of 100
// bytes that compress to about half.
//
// A store of n keys holds the even numbers 0, 2 .. 2n - 2, so that the odd ones are missing keys
// that lie between present ones and have the same length.

namespace basalt::bench {

inline constexpr size_t kKeyBytes = 16;
inline constexpr size_t kValueBytes = 100;

/// A number as 16 decimal digits with leading zeros; bytewise order is numeric order.
class Key {
 public:
  explicit Key(uint64_t number) noexcept;
  std::string_view view() const noexcept { return {digits_.data(), digits_.size()}; }

 private:
  std::array<char, kKeyBytes> digits_;
};

inline Key PresentKey(uint64_t index) noexcept { return Key(2 * index); }
inline Key MissingKey(uint64_t index) noexcept { return Key(2 * index + 1); }

/// Slices of 1 MiB of text in which every 50 random bytes stand twice. Immutable, so thread-safe.
class Values {
 public:
  explicit Values(uint64_t seed);
  /// The value of the `index`th put; a slice, which comes again after some 10,000. Lasts as long as
  /// this object.
  std::string_view At(uint64_t index) const noexcept;

 private:
  std::string text_;
};

/// The indices 0 .. count - 1 in random order.
std::vector<uint32_t> Permutation(uint32_t count, uint64_t seed);

}  // namespace basalt::bench
