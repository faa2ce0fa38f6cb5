#pragma once

#include <cstdint>
#include <string>

#include "basalt/shared_map.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

struct MapBenchOptions {
  std::string map;           ///< A directory of its own, or ":memory:".
  uint64_t num = 1'000'000;  ///< Records.
  uint64_t reads = 0;        ///< Lookups of what reads, over all threads; 0: `num`.
  uint64_t value_bytes = 100;
  uint32_t threads = 1;
  uint64_t seed = 301;
  SharedMapLayout layout = SharedMapLayout::kDerived;
  OutputFormat output = OutputFormat::kTable;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Builds a map and looks keys up in it: present ones, absent ones, and present ones in batches.
/// Each goes twice: once with the clock read at both ends alone, and once around every call.
/// Replaces an older bench's map, and no other.
ExitCode MapBench(const MapBenchOptions& options, Output& out);

}  // namespace basalt::tools
