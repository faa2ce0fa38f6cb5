#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "bench/cache_sim/policy.h"
#include "bench/cache_sim/trace.h"

namespace basalt::cache_sim {

/// One line of the results: a policy, a trace and a size.
struct Figure {
  std::string trace;
  std::string policy;
  double size = 0;  ///< Asked for, as a part of the trace's footprint.
  uint64_t footprint_bytes = 0;
  uint64_t held_bytes = 0;      ///< Of objects: the capacity; for ours, what it held on the mean.
  uint64_t capacity_bytes = 0;  ///< Ours: all the memory that it had for that. Else 0.
  uint32_t shards = 0;          ///< Ours.
  uint64_t requests = 0;
  uint64_t misses = 0;
  uint64_t missed_bytes = 0;
  uint64_t requested_bytes = 0;
  uint64_t lru_misses = 0;  ///< Of LRU that may hold as many bytes.

  double MissRatio() const;
  double ByteMissRatio() const;
  /// Misses against LRU's: -0.1 is a tenth fewer.
  double AgainstLru() const;
  /// How far what was held is from what was asked for: 0.1 is a tenth too much or too little.
  double Deviation() const;
};

/// Ours is measured with memory for which this much deviation is left, if there is such memory.
inline constexpr double kDeviationMax = 0.01;

/// What can be simulated: a policy of ours is the real cache, which needs memory to be found for
/// the bytes that it should hold.
struct PolicyKind {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Policy> (*make)(const Trace& trace, uint64_t capacity_bytes);  ///< Null: ours.
  Eviction eviction = Eviction::kClock;                                          ///< Ours.
};

const std::vector<PolicyKind>& PolicyKinds();

/// Runs policies over one trace at one size.
class Simulation {
 public:
  /// `size`: a part of the footprint, above 0 and up to 1.
  Simulation(const Trace& trace, double size);

  /// An error is the real cache's.
  Result<Figure> Run(const PolicyKind& kind);

 private:
  struct Misses {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };

  Misses RunOver(Policy* policy) const;
  Result<Figure> RunOurs(const PolicyKind& kind) const;
  Result<Figure> RunOursWith(const PolicyKind& kind, uint64_t capacity_bytes) const;
  Figure NewFigure(const PolicyKind& kind) const;

  const Trace& trace_;
  const double size_;
  const uint64_t target_bytes_;
  uint64_t lru_misses_;
};

}  // namespace basalt::cache_sim
