#pragma once

#include <chrono>
#include <cstdint>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

// A clock for single operations of some tens of nanoseconds: the processor's time stamp counter
// where there is one, else steady_clock.

namespace basalt::bench {

/// The time before an operation; what came before it is over.
inline uint64_t TicksBefore() noexcept {
#ifdef __x86_64__
  _mm_lfence();
  const uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// The time after an operation; its loads are over.
inline uint64_t TicksAfter() noexcept {
#ifdef __x86_64__
  unsigned processor = 0;
  const uint64_t ticks = __rdtscp(&processor);
  _mm_lfence();
  return ticks;
#else
  return TicksBefore();
#endif
}

/// Measured against steady_clock when first asked for, which takes 50 ms.
double NanosecondsPerTick();
/// What timing nothing gives, in nanoseconds: every latency contains it.
double TimingCostNs();

}  // namespace basalt::bench
