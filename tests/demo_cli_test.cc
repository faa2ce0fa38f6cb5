// `basalt demo`, run as a person or a script runs it.

#include <gtest/gtest.h>

#include <string>

#include "tests/command.h"

namespace basalt {
namespace {

using DemoCli = CommandTest;

TEST_F(DemoCli, TheDemoProvesWhatItSaysOnAnyText) {
  WriteFile("text", Out("seq 1 5000 | sed 's/$/ is a number/'"));
  const std::string shown = Out("$B demo 'my demo' --input text");
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << "control characters without a terminal";
  EXPECT_NE(shown.find("5,000 lines became 5,000 records"), std::string::npos) << shown;
  EXPECT_NE(shown.find("killed after one second"), std::string::npos) << shown;
  EXPECT_NE(shown.find("without a hole"), std::string::npos) << shown;
  EXPECT_EQ(Out("$B get 'my demo' line/00000042"), "42 is a number\n");
  EXPECT_EQ(Out("$B get 'my demo' demo/greeting"), "good evening\n");
}

TEST_F(DemoCli, TheDemoReadsPackageParagraphs) {
  WriteFile("packages",
            "Package: alpha\nDepends: beta (>= 2), beta (<< 3), gamma | delta:any\n"
            "Section: games\nDescription: the first\n more of it\n\n"
            "Package: beta\nDescription: the second\n");
  const std::string shown = Out("$B demo --input packages");
  EXPECT_NE(shown.find("2 packages became 7 records"), std::string::npos) << shown;
  EXPECT_EQ(Out("$B scan basalt-demo --prefix depends/"),
            "depends/alpha/beta\t>= 2, << 3\ndepends/alpha/delta:any\t\ndepends/alpha/gamma\t\n");
  EXPECT_EQ(Out("$B scan basalt-demo --prefix section/"),
            "section/games/alpha\tthe first\nsection/none/beta\tthe second\n");
  EXPECT_NE(shown.find("2 packages and 4 dependencies"), std::string::npos) << shown;
  const std::string needing =
      Out("$B graph neighbors basalt-demo beta --graph packages --direction in");
  EXPECT_NE(needing.find("alpha"), std::string::npos) << needing;
}

TEST_F(DemoCli, TheDemoSaysWhatNeedsALibraryAndWhy) {
  WriteFile("packages",
            "Package: git\nDepends: libcurl\n\nPackage: libcurl\nPre-Depends: libssl3 (>= 3)\n\n"
            "Package: libssl3\nSuggests: git\n");
  const std::string shown = Out("$B demo --input packages");
  EXPECT_NE(shown.find("2 packages need libssl3 within two hops"), std::string::npos) << shown;
  EXPECT_NE(shown.find("git -[Depends]-> libcurl -[Pre-Depends]-> libssl3"), std::string::npos)
      << shown;
}

TEST_F(DemoCli, TheDemoReplacesADemoAndNothingElse) {
  WriteFile("text", "one line\n");
  EXPECT_NE(Out("$B demo d --input text && $B put d mine too && $B demo d --input text"), "");
  ExpectRefused("$B get d mine", 1, "mine");

  EXPECT_EQ(Out("$B put db mine too; mkdir other; touch other/file"), "");
  ExpectRefused("$B demo db --input text", 3, "no demo has made");
  ExpectRefused("$B demo other --input text", 3, "is not a demo database");
  EXPECT_EQ(Out("$B get db mine"), "too\n");
  EXPECT_EQ(Out("ls other"), "file\n");
}

}  // namespace
}  // namespace basalt
