#pragma once

#include <cstdint>

namespace basalt::io {

/// Time, injected. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Never runs backwards; its zero has no meaning. Microseconds.
  virtual uint64_t MonotonicMicros() = 0;
  /// Milliseconds since 1970 UTC; may jump.
  virtual uint64_t WallMillis() = 0;
  /// Waits for so long.
  virtual void SleepFor(uint64_t micros) = 0;

  /// The machine's clock.
  static Clock* System();
};

}  // namespace basalt::io
