#pragma once

#include <cstdint>
#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

struct InspectOptions {
  std::string file;
  uint64_t limit = 100;  ///< The most records, operations in a record, and blocks that are shown.
  OutputFormat output = OutputFormat::kJson;
};
/// Shows what a manifest, a log or a table holds, as JSON; what it is, its first bytes tell. Shows
/// as much of a damaged file as can be read, with what is wrong in `findings`, and gives
/// kCorruption. Takes no lock and writes nothing.
ExitCode Inspect(const InspectOptions& options, Output& out);

}  // namespace basalt::tools
