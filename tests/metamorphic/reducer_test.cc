#include "tests/metamorphic/reducer.h"

#include <gtest/gtest.h>

#include "tests/metamorphic/generator.h"

namespace basalt::metamorphic {
namespace {

size_t CountOf(const OperationList& list, OperationKind kind) {
  size_t count = 0;
  for (const Operation& operation : list.operations) count += operation.kind == kind ? 1 : 0;
  return count;
}

TEST(MetamorphicReducer, LeavesOnlyWhatTheFailureNeeds) {
  // "Fails" when two puts come with a batch of at least three records somewhere.
  const auto fails = [](const OperationList& list) {
    bool long_batch = false;
    for (const Operation& operation : list.operations) {
      long_batch |= operation.kind == OperationKind::kBatch && operation.records.size() >= 3;
    }
    return long_batch && CountOf(list, OperationKind::kPut) >= 2;
  };
  size_t reduced_lists = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const OperationList list = Generate(seed, 500);
    if (!fails(list)) continue;
    ++reduced_lists;
    const OperationList reduced = Reduce(list, fails, 3'000);
    ASSERT_TRUE(fails(reduced)) << "seed " << seed;
    ASSERT_EQ(reduced.operations.size(), 3U) << "seed " << seed << "\n" << ToText(reduced);
    for (const Operation& operation : reduced.operations) {
      if (operation.kind != OperationKind::kBatch) continue;
      EXPECT_EQ(operation.records.size(), 3U) << "seed " << seed;
      for (const Record& record : operation.records) EXPECT_EQ(record.value.size, 0U);
    }
  }
  EXPECT_GE(reduced_lists, 5U);
}

TEST(MetamorphicReducer, StopsAfterItsRuns) {
  size_t runs = 0;
  const OperationList list = Generate(1, 500);
  const OperationList reduced = Reduce(
      list,
      [&](const OperationList&) {
        ++runs;
        return false;
      },
      50);
  EXPECT_EQ(runs, 50U);
  EXPECT_EQ(reduced.operations.size(), list.operations.size());
}

}  // namespace
}  // namespace basalt::metamorphic
