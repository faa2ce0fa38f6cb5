#include "base/fork_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/extent_pool.h"
#include "base/test_fork.h"
#include "base/thread_pool.h"

namespace basalt::base {
namespace {

TEST(ForkCount, IsRaisedInTheChildOnly) {
  const uint64_t before = ForkCount();
  EXPECT_TRUE(TrueInChild([before] { return ForkCount() == before + 1; }));
  EXPECT_EQ(ForkCount(), before);
}

TEST(ForkCount, IsRaisedAgainInAGrandchild) {
  const uint64_t before = ForkCount();
  EXPECT_TRUE(TrueInChild(
      [before] { return TrueInChild([before] { return ForkCount() == before + 2; }); }));
}

TEST(ForkCount, AThreadPoolOfTheParentMayBeDestroyedInTheChild) {
  std::unique_ptr<ThreadPool> pool = ThreadPool::Create(2).value();
  EXPECT_TRUE(TrueInChild([&pool] {
    pool.reset();  // It would wait forever for the parent's threads.
    return true;
  }));
}

/// Threads that do a work each again and again, until they are destroyed.
std::vector<std::jthread> KeepBusy(const std::vector<std::function<void()>>& works) {
  std::vector<std::jthread> threads;
  for (const std::function<void()>& work : works) {
    threads.emplace_back([work](const std::stop_token& stop) {
      while (!stop.stop_requested()) work();
    });
  }
  return threads;
}

constexpr int kForks = 100;

// Something stays taken, so that the threads, in their turns, only cut and join what there is: who
// allocates may hold a lock of a sanitizer, which these do not let go of in a child.
TEST(ForkCount, AChildCanTakeFromThePoolsWhateverThreadsDidAtTheFork) {
  const auto use_extents = [] { ExtentPool::Process()->Give(ExtentPool::Process()->Take(1000)); };
  const auto use_chunks = [] {
    ChunkPool& pool = *ChunkPool::Process();
    pool.Give(pool.Take(ChunkPool::kBlockBytesMin), ChunkPool::kBlockBytesMin);
  };
  char* const extent = ExtentPool::Process()->Take(1000);
  char* const chunk = ChunkPool::Process()->Take(ChunkPool::kBlockBytesMin);
  {
    const auto busy = KeepBusy({use_extents, use_extents, use_chunks, use_chunks});
    for (int i = 0; i < kForks; ++i) {
      ASSERT_TRUE(TrueInChild([&] {
        use_extents();
        use_chunks();
        return true;
      })) << "after "
          << i;
    }
  }
  ExtentPool::Process()->Give(extent);
  ChunkPool::Process()->Give(chunk, ChunkPool::kBlockBytesMin);
}

TEST(ForkCount, AChildGetsThreadsOfItsOwnWhateverThreadsDidAtTheFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer lets no child of several threads start one";
#endif
  const auto ask = [] { EXPECT_TRUE(ThreadPool::Shared(1)); };
  const auto busy = KeepBusy({ask, ask, ask});
  for (int i = 0; i < kForks; ++i) {
    ASSERT_TRUE(TrueInChild([] { return ThreadPool::Shared(1).has_value(); })) << "after " << i;
  }
}

TEST(ForkCount, AChildFreesWhatOnlyThreadsOfItsParentCouldSee) {
  std::atomic<int> entered{0};
  std::atomic<bool> may_leave{false};
  std::thread reader([&] {
    const EpochGuard inside;
    entered = 1;
    entered.notify_one();
    may_leave.wait(false);
  });
  entered.wait(0);
  RetireList list;
  const auto frees = [&list] {
    list.Retire(list.NewNote(), new int(1), sizeof(int),
                [](void* object) { delete static_cast<int*>(object); });
    list.Collect();
    return list.bytes() == 0;
  };
  EXPECT_TRUE(TrueInChild(frees));
  // The thread that forks is in the child, and stays inside there if it was.
  {
    const EpochGuard inside;
    EXPECT_TRUE(TrueInChild([&] { return !frees(); }));
  }
  EXPECT_FALSE(frees());
  may_leave = true;
  may_leave.notify_one();
  reader.join();
  list.Collect();
  EXPECT_EQ(list.bytes(), 0U);
}

}  // namespace
}  // namespace basalt::base
