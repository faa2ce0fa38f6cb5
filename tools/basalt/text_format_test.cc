#include "tools/basalt/text_format.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace basalt::tools {
namespace {

using std::string_literals::operator""s;

std::string Line(RecordFormat format, std::string_view key, std::string_view value) {
  std::string line;
  AppendRecord(format, key, value, line);
  return line;
}

/// What `line`, which ends in a newline, comes back as.
Result<Record> Parsed(RecordFormat format, std::string_view line) {
  EXPECT_TRUE(line.ends_with('\n'));
  line.remove_suffix(1);
  EXPECT_EQ(line.find('\n'), std::string_view::npos) << line;
  return ParseRecord(format, line);
}

TEST(TextFormat, TextStandsAsItIs) {
  EXPECT_EQ(ToText("user/42 \"Ada\" = 'x'"), "user/42 \"Ada\" = 'x'");
  EXPECT_EQ(ToText("Z\u00fcrich \u2192 \U0001F600"), "Z\u00fcrich \u2192 \U0001F600");
}

TEST(TextFormat, ControlCharactersAndBackslashesAreEscaped) {
  EXPECT_EQ(ToText("a\tb\nc\rd\\e\0f\x1b[1m\x7f"s), "a\\tb\\nc\\rd\\\\e\\x00f\\x1B[1m\\x7F");
  EXPECT_EQ(ToText("\u0085\u00a0"), "\\xC2\\x85\u00a0") << "C1 controls drive terminals too";
}

TEST(TextFormat, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(ToText("\xff\xfe"), "\\xFF\\xFE");
  EXPECT_EQ(ToText("\xc3"), "\\xC3") << "cut short";
  EXPECT_EQ(ToText("\xc0\xaf"), "\\xC0\\xAF") << "overlong";
  EXPECT_EQ(ToText("\xe0\x80\xaf"), "\\xE0\\x80\\xAF") << "overlong";
  EXPECT_EQ(ToText("\xed\xa0\x80"), "\\xED\\xA0\\x80") << "surrogate";
  EXPECT_EQ(ToText("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80") << "beyond U+10FFFF";
}

TEST(TextFormat, EscapesAreReadBackInEitherCase) {
  EXPECT_EQ(*ParseText("\\x1b\\x1B\\\\\\t\\n\\r"), "\x1b\x1b\\\t\n\r");
}

TEST(TextFormat, AnUnknownEscapeIsRefusedWithItsPosition) {
  for (const char* text : {"ab\\", "ab\\q", "ab\\x", "ab\\x1", "ab\\xg0", "ab\\x0g", "ab\\X00"}) {
    const Result<std::string> bytes = ParseText(text);
    ASSERT_FALSE(bytes) << text;
    EXPECT_NE(bytes.error().message().find("character 3"), std::string_view::npos)
        << bytes.error().ToString();
  }
}

TEST(TextFormat, RecordsAreLines) {
  EXPECT_EQ(Line(RecordFormat::kText, "k", "v w"), "k\tv w\n");
  EXPECT_EQ(Line(RecordFormat::kText, "", ""), "\t\n");
  EXPECT_EQ(Line(RecordFormat::kJson, "k\n", "\xff\x00"s),
            "{\"key\":\"k\\n\",\"value\":{\"base64\":\"/wA=\"}}\n");
  std::string keys;
  AppendRecord(RecordFormat::kText, "k", std::nullopt, keys);
  AppendRecord(RecordFormat::kJson, "k", std::nullopt, keys);
  EXPECT_EQ(keys, "k\n{\"key\":\"k\"}\n");
}

TEST(TextFormat, ALineSaysWhenItsRecordExpires) {
  const WallTime expiry{std::chrono::milliseconds(1'764'297'600'123)};
  for (const auto& [format, expected] :
       {std::pair(RecordFormat::kText, "k\tv\texpiry_ms=1764297600123\n"),
        std::pair(RecordFormat::kJson,
                  "{\"key\":\"k\",\"value\":\"v\",\"expiry_ms\":1764297600123}\n")}) {
    std::string line;
    AppendRecord(format, "k", "v", line, {.expiry = expiry});
    EXPECT_EQ(line, expected);
    const Result<Record> record = Parsed(format, line);
    ASSERT_TRUE(record) << record.error().ToString();
    EXPECT_EQ(record->key, "k");
    EXPECT_EQ(record->value, "v");
    EXPECT_EQ(record->expiry, expiry);
    EXPECT_EQ(Parsed(format, Line(format, "k", "v")).value().expiry, std::nullopt);

    line.clear();
    AppendRecord(format, "", "", line, {.expiry = WallTime::max()});
    EXPECT_EQ(Parsed(format, line).value().expiry, WallTime::max());
  }
  EXPECT_TRUE(ParseRecord(RecordFormat::kText, "k\tv\texpiry_ms=5\r")) << "of a Windows file";
  EXPECT_TRUE(HasExpired({.key = "k", .value = "v", .expiry = WallTime(std::chrono::days(1))}));
  EXPECT_FALSE(HasExpired({.key = "k", .value = "v", .expiry = WallTime::max()}));
  EXPECT_FALSE(HasExpired({.key = "k", .value = "v"}));
}

TEST(TextFormat, WhatIsNoMomentAfterTheBeginningOf1970IsRefused) {
  for (const std::string moment : {"", "0", "-1", "+1", "1 ", " 1", "1.0", "1e3", "0x1", "null",
                                   "1,", "\"1\"", "9223372036854775808"}) {
    EXPECT_FALSE(ParseRecord(RecordFormat::kText, "k\tv\texpiry_ms=" + moment)) << moment;
    if (moment == "1 " || moment == " 1") continue;  // White space of JSON.
    EXPECT_FALSE(
        ParseRecord(RecordFormat::kJson, R"({"key":"k","value":"v","expiry_ms":)" + moment + "}"))
        << moment;
  }
}

TEST(TextFormat, LinesOfWindowsFilesAreRead) {
  const Result<Record> text = ParseRecord(RecordFormat::kText, "k\tv\r");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->value, "v");
  EXPECT_TRUE(ParseRecord(RecordFormat::kJson, "{\"key\":\"k\",\"value\":\"v\"}\r"));
}

TEST(TextFormat, BadTextLinesAreRefused) {
  EXPECT_FALSE(ParseRecord(RecordFormat::kText, "no tab"));
  for (const char* behind : {"", "c", "5", "expiry_ms", "expiry=5", "expiry_ms=5\t"}) {
    EXPECT_FALSE(ParseRecord(RecordFormat::kText, "a\tb\t"s + behind)) << behind;
  }
  EXPECT_FALSE(ParseRecord(RecordFormat::kText, "a\\z\tb"));
  EXPECT_FALSE(ParseRecord(RecordFormat::kText, "a\tb\\z"));
}

TEST(TextFormat, BadJsonLinesAreRefused) {
  for (const char* line : {"",
                           "{",
                           "nonsense",
                           "[]",
                           "17",
                           "{}",
                           R"({"key":"a"})",
                           R"({"value":"a"})",
                           R"({"key":"a","value":1})",
                           R"({"key":null,"value":"b"})",
                           R"({"key":"a","value":"b","ttl":1})",
                           R"({"key":"a","expiry_ms":5})",
                           R"({"key":"a","value":"b","expiry_ms":5,"ttl":1})",
                           R"({"key":"a","value":"b","expiry_ms":5,"expiry_ms":6})",
                           R"({"key":"a","value":"b"} {"key":"c","value":"d"})",
                           R"({"key":"a","value":{"base64":"?"}})",
                           R"({"key":"a","value":{"base64":1}})",
                           R"({"key":"a","value":{"base64":"","more":""}})",
                           R"({"key":"a","value":{}})",
                           R"({"key":"a","key":"b","value":""})",
                           R"({"key":"a","value":"b","value":"b"})",
                           R"({"key":"a","value":{"base64":"","base64":"Yg=="}})",
                           "{\"key\":\"\xff\",\"value\":\"\"}",
                           R"({"key":"\ud800","value":""})"}) {
    const Result<Record> record = ParseRecord(RecordFormat::kJson, line);
    ASSERT_FALSE(record) << line;
    EXPECT_EQ(record.error().code(), StatusCode::kInvalidArgument);
  }
}

TEST(TextFormat, MembersAreCountedOutsideOfStringsOnly) {
  const Result<Record> record =
      ParseRecord(RecordFormat::kJson, R"({"key":":\":\\","value" : {"base64":"Og=="}})");
  ASSERT_TRUE(record) << record.error().ToString();
  EXPECT_EQ(record->key, ":\":\\");
  EXPECT_EQ(record->value, ":");
}

TEST(TextFormat, AnyBytesComeBackFromBothForms) {
  const uint64_t seed = 20240601;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto bytes = [&random] {
    // Half of them mostly text, so that sequences of UTF-8 are cut and joined.
    static const std::string kPieces[] = {"a",      "\\",       "\t",     "\n",         "\"",
                                          "\u00fc", "\u0085",   "\u20ac", "\U0001F600", "\xc3",
                                          "\x80",   "\xed\xa0", "\0"s};
    std::string text;
    const bool pieces = random() % 2 == 0;
    for (size_t left = random() % 20; left > 0; --left) {
      text += pieces ? kPieces[random() % std::size(kPieces)]
                     : std::string(1, static_cast<char>(random()));
    }
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = bytes();
    const std::string value = bytes();
    for (const RecordFormat format : {RecordFormat::kText, RecordFormat::kJson}) {
      const Result<Record> record = Parsed(format, Line(format, key, value));
      ASSERT_TRUE(record) << record.error().ToString();
      ASSERT_EQ(record->key, key);
      ASSERT_EQ(record->value, value);
    }
  }
}

}  // namespace
}  // namespace basalt::tools
