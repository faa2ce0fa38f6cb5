#pragma once

#include <cstdint>
#include <string>

#include "basalt/options.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

struct LoadOptions {
  std::string path;
  std::string file;  ///< "-": standard input.
  bool json = false;
  uint64_t batch_records = 1000;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
  WriteOptions write;
};
/// Writes each line of a file as a record, in atomic batches; makes the database when it is not
/// there. Stops at the first line that cannot be meant, and says what was loaded before it.
ExitCode Load(const LoadOptions& options, Output& out);

struct DumpOptions {
  std::string path;
  bool json = false;
};
/// Prints all records as of one moment, in the form that Load reads.
ExitCode Dump(const DumpOptions& options, Output& out);

}  // namespace basalt::tools
