#include "db/commit_queue.h"

#include <thread>

namespace basalt::db {
namespace {

void RaiseTo(std::atomic<uint64_t>* number, uint64_t value) noexcept {
  uint64_t present = number->load(std::memory_order_relaxed);
  while (present < value &&
         !number->compare_exchange_weak(present, value, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
}

}  // namespace

CommitQueue::Ticket CommitQueue::Push(base::SequenceNumber last) noexcept {
  const Ticket ticket = tail_.load(std::memory_order_relaxed);
  if (ticket >= kSlots) WaitUntilPast(ticket - kSlots);
  Slot& slot = SlotOf(ticket);
  slot.last.store(last, std::memory_order_relaxed);
  slot.finished.store(false, std::memory_order_relaxed);
  tail_.store(ticket + 1, std::memory_order_release);
  return ticket;
}

// Whoever marks the slot at the head sees it there when looking, or somebody else moves the head
// there after the mark and sees the mark: both are sequentially consistent, and so in one order.
void CommitQueue::Finish(Ticket ticket) noexcept {
  SlotOf(ticket).finished.store(true, std::memory_order_seq_cst);
  Advance();
  WaitUntilPast(ticket);
}

void CommitQueue::Drain() noexcept {
  const Ticket end = tail_.load(std::memory_order_acquire);
  if (end > 0) WaitUntilPast(end - 1);
}

void CommitQueue::Advance() noexcept {
  Ticket head = head_.load(std::memory_order_seq_cst);
  while (head < tail_.load(std::memory_order_acquire)) {
    Slot& slot = SlotOf(head);
    if (!slot.finished.load(std::memory_order_seq_cst)) return;
    // Good only if the head is still there afterwards: else the slot may be another write's.
    const base::SequenceNumber last = slot.last.load(std::memory_order_relaxed);
    if (!head_.compare_exchange_strong(head, head + 1, std::memory_order_seq_cst)) continue;
    RaiseTo(&visible_, last);
    RaiseTo(&shown_, ++head);
    shown_.notify_all();
  }
}

void CommitQueue::WaitUntilPast(Ticket ticket) noexcept {
  constexpr int kSpins = 64;
  for (int spins = 0;; ++spins) {
    const Ticket shown = shown_.load(std::memory_order_acquire);
    if (shown > ticket) return;
    if (spins < kSpins) {
      std::this_thread::yield();
    } else {
      shown_.wait(shown, std::memory_order_acquire);
    }
  }
}

}  // namespace basalt::db
