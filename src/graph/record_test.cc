#include "graph/record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace basalt::graph {
namespace {

using std::string_view_literals::operator""sv;

PropertyValue Nested(int depth) {
  PropertyValue value = 1;
  for (int i = 0; i < depth; ++i) value = PropertyValue::List{value};
  return value;
}

NodeRecord SomeNode() {
  return {.external_id = "ada",
          .labels = {0, 7, UINT32_MAX},
          .properties = {{1, {}},
                         {2, true},
                         {3, std::numeric_limits<int64_t>::min()},
                         {4, 0.5},
                         {5, "text"},
                         {6, Bytes{"bytes"}},
                         {7, WallTime(std::chrono::milliseconds(-1))},
                         {300, PropertyValue::List{false, Nested(kPropertyDepthMax - 1)}}}};
}
EdgeRecord SomeEdge() {
  return {.head = {.weight = 0.25, .valid_from_ms = -1, .valid_to_ms = 1'770'000'000'000},
          .properties = {{1, "text"}}};
}

TEST(GraphRecord, IsWhatWasWritten) {
  EXPECT_EQ(DecodeNode(EncodeNode(SomeNode())).value(), SomeNode());
  EXPECT_EQ(DecodeEdge(EncodeEdge(SomeEdge())).value(), SomeEdge());
  EXPECT_EQ(DecodeHead(EncodeEdge(SomeEdge())).value(), SomeEdge().head);
  EXPECT_EQ(EncodeEdge({}), "\0\0"sv);
  EXPECT_EQ(EncodeHead({.weight = -0.0}), EncodeHead({.weight = 0.0}));
}

/// What is accepted is what would be written.
void Look(const std::string& bytes) {
  const auto node = DecodeNode(bytes);
  EXPECT_EQ(node ? EncodeNode(*node) : bytes, bytes);
  EXPECT_TRUE(node || node.code() == StatusCode::kCorruption);
  const auto edge = DecodeEdge(bytes);
  EXPECT_EQ(edge ? EncodeEdge(*edge) : bytes, bytes);
  EXPECT_TRUE(edge || edge.code() == StatusCode::kCorruption);
}

TEST(GraphRecord, EveryChangedByteIsAnotherRecordOrCorruption) {
  for (const std::string& good : {EncodeNode(SomeNode()), EncodeEdge(SomeEdge())}) {
    for (size_t i = 0; i < good.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string bad = good;
        bad[i] = static_cast<char>(byte);
        Look(bad);
      }
      Look(good.substr(0, i));
      EXPECT_FALSE(DecodeNode(good.substr(0, i)).ok());
    }
    Look(good + '\0');
  }
}

TEST(GraphRecord, RefusesASecondEncodingOfTheSame) {
  EXPECT_FALSE(DecodeHead("\1\0\0\0\0\0\0\0\x80"sv).ok());    // -0.0
  EXPECT_FALSE(DecodeHead("\1\0\0\0\0\0\0\xF0\x3F"sv).ok());  // 1
  EXPECT_FALSE(DecodeHead("\1\0\0\0\0\0\0\xF0\x7F"sv).ok());  // Infinity.
  EXPECT_FALSE(DecodeEdge("\0\x80\0"sv).ok());                // A count in two bytes.
  EXPECT_FALSE(DecodeEdge("\0\2\5\0\5\0"sv).ok());            // One property twice.
  EXPECT_FALSE(DecodeNode("\1\0\2\7\3\0"sv).ok());            // Labels that descend.
  EXPECT_FALSE(DecodeEdge("\0\xFF\xFF\xFF\xFF\x0F"sv).ok());  // A count without properties.
  EXPECT_FALSE(DecodeEdge("\0\1\1\5\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1"sv).ok());
}

TEST(GraphRecord, ListsHaveABoundOfDepth) {
  EXPECT_TRUE(CheckProperties({{"p", Nested(kPropertyDepthMax)}}).ok());
  EXPECT_EQ(CheckProperties({{"p", Nested(kPropertyDepthMax + 1)}}).code(),
            StatusCode::kInvalidArgument);
  const EdgeRecord deep = {.head = {}, .properties = {{1, Nested(kPropertyDepthMax + 1)}}};
  EXPECT_EQ(DecodeEdge(EncodeEdge(deep)).code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace basalt::graph
