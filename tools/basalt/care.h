#pragma once

#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

struct CheckOptions {
  std::string path;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Reads every byte of a database and says what is wrong; kCorruption when anything is.
ExitCode Check(const CheckOptions& options, Output& out);

struct RepairOptions {
  std::string path;
};
/// Makes a database openable whose log has a gap, and says what was kept, lost and moved.
ExitCode Repair(const RepairOptions& options, Output& out);

struct StatOptions {
  std::string path;
  bool json = false;
};
/// Prints a database's figures.
ExitCode Stat(const StatOptions& options, Output& out);

}  // namespace basalt::tools
