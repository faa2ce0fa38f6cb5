#include "bench/cache_sim/trace.h"

namespace basalt::cache_sim {

void TraceBuilder::Add(uint64_t key, uint32_t size) {
  const auto [number, is_new] = numbers_.try_emplace(key, trace_.key_count);
  if (is_new) {
    ++trace_.key_count;
    trace_.footprint_bytes += size;
  }
  if (!trace_.requests.empty() && trace_.requests.front().size != size) trace_.is_uniform = false;
  trace_.requests.push_back({number->second, size});
  trace_.requested_bytes += size;
}

}  // namespace basalt::cache_sim
