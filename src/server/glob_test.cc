#include "server/glob.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "server/numbers.h"

namespace basalt::server {
namespace {

TEST(Glob, MatchesAsRedisDoes) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("h?llo", "hello"));
  EXPECT_TRUE(GlobMatches("h*o", "ho"));
  EXPECT_TRUE(GlobMatches("h[ae]llo", "hallo"));
  EXPECT_FALSE(GlobMatches("h[^e]llo", "hello"));
  EXPECT_TRUE(GlobMatches("h[a-c]llo", "hbllo"));
  EXPECT_TRUE(GlobMatches("h[c-a]llo", "hbllo"));
  EXPECT_TRUE(GlobMatches("\\*", "*"));
  EXPECT_FALSE(GlobMatches("\\*", "a"));
  EXPECT_FALSE(GlobMatches("", "a"));
  EXPECT_TRUE(GlobMatches("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(GlobMatches("[a", "a"));
}

TEST(Glob, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(5000, 'a')));
}

TEST(Glob, GivesWhatEveryMatchBeginsWith) {
  EXPECT_EQ(GlobPrefix("user:*"), "user:");
  EXPECT_EQ(GlobPrefix("a\\*b?"), "a*b");
  EXPECT_EQ(GlobPrefix("*"), "");
}

TEST(ServerNumbers, AreReadAndWrittenAsRedisDoes) {
  EXPECT_EQ(ParseInteger("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"", " 1", "1 ", "+1", "01", "-0", "1.0", "9223372036854775808", "x"}) {
    EXPECT_FALSE(ParseInteger(text)) << text;
  }
  EXPECT_EQ(ParseDouble("1e3"), 1000);
  for (const char* text : {"", " 1", "1 ", "nan", "1x"}) EXPECT_FALSE(ParseDouble(text)) << text;
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(3), "3");
  EXPECT_EQ(FormatDouble(-HUGE_VAL), "-inf");
  EXPECT_EQ(FormatLongDouble(10.5L), "10.5");
  EXPECT_EQ(FormatLongDouble(5e3L), "5000");
}

}  // namespace
}  // namespace basalt::server
