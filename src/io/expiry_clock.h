#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "io/clock.h"

namespace basalt::io {

/// The time that decides what has expired: the wall clock's, but it never runs backward, for what
/// has expired may already be dropped. While the wall clock stands behind what was given once, time
/// goes on from there by the monotonic clock: else one jump forward would hold it still until the
/// wall clock comes there. Where the wall clock overtakes it, it follows again.
///
/// Thread-safe. Reads the wall clock alone, but for once a second or where that is behind.
class ExpiryClock {
 public:
  explicit ExpiryClock(Clock* clock) noexcept : clock_(clock) {}
  ExpiryClock(const ExpiryClock&) = delete;
  ExpiryClock& operator=(const ExpiryClock&) = delete;

  /// Milliseconds since 1970 UTC.
  uint64_t NowMs() noexcept;
  /// From here on it is never less than `ms`, and goes on from there.
  void Raise(uint64_t ms) noexcept;
  /// The wall clock stands behind, by more than threads that read it side by side make up.
  bool IsAhead() noexcept;

 private:
  Clock* const clock_;
  std::atomic<uint64_t> latest_ms_{0};  // given
  // By how much it is ahead of the monotonic clock. Only grows, so that a thread that is late with
  // it undoes nothing.
  std::atomic<int64_t> lead_us_{std::numeric_limits<int64_t>::min() / 2};
};

}  // namespace basalt::io
