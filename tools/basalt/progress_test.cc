#include "tools/basalt/progress.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace basalt::tools {
namespace {

const std::string kTestBar = "[#######.......]";
const std::vector<std::string> kTestParts = {"45% of 1023.9 GiB", "86400 s left", "1023.9 MiB/s",
                                             "1,234,567 records/s"};

TEST(FittedLine, HoldsAllPartsWhereThereIsRoom) {
  EXPECT_EQ(FittedLine("loading", kTestBar, kTestParts, 200),
            "loading [#######.......] 45% of 1023.9 GiB, 86400 s left, 1023.9 MiB/s, "
            "1,234,567 records/s");
  EXPECT_EQ(FittedLine("loading", "", {"12 keys"}, 80), "loading 12 keys");
}

TEST(FittedLine, LeavesOutWholePartsWhereTheTerminalIsNarrow) {
  EXPECT_EQ(FittedLine("loading", kTestBar, kTestParts, 79),
            "loading [#######.......] 45% of 1023.9 GiB, 86400 s left, 1023.9 MiB/s");
  EXPECT_EQ(FittedLine("loading", kTestBar, kTestParts, 42),
            "loading [#######.......]"
            " 45% of 1023.9 GiB");
  EXPECT_EQ(FittedLine("loading", kTestBar, kTestParts, 30), "loading 45% of 1023.9 GiB");
  EXPECT_EQ(FittedLine("loading", kTestBar, kTestParts, 10), "loading 45");
  for (size_t columns = 0; columns < 100; ++columns) {
    EXPECT_LE(FittedLine("hashing 12 times", kTestBar, kTestParts, columns).size(), columns);
  }
}

}  // namespace
}  // namespace basalt::tools
