// Any bytes as what a client of the server sends: commands are the same in whatever pieces the
// bytes arrive, and no argument exceeds the limits.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/resp_parser.h"

namespace {

using basalt::server::RequestLimits;
using basalt::server::RespParser;

constexpr RequestLimits kLimits{
    .argument_bytes = 4096, .arguments = 64, .command_bytes = 8192, .line_bytes = 256};

/// The arguments of all commands, each behind its length; and the error that ends them.
std::string Parse(std::string_view bytes, size_t step) {
  RespParser parser(kLimits);
  std::string commands;
  size_t begin = 0;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(end + step, bytes.size());
    while (true) {
      const auto outcome = parser.Next(bytes.substr(begin, end - begin));
      if (outcome == RespParser::Outcome::kMore) break;
      if (outcome == RespParser::Outcome::kError) return commands + parser.error();
      BASALT_CHECK(parser.consumed() > 0 && parser.consumed() <= end - begin);
      BASALT_CHECK(parser.args().size() <= kLimits.line_bytes);
      for (const std::string_view arg : parser.args()) {
        BASALT_CHECK(arg.size() <= kLimits.argument_bytes);
        commands += std::to_string(arg.size()) + ":" + std::string(arg) + ",";
      }
      commands += ";";
      begin += parser.consumed();
    }
  }
  return commands;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t step = data[0] % 64 + 1;
  // A line that is too long is noticed earlier when it arrives in pieces, and with other words only
  // if it is also malformed; both end the connection.
  const std::string whole = Parse(bytes, bytes.size() + 1);
  const std::string pieces = Parse(bytes, step);
  const size_t end = whole.rfind(';');
  BASALT_CHECK(pieces.rfind(';') == end);
  if (end != std::string::npos) BASALT_CHECK(whole.substr(0, end) == pieces.substr(0, end));
  return 0;
}
