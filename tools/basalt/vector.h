#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "basalt/vector.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"
#include "tools/basalt/vector_file.h"

namespace basalt::tools {

// The verbs on vector indexes of a database.

struct VectorCreateOptions {
  std::string path;
  std::string name;
  uint32_t dimension = 0;
  VectorMetric metric = VectorMetric::kCosine;
  std::string model;
};
/// Makes an index; the database, too, where it is not there.
ExitCode VectorCreate(const VectorCreateOptions& options, Output& out);

struct VectorImportOptions {
  std::string path;
  std::string name;
  std::string input = "-";
  std::optional<VectorFileFormat> format{};  ///< Nothing: by the input's name.
  std::string id_prefix;
  bool progress = false;
};
/// Adds the vectors of a file, puts them into the graph and saves that.
ExitCode VectorImport(const VectorImportOptions& options, Output& out);

struct VectorSearchVerbOptions {
  std::string path;
  std::string name;
  std::optional<std::string> vector{};  ///< A JSON array; or
  std::optional<std::string> id{};      ///< the vector with this id.
  uint64_t k = 10;
  float max_distance = std::numeric_limits<float>::infinity();
  std::string filter;
  double recall = 0.95;
  bool exact = false;
  bool explain = false;
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
/// Prints the nearest vectors.
ExitCode VectorSearchVerb(const VectorSearchVerbOptions& options, Output& out);

struct VectorRecallOptions {
  std::string path;
  std::string name;
  uint64_t queries = 100;
  uint64_t k = 10;
  double recall = 0.95;
  bool progress = false;
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
/// Measures recall against exact search, on the index's own vectors.
ExitCode VectorRecall(const VectorRecallOptions& options, Output& out);

struct VectorStatOptions {
  std::string path;
  std::string name;
  OutputFormat output = OutputFormat::kTable;
  ReadAccess access;
};
ExitCode VectorStat(const VectorStatOptions& options, Output& out);

}  // namespace basalt::tools
