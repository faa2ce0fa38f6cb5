#include "embed/word_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

// reference_test.cc compares with the reference implementation on real texts.

namespace basalt::embed {
namespace {

using Strings = std::vector<std::string>;

const Strings kPieces = {"[PAD]", "[UNK]",  "[CLS]", "[SEP]", "[MASK]", "un",    "##aff", "##able",
                         "want",  "##want", "##ed",  "wa",    "runn",   "##ing", ",",     "low",
                         "##est", "cafe",   "東",    "京",    "'",      "s",     "e",     "É"};

std::string Vocabulary() {
  std::string vocabulary;
  for (const std::string& piece : kPieces) vocabulary += piece + "\n";
  return vocabulary;
}

Strings Pieces(std::string_view text, size_t tokens_max = 100, bool has_case = false) {
  const auto pieces = WordPieces::Parse(Vocabulary(), {.has_case = has_case});
  EXPECT_TRUE(pieces.has_value());
  EXPECT_EQ(pieces->vocabulary_size(), kPieces.size());
  std::vector<uint32_t> ids;
  pieces->Encode(text, tokens_max, &ids);
  Strings names;
  for (const uint32_t id : ids) names.push_back(kPieces.at(id));
  EXPECT_EQ(names.front(), "[CLS]");
  EXPECT_EQ(names.back(), "[SEP]");
  return {names.begin() + 1, names.end() - 1};
}

TEST(WordPieces, WordsAreDividedIntoTheLongestPieces) {
  EXPECT_EQ(Pieces("UNwanted, running"), Strings({"un", "##want", "##ed", ",", "runn", "##ing"}));
  EXPECT_EQ(Pieces("unwantedX running"), Strings({"[UNK]", "runn", "##ing"}));
  EXPECT_EQ(Pieces("lowest's"), Strings({"low", "##est", "'", "s"}));
  EXPECT_EQ(Pieces(""), Strings());
}

TEST(WordPieces, AccentsCaseAndControlCharactersGo) {
  EXPECT_EQ(Pieces("CAFÉ cafe\u0301 ca\u00ADfe\x07"), Strings({"cafe", "cafe", "cafe"}));
  EXPECT_EQ(Pieces("ca\xFF"
                   "fe"),
            Strings({"cafe"}));
  EXPECT_EQ(Pieces("low\u2003low\u3000low\tlow"), Strings({"low", "low", "low", "low"}));
  EXPECT_EQ(Pieces("É", 100, /*has_case=*/true), Strings({"É"}));
  EXPECT_EQ(Pieces("É"), Strings({"e"}));
}

TEST(WordPieces, IdeographsAreWordsByThemselves) {
  EXPECT_EQ(Pieces("low東京low"), Strings({"low", "東", "京", "low"}));
}

TEST(WordPieces, NamesOfSpecialTokensStandForThem) {
  EXPECT_EQ(Pieces("low[SEP]low [MASK] [mask]").size(), 7U);
  EXPECT_EQ(Pieces("low[SEP]low[MASK]"), Strings({"low", "[SEP]", "low", "[MASK]"}));
}

TEST(WordPieces, TextsAndWordsAreBounded) {
  EXPECT_EQ(Pieces("low low low low", 5), Strings({"low", "low", "low"}));
  EXPECT_EQ(Pieces("unwantedwanted", 5).size(), 3U);
  EXPECT_EQ(Pieces("low", 2), Strings());
  EXPECT_EQ(Pieces("[SEP]", 2), Strings());
  std::string word = "un";
  for (int i = 0; i < 49; ++i) word += "ed";  // 100 characters
  EXPECT_EQ(Pieces(word).size(), 50U);
  EXPECT_EQ(Pieces(word + "e"), Strings({"[UNK]"}));
  EXPECT_EQ(Pieces(std::string(1'000'000, 'x')), Strings({"[UNK]"}));
}

TEST(WordPieces, AVocabularyNeedsItsSpecialTokens) {
  for (const std::string missing : {"[UNK]", "[CLS]", "[SEP]"}) {
    std::string vocabulary = Vocabulary();
    vocabulary.erase(vocabulary.find(missing), missing.size());
    const auto pieces = WordPieces::Parse(vocabulary, {});
    ASSERT_FALSE(pieces.has_value());
    EXPECT_EQ(pieces.error().ToString(), "Corruption: reading a vocabulary: it has no " + missing);
  }
  std::string windows = Vocabulary();
  for (size_t at = windows.find('\n'); at != windows.npos; at = windows.find('\n', at + 2)) {
    windows.insert(at, "\r");
  }
  EXPECT_TRUE(WordPieces::Parse(windows, {}).has_value());
}

}  // namespace
}  // namespace basalt::embed
