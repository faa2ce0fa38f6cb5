#include "basalt/json.h"

#include <gtest/gtest.h>

#include <string>

namespace basalt {
namespace {

std::string ProblemsOf(std::string problem) {
  SharedMapReport report;
  report.problems.push_back(std::move(problem));
  return ToJson(report);
}

TEST(Json, MembersHaveTheNamesOfFields) {
  SharedMapReport report{.records = 7, .bytes = 8, .problems = {}};
  EXPECT_EQ(ToJson(report), R"({"records":7,"bytes":8,"problems":[],"ok":true})");
  report.problems = {"a", "b"};
  EXPECT_EQ(ToJson(report), R"({"records":7,"bytes":8,"problems":["a","b"],"ok":false})");
}

TEST(Json, NestedObjects) {
  DBStats stats;
  stats.levels = {{.tables = 1, .bytes = 2, .records = 3, .deletes = 4}, {}};
  EXPECT_NE(ToJson(stats).find(R"("levels":[{"tables":1,"bytes":2,"records":3,"deletes":4},)"
                               R"({"tables":0,"bytes":0,"records":0,"deletes":0}],"writes":0)"),
            std::string::npos)
      << ToJson(stats);
  CheckReport report;
  report.findings.push_back(
      {.file = "x.tbl", .offset = 5, .status = Status(StatusCode::kCorruption, "bad")});
  EXPECT_NE(
      ToJson(report).find(R"("findings":[{"file":"x.tbl","offset":5,"status":"Corruption: bad"}])"),
      std::string::npos)
      << ToJson(report);
}

TEST(Json, StringsAreEscaped) {
  EXPECT_EQ(ProblemsOf("a\"b\\c\n\x01"),
            R"({"records":0,"bytes":0,"problems":["a\"b\\c\u000a\u0001"],"ok":false})");
}

TEST(Json, WhatIsNoUtf8IsReplaced) {
  const std::string replacement = "\xEF\xBF\xBD";
  const auto in = [](const std::string& text) {
    return R"({"records":0,"bytes":0,"problems":[")" + text + R"("],"ok":false})";
  };
  for (const char* good : {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF"})
    EXPECT_EQ(ProblemsOf(good), in(good));
  EXPECT_EQ(ProblemsOf("a\xFFz"), in("a" + replacement + "z"));
  EXPECT_EQ(ProblemsOf("\xC3"), in(replacement));                                      // cut short
  EXPECT_EQ(ProblemsOf("\xC0\xAF"), in(replacement + replacement));                    // overlong
  EXPECT_EQ(ProblemsOf("\xED\xA0\x80"), in(replacement + replacement + replacement));  // surrogate
  EXPECT_EQ(ProblemsOf("\xF4\x90\x80\x80").size(), in("").size() + 12);  // above U+10FFFF
  EXPECT_EQ(ProblemsOf("\xE2\x28\xA1"), in(replacement + "(" + replacement));
}

}  // namespace
}  // namespace basalt
