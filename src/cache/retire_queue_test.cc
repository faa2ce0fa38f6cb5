#include "cache/retire_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "cache/entry.h"

namespace basalt::cache {
namespace {

TEST(RetireQueue, WhatOthersHaveFoundToBeUnreadIsDueHoweverLittleItIs) {
  base::BasicEpochDomain<std::atomic> epochs;
  BasicRetireQueue<std::atomic, Entry> queue(&epochs);
  std::array<Entry, 2> entries{};
  std::vector<Entry*> freed;
  const auto collect = [&] {
    queue.CollectSome([&](Entry* entry) { freed.push_back(entry); }, 8, /*scans=*/false);
  };
  EXPECT_FALSE(queue.is_due()) << "nothing was retired";
  queue.Retire(&entries[0]);
  EXPECT_FALSE(queue.is_due()) << "a look at all readers costs more than one entry";
  collect();  // It grows old.
  queue.Retire(&entries[1]);
  EXPECT_FALSE(queue.is_due());
  epochs.AdvanceAndScan();  // As another shard does it.
  EXPECT_TRUE(queue.is_due());
  collect();
  EXPECT_EQ(freed, std::vector<Entry*>{&entries[0]});
  epochs.AdvanceAndScan();
  EXPECT_TRUE(queue.is_due());
  collect();
  EXPECT_EQ(freed.size(), 2u);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.is_due());
}

}  // namespace
}  // namespace basalt::cache
