#pragma once

#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

struct StatOptions {
  std::string path;
  ReadAccess access;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints a database's figures: its levels, and what DBStats counts; of a server its INFO.
ExitCode Stat(const StatOptions& options, Output& out);

}  // namespace basalt::tools
