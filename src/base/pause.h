#pragma once

#include <thread>

namespace basalt::base {

/// Lets the processor rest for some tens of nanoseconds in a loop that waits for a word to change.
inline void PauseCpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether a word can change while this thread waits. Asked as the program is loaded.
inline const bool kHasSeveralProcessors = std::thread::hardware_concurrency() > 1;

/// Waits some microseconds for `condition`; not at all on a machine with one processor, where
/// nothing could change. Whether it has come true.
template <class Condition>
bool SpinUntil(const Condition& condition) noexcept {
  constexpr int kPausesMax = 64;
  if (condition()) return true;
  for (int pauses = 0; kHasSeveralProcessors && pauses < kPausesMax; ++pauses) {
    PauseCpu();
    if (condition()) return true;
  }
  return false;
}

}  // namespace basalt::base
