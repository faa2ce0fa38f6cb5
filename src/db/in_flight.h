#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace basalt::db {

/// Counts the writes that may insert into a memtable, in several lines, so that threads do not
/// write one and the same at each write. Thread-safe; all is sequentially consistent.
class InFlight {
 public:
  /// Where a write has been counted.
  using Counter = std::atomic<uint32_t>;

  /// `thread_number`: base::EpochGuard's.
  Counter* Enter(uint32_t thread_number) noexcept {
    Counter* const counter = &lines_[thread_number % lines_.size()].count;
    counter->fetch_add(1, std::memory_order_seq_cst);
    return counter;
  }
  /// `counter`: as Enter gave it. False: others are still counted there.
  static bool Leave(Counter* counter) noexcept {
    return counter->fetch_sub(1, std::memory_order_seq_cst) == 1;
  }
  /// Whether all have left that entered before the call.
  bool empty() const noexcept {
    return std::ranges::all_of(
        lines_, [](const Line& line) { return line.count.load(std::memory_order_seq_cst) == 0; });
  }

 private:
  struct alignas(64) Line {
    Counter count{0};
  };
  std::array<Line, 8> lines_;
};

}  // namespace basalt::db
