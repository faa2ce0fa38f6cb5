#include "vector/attribute_code.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

namespace basalt::vector {
namespace {

const Attributes kMixed = {{"", "empty name"},
                           {"double", -0.5},
                           {"false", false},
                           {"integer", std::numeric_limits<int64_t>::min()},
                           {"text", std::string("\0'\xFF", 3)},
                           {"true", true}};

TEST(AttributeCode, GivesBackWhatItWasGiven) {
  const std::string bytes = EncodeAttributes(kMixed).value();
  EXPECT_EQ(DecodeAttributes(bytes).value(), kMixed);
  EXPECT_TRUE(ValidateAttributes(bytes).ok());
  EXPECT_EQ(FindAttribute(bytes, "double"), AttributeView(-0.5));
  EXPECT_EQ(FindAttribute(bytes, "true"), AttributeView(true));
  EXPECT_EQ(FindAttribute(bytes, "text"), AttributeView(std::string_view("\0'\xFF", 3)));
  EXPECT_EQ(FindAttribute(bytes, "integers"), std::nullopt);
  EXPECT_EQ(FindAttribute(bytes, "zzz"), std::nullopt);
  EXPECT_TRUE(DecodeAttributes(EncodeAttributes({}).value()).value().empty());
}

TEST(AttributeCode, RefusesBytesThatAreCutOrChanged) {
  const std::string bytes = EncodeAttributes(kMixed).value();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ValidateAttributes(std::string_view(bytes).substr(0, size)).code(),
              StatusCode::kCorruption);
  }
  EXPECT_EQ(ValidateAttributes(bytes + "x").code(), StatusCode::kCorruption);
  EXPECT_FALSE(DecodeAttributes("\x01\x01n\x05").has_value()) << "an unknown type";
  EXPECT_FALSE(DecodeAttributes(std::string_view("\x02\x01n\x00\x01n\x00", 7)).has_value())
      << "one name twice";
  EXPECT_FALSE(DecodeAttributes("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01").has_value());
}

TEST(AttributeCode, RefusesTooMany) {
  const Attributes large = {{"text", std::string(kAttributeBytesMax, 'x')}};
  EXPECT_EQ(EncodeAttributes(large).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace basalt::vector
