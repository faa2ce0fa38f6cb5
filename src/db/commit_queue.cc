#include "db/commit_queue.h"

namespace basalt::db {

CommitQueue::Ticket CommitQueue::Push(base::SequenceNumber last) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back({last, false});
  return first_ticket_ + entries_.size() - 1;
}

void CommitQueue::Finish(Ticket ticket) {
  std::unique_lock lock(mutex_);
  entries_[ticket - first_ticket_].finished = true;
  if (ticket == first_ticket_) {
    base::SequenceNumber visible = 0;
    while (!entries_.empty() && entries_.front().finished) {
      visible = entries_.front().last;
      entries_.pop_front();
      ++first_ticket_;
    }
    visible_.store(visible, std::memory_order_release);
    if (waiters_ > 0) advanced_.notify_all();
    return;
  }
  ++waiters_;
  advanced_.wait(lock, [&] { return first_ticket_ > ticket; });
  --waiters_;
}

void CommitQueue::Drain() {
  std::unique_lock lock(mutex_);
  const Ticket end = first_ticket_ + entries_.size();
  ++waiters_;
  advanced_.wait(lock, [&] { return first_ticket_ >= end; });
  --waiters_;
}

}  // namespace basalt::db
