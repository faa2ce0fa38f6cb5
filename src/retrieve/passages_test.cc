#include "retrieve/passages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace basalt::retrieve {
namespace {

std::vector<std::string> TextsOf(std::string_view text, size_t bytes_max) {
  std::vector<std::string> passages;
  for (const text::Span span : DividePassages(text, bytes_max)) {
    passages.emplace_back(span.Of(text));
  }
  return passages;
}

using Texts = std::vector<std::string>;

TEST(Passages, AreParagraphsThatFitTogether) {
  EXPECT_EQ(TextsOf("one\n\ntwo\n \nthree", 100), (Texts{"one\n\ntwo\n \nthree"}));
  EXPECT_EQ(TextsOf("one\n\ntwo\n\nthree", 9), (Texts{"one\n\ntwo", "three"}));
  EXPECT_EQ(TextsOf("one\nline\n\ntwo", 9), (Texts{"one\nline", "two"}));
  EXPECT_EQ(TextsOf("", 10), Texts{});
  EXPECT_EQ(TextsOf(" \r\n\n \t", 10), Texts{});
}

TEST(Passages, ALongParagraphIsDividedBehindASentenceElseAWordElseACharacter) {
  EXPECT_EQ(TextsOf("A sentence. Another one here.", 20),
            (Texts{"A sentence.", "Another one here."}));
  EXPECT_EQ(TextsOf("some words without an end", 12), (Texts{"some words", "without an", "end"}));
  EXPECT_EQ(TextsOf("abcdefgh", 4), (Texts{"abcd", "efgh"}));
  EXPECT_EQ(TextsOf("東京都", 4), (Texts{"東", "京", "都"}));
}

TEST(Passages, HaveAllBytesThatAreNoSpace) {
  base::Random random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint64_t left = random.Below(200); left > 0; --left) {
      text += " \n\nab.\xe6\x9d\xb1\r\xff"[random.Below(11)];
    }
    const size_t bytes_max = random.Between(4, 40);
    size_t covered = 0;
    for (const text::Span span : DividePassages(text, bytes_max)) {
      ASSERT_LE(covered, span.begin);
      ASSERT_EQ(text.substr(covered, span.begin - covered).find_first_not_of(" \n\r"),
                std::string::npos);
      ASSERT_LT(span.begin, span.end);
      ASSERT_LE(span.size(), bytes_max);
      covered = span.end;
    }
    ASSERT_EQ(text.substr(covered).find_first_not_of(" \n\r"), std::string::npos);
  }
}

}  // namespace
}  // namespace basalt::retrieve
