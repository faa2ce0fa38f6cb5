#include "base/merge_operator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/random.h"

namespace basalt::base {
namespace {

std::string Number(int64_t number) {
  std::string bytes(kMergeNumberBytes, '\0');
  Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}
PendingMerge Merge(MergeOperator op, const std::string& operand, uint64_t time_ms = 50) {
  return {std::string(1, static_cast<char>(op)) + operand, time_ms};
}
/// `oldest_first` over `base`, at 1000 ms.
Result<MergedValue> Apply(std::vector<PendingMerge> oldest_first,
                          std::optional<std::string_view> base, uint64_t base_expiry_ms = 0) {
  std::vector<PendingMerge> merges(oldest_first.rbegin(), oldest_first.rend());
  return ApplyMerges(merges, base, base_expiry_ms, 1000);
}

TEST(MergeOperator, CountersAreEightBytesAndDecode) {
  EXPECT_EQ(EncodeCounter(258), std::string("\2\1\0\0\0\0\0\0", 8));
  for (const int64_t number : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(DecodeCounter(EncodeCounter(number)).value(), number);
    EXPECT_TRUE(CheckMergeOperand(MergeOperator::kAdd, EncodeCounter(number)).ok());
  }
  for (const size_t size : {0, 7, 9}) {
    const Result<int64_t> refused = DecodeCounter(std::string(size, '\0'));
    ASSERT_FALSE(refused.ok()) << size;
    EXPECT_EQ(refused.error().code(), StatusCode::kInvalidArgument);
  }
}

TEST(MergeOperator, NumbersCombineOldestFirst) {
  const auto merged =
      Apply({Merge(MergeOperator::kAdd, Number(5)), Merge(MergeOperator::kMin, Number(7)),
             Merge(MergeOperator::kMax, Number(6)), Merge(MergeOperator::kAdd, Number(-10))},
            Number(3));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->value, Number(-3));
}

TEST(MergeOperator, AdditionWrapsRound) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto merged = Apply({Merge(MergeOperator::kAdd, Number(1))}, Number(kMax));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->value, Number(std::numeric_limits<int64_t>::min()));
}

TEST(MergeOperator, OnNothingEachSetsTheOperand) {
  for (const MergeOperator op :
       {MergeOperator::kAdd, MergeOperator::kMin, MergeOperator::kMax, MergeOperator::kAppend}) {
    EXPECT_EQ(Apply({Merge(op, Number(-4))}, std::nullopt).value().value, Number(-4));
  }
}

// What a run stands for may be put in its place, over any value.
TEST(MergeRun, DoesTheSameAsItsMergesToWhateverLiesUnderThem) {
  Random random(11);
  const std::vector<std::optional<std::string>> bases = {std::nullopt, Number(0), Number(-7),
                                                         "text", std::string()};
  for (int round = 0; round < 5000; ++round) {
    const auto op = static_cast<MergeOperator>(1 + random.Below(4));
    std::vector<PendingMerge> newest_first;
    MergeRun run;
    for (uint64_t i = random.Between(1, 6); i > 0; --i) {
      std::string operand = Number(static_cast<int64_t>(random.Below(20)) - 10);
      if (op == MergeOperator::kAppend) operand.resize(random.Below(9));
      newest_first.push_back(Merge(op, operand, 40 + i));
      ASSERT_TRUE(run.Add(newest_first.back().value, newest_first.back().time_ms));
    }
    ASSERT_EQ(run.count(), newest_first.size());
    ASSERT_EQ(run.earliest_ms(), 41U);
    ASSERT_EQ(run.latest_ms(), newest_first.front().time_ms);
    const std::vector<PendingMerge> one = {run.Take()};
    ASSERT_EQ(run.count(), 0U);
    for (const std::optional<std::string>& base : bases) {
      for (const uint64_t expiry_ms : {0, 41, 60, 2000}) {  // 60: after all of them, and past
        const auto apart = ApplyMerges(newest_first, base, base ? expiry_ms : 0, 1000);
        const auto together = ApplyMerges(one, base, base ? expiry_ms : 0, 1000);
        ASSERT_EQ(apart.status().code(), together.status().code());
        if (!apart) continue;
        ASSERT_EQ(apart->value, together->value);
        ASSERT_EQ(apart->expiry_ms, together->expiry_ms);
      }
    }
  }
}

TEST(MergeRun, RefusesAnotherOperator) {
  MergeRun run;
  ASSERT_TRUE(run.Add(Merge(MergeOperator::kMin, Number(3)).value, 7));
  EXPECT_FALSE(run.Add(Merge(MergeOperator::kMax, Number(9)).value, 6));
  EXPECT_FALSE(run.Add(Merge(MergeOperator::kAppend, "x").value, 6));
  EXPECT_EQ(run.count(), 1U);
  EXPECT_EQ(run.Take().value, Merge(MergeOperator::kMin, Number(3)).value);
}

TEST(MergeOperator, WhatIsNoNumberIsNamed) {
  const auto merged = Apply({Merge(MergeOperator::kAdd, Number(1))}, "text");
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(merged.error().message().find("4 bytes"), std::string_view::npos);
}

TEST(MergeOperator, TheExpiryIsThatOfTheBase) {
  const auto alive = Apply({Merge(MergeOperator::kAppend, "b")}, "a", 1001);
  ASSERT_TRUE(alive);
  EXPECT_EQ(alive->value, "ab");
  EXPECT_EQ(alive->expiry_ms, 1001U);

  const auto expired = Apply({Merge(MergeOperator::kAppend, "b", 899)}, "a", 900);
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->expiry_ms, 900U);

  const auto anew = Apply(
      {Merge(MergeOperator::kAppend, "b", 899), Merge(MergeOperator::kAppend, "c", 900)}, "a", 900);
  ASSERT_TRUE(anew);
  EXPECT_EQ(anew->value, "c");
  EXPECT_EQ(anew->expiry_ms, 0U);
}

TEST(MergeOperator, TheExpiryAloneIsTheSame) {
  for (const uint64_t written_ms : {899, 900}) {
    for (const uint64_t expiry_ms : {0, 900, 1001}) {
      const std::vector<PendingMerge> merges = {Merge(MergeOperator::kAppend, "b", written_ms)};
      const auto merged = ApplyMerges(merges, "a", expiry_ms, 1000);
      ASSERT_TRUE(merged);
      EXPECT_EQ(MergedExpiry(merges, expiry_ms, 1000), merged->expiry_ms)
          << written_ms << " " << expiry_ms;
    }
  }
}

TEST(MergeOperator, OperandsAreChecked) {
  EXPECT_TRUE(CheckMergeOperand(MergeOperator::kAdd, Number(1)).ok());
  EXPECT_EQ(CheckMergeOperand(MergeOperator::kMin, "1").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckMergeOperand(static_cast<MergeOperator>(9), "").code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckMergeOperand(MergeOperator::kAppend, "").ok());
  EXPECT_FALSE(IsMergeValue(""));
  EXPECT_FALSE(IsMergeValue(std::string(1, '\5')));
  EXPECT_FALSE(IsMergeValue("\1short"));
  EXPECT_TRUE(IsMergeValue("\4"));
}

}  // namespace
}  // namespace basalt::base
