#include <limits>
#include <vector>

#include "bench/cache_sim/object_queue.h"
#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {
namespace {

constexpr uint64_t kLazyInterval = 300'000;

/// LRU, and lazy LRU: an interval of 0 promotes at each hit.
class Lru final : public Policy {
 public:
  Lru(const Trace& trace, uint64_t capacity_bytes, uint64_t promotion_interval)
      : capacity_bytes_(capacity_bytes),
        promotion_interval_(promotion_interval),
        links_(trace.key_count),
        placed_at_(trace.key_count, kAbsent) {}

  bool Access(uint32_t key, uint32_t size) override {
    ++now_;
    if (placed_at_[key] != kAbsent) {
      if (now_ - placed_at_[key] >= promotion_interval_) {
        queue_.MoveToNewest(key);
        placed_at_[key] = now_;
      }
      return true;
    }
    if (size > capacity_bytes_) return false;
    while (queue_.bytes() + size > capacity_bytes_) placed_at_[queue_.PopOldest()] = kAbsent;
    queue_.PushNewest(key, size);
    placed_at_[key] = now_;
    return false;
  }

 private:
  static constexpr uint64_t kAbsent = std::numeric_limits<uint64_t>::max();

  const uint64_t capacity_bytes_;
  const uint64_t promotion_interval_;
  uint64_t now_ = 0;
  std::vector<QueueLink> links_;
  ObjectQueue queue_{&links_};
  std::vector<uint64_t> placed_at_;  ///< When a key was last put at the newest end.
};

}  // namespace

std::unique_ptr<Policy> MakeLru(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<Lru>(trace, capacity_bytes, 0);
}

std::unique_ptr<Policy> MakeLazyLru(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<Lru>(trace, capacity_bytes, kLazyInterval);
}

}  // namespace basalt::cache_sim
