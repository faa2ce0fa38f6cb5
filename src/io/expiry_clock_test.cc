#include "io/expiry_clock.h"

#include <gtest/gtest.h>

#include "io/sim_clock.h"

namespace basalt::io {
namespace {

constexpr uint64_t kNow = 1'770'000'000'000;
constexpr uint64_t kYearMs = 365ULL * 86'400'000;

TEST(ExpiryClock, FollowsTheWallClock) {
  SimClock clock(kNow);
  ExpiryClock time(&clock);
  EXPECT_EQ(time.NowMs(), kNow);
  clock.Advance(1'500);
  EXPECT_EQ(time.NowMs(), kNow + 1);
  clock.SetWall(kNow + kYearMs);
  EXPECT_EQ(time.NowMs(), kNow + kYearMs);
  EXPECT_FALSE(time.IsAhead());
}

TEST(ExpiryClock, GoesOnByTheMonotonicClockWhileTheWallClockIsBehind) {
  SimClock clock(kNow);
  ExpiryClock time(&clock);
  clock.SetWall(kNow + kYearMs);
  EXPECT_EQ(time.NowMs(), kNow + kYearMs);
  clock.SetWall(kNow);
  EXPECT_EQ(time.NowMs(), kNow + kYearMs);
  EXPECT_TRUE(time.IsAhead());
  clock.Advance(7'000'000);
  EXPECT_EQ(time.NowMs(), kNow + kYearMs + 7'000);
  clock.SetWall(kNow - kYearMs);
  clock.Advance(1'000);
  EXPECT_EQ(time.NowMs(), kNow + kYearMs + 7'001) << "a second jump back changes nothing";
}

TEST(ExpiryClock, CountsAlsoTheTimeBeforeItSeesThatTheWallClockIsBehind) {
  SimClock clock(kNow);
  ExpiryClock time(&clock);
  EXPECT_EQ(time.NowMs(), kNow);
  clock.Advance(200'000);
  EXPECT_EQ(time.NowMs(), kNow + 200);
  clock.Advance(3'600'000'000);
  clock.SetWall(kNow);
  EXPECT_EQ(time.NowMs(), kNow + 200 + 3'600'000);
}

TEST(ExpiryClock, FollowsAWallClockThatHasOvertakenIt) {
  SimClock clock(5);
  ExpiryClock time(&clock);
  time.Raise(kNow);
  clock.Advance(1'000'000);
  EXPECT_EQ(time.NowMs(), kNow + 1'000) << "the machine began in 1970";
  clock.SetWall(kNow + 60'000);
  EXPECT_EQ(time.NowMs(), kNow + 60'000);
  clock.Advance(1'000'000);
  EXPECT_EQ(time.NowMs(), kNow + 61'000);
  EXPECT_FALSE(time.IsAhead());
}

TEST(ExpiryClock, NeverRunsBackward) {
  SimClock clock(kNow);
  ExpiryClock time(&clock);
  uint64_t last = 0;
  for (uint64_t step = 0; step < 1'000; ++step) {
    clock.Advance(step * 7);
    clock.SetWall(kNow + step * 7'919 % 6'007);
    const uint64_t now = time.NowMs();
    ASSERT_GE(now, last) << "step " << step;
    last = now;
  }
}

}  // namespace
}  // namespace basalt::io
