#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "basalt/options.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

// The verbs on single keys and ranges. Under `base64`, the keys, values and bounds given on the
// command line are base64 forms of the bytes that are meant. `keyspace` unset: the default one.

struct GetOptions {
  std::string path;
  ReadAccess access;
  std::optional<std::string> keyspace;
  std::string key;
  bool base64 = false;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints the value's bytes and a newline, without one under kRaw, as a record under kCsv and
/// kJson; kAbsent when there is none.
ExitCode Get(const GetOptions& options, Output& out);

struct PutOptions {
  std::string path;
  uint64_t memory_budget = 0;
  std::optional<std::string> keyspace;
  std::string key;
  std::string value;  ///< "-": the bytes of standard input.
  bool base64 = false;
  std::optional<std::chrono::milliseconds> ttl;
  WriteOptions write;
};
/// Sets one key; makes the database and the keyspace when they are not there.
ExitCode Put(const PutOptions& options, Output& out);

enum class DeleteForm : uint8_t {
  kKeys,    ///< Each argument is a key.
  kPrefix,  ///< The only argument is what the keys begin with.
  kRange,   ///< The two arguments are the first key of a range and its end, which is not in it.
};

struct DeleteOptions {
  std::string path;
  std::optional<std::string> keyspace;
  DeleteForm form = DeleteForm::kKeys;
  std::string first_key;
  std::vector<std::string> more_keys;
  bool base64 = false;
  WriteOptions write;
};
/// Removes keys, present or not, as one atomic batch; a prefix or a range as one range delete.
ExitCode Delete(const DeleteOptions& options, Output& out);

struct ScanVerbOptions {
  std::string path;
  ReadAccess access;
  std::optional<std::string> keyspace;
  std::optional<std::string> prefix;  ///< Excludes `from` and `to`.
  std::optional<std::string> from;    ///< Inclusive.
  std::optional<std::string> to;      ///< Exclusive.
  uint64_t limit = UINT64_MAX;
  bool reverse = false;
  bool keys_only = false;
  bool base64 = false;
  OutputFormat output = OutputFormat::kTable;
};
/// Prints a range in key order, a line a record.
ExitCode Scan(const ScanVerbOptions& options, Output& out);

}  // namespace basalt::tools
