#pragma once

#include <atomic>
#include <cstdint>

#include "base/pause.h"

namespace basalt::base {

/// A lock of one word, to stand in the line of what it guards: for sections of some hundred
/// nanoseconds that now and then take long. Who finds it taken spins as long as such a section may
/// take, and sleeps then: a holder that was preempted is often run by the processor that sleeping
/// gives away, which yielding would not do. Takes std::unique_lock.
class AdaptiveLock {
 public:
  void lock() noexcept {
    if (!try_lock()) LockSlowly();
  }
  bool try_lock() noexcept {
    uint32_t state = kFree;
    return state_.compare_exchange_strong(state, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kAwaited = 2;  ///< Taken, and somebody may sleep.

  [[gnu::noinline]] void LockSlowly() noexcept {
    const bool is_free =
        SpinUntil([this] { return state_.load(std::memory_order_relaxed) == kFree && try_lock(); });
    if (is_free) return;
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      state_.wait(kAwaited, std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace basalt::base
