#include "bench/cache_sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.h"
#include "bench/cache_sim/basalt_policy.h"

namespace basalt::cache_sim {
namespace {

constexpr int kSearchStepsMax = 12;
/// Less no cache takes.
constexpr uint64_t kCapacityBytesMin = uint64_t{64} << 10;

/// Narrows in on the memory with which a cache holds the target: by proportion, or by halves where
/// that leaves what is known to be too little and too much.
class CapacitySearch {
 public:
  explicit CapacitySearch(uint64_t target_bytes) : target_bytes_(target_bytes) {}

  /// What to try after `capacity_bytes` held `held_bytes`.
  uint64_t Next(uint64_t capacity_bytes, uint64_t held_bytes) {
    (held_bytes < target_bytes_ ? too_little_ : too_much_) = capacity_bytes;
    const double proportion =
        static_cast<double>(target_bytes_) / static_cast<double>(std::max<uint64_t>(held_bytes, 1));
    // Tiny caches hold nothing at all: no proportion takes more than a factor of 8.
    auto next = static_cast<uint64_t>(static_cast<double>(capacity_bytes) *
                                      std::clamp(proportion, 0.125, 8.0));
    if (next <= too_little_ || (too_much_ != 0 && next >= too_much_)) {
      next = too_much_ == 0 ? too_little_ * 2 : (too_little_ + too_much_) / 2;
    }
    return std::max(next, kCapacityBytesMin);
  }

 private:
  const uint64_t target_bytes_;
  uint64_t too_little_ = 0;
  uint64_t too_much_ = 0;  ///< 0: not known yet.
};

}  // namespace

double Figure::MissRatio() const {
  return static_cast<double>(misses) / static_cast<double>(requests);
}
double Figure::ByteMissRatio() const {
  return static_cast<double>(missed_bytes) / static_cast<double>(requested_bytes);
}
double Figure::Deviation() const {
  const double asked_for = size * static_cast<double>(footprint_bytes);
  return std::abs(static_cast<double>(held_bytes) / asked_for - 1);
}
double Figure::AgainstLru() const {
  return static_cast<double>(misses) / static_cast<double>(lru_misses) - 1;
}

const std::vector<PolicyKind>& PolicyKinds() {
  static const std::vector<PolicyKind> kinds = {
      {"lru", "least recently used", MakeLru},
      {"lazy-lru", "LRU that moves a key at most once in 300,000 requests", MakeLazyLru},
      {"clock", "first in, first out, with a second chance", MakeClock},
      {"sieve", "SIEVE", MakeSieve},
      {"s3fifo", "S3-FIFO: small queue 10 %, promotion after one hit", MakeS3Fifo},
      {"w-tinylfu", "W-TinyLFU: window 1 %, count-min sketch, segmented LRU", MakeWTinyLfu},
      {"basalt", "basalt::Cache as it is by default", nullptr, Eviction::kClock},
      {"basalt-s3", "basalt::Cache with Eviction::kS3Fifo", nullptr, Eviction::kS3Fifo},
      {"belady", "the bound: evict what comes last (approximate for mixed sizes)", MakeBelady},
  };
  return kinds;
}

Simulation::Simulation(const Trace& trace, double size)
    : trace_(trace),
      size_(size),
      target_bytes_(std::max<uint64_t>(
          static_cast<uint64_t>(size * static_cast<double>(trace.footprint_bytes)), 1)),
      lru_misses_(RunOver(MakeLru(trace, target_bytes_).get()).count) {}

Result<Figure> Simulation::Run(const PolicyKind& kind) {
  if (kind.make == nullptr) return RunOurs(kind);
  Figure figure = NewFigure(kind);
  const Misses misses = RunOver(kind.make(trace_, target_bytes_).get());
  figure.held_bytes = target_bytes_;
  figure.misses = misses.count;
  figure.missed_bytes = misses.bytes;
  figure.lru_misses = lru_misses_;
  return figure;
}

Simulation::Misses Simulation::RunOver(Policy* policy) const {
  Misses misses;
  for (const Request& request : trace_.requests) {
    if (policy->Access(request.key, request.size)) continue;
    ++misses.count;
    misses.bytes += request.size;
  }
  return misses;
}

/// Looks for the memory with which the cache holds the target.
Result<Figure> Simulation::RunOurs(const PolicyKind& kind) const {
  CapacitySearch search(target_bytes_);
  uint64_t capacity_bytes = std::max(target_bytes_ + target_bytes_ / 2, kCapacityBytesMin);
  Figure best;
  for (int step = 0; step < kSearchStepsMax; ++step) {
    BASALT_ASSIGN_OR_RETURN(const Figure figure, RunOursWith(kind, capacity_bytes));
    if (step == 0 || figure.Deviation() < best.Deviation()) best = figure;
    if (best.Deviation() <= kDeviationMax) break;
    const uint64_t next = search.Next(capacity_bytes, figure.held_bytes);
    if (next == capacity_bytes) break;
    capacity_bytes = next;
  }
  best.lru_misses = RunOver(MakeLru(trace_, best.held_bytes).get()).count;
  return best;
}

/// What it holds is the mean over the second half of the trace, sampled after every request.
Result<Figure> Simulation::RunOursWith(const PolicyKind& kind, uint64_t capacity_bytes) const {
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<BasaltPolicy> policy,
                          BasaltPolicy::Make(kind.eviction, capacity_bytes));
  Figure figure = NewFigure(kind);
  double held_bytes_sum = 0;
  const size_t half = trace_.requests.size() / 2;
  for (size_t i = 0; i < trace_.requests.size(); ++i) {
    const Request& request = trace_.requests[i];
    if (!policy->Access(request.key, request.size)) {
      ++figure.misses;
      figure.missed_bytes += request.size;
    }
    if (i >= half) held_bytes_sum += static_cast<double>(policy->held_bytes());
  }
  figure.held_bytes =
      static_cast<uint64_t>(held_bytes_sum / static_cast<double>(trace_.requests.size() - half));
  figure.capacity_bytes = capacity_bytes;
  figure.shards = policy->cache()->GetStats().shards;
  return figure;
}

Figure Simulation::NewFigure(const PolicyKind& kind) const {
  Figure figure;
  figure.trace = trace_.name;
  figure.policy = kind.name;
  figure.size = size_;
  figure.footprint_bytes = trace_.footprint_bytes;
  figure.requests = trace_.requests.size();
  figure.requested_bytes = trace_.requested_bytes;
  return figure;
}

}  // namespace basalt::cache_sim
