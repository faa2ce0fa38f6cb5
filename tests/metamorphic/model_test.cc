#include "tests/metamorphic/model.h"

#include <gtest/gtest.h>

namespace basalt::metamorphic {
namespace {

std::shared_ptr<const std::string> Text(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

Contents Map(std::initializer_list<std::pair<std::string, std::string>> records) {
  Contents contents;
  for (const auto& [key, value] : records) contents.emplace(key, Text(value));
  return contents;
}

/// Three writes, of which the first is durable.
Model ThreeWrites() {
  Model model;
  model.Write({{"a", Text("1")}});
  model.SetDurable();
  model.Write({{"a", Text("2")}, {"b", Text("2")}});
  model.Write({{"a", nullptr}, {"c", Text("3")}});
  return model;
}

TEST(MetamorphicModel, AcceptsEveryPrefixThatHoldsWhatIsDurable) {
  for (const Contents& found :
       {Map({{"a", "1"}}), Map({{"a", "2"}, {"b", "2"}}), Map({{"b", "2"}, {"c", "3"}})}) {
    Model model = ThreeWrites();
    EXPECT_EQ(model.Recover(found), std::nullopt);
    EXPECT_EQ(Difference(model.contents(), found), "");
  }
}

TEST(MetamorphicModel, RefusesTheLossOfADurableWrite) {
  EXPECT_NE(ThreeWrites().Recover({}), std::nullopt);
}

TEST(MetamorphicModel, RefusesHalfABatchAndALaterWriteWithoutAnEarlier) {
  EXPECT_NE(ThreeWrites().Recover(Map({{"a", "2"}})), std::nullopt);
  EXPECT_NE(ThreeWrites().Recover(Map({{"c", "3"}})), std::nullopt);
  EXPECT_NE(ThreeWrites().Recover(Map({{"a", "1"}, {"b", "2"}})), std::nullopt);
}

TEST(MetamorphicModel, HoldsWhatItRecoveredToBeDurable) {
  Model model = ThreeWrites();
  const Contents second = Map({{"a", "2"}, {"b", "2"}});
  ASSERT_EQ(model.Recover(second), std::nullopt);
  EXPECT_NE(model.Recover(Map({{"a", "1"}})), std::nullopt);
}

TEST(MetamorphicModel, LeavesFrozenContentsAlone) {
  Model model = ThreeWrites();
  const auto frozen = model.Freeze();
  model.Write({{"b", nullptr}});
  EXPECT_EQ(Difference(*frozen, Map({{"b", "2"}, {"c", "3"}})), "");
  EXPECT_EQ(Difference(model.contents(), Map({{"c", "3"}})), "");
}

TEST(MetamorphicModel, LetsTheLastChangeOfAKeyInABatchWin) {
  Model model;
  model.Write({{"a", Text("1")}, {"a", nullptr}, {"a", Text("2")}});
  EXPECT_EQ(Difference(model.contents(), Map({{"a", "2"}})), "");
  EXPECT_EQ(model.Recover({}), std::nullopt);
}

}  // namespace
}  // namespace basalt::metamorphic
