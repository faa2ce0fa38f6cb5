#include "db/commit_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace basalt::db {
namespace {

TEST(CommitQueue, AWriteIsVisibleOnlyWhenAllBeforeItHaveFinished) {
  CommitQueue queue(10);
  CommitQueue::Tail tail;
  const auto first = queue.Take(&tail);
  const auto second = queue.Take(&tail);
  std::atomic<bool> returned{false};
  std::thread writer([&] {
    queue.Finish(second, 13);
    EXPECT_EQ(queue.visible(), 13U);
    returned = true;
  });
  EXPECT_EQ(queue.visible(), 10U);
  EXPECT_FALSE(returned);
  queue.Finish(first, 12);
  writer.join();
  EXPECT_TRUE(returned);
  EXPECT_EQ(queue.visible(), 13U);
}

TEST(CommitQueue, DrainReturnsWhenAllThatWasTakenIsVisible) {
  CommitQueue queue(0);
  CommitQueue::Tail tail;
  queue.Drain(tail);
  const auto ticket = queue.Take(&tail);
  std::thread finisher([&] { queue.Finish(ticket, 1); });
  queue.Drain(tail);
  EXPECT_EQ(queue.visible(), 1U);
  finisher.join();
}

TEST(CommitQueue, WritesThatFinishedOutOfTurnAreShownByTheOneBeforeThem) {
  constexpr int kLater = 8;
  CommitQueue queue(0);
  CommitQueue::Tail tail;
  const auto first = queue.Take(&tail);
  std::vector<CommitQueue::Ticket> later;
  for (int i = 0; i < kLater; ++i) later.push_back(queue.Take(&tail));
  std::vector<std::thread> writers;
  for (int i = kLater - 1; i >= 0; --i) {
    writers.emplace_back([&, i] { queue.Finish(later[i], static_cast<uint64_t>(i) + 2); });
  }
  // Long enough for most of them to fall asleep.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(queue.visible(), 0U);
  queue.Finish(first, 1);
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(queue.visible(), kLater + 1U);
}

TEST(CommitQueue, AWriteWaitsForASlotWhenAllAreUnderWay) {
  CommitQueue queue(0);
  CommitQueue::Tail tail;
  std::vector<CommitQueue::Ticket> tickets;
  while (tickets.size() < CommitQueue::kSlots) tickets.push_back(queue.Take(&tail));
  std::atomic<bool> has_slot{false};
  std::thread one_more([&] {
    const auto ticket = queue.Take(&tail);
    has_slot = true;
    queue.Finish(ticket, CommitQueue::kSlots + 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(has_slot);
  for (size_t i = 0; i < tickets.size(); ++i) queue.Finish(tickets[i], i + 1);
  one_more.join();
  EXPECT_EQ(queue.visible(), CommitQueue::kSlots + 1U);
}

TEST(CommitQueue, VisibilityOnlyGrowsAndNeverPassesAnUnfinishedWrite) {
  CommitQueue queue(0);
  CommitQueue::Tail tail;
  std::mutex commit;
  base::SequenceNumber last = 0;
  std::vector<std::atomic<bool>> inserted(4 * 5000 + 1);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) {
        base::SequenceNumber mine = 0;
        CommitQueue::Ticket ticket = 0;
        {
          const std::scoped_lock lock(commit);
          mine = ++last;
          ticket = queue.Take(&tail);
        }
        inserted[mine].store(true, std::memory_order_relaxed);
        queue.Finish(ticket, mine);
        const base::SequenceNumber visible = queue.visible();
        ASSERT_GE(visible, mine);
        ASSERT_TRUE(inserted[visible].load(std::memory_order_relaxed));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(queue.visible(), 20'000U);
}

}  // namespace
}  // namespace basalt::db
