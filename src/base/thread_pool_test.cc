#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/test_fork.h"

namespace basalt::base {
namespace {

TEST(ThreadPool, RunsEveryJobOnceOnItsOwnThreads) {
  std::vector<std::atomic<int>> runs(1000);
  std::atomic<int> on_caller{0};
  {
    const auto pool = ThreadPool::Create(4).value();
    EXPECT_EQ(pool->thread_count(), 4u);
    const std::thread::id caller = std::this_thread::get_id();
    for (std::atomic<int>& run : runs) {
      pool->Schedule([&run, &on_caller, caller] {
        ++run;
        if (std::this_thread::get_id() == caller) ++on_caller;
      });
    }
  }
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
  EXPECT_EQ(on_caller, 0);
}

TEST(ThreadPool, OneThreadRunsJobsInTheirOrder) {
  std::vector<int> order;
  {
    const auto pool = ThreadPool::Create(1).value();
    for (int i = 0; i < 1000; ++i) pool->Schedule([&order, i] { order.push_back(i); });
  }
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ThreadPool, ScheduleDoesNotWaitForARunningJob) {
  std::promise<void> go;
  std::atomic<int> done{0};
  {
    const auto pool = ThreadPool::Create(1).value();
    pool->Schedule([&] { go.get_future().wait(); });
    for (int i = 0; i < 100; ++i) pool->Schedule([&done] { ++done; });
    EXPECT_EQ(done, 0);
    go.set_value();
  }
  EXPECT_EQ(done, 100);
}

TEST(ThreadPool, DestructionRunsWhatJobsStillAdd) {
  std::atomic<int> runs{0};
  {
    const auto pool = ThreadPool::Create(2).value();
    ThreadPool* raw = pool.get();
    pool->Schedule([raw, &runs] {
      ++runs;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      raw->Schedule([raw, &runs] {
        ++runs;
        raw->Schedule([&runs] { ++runs; });
      });
    });
  }
  EXPECT_EQ(runs, 3);
}

TEST(ThreadPool, MayBeDestroyedByItsOwnJob) {
  for (int round = 0; round < 50; ++round) {
    struct Shared {
      std::atomic<int> runs{0};
      std::promise<void> scheduled;
      std::promise<void> all_ran;
    };
    const auto shared = std::make_shared<Shared>();
    auto owner = std::make_shared<std::unique_ptr<ThreadPool>>(ThreadPool::Create(2).value());
    ThreadPool* pool = owner->get();
    pool->Schedule([shared, owner] {
      shared->scheduled.get_future().wait();
      owner->reset();
    });
    for (int i = 0; i < 10; ++i) {
      pool->Schedule([shared] {
        if (++shared->runs == 10) shared->all_ran.set_value();
      });
    }
    std::future<void> all_ran = shared->all_ran.get_future();
    owner.reset();
    shared->scheduled.set_value();
    all_ran.wait();
    EXPECT_EQ(shared->runs, 10);
  }
}

TEST(ThreadPool, AJobIsDestroyedAfterItRan) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  {
    const auto pool = ThreadPool::Create(1).value();
    pool->Schedule([held = std::move(held)] { static_cast<void>(*held); });
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ThreadPool, ZeroThreadsMeansOne) {
  EXPECT_EQ(ThreadPool::Create(0).value()->thread_count(), 1u);
}

/// What `holds` says in a child of this process, where no shared pool has been made yet.
bool HoldsInForkedChild(const std::function<bool()>& holds) {
  // A thread that starts or allocates may hold locks of a sanitizer's runtime, which the child
  // would wait for: ours is let come to rest.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return TrueInChild(holds);
}

bool SharedPoolRunsAJob(size_t threads) {
  std::promise<void> ran;
  ThreadPool::Shared(threads).value()->Schedule([&ran] { ran.set_value(); });
  return ran.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready;
}

TEST(ThreadPool, TheSharedPoolIsMadeOnceAndKeepsItsSize) {
  EXPECT_TRUE(HoldsInForkedChild([] {
    const ThreadPool* const first = ThreadPool::Shared(2).value();
    return first->thread_count() == 2 && ThreadPool::Shared(7).value() == first &&
           first->thread_count() == 2 && SharedPoolRunsAJob(7);
  }));
}

TEST(ThreadPool, JobsOfLowPriorityAreNicerThanOthers) {
  const auto nice_in = [](ThreadPool* pool) {
    std::promise<int> nice;
    pool->Schedule([&nice] { nice.set_value(getpriority(PRIO_PROCESS, 0)); });
    return nice.get_future().get();
  };
  constexpr int kNicest = 19;
  const int own = getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(nice_in(ThreadPool::Shared(1).value()), own);
  EXPECT_EQ(nice_in(ThreadPool::SharedOfLowPriority(1).value()), std::min(own + 10, kNicest));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own);
}

TEST(ThreadPool, AForkedChildHasASharedPoolOfItsOwn) {
  ASSERT_TRUE(SharedPoolRunsAJob(1));
  EXPECT_TRUE(HoldsInForkedChild([] { return SharedPoolRunsAJob(1); }));
}

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(ThreadPool, ATimedJobRunsOnceWhenItsTimeHasCome) {
  for (const size_t threads : {1U, 3U}) {
    const auto pool = ThreadPool::Create(threads).value();
    const auto start = steady_clock::now();
    std::promise<void> first;
    std::promise<void> last;
    std::atomic<int> order{0};
    pool->ScheduleAfter(milliseconds(40), [&] {
      EXPECT_EQ(++order, 2);
      EXPECT_GE(steady_clock::now() - start, milliseconds(40));
      last.set_value();
    });
    // It comes later and is due sooner; threads wait for the other one already.
    std::this_thread::sleep_for(milliseconds(5));
    const auto timer = pool->ScheduleAfter(milliseconds(5), [&] {
      EXPECT_EQ(++order, 1);
      first.set_value();
    });
    first.get_future().wait();
    last.get_future().wait();
    EXPECT_FALSE(pool->Cancel(timer));
  }
}

TEST(ThreadPool, ATimedJobComesBeforeAnEndlessQueue) {
  std::atomic<bool> has_come{false};
  std::promise<void> ran;
  std::function<void()> again;
  const auto pool = ThreadPool::Create(1).value();  // It ends before what its jobs use.
  again = [&] {
    if (!has_come) pool->Schedule(again);
  };
  pool->Schedule(again);
  pool->ScheduleAfter(milliseconds(1), [&] {
    has_come = true;
    ran.set_value();
  });
  ran.get_future().wait();
}

TEST(ThreadPool, ACancelledJobDoesNotRunAndIsDestroyed) {
  const auto pool = ThreadPool::Create(2).value();
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  const auto timer = pool->ScheduleAfter(
      std::chrono::hours(1), [held = std::move(held)] { FAIL() << "it was cancelled"; });
  EXPECT_NE(timer, Executor::Timer::kNone);
  EXPECT_TRUE(pool->Cancel(timer));
  EXPECT_TRUE(watch.expired());
  EXPECT_FALSE(pool->Cancel(timer));
  EXPECT_FALSE(pool->Cancel(Executor::Timer::kNone));
}

TEST(ThreadPool, DestructionDropsJobsWhoseTimeHasNotCome) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  {
    const auto pool = ThreadPool::Create(2).value();
    pool->ScheduleAfter(std::chrono::hours(1), [held = std::move(held)] { FAIL(); });
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ThreadPool, EachTimedJobEitherRunsOrIsCancelled) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 2'000;
  std::atomic<int> ran{0};
  std::atomic<int> cancelled{0};
  {
    const auto pool = ThreadPool::Create(2).value();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kJobs; ++i) {
          const auto timer = pool->ScheduleAfter(milliseconds((i + t) % 3), [&] { ++ran; });
          if (i % 2 == 0) std::this_thread::yield();
          if (pool->Cancel(timer)) ++cancelled;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    pool->Schedule([] {});
  }
  EXPECT_EQ(ran + cancelled, kThreads * kJobs);
}

TEST(ThreadPool, HasNoThreadToLendToAWaiter) {
  EXPECT_FALSE(ThreadPool::Create(1).value()->RunOne());
}

}  // namespace
}  // namespace basalt::base
