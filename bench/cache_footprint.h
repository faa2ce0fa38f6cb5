#pragma once

#include <cstdint>
#include <functional>

namespace basalt::bench {

/// What something has added to the memory of its process.
struct Footprint {
  double rss_bytes = 0;      ///< Pages that are in memory.
  double heap_bytes = 0;     ///< What malloc has handed out.
  double claimed_bytes = 0;  ///< What `grow` gave.
};

/// Runs `grow` in a child process, whose memory nothing before it has stirred, and measures what it
/// adds. It gives a number of its own, which is handed on.
Footprint MeasureFootprint(const std::function<double()>& grow);

}  // namespace basalt::bench
