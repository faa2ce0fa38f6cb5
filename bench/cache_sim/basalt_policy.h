#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "basalt/cache.h"
#include "bench/cache_sim/policy.h"

namespace basalt::cache_sim {

/// The real cache behind the interface of a policy: Get, and Put on a miss. A key is the 8 bytes of
/// its number, a value `size` bytes. Its capacity is all the memory that it may take, so it says
/// what it holds of that in objects.
class BasaltPolicy final : public Policy {
 public:
  /// An error is Cache::Create's.
  static Result<std::unique_ptr<BasaltPolicy>> Make(Eviction eviction, uint64_t capacity_bytes);

  bool Access(uint32_t key, uint32_t size) override;
  /// The sizes of all objects that it holds now.
  uint64_t held_bytes() const noexcept { return held_bytes_; }
  Cache* cache() noexcept { return cache_.get(); }

 private:
  BasaltPolicy() = default;

  std::string value_;  ///< As long as the largest so far.
  uint64_t held_bytes_ = 0;
  std::unique_ptr<Cache> cache_;
};

}  // namespace basalt::cache_sim
