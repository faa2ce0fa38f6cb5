#pragma once

#include <memory>
#include <string>

namespace basalt::server {

/// A message that subscribers receive.
struct Message {
  std::string pattern;  ///< Empty: of a channel that was subscribed to by name.
  bool has_pattern = false;
  std::string channel;
  std::string text;
};

/// A client as others reach it. All functions may be called from any thread and return at once.
class Peer : public std::enable_shared_from_this<Peer> {
 public:
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  virtual void Deliver(std::shared_ptr<const Message> message) = 0;
  /// A key that it waits for may be there.
  virtual void Wake() = 0;
  /// Its line of CLIENT LIST.
  virtual std::string Describe() const = 0;

 protected:
  Peer() = default;
};

}  // namespace basalt::server
