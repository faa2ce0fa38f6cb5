#include "transaction/listener_list.h"

#include <algorithm>
#include <utility>

namespace basalt::transaction {

/// Ends a registration.
class ListenerList::Registration {
 public:
  Registration(std::shared_ptr<ListenerList> list, std::shared_ptr<Listener> listener) noexcept
      : list_(std::move(list)), listener_(std::move(listener)) {}
  ~Registration() { list_->Remove(listener_.get()); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  const std::shared_ptr<ListenerList> list_;
  const std::shared_ptr<Listener> listener_;
};

ListenerList::Pending* ListenerList::Add(Node node, base::SequenceNumber last) noexcept {
  Pending* const pending = &node.front();
  pending->commit.sequence = last;
  const std::scoped_lock lock(queue_mutex_);
  queue_.splice(queue_.end(), node);
  return pending;
}

void ListenerList::Deliver(base::SequenceNumber last) noexcept {
  const std::scoped_lock delivery(delivery_mutex_);
  delivering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (true) {
    Node next;
    {
      const std::scoped_lock lock(queue_mutex_);
      if (queue_.empty() || queue_.front().commit.sequence > last) break;
      next.splice(next.end(), queue_, queue_.begin());
    }
    const Pending& pending = next.front();
    if (pending.failed) continue;
    const CommittedBatch batch(pending.bytes, pending.count, pending.commit);
    for (size_t i = 0; i < listeners_.size(); ++i) {
      const std::shared_ptr<Listener> listener = listeners_[i];
      if (listener == nullptr) continue;
      if (batch.first_sequence() > listener->after.load(std::memory_order_acquire)) {
        listener->call(batch);
      }
    }
  }
  std::erase(listeners_, nullptr);
  delivering_.store(std::thread::id(), std::memory_order_relaxed);
}

Subscription ListenerList::Register(CommitListener listener,
                                    const std::function<base::SequenceNumber()>& last_sequence) {
  const auto made = std::make_shared<Listener>();
  made->call = std::move(listener);
  auto registration = std::make_shared<Registration>(shared_from_this(), made);
  {
    const std::scoped_lock delivery(delivery_mutex_);
    listeners_.push_back(made);
    any_.store(true, std::memory_order_seq_cst);
  }
  const base::SequenceNumber sequence = last_sequence();
  made->after.store(sequence, std::memory_order_release);
  return Subscription(std::move(registration), sequence);
}

void ListenerList::Remove(const Listener* listener) noexcept {
  const auto remove = [&] {
    const auto place = std::ranges::find_if(
        listeners_, [&](const std::shared_ptr<Listener>& one) { return one.get() == listener; });
    if (place != listeners_.end()) place->reset();
    any_.store(std::ranges::any_of(listeners_, [](const auto& one) { return one != nullptr; }),
               std::memory_order_release);
  };
  // Destroyed by a call of a listener: the delivery that makes the call goes on behind it.
  if (delivering_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return remove();
  const std::scoped_lock delivery(delivery_mutex_);
  remove();
  std::erase(listeners_, nullptr);
}

}  // namespace basalt::transaction
