#pragma once

#include <optional>
#include <string>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

struct CompactOptions {
  std::string path;
  std::optional<std::string> from;  ///< Inclusive; none: from the first key.
  std::optional<std::string> to;    ///< Exclusive; none: to the last key.
  bool base64 = false;              ///< The bounds are base64 forms.
  uint64_t memory_budget = 0;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Merges all tables that hold keys of a range, in every keyspace, and says what became of them.
ExitCode Compact(const CompactOptions& options, Output& out);

}  // namespace basalt::tools
