#include <vector>

#include "bench/cache_sim/object_queue.h"
#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {
namespace {

enum class SieveState : uint8_t { kAbsent, kPresent, kVisited };

class Sieve final : public Policy {
 public:
  Sieve(const Trace& trace, uint64_t capacity_bytes)
      : capacity_bytes_(capacity_bytes),
        links_(trace.key_count),
        states_(trace.key_count, SieveState::kAbsent) {}

  bool Access(uint32_t key, uint32_t size) override {
    if (states_[key] != SieveState::kAbsent) {
      states_[key] = SieveState::kVisited;
      return true;
    }
    if (size > capacity_bytes_) return false;
    while (queue_.bytes() + size > capacity_bytes_) EvictOne();
    queue_.PushNewest(key, size);
    states_[key] = SieveState::kPresent;
    return false;
  }

 private:
  void EvictOne() {
    uint32_t victim = hand_ == kNoKey ? queue_.oldest() : hand_;
    while (states_[victim] == SieveState::kVisited) {
      states_[victim] = SieveState::kPresent;
      victim = queue_.NewerThan(victim);
      if (victim == kNoKey) victim = queue_.oldest();
    }
    hand_ = queue_.NewerThan(victim);
    queue_.Remove(victim);
    states_[victim] = SieveState::kAbsent;
  }

  const uint64_t capacity_bytes_;
  std::vector<QueueLink> links_;
  ObjectQueue queue_{&links_};
  std::vector<SieveState> states_;
  uint32_t hand_ = kNoKey;  ///< Whom it will look at next; kNoKey: the oldest.
};

}  // namespace

std::unique_ptr<Policy> MakeSieve(const Trace& trace, uint64_t capacity_bytes) {
  return std::make_unique<Sieve>(trace, capacity_bytes);
}

}  // namespace basalt::cache_sim
