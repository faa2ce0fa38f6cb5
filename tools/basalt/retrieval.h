#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

/// The corpus of a database that verbs on texts use.
struct CorpusChoice {
  std::string name = "corpus";
  /// "local:FOLDER". Empty: passages have no vectors.
  std::string embed;
};

struct IngestOptions {
  std::string path;
  std::vector<std::string> files;  ///< "-": standard input.
  CorpusChoice corpus;
  std::optional<std::string> stemmer;
  bool json = false;  ///< Lines of JSON, whatever the files are called.
  uint64_t memory_budget = 0;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Adds each file as a document, or each line of a file of JSON; makes the database and the corpus
/// if they are absent. Stops at the first document that cannot be added, and says what was added
/// before it.
ExitCode Ingest(const IngestOptions& options, Output& out);

struct ForgetOptions {
  std::string path;
  std::vector<std::string> sources;
  CorpusChoice corpus;
};
/// Removes documents. kAbsent: one of them was not there; the others are removed.
ExitCode Forget(const ForgetOptions& options, Output& out);

struct RetrieveVerbOptions {
  std::string path;
  ReadAccess access;
  std::string query;
  CorpusChoice corpus;
  uint64_t k = 10;
  uint64_t max_tokens = 1'000'000;
  bool explain = false;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints the passages that fit a query. kAbsent: there are none.
ExitCode Retrieve(const RetrieveVerbOptions& options, Output& out);

}  // namespace basalt::tools
