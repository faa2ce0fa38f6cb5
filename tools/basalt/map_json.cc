#include "tools/basalt/map_json.h"

#include <boost/json.hpp>

namespace basalt::tools {
namespace {

// The parser's own bound, 32, is below what some documents need; each level costs stack.
constexpr size_t kDepthMax = 256;

Status MalformedJson(const std::string& what, size_t offset) {
  return {StatusCode::kInvalidArgument,
          "not JSON: " + what + " at byte " + std::to_string(offset + 1)};
}

/// Ok: `text` is one value.
Status Validate(std::string_view text) {
  boost::json::monotonic_resource memory;
  boost::json::parse_options options;
  options.max_depth = kDepthMax;
  boost::json::stream_parser parser(&memory, options);
  boost::json::error_code error;
  const size_t parsed = parser.write_some(text.data(), text.size(), error);
  if (!error && parsed < text.size()) return MalformedJson("more than one value,", parsed);
  if (!error) parser.finish(error);
  return error ? MalformedJson(error.message(), parsed) : Status();
}

bool IsWhiteSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

Result<std::string> CompactJson(std::string_view text) {
  if (Status valid = Validate(text); !valid.ok()) return valid;
  std::string compact;
  compact.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_string && IsWhiteSpace(c)) continue;
    compact += c;
    if (c == '"') in_string = !in_string;
    if (c == '\\') compact += text[++i];  // Only strings have any; what follows may be a quote.
  }
  return compact;
}

}  // namespace basalt::tools
