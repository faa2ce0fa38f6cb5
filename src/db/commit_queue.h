#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/internal_key.h"

namespace basalt::db {

/// Advances the visible sequence number over finished writes, in the order in which they were given
/// their sequence numbers: a reader at the visible number sees every write up to it, whole.
///
/// A write calls Push inside the commit section, inserts its records outside, and calls Finish; it
/// is visible when every write before it has finished too. A write that failed finishes as well:
/// its numbers stay unused and are passed over.
///
/// Layout: a ring of slots, one a write between the head (the oldest that is not visible) and the
/// tail; whoever finishes moves the head over all finished slots. Thread-safe, without locks; a
/// lone writer pays four uncontended atomic operations. Who has to wait spins for a moment, then
/// sleeps.
class CommitQueue {
 public:
  using Ticket = uint64_t;
  /// Writes under way at most; Push waits for the oldest when there are more.
  static constexpr size_t kSlots = 1024;

  explicit CommitQueue(base::SequenceNumber visible) noexcept : visible_(visible) {}

  /// `last` is the write's last sequence number; one thread at a time, in ascending order of it.
  Ticket Push(base::SequenceNumber last) noexcept;
  /// Marks the write finished, and returns when it is visible.
  void Finish(Ticket ticket) noexcept;
  /// Returns when everything pushed so far is visible.
  void Drain() noexcept;

  base::SequenceNumber visible() const noexcept { return visible_.load(std::memory_order_acquire); }

 private:
  struct Slot {
    std::atomic<base::SequenceNumber> last{0};
    std::atomic<bool> finished{false};
  };

  Slot& SlotOf(Ticket ticket) noexcept { return slots_[ticket % kSlots]; }
  void Advance() noexcept;
  void WaitUntilPast(Ticket ticket) noexcept;

  alignas(64) std::atomic<Ticket> head_{0};
  alignas(64) std::atomic<Ticket> tail_{0};
  alignas(64) std::atomic<base::SequenceNumber> visible_;
  /// Tickets below it are visible. Follows the head, so that who sleeps on it is woken in time.
  alignas(64) std::atomic<Ticket> shown_{0};
  Slot slots_[kSlots];
};

}  // namespace basalt::db
