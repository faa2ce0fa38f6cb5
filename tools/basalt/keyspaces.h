#pragma once

#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

// The verbs on keyspaces as a whole.

struct KeyspaceListOptions {
  std::string path;
  ReadAccess access;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints the names of all keyspaces but the default one, which has none, a line each.
ExitCode KeyspaceList(const KeyspaceListOptions& options, Output& out);

struct KeyspaceDropOptions {
  std::string path;
  std::string name;
};
/// Removes a keyspace with all it holds. One that is not there is an error.
ExitCode KeyspaceDrop(const KeyspaceDropOptions& options, Output& out);

}  // namespace basalt::tools
