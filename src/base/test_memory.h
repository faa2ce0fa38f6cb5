#pragma once

#include <cstdint>

// Allocations that fail, in tests. Of each program one file includes test_memory_operators.h, which
// replaces operator new.

namespace basalt::base {

/// While it lives, of the calling thread's allocations the first `allowed` succeed, then `failing`
/// fail, and those behind them succeed again. kNothrow: those that may throw do not count.
class MemoryThatFails {
 public:
  static constexpr int64_t kAll = INT64_MAX / 2;
  enum class Of : uint8_t { kEvery, kNothrow };

  explicit MemoryThatFails(int64_t allowed, int64_t failing = kAll, Of of = Of::kEvery) noexcept;
  ~MemoryThatFails();
  MemoryThatFails(const MemoryThatFails&) = delete;
  MemoryThatFails& operator=(const MemoryThatFails&) = delete;

  /// Whether an allocation has failed.
  bool has_failed() const noexcept;
};

}  // namespace basalt::base
