#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <span>
#include <thread>
#include <vector>

#include "base/histogram.h"
#include "bench/cache_requests.h"
#include "bench/cache_ticks.h"
#include "bench/cpu_time.h"

// Threads that work through requests together. The requests are cut into one contiguous part a
// thread; all threads exist and wait before the clock starts, are released together, and the time
// is from the release to the end of the last.

namespace basalt::bench {

struct CrewPlan {
  int threads = 1;
  /// Requests that one call of the operation handles.
  size_t group = 1;
  /// One call in so many is timed on its own.
  uint32_t sample_every = 64;
};

struct CrewResult {
  double seconds = 0;
  double cpu_seconds = 0;  ///< Of the whole process.
  uint64_t requests = 0;
  uint64_t hits = 0;
  base::Histogram samples_ticks;

  double PerSecond() const { return static_cast<double>(requests) / seconds; }
  /// Processor time a request: what stays comparable while other programs run.
  double CpuNs() const { return 1e9 * cpu_seconds / static_cast<double>(requests); }
  double HitPercent() const {
    return 100 * static_cast<double>(hits) / static_cast<double>(requests);
  }
  double PercentileUs(double percent) const {
    return static_cast<double>(samples_ticks.Percentile(percent)) * NanosecondsPerTick() / 1e3;
  }
  double MaxUs() const {
    return static_cast<double>(samples_ticks.max()) * NanosecondsPerTick() / 1e3;
  }
};

/// One thread's part of a crew's work. `serve(span of some times CrewPlan::group requests)` gives
/// how many of them it found.
template <class Serve>
class alignas(64) CrewMember {
 public:
  void Run(std::span<const CacheRequest> part, const CrewPlan& plan, const Serve& serve) {
    const size_t untimed = (plan.sample_every - 1) * plan.group;
    while (!part.empty()) {
      const uint64_t before = TicksBefore();
      hits_ += serve(part.first(plan.group));
      samples_ticks_.Record(TicksAfter() - before);
      part = part.subspan(plan.group);
      const size_t count = std::min(untimed, part.size());
      if (count > 0) hits_ += serve(part.first(count));
      part = part.subspan(count);
    }
  }
  void AddTo(CrewResult* result) const {
    result->hits += hits_;
    result->samples_ticks.Merge(samples_ticks_);
  }

 private:
  uint64_t hits_ = 0;
  base::Histogram samples_ticks_;
};

template <class Serve>
CrewResult RunCrewByRuns(std::span<const CacheRequest> requests, const CrewPlan& plan,
                         const Serve& serve) {
  const auto threads = static_cast<size_t>(plan.threads);
  const size_t share = requests.size() / threads / plan.group * plan.group;
  std::vector<CrewMember<Serve>> members(threads);
  std::latch ready(plan.threads);
  std::latch released(1);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      ready.count_down();
      released.wait();
      members[i].Run(requests.subspan(i * share, share), plan, serve);
    });
  }

  CrewResult result;
  ready.wait();
  const double cpu_before = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  released.count_down();
  for (std::thread& worker : workers) worker.join();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.cpu_seconds = CpuSeconds() - cpu_before;
  result.requests = share * threads;
  for (const CrewMember<Serve>& member : members) member.AddTo(&result);
  return result;
}

/// The same with `operation(span of CrewPlan::group requests)`.
template <class Operation>
CrewResult RunCrew(std::span<const CacheRequest> requests, const CrewPlan& plan,
                   const Operation& operation) {
  return RunCrewByRuns(requests, plan, [&](std::span<const CacheRequest> run) {
    uint64_t hits = 0;
    for (; !run.empty(); run = run.subspan(plan.group)) hits += operation(run.first(plan.group));
    return hits;
  });
}

}  // namespace basalt::bench
