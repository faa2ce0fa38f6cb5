#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/peer.h"

namespace basalt::server {

/// Who has subscribed to which channels and patterns. A peer unsubscribes before it goes.
/// Thread-safe. The lock is held while messages are handed over, so that all subscribers of a
/// channel receive its messages in one order.
class PubSub {
 public:
  void Subscribe(Peer* peer, const std::string& channel);
  void Unsubscribe(Peer* peer, const std::string& channel);
  void SubscribePattern(Peer* peer, const std::string& pattern);
  void UnsubscribePattern(Peer* peer, const std::string& pattern);

  /// How many peers a message of this channel reaches now.
  size_t CountReceivers(std::string_view channel) const;
  void Publish(std::string_view channel, std::string_view text);

  /// Channels with subscribers that match the pattern.
  std::vector<std::string> Channels(std::string_view pattern) const;
  size_t CountSubscribers(const std::string& channel) const;
  size_t CountPatterns() const;

 private:
  using Peers = std::map<Peer*, std::weak_ptr<Peer>>;
  using Table = std::unordered_map<std::string, Peers>;
  static void Add(Table* table, Peer* peer, const std::string& name);
  static void Remove(Table* table, Peer* peer, const std::string& name);

  mutable std::mutex mutex_;
  Table channels_;
  Table patterns_;
};

}  // namespace basalt::server
