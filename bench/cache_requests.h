#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

// What every cache is asked, byte for byte the same. Requests are made before the clock starts and
// lie in the order in which they are sent: reading the next one is a sequential read, so that the
// cache misses of a run are those of its subject.

namespace basalt::bench {

/// "key_" and a decimal number. The text is followed by zeros up to 16 bytes, of which the last is
/// its length, so that the 16 are a key of their own for a cache that takes no others.
class CacheKey {
 public:
  static constexpr size_t kPaddedBytes = 16;

  CacheKey() noexcept = default;
  explicit CacheKey(uint32_t number) noexcept;

  std::string_view view() const noexcept {
    return {bytes_.data(), static_cast<size_t>(bytes_.back())};
  }
  std::string_view padded() const noexcept { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, kPaddedBytes> bytes_{};
};

struct CacheRequest {
  CacheKey key;
  uint32_t number = 0;
  bool is_put = false;
};

using CacheRequests = std::vector<CacheRequest>;

/// Puts of the keys 0 .. keys - 1, in this order.
CacheRequests EveryKey(uint32_t keys);

/// `count` requests for keys drawn uniformly from `keys`, of which about `put_percent` are puts.
CacheRequests UniformRequests(size_t count, uint32_t keys, uint32_t put_percent, uint64_t seed);

/// `count` gets of `keys` keys, key k with a probability proportional to (k + 1)^-0.99.
CacheRequests ZipfRequests(size_t count, uint32_t keys, uint64_t seed);

/// Times to live in milliseconds, from a second to an hour, log-uniform.
std::vector<uint32_t> TimesToLive(uint32_t count, uint64_t seed);

/// Bytes of the keys 0 .. keys - 1, together.
uint64_t KeyBytes(uint32_t keys);

}  // namespace basalt::bench
