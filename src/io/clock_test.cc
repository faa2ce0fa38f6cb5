#include "io/clock.h"

#include <gtest/gtest.h>

#include <chrono>

#include "io/sim_clock.h"

namespace basalt::io {
namespace {

TEST(Clock, TheSystemsMonotonicTimeGoesOn) {
  const uint64_t start = Clock::System()->MonotonicMicros();
  uint64_t last = start;
  while (last == start) {
    const uint64_t now = Clock::System()->MonotonicMicros();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, TheSystemsWallTimeIsNow) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto expected = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const auto wall = static_cast<int64_t>(Clock::System()->WallMillis());
  EXPECT_GE(wall, expected);
  EXPECT_LT(wall, expected + 60'000);
}

TEST(SystemClock, SleepsAtLeastSoLong) {
  Clock* const clock = Clock::System();
  const uint64_t before = clock->MonotonicMicros();
  clock->SleepFor(2'000);
  EXPECT_GE(clock->MonotonicMicros(), before + 2'000);
}

TEST(SimClock, StandsStillUntilItIsAdvanced) {
  SimClock clock(5000);
  clock.SleepFor(1'000'000);
  EXPECT_EQ(clock.MonotonicMicros(), 0u);
  EXPECT_EQ(clock.WallMillis(), 5000u);
  clock.Advance(999);
  EXPECT_EQ(clock.MonotonicMicros(), 999u);
  EXPECT_EQ(clock.WallMillis(), 5000u);
  clock.Advance(1);
  EXPECT_EQ(clock.WallMillis(), 5001u);
}

TEST(SimClock, AJumpOfTheWallLeavesMonotonicTimeAlone) {
  SimClock clock;
  clock.Advance(10);
  clock.SetWall(3);
  EXPECT_EQ(clock.WallMillis(), 3u);
  EXPECT_EQ(clock.MonotonicMicros(), 10u);
}

}  // namespace
}  // namespace basalt::io
