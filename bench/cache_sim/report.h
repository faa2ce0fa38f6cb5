#pragma once

#include <string>
#include <vector>

#include "bench/cache_sim/simulation.h"
#include "bench/cache_sim/trace.h"

namespace basalt::cache_sim {

/// The figures of one trace: a row a policy, a column a size; where sizes differ, a second table
/// counts bytes.
std::string TraceTable(const Trace& trace, const std::vector<Figure>& figures);

/// For each policy, its misses against LRU's: the mean and the worst over all figures.
std::string SummaryTable(const std::vector<Figure>& figures);

/// An array of objects, one a figure.
std::string ToJson(const std::vector<Figure>& figures);

/// What --check asks of our two policies over the judged traces.
struct Verdict {
  bool holds = true;
  std::string text;  ///< A line for each target.
};
Verdict Judge(const std::vector<Figure>& figures);

}  // namespace basalt::cache_sim
