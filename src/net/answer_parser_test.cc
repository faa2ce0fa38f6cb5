#include "net/answer_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace basalt::net {
namespace {

using Outcome = AnswerParser::Outcome;

TEST(AnswerParser, ReadsEveryKindInWhateverPiecesItArrives) {
  const std::string bytes =
      "*6\r\n+OK\r\n-BASALT 1 0 no\r\n:-42\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n$0\r\n\r\n*-1\r\n:7\r\n";
  const size_t answer_bytes = bytes.size() - 4;
  for (size_t step = 1; step <= bytes.size(); ++step) {
    AnswerParser parser(1 << 20);
    size_t end = 0;
    Outcome outcome = Outcome::kMore;
    while (outcome == Outcome::kMore && end < bytes.size()) {
      end = std::min(end + step, bytes.size());
      outcome = parser.Next(std::string_view(bytes).substr(0, end));
    }
    ASSERT_EQ(outcome, Outcome::kAnswer) << step;
    ASSERT_EQ(parser.consumed(), answer_bytes);
    AnswerReader answer(parser.tokens(), bytes);
    EXPECT_EQ(answer.Array(), 6u);
    EXPECT_EQ(answer.Simple(), "OK");
    EXPECT_TRUE(answer.IsError());
    EXPECT_EQ(answer.Error(), "BASALT 1 0 no");
    EXPECT_EQ(answer.Integer(), -42);
    EXPECT_EQ(answer.Bytes(), "a\r\n");
    EXPECT_TRUE(answer.IsNull());
    answer.Null();
    EXPECT_EQ(answer.Array(), 2u);
    EXPECT_EQ(answer.Bytes(), "");
    answer.Null();
    EXPECT_TRUE(answer.ok() && answer.AtEnd());
    ASSERT_EQ(parser.Next(std::string_view(bytes).substr(answer_bytes)), Outcome::kAnswer);
    EXPECT_EQ(parser.tokens().front().number, 7);
  }
}

TEST(AnswerParser, RefusesWhatIsMalformed) {
  for (const std::string_view bytes :
       {"\r\n", "x\r\n", ":\r\n", ":1x\r\n", "$-2\r\n", "$99999999999999999999\r\n", "*-2\r\n",
        "$1\r\nab\r\n", "$2000\r\n", "*2000\r\n", "+OK\rx\r\n:1x\r\n"}) {
    AnswerParser parser(1000);
    Outcome outcome = parser.Next(bytes);
    if (outcome == Outcome::kAnswer) outcome = parser.Next(bytes.substr(parser.consumed()));
    EXPECT_EQ(outcome, Outcome::kError) << bytes;
    EXPECT_FALSE(parser.error().empty());
    EXPECT_EQ(parser.Next(":1\r\n"), Outcome::kError) << "nothing is read behind an error";
  }
}

TEST(AnswerReader, TurnsBadWhereTheAnswerIsOfAnotherForm) {
  AnswerParser parser(1000);
  const std::string bytes = "*2\r\n:1\r\n+OK\r\n";
  ASSERT_EQ(parser.Next(bytes), Outcome::kAnswer);
  AnswerReader answer(parser.tokens(), bytes);
  EXPECT_EQ(answer.Array(), 2u);
  EXPECT_EQ(answer.Bytes(), "");
  EXPECT_FALSE(answer.ok());
  EXPECT_EQ(answer.Integer(), 0);
}

}  // namespace
}  // namespace basalt::net
