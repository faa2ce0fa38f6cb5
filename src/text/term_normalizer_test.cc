#include "text/term_normalizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "text/test_unicode.h"

namespace basalt::text {
namespace {

/// What NFKC_Casefold makes of a code point; code points that are not there stay as they are.
std::map<uint32_t, std::string> FoldingsOf(const std::vector<std::string>& lines) {
  std::map<uint32_t, std::string> foldings;
  for (const std::string& line : lines) {
    const size_t name = line.find("; NFKC_CF;");
    if (name == line.npos) continue;
    const std::string folding = Utf8Of(line.substr(name + 10));
    for (auto [at, last] = FirstAndLast(line); at <= last; ++at) foldings[at] = folding;
  }
  return foldings;
}

TEST(TermNormalizer, EveryAssignedCodePointBecomesItsNfkcCasefold) {
  BASALT_UNICODE_LINES(lines, "DerivedNormalizationProps.txt");
  BASALT_UNICODE_LINES(categories, "extracted/DerivedGeneralCategory.txt");
  const std::map<uint32_t, std::string> foldings = FoldingsOf(*lines);
  EXPECT_GT(foldings.size(), 10'000U);
  // The library does not leave out those that are only reserved to be ignorable.
  std::vector<bool> is_assigned(0x110000, true);
  for (const std::string& line : *categories) {
    if (!line.ends_with("; Cn")) continue;
    for (auto [at, last] = FirstAndLast(line); at <= last; ++at) is_assigned[at] = false;
  }
  TermNormalizer normalizer;
  size_t tried = 0;
  for (uint32_t code_point = 0; code_point < 0x110000; ++code_point) {
    const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
    if (is_surrogate || !is_assigned[code_point] || code_point == 0x2019) continue;
    std::string word;
    AppendUtf8(code_point, &word);
    const auto folding = foldings.find(code_point);
    const std::string& expected = folding == foldings.end() ? word : folding->second;
    const std::string once(normalizer.Normalize(word));
    ASSERT_EQ(once, expected) << code_point;
    ASSERT_EQ(normalizer.Normalize(once), once) << code_point;
    ++tried;
  }
  EXPECT_GT(tried, 280'000U);
}

TEST(TermNormalizer, FormsOfOneWordAreOneTerm) {
  TermNormalizer normalizer;
  const auto normal = [&](std::string_view word) {
    return std::string(normalizer.Normalize(word));
  };
  EXPECT_EQ(normal("HELLO"), "hello");
  EXPECT_EQ(normal("Straße"), normal("STRASSE"));
  EXPECT_EQ(normal("ﬁlm"), "film");
  EXPECT_EQ(normal("Cafe\u0301"), "café");
  EXPECT_EQ(normal("ＡＢＣ１２３"), "abc123");
  EXPECT_EQ(normal("ｶﾞ"), "ガ");
  EXPECT_EQ(normal("co\u00ADop"), "coop");  // a soft hyphen
  EXPECT_EQ(normal("don’t"), "don't");
  EXPECT_EQ(normal("ΣΊΣΥΦΟΣ"), normal("σίσυφος"));
  EXPECT_EQ(normal("\u3164"), "");
}

TEST(TermNormalizer, AWordThatGrowsFindsRoom) {
  TermNormalizer normalizer;
  std::string word;
  for (int i = 0; i < 100; ++i) word += "\uFDFA";  // 3 bytes, which become 33
  EXPECT_EQ(normalizer.Normalize(word).size(), 3'300U);
}

}  // namespace
}  // namespace basalt::text
