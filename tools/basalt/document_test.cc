#include "tools/basalt/document.h"

#include <gtest/gtest.h>

namespace basalt::tools {
namespace {

Document Example() {
  return {{"name", "a,b\n\"c\""},
          {"count", 18'446'744'073'709'551'615U},
          {"share", 0.25},
          {"id", HexValue(0xC0FFEE)},
          {"bytes", BytesValue("\xff")},
          {"list", boost::json::array{Document{{"x", 1}, {"y", true}}, Document{{"x", nullptr}}}},
          {"none", boost::json::array()}};
}

TEST(Document, JsonOfBothKindsParsesBack) {
  for (const std::string& text : {JsonLine(Example()), IndentedJson(Example())}) {
    EXPECT_EQ(boost::json::parse(text), boost::json::value(Example())) << text;
    EXPECT_TRUE(text.ends_with("}\n"));
  }
  EXPECT_EQ(JsonLine({{"a", 1}, {"b", 2.5}, {"c", boost::json::array{1, "x"}}}),
            "{\"a\":1,\"b\":2.5,\"c\":[1,\"x\"]}\n");
  EXPECT_EQ(JsonLine({}), "{}\n");
}

TEST(Document, WhatHoldsNoNestsStandsInALine) {
  EXPECT_EQ(IndentedJson({{"a", 1}, {"b", boost::json::array{Document{{"c", 2}, {"d", 3}}}}}),
            "{\n  \"a\": 1,\n  \"b\": [\n    {\"c\": 2, \"d\": 3}\n  ]\n}\n");
}

TEST(Document, CsvAndRawHaveALineAValue) {
  EXPECT_EQ(Rendered(OutputFormat::kCsv, Example()),
            "name,value\nname,\"a,b\n\"\"c\"\"\"\ncount,18446744073709551615\nshare,0.25\n"
            "id,0x0000000000c0ffee\nbytes.base64,/w==\nlist.0.x,1\nlist.0.y,true\nlist.1.x,\n");
  EXPECT_EQ(
      Rendered(OutputFormat::kRaw, Example()),
      "name\ta,b\\n\"c\"\ncount\t18446744073709551615\nshare\t0.25\n"
      "id\t0x0000000000c0ffee\nbytes.base64\t/w==\nlist.0.x\t1\nlist.0.y\ttrue\nlist.1.x\t\n");
}

TEST(Document, DecimalsAreRounded) {
  EXPECT_EQ(LeafText(DecimalValue(2.0 / 3, 3)), "0.667");
  EXPECT_EQ(LeafText(DecimalValue(1e9, 3)), "1000000000");
  EXPECT_EQ(LeafText(DecimalValue(0, 3)), "0");
}

}  // namespace
}  // namespace basalt::tools
