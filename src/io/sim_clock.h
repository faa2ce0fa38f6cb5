#pragma once

#include <atomic>
#include <cstdint>

#include "io/clock.h"

namespace basalt::io {

/// A clock that stands still until it is told otherwise, so that a run replays. Thread-safe.
class SimClock final : public Clock {
 public:
  /// `wall_ms`: milliseconds since 1970 UTC to begin with; by default a moment in 2026.
  explicit SimClock(uint64_t wall_ms = 1'770'000'000'000) noexcept : wall_micros_(wall_ms * 1000) {}

  uint64_t MonotonicMicros() override { return monotonic_micros_.load(); }
  uint64_t WallMillis() override { return wall_micros_.load() / 1000; }
  /// Ends at once, and no time has gone on.
  void SleepFor(uint64_t) override {}

  /// Both times go on by this much.
  void Advance(uint64_t micros) noexcept {
    monotonic_micros_.fetch_add(micros);
    wall_micros_.fetch_add(micros);
  }
  /// The wall clock jumps, forwards or backwards; the monotonic one does not notice.
  void SetWall(uint64_t wall_ms) noexcept { wall_micros_.store(wall_ms * 1000); }

 private:
  std::atomic<uint64_t> monotonic_micros_{0};
  std::atomic<uint64_t> wall_micros_;
};

}  // namespace basalt::io
