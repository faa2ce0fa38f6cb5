#include <vector>

#include "bench/cache_sim/object_queue.h"
#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {
namespace {

enum class State : uint8_t { kAbsent, kPresent, kReferenced };

class Clock final : public Policy {
 public:
  Clock(const Trace& trace, uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes),
        links_(trace.key_count),
        states_(trace.key_count, State::kAbsent) {}

  bool Access(uint32_t key, uint32_t size) override {
    if (states_[key] != State::kAbsent) {
      states_[key] = State::kReferenced;
      return true;
    }
    if (size > capacity_bytes_) return false;
    while (queue_.bytes() + size > capacity_bytes_) EvictOne();
    queue_.PushNewest(key, size);
    states_[key] = State::kPresent;
    return false;
  }

 private:
  void EvictOne() {
    while (states_[queue_.oldest()] == State::kReferenced) {
      states_[queue_.oldest()] = State::kPresent;
      queue_.MoveToNewest(queue_.oldest());
    }
    states_[queue_.PopOldest()] = State::kAbsent;
  }

  const uint64_t capacity_bytes_;
  std::vector<QueueLink> links_;
  ObjectQueue queue_{&links_};
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<Policy> MakeClock(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<Clock>(trace, capacity_bytes);
}

}  // namespace basalt::cache_sim
