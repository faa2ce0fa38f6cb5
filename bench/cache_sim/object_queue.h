#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace basalt::cache_sim {

inline constexpr uint32_t kNoKey = std::numeric_limits<uint32_t>::max();

/// A key's links in the queue that it is in, if any.
struct QueueLink {
  uint32_t older = kNoKey;
  uint32_t newer = kNoKey;
  uint32_t size = 0;
};

/// A queue of objects, from the oldest to the newest, out of which any can be taken. Several queues
/// share one array of links, indexed by key: a key is in at most one of them. Every operation takes
/// constant time.
class ObjectQueue {
 public:
  explicit ObjectQueue(std::vector<QueueLink>* links) noexcept : links_(*links) {}

  bool empty() const noexcept { return oldest_ == kNoKey; }
  /// The sizes of all objects in it.
  uint64_t bytes() const noexcept { return bytes_; }
  /// kNoKey when empty.
  uint32_t oldest() const noexcept { return oldest_; }
  /// The neighbour of a key that is in it; kNoKey beside the newest.
  uint32_t NewerThan(uint32_t key) const noexcept { return links_[key].newer; }
  uint32_t SizeOf(uint32_t key) const noexcept { return links_[key].size; }

  void PushNewest(uint32_t key, uint32_t size) {
    links_[key] = {newest_, kNoKey, size};
    (newest_ == kNoKey ? oldest_ : links_[newest_].newer) = key;
    newest_ = key;
    bytes_ += size;
  }
  void Remove(uint32_t key) {
    const QueueLink& link = links_[key];
    (link.older == kNoKey ? oldest_ : links_[link.older].newer) = link.newer;
    (link.newer == kNoKey ? newest_ : links_[link.newer].older) = link.older;
    bytes_ -= link.size;
  }
  /// Not when empty.
  uint32_t PopOldest() {
    const uint32_t key = oldest_;
    Remove(key);
    return key;
  }
  void MoveToNewest(uint32_t key) {
    const uint32_t size = links_[key].size;
    Remove(key);
    PushNewest(key, size);
  }

 private:
  std::vector<QueueLink>& links_;
  uint32_t oldest_ = kNoKey;
  uint32_t newest_ = kNoKey;
  uint64_t bytes_ = 0;
};

}  // namespace basalt::cache_sim
