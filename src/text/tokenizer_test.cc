#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "text/test_unicode.h"

namespace basalt::text {
namespace {

using Strings = std::vector<std::string>;

Strings Terms(Tokenizer* tokenizer, std::string_view text) {
  Strings terms;
  tokenizer->Reset(text);
  while (tokenizer->Next()) terms.emplace_back(tokenizer->token().term);
  return terms;
}

Strings Terms(std::string_view text) {
  Tokenizer tokenizer;
  return Terms(&tokenizer, text);
}

TEST(Tokenizer, WordsAreFoldedAndPunctuationIsLeftOut) {
  EXPECT_EQ(Terms("The QUICK (“brown”) fox can’t jump 32.3 feet, right?"),
            Strings({"the", "quick", "brown", "fox", "can't", "jump", "32.3", "feet", "right"}));
  EXPECT_EQ(Terms("Straße, Cafe\u0301; ＦＵＬＬ ﬁn"), Strings({"strasse", "café", "full", "fin"}));
  EXPECT_EQ(Terms("_foo_bar_ ½ 7 😀 — _ ... \u3164"), Strings({"foo_bar", "1⁄2", "7"}));
  EXPECT_EQ(Terms(""), Strings());
}

TEST(Tokenizer, RunsWithoutSpacesBecomePairsAndTheirLastCharacter) {
  EXPECT_EQ(Terms("東京都に行く"), Strings({"東京", "京都", "都に", "に行", "行く", "く"}));
  EXPECT_EQ(Terms("猫"), Strings({"猫"}));
  EXPECT_EQ(Terms("猫。犬"), Strings({"猫", "犬"}));
  EXPECT_EQ(Terms("カメラとcamera"), Strings({"カメ", "メラ", "ラと", "と", "camera"}));
  EXPECT_EQ(Terms("한국어abc漢"), Strings({"한국", "국어", "어", "abc", "漢"}));
  EXPECT_EQ(Terms("한.com 3_漢"), Strings({"한", "com", "3", "漢"}));
  EXPECT_EQ(Terms("ภาษาไทย").front(), "ภา");
  EXPECT_EQ(Terms("ｶﾞﾗｽ"), Strings({"ガラ", "ラス", "ス"}));
}

TEST(Tokenizer, KindsAndPositionsSayWhatAPhraseNeeds) {
  Tokenizer tokenizer;
  tokenizer.Reset("a 黒猫 b 猫");
  std::vector<TokenKind> kinds;
  for (uint32_t position = 0; tokenizer.Next(); ++position) {
    EXPECT_EQ(tokenizer.token().position, position);
    kinds.push_back(tokenizer.token().kind);
  }
  EXPECT_EQ(kinds, std::vector<TokenKind>({TokenKind::kWord, TokenKind::kPair, TokenKind::kTail,
                                           TokenKind::kWord, TokenKind::kSingle}));
}

TEST(Tokenizer, SpansAreTheBytesOfTheSource) {
  const std::string text = "Un CAFÉ, 黒猫 \xFF x";
  Tokenizer tokenizer;
  tokenizer.Reset(text);
  Strings sources;
  while (tokenizer.Next()) sources.emplace_back(tokenizer.token().span.Of(text));
  EXPECT_EQ(sources, Strings({"Un", "CAFÉ", "黒猫", "猫", "x"}));
}

TEST(Tokenizer, MalformedBytesDivideWordsAndAreInNone) {
  EXPECT_EQ(Terms("ab\xFF"
                  "cd\xE2\x82 ef"),
            Strings({"ab", "cd", "ef"}));
  EXPECT_EQ(Terms("黒\x80猫"), Strings({"黒", "猫"}));
  // Joined by rules WB3c and WB4 to what follows.
  EXPECT_EQ(Terms("\xFF\u200D\u24C2x"), Strings({"mx"}));
  EXPECT_EQ(Terms("\xFF\u093E"), Strings());
}

TEST(Tokenizer, LongWordsAreCutTheSameWhereverTheyStand) {
  const std::string word(1'000'000, 'x');
  EXPECT_EQ(Terms("a " + word + " b"), Strings({"a", std::string(kMaxTermBytes, 'x'), "b"}));
  std::string marks = "a";
  for (int i = 0; i < 100'000; ++i) marks += "\u0301";
  const Strings terms = Terms(marks);
  ASSERT_EQ(terms.size(), 1U);
  EXPECT_LE(terms[0].size(), kMaxTermBytes);
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "ä";
  EXPECT_EQ(Terms(umlauts)[0].size(), kMaxTermBytes - 1);  // not half a character
}

TEST(Tokenizer, AnyBytesGiveTermsThatAreFoundAgain) {
  const uint64_t seed = 11;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  Tokenizer tokenizer;
  Tokenizer of_terms;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (uint64_t i = random.Below(20); i > 0; --i) {
      switch (random.Below(4)) {
        case 0:
          text.push_back(static_cast<char>(random.Next()));
          break;
        case 1:
          text.push_back(static_cast<char>(random.Between(' ', '~')));
          break;
        case 2:
          AppendUtf8(static_cast<uint32_t>(random.Below(0xD800)), &text);
          break;
        default:
          AppendUtf8(static_cast<uint32_t>(random.Between(0xE000, 0x10FFFF)), &text);
      }
    }
    tokenizer.Reset(text);
    size_t begin = 0;
    uint32_t position = 0;
    while (tokenizer.Next()) {
      const Token& token = tokenizer.token();
      ASSERT_LE(begin, token.span.begin);
      ASSERT_LT(token.span.begin, token.span.end);
      ASSERT_LE(token.span.end, text.size());
      ASSERT_EQ(token.position, position++);
      ASSERT_LE(token.term.size(), kMaxTermBytes);
      // The source of a term gives it again, by itself.
      of_terms.Reset(token.span.Of(text));
      ASSERT_TRUE(of_terms.Next());
      ASSERT_EQ(of_terms.token().term, token.term);
      begin = token.span.begin;
    }
  }
}

TEST(Tokenizer, WordsAreStemmedAndOtherTermsAreNot) {
  auto stemmer = Stemmer::Create("english");
  if (Stemmer::Languages().empty()) {
    EXPECT_EQ(stemmer.status().code(), StatusCode::kUnsupported);
    GTEST_SKIP() << "this build has no stemmers";
  }
  Tokenizer tokenizer(*std::move(stemmer));
  EXPECT_EQ(Terms(&tokenizer, "Running runs, the dogs’ 東京"),
            Strings({"run", "run", "the", "dog", "東京", "京"}));
  tokenizer.Reset("Running", /*stems=*/false);
  ASSERT_TRUE(tokenizer.Next());
  EXPECT_EQ(tokenizer.token().term, "running");
}

TEST(Stemmer, AnUnknownLanguageIsRefusedWithThoseThatThereAre) {
  if (Stemmer::Languages().empty()) GTEST_SKIP() << "this build has no stemmers";
  const auto stemmer = Stemmer::Create("klingon");
  ASSERT_FALSE(stemmer.has_value());
  EXPECT_EQ(stemmer.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(stemmer.error().message().find("'klingon'"), std::string_view::npos);
  EXPECT_NE(stemmer.error().message().find(" english"), std::string_view::npos);
  for (const std::string& language : Stemmer::Languages()) {
    EXPECT_TRUE(Stemmer::Create(language).has_value()) << language;
  }
}

}  // namespace
}  // namespace basalt::text
