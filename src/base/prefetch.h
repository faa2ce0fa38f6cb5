#pragma once

namespace basalt::base {

/// Starts to load a line that will be written, as this core's own: what another core has of it goes
/// at once, and not when the store waits for that. Any address does.
[[gnu::always_inline]] inline void PrefetchToWrite(const void* at) noexcept {
#if defined(__x86_64__)
  // The compiler makes this of __builtin_prefetch only for processors of which it is told that they
  // have it; those since 2006 that do not take it for no operation.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, /*rw=*/1);
#endif
}

}  // namespace basalt::base
