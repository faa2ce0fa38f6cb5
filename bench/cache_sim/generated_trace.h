#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cache_sim/trace.h"

namespace basalt::cache_sim {

/// How large a generated trace is; the same seed gives the same trace on every machine.
struct TraceShape {
  uint32_t keys = 100'000;
  uint32_t requests = 1'000'000;
  uint64_t seed = 1;
};

/// A kind of trace that can be generated.
struct TraceKind {
  std::string_view name;
  std::string_view description;
  bool is_common;  ///< Simulated by default, and what --check takes means over.
  Trace (*make)(const TraceShape& shape);
};

const std::vector<TraceKind>& TraceKinds();

}  // namespace basalt::cache_sim
