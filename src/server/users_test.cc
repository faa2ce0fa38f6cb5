#include "server/users.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/command_table.h"

namespace basalt::server {
namespace {

std::vector<std::string_view> SplitLine(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::string ErrorOf(const User& user, std::string_view line) {
  const std::vector<std::string_view> words = SplitLine(line);
  const Command* command = FindCommand(words.front());
  return command == nullptr ? "unknown" : AccessError(user, *command, words);
}

TEST(Users, AFileHasOneUserALine) {
  const auto users = Users::Parse(
      "# comment\n\nuser default off >x ~* +@all\n"
      "user app on >secret +@read +@write ~app:* ~shared:*\r\nuser free on nopass +@read ~*\n");
  ASSERT_TRUE(users) << users.error().ToString();
  EXPECT_EQ(users->Initial(), nullptr);
  EXPECT_EQ(users->Find("default", "x"), nullptr);
  const User* app = users->Find("app", "secret");
  ASSERT_NE(app, nullptr);
  EXPECT_EQ(users->Find("app", "secreT"), nullptr);
  EXPECT_EQ(users->Find("app", ""), nullptr);
  EXPECT_EQ(users->FindByPassword("secret"), app);
  EXPECT_EQ(users->FindByPassword(""), nullptr);
  EXPECT_NE(users->Find("free", "anything"), nullptr);
  EXPECT_EQ(app->Describe(), "user app on +@read +@write ~app:* ~shared:*");
  EXPECT_EQ(app->NextReachable("a"), "app:");
  EXPECT_EQ(app->NextReachable("app:7"), "app:7");
  EXPECT_EQ(app->NextReachable("b"), "shared:");
  EXPECT_EQ(app->NextReachable("t"), std::nullopt);
}

TEST(Users, MalformedFilesAreRefused) {
  for (const char* text :
       {"usr a on", "user", "user a on", "user a on >p +get", "user a on >p ~a*b*",
        "user a on >p\nuser a on >q", "user a on >p\nuser b on >p", "user a on >p ~x"}) {
    EXPECT_FALSE(Users::Parse(text)) << text;
  }
}

TEST(Access, KeysOutsideTheUsersPrefixesAreRefused) {
  const auto users = Users::Parse("user app on >p +@all ~app:*");
  ASSERT_TRUE(users);
  const User& app = users->all().front();
  for (const char* line :
       {"get app:1", "mset app:1 x app:2 y", "rename app:1 app:2", "zunionstore app:1 1 app:2",
        "lmpop 2 app:1 app:2 LEFT", "blmpop 1 1 app:1 LEFT", "xread STREAMS app:1 0",
        "sintercard 1 app:1", "scan 0", "keys *", "multi", "subscribe x", "info", "ping",
        "blpop app:1 app:2 0", "bitop and app:1 app:2"}) {
    EXPECT_EQ(ErrorOf(app, line), "") << line;
  }
  for (const char* line : {"get b",
                           "mset app:1 x b y",
                           "rename app:1 b",
                           "copy b app:1",
                           "zunionstore app:1 1 b",
                           "lmpop 2 app:1 b LEFT",
                           "blmpop 1 1 b LEFT",
                           "xread STREAMS app:1 b 0 0",
                           "xread STREAMS b",
                           "sintercard 2 app:1 b",
                           "sintercard x app:1",
                           "randomkey",
                           "dbsize",
                           "flushall",
                           "flushdb",
                           "config get *",
                           "watch b",
                           "bitop and app:1 b",
                           "blpop b app:1 0",
                           "exists b"}) {
    EXPECT_EQ(ErrorOf(app, line).substr(0, 6), "NOPERM") << line;
  }
}

TEST(Access, RightsAreNeeded) {
  const auto users = Users::Parse("user reader on >p +@read ~*\nuser none on >q ~*");
  ASSERT_TRUE(users);
  const User& reader = users->all()[0];
  EXPECT_EQ(ErrorOf(reader, "get a"), "");
  EXPECT_NE(ErrorOf(reader, "set a b"), "");
  EXPECT_NE(ErrorOf(reader, "config get *"), "");
  EXPECT_EQ(ErrorOf(reader, "ping"), "");
  EXPECT_NE(ErrorOf(users->all()[1], "get a"), "");
#ifdef BASALT_LUA
  EXPECT_NE(ErrorOf(reader, "eval return 0"), "");
#endif
}

/// Every command that has keys at places that the table does not tell is known to KeysOf.
TEST(Access, EveryCommandWithKeysTellsThem) {
  for (const Command* command : AllCommands()) {
    if ((command->flags & kMovableKeys) == 0) continue;
    std::vector<std::string_view> args = {command->name};
    if (command->name == "xread") {
      args.insert(args.end(), {"STREAMS", "the key", "0"});
    } else {
      const size_t before = command->group == Group::kScripting || command->first_key == 1 ||
                                    command->name.starts_with('b')
                                ? 1
                                : 0;
      if (before == 1) args.push_back("first");
      args.insert(args.end(), {"1", "the key", "LEFT"});
    }
    const auto keys = KeysOf(*command, args);
    ASSERT_TRUE(keys) << command->name;
    EXPECT_EQ(keys->back(), "the key") << command->name;
  }
}

TEST(Access, MessagesAboutForeignKeysAreHidden) {
  const auto users = Users::Parse("user app on >p +@all ~app:*");
  ASSERT_TRUE(users);
  const User& app = users->all().front();
  EXPECT_TRUE(MaySeeMessage(app, "news", "x"));
  EXPECT_TRUE(MaySeeMessage(app, "__keyspace@0__:app:1", "set"));
  EXPECT_TRUE(MaySeeMessage(app, "__keyevent@0__:set", "app:1"));
  EXPECT_FALSE(MaySeeMessage(app, "__keyspace@0__:b", "set"));
  EXPECT_FALSE(MaySeeMessage(app, "__keyevent@0__:set", "b"));
}

}  // namespace
}  // namespace basalt::server
