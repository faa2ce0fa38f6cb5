#include "server/snapshot_table.h"

#include <gtest/gtest.h>

namespace basalt::server {
namespace {

Snapshot Any() { return {nullptr, 1, WallTime()}; }

TEST(SnapshotTable, SnapshotsGoWhenTheyAreReleasedOrTheirOwnerLeaves) {
  SnapshotTable table;
  const uint64_t first = table.Add(1, Any()).value();
  const uint64_t second = table.Add(1, Any()).value();
  const uint64_t other = table.Add(2, Any()).value();
  EXPECT_NE(first, 0U);
  EXPECT_TRUE(table.Find(first));
  table.Remove(first);
  table.Remove(first);
  EXPECT_EQ(table.Find(first).code(), StatusCode::kOutOfRange);
  table.RemoveOwner(1);
  EXPECT_FALSE(table.Find(second));
  EXPECT_TRUE(table.Find(other));
  EXPECT_EQ(table.count(), 1U);
}

TEST(SnapshotTable, ASnapshotThatNobodyUsesGoes) {
  SnapshotTable table;
  const uint64_t number = table.Add(1, Any()).value();
  const auto now = SnapshotTable::Clock::now();
  table.RemoveIdle(now + SnapshotTable::kIdle / 2);
  EXPECT_TRUE(table.Find(number));
  table.RemoveIdle(SnapshotTable::Clock::now() + SnapshotTable::kIdle);
  EXPECT_FALSE(table.Find(number));
}

TEST(SnapshotTable, AnOwnerAndAllTogetherAreBounded) {
  SnapshotTable table;
  uint64_t owner = 1;
  for (size_t i = 0; i < SnapshotTable::kAllMax; ++i) {
    if (i % SnapshotTable::kOfOwnerMax == 0) {
      if (i > 0) {
        EXPECT_EQ(table.Add(owner, Any()).status().sub_code(), SubCode::kPins);
      }
      ++owner;
    }
    ASSERT_TRUE(table.Add(owner, Any()));
  }
  EXPECT_FALSE(table.Add(owner + 1, Any()));
  table.RemoveOwner(owner);
  EXPECT_TRUE(table.Add(owner + 1, Any()));
}

}  // namespace
}  // namespace basalt::server
