#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "bench/text.h"

// The records of every subject: number N has the key "key:N" and a value of 200 bytes, of which the
// first 8 are the digits of another number and the last 8 are those of N. The numbers lead through
// all records in one random cycle, so that a chain of lookups, each of the number that the one
// before has found, visits everything and lets nothing overlap; and every value that is read shows
// whether it is the right one.

namespace basalt::bench {

inline constexpr size_t kSharedMapValueBytes = 200;
/// Numbers have at most eight digits.
inline constexpr uint64_t kSharedMapRecordsMax = 100'000'000;

inline uint64_t LoadWord(const char* at) noexcept {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// A number's eight decimal digits, as text.
class Digits {
 public:
  static Digits Of(uint64_t number) noexcept {
    // One digit a byte, the first one lowest; halved three times.
    const uint64_t fours = number / 10'000 | (number % 10'000) << 32;
    const uint64_t hundreds = (fours * 10'486) >> 20 & 0x7f'0000'007f;
    const uint64_t twos = hundreds + ((fours - 100 * hundreds) << 16);
    const uint64_t tens = (twos * 103) >> 10 & 0x000f'000f'000f'000f;
    return Digits((tens + ((twos - 10 * tens) << 8)) | kZeros);
  }
  explicit Digits(uint64_t text) noexcept : text_(text) {}
  /// As they lie in memory.
  uint64_t text() const noexcept { return text_; }
  size_t LeadingZeros() const noexcept {
    const uint64_t last = uint64_t{1} << 56;  // which counts, also in "00000000"
    return static_cast<size_t>(__builtin_ctzll((text_ ^ kZeros) | last)) / 8;
  }

 private:
  static constexpr uint64_t kZeros = 0x3030'3030'3030'3030;

  uint64_t text_;
};

/// The key of a number, 32 bytes. Made in registers and stored at once: text that is stored byte by
/// byte would hold up whoever loads it eight bytes at a time.
class RecordKey {
 public:
  static RecordKey Of(Digits digits) noexcept { return {kKey, 4, digits}; }
  static RecordKey Of(uint64_t number) noexcept { return Of(Digits::Of(number)); }
  /// That no record has.
  static RecordKey Missing(uint64_t number) noexcept { return {kMiss, 5, Digits::Of(number)}; }

  std::string_view view() const noexcept { return {bytes_, size_}; }
  const char* bytes() const noexcept { return bytes_; }
  Digits digits() const noexcept { return digits_; }

 private:
  static constexpr uint64_t kKey = 0x3a79'656b;      // "key:"
  static constexpr uint64_t kMiss = 0x3a'7373'696d;  // "miss:"

  RecordKey(uint64_t prefix, size_t prefix_bytes, Digits digits) noexcept : digits_(digits) {
    __extension__ using Wide = unsigned __int128;
    using Pair = uint64_t __attribute__((vector_size(16)));
    const size_t zeros = digits.LeadingZeros();
    const Wide all = Wide{digits.text() >> (8 * zeros)} << (8 * prefix_bytes) | prefix;
    const Pair pair = {static_cast<uint64_t>(all), static_cast<uint64_t>(all >> 64)};
    std::memcpy(bytes_, &pair, sizeof pair);
    size_ = prefix_bytes + 8 - zeros;
  }

  alignas(16) char bytes_[16];
  size_t size_;
  Digits digits_;
};

/// What the ends of a value say, which are digits. In registers.
struct Seen {
  static constexpr uint64_t kNothing = ~uint64_t{0};

  uint64_t next;
  uint64_t own;  ///< kNothing: there is no value.
};

/// Reads the first and the last bytes of a value, wherever it says that it ends.
inline Seen LookAt(std::string_view value) noexcept {
  return {LoadWord(value.data()), LoadWord(value.data() + value.size() - sizeof(uint64_t))};
}

class SharedMapRecords {
 public:
  SharedMapRecords(uint64_t count, uint64_t seed);

  uint64_t count() const noexcept { return next_.size(); }
  /// The number that follows in the cycle.
  uint64_t Next(uint64_t number) const noexcept { return next_[number]; }
  /// Bytes of all keys and values.
  uint64_t raw_bytes() const noexcept { return raw_bytes_; }
  /// `filling`: the byte between the ends.
  void FillValue(uint64_t number, char filling, char* out) const noexcept {
    const uint64_t next = Digits::Of(next_[number]).text();
    const uint64_t own = Digits::Of(number).text();
    std::memcpy(out, &next, sizeof next);
    std::memset(out + sizeof next, filling, kSharedMapValueBytes - 2 * sizeof next);
    std::memcpy(out + kSharedMapValueBytes - sizeof own, &own, sizeof own);
  }
  /// The numbers in the order of their keys.
  std::vector<uint32_t> InKeyOrder() const;

 private:
  std::vector<uint32_t> next_;
  uint64_t raw_bytes_ = 0;
};

}  // namespace basalt::bench
