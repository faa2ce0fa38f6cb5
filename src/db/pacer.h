#pragma once

#include <atomic>
#include <cstdint>

namespace basalt::db {

/// Holds writers back while compaction lags behind, so that they come to the pace that it can keep.
///
/// The lag is a number of rounds (CompactionLag). Up to kLagFree writers are free. From there on a
/// byte takes 10 ns * (16^(lag - kLagFree) - 1), up to 100 us: nothing at first, 150 ns (6.7 MB/s)
/// one round later, 2.5 us (400 kB/s) two rounds later. The more writers are held back the slower
/// the lag grows, and it stands still where they write as fast as compaction works. As the pace
/// changes by a factor of 16 with each round, that point is reached within one or two rounds on a
/// fast disk and on a slow one, for one level to rewrite and for five, and no rate has to be known.
///
/// All writers share one pace: each takes its time behind those before it. None waits longer than a
/// second for one write. Thread-safe; the test of a free pace is one relaxed load.
class Pacer {
 public:
  static constexpr double kLagFree = 2;
  static constexpr uint64_t kWaitMinNs = 1'000'000;  ///< What is less is waited for later.
  static constexpr uint64_t kWaitMaxNs = 1'000'000'000;

  void SetLag(double lag) noexcept;
  bool is_free() const noexcept { return ns_per_kib_.load(std::memory_order_relaxed) == 0; }
  /// How many ns a writer of `bytes` is to wait at `now_ns`, a time that does not run backward.
  uint64_t Charge(uint64_t bytes, uint64_t now_ns) noexcept;
  /// Whether writers that were charged before have taken the time from `now_ns` on.
  bool IsTaken(uint64_t now_ns) const noexcept {
    return taken_until_ns_.load(std::memory_order_relaxed) >= now_ns + kWaitMinNs;
  }

 private:
  std::atomic<uint64_t> ns_per_kib_{0};
  std::atomic<uint64_t> taken_until_ns_{0};  // by those that have been charged
};

}  // namespace basalt::db
