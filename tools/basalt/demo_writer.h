#pragma once

#include <cstdint>
#include <string>

#include "basalt/db.h"
#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

// The demo's crash. A process of its own writes crash/<n> for n = 1, 2, ... and, each time that the
// database has acknowledged one, says its number on standard output. The demo reads the numbers,
// kills the process with SIGKILL, and then looks for what was acknowledged.

/// The name of the hidden verb that runs DemoWriter.
inline constexpr const char* kDemoWriterVerb = "demo-writer";

struct DemoWriterOptions {
  std::string path;
};
/// Writes until it is killed, the numbers have no reader, or the time is up.
ExitCode DemoWriter(const DemoWriterOptions& options, Output& out);

/// Starts this program again with kDemoWriterVerb, kills it one second after its first acknowledged
/// write, and gives the number of the last acknowledged one.
Result<uint64_t> KillWriter(const std::string& path);

/// How many of crash/1, crash/2, ... are there. Corruption: one is missing before another, or has a
/// wrong value.
Result<uint64_t> CountCrashKeys(const DB& db);

std::string CrashKey(uint64_t number);

}  // namespace basalt::tools
