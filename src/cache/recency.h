#pragma once

#include <algorithm>
#include <cstdint>

namespace basalt::cache {

/// How much a shard's eviction goes by recency instead of frequency, learned from its ghosts.
///
/// Where popularity is steady, evicted keys come back at a constant rate, and what was read once is
/// best evicted soon. Where it moves on, they come back soon after their eviction or not at all,
/// and what is new deserves more time than what was popular. So of the keys that come back within
/// half as many evictions as there are entries, the share that comes back within the first half of
/// that tells the two apart: about 0.5 in the first case, 0.6 and more in the second. `level` rises
/// while the share is above 0.56, and falls while it is below.
///
/// Not thread-safe: under the shard's lock.
class Recency {
 public:
  /// A key came back `age` evictions after its own, to a shard of `entries`.
  void OnGhost(uint64_t age, uint64_t entries) noexcept {
    const uint64_t span = entries / 4;
    if (age < span) {
      level_ = std::min(level_ + kUp, kLevelMax);
    } else if (age < 2 * span) {
      level_ = std::max(level_ - kDown, 0);
    }
  }
  /// True with the probability that recency decides. A sequence of its own, the same in each run.
  bool Decides() noexcept {
    if (level_ == 0) return false;
    const uint64_t mixed = ++draws_ * 0x9E37'79B9'7F4A'7C15;
    return static_cast<int>(mixed >> 48) < level_;
  }

 private:
  static constexpr int kLevelMax = 1 << 16;
  // A step of 0.002, divided as 0.44 to 0.56.
  static constexpr int kUp = 58;
  static constexpr int kDown = 73;

  int level_ = 0;
  uint64_t draws_ = 0;
};

}  // namespace basalt::cache
