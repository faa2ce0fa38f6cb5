#include "base/fork_generation.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "base/thread_pool.h"

namespace basalt::base {
namespace {

/// Runs `check` in a forked child; true when it answered true there.
template <class Check>
bool TrueInChild(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int state = 0;
  return waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

TEST(ForkGeneration, IsRaisedInTheChildOnly) {
  const uint64_t before = ForkGeneration();
  EXPECT_TRUE(TrueInChild([before] { return ForkGeneration() == before + 1; }));
  EXPECT_EQ(ForkGeneration(), before);
}

TEST(ForkGeneration, IsRaisedAgainInAGrandchild) {
  const uint64_t before = ForkGeneration();
  EXPECT_TRUE(TrueInChild(
      [before] { return TrueInChild([before] { return ForkGeneration() == before + 2; }); }));
}

TEST(ForkGeneration, AThreadPoolOfTheParentMayBeDestroyedInTheChild) {
  std::unique_ptr<ThreadPool> pool = ThreadPool::Create(2).value();
  EXPECT_TRUE(TrueInChild([&pool] {
    alarm(20);  // A destructor that waits for the parent's threads would wait forever.
    pool.reset();
    return true;
  }));
}

}  // namespace
}  // namespace basalt::base
