#include "server/hub.h"

namespace basalt::server {

uint64_t Hub::uptime_seconds() const {
  const auto up = std::chrono::steady_clock::now() - started_;
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(up).count());
}

void Hub::AddClient(uint64_t id, const std::shared_ptr<Peer>& peer) {
  const std::lock_guard lock(clients_mutex_);
  clients_.emplace(id, peer);
}

void Hub::RemoveClient(uint64_t id) {
  const std::lock_guard lock(clients_mutex_);
  clients_.erase(id);
}

size_t Hub::CountClients() const {
  const std::lock_guard lock(clients_mutex_);
  return clients_.size();
}

std::vector<std::shared_ptr<Peer>> Hub::Clients() const {
  const std::lock_guard lock(clients_mutex_);
  std::vector<std::shared_ptr<Peer>> peers;
  for (const auto& [id, weak] : clients_) {
    if (std::shared_ptr<Peer> peer = weak.lock()) peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace basalt::server
