#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "basalt/wall_time.h"

namespace basalt {

/// A store's contents at one moment. Reads that name it see exactly the writes with a sequence
/// number up to `sequence()`, without the records that had expired at `time()`. A record that
/// expires later stays visible to it. While a snapshot lives, what it can see is kept. Move-only;
/// may be used and destroyed on any thread; keeps the store's core alive. A read of another store
/// that names it is InvalidArgument.
class Snapshot {
 public:
  Snapshot(Snapshot&&) noexcept = default;
  Snapshot& operator=(Snapshot&&) noexcept = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  uint64_t sequence() const noexcept { return sequence_; }
  /// When it was taken, by the store's clock.
  WallTime time() const noexcept { return time_; }

  /// For store implementations: `state` is what the store recognises as its own.
  Snapshot(std::shared_ptr<const void> state, uint64_t sequence, WallTime time) noexcept
      : state_(std::move(state)), sequence_(sequence), time_(time) {}
  const std::shared_ptr<const void>& state() const& noexcept { return state_; }
  std::shared_ptr<const void> state() && noexcept { return std::move(state_); }

 private:
  std::shared_ptr<const void> state_;
  uint64_t sequence_;
  WallTime time_;
};

}  // namespace basalt
