#include "base/printable_key.h"

#include <gtest/gtest.h>

#include <string>

namespace basalt::base {
namespace {

using std::string_literals::operator""s;

TEST(PrintableKey, PlainTextStandsAsItIsInQuotes) {
  EXPECT_EQ(PrintableKey(""), "''");
  EXPECT_EQ(PrintableKey("user/42 ~\"!"), "'user/42 ~\"!'");
}

TEST(PrintableKey, OtherBytesAreWrittenInHexadecimal) {
  EXPECT_EQ(PrintableKey("\0\n\x1f\x7f\x80\xff"s), "'\\x00\\x0A\\x1F\\x7F\\x80\\xFF'");
  // What would end the quotation, or begin an escape.
  EXPECT_EQ(PrintableKey("it's"), "'it\\x27s'");
  EXPECT_EQ(PrintableKey("a\\b"), "'a\\x5Cb'");
}

TEST(PrintableKey, ALongKeyIsCutAndItsLengthGiven) {
  EXPECT_EQ(PrintableKey(std::string(64, 'k')), "'" + std::string(64, 'k') + "'");
  EXPECT_EQ(PrintableKey(std::string(65, 'k')), "'" + std::string(64, 'k') + "'... (65 bytes)");
  EXPECT_EQ(PrintableKey(std::string(64, '\0') + "end"), [] {
    std::string text = "'";
    for (int i = 0; i < 64; ++i) text += "\\x00";
    return text + "'... (67 bytes)";
  }());
}

}  // namespace
}  // namespace basalt::base
