#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace basalt::base {

// Buckets are linear inside each power of two (as in HdrHistogram): values below 32 have a bucket
// each; every power of two from 32 on is cut into 32 buckets of equal width, so that a bucket's
// width is at most 1/32 (3.1 %) of its values.
//
//   bucket   0 .. 31    32 .. 63   64 .. 95       96 .. 127        ..   1888 .. 1919
//   values   0 .. 31    32 .. 63   64, 66 .. 126  128, 132 .. 252  ..   up to 2^64 - 1
//
// 15 KiB. Recording costs a shift, and a miss of the bucket's cache line at worst.

/// Counts durations (or any 64-bit numbers) for percentiles. One thread at a time; a histogram a
/// thread, merged at the end, is the way to count on many.
class Histogram {
 public:
  void Record(uint64_t value) noexcept {
    ++buckets_[BucketOf(value)];
    ++count_;
    sum_ += static_cast<double>(value);
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  /// Adds all of `other`'s values.
  void Merge(const Histogram& other) noexcept;
  void Clear() noexcept { *this = Histogram(); }

  uint64_t count() const noexcept { return count_; }
  /// Exact; 0 when nothing was recorded.
  uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  uint64_t max() const noexcept { return max_; }
  double mean() const noexcept { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  /// The smallest value that at least `percent` (0 to 100) of the values do not exceed, at most 3.1
  /// % above the exact one; 0 when nothing was recorded.
  uint64_t Percentile(double percent) const noexcept;

 private:
  static constexpr size_t kSubBucketBits = 5;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBucketBits;
  static constexpr size_t kBuckets = (64 - kSubBucketBits + 1) * kSubBuckets;

  static size_t BucketOf(uint64_t value) noexcept {
    if (value < kSubBuckets) return value;
    const auto shift = static_cast<size_t>(63 - __builtin_clzll(value)) - kSubBucketBits;
    return shift * kSubBuckets + (value >> shift);
  }
  static uint64_t LargestOf(size_t bucket) noexcept;

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace basalt::base
