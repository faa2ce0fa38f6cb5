#include "c_api/content_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace basalt::c_api {
namespace {

TEST(ContentJson, WhatIsWrittenReadsBackEqual) {
  const Properties properties = {
      {"", true},
      {"min", std::numeric_limits<int64_t>::min()},
      {"whole", 3.0},
      {"large", 1e300},
      {"tiny", -5e-324},
      {"infinite", -std::numeric_limits<double>::infinity()},
      {"text", std::string("\0\"\\\x1F\xC3\xA9", 6)},
      {"bytes", Bytes{std::string("\0\xFF", 2)}},
      {"time", WallTime(std::chrono::milliseconds(-7))},
      {"list", PropertyValue::List{PropertyValue(), PropertyValue::List{}, "x"}},
  };
  EdgeContent edge{.weight = 0.1, .properties = properties};
  edge.valid_to = WallTime(std::chrono::milliseconds(9));
  edge.expiry = WallTime(std::chrono::milliseconds(10));
  const Result<EdgeContent> parsed = ParseEdgeContent(EdgeContentJson(edge));
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->weight, edge.weight);
  EXPECT_EQ(parsed->properties, properties);
  EXPECT_EQ(parsed->valid_from, edge.valid_from);
  EXPECT_EQ(parsed->valid_to, edge.valid_to);
  EXPECT_EQ(parsed->expiry, edge.expiry);
}

TEST(ContentJson, NumbersAreIntegersWhereTheyFitAndDoublesElse) {
  const auto number = [](const std::string& text) {
    const Result<NodeContent> node = ParseNodeContent("{\"properties\":{\"n\":" + text + "}}");
    return node ? node->properties.at("n") : PropertyValue(node.error().ToString());
  };
  EXPECT_EQ(number("-9223372036854775808"), PropertyValue(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(number("9223372036854775808"), PropertyValue(9223372036854775808.0));
  EXPECT_EQ(number("1.0"), PropertyValue(1.0));
  EXPECT_EQ(number("1E2"), PropertyValue(100.0));
  for (const char* text : {"01", "1.", ".5", "+1", "1e", "1e999", "-", "NaN"}) {
    EXPECT_NE(number(text).As<std::string>(), nullptr) << text;
  }
}

TEST(ContentJson, ARefusalSaysWhere) {
  const Result<NodeContent> node = ParseNodeContent(R"({"labels": ["a", 1]})");
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(node.error().message().find("a string at byte 17"), std::string_view::npos)
      << node.error().message();
}

TEST(ContentJson, TextThatIsNoUtf8IsRefused) {
  EXPECT_FALSE(ParseNodeContent("{\"labels\":[\"\xC3\"]}"));
  EXPECT_FALSE(ParseNodeContent("{\"properties\":{\"\xFF\":1}}"));
}

TEST(ContentJson, HexIsTwoDigitsForEachByte) {
  EXPECT_EQ(*FromHex("00aF"), std::string("\0\xAF", 2));
  EXPECT_EQ(ToHex(std::string("\0\xAF", 2)), "00af");
  for (const char* digits : {"0", "0g", "-1", " 1", "0x"}) EXPECT_FALSE(FromHex(digits)) << digits;
}

}  // namespace
}  // namespace basalt::c_api
