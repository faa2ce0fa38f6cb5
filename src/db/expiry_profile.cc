#include "db/expiry_profile.h"

#include <algorithm>
#include <utility>

namespace basalt::db {

void ExpiryProfile::Add(uint64_t expiry_ms, uint64_t bytes) {
  latest_ms_ = std::max(latest_ms_, expiry_ms);
  bytes_[expiry_ms >> shift_] += bytes;
  while (bytes_.size() > kBucketsMax) Widen();
}

void ExpiryProfile::Widen() {
  std::map<uint64_t, uint64_t> wider;
  for (const auto& [bucket, bytes] : bytes_) wider[bucket >> 1] += bytes;
  bytes_ = std::move(wider);
  ++shift_;
}

uint64_t ExpiryProfile::HalfExpiredMs(uint64_t all_bytes) const noexcept {
  uint64_t expired = 0;
  for (const auto& [bucket, bytes] : bytes_) {
    expired += bytes;
    if (expired < all_bytes - all_bytes / 2) continue;
    const uint64_t last_of_bucket = (bucket << shift_) | ((uint64_t{1} << shift_) - 1);
    return std::min(last_of_bucket, latest_ms_);
  }
  return 0;
}

}  // namespace basalt::db
