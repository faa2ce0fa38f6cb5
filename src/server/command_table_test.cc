#include "server/command_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace basalt::server {
namespace {

TEST(CommandTable, FindsNamesInAnyCase) {
  ASSERT_NE(FindCommand("GeT"), nullptr);
  EXPECT_EQ(FindCommand("GeT")->name, "get");
  EXPECT_EQ(FindCommand("gett"), nullptr);
  EXPECT_EQ(FindCommand(""), nullptr);
  EXPECT_EQ(FindCommand(std::string(10'000, 'g')), nullptr);
}

TEST(CommandTable, EveryCommandIsDescribed) {
  std::set<std::string_view> names;
  for (const Command* command : AllCommands()) {
    EXPECT_TRUE(names.insert(command->name).second) << command->name;
    EXPECT_TRUE(command->summary.ends_with('.')) << command->name;
    EXPECT_NE(command->run, nullptr) << command->name;
    EXPECT_EQ(command->first_key == 0, command->key_step == 0) << command->name;
    // A command with one record to read writes nothing.
    if ((command->flags & kSingleRead) != 0) {
      EXPECT_NE(command->flags & kReadOnly, 0U) << command->name;
    }
    if (command->arity > 1) {
      EXPECT_FALSE(command->syntax.empty()) << command->name;
    }
  }
}

/// docs/commands.md is written by this test when BASALT_WRITE_DOCS is set.
TEST(CommandTable, ThePageOfCommandsIsUpToDate) {
  const std::string path = std::string(BASALT_SOURCE_DIR) + "/docs/commands.md";
  if (std::getenv("BASALT_WRITE_DOCS") != nullptr) std::ofstream(path) << CommandsPage();
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_EQ(page.str(), CommandsPage()) << "run with BASALT_WRITE_DOCS=1 to write it anew";
}

}  // namespace
}  // namespace basalt::server
