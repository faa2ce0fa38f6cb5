#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "base/internal_key.h"

namespace basalt::db {

/// Advances the visible sequence number over finished writes, in the order in which they were given
/// their sequence numbers: a reader at the visible number sees every write up to it, whole.
///
/// A write calls Push inside the commit section, inserts its records outside, and calls Finish; it
/// is visible when every write before it has finished too. A write that failed finishes as well:
/// its numbers stay unused and are passed over. Thread-safe; two short uncontended locks a write.
class CommitQueue {
 public:
  using Ticket = uint64_t;

  explicit CommitQueue(base::SequenceNumber visible) : visible_(visible) {}

  /// `last` is the write's last sequence number; calls are in ascending order of it.
  Ticket Push(base::SequenceNumber last);
  /// Marks the write finished, and returns when it is visible.
  void Finish(Ticket ticket);
  /// Returns when everything pushed so far is visible.
  void Drain();

  base::SequenceNumber visible() const noexcept { return visible_.load(std::memory_order_acquire); }

 private:
  struct Entry {
    base::SequenceNumber last;
    bool finished;
  };

  std::mutex mutex_;
  std::condition_variable advanced_;
  std::deque<Entry> entries_;  // front: the oldest that is not visible
  Ticket first_ticket_ = 0;    // of entries_.front()
  uint32_t waiters_ = 0;
  std::atomic<base::SequenceNumber> visible_;
};

}  // namespace basalt::db
