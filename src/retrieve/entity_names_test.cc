#include "retrieve/entity_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace basalt::retrieve {
namespace {

using Names = std::set<std::string>;

TEST(EntityNames, AreRunsOfCapitalisedWords) {
  EXPECT_EQ(FindEntityNames("Then Ada Lovelace met Charles Babbage in London."),
            (Names{"then ada lovelace", "charles babbage", "london"}));
  EXPECT_EQ(FindEntityNames("The University of Oxford, and the BBC."),
            (Names{"university of oxford", "university", "oxford", "bbc"}));
  EXPECT_EQ(FindEntityNames("She was born in Paris. It is large. Apollo 11 landed."),
            (Names{"paris", "apollo 11"}));
  EXPECT_EQ(FindEntityNames("George W. Bush, Jean-Luc Picard"),
            (Names{"george w bush", "jean luc picard"}));
  EXPECT_EQ(FindEntityNames("Ada's notes; ADA's. Émile Zola"), (Names{"ada", "émile zola"}));
  EXPECT_EQ(FindEntityNames("no names here, of the"), Names{});
  EXPECT_EQ(FindEntityNames("The"), Names{});
}

TEST(EntityNames, OfATitleHaveNoRemarkAndNoArticle) {
  EXPECT_EQ(EntityOfTitle("Lilu (mythology)"), "lilu");
  EXPECT_EQ(EntityOfTitle("The Hague"), "hague");
  EXPECT_EQ(EntityOfTitle("The"), "the");
  EXPECT_EQ(EntityOfTitle("(What's the Story) Morning Glory?"), "story morning glory");
  EXPECT_EQ(EntityOfTitle("ada lovelace"), "ada lovelace");
  EXPECT_EQ(EntityOfTitle(""), "");
  EXPECT_EQ(EntityOfTitle("..."), "");
}

TEST(EntityNames, OfStrangeTextsAreBounded) {
  EXPECT_EQ(FindEntityNames(""), Names{});
  EXPECT_EQ(FindEntityNames("\xff\xfe\xc3"), Names{});
  EXPECT_EQ(FindEntityNames("東京都は日本の首都である"), Names{});
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "Tall Of ";
  for (const std::string& name : FindEntityNames(text)) EXPECT_LE(name.size(), 200u);
  for (const std::string& name : FindEntityNames(std::string(1 << 20, 'X'))) {
    EXPECT_LE(name.size(), 200u);
  }
}

}  // namespace
}  // namespace basalt::retrieve
