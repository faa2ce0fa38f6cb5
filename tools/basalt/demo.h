#pragma once

#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

struct DemoOptions {
  std::string path = "basalt-demo";
  std::string input;    ///< A file; empty: what apt knows.
  std::string program;  ///< How the reader of the demo calls this program.
};
/// Loads real input into a new database at `path`, shows on it what a store can do, each step with
/// the command that does the same, kills a writer and proves that nothing acknowledged is lost. An
/// older demo at `path` is replaced; anything else there is refused.
ExitCode Demo(const DemoOptions& options, Output& out);

}  // namespace basalt::tools
