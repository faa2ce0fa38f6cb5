#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "basalt/options.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

struct LoadOptions {
  std::string path;
  std::optional<std::string> keyspace;  ///< Unset: that which a line names, or the default one.
  std::string file;                     ///< "-": standard input.
  bool json = false;
  uint64_t batch_records = 1000;
  uint64_t memory_budget = 0;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
  WriteOptions write;
};
/// Writes each line of a file as a record, in atomic batches; makes the database and keyspaces
/// when they are not there. Leaves out what has expired and counts it. Stops at the first line that
/// cannot be meant, and says what was loaded before it.
ExitCode Load(const LoadOptions& options, Output& out);

struct DumpOptions {
  std::string path;
  ReadAccess access;
  std::optional<std::string> keyspace;
  bool all_keyspaces = false;  ///< Each record of another than the default one names its own.
  bool json = false;
  bool skip_bad = false;  ///< Goes on behind records whose merges do not fit.
};
/// Prints all records of a keyspace, or of all, as of one moment, and when they expire, in the form
/// that Load reads. With none named, says on stderr which it leaves out. kCorruption when bad
/// records were skipped.
ExitCode Dump(const DumpOptions& options, Output& out);

}  // namespace basalt::tools
