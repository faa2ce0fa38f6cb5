#pragma once

#include <atomic>
#include <cstdint>

namespace basalt::db {

/// Keeps writers from filling a memtable while the one before it is still being flushed, where they
/// would have to wait for the rest of the flush at once. The first half of a memtable is free. How
/// much of the other half may be filled grows with the share of the flush that is done; a writer
/// beyond that waits in steps of kStepUs, a step for each write and kBytesOfStep of it at most. The
/// last part of a memtable is left for the time that a flush takes to sync and to install its
/// tables. On average writers are no slower than if they waited at the end of the memtable.
/// Thread-safe. While no flush runs the test of a write is one relaxed load.
class FlushPace {
 public:
  static constexpr uint64_t kStepUs = 1000;
  static constexpr uint64_t kBytesOfStep = 4096;

  /// A memtable of so many bytes was sealed.
  void Begin(uint64_t memtable_bytes) noexcept {
    memtable_bytes_.store(memtable_bytes, std::memory_order_relaxed);
    allowed_.store(memtable_bytes / 2, std::memory_order_relaxed);
  }
  /// `done` of `total` records of the sealed memtable are in tables.
  void Advance(uint64_t done, uint64_t total) noexcept;
  /// The flush has ended, or has failed.
  void End() noexcept { allowed_.store(UINT64_MAX, std::memory_order_relaxed); }

  bool is_free() const noexcept { return allowed_.load(std::memory_order_relaxed) == UINT64_MAX; }
  /// Whether a writer waits one more step when the active memtable has so many bytes.
  bool MustWait(uint64_t active_bytes) const noexcept {
    return active_bytes > allowed_.load(std::memory_order_relaxed);
  }
  /// How many steps a write of so many bytes waits at most.
  static uint64_t StepsMax(uint64_t bytes) noexcept { return 1 + bytes / kBytesOfStep; }

 private:
  std::atomic<uint64_t> allowed_{UINT64_MAX};
  std::atomic<uint64_t> memtable_bytes_{0};
};

}  // namespace basalt::db
