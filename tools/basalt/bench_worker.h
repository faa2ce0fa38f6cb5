#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/random.h"
#include "tools/basalt/workload.h"
#include "tools/workload/compressible_values.h"

namespace basalt::tools {

/// The state of a workload's operations: random numbers, values, and the counts of one thread.
class BenchWorker {
 public:
  BenchWorker(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts)
      : run_(run),
        share_(share),
        counts_(counts),
        random_(share.seed),
        values_(share.seed + 1, run.options.value_bytes) {}

  DB& db() noexcept { return run_.db; }
  const BenchOptions& options() const noexcept { return run_.options; }
  const WorkloadShare& share() const noexcept { return share_; }
  WorkloadRun& run() noexcept { return run_; }
  base::Random& random() noexcept { return random_; }
  WorkloadCounts& counts() noexcept { return counts_; }

  std::string_view NextValue() noexcept { return values_.At(values_taken_++); }
  uint64_t RandomNumber() noexcept { return random_.Below(options().num); }

  /// Calls `call` with each number of the share, and times it together with what it takes to make
  /// its key; the clock is read once a call, as in db_bench. The first error, and `End`, end it.
  template <class Call>
  Status ForEachCall(const Call& call) {
    counts_.begin = Clock::now();
    counts_.end = counts_.begin;
    for (uint64_t i = share_.begin; i < share_.end && !ended_; ++i) {
      if (Status status = call(i); !status.ok()) {
        run_.failed.store(true, std::memory_order_relaxed);
        return status;
      }
      const Clock::time_point now = Clock::now();
      const std::chrono::nanoseconds took = now - counts_.end;
      counts_.end = now;
      counts_.latency_ns.Record(static_cast<uint64_t>(took.count()));
      if ((i - share_.begin) % kCallsBetweenReports != kCallsBetweenReports - 1) continue;
      run_.done.fetch_add(kCallsBetweenReports, std::memory_order_relaxed);
      if (run_.failed.load(std::memory_order_relaxed)) return {};
    }
    return {};
  }

  /// There is nothing left to do: the present call is the last.
  void End() noexcept { ended_ = true; }

  // Operations, counted.

  Status Put(std::string_view key, const WriteOptions& write) {
    const std::string_view value = NextValue();
    Count(key.size() + value.size());
    return db().Put(key, value, write);
  }
  Status Get(std::string_view key) {
    const Result<MaybeValue> value = db().Get(key);
    if (!value) return value.error();
    const bool found = value->has_value();
    Count(found ? key.size() + (*value)->view().size() : 0);
    CountLookup(found);
    return {};
  }
  void Count(uint64_t bytes) noexcept {
    ++counts_.operations;
    counts_.bytes += bytes;
  }
  void CountLookup(bool found) noexcept {
    ++counts_.lookups;
    counts_.found += found ? 1 : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kCallsBetweenReports = 64;

  WorkloadRun& run_;
  const WorkloadShare& share_;
  WorkloadCounts& counts_;
  base::Random random_;
  workload::CompressibleValues values_;
  uint64_t values_taken_ = 0;
  bool ended_ = false;
};

}  // namespace basalt::tools
