#include "base/deterministic_scheduler.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace basalt::base {
namespace {

using Body = DeterministicScheduler::Body;

constexpr ScheduleStrategy kStrategies[] = {ScheduleStrategy::kUniform,
                                            ScheduleStrategy::kPriorities};

static_assert(sizeof(ScheduledAtomic<uint64_t>) == sizeof(std::atomic<uint64_t>));
static_assert(sizeof(ScheduledAtomic<bool>) == sizeof(std::atomic<bool>));

/// Which body made each step of a run of three that share a counter; `!` marks a weak
/// compare-exchange that failed.
std::string TraceOf(uint64_t seed, ScheduleStrategy strategy) {
  std::string trace;
  ScheduledAtomic<int> counter{0};
  std::vector<Body> bodies;
  for (const char name : {'a', 'b', 'c'}) {
    bodies.emplace_back([&, name] {
      for (int i = 0; i < 10; ++i) {
        int seen = counter.load();
        trace.push_back(name);
        while (!counter.compare_exchange_weak(seen, seen + 1)) trace.append({name, '!'});
        trace.push_back(name);
      }
    });
  }
  EXPECT_TRUE(DeterministicScheduler::Run(seed, bodies, {.strategy = strategy}));
  EXPECT_EQ(counter.load(), 30);
  return trace;
}

TEST(DeterministicScheduler, TheSameSeedGivesTheSameInterleaving) {
  for (const ScheduleStrategy strategy : kStrategies) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      EXPECT_EQ(TraceOf(seed, strategy), TraceOf(seed, strategy)) << seed;
    }
  }
}

TEST(DeterministicScheduler, DifferentSeedsGiveDifferentInterleavings) {
  std::set<std::string> uniform;
  std::set<std::string> by_priorities;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    uniform.insert(TraceOf(seed, ScheduleStrategy::kUniform));
    by_priorities.insert(TraceOf(seed, ScheduleStrategy::kPriorities));
  }
  EXPECT_EQ(uniform.size(), 100u);
  // Few switches, some of them after the end: many of these runs are alike.
  EXPECT_GT(by_priorities.size(), 50u);
}

TEST(DeterministicScheduler, SeedsAlternateBetweenTheStrategies) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(TraceOf(seed, ScheduleStrategy::kBySeed), TraceOf(seed, kStrategies[seed % 2]));
  }
}

TEST(DeterministicScheduler, BodiesTakeTurnsAndNeverRunAtOnce) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::atomic<int> inside{0};
    const Body body = [&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(inside.fetch_add(1), 0);
        inside.fetch_sub(1);
        DeterministicScheduler::Point();
      }
    };
    EXPECT_TRUE(DeterministicScheduler::Run(seed, {body, body, body, body}));
  }
}

TEST(DeterministicScheduler, ARunWithoutBodiesEnds) {
  EXPECT_TRUE(DeterministicScheduler::Run(1, {}));
}

TEST(DeterministicScheduler, OutsideARunAScheduledAtomicIsAnAtomic) {
  ScheduledAtomic<uint32_t> word{6};
  EXPECT_EQ(word.exchange(7), 6u);
  EXPECT_EQ(word.fetch_add(1, std::memory_order_relaxed), 7u);
  EXPECT_EQ(word.fetch_sub(4), 8u);
  EXPECT_EQ(word.fetch_or(3), 4u);
  EXPECT_EQ(word.fetch_and(6), 7u);
  EXPECT_EQ(word.fetch_xor(2), 6u);
  EXPECT_EQ(word.load(), 4u);
  uint32_t expected = 5;
  EXPECT_FALSE(word.compare_exchange_strong(expected, 9));
  EXPECT_EQ(expected, 4u);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(word.compare_exchange_weak(expected, i, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    expected = i;
  }
  ScheduledAtomic<const char*> text;
  EXPECT_EQ(text.load(), nullptr);
  text.store("ab");
  text.fetch_add(1);
  EXPECT_STREQ(text.load(), "b");
  DeterministicScheduler::Point();
  DeterministicScheduler::Yield();
}

/// Two or three bodies that count to the same number.
class SharedCount {
 public:
  MakeBodies Make(size_t bodies, const std::function<void(ScheduledAtomic<int>*)>& increment) {
    return [this, bodies, increment] {
      count_.store(0);
      return std::vector<Body>(bodies, [this, increment] {
        for (int i = 0; i < 5; ++i) increment(&count_);
      });
    };
  }
  int value() const { return count_.load(); }

 private:
  ScheduledAtomic<int> count_{0};
};

TEST(DeterministicScheduler, FindsALostUpdate) {
  for (const ScheduleStrategy strategy : kStrategies) {
    SharedCount count;
    const auto increment = [](ScheduledAtomic<int>* value) { value->store(value->load() + 1); };
    EXPECT_TRUE(FindInterleaving(50, 0, count.Make(2, increment),
                                 [&] { return count.value() != 10; }, {.strategy = strategy}));
  }
}

TEST(DeterministicScheduler, AnAtomicIncrementLosesNothing) {
  SharedCount count;
  ExploreInterleavings(1000, 0,
                       count.Make(3, [](ScheduledAtomic<int>* value) { value->fetch_add(1); }),
                       [&] { EXPECT_EQ(count.value(), 15); });
}

TEST(DeterministicScheduler, FindsALoopThatForgetsSpuriousFailures) {
  SharedCount count;
  const auto increment = [](ScheduledAtomic<int>* value) {
    int seen = value->load();
    value->compare_exchange_weak(seen, seen + 1);
  };
  EXPECT_TRUE(
      FindInterleaving(50, 0, count.Make(1, increment), [&] { return count.value() != 5; }));
}

/// Works for `steps` on what nobody else sees.
void Work(int steps) {
  ScheduledAtomic<int> own{0};
  for (int i = 0; i < steps; ++i) own.fetch_add(1);
}

/// A sequence lock whose reader forgets to look at the version again. It accepts a torn pair only
/// if it is interrupted after its look, and the writer in turn between its two stores.
struct SequenceLock {
  ScheduledAtomic<int> version{0};
  ScheduledAtomic<int> first{0};
  ScheduledAtomic<int> second{0};
  bool torn = false;

  void Write() {
    Work(20);
    version.fetch_add(1);
    first.store(1);
    second.store(1);
    version.fetch_add(1);
  }
  void Read() {
    if (version.load() % 2 != 0) return;
    const int seen = first.load();
    torn = seen != second.load();
  }
};

TEST(DeterministicScheduler, PrioritiesFindWhatNeedsTwoPreemptionsFarApart) {
  std::unique_ptr<SequenceLock> lock;
  const auto find = [&](ScheduleStrategy strategy) {
    return FindInterleaving(
        4000, 0,
        [&] {
          lock = std::make_unique<SequenceLock>();
          return std::vector<Body>{[&] { lock->Write(); }, [&] { lock->Read(); }};
        },
        [&] { return lock->torn; }, {.strategy = strategy});
  };
  EXPECT_TRUE(find(ScheduleStrategy::kPriorities));
  // The reader would have to be passed over more than 20 times in a row.
  EXPECT_FALSE(find(ScheduleStrategy::kUniform));
}

/// As plain as a lock can be: the wait has no hook for the scheduler.
template <template <class> class Atomic>
class SpinLock {
 public:
  void Lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      while (locked_.load(std::memory_order_relaxed)) {
      }
    }
  }
  void Unlock() { locked_.store(false, std::memory_order_release); }

 private:
  Atomic<bool> locked_{false};
};

TEST(DeterministicScheduler, ThreadsThatSpinLetOthersRun) {
  for (const ScheduleStrategy strategy : kStrategies) {
    SpinLock<ScheduledAtomic> lock;
    int count = 0;
    const Body body = [&] {
      for (int i = 0; i < 5; ++i) {
        lock.Lock();
        const int seen = count;
        Work(3);
        count = seen + 1;
        lock.Unlock();
      }
    };
    ExploreInterleavings(
        300, 0,
        [&] {
          count = 0;
          return std::vector<Body>{body, body, body};
        },
        [&] { EXPECT_EQ(count, 15); }, {.strategy = strategy, .steps_max = 20'000});
  }
}

TEST(DeterministicScheduler, AThreadThatYieldsLetsAnotherRunAtOnce) {
  for (const ScheduleStrategy strategy : kStrategies) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      // Not a ScheduledAtomic: only the call is a step.
      std::atomic<bool> ready{false};
      int yields = 0;
      const Body waits = [&] {
        for (; !ready.load(); ++yields) DeterministicScheduler::Yield();
      };
      EXPECT_TRUE(DeterministicScheduler::Run(seed, {waits, [&] { ready.store(true); }},
                                              {.strategy = strategy}));
      EXPECT_LE(yields, 1) << seed;
    }
  }
}

/// Two threads that each hold what the other one wants.
struct Deadlock {
  SpinLock<ScheduledAtomic> left;
  SpinLock<ScheduledAtomic> right;

  std::vector<Body> Bodies() {
    return {[this] { LockBoth(&left, &right); }, [this] { LockBoth(&right, &left); }};
  }
  static void LockBoth(SpinLock<ScheduledAtomic>* first, SpinLock<ScheduledAtomic>* second) {
    first->Lock();
    second->Lock();
    second->Unlock();
    first->Unlock();
  }
};

TEST(DeterministicScheduler, ADeadlockIsReportedWithItsSeed) {
  for (const ScheduleStrategy strategy : kStrategies) {
    const ScheduleOptions options{.strategy = strategy, .steps_max = 5000};
    std::optional<uint64_t> deadlocked_seed;
    // Whether it happens depends on the seed, so the failure is caught outside the search for it.
    testing::TestPartResultArray failures;
    for (uint64_t seed = 0; seed < 500 && !deadlocked_seed; ++seed) {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      auto deadlock = std::make_unique<Deadlock>();
      if (!DeterministicScheduler::Run(seed, deadlock->Bodies(), options)) deadlocked_seed = seed;
    }
    ASSERT_TRUE(deadlocked_seed);
    ASSERT_EQ(failures.size(), 1);
    const std::string message = failures.GetTestPartResult(0).message();
    EXPECT_NE(message.find("seed " + std::to_string(*deadlocked_seed) + " the bodies { 0, 1 }"),
              std::string::npos)
        << message;
    EXPECT_EQ(TraceOf(1, strategy), TraceOf(1, strategy)) << "after threads were left behind";
  }
}

TEST(DeterministicScheduler, AnExplorationStopsAtARunThatDoesNotEnd) {
  static int runs;
  runs = 0;
  EXPECT_NONFATAL_FAILURE(ExploreInterleavings(
                              10, 7,
                              [] {
                                ++runs;
                                return std::vector<Body>{[] {
                                  for (;;) DeterministicScheduler::Yield();
                                }};
                              },
                              [] { runs += 100; }, {.steps_max = 1000}),
                          "seed 7 the bodies { 0 } have not ended after 1000 steps");
  EXPECT_EQ(runs, 1);
}

TEST(DeterministicScheduler, ABodyThatThrowsFailsTheTestAndOthersGoOn) {
  static int ended;
  ended = 0;
  const auto run = [] {
    ScheduledAtomic<int> word{0};
    const Body works = [&] {
      for (int i = 0; i < 10; ++i) word.fetch_add(1);
      ++ended;
    };
    DeterministicScheduler::Run(6, {works, [] { throw std::runtime_error("no more"); }, works});
  };
  EXPECT_NONFATAL_FAILURE_ON_ALL_THREADS(run(), "It threw: no more");
  EXPECT_EQ(ended, 2);
}

TEST(DeterministicScheduler, AnExpectationThatFailsInABodyNamesSeedAndBody) {
  EXPECT_NONFATAL_FAILURE_ON_ALL_THREADS(
      DeterministicScheduler::Run(6, {[] {}, [] { EXPECT_EQ(1, 2); }}), "seed 6, body 1");
}

TEST(DeterministicSchedulerDeathTest, AnExplorationStopsWhereAnExpectationFails) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // In a process of its own: a test cannot both expect its failure and have failed.
  EXPECT_EXIT(
      {
        int runs = 0;
        ExploreInterleavings(
            10, 0, [] { return std::vector<Body>{[] {}}; }, [&] { EXPECT_LT(++runs, 4); });
        std::exit(runs);
      },
      testing::ExitedWithCode(4), "");
}

TEST(DeterministicSchedulerDeathTest, ABodyThatBlocksEndsTheProcessWhichNamesTheSeed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::promise<void> never;
  EXPECT_DEATH(DeterministicScheduler::Run(8, {[&] { never.get_future().wait(); }},
                                           {.blocked_seconds_max = 1}),
               "With seed 8 a body has made no step for 1 seconds after step 0");
}

}  // namespace
}  // namespace basalt::base
