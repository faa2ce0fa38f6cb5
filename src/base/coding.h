#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Little-endian integers in byte strings, and a cursor that never reads past its end.

namespace basalt::base {

static_assert(std::endian::native == std::endian::little, "a big-endian port must swap here");

template <std::unsigned_integral T>
T Load(const void* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <std::unsigned_integral T>
void Store(void* at, T value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

template <std::unsigned_integral T>
void Append(std::string* out, T value) {
  char bytes[sizeof value];
  Store(bytes, value);
  out->append(bytes, sizeof bytes);
}

/// The first 8 bytes of `key` from `offset` on as a number whose order is the bytes' order; short
/// keys are padded with zeros. Equal prefixes say nothing about order: compare the keys.
inline uint64_t KeyPrefix(std::string_view key, size_t offset = 0) noexcept {
  if (key.size() >= offset + 8) return std::byteswap(Load<uint64_t>(key.data() + offset));
  uint64_t value = 0;
  if (key.size() > offset) std::memcpy(&value, key.data() + offset, key.size() - offset);
  return std::byteswap(value);
}

/// Copies bytes, without a call those of usual length; gives where they end.
[[gnu::always_inline]] inline char* CopyKey(std::string_view key, char* out) noexcept {
  const size_t size = key.size();
  if (size - 8 <= 8) {  // From both ends.
    const auto first = Load<uint64_t>(key.data());
    const auto last = Load<uint64_t>(key.data() + size - 8);
    Store(out, first);
    Store(out + size - 8, last);
  } else if (size != 0) {
    std::memcpy(out, key.data(), size);
  }
  return out + size;
}

/// Equality without a call for keys of usual length.
[[gnu::always_inline]] inline bool SameBytes(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  const auto difference = [&]<class Number>(size_t at, Number) {
    return Load<Number>(a.data() + at) ^ Load<Number>(b.data() + at);
  };
  // From both ends, the middle twice where the size is no multiple.
  if (a.size() - 8 <= 8) {
    return (difference(0, uint64_t{}) | difference(a.size() - 8, uint64_t{})) == 0;
  }
  if (a.size() - 4 < 4) {
    return (difference(0, uint32_t{}) | difference(a.size() - 4, uint32_t{})) == 0;
  }
  if (a.size() - 16 <= 16) {
    return (difference(0, uint64_t{}) | difference(8, uint64_t{}) |
            difference(a.size() - 16, uint64_t{}) | difference(a.size() - 8, uint64_t{})) == 0;
  }
  return a == b;
}

/// Bytes, from the first on, that the keys have in common.
inline size_t SharedBytes(std::string_view a, std::string_view b) noexcept {
  const size_t size = a.size() < b.size() ? a.size() : b.size();
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const uint64_t difference = Load<uint64_t>(a.data() + at) ^ Load<uint64_t>(b.data() + at);
    if (difference != 0) return at + static_cast<size_t>(std::countr_zero(difference)) / 8;
  }
  while (at < size && a[at] == b[at]) ++at;
  return at;
}

/// < 0, 0, > 0: bytewise order. Keys of usual length that differ early are compared without a call.
inline int CompareKeys(std::string_view a, std::string_view b) noexcept {
  constexpr size_t kHere = 32;
  const size_t both = a.size() < b.size() ? a.size() : b.size();
  size_t at = 0;
  for (; at + 8 <= both && at < kHere; at += 8) {
    const auto of_a = Load<uint64_t>(a.data() + at);
    const auto of_b = Load<uint64_t>(b.data() + at);
    if (of_a != of_b) return std::byteswap(of_a) < std::byteswap(of_b) ? -1 : 1;
  }
  if (at < both) {
    const int order = std::memcmp(a.data() + at, b.data() + at, both - at);
    if (order != 0) return order;
  }
  return a.size() == b.size() ? 0 : (a.size() < b.size() ? -1 : 1);
}

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// A number in 7 bits a byte, the lowest first; the top bit says that another byte follows.
inline constexpr size_t kVarintBytesMax = 10;
/// Gives where it ends.
inline char* StoreVarint(char* at, uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}

/// A difference of numbers as one that is small when they are close, whichever is greater.
constexpr uint64_t ToZigZag(uint64_t difference) noexcept {
  return difference << 1 ^ (difference >> 63 != 0 ? UINT64_MAX : 0);
}
constexpr uint64_t FromZigZag(uint64_t value) noexcept {
  return value >> 1 ^ ((value & 1) != 0 ? UINT64_MAX : 0);
}

/// Reads fields off the front of a byte string. After the first field that does not fit, `ok()` is
/// false and every later field is zero or empty.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) noexcept : rest_(bytes), size_(bytes.size()) {}

  template <std::unsigned_integral T>
  T Read() noexcept {
    if (rest_.size() < sizeof(T)) {
      Fail();
      return 0;
    }
    const T value = Load<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }

  /// A number that has more than 64 bits does not fit.
  uint64_t ReadVarint() noexcept {
    uint64_t value = 0;
    for (size_t i = 0; i < kVarintBytesMax && i < rest_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      if (i == kVarintBytesMax - 1 && byte > 1) break;
      value |= uint64_t{byte & 0x7FU} << (7 * i);
      if (byte >= 0x80) continue;
      rest_.remove_prefix(i + 1);
      return value;
    }
    Fail();
    return 0;
  }

  std::string_view ReadBytes(uint64_t count) noexcept {
    if (rest_.size() < count) {
      Fail();
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  bool ok() const noexcept { return ok_; }
  bool AtEnd() const noexcept { return rest_.empty(); }
  /// Bytes consumed so far.
  size_t position() const noexcept { return size_ - rest_.size(); }
  std::string_view rest() const noexcept { return rest_; }

 private:
  void Fail() noexcept {
    ok_ = false;
    rest_ = {};
  }
  std::string_view rest_;
  size_t size_;
  bool ok_ = true;
};

}  // namespace basalt::base
