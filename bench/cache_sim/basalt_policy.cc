#include "bench/cache_sim/basalt_policy.h"

#include <bit>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace basalt::cache_sim {

Result<std::unique_ptr<BasaltPolicy>> BasaltPolicy::Make(Eviction eviction,
                                                         uint64_t capacity_bytes) {
  std::unique_ptr<BasaltPolicy> policy(new BasaltPolicy);
  CacheOptions options;
  options.capacity_bytes = capacity_bytes;
  options.eviction = eviction;
  options.on_remove = [held_bytes = &policy->held_bytes_](std::string_view, std::string_view value,
                                                          Removal) { *held_bytes -= value.size(); };
  BASALT_ASSIGN_OR_RETURN(policy->cache_, Cache::Create(std::move(options)));
  return policy;
}

bool BasaltPolicy::Access(uint32_t key, uint32_t size) {
  const uint64_t number = key;
  const std::string_view name(reinterpret_cast<const char*>(&number), sizeof(number));
  if (cache_->Get(name)) return true;
  if (value_.size() < size) value_.resize(size);
  // What finds no room passes by.
  if (cache_->Put(name, std::string_view(value_).substr(0, size)).ok()) held_bytes_ += size;
  return false;
}

}  // namespace basalt::cache_sim
