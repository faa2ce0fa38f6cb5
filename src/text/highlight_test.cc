#include "text/highlight.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "text/character.h"

namespace basalt::text {
namespace {

/// The text with its matches in brackets.
std::string Marked(std::string_view query_text, std::string_view text) {
  Tokenizer tokenizer;
  const Query query = ParseQuery(query_text, &tokenizer);
  std::string marked;
  size_t end = 0;
  for (const Span& span : FindMatches(query, text, &tokenizer)) {
    marked +=
        std::string(text.substr(end, span.begin - end)) + "[" + std::string(span.Of(text)) + "]";
    end = span.end;
  }
  return marked + std::string(text.substr(end));
}

TEST(Highlight, TermsPrefixesAndPhrasesAreMarkedInTheSource) {
  EXPECT_EQ(Marked("café", "Ein CAFÉ, das Cafe\u0301."), "Ein [CAFÉ], das [Cafe\u0301].");
  EXPECT_EQ(Marked("qu*", "quick, Quiet, request"), "[quick], [Quiet], request");
  EXPECT_EQ(Marked("\"a b\"", "a c a b b a"), "a c [a] [b] b a");
  EXPECT_EQ(Marked("\"a b a\" c", "a b a b a c"), "[a] [b] [a] [b] [a] [c]");
  EXPECT_EQ(Marked("\"東京都\"", "京都と東京都"), "京都と[東京都]");
  EXPECT_EQ(Marked("猫", "黒猫 猫"), "黒[猫] [猫]");
  EXPECT_EQ(Marked("x", "a \xFF b"), "a \xFF b");
  EXPECT_EQ(Marked("", "a b"), "a b");
}

TEST(Highlight, AnExcerptHoldsTheMostMatchesAndWholeWords) {
  const std::string text =
      "One match here. Then many words of no interest at all follow. Here a match and a match "
      "meet, "
      "and the text goes on for a while.";
  Tokenizer tokenizer;
  const auto matches = FindMatches(ParseQuery("match", &tokenizer), text, &tokenizer);
  ASSERT_EQ(matches.size(), 3U);
  EXPECT_EQ(ChooseExcerpt(text, matches, 40).Of(text), "Here a match and a match meet, and");
  EXPECT_EQ(ChooseExcerpt(text, {}, 12).Of(text), "One match");
  EXPECT_EQ(ChooseExcerpt("short", {}, 12).Of("short"), "short");
  EXPECT_EQ(ChooseExcerpt(text, matches, 3).Of(text), "mat");
}

TEST(Highlight, AnExcerptIsNeverTooLongNorCutsACharacter) {
  base::Random random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (uint64_t i = random.Below(40); i > 0; --i) {
      const char* const parts[] = {" ", "a", "ä", "猫", "🐈", "w", "bc "};
      text += parts[random.Below(7)];
    }
    Tokenizer tokenizer;
    const auto matches = FindMatches(ParseQuery("a w* 猫", &tokenizer), text, &tokenizer);
    const size_t bytes_max = random.Below(30);
    const Span shown = ChooseExcerpt(text, matches, bytes_max);
    ASSERT_LE(shown.begin, shown.end) << "seed 3";
    ASSERT_LE(shown.end, text.size());
    ASSERT_LE(shown.size(), bytes_max);
    const std::string_view excerpt = shown.Of(text);
    for (size_t at = 0; at < excerpt.size();) {
      const Character character = ReadCharacter(excerpt, at);
      ASSERT_NE(character.code_point, kReplacementCharacter) << text << " " << excerpt;
      at += character.bytes;
    }
    // If there is room, a match is shown.
    if (!matches.empty() && bytes_max >= 4) {
      bool is_shown = false;
      for (const Span& match : matches) {
        is_shown |= match.begin >= shown.begin && match.begin < shown.end;
      }
      ASSERT_TRUE(is_shown) << text << " " << excerpt;
    }
  }
}

}  // namespace
}  // namespace basalt::text
