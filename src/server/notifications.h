#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/command.h"
#include "server/pub_sub.h"

namespace basalt::server {

/// What a command did to a key.
struct Event {
  char event_class;  ///< As in notify-keyspace-events: 'g', '$', 'l', 's', 'h', 'z', 't' or 'x'.
  std::string_view name;
  uint8_t db;
  std::string key;
};

/// The events of a command that has changed these keys.
std::vector<Event> EventsOf(const Command& command, Args args, std::span<const ChangedKey> changed);

// Keyspace notifications: messages on the channels __keyspace@DB__:KEY and __keyevent@DB__:EVENT,
// sent after the commit. Off until CONFIG SET notify-keyspace-events turns them on.
//
// The store lets keys expire without telling. So while events of the class 'x' are wanted, the keys
// that commits give an expiry are remembered here, at most kExpiriesMax of them, and TellExpired
// looks whether those that are due have gone. Expiries from before are not told of.
//
// Thread-safe.
class Notifications {
 public:
  static bool AreFlags(std::string_view flags);
  /// `flags` are such.
  void set_flags(std::string_view flags);
  std::string flags() const;
  bool are_on() const noexcept { return flags_.load(std::memory_order_relaxed) != 0; }

  void Tell(PubSub* pub_sub, std::span<const Event> events) const;
  void NoteExpiries(std::span<const ChangedKey> keys);
  /// Tells of keys that have expired.
  void TellExpired(Dataset* dataset, PubSub* pub_sub);

 private:
  using Place = std::pair<uint8_t, std::string>;
  static constexpr size_t kExpiriesMax = 200'000;

  bool Wants(char flag) const noexcept;
  /// Takes a key that is due. False: none is.
  bool TakeDue(Place* place);
  void Forget(const Place& place);

  std::atomic<uint32_t> flags_{0};  // A bit for each character of kFlags.
  std::mutex mutex_;
  std::map<Place, WallTime> expiry_of_;
  std::map<std::pair<WallTime, Place>, char> due_;
};

}  // namespace basalt::server
