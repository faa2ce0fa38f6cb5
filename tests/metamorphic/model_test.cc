#include "tests/metamorphic/model.h"

#include <gtest/gtest.h>

#include "base/coding.h"

namespace basalt::metamorphic {
namespace {

constexpr uint64_t kNow = 1'000;

std::shared_ptr<const std::string> Text(const std::string& text) {
  return std::make_shared<const std::string>(text);
}
std::shared_ptr<const std::string> Number(int64_t number) {
  std::string bytes(8, '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  return Text(bytes);
}

Change Put(const std::string& key, const std::string& value, uint64_t expiry_ms = 0) {
  return {.key = key, .value = Text(value), .expiry_ms = expiry_ms};
}
Change Delete(const std::string& key) { return {.kind = RecordKind::kDelete, .key = key}; }
Change DeleteRange(const std::string& begin, const std::string& end) {
  return {.kind = RecordKind::kDeleteRange, .key = begin, .end = end};
}
Change Append(const std::string& key, const std::string& operand) {
  return {.kind = RecordKind::kMerge, .key = key, .value = Text(operand)};
}
Change Add(const std::string& key, int64_t operand) {
  return {.kind = RecordKind::kMerge,
          .key = key,
          .value = Number(operand),
          .merge_operator = MergeOperator::kAdd};
}

void Write(Model* model, const std::vector<Change>& changes, uint64_t now_ms = kNow) {
  model->Write(changes, now_ms);
}

using Records = std::vector<std::pair<std::string, std::string>>;

Contents Map(const Records& records) {
  Contents contents;
  for (const auto& [key, value] : records) contents.emplace(key, Cell{Text(value)});
  return contents;
}
SpaceContents Found(const Records& records, const Records& in_second = {}) {
  return {std::make_shared<const Contents>(Map(records)),
          std::make_shared<const Contents>(Map(in_second))};
}
std::string DifferenceOf(const Model& model, const Records& records, uint64_t now_ms = kNow) {
  return Difference(*ReadAt(model.Freeze()[0], now_ms), Map(records));
}
std::optional<std::string> Recover(Model* model, const SpaceContents& found,
                                   uint64_t now_ms = kNow) {
  Model::UncertainKeys uncertain;
  return model->Recover(found, now_ms, &uncertain);
}

/// Three writes, of which the first is durable.
Model ThreeWrites() {
  Model model;
  Write(&model, {Put("a", "1")});
  model.SetDurable();
  Write(&model, {Put("a", "2"), Put("b", "2")});
  Write(&model, {Delete("a"), Put("c", "3")});
  return model;
}

TEST(MetamorphicModel, AcceptsEveryPrefixThatHoldsWhatIsDurable) {
  const Records prefixes[] = {{{"a", "1"}}, {{"a", "2"}, {"b", "2"}}, {{"b", "2"}, {"c", "3"}}};
  for (const Records& found : prefixes) {
    Model model = ThreeWrites();
    EXPECT_EQ(Recover(&model, Found(found)), std::nullopt);
    EXPECT_EQ(DifferenceOf(model, found), "");
  }
}

TEST(MetamorphicModel, RefusesTheLossOfADurableWrite) {
  Model model = ThreeWrites();
  EXPECT_NE(Recover(&model, Found({})), std::nullopt);
}

TEST(MetamorphicModel, RefusesHalfABatchAndALaterWriteWithoutAnEarlier) {
  const Records wrong[] = {{{"a", "2"}}, {{"c", "3"}}, {{"a", "1"}, {"b", "2"}}};
  for (const Records& found : wrong) {
    Model model = ThreeWrites();
    EXPECT_NE(Recover(&model, Found(found)), std::nullopt);
  }
}

TEST(MetamorphicModel, RefusesAPrefixOfEachKeyspaceThatIsNoneOfBoth) {
  Model model;
  Write(&model, {Put("a", "1")});
  Change second = Put("a", "2");
  second.space = Space::kSecond;
  Write(&model, {second});
  Model one = model;
  EXPECT_NE(Recover(&one, Found({}, {{"a", "2"}})), std::nullopt);
  EXPECT_EQ(Recover(&model, Found({{"a", "1"}}, {{"a", "2"}})), std::nullopt);
}

TEST(MetamorphicModel, HoldsWhatItRecoveredToBeDurable) {
  Model model = ThreeWrites();
  ASSERT_EQ(Recover(&model, Found({{"a", "2"}, {"b", "2"}})), std::nullopt);
  EXPECT_NE(Recover(&model, Found({{"a", "1"}})), std::nullopt);
}

TEST(MetamorphicModel, LeavesFrozenContentsAlone) {
  Model model = ThreeWrites();
  const SpaceContents frozen = model.Freeze();
  Write(&model, {Delete("b")});
  EXPECT_EQ(Difference(*frozen[0], Map({{"b", "2"}, {"c", "3"}})), "");
  EXPECT_EQ(DifferenceOf(model, {{"c", "3"}}), "");
}

TEST(MetamorphicModel, LetsTheLastChangeOfAKeyInABatchWin) {
  Model model;
  Write(&model, {Put("a", "1"), Delete("a"), Put("a", "2"), Put("b", "1"), DeleteRange("b", "c")});
  EXPECT_EQ(DifferenceOf(model, {{"a", "2"}}), "");
  EXPECT_EQ(Recover(&model, Found({})), std::nullopt);
}

TEST(MetamorphicModel, RemovesARangeAndTakesThatBack) {
  Model model;
  Write(&model, {Put("a", "1"), Put("b", "1"), Put("c", "1")});
  Write(&model, {DeleteRange("a", "c")});
  EXPECT_EQ(DifferenceOf(model, {{"c", "1"}}), "");
  EXPECT_EQ(Recover(&model, Found({{"a", "1"}, {"b", "1"}, {"c", "1"}})), std::nullopt);
}

TEST(MetamorphicModel, MergesAndTellsWhatDoesNotFit) {
  Model model;
  Write(&model, {Add("a", 5), Add("a", -7), Append("b", "x"), Append("b", "y")});
  EXPECT_EQ(DifferenceOf(model, {{"a", *Number(-2)}, {"b", "xy"}}), "");
  Write(&model, {Add("b", 1), Append("b", "z")});
  EXPECT_TRUE(FindAt(model.contents(Space::kDefault), "b", kNow)->is_unreadable);
  Write(&model, {Put("b", "1")});
  EXPECT_EQ(DifferenceOf(model, {{"a", *Number(-2)}, {"b", "1"}}), "");
}

TEST(MetamorphicModel, KeepsTheExpiryInAMergeUntilItHasPassed) {
  Model model;
  Write(&model, {Put("a", "1", 2'000)}, 1'000);
  Write(&model, {Append("a", "2")}, 1'999);
  EXPECT_EQ(DifferenceOf(model, {{"a", "12"}}, 1'999), "");
  EXPECT_EQ(DifferenceOf(model, {}, 2'000), "");
  Write(&model, {Append("a", "3")}, 2'000);
  EXPECT_EQ(DifferenceOf(model, {{"a", "3"}}, 9'000), "");
}

TEST(MetamorphicModel, KnowsOfWhichKeysAPowerCutLeavesTheExpiryOpen) {
  Model model;
  Write(&model, {Put("a", "1", 2'000), Put("b", "1", 2'000)});
  Write(&model, {Put("a", "1", 3'000)});
  Model::UncertainKeys uncertain;
  ASSERT_EQ(model.Recover(Found({{"a", "1"}, {"b", "1"}}), kNow, &uncertain), std::nullopt);
  const Model::UncertainKeys only_a = {{Space::kDefault, "a"}};
  EXPECT_EQ(uncertain, only_a);
}

TEST(MetamorphicModel, SeesAPrefixWithoutWhatHasExpiredSince) {
  Model model;
  Write(&model, {Put("a", "1", 2'000), Put("b", "1")});
  EXPECT_EQ(Recover(&model, Found({{"b", "1"}}), 2'000), std::nullopt);
  EXPECT_EQ(DifferenceOf(model, {{"b", "1"}}, 2'000), "");
}

}  // namespace
}  // namespace basalt::metamorphic
