#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report.h"

namespace basalt::bench {

struct GrowthSettings {
  std::string directory;
  uint64_t memory_budget = 0;  ///< 0: the database's own default.
  uint32_t keys_max = 16'000'000;
  int runs = 1;
};

/// What one operation costs in a store of so many keys, once for each run; nanoseconds but for
/// "memory", which is bytes.
struct GrowthFigure {
  uint32_t keys = 0;
  Figure figure;
};

/// 1 M, 4 M, 16 M .. keys, each store in a process of its own. Prints a line a store.
std::vector<GrowthFigure> MeasureGrowth(const GrowthSettings& settings);

std::string GrowthText(const std::vector<GrowthFigure>& figures);
/// An array of {benchmark, keys, memory_budget, unit, median, min, max, runs}.
std::string GrowthJson(const GrowthSettings& settings, const std::vector<GrowthFigure>& figures);

}  // namespace basalt::bench
