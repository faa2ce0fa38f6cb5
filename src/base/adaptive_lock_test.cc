#include "base/adaptive_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace basalt::base {
namespace {

TEST(AdaptiveLock, LetsOneInAtATimeAlsoWhenHoldersSleep) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5000;
  AdaptiveLock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::scoped_lock inside(lock);
        const int before = count;
        // Longer than anybody spins.
        if (i % 500 == t) std::this_thread::sleep_for(std::chrono::microseconds(200));
        count = before + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(AdaptiveLock, IsTriedWithoutWaiting) {
  AdaptiveLock lock;
  std::unique_lock first(lock, std::try_to_lock);
  EXPECT_TRUE(first.owns_lock());
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  first.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(AdaptiveLock, ASleeperIsWoken) {
  AdaptiveLock lock;
  std::atomic<bool> has_had_it{false};
  std::unique_lock held(lock);
  std::thread sleeper([&] {
    const std::scoped_lock inside(lock);
    has_had_it = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(has_had_it);
  held.unlock();
  sleeper.join();
  EXPECT_TRUE(has_had_it);
}

}  // namespace
}  // namespace basalt::base
