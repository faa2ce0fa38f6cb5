#pragma once

#include <cstddef>

#include "bench/report.h"

namespace basalt::bench {

/// Ingests so many passages of made-up text into one corpus on disk, and measures at each doubling
/// what an ingest costs and how long an answer takes. Prints a table.
void MeasureScale(size_t passages, Report* report);

}  // namespace basalt::bench
