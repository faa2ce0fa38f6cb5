#pragma once

#include <string>

#include "tools/basalt/bench.h"
#include "tools/basalt/output.h"
#include "tools/basalt/workload.h"

namespace basalt::tools {

/// How a workload went.
struct WorkloadResult {
  const Workload* workload = nullptr;
  uint32_t threads = 1;
  WorkloadCounts counts;
};

/// Prints results, a line each, as they come.
class BenchReport {
 public:
  BenchReport(const BenchOptions& options, Output& out) : options_(options), out_(out) {}

  /// What stands above the results in `table` and `csv`.
  void Begin();
  void Add(const WorkloadResult& result);

 private:
  const BenchOptions& options_;
  Output& out_;
};

}  // namespace basalt::tools
