#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/internal_key.h"
#include "memtable/store.h"

namespace basalt::memtable {

/// What a Snapshot holds: it keeps what can be seen at its sequence and time from being merged
/// away.
class StoreCore::SnapshotState {
 public:
  // The time before the sequence: store_commit.cc depends on it.
  explicit SnapshotState(std::shared_ptr<const StoreCore> core) : core_(std::move(core)) {
    const std::lock_guard lock(core_->snapshots_mutex_);
    time_ms_ = core_->time_.NowMs();
    sequence_ = core_->sequencer_.last();
    place_ = core_->snapshots_.emplace(sequence_, time_ms_);
  }
  ~SnapshotState() {
    if (core_->IsInherited()) return;
    const std::lock_guard lock(core_->snapshots_mutex_);
    core_->snapshots_.erase(place_);
    core_->snapshot_changes_.fetch_add(1, std::memory_order_relaxed);
  }
  SnapshotState(const SnapshotState&) = delete;
  SnapshotState& operator=(const SnapshotState&) = delete;

  const StoreCore* core() const noexcept { return core_.get(); }
  base::SequenceNumber sequence() const noexcept { return sequence_; }
  uint64_t time_ms() const noexcept { return time_ms_; }

 private:
  const std::shared_ptr<const StoreCore> core_;
  base::SequenceNumber sequence_ = 0;
  uint64_t time_ms_ = 0;
  std::multiset<std::pair<base::SequenceNumber, uint64_t>>::iterator place_;
};

}  // namespace basalt::memtable
