#pragma once

#include <istream>
#include <string>

#include "basalt/status.h"
#include "bench/cache_sim/trace.h"

namespace basalt::cache_sim {

/// Reads a trace of a request a line: a key, and after a comma, a tab or spaces the object's size
/// in bytes (1 where it is missing; at most 4 GiB - 1). Keys are any text; equal text is the same
/// key. Empty lines and lines that begin with '#' are skipped. `name` is the trace's, and stands in
/// messages. InvalidArgument names the line; IoError: reading failed.
Result<Trace> ReadTrace(std::istream& input, const std::string& name);

/// The same of a file; "-" is standard input.
Result<Trace> ReadTraceFile(const std::string& path);

}  // namespace basalt::cache_sim
