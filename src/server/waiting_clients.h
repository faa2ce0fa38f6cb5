#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/peer.h"
#include "server/view.h"

namespace basalt::server {

// Clients whose blocking commands wait for keys, in the order in which they came.
//
// A commit that changes a key wakes the first client that waits for it. That client runs its
// command again. When it is answered it leaves, and Leave wakes the next one, since there may be
// more elements. A client that finds nothing keeps its place and passes the turn on, since others
// may wait for something else in the key. A client enters before it looks at its keys again, so
// that no change falls between.
//
// Thread-safe. Without waiting clients a commit pays for one load.
class WaitingClients {
 public:
  void Enter(Peer* peer, uint8_t db, const std::vector<std::string>& keys);
  void Leave(Peer* peer, uint8_t db, const std::vector<std::string>& keys);
  /// Wakes the clients behind this one.
  void PassOn(Peer* peer, uint8_t db, const std::vector<std::string>& keys);
  void Signal(const std::vector<ChangedKey>& changed);
  size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  using Queue = std::deque<std::pair<Peer*, std::weak_ptr<Peer>>>;
  static std::string NameOf(uint8_t db, const std::string& key);
  static void WakeFirst(const Queue& queue);

  std::atomic<size_t> count_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, Queue> queues_;
};

}  // namespace basalt::server
