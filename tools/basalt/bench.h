#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "basalt/options.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

struct BenchOptions {
  std::string path;  ///< A directory of its own, or ":memory:".
  std::vector<std::string> workloads = {"fillseq",    "fillsync", "fillrandom",  "overwrite",
                                        "readrandom", "readseq",  "readreverse", "compact",
                                        "readrandom", "readseq",  "readreverse"};
  uint64_t num = 1'000'000;  ///< Records.
  uint64_t reads = 0;        ///< Operations of workloads that read; 0: `num`.
  uint64_t value_bytes = 100;
  uint64_t batch_records = 1000;  ///< Of fillbatch.
  uint64_t nexts = 0;             ///< Of seekrandom, behind each seek.
  uint32_t threads = 1;
  uint64_t seed = 301;
  Durability durability = Durability::kProcess;
  uint64_t memory_budget = 0;
  bool replace_database = false;  ///< Removes a database in `path` that no bench has made.
  OutputFormat output = OutputFormat::kTable;
  bool progress = false;  ///< Lines of progress also where stderr is no terminal.
};
/// Runs workloads in order on one database, and prints a line for each as it ends.
ExitCode Bench(const BenchOptions& options, Output& out);

}  // namespace basalt::tools
