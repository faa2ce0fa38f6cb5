#include "vector/attribute_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "vector/attribute_code.h"

namespace basalt::vector {
namespace {

const Attributes kBook = {
    {"author's name", "Ada"}, {"draft", false}, {"lang", "en"}, {"price", 9.5}, {"year", 2021}};

bool BookPasses(std::string_view expression) {
  const auto filter = AttributeFilter::Parse(expression);
  EXPECT_TRUE(filter) << expression << ": " << filter.status().ToString();
  return filter && filter->Passes(EncodeAttributes(kBook).value());
}

TEST(AttributeFilter, Compares) {
  for (const std::string_view passing :
       {"lang == 'en'", "lang==\"en\"", "lang != 'de'", "lang < 'fr'", "year >= 2021",
        "year == 2021.0", "year > -1e3", "year<2021.5", "price == 9.5", "price > 9", "price <= +10",
        "draft == false", "draft != true", "exists lang", "year in (2020, 2021)",
        "lang IN ('de', 'en')", "`author's name` == 'Ada'", "lang == '\\e\\n'"}) {
    EXPECT_TRUE(BookPasses(passing)) << passing;
  }
  for (const std::string_view failing :
       {"lang == 'EN'", "year > 2021", "price != 9.5", "draft == true", "exists pages",
        "year in (1, 2)", "pages == 1", "pages != 1", "year == '2021'", "year != '2021'",
        "draft == 0", "lang in (1, true)"}) {
    EXPECT_FALSE(BookPasses(failing)) << failing;
  }
}

TEST(AttributeFilter, AndBindsCloserThanOrAndNotClosest) {
  EXPECT_TRUE(BookPasses("lang == 'en' or lang == 'de' and year == 1"));
  EXPECT_FALSE(BookPasses("(lang == 'en' or lang == 'de') and year == 1"));
  EXPECT_TRUE(BookPasses("not lang == 'de' and year == 2021"));
  EXPECT_FALSE(BookPasses("not (lang == 'de' or year == 2021)"));
  EXPECT_TRUE(BookPasses("not exists pages AND NOT pages == 1"));
}

TEST(AttributeFilter, ComparesLargeIntegersWithoutRounding) {
  const std::string bytes = EncodeAttributes({{"n", int64_t{9'007'199'254'740'993}}}).value();
  EXPECT_TRUE(AttributeFilter::Parse("n > 9007199254740992.0").value().Passes(bytes));
  EXPECT_TRUE(AttributeFilter::Parse("n == 9007199254740993").value().Passes(bytes));
  EXPECT_TRUE(AttributeFilter::Parse("n < 1e300 and n > -1e300").value().Passes(bytes));
}

TEST(AttributeFilter, NamesThePositionOfAFault) {
  const auto expect_fault = [](std::string_view expression, size_t position) {
    const auto filter = AttributeFilter::Parse(expression);
    ASSERT_EQ(filter.code(), StatusCode::kInvalidArgument) << expression;
    EXPECT_NE(filter.status().ToString().find("at position " + std::to_string(position) + ":"),
              std::string::npos)
        << filter.status().ToString();
  };
  expect_fault("", 1);
  expect_fault("lang", 5);
  expect_fault("lang = 'en'", 6);
  expect_fault("lang == en", 9);
  expect_fault("lang == 'en", 9);
  expect_fault("lang == 'en' year == 1", 14);
  expect_fault("(lang == 'en'", 14);
  expect_fault("year in 1", 9);
  expect_fault("year in (1 2)", 12);
  expect_fault("year in ()", 10);
  expect_fault("and == 1", 1);
  expect_fault("year == 12x", 9);
  expect_fault("`year == 1", 1);
  expect_fault("exists", 7);
}

TEST(AttributeFilter, BoundsItsDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "not (";
  EXPECT_EQ(AttributeFilter::Parse(deep).code(), StatusCode::kInvalidArgument);
  std::string chain = "a == 0";
  for (int i = 0; i < 100'000; ++i) chain += " or a == 1";
  EXPECT_EQ(AttributeFilter::Parse(chain).code(), StatusCode::kInvalidArgument);
  std::string list = "a in (0";
  for (int i = 0; i < 10'000; ++i) list += "," + std::to_string(i);
  EXPECT_TRUE(AttributeFilter::Parse(list + ")"));
}

}  // namespace
}  // namespace basalt::vector
