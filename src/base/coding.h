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

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
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
