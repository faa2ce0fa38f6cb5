#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "basalt/wall_time.h"

// The contents of a store at one moment. Read Snapshot first.

namespace basalt {

/// A store's contents at one moment. Reads at a snapshot see exactly the writes with a sequence
/// number up to `sequence()`, without the records that had expired at `time()`. A record that
/// expires later stays visible to the snapshot. While a snapshot lives, the versions that it sees
/// are kept. A read of another store at this snapshot returns InvalidArgument. Move-only. May be
/// used and destroyed on any thread. Keeps the store's internal state alive.
class Snapshot {
 public:
  Snapshot(Snapshot&&) noexcept = default;
  Snapshot& operator=(Snapshot&&) noexcept = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  uint64_t sequence() const noexcept { return sequence_; }
  /// When the snapshot was taken, by the store's clock.
  WallTime time() const noexcept { return time_; }

  /// For store implementations: `state` identifies the snapshot to its store.
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
