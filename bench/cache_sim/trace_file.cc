#include "bench/cache_sim/trace_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <string_view>
#include <utility>

#include "base/hash.h"

namespace basalt::cache_sim {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

struct Line {
  std::string_view key;
  uint32_t size = 1;
};

/// Empty: fine; else what is wrong with the line.
std::string Parse(std::string_view text, Line* line) {
  const size_t key_end = std::min(text.find_first_of(", \t"), text.size());
  line->key = text.substr(0, key_end);
  line->size = 1;
  if (line->key.empty()) return "the key is missing";
  std::string_view rest = Trim(text.substr(key_end));
  if (rest.starts_with(',')) {
    rest = Trim(rest.substr(1));
    if (rest.empty()) return "the size after the comma is missing";
  }
  if (rest.empty()) return "";
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  if (error != std::errc() || end != rest.data() + rest.size()) {
    return "'" + std::string(rest) + "' is not a size: a number of bytes is";
  }
  if (size == 0 || size > std::numeric_limits<uint32_t>::max()) {
    return "size " + std::string(rest) + " is not between 1 and 4294967295";
  }
  line->size = static_cast<uint32_t>(size);
  return "";
}

}  // namespace

Result<Trace> ReadTrace(std::istream& input, const std::string& name) {
  TraceBuilder builder(name);
  std::string text;
  Line line;
  for (uint64_t number = 1; std::getline(input, text); ++number) {
    const std::string_view trimmed = Trim(text);
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    if (builder.size() == TraceBuilder::kRequestsMax) {
      return Status(StatusCode::kInvalidArgument,
                    name + ": longer than 4294967294 requests; cut it into parts");
    }
    const std::string fault = Parse(trimmed, &line);
    if (!fault.empty()) {
      return Status(StatusCode::kInvalidArgument, name + ", line " + std::to_string(number) + ": " +
                                                      fault + "; a line is key, or key,size");
    }
    builder.Add(base::Hash(line.key), line.size);
  }
  if (input.bad()) return Status(StatusCode::kIoError, "reading " + name + " failed");
  if (builder.size() == 0) {
    return Status(StatusCode::kInvalidArgument, name + ": has no requests");
  }
  return std::move(builder).Finish();
}

Result<Trace> ReadTraceFile(const std::string& path) {
  if (path == "-") return ReadTrace(std::cin, "stdin");
  std::ifstream file(path);
  if (!file) {
    return Status(StatusCode::kIoError, "open " + path + ": " + std::strerror(errno));
  }
  return ReadTrace(file, path);
}

}  // namespace basalt::cache_sim
