#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace basalt {

/// A store's contents at one moment. Reads that name it see exactly the writes with a sequence
/// number up to `sequence()`. Move-only; may be used and destroyed on any thread; keeps the store's
/// core alive. While it lives, the versions it can see are not dropped. Given to another store, a
/// read answers InvalidArgument.
class Snapshot {
 public:
  Snapshot(Snapshot&&) noexcept = default;
  Snapshot& operator=(Snapshot&&) noexcept = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  uint64_t sequence() const noexcept { return sequence_; }

  /// For store implementations: `state` is what the store recognises as its own.
  Snapshot(std::shared_ptr<const void> state, uint64_t sequence)
      : state_(std::move(state)), sequence_(sequence) {}
  const std::shared_ptr<const void>& state() const& noexcept { return state_; }
  std::shared_ptr<const void> state() && noexcept { return std::move(state_); }

 private:
  std::shared_ptr<const void> state_;
  uint64_t sequence_;
};

}  // namespace basalt
