#include "text/word_break.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "text/character.h"
#include "text/test_unicode.h"

namespace basalt::text {
namespace {

std::vector<std::string> Segments(std::string_view text) {
  std::vector<std::string> segments;
  WordBreaker breaker(text);
  size_t end = 0;
  while (breaker.Next()) {
    EXPECT_EQ(breaker.segment().begin, end);
    EXPECT_GT(breaker.segment().size(), 0U);
    end = breaker.segment().end;
    segments.emplace_back(breaker.segment().Of(text));
  }
  EXPECT_EQ(end, text.size());
  return segments;
}

TEST(Character, EveryCodePointIsReadBackAndNothingElseIsOne) {
  for (uint32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    std::string bytes;
    AppendUtf8(code_point, &bytes);
    const Character read = ReadCharacter(bytes, 0);
    ASSERT_EQ(read.code_point, code_point);
    ASSERT_EQ(read.bytes, bytes.size());
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(ReadCharacter(std::string_view(bytes).substr(0, cut), 0).bytes, 1U);
    }
  }
  for (const std::string malformed :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(", "\xE2\x82(", "\xF0\x9F\x98("}) {
    const Character read = ReadCharacter(malformed, 0);
    EXPECT_EQ(read.code_point, kReplacementCharacter);
    EXPECT_EQ(read.bytes, 1U);
  }
}

TEST(Character, ACutNeverLiesWithinACharacter) {
  base::Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (uint64_t i = random.Below(8); i > 0; --i) {
      if (random.OneIn(3)) {
        text.push_back(static_cast<char>(random.Next()));
      } else {
        AppendUtf8(static_cast<uint32_t>(uint64_t{1} << random.Below(17)), &text);
      }
    }
    const size_t bytes_max = random.Below(12);
    size_t expected = 0;
    while (expected < text.size()) {
      const size_t next = expected + ReadCharacter(text, expected).bytes;
      if (next > bytes_max) break;
      expected = next;
    }
    ASSERT_EQ(CutToBytes(text, bytes_max), text.substr(0, expected)) << "seed 7";
  }
}

TEST(WordBreak, EveryOfficialSampleIsDividedAsItSays) {
  BASALT_UNICODE_LINES(lines, "auxiliary/WordBreakTest.txt");
  EXPECT_GT(lines->size(), 1'800U);
  for (const std::string& line : *lines) {
    std::vector<std::string> expected;
    std::string text;
    std::string code_points;
    const auto flush = [&](bool breaks) {
      const std::string character = Utf8Of(code_points);
      code_points.clear();
      text += character;
      if (!expected.empty()) expected.back() += character;
      if (breaks) expected.emplace_back();
    };
    for (size_t at = 0; at < line.size();) {
      if (line.compare(at, 2, "÷") == 0 || line.compare(at, 2, "×") == 0) {
        flush(line.compare(at, 2, "÷") == 0);
        at += 2;
      } else {
        code_points.push_back(line[at++]);
      }
    }
    ASSERT_FALSE(expected.empty());
    expected.pop_back();
    ASSERT_EQ(Segments(text), expected) << line;
  }
}

TEST(WordBreak, PropertiesAreThoseOfTheDatabase) {
  BASALT_UNICODE_LINES(lines, "auxiliary/WordBreakProperty.txt");
  const std::vector<std::string> names = {"Other",        "CR",
                                          "LF",           "Newline",
                                          "Extend",       "ZWJ",
                                          "Format",       "Regional_Indicator",
                                          "Katakana",     "Hebrew_Letter",
                                          "ALetter",      "Single_Quote",
                                          "Double_Quote", "MidNumLet",
                                          "MidLetter",    "MidNum",
                                          "Numeric",      "ExtendNumLet",
                                          "WSegSpace"};
  std::vector<uint8_t> expected(0x110000, 0);
  for (const std::string& line : *lines) {
    const size_t semicolon = line.find(';');
    const std::string name = line.substr(line.find_first_not_of(' ', semicolon + 1));
    const auto found = std::find(names.begin(), names.end(), name);
    ASSERT_NE(found, names.end()) << name;
    for (auto [at, last] = FirstAndLast(line); at <= last; ++at) {
      expected[at] = static_cast<uint8_t>(found - names.begin());
    }
  }
  for (uint32_t at = 0; at < expected.size(); ++at) {
    ASSERT_EQ(static_cast<uint8_t>(CharacterClass::Of(at).word_break()), expected[at]) << at;
  }
}

TEST(WordBreak, TextIsDividedIntoWordsAndWhatLiesBetween) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Segments(""), Strings());
  EXPECT_EQ(
      Segments("The cost: $3.14, isn't it?"),
      Strings({"The", " ", "cost", ":", " ", "$", "3.14", ",", " ", "isn't", " ", "it", "?"}));
  EXPECT_EQ(Segments("a\r\nb"), Strings({"a", "\r\n", "b"}));
  EXPECT_EQ(Segments("東京"), Strings({"東", "京"}));
  EXPECT_EQ(Segments("カタカナ"), Strings({"カタカナ"}));
  EXPECT_EQ(Segments("🇩🇪🇫🇷🇮"), Strings({"🇩🇪", "🇫🇷", "🇮"}));
  EXPECT_EQ(Segments("👩‍🚀x"), Strings({"👩‍🚀", "x"}));
}

TEST(WordBreak, MalformedBytesAreSegmentsOfTheirOwn) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Segments("ab\xFF"
                     "cd"),
            Strings({"ab", "\xFF", "cd"}));
  EXPECT_EQ(Segments("\xE2\x82"), Strings({"\xE2", "\x82"}));
  EXPECT_EQ(Segments("a\xCC"), Strings({"a", "\xCC"}));
}

TEST(WordBreak, LookingAheadOverIgnoredCharactersTakesLinearTime) {
  // Each colon looks for a letter behind the marks that follow it.
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "a:\xCC\x81\xCC\x81";
  text += std::string("a:");
  for (int i = 0; i < 1'000'000; ++i) text += "\xCC\x81";
  size_t segments = 0;
  for (WordBreaker breaker(text); breaker.Next();) ++segments;
  EXPECT_EQ(segments, 2U);
}

}  // namespace
}  // namespace basalt::text
