#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/internal_key.h"

namespace basalt::db {

/// Advances the visible sequence number over finished writes, in the order in which they were given
/// their sequence numbers: a reader at the visible number sees every write up to it, whole.
///
/// A write takes a ticket inside the commit section, inserts its records outside, and calls Finish;
/// it is visible when every write before it has finished too. A write that failed finishes as well:
/// its numbers stay unused and are passed over.
///
/// Layout
///
///   turn, visible ... one line: the ticket of the oldest write that is not visible, and the last
///                     sequence number of the one before it. Who finishes and has the turn stores
///                     both.
///   slots ........... a ring. Who finishes out of turn marks its slot and sleeps; who has the turn
///                     goes on over marked slots, and takes each mark off.
///
/// So a write that comes when its turn has come, which is the rule, moves one line between
/// processors, and slots are read, not written. Whoever takes a mark off has that slot's turn: the
/// write before it or, when that one has not seen the mark, the write itself. One of them sees what
/// the other has stored, because turn and marks are sequentially consistent.
///
/// Thread-safe, without locks.
class CommitQueue {
 public:
  /// Counts writes, from 0, modulo 2^32.
  using Ticket = uint32_t;
  /// Writes under way at most; Take waits for the oldest when there are more.
  static constexpr uint32_t kSlots = 1024;

  /// The end of the queue: kept by whoever guards the order of sequence numbers, beside them.
  struct Tail {
    Ticket next = 0;
    Ticket limit = kSlots;  ///< Tickets below it have a slot of their own.
  };

  explicit CommitQueue(base::SequenceNumber visible) noexcept : visible_(visible) {}

  /// The next ticket; one thread at a time, in the order of sequence numbers.
  Ticket Take(Tail* tail) noexcept {
    if (tail->next == tail->limit) tail->limit = AwaitSlot(tail->next);
    return tail->next++;
  }
  /// The write whose last sequence number is `last` has finished. Returns when it is visible.
  void Finish(Ticket ticket, base::SequenceNumber last) noexcept;
  /// Returns when everything that was taken before is visible.
  void Drain(const Tail& tail) noexcept { AwaitTurnOf(tail.next); }

  base::SequenceNumber visible() const noexcept { return visible_.load(std::memory_order_acquire); }
  /// Starts to fetch what Finish writes. (Dropped by g++ as without effect, unless inlined.)
  [[gnu::always_inline]] void Prefetch() const noexcept { __builtin_prefetch(&turn_, /*rw=*/1); }

 private:
  struct Slot {
    std::atomic<base::SequenceNumber> last{0};
    std::atomic<bool> is_marked{false};  ///< Finished, out of turn.

    bool TakeMark() noexcept {
      return is_marked.load(std::memory_order_seq_cst) &&
             is_marked.exchange(false, std::memory_order_acquire);
    }
  };

  Slot& SlotOf(Ticket ticket) noexcept { return slots_[ticket % kSlots]; }
  bool HasTurn(Ticket ticket) const noexcept {
    return turn_.load(std::memory_order_seq_cst) == ticket;
  }
  /// Whether all before `ticket` is visible.
  bool IsReached(Ticket ticket) const noexcept {
    return static_cast<int32_t>(turn_.load(std::memory_order_seq_cst) - ticket) >= 0;
  }
  void ShowFrom(Ticket ticket, base::SequenceNumber last) noexcept;
  void AwaitTurnOf(Ticket ticket) noexcept;
  Ticket AwaitSlot(Ticket ticket) noexcept;

  alignas(64) std::atomic<Ticket> turn_{0};
  std::atomic<base::SequenceNumber> visible_;
  alignas(64) std::atomic<uint32_t> sleepers_{0};  ///< On `turn_`; seldom written.
  Slot slots_[kSlots];
};

}  // namespace basalt::db
