#include "tools/basalt/map_json.h"

#include <gtest/gtest.h>

#include <string>

namespace basalt::tools {
namespace {

using std::string_literals::operator""s;

std::string Compact(const std::string& text) {
  const Result<std::string> compact = CompactJson(text);
  return compact ? *compact : "refused: " + std::string(compact.error().message());
}

TEST(MapJson, WhiteSpaceBetweenThePartsGoes) {
  EXPECT_EQ(Compact(" { \"a\" : [ 1 ,\t2\n, { } ] ,\r\n\"b\":null } \n"),
            "{\"a\":[1,2,{}],\"b\":null}");
  EXPECT_EQ(Compact("[ ]"), "[]");
  EXPECT_EQ(Compact(" 12 "), "12");
}

TEST(MapJson, WhatStandsInStringsStays) {
  EXPECT_EQ(Compact("[ \"a b\" , \"\\\" , \\\\\" , \" \\u00e9 \\n \" ]"),
            "[\"a b\",\"\\\" , \\\\\",\" \\u00e9 \\n \"]");
  EXPECT_EQ(Compact("{ \" k \" : \"\" }"), "{\" k \":\"\"}");
}

TEST(MapJson, NumbersAndMembersStayAsTheyAreWritten) {
  EXPECT_EQ(Compact("[2.50, 1e3, -0.0, 123456789012345678901234567890]"),
            "[2.50,1e3,-0.0,123456789012345678901234567890]");
  EXPECT_EQ(Compact("{\"b\": 1, \"a\": 2}"), "{\"b\":1,\"a\":2}");
}

TEST(MapJson, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(Compact("{\"a\": 01}").find("refused: not JSON: "), 0U) << Compact("{\"a\": 01}");
  EXPECT_NE(Compact("{\"a\" 1}").find("at byte 6"), std::string::npos) << Compact("{\"a\" 1}");
  EXPECT_NE(Compact("1 2").find("more than one value"), std::string::npos) << Compact("1 2");
  for (const std::string& text :
       {""s, " "s, "{"s, "[1,]"s, "'a'"s, "nul"s, "\"\xFF\""s, "\"\\ud800\""s, "\"a\nb\""s, "\"a"s,
        "[1]\0"s, "NaN"s, "// c\n1"s, std::string(100'000, '[')}) {
    EXPECT_EQ(Compact(text).find("refused: not JSON: "), 0U) << text.substr(0, 100);
  }
}

TEST(MapJson, DeepDocumentsAreJson) {
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_EQ(Compact(deep), deep);
}

}  // namespace
}  // namespace basalt::tools
