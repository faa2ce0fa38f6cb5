#include "db/reserve_file.h"

#include <gtest/gtest.h>

#include "io/sim_file_system.h"

namespace basalt::db {
namespace {

constexpr const char* kPath = "/RESERVE";

TEST(ReserveFile, IsNotFilledWhileItIsLent) {
  io::SimFileSystem fs;
  ReserveFile reserve(&fs, kPath, /*is_wanted=*/true);
  ASSERT_TRUE(reserve.Fill(1000));
  {
    const ReserveFile::Loan first(&reserve);
    {
      const ReserveFile::Loan second(&reserve);
    }
    EXPECT_FALSE(reserve.Fill(1000));
    EXPECT_FALSE(*fs.Exists(kPath));
  }
  EXPECT_TRUE(reserve.Fill(1000));
  EXPECT_EQ(fs.FileSize(kPath).value(), 1000u);
}

TEST(ReserveFile, IsAsLargeAsItWasWhereThereIsNoRoomForMore) {
  io::SimFileSystem fs;
  fs.SetCapacity(1500);
  ReserveFile reserve(&fs, kPath, /*is_wanted=*/true);
  ASSERT_TRUE(reserve.Fill(1000));
  EXPECT_FALSE(reserve.Fill(2000));
  EXPECT_EQ(fs.FileSize(kPath).value(), 1000u);
  EXPECT_TRUE(reserve.Fill(1000));
}

}  // namespace
}  // namespace basalt::db
