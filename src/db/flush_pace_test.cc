#include "db/flush_pace.h"

#include <gtest/gtest.h>

namespace basalt::db {
namespace {

constexpr uint64_t kPacedMemtableBytes = 10'000;

TEST(FlushPace, LeavesWritersAloneWhileNothingIsFlushed) {
  FlushPace pace;
  EXPECT_TRUE(pace.is_free());
  EXPECT_FALSE(pace.MustWait(UINT64_MAX - 1));
  pace.Advance(1, 2);
  EXPECT_TRUE(pace.is_free());
  pace.Begin(kPacedMemtableBytes);
  EXPECT_FALSE(pace.is_free());
  pace.End();
  EXPECT_TRUE(pace.is_free());
}

TEST(FlushPace, LetsAMemtableBeFilledAsTheFlushAdvances) {
  FlushPace pace;
  pace.Begin(kPacedMemtableBytes);
  EXPECT_FALSE(pace.MustWait(5'000));
  EXPECT_TRUE(pace.MustWait(5'001));
  pace.Advance(50, 100);
  EXPECT_FALSE(pace.MustWait(7'200));
  EXPECT_TRUE(pace.MustWait(7'201));
  pace.Advance(25, 100);
  EXPECT_FALSE(pace.MustWait(7'200)) << "a flush that is tried again";
  pace.Advance(200, 100);
  EXPECT_FALSE(pace.MustWait(9'500));
  EXPECT_TRUE(pace.MustWait(9'501)) << "left for the installation";
  pace.Begin(kPacedMemtableBytes);
  EXPECT_TRUE(pace.MustWait(5'001));
}

TEST(FlushPace, AWriteWaitsTheLongerTheLargerItIs) {
  EXPECT_EQ(FlushPace::StepsMax(1), 1u);
  EXPECT_EQ(FlushPace::StepsMax(11'600), 3u);
}

}  // namespace
}  // namespace basalt::db
