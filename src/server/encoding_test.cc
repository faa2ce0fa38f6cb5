#include "server/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace basalt::server {
namespace {

TEST(ServerEncoding, ScoresKeepTheirOrder) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> scores = {-kInfinity, -1e300, -2.5, -1,  -1e-300, 0,
                                      1e-300,     1,      2.5,  3e2, 1e300,   kInfinity};
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(ScoreOf(OrderedScore(scores[i])), scores[i]);
    if (i > 0) {
      EXPECT_LT(ScoreKey(1, scores[i - 1], "z"), ScoreKey(1, scores[i], "a")) << scores[i];
    }
  }
  EXPECT_EQ(ScoreKey(1, 0.0, "m"), ScoreKey(1, -0.0, "m"));
}

TEST(ServerEncoding, ListPositionsKeepTheirOrder) {
  const std::vector<int64_t> positions = {INT64_MIN, -256, -1, 0, 1, 255, 256, INT64_MAX};
  for (size_t i = 1; i < positions.size(); ++i) {
    EXPECT_LT(ListElementKey(7, positions[i - 1]), ListElementKey(7, positions[i]));
  }
}

TEST(ServerEncoding, MetadataComesBackAsItWas) {
  for (const Type type : {Type::kHash, Type::kSet, Type::kZset, Type::kList, Type::kStream}) {
    Metadata metadata{.type = type, .id = 77, .count = 3};
    if (type == Type::kList) metadata.first = -5;
    if (type == Type::kStream) {
      metadata.last = {1, 2};
      metadata.deleted = {3, 4};
      metadata.added = 9;
    }
    const std::string bytes = EncodeMetadata(metadata);
    const std::optional<Metadata> decoded = DecodeMetadata(bytes);
    ASSERT_TRUE(decoded) << TypeName(type);
    EXPECT_EQ(EncodeMetadata(*decoded), bytes) << TypeName(type);
    EXPECT_EQ(decoded->count, 3U);
    EXPECT_EQ(decoded->first, metadata.first);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeMetadata(std::string_view(bytes).substr(0, size))) << size;
    }
    EXPECT_FALSE(DecodeMetadata(bytes + "x"));
  }
  EXPECT_FALSE(DecodeMetadata(""));
  EXPECT_FALSE(DecodeMetadata("?12345678"));
}

TEST(ServerEncoding, AnEndOfAPrefixLiesBehindAllItsKeys) {
  EXPECT_EQ(EndOfPrefix("ab"), "ac");
  EXPECT_EQ(EndOfPrefix("a\xFF\xFF"), "b");
  EXPECT_LT(ElementKey(255, "\xFF\xFF"), EndOfPrefix(ElementPrefix(255)));
  EXPECT_LE(EndOfPrefix(ElementPrefix(255)), ElementPrefix(256));
}

}  // namespace
}  // namespace basalt::server
