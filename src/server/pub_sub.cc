#include "server/pub_sub.h"

#include "server/glob.h"

namespace basalt::server {

void PubSub::Add(Table* table, Peer* peer, const std::string& name) {
  (*table)[name].emplace(peer, peer->weak_from_this());
}

void PubSub::Remove(Table* table, Peer* peer, const std::string& name) {
  const auto found = table->find(name);
  if (found == table->end()) return;
  found->second.erase(peer);
  if (found->second.empty()) table->erase(found);
}

void PubSub::Subscribe(Peer* peer, const std::string& channel) {
  const std::lock_guard lock(mutex_);
  Add(&channels_, peer, channel);
}
void PubSub::Unsubscribe(Peer* peer, const std::string& channel) {
  const std::lock_guard lock(mutex_);
  Remove(&channels_, peer, channel);
}
void PubSub::SubscribePattern(Peer* peer, const std::string& pattern) {
  const std::lock_guard lock(mutex_);
  Add(&patterns_, peer, pattern);
}
void PubSub::UnsubscribePattern(Peer* peer, const std::string& pattern) {
  const std::lock_guard lock(mutex_);
  Remove(&patterns_, peer, pattern);
}

size_t PubSub::CountReceivers(std::string_view channel) const {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(std::string(channel));
  size_t count = found == channels_.end() ? 0 : found->second.size();
  for (const auto& [pattern, peers] : patterns_) {
    if (GlobMatches(pattern, channel)) count += peers.size();
  }
  return count;
}

void PubSub::Publish(std::string_view channel, std::string_view text) {
  const auto hand_over = [&](const Peers& peers, const std::string& pattern, bool has_pattern) {
    const auto message = std::make_shared<const Message>(
        Message{pattern, has_pattern, std::string(channel), std::string(text)});
    for (const auto& [address, weak] : peers) {
      if (const std::shared_ptr<Peer> peer = weak.lock()) peer->Deliver(message);
    }
  };
  const std::lock_guard lock(mutex_);
  if (const auto found = channels_.find(std::string(channel)); found != channels_.end()) {
    hand_over(found->second, {}, false);
  }
  for (const auto& [pattern, peers] : patterns_) {
    if (GlobMatches(pattern, channel)) hand_over(peers, pattern, true);
  }
}

std::vector<std::string> PubSub::Channels(std::string_view pattern) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, peers] : channels_) {
    if (GlobMatches(pattern, name)) names.push_back(name);
  }
  return names;
}

size_t PubSub::CountSubscribers(const std::string& channel) const {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(channel);
  return found == channels_.end() ? 0 : found->second.size();
}

size_t PubSub::CountPatterns() const {
  const std::lock_guard lock(mutex_);
  return patterns_.size();
}

}  // namespace basalt::server
