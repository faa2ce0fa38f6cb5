#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace basalt::db {

/// When the bytes of a table expire, in at most kBucketsMax buckets of one width, a power of two
/// milliseconds. The width grows with the span of what is added.
class ExpiryProfile {
 public:
  static constexpr size_t kBucketsMax = 512;

  /// Throws std::bad_alloc. O(log kBucketsMax).
  void Add(uint64_t expiry_ms, uint64_t bytes);

  /// A moment from which on at least half of `all_bytes` have expired: no earlier than that is
  /// true, and later by less than a bucket. 0: that will never be.
  uint64_t HalfExpiredMs(uint64_t all_bytes) const noexcept;

 private:
  void Widen();

  std::map<uint64_t, uint64_t> bytes_;  // by expiry >> shift_
  uint32_t shift_ = 0;
  uint64_t latest_ms_ = 0;
};

}  // namespace basalt::db
