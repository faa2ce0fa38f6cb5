// Any bytes as what a server sends to a client: answers are the same in whatever pieces the bytes
// arrive, tokens lie within the answer, and error lines and requirements of writes are read or
// refused.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/answer_parser.h"
#include "net/error_line.h"
#include "net/requirement.h"

namespace {

using basalt::net::AnswerParser;
using basalt::net::AnswerReader;
using basalt::net::Token;

constexpr uint64_t kAnswerBytesMax = 8192;

/// The tokens of all answers, and the error that ends them.
std::string Parse(std::string_view bytes, size_t step) {
  AnswerParser parser(kAnswerBytesMax);
  std::string answers;
  size_t begin = 0;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(end + step, bytes.size());
    while (true) {
      const std::string_view received = bytes.substr(begin, end - begin);
      const auto outcome = parser.Next(received);
      if (outcome == AnswerParser::Outcome::kMore) break;
      if (outcome == AnswerParser::Outcome::kError) return answers + "!";
      BASALT_CHECK(parser.consumed() > 0 && parser.consumed() <= received.size());
      AnswerReader reader(parser.tokens(), received);
      for (const Token& token : parser.tokens()) {
        answers += std::to_string(static_cast<int>(token.kind)) + ":" + std::to_string(token.size) +
                   ":" + std::to_string(token.number) + ",";
        if (token.kind == Token::Kind::kArray || token.kind == Token::Kind::kNull) continue;
        BASALT_CHECK(token.offset + token.size <= parser.consumed());
      }
      if (reader.IsError()) {
        BASALT_CHECK(!basalt::net::StatusOf(reader.Error(), "server").ok());
      }
      answers += ";";
      begin += parser.consumed();
    }
  }
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  BASALT_CHECK(Parse(bytes, bytes.size() + 1) == Parse(bytes, data[0] % 64 + 1));
  std::string again;
  const basalt::Status read =
      basalt::net::ForEachRequirement(bytes, [&](const basalt::net::Requirement& requirement) {
        basalt::net::AppendRequirement(requirement, &again);
        return basalt::Status();
      });
  if (read.ok()) BASALT_CHECK(again == bytes);
  return 0;
}
