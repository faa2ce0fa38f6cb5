#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "basalt/changes.h"
#include "base/internal_key.h"

// The listeners of a store, and the batches that they have yet to receive.
//
// A write that finds listeners copies its batch into a Pending before it takes a lock (Prepare).
// Under the lock that orders commits it adds that to the queue (Add), with its sequence number.
// When its outcome is known it says so (Settle). When it is visible, and with it all earlier
// writes, it hands out everything up to itself (Deliver), in the order of the queue; a batch that
// failed is left out. So the call for a batch has ended when its write returns, whichever thread
// makes the call.
//
// Locks: queue_mutex_ guards the queue; delivery_mutex_ is held while listeners are called, and
// guards their list. The lock that orders commits may be held when queue_mutex_ is taken.
//
// Cost: a store without listeners pays for one load of `any`.

namespace basalt::transaction {

class ListenerList : public std::enable_shared_from_this<ListenerList> {
 public:
  /// A batch on its way. A node of a list, so that adding it takes no memory.
  struct Pending {
    std::string bytes;  ///< In log form.
    size_t count = 0;
    Commit commit{};
    bool failed = false;
  };
  using Node = std::list<Pending>;

  bool any() const noexcept { return any_.load(std::memory_order_acquire); }

  /// Throws std::bad_alloc.
  static Node Prepare(std::string_view bytes, size_t count) {
    Node node;
    node.push_back({.bytes = std::string(bytes), .count = count});
    return node;
  }
  /// Under the lock that orders commits. Valid until Deliver.
  Pending* Add(Node node, base::SequenceNumber last) noexcept;
  /// By the batch's own thread, before it is visible.
  static void Settle(Pending* pending, bool is_written, uint64_t lsn) noexcept {
    pending->commit.lsn = lsn;
    pending->failed = !is_written;
  }
  /// Everything up to `last` is visible or has failed.
  void Deliver(base::SequenceNumber last) noexcept;

  /// `listener` receives what comes behind the sequence number that `last_sequence` gives. It is
  /// called when writers have begun to prepare their batches, and takes the lock that orders
  /// commits: a write that holds that lock and finds any() without having prepared begins anew.
  /// Throws std::bad_alloc.
  Subscription Register(CommitListener listener,
                        const std::function<base::SequenceNumber()>& last_sequence);

 private:
  struct Listener {
    CommitListener call;
    std::atomic<base::SequenceNumber> after{base::kMaxSequence};
  };
  class Registration;
  void Remove(const Listener* listener) noexcept;

  std::atomic<bool> any_{false};
  std::mutex queue_mutex_;
  Node queue_;
  std::mutex delivery_mutex_;
  std::atomic<std::thread::id> delivering_{};
  std::vector<std::shared_ptr<Listener>> listeners_;
};

}  // namespace basalt::transaction
