#pragma once

#include <atomic>
#include <mutex>

// A pair of fences for two threads that must not both miss what the other has stored: one side runs
// often and pays nothing, the other runs seldom and pays for both.
//
//   often:   store x; Light(); load y            seldom:  store y; Heavy(); load x
//
// At least one of the loads sees the other side's store. Light only keeps the compiler from moving
// the load up. Heavy makes the kernel run a full fence on each processor that has a thread of this
// process (membarrier(2), private and expedited, Linux 4.14): some microseconds.
//
// Not every system lets a process do that (seccomp, other kernels). It is asked once, before the
// first thread comes to the often side; if it refuses, IsLight() is false for good, Heavy does
// nothing, and both sides have to make their stores and loads sequentially consistent.

namespace basalt::base {

namespace internal {
extern constinit std::atomic<bool> fence_is_light;
}  // namespace internal

class AsymmetricFence {
 public:
  /// Asks the system. Each thread calls it once before it uses the rest.
  static void Prepare() noexcept;
  /// Held while it is asked. For the handlers of fork() alone.
  static std::mutex& mutex() noexcept;

  static bool IsLight() noexcept {
    return internal::fence_is_light.load(std::memory_order_relaxed);
  }
  /// Only where IsLight().
  static void Light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  /// Prepares by itself.
  static void Heavy() noexcept;
};

}  // namespace basalt::base
