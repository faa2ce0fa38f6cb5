#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/key_lines.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

// The verbs on perfect hash files: a function, a fingerprint set or a fingerprint map each.

struct PhashBuildOptions {
  std::string file;
  std::string keys = "-";  ///< "-": standard input.
  KeyForm form = KeyForm::kText;
  bool dense = false;
  uint32_t threads = 0;           ///< 0: one a processor.
  uint64_t memory = 0;            ///< Bytes; 0: no bound.
  uint32_t fingerprint_bits = 0;  ///< 0: a function, and no set or map.
  uint32_t payload_bits = 0;      ///< 0: no map.
  bool force = false;             ///< Replaces a file that is there.
  bool progress = false;          ///< Lines of progress also where stderr is no terminal.
};
/// Builds a file from lines of keys; makes none unless all of it is built and written. Walks over a
/// file of keys as often as it must; what can be read only once, or comes with payloads, or is
/// numbers, is held in memory.
ExitCode PhashBuild(const PhashBuildOptions& options, Output& out);

struct PhashQueryOptions {
  std::string file;
  std::optional<std::string> first_key;  ///< None: the lines of standard input.
  std::vector<std::string> more_keys;
  KeyForm form = KeyForm::kText;  ///< For lines; an argument's text is its bytes as they are.
};
/// Prints a line a key: its number, `perhaps` or its payload; `absent`, and kAbsent in the end, for
/// what is no key.
ExitCode PhashQuery(const PhashQueryOptions& options, Output& out);

struct PhashStatOptions {
  std::string file;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints a file's figures.
ExitCode PhashStat(const PhashStatOptions& options, Output& out);

}  // namespace basalt::tools
