#include "retrieve/near_duplicates.h"

#include <gtest/gtest.h>

#include <string>

namespace basalt::retrieve {
namespace {

TEST(NearDuplicates, AreTextsOfAlmostTheSameWords) {
  NearDuplicates texts;
  EXPECT_TRUE(texts.Add("Ada was born in London in 1815."));
  EXPECT_FALSE(texts.Add("ada was born; in London, in 1815"));
  EXPECT_TRUE(texts.Add("Ada was born in London in 1816."));
  std::string text;
  for (int i = 0; i < 100; ++i) text += "word" + std::to_string(i) + " ";
  EXPECT_TRUE(texts.Add(text));
  EXPECT_FALSE(texts.Add(text + "and more"));
  EXPECT_TRUE(texts.Add(text.substr(text.size() / 2)));
}

TEST(NearDuplicates, ShortTextsAreComparedAsAWhole) {
  NearDuplicates texts;
  EXPECT_TRUE(texts.Add("one"));
  EXPECT_TRUE(texts.Add("one two"));
  EXPECT_FALSE(texts.Add("One, two!"));
  EXPECT_TRUE(texts.Add("two one"));
  EXPECT_FALSE(texts.Add("one"));
}

TEST(NearDuplicates, ATextWithoutWordsIsNone) {
  NearDuplicates texts;
  EXPECT_TRUE(texts.Add(""));
  EXPECT_TRUE(texts.Add(""));
  EXPECT_TRUE(texts.Add("..."));
}

}  // namespace
}  // namespace basalt::retrieve
