#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

/// For each request, the position of the next one for the same key.
std::vector<uint32_t> NextUses(const Trace& trace) {
  std::vector<uint32_t> next_uses(trace.requests.size());
  std::vector<uint32_t> seen_at(trace.key_count, kNever);
  for (size_t i = trace.requests.size(); i-- > 0;) {
    const uint32_t key = trace.requests[i].key;
    next_uses[i] = seen_at[key];
    seen_at[key] = static_cast<uint32_t>(i);
  }
  return next_uses;
}

class Belady final : public Policy {
 public:
  Belady(const Trace& trace, uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes),
        next_uses_(NextUses(trace)),
        sizes_(trace.key_count, 0),
        next_use_of_(trace.key_count, kAbsent) {}

  bool Access(uint32_t key, uint32_t size) override {
    const uint32_t next_use = next_uses_[position_++];
    const bool is_hit = next_use_of_[key] != kAbsent;
    if (!is_hit) {
      if (size > capacity_bytes_ || next_use == kNever) return false;
      sizes_[key] = size;
      held_bytes_ += size;
    } else if (next_use == kNever) {
      Remove(key);
      return true;
    }
    next_use_of_[key] = next_use;
    furthest_.emplace(next_use, key);
    while (held_bytes_ > capacity_bytes_) EvictOne();
    return is_hit;
  }

 private:
  static constexpr uint32_t kAbsent = kNever;

  void Remove(uint32_t key) {
    next_use_of_[key] = kAbsent;
    held_bytes_ -= sizes_[key];
  }

  void EvictOne() {
    const auto [next_use, key] = furthest_.top();
    furthest_.pop();
    // Where a key was used or removed since, this is not its next use any more.
    if (next_use_of_[key] == next_use) Remove(key);
  }

  const uint64_t capacity_bytes_;
  const std::vector<uint32_t> next_uses_;
  size_t position_ = 0;
  uint64_t held_bytes_ = 0;
  std::vector<uint32_t> sizes_;
  std::vector<uint32_t> next_use_of_;  ///< Of each key that is held.
  std::priority_queue<std::pair<uint32_t, uint32_t>> furthest_;
};

}  // namespace

std::unique_ptr<Policy> MakeBelady(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<Belady>(trace, capacity_bytes);
}

}  // namespace basalt::cache_sim
