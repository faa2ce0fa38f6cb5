#pragma once

#include <cstdint>
#include <string>

#include "basalt/shared_map.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/map_sources.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

struct MapBuildOptions {
  std::string map;
  std::string input = "-";  ///< "-": standard input.
  bool csv = false;         ///< Rows of `columns`, and no lines of JSON.
  CsvColumns columns;
  DatabaseRange range;  ///< With a path: the source, in place of `input`.
  bool base64 = false;  ///< Of the range's prefix and bounds.
  bool json = false;    ///< Values are JSON, and kept in its compact form.
  bool skip_bad_lines = false;
  Duplicates duplicates = Duplicates::kRefuse;
  SharedMapOptions open;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Builds a map out of records; makes none unless all of it is built.
ExitCode MapBuild(const MapBuildOptions& options, Output& out);

}  // namespace basalt::tools
