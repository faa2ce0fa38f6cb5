#include "base/histogram.h"

#include <algorithm>
#include <cmath>

namespace basalt::base {

void Histogram::Merge(const Histogram& other) noexcept {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

uint64_t Histogram::LargestOf(size_t bucket) noexcept {
  if (bucket < kSubBuckets) return bucket;
  const size_t shift = bucket / kSubBuckets - 1;
  const uint64_t smallest = uint64_t{bucket - shift * kSubBuckets} << shift;
  return smallest + ((uint64_t{1} << shift) - 1);
}

uint64_t Histogram::Percentile(double percent) const noexcept {
  if (count_ == 0) return 0;
  const double wanted =
      std::ceil(std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_));
  const auto rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  uint64_t seen = 0;
  size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  return std::clamp(LargestOf(bucket), min_, max_);
}

}  // namespace basalt::base
