#pragma once

#include <cstdint>
#include <ctime>

#include "io/clock.h"

namespace basalt::cache {

/// Milliseconds for deadlines: exact, but mostly read from the kernel's coarse clock, which costs a
/// fifth. The coarse clock is late by a tick, and where a virtual machine's processor stood still,
/// by as long as that until its next tick; the exact one is asked when that could matter.
/// Thread-safe.
class ExpiryClock {
 public:
  /// `clock`: for tests; null: the machine's.
  explicit ExpiryClock(io::Clock* clock) noexcept : clock_(clock) {
    timespec resolution;
    if (clock_ != nullptr || clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0) {
      uses_coarse_ = false;
    } else {
      margin_ms_ = kStandstillMs + 2 * (static_cast<uint64_t>(resolution.tv_nsec) / 1'000'000 + 1) +
                   static_cast<uint64_t>(resolution.tv_sec) * 2000;
      far_off_ms_ = margin_ms_ + kShiftErrorMs;
    }
  }

  /// The present time, or up to a second before it.
  uint64_t CoarseMillis() const noexcept {
    if (!uses_coarse_) return ExactMicros() / 1000;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 +
           static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
  }

  uint64_t ExactMicros() const noexcept {
    if (clock_ != nullptr) return clock_->MonotonicMicros();
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000 +
           static_cast<uint64_t>(now.tv_nsec) / 1000;
  }
  /// Deadlines beyond it have not come; the others may have, or not: HasCome knows. The least work
  /// that tells of most.
  uint64_t FarOff() const noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    // A shift instead of a division by a million: up to kShiftErrorMs less.
    return static_cast<uint64_t>(now.tv_sec) * 1000 + (static_cast<uint64_t>(now.tv_nsec) >> 20) +
           far_off_ms_;
  }
  /// Whether it has come; `coarse_ms` was read by the caller, for all that it asks about.
  bool HasCome(uint64_t deadline_ms, uint64_t coarse_ms) const noexcept {
    if (coarse_ms >= deadline_ms) return true;
    if (coarse_ms + margin_ms_ < deadline_ms) return false;
    return ExactMicros() >= deadline_ms * 1000;
  }

 private:
  static constexpr uint64_t kStandstillMs = 1000;
  static constexpr uint64_t kShiftErrorMs = 1000 - (1'000'000'000 >> 20);

  io::Clock* const clock_;
  bool uses_coarse_ = true;
  uint64_t margin_ms_ = 0;
  uint64_t far_off_ms_ = uint64_t{1} << 62;  ///< Nothing is, where the coarse clock is not used.
};

/// The time of one operation on a cache: read once, when it is first asked for.
class Moment {
 public:
  explicit Moment(const ExpiryClock* clock) noexcept : clock_(clock) {}

  /// As ExpiryClock has it.
  uint64_t CoarseMillis() noexcept {
    if (!is_read_) Set(clock_->CoarseMillis());
    return millis_;
  }
  /// The deadline of what is put now, rounded up: reads the exact clock.
  uint64_t DeadlineAfter(uint64_t ttl_ms) noexcept {
    const uint64_t now_us = clock_->ExactMicros();
    Set(now_us / 1000);
    return (now_us + 999) / 1000 + ttl_ms;
  }

 private:
  void Set(uint64_t millis) noexcept {
    millis_ = millis;
    is_read_ = true;
  }

  const ExpiryClock* const clock_;
  uint64_t millis_ = 0;
  bool is_read_ = false;
};

}  // namespace basalt::cache
