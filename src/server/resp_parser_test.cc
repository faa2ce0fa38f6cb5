#include "server/resp_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace basalt::server {
namespace {

using Words = std::vector<std::string>;

Words WordsOf(const RespParser& parser) { return {parser.args().begin(), parser.args().end()}; }

/// The commands in `bytes`, which arrive in pieces of `step` bytes; "error" behind them if it ends
/// so.
std::vector<Words> ParseInPieces(std::string_view bytes, size_t step, RequestLimits limits = {}) {
  RespParser parser(limits);
  std::vector<Words> commands;
  size_t begin = 0;
  for (size_t end = 0; end < bytes.size();) {
    end = std::min(end + step, bytes.size());
    while (true) {
      const auto outcome = parser.Next(bytes.substr(begin, end - begin));
      if (outcome == RespParser::Outcome::kMore) break;
      if (outcome == RespParser::Outcome::kError) {
        commands.push_back({"error", parser.error()});
        return commands;
      }
      commands.push_back(WordsOf(parser));
      begin += parser.consumed();
    }
  }
  return commands;
}

TEST(RespParser, ReadsArraysAndLinesWhateverThePieces) {
  const std::string_view bytes =
      "*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING\r\n*0\r\n*-1\r\n\r\nSET  k 'a b'\n*1\r\n$0\r\n\r\n";
  const std::vector<Words> expected = {{"GET", "a\r\nb"},   {"PING"}, {}, {}, {},
                                       {"SET", "k", "a b"}, {""}};
  for (size_t step = 1; step <= bytes.size(); ++step) {
    EXPECT_EQ(ParseInPieces(bytes, step), expected) << step;
  }
}

TEST(RespParser, ReadsQuotesAsRedisDoes) {
  const auto words = [](std::string_view line) {
    return ParseInPieces(std::string(line) + "\r\n", 1000).at(0);
  };
  EXPECT_EQ(words(R"(a "b\x41\n\"c" 'd\'e\n')"), (Words{"a", "bA\n\"c", "d'e\\n"}));
  EXPECT_EQ(words(R"("")"), (Words{""}));
  EXPECT_EQ(words(R"(a"b")"), (Words{"ab"}));
  EXPECT_EQ(words(R"("a)"), (Words{"error", "Protocol error: unbalanced quotes in request"}));
  EXPECT_EQ(words(R"("a"b)"), (Words{"error", "Protocol error: unbalanced quotes in request"}));
}

TEST(RespParser, RefusesWhatIsMalformedOrTooLarge) {
  const RequestLimits limits{
      .argument_bytes = 10, .arguments = 4, .command_bytes = 15, .line_bytes = 20};
  const auto error = [&](std::string_view bytes) {
    const std::vector<Words> commands = ParseInPieces(bytes, 3, limits);
    return commands.empty() ? "" : commands.back().back();
  };
  EXPECT_EQ(error("*x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error("*5\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(error("*1\r\n:1\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(error("*1\r\n$11\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(error("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(error("*1\r\n$2\r\nabc\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(error("*2\r\n$8\r\n12345678\r\n$8\r\n"), "Protocol error: too big request");
  EXPECT_EQ(error("a word and another word"), "Protocol error: too big inline request");
  EXPECT_EQ(error("*11111111111111111111111"), "Protocol error: too big mbulk count string");
  EXPECT_EQ(error("*1\r\n$111111111111111111111"), "Protocol error: too big bulk count string");
}

TEST(RespParser, SaysHowManyBytesALargeArgumentNeeds) {
  RespParser parser;
  EXPECT_EQ(parser.Next("*1\r\n$1000\r\nabc"), RespParser::Outcome::kMore);
  EXPECT_EQ(parser.wanted_bytes(), std::string_view("*1\r\n$1000\r\n").size() + 1002);
}

}  // namespace
}  // namespace basalt::server
