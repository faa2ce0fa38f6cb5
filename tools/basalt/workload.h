#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "basalt/db.h"
#include "base/histogram.h"
#include "tools/basalt/bench.h"

namespace basalt::tools {

/// What some operations of a workload have done.
struct WorkloadCounts {
  using Time = std::chrono::steady_clock::time_point;

  Time begin = Time::max();    ///< Of the first call.
  Time end = Time::min();      ///< Of the last one.
  base::Histogram latency_ns;  ///< Of calls: a batch is one.
  uint64_t operations = 0;     ///< Records written, read or walked over; seeks; scans.
  uint64_t bytes = 0;          ///< Of keys and values that were written or read.
  uint64_t lookups = 0;        ///< Operations that look for one key,
  uint64_t found = 0;          ///< and those that found it.

  void Merge(const WorkloadCounts& other);
  /// From the first call of any thread to the end of the last one.
  double seconds() const;
};

/// What the threads of a workload share.
struct WorkloadRun {
  DB& db;
  const BenchOptions& options;
  std::atomic<uint64_t>& ycsb_records;  ///< Numbers of records that YCSB has given out.
  std::atomic<uint64_t> done = 0;       ///< Calls, of all threads.
  std::atomic<bool> failed = false;     ///< The other threads stop.
};

/// One thread's share of a workload's calls.
struct WorkloadShare {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t seed = 0;
  bool is_first = false;
  bool is_last = false;
};

/// A named way to use a database.
struct Workload {
  std::string_view name;
  std::string_view description;
  bool begins_empty;
  bool one_thread;
  /// How many calls it makes, over all threads.
  uint64_t (*calls)(const BenchOptions& options);
  /// Does one thread's share; the first error ends it.
  Status (*run)(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
  /// The workload that makes the records it looks for; empty: none.
  std::string_view loaded_by;
};

std::span<const Workload> AllWorkloads();
/// Null: there is none of that name.
const Workload* FindWorkload(std::string_view name);

}  // namespace basalt::tools
