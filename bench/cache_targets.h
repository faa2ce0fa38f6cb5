#pragma once

#include <string>

#include "bench/cache_report.h"

namespace basalt::bench {

/// What Basalt's cache is meant to reach on the machine at hand: one line a goal, with the figure
/// and "met" or "missed". Goals without figures are left out.
std::string TargetLines(const CacheReport& report);

}  // namespace basalt::bench
