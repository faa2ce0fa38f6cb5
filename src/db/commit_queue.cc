#include "db/commit_queue.h"

#include "base/pause.h"

namespace basalt::db {

void CommitQueue::Finish(Ticket ticket, base::SequenceNumber last) noexcept {
  if (!base::SpinUntil([&] { return HasTurn(ticket); })) {
    Slot& slot = SlotOf(ticket);
    slot.last.store(last, std::memory_order_relaxed);
    slot.is_marked.store(true, std::memory_order_seq_cst);
    if (!HasTurn(ticket) || !slot.TakeMark()) {
      AwaitTurnOf(ticket + 1);
      return;
    }
  }
  ShowFrom(ticket, last);
}

void CommitQueue::ShowFrom(Ticket ticket, base::SequenceNumber last) noexcept {
  while (true) {
    visible_.store(last, std::memory_order_release);
    turn_.store(++ticket, std::memory_order_seq_cst);
    Slot& next = SlotOf(ticket);
    if (!next.TakeMark()) break;
    last = next.last.load(std::memory_order_relaxed);
  }
  if (sleepers_.load(std::memory_order_seq_cst) != 0) turn_.notify_all();
}

void CommitQueue::AwaitTurnOf(Ticket ticket) noexcept {
  if (IsReached(ticket)) return;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!IsReached(ticket)) {
    const Ticket turn = turn_.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(turn - ticket) < 0) turn_.wait(turn, std::memory_order_seq_cst);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

CommitQueue::Ticket CommitQueue::AwaitSlot(Ticket ticket) noexcept {
  AwaitTurnOf(ticket - kSlots + 1);
  return turn_.load(std::memory_order_seq_cst) + kSlots;
}

}  // namespace basalt::db
