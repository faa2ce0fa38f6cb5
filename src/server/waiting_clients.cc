#include "server/waiting_clients.h"

#include <algorithm>

namespace basalt::server {

std::string WaitingClients::NameOf(uint8_t db, const std::string& key) {
  return static_cast<char>(db) + key;
}

void WaitingClients::WakeFirst(const Queue& queue) {
  if (queue.empty()) return;
  if (const std::shared_ptr<Peer> peer = queue.front().second.lock()) peer->Wake();
}

void WaitingClients::Enter(Peer* peer, uint8_t db, const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    Queue& queue = queues_[NameOf(db, key)];
    const bool is_there = std::any_of(queue.begin(), queue.end(),
                                      [&](const auto& entry) { return entry.first == peer; });
    if (!is_there) queue.emplace_back(peer, peer->weak_from_this());
  }
  count_.fetch_add(1);
}

void WaitingClients::Leave(Peer* peer, uint8_t db, const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    const auto found = queues_.find(NameOf(db, key));
    if (found == queues_.end()) continue;
    Queue& queue = found->second;
    std::erase_if(queue, [&](const auto& entry) { return entry.first == peer; });
    WakeFirst(queue);
    if (queue.empty()) queues_.erase(found);
  }
  count_.fetch_sub(1);
}

void WaitingClients::PassOn(Peer* peer, uint8_t db, const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    const auto found = queues_.find(NameOf(db, key));
    if (found == queues_.end()) continue;
    const Queue& queue = found->second;
    auto at = std::find_if(queue.begin(), queue.end(),
                           [&](const auto& entry) { return entry.first == peer; });
    if (at == queue.end() || ++at == queue.end()) continue;
    if (const std::shared_ptr<Peer> next = at->second.lock()) next->Wake();
  }
}

void WaitingClients::Signal(const std::vector<ChangedKey>& changed) {
  if (count_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  for (const ChangedKey& key : changed) {
    const auto found = queues_.find(NameOf(key.db, key.name));
    if (found != queues_.end()) WakeFirst(found->second);
  }
}

}  // namespace basalt::server
