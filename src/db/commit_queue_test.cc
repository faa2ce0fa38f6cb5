#include "db/commit_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace basalt::db {
namespace {

TEST(CommitQueue, AWriteIsVisibleOnlyWhenAllBeforeItHaveFinished) {
  CommitQueue queue(10);
  const auto first = queue.Push(12);
  const auto second = queue.Push(13);
  std::atomic<bool> returned{false};
  std::thread writer([&] {
    queue.Finish(second);
    EXPECT_EQ(queue.visible(), 13U);
    returned = true;
  });
  EXPECT_EQ(queue.visible(), 10U);
  EXPECT_FALSE(returned);
  queue.Finish(first);
  writer.join();
  EXPECT_TRUE(returned);
  EXPECT_EQ(queue.visible(), 13U);
}

TEST(CommitQueue, DrainReturnsWhenAllThatWasPushedIsVisible) {
  CommitQueue queue(0);
  queue.Drain();
  const auto ticket = queue.Push(1);
  std::thread finisher([&] { queue.Finish(ticket); });
  queue.Drain();
  EXPECT_EQ(queue.visible(), 1U);
  finisher.join();
}

TEST(CommitQueue, VisibilityOnlyGrowsAndNeverPassesAnUnfinishedWrite) {
  CommitQueue queue(0);
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
          ticket = queue.Push(mine);
        }
        inserted[mine].store(true, std::memory_order_relaxed);
        queue.Finish(ticket);
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
