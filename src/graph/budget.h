#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "basalt/graph.h"

namespace basalt::graph {

/// What is left of a read's limits. Nodes, memory and time are spent for the whole read: once one
/// of them does not suffice, the budget is exhausted. Edges are counted for each node alone.
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Budget(const ReadLimits& limits)
      : limits_(limits),
        deadline_(limits.time_max ? Clock::now() + *limits.time_max : Clock::time_point()) {}

  /// Takes one node, and `bytes` of memory for it. False: it does not fit.
  bool TakeNode(size_t bytes) noexcept {
    if (nodes_ >= limits_.visited_max) return Exhaust();
    ++nodes_;
    return TakeBytes(bytes);
  }
  bool TakeBytes(size_t bytes) noexcept {
    if (bytes > limits_.bytes_max - bytes_) return Exhaust();
    bytes_ += bytes;
    return true;
  }
  /// Whether a node that has shown `edges` may show another one.
  bool TakeEdge(uint64_t edges) noexcept {
    if (exhausted_) return false;
    if (edges < limits_.fan_out_max) return TakeStep();
    truncated_ = true;
    return false;
  }
  /// A short piece of work. False: the time is over.
  bool TakeStep() noexcept {
    if (!limits_.time_max || steps_++ % kStepsPerLookAtTheClock != 0) return !is_late_;
    if (Clock::now() < deadline_) return true;
    is_late_ = true;
    return Exhaust();
  }

  /// Nothing more may be visited.
  bool exhausted() const noexcept { return exhausted_; }
  /// The answer is not all that there is: exhausted, or a node had too many edges.
  bool truncated() const noexcept { return truncated_; }

 private:
  static constexpr uint64_t kStepsPerLookAtTheClock = 64;

  bool Exhaust() noexcept {
    truncated_ = true;
    exhausted_ = true;
    return false;
  }

  const ReadLimits limits_;
  const Clock::time_point deadline_;
  uint64_t nodes_ = 0;
  uint64_t bytes_ = 0;
  uint64_t steps_ = 0;
  bool is_late_ = false;
  bool exhausted_ = false;
  bool truncated_ = false;
};

/// Memory of a node in the tables of a search, about.
inline constexpr size_t kVisitedNodeBytes = 64;

}  // namespace basalt::graph
