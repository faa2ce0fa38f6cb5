#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "basalt/snapshot.h"
#include "basalt/status.h"

namespace basalt::server {

/// The snapshots that clients hold (store_commands.cc). Each belongs to the connection that took it
/// and goes with it; other connections of the same client may read from it. One that nobody has
/// used for kIdle goes, too. Numbers begin at a random one, so that a number from before a restart
/// is not taken for another snapshot's. Thread-safe.
class SnapshotTable {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kOfOwnerMax = 1024;
  static constexpr size_t kAllMax = 16'384;
  static constexpr std::chrono::minutes kIdle{5};

  SnapshotTable();

  /// Its number, never 0. ResourceExhausted: the owner, or all together, have too many.
  Result<uint64_t> Add(uint64_t owner, Snapshot snapshot);
  /// OutOfRange: it is gone.
  Result<std::shared_ptr<const Snapshot>> Find(uint64_t number);
  void Remove(uint64_t number);
  void RemoveOwner(uint64_t owner);
  void RemoveIdle(Clock::time_point now);
  size_t count() const;

 private:
  struct Held {
    uint64_t owner;
    std::shared_ptr<const Snapshot> snapshot;
    Clock::time_point used;
  };
  using ByNumber = std::unordered_map<uint64_t, Held>;
  /// Takes one out. What it gives is destroyed without the lock.
  std::shared_ptr<const Snapshot> Take(ByNumber::iterator at);

  mutable std::mutex mutex_;
  uint64_t next_;
  ByNumber held_;
  std::unordered_map<uint64_t, std::unordered_set<uint64_t>> of_owner_;
};

}  // namespace basalt::server
