#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace basalt::phash {

/// Ascending numbers below a bound, about 4 + log2(bound / count) bits each, by Elias and Fano: the
/// low bits of each number stand packed; number i's high bits h are the one bit i + h of a bit
/// string; the place of each 16th one bit is kept. Here: the slots that a level left empty, given
/// to the keys that it could not place.
///
/// Bytes: low bits and the bit string in 8-byte words each, then places of 4 bytes padded to 8. A
/// view; reading never leaves the bytes, whatever they hold. Thread-safe.
class HoleList {
 public:
  HoleList() = default;
  /// `bytes` has at least Bytes(count, bound) bytes, in any alignment.
  HoleList(const char* bytes, uint64_t count, uint64_t bound) noexcept;

  /// Number `i`, below the bound; 0 when there is none.
  uint64_t Select(uint64_t i) const noexcept;

  /// The size of the form of `count` numbers below `bound`; `count` is at most `bound`.
  static uint64_t Bytes(uint64_t count, uint64_t bound) noexcept;
  /// Appends the form of `numbers`.
  static void Append(std::span<const uint64_t> numbers, uint64_t bound, std::string* out);

 private:
  static constexpr uint64_t kSampleEvery = 16;
  static uint32_t LowBits(uint64_t count, uint64_t bound) noexcept;
  // 64 bits of the bit string from `begin` on, zeros behind its end.
  uint64_t HighBits(uint64_t begin) const noexcept;

  const char* low_ = nullptr;
  const char* high_ = nullptr;
  const char* samples_ = nullptr;
  uint64_t high_words_ = 0;
  uint64_t count_ = 0;
  uint64_t bound_ = 0;
  uint32_t low_bits_ = 0;
};

}  // namespace basalt::phash
