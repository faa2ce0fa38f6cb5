#pragma once

#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

struct CheckOptions {
  std::string path;
  OutputFormat output = OutputFormat::kTable;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Reads every byte of a database and says what is wrong; kCorruption when anything is.
ExitCode Check(const CheckOptions& options, Output& out);

struct RepairOptions {
  std::string path;
  OutputFormat output = OutputFormat::kTable;
};
/// Makes a database openable whose log has a gap, and says what was kept, lost and moved.
ExitCode Repair(const RepairOptions& options, Output& out);

}  // namespace basalt::tools
