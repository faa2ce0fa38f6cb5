#pragma once

#include <cstdint>
#include <functional>

#include "base/histogram.h"

namespace basalt::bench {

struct Plan {
  uint32_t calls = 0;
  uint32_t operations_per_call = 1;
  /// The calls are cut into one contiguous part for each. All threads exist and wait before the
  /// clock starts; one thread is the calling one.
  uint32_t threads = 1;
};

struct Measurement {
  double seconds = 0;      ///< From the release of the threads to the end of the last.
  double cpu_seconds = 0;  ///< That all threads of the process took in that time.
  uint64_t operations = 0;
  base::Histogram call_ns;  ///< Of every call, of all threads.

  double PerSecond() const { return static_cast<double>(operations) / seconds; }
};

/// Calls `operation` with 0 .. calls - 1. One look at the clock a call, some 25 ns, is in all
/// figures: the end of one call is the beginning of the next, so that no pause goes unseen.
Measurement Measure(const Plan& plan, const std::function<void(uint32_t)>& operation);

}  // namespace basalt::bench
