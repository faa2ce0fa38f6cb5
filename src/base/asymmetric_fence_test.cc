#include "base/asymmetric_fence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/test_fork.h"

namespace basalt::base {
namespace {

/// Counts the rounds in which neither of two threads saw the other's store.
class Litmus {
 public:
  template <class Often, class Seldom>
  int CountMissed(int rounds, const Often& often_fence, const Seldom& seldom_fence) {
    int missed = 0;
    std::thread often([&] {
      for (int round = 1; round <= rounds; ++round) {
        Meet(round, &often_arrived_, seldom_arrived_);
        often_stored_.store(round, std::memory_order_relaxed);
        often_fence();
        often_saw_ = seldom_stored_.load(std::memory_order_relaxed);
        often_done_.store(round, std::memory_order_release);
      }
    });
    for (int round = 1; round <= rounds; ++round) {
      Meet(round, &seldom_arrived_, often_arrived_);
      seldom_stored_.store(round, std::memory_order_relaxed);
      seldom_fence();
      const int saw = often_stored_.load(std::memory_order_relaxed);
      Await(often_done_, round);
      if (saw < round && often_saw_ < round) ++missed;
    }
    often.join();
    return missed;
  }

 private:
  using Counter = std::atomic<int>;

  static void Await(const Counter& counter, int value) {
    for (int spins = 0; counter.load(std::memory_order_acquire) < value; ++spins) {
      if (spins > 1000) std::this_thread::yield();
    }
  }
  static void Meet(int round, Counter* own, const Counter& other) {
    own->store(round, std::memory_order_release);
    Await(other, round);
  }

  alignas(64) Counter often_arrived_{0};
  alignas(64) Counter seldom_arrived_{0};
  alignas(64) Counter often_stored_{0};
  alignas(64) Counter seldom_stored_{0};
  alignas(64) Counter often_done_{0};
  int often_saw_ = 0;
};

/// Counts the missed stores of up to `batches` times a thousand rounds, until there is one. Stops
/// after ten seconds: on a busy machine each round waits for the scheduler.
template <class Often, class Seldom>
int CountMissedInBatches(int batches, const Often& often_fence, const Seldom& seldom_fence) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int missed = 0;
  for (int i = 0; i < batches && missed == 0 && std::chrono::steady_clock::now() < end; ++i) {
    missed = Litmus().CountMissed(1000, often_fence, seldom_fence);
  }
  return missed;
}

class AsymmetricFenceTest : public testing::Test {
 protected:
  void SetUp() override {
    AsymmetricFence::Prepare();
    if (!AsymmetricFence::IsLight()) GTEST_SKIP() << "this system has no membarrier(2)";
  }
};

TEST_F(AsymmetricFenceTest, NeverDoBothSidesMissTheOthersStore) {
  EXPECT_EQ(CountMissedInBatches(50, AsymmetricFence::Light, AsymmetricFence::Heavy), 0);
}

// So the test above can fail: the processor does reorder a load before an older store. Where the
// two threads never run at the same time that does not show.
TEST_F(AsymmetricFenceTest, WithTwoLightOnesBothMissItNowAndThen) {
  if (CountMissedInBatches(1000, AsymmetricFence::Light, AsymmetricFence::Light) == 0) {
    GTEST_SKIP() << "these processors did not reorder a load before a store";
  }
}

TEST_F(AsymmetricFenceTest, AForkedChildHasThemToo) {
  EXPECT_TRUE(TrueInChild([] {
    AsymmetricFence::Heavy();
    return AsymmetricFence::IsLight();
  }));
}

}  // namespace
}  // namespace basalt::base
