#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace basalt::base {

/// One word, for critical sections of some tens of nanoseconds. Waiters look without writing,
/// pause, and after a while give the processor away, since the holder may have been preempted.
template <template <class> class Atomic>
class BasicSpinLock {
 public:
  void lock() noexcept {
    while (locked_.exchange(1, std::memory_order_acquire) != 0) Wait();
  }
  void unlock() noexcept { locked_.store(0, std::memory_order_release); }

 private:
  void Wait() const noexcept {
    constexpr int kPausesMax = 128;
    for (int pauses = 0; locked_.load(std::memory_order_relaxed) != 0; ++pauses) {
      if (pauses >= kPausesMax) {
        sched_yield();
        continue;
      }
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
  }

  Atomic<uint32_t> locked_{0};
};

using SpinLock = BasicSpinLock<std::atomic>;

}  // namespace basalt::base
