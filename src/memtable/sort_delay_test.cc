#include "memtable/sort_delay.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace basalt::memtable {
namespace {

SortDelay::Moment MomentOf(std::vector<uint32_t> segment_counts) {
  SortDelay::Moment moment{.generation = 7, .unsorted = 1000};
  moment.segment_counts = std::move(segment_counts);
  return moment;
}

TEST(SortDelay, SortingWaitsWhileEveryProcessorHasAWriter) {
  SortDelay delay(2);
  EXPECT_FALSE(delay.IsSortDue(MomentOf({10, 20, 0})));
  EXPECT_FALSE(delay.IsSortDue(MomentOf({11, 20, 1})));
  EXPECT_FALSE(delay.IsSortDue(MomentOf({12, 21, 2})));
}

TEST(SortDelay, SortingIsDueOnceAProcessorIsFree) {
  SortDelay delay(2);
  EXPECT_FALSE(delay.IsSortDue(MomentOf({10, 20})));
  EXPECT_TRUE(delay.IsSortDue(MomentOf({10, 30})));
  EXPECT_TRUE(delay.IsSortDue(MomentOf({10, 30})));
  EXPECT_TRUE(SortDelay(3).IsSortDue(MomentOf({10, 20})));
}

TEST(SortDelay, ItDoesNotWaitWhereIteratorsCome) {
  SortDelay delay(1);
  SortDelay::Moment moment = MomentOf({10});
  moment.was_iterated = true;
  EXPECT_TRUE(delay.IsSortDue(moment));
  EXPECT_FALSE(delay.IsSortDue(MomentOf({11})));
}

TEST(SortDelay, ItDoesNotWaitWithMoreThanAnIteratorMaySort) {
  SortDelay delay(1);
  SortDelay::Moment moment = MomentOf({10});
  moment.unsorted = SortDelay::kUnsortedMax - 1;
  EXPECT_FALSE(delay.IsSortDue(moment));
  moment.segment_counts = {11};
  moment.unsorted = SortDelay::kUnsortedMax;
  EXPECT_TRUE(delay.IsSortDue(moment));
}

TEST(SortDelay, AFreshGenerationHasSegmentsThatHaveGrown) {
  SortDelay delay(2);
  EXPECT_FALSE(delay.IsSortDue(MomentOf({10, 20})));
  SortDelay::Moment fresh = MomentOf({10, 20, 0, 0});
  fresh.generation = 8;
  EXPECT_FALSE(delay.IsSortDue(fresh));
}

TEST(SortDelay, ItNeverWaitsWhereTheNumberOfProcessorsIsUnknown) {
  EXPECT_TRUE(SortDelay(0).IsSortDue(MomentOf({10, 20, 30, 40})));
}

}  // namespace
}  // namespace basalt::memtable
