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

TEST(MetamorphicOperations, SkipCommentsAndEmptyLines) {
  const auto parsed = ParseOperations("# seed 5\n\nflush\n");
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->operations.size(), 1U);
}

TEST(MetamorphicOperations, AreRefusedByLineWhenMalformed) {
  for (const char* line :
       {"jump", "put \"a\"", "put \"a 3@4", "put \"a\" 3", "put \"\\xg0\" 3@4", "get \"a\" \"b",
        "batch put 3@4", "move i0 sideways", "crash softly 1", "cut x none 1", "flush now",
        "settings memtable_bytes=many table_bytes=1 memory_budget=1 compression=1 durability=power",
        "put", "update \"a\" forget", "jobs"}) {
    const auto parsed = ParseOperations("flush\n" + std::string(line) + "\n");
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().code(), StatusCode::kInvalidArgument) << line;
    EXPECT_NE(parsed.error().message().find("line 2"), std::string_view::npos)
        << parsed.error().ToString();
  }
}

}  // namespace
}  // namespace basalt::metamorphic
