#pragma once

#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

struct MapStatOptions {
  std::string map;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints a map's figures; it may have a writer.
ExitCode MapStat(const MapStatOptions& options, Output& out);

struct MapCheckOptions {
  std::string map;
  OutputFormat output = OutputFormat::kTable;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Reads every byte of a map and says what is wrong; kCorruption when anything is.
ExitCode MapCheck(const MapCheckOptions& options, Output& out);

}  // namespace basalt::tools
