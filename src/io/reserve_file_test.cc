#include "io/reserve_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "io/sim_file_system.h"

namespace basalt::io {
namespace {

constexpr const char* kReservePath = "/RESERVE";

TEST(ReserveFile, IsNotFilledWhileItIsLent) {
  SimFileSystem fs;
  ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
  ASSERT_TRUE(reserve.Fill(1000));
  {
    const ReserveFile::Loan first(&reserve);
    {
      const ReserveFile::Loan second(&reserve);
    }
    EXPECT_FALSE(reserve.Fill(1000));
    EXPECT_FALSE(*fs.Exists(kReservePath));
    EXPECT_TRUE(reserve.IsLent());
  }
  EXPECT_FALSE(reserve.IsLent());
  EXPECT_TRUE(reserve.Fill(1000));
  EXPECT_EQ(fs.FileSize(kReservePath).value(), 1000u);
}

TEST(ReserveFile, IsAsLargeAsItWasWhereThereIsNoRoomForMore) {
  SimFileSystem fs;
  fs.SetCapacity(1500);
  ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
  ASSERT_TRUE(reserve.Fill(1000));
  EXPECT_FALSE(reserve.Fill(2000));
  EXPECT_EQ(fs.FileSize(kReservePath).value(), 1000u);
  EXPECT_TRUE(reserve.Fill(1000));
}

TEST(ReserveFile, LeavesToOthersWhatIsNotEnoughForIt) {
  SimFileSystem fs;
  fs.SetCapacity(1500);
  ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
  uint64_t most = 0;
  fs.SetObserver(
      [&](uint64_t, std::string_view, std::string_view) { most = std::max(most, fs.BytesUsed()); });
  EXPECT_FALSE(reserve.Fill(2000));
  EXPECT_FALSE(*fs.Exists(kReservePath));
  EXPECT_LE(most, 1u);
  ASSERT_TRUE(reserve.Fill(1000));
  most = 0;
  EXPECT_FALSE(reserve.Fill(2000));
  EXPECT_EQ(fs.FileSize(kReservePath).value(), 1000u);
  EXPECT_LE(most, 1001u);
  EXPECT_TRUE(reserve.Fill(1500));
}

TEST(ReserveFile, IsTriedWhereTheFreeSpaceCannotBeTold) {
  SimFileSystem fs;
  fs.SetCapacity(1500);
  ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
  ASSERT_TRUE(reserve.Fill(1000));
  const auto asks = [](std::string_view operation, std::string_view) {
    return operation == "statfs";
  };
  fs.SetFault({.at_call = 1, .error = ENOSYS, .sticky = true, .matches = asks});
  EXPECT_FALSE(reserve.Fill(2000));
  EXPECT_EQ(fs.FileSize(kReservePath).value(), 1000u);
  EXPECT_TRUE(reserve.Fill(1500));
}

// Writers would be told to free space, for what cannot be had anyway.
TEST(ReserveFile, ThereIsNoneWhereNothingCanBeAllocated) {
  SimFileSystem fs;
  fs.SetCanAllocate(false);
  for (const uint64_t capacity : {2000, 100}) {
    fs.SetCapacity(capacity);
    ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
    EXPECT_TRUE(reserve.Fill(1000)) << capacity;
    EXPECT_FALSE(*fs.Exists(kReservePath)) << capacity;
    const uint64_t calls = fs.calls();
    EXPECT_FALSE(reserve.Release()) << capacity;
    {
      const ReserveFile::Loan loan(&reserve);
      EXPECT_TRUE(reserve.Fill(2000)) << capacity;
    }
    EXPECT_TRUE(reserve.Fill(2000)) << capacity;
    EXPECT_EQ(fs.calls(), calls) << capacity;
  }
}

// A copy has holes where the file was never written.
TEST(ReserveFile, OneThatHasNoSpaceCountsForNothing) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.Open(kReservePath, OpenMode::kCreate).value()->Truncate(1000).ok());
  const auto allocates = [](std::string_view operation, std::string_view) {
    return operation == "allocate";
  };
  fs.SetFault({.at_call = 1, .error = ENOSPC, .sticky = true, .matches = allocates});
  ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
  EXPECT_FALSE(reserve.Fill(1000));
  EXPECT_FALSE(reserve.Fill(1000));
  EXPECT_FALSE(*fs.Exists(kReservePath));
}

// A file system that is full may have no room for a name either, or no inode.
TEST(ReserveFile, ADiskWithoutRoomForItsNameIsFull) {
  SimFileSystem fs;
  for (const int error : {ENOSPC, EDQUOT}) {
    ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
    const auto opens = [](std::string_view operation, std::string_view) {
      return operation == "open";
    };
    fs.SetFault({.at_call = 1, .error = error, .sticky = true, .matches = opens});
    EXPECT_FALSE(reserve.Fill(1000)) << error;
    fs.ClearFault();
    EXPECT_TRUE(reserve.Fill(1000)) << error;
    EXPECT_EQ(fs.FileSize(kReservePath).value(), 1000u);
    ASSERT_TRUE(reserve.Release());
  }
}

// Writers would be told to free space.
TEST(ReserveFile, WantOfADescriptorIsNotTakenForAFullDisk) {
  SimFileSystem fs;
  ReserveFile reserve(&fs, kReservePath, /*is_wanted=*/true);
  ASSERT_TRUE(reserve.Fill(1000));
  fs.SetFault({.at_call = 1, .error = EMFILE, .sticky = true, .matches = {}});
  EXPECT_TRUE(reserve.Fill(2000));
  EXPECT_TRUE(reserve.Has(1000));
  EXPECT_FALSE(reserve.Has(2000));
  fs.ClearFault();
  EXPECT_TRUE(reserve.Fill(2000));
  EXPECT_TRUE(reserve.Has(2000));
  EXPECT_EQ(fs.FileSize(kReservePath).value(), 2000u);
}

}  // namespace
}  // namespace basalt::io
