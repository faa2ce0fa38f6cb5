#pragma once

#include <string>
#include <vector>

#include "basalt/options.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

// The verbs on single keys of a map. Under `base64`, the keys and values given on the command line
// are base64 forms of the bytes that are meant.

struct MapGetOptions {
  std::string map;
  std::string first_key;
  std::vector<std::string> more_keys;
  bool base64 = false;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints the value of one key as Get does, and of several a record each as Scan does; kAbsent when
/// one is not there.
ExitCode MapGet(const MapGetOptions& options, Output& out);

struct MapPutOptions {
  std::string map;
  std::string key;
  std::string value;  ///< "-": the bytes of standard input.
  bool base64 = false;
  bool json = false;  ///< The value is JSON, and kept in its compact form.
  WriteOptions write;
};
/// Sets one key; makes the map when it is not there.
ExitCode MapPut(const MapPutOptions& options, Output& out);

struct MapDeleteOptions {
  std::string map;
  std::string first_key;
  std::vector<std::string> more_keys;
  bool base64 = false;
  WriteOptions write;
};
/// Removes keys, present or not, all of them or none.
ExitCode MapDelete(const MapDeleteOptions& options, Output& out);

struct MapExportOptions {
  std::string map;
  bool csv = false;
};
/// Prints all records as of one moment, in no order, in a form that MapBuild reads.
ExitCode MapExport(const MapExportOptions& options, Output& out);

}  // namespace basalt::tools
