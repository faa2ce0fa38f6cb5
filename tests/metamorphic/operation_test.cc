#include "tests/metamorphic/operation.h"

#include <gtest/gtest.h>

#include "tests/metamorphic/generator.h"

namespace basalt::metamorphic {
namespace {

TEST(MetamorphicOperations, AreReadBackAsTheyWerePrinted) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text = ToText(Generate(seed, 500));
    const auto parsed = ParseOperations(text);
    ASSERT_TRUE(parsed) << "seed " << seed << ": " << parsed.error().ToString();
    EXPECT_EQ(ToText(*parsed), text) << "seed " << seed;
  }
}

TEST(MetamorphicOperations, FollowFromTheirSeed) {
  EXPECT_EQ(ToText(Generate(7, 100)), ToText(Generate(7, 100)));
  EXPECT_NE(ToText(Generate(7, 100)), ToText(Generate(8, 100)));
}

TEST(MetamorphicOperations, KeepEveryByteOfAKey) {
  std::string key;
  for (int byte = 0; byte < 256; ++byte) key += static_cast<char>(byte);
  const auto parsed = ParseOperations("delete " + Quoted(key) + "\n");
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->operations.at(0).records.at(0).key, key);
}

TEST(MetamorphicOperations, NameTheirKeyspaceTimeAndOperand) {
  const std::string text =
      "settings memtable_bytes=1024 table_bytes=1024 memory_budget=1048576 compression=0 "
      "durability=process default_ttl=7\n"
      "put second \"a\" 3@4 ttl 50 power\n"
      "delete_range \"a\" \"b\"\n"
      "merge second \"a\" add -9223372036854775808 process\n"
      "batch merge \"a\" append 2@1 delete_range second \"\" \"z\" put \"a\" 0@0\n"
      "scan second s1\n"
      "wait 20\n"
      "renew\n";
  const auto parsed = ParseOperations(text);
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(ToText(*parsed), text);
  EXPECT_EQ(parsed->settings.default_ttl_ms, 7U);
  const Record& put = parsed->operations.at(0).records.at(0);
  EXPECT_EQ(put.space, Space::kSecond);
  EXPECT_EQ(put.ttl_ms, 50U);
  EXPECT_EQ(parsed->operations.at(2).records.at(0).number, INT64_MIN);
}

TEST(MetamorphicOperations, SkipCommentsAndEmptyLines) {
  const auto parsed = ParseOperations("# seed 5\n\nflush\n");
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->operations.size(), 1U);
}

TEST(MetamorphicOperations, AreRefusedByLineWhenMalformed) {
  for (const char* line :
       {"jump",
        "put \"a\"",
        "put \"a 3@4",
        "put \"a\" 3",
        "put \"\\xg0\" 3@4",
        "get \"a\" \"b",
        "batch put 3@4",
        "move i0 sideways",
        "crash softly 1",
        "cut x none 1",
        "flush now",
        "settings memtable_bytes=many table_bytes=1 memory_budget=1 compression=1 durability=power",
        "put",
        "update \"a\" forget",
        "jobs",
        "put third \"a\" 3@4",
        "put \"a\" 3@4 ttl",
        "delete_range \"a\"",
        "merge \"a\" times 4",
        "merge \"a\" add 3@4",
        "wait long"}) {
    const auto parsed = ParseOperations("flush\n" + std::string(line) + "\n");
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().code(), StatusCode::kInvalidArgument) << line;
    EXPECT_NE(parsed.error().message().find("line 2"), std::string_view::npos)
        << parsed.error().ToString();
  }
}

}  // namespace
}  // namespace basalt::metamorphic
