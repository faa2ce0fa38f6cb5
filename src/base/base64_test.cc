#include "base/base64.h"

#include <gtest/gtest.h>

namespace basalt::base {
namespace {

std::string Encoded(std::string_view bytes) {
  std::string text;
  AppendBase64(bytes, text);
  return text;
}

TEST(Base64, EncodesTheExamplesOfItsRfc) {
  EXPECT_EQ(Encoded(""), "");
  EXPECT_EQ(Encoded("f"), "Zg==");
  EXPECT_EQ(Encoded("fo"), "Zm8=");
  EXPECT_EQ(Encoded("foo"), "Zm9v");
  EXPECT_EQ(Encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Encoded(std::string_view("\x00\xFF\xFE", 3)), "AP/+");
}

TEST(Base64, DecodesWhatItEncodes) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const Result<std::string> decoded = DecodeBase64(Encoded(bytes));
    ASSERT_TRUE(decoded) << decoded.error().ToString();
    EXPECT_EQ(*decoded, bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64, RefusesWhatIsNoFormOfBytes) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Z=g=", "Zm 9", "Zm9v\n",
                           "Zh==", "Zm9=", "Zm9-", "=AAA"}) {
    const Result<std::string> decoded = DecodeBase64(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(decoded.error().message().find("not base64"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace basalt::base
