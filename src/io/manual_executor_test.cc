#include "io/manual_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace basalt::io {
namespace {

std::vector<int> OrderOf(ManualExecutor* executor, int count) {
  std::vector<int> order;
  for (int i = 0; i < count; ++i) {
    executor->Schedule([&order, i] { order.push_back(i); });
  }
  executor->RunAll();
  return order;
}

TEST(ManualExecutor, RunsNothingBeforeItIsAsked) {
  ManualExecutor executor;
  int runs = 0;
  executor.Schedule([&] { ++runs; });
  executor.Schedule([&] { ++runs; });
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(executor.pending(), 2u);
  EXPECT_TRUE(executor.RunOne());
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(executor.RunOne());
  EXPECT_FALSE(executor.RunOne());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(executor.pending(), 0u);
}

TEST(ManualExecutor, RunsInOrderWithoutASeed) {
  ManualExecutor executor;
  EXPECT_EQ(OrderOf(&executor, 5), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(ManualExecutor, ASeedChoosesAnOrderAndRepeatsIt) {
  ManualExecutor first(7);
  ManualExecutor second(7);
  ManualExecutor other(8);
  const std::vector<int> order = OrderOf(&first, 20);
  EXPECT_EQ(order, OrderOf(&second, 20));
  EXPECT_NE(order, OrderOf(&other, 20));
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(ManualExecutor, AJobMayScheduleAndRunOthers) {
  ManualExecutor executor;
  std::vector<int> order;
  executor.Schedule([&] {
    executor.Schedule([&] { order.push_back(1); });
    executor.Schedule([&] { order.push_back(2); });
    EXPECT_TRUE(executor.RunOne());
    order.push_back(3);
  });
  EXPECT_EQ(executor.RunAll(), 2u);  // The inner one was run by the job.
  EXPECT_EQ(order, (std::vector<int>{1, 3, 2}));
}

TEST(ManualExecutor, TimedJobsWaitUntilTimeIsLetPass) {
  using std::chrono::milliseconds;
  ManualExecutor executor;
  std::vector<int> order;
  executor.ScheduleAfter(milliseconds(20), [&] { order.push_back(20); });
  executor.ScheduleAfter(milliseconds(10), [&] { order.push_back(10); });
  const auto timer = executor.ScheduleAfter(milliseconds(10), [&] { order.push_back(11); });
  executor.Elapse(milliseconds(9));
  EXPECT_EQ(executor.RunAll(), 0u);
  EXPECT_TRUE(executor.Cancel(timer));
  EXPECT_FALSE(executor.Cancel(timer));
  executor.Elapse(milliseconds(1));
  EXPECT_EQ(executor.pending(), 1u);
  executor.Elapse(milliseconds(100));
  EXPECT_EQ(executor.RunAll(), 2u);
  EXPECT_EQ(order, (std::vector<int>{10, 20}));
}

TEST(ManualExecutor, ThreadsMayScheduleAtOnce) {
  ManualExecutor executor;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) executor.Schedule([] {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(executor.RunAll(), 400u);
}

}  // namespace
}  // namespace basalt::io
