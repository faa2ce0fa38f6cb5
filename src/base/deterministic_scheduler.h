#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"

// For tests of lock-free code: threads that interleave as a seed says, the same way every time.
//
// A structure written as `template <template <class> class Atomic>` is instantiated with
// ScheduledAtomic and used by a few bodies. Each body has a thread of its own, of which exactly one
// runs at any time. Before each operation on a ScheduledAtomic the running thread asks the schedule
// who is next, and hands the turn over: it wakes that thread and sleeps. So a run is a function of
// its seed, as long as the bodies depend on nothing else (clocks, addresses, other threads).
//
//   std::unique_ptr<Stack<ScheduledAtomic>> stack;
//   ExploreInterleavings(
//       10'000, 1,
//       [&] {
//         stack = std::make_unique<Stack<ScheduledAtomic>>();
//         return std::vector<DeterministicScheduler::Body>{[&] { stack->Push(1); },
//                                                          [&] { stack->Pop(); }};
//       },
//       [&] { EXPECT_LE(stack->size(), 1u); });
//
// Schedules
//
//   uniform ..... any thread that has not ended, with the same chance at each step. Finds what
//                 needs many switches.
//   priorities .. the thread of the highest priority runs, until one of a few steps chosen
//                 beforehand, at which the running one is lowered (Burckhardt et al., "A Randomized
//                 Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010). With n
//                 threads and k steps, what d such switches bring about is met with a chance of the
//                 order of 1 / (n k^d), even where it is hopeless under the uniform one. k is not
//                 known beforehand: the seed chooses what is assumed, from 16 to 4096, and d up
//                 to 4.
//
// Waiting. A loop that spins on loads or compare-exchanges needs nothing special: each is a step,
// and a thread that made kSpinSteps of them in a row is lowered below all others. Yield() says so
// at once. A body that waits for another one by other means (a mutex, std::atomic::wait, a spin
// lock made of std::atomic) never hands over the turn: the process ends after some seconds and
// names the seed.
//
// Limits. Only sequentially consistent executions are explored: memory orders are passed on, but
// what a weak one permits beyond that does not show, and since each handover is a happens-before
// edge, ThreadSanitizer does not see it either. Plain memory accesses belong to the operation
// before them: a Point() between them lets others run there. Schedules are sampled, not enumerated.
//
// Cost. A step that goes on with the same thread: some 10 ns. A handover: a futex wake and a
// context switch, 2 to 3 us; the threads are bound to one processor, since waking another takes
// three times as long. Threads are kept for later runs.

namespace basalt::base {

enum class ScheduleStrategy : uint8_t {
  kBySeed,  ///< Even seeds are uniform, odd ones go by priorities.
  kUniform,
  kPriorities,
};

struct ScheduleOptions {
  ScheduleStrategy strategy = ScheduleStrategy::kBySeed;
  uint64_t steps_max = 1'000'000;     ///< A run of more steps has failed: it does not end.
  uint32_t blocked_seconds_max = 20;  ///< Between two steps; then the process ends.
};

/// Decides who runs next. Knows threads by their index only.
class Schedule {
 public:
  static constexpr uint64_t kSpinSteps = 256;

  Schedule(uint64_t seed, ScheduleStrategy strategy, size_t threads)
      : random_(seed),
        uniform_(strategy == ScheduleStrategy::kUniform ||
                 (strategy == ScheduleStrategy::kBySeed && seed % 2 == 0)) {
    const uint64_t steps_assumed = uint64_t{16} << (2 * random_.Below(5));
    lowered_at_.resize(random_.Between(1, 4));
    for (uint64_t& step : lowered_at_) step = random_.Between(1, steps_assumed);
    for (size_t i = 0; i < threads; ++i) {
      running_.push_back(i);
      priorities_.push_back(static_cast<int64_t>(lowered_at_.size() + i));
    }
    for (size_t i = threads; i > 1; --i) {
      std::swap(priorities_[i - 1], priorities_[random_.Below(i)]);
    }
  }

  /// Those that have not ended; not empty for the calls below.
  const std::vector<size_t>& running() const { return running_; }

  /// Who starts, or goes on when a thread has ended.
  size_t Choose() {
    steps_in_a_row_ = 0;
    return uniform_ ? running_[random_.Below(running_.size())] : Highest();
  }

  /// Who makes the next step after `current`, which waits for others if it `yields`.
  size_t Next(size_t current, bool yields) {
    if (uniform_) {
      const size_t others = running_.size() - 1;
      if (!yields || others == 0) return Choose();
      const size_t other = running_[random_.Below(others)];
      return other == current ? running_.back() : other;
    }
    ++step_;
    // As in the paper: the i-th lowering gives the i-th priority from below, whenever it comes.
    int64_t& priority = priorities_[current];
    for (size_t i = 0; i < lowered_at_.size(); ++i) {
      if (lowered_at_[i] == step_) priority = std::min(priority, static_cast<int64_t>(i));
    }
    if (yields || ++steps_in_a_row_ == kSpinSteps) {
      priority = --priority_lowest_;
      steps_in_a_row_ = 0;
    }
    const size_t next = Highest();
    if (next != current) steps_in_a_row_ = 0;
    return next;
  }

  void End(size_t thread) { std::erase(running_, thread); }

  bool FailsSpuriously() { return random_.OneIn(16); }

 private:
  size_t Highest() const {
    return *std::ranges::max_element(running_, {}, [this](size_t i) { return priorities_[i]; });
  }

  Random random_;
  const bool uniform_;
  std::vector<size_t> running_;
  std::vector<int64_t> priorities_;
  std::vector<uint64_t> lowered_at_;  ///< At which steps the running thread is lowered.
  int64_t priority_lowest_ = 0;
  uint64_t step_ = 0;
  uint64_t steps_in_a_row_ = 0;
};

/// Runs bodies as threads that take turns.
class DeterministicScheduler {
 public:
  using Body = std::function<void()>;

  /// Runs `bodies` until all have ended; the same seed gives the same interleaving. Expectations
  /// that fail in a body name the seed; so does the failure when a body throws, or when the run
  /// exceeds its steps. In the latter case the threads are left asleep for ever, what they use may
  /// be destroyed, and the result is false. Not from a body; calls from several threads wait for
  /// each other.
  static bool Run(uint64_t seed, const std::vector<Body>& bodies,
                  const ScheduleOptions& options = {}) {
    BASALT_CHECK(self == nullptr);
    if (bodies.empty()) return true;
    const std::lock_guard<std::mutex> lock(Threads().mutex);
    return DeterministicScheduler(seed, bodies.size(), options).RunBodies(bodies);
  }

  /// A scheduling point. Nothing happens in a thread that is not scheduled.
  static void Point() noexcept {
    if (self != nullptr) self->scheduler->Step(self, false);
  }

  /// A scheduling point of a thread that waits for another one.
  static void Yield() noexcept {
    if (self != nullptr) self->scheduler->Step(self, true);
  }

  /// Whether the schedule wants a weak compare-exchange to fail here.
  static bool FailsSpuriously() noexcept {
    return self != nullptr && self->scheduler->schedule_.FailsSpuriously();
  }

 private:
  /// Given once for each time that it is taken; what was done before giving it happens before what
  /// is done after taking it.
  class Turn {
   public:
    Turn() { BASALT_CHECK(sem_init(&semaphore_, 0, 0) == 0); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    void Give() noexcept { BASALT_CHECK(sem_post(&semaphore_) == 0); }
    void Take() noexcept {
      while (sem_wait(&semaphore_) != 0) BASALT_CHECK(errno == EINTR);
    }
    /// False if it was not given within about that time.
    bool TakeWithin(uint32_t seconds) noexcept {
      timespec deadline{};
      clock_gettime(CLOCK_REALTIME, &deadline);
      deadline.tv_sec += seconds;
      while (sem_timedwait(&semaphore_, &deadline) != 0) {
        if (errno == ETIMEDOUT) return false;
        BASALT_CHECK(errno == EINTR);
      }
      return true;
    }

   private:
    sem_t semaphore_;
  };

  struct Thread {
    Turn turn;
    DeterministicScheduler* scheduler = nullptr;
    const Body* body = nullptr;
    size_t index = 0;
  };

  /// Never destroyed: its threads sleep until the process ends.
  struct ThreadCache {
    ThreadCache() { CPU_SET(static_cast<size_t>(std::max(0, sched_getcpu())), &processor); }
    std::mutex mutex;  ///< Held during a run.
    std::vector<Thread*> idle;
    cpu_set_t processor{};
    Turn caller;
  };

  static ThreadCache& Threads() {
    static auto* threads = new ThreadCache;
    return *threads;
  }

  DeterministicScheduler(uint64_t seed, size_t threads, const ScheduleOptions& options)
      : seed_(seed),
        steps_max_(options.steps_max),
        blocked_seconds_max_(options.blocked_seconds_max),
        schedule_(seed, options.strategy, threads) {}

  bool RunBodies(const std::vector<Body>& bodies) {
    std::vector<Thread*>& idle = Threads().idle;
    while (idle.size() < bodies.size()) {
      auto* thread = new Thread;
      idle.push_back(thread);
      std::thread server([thread] { Serve(thread); });
      // Where it may not be bound it is only slower.
      pthread_setaffinity_np(server.native_handle(), sizeof(cpu_set_t), &Threads().processor);
      server.detach();
    }
    for (size_t i = 0; i < bodies.size(); ++i) {
      idle[i]->scheduler = this;
      idle[i]->body = &bodies[i];
      idle[i]->index = i;
    }
    threads_.assign(idle.begin(), idle.begin() + static_cast<ptrdiff_t>(bodies.size()));
    threads_[schedule_.Choose()]->turn.Give();
    AwaitEnd();
    if (schedule_.running().empty()) return true;
    for (size_t i : schedule_.running()) std::erase(idle, threads_[i]);
    ADD_FAILURE() << "With seed " << seed_ << " the bodies "
                  << testing::PrintToString(schedule_.running()) << " have not ended after "
                  << steps_max_ << " steps: they wait for each other, or for nothing.";
    return false;
  }

  /// Returns when all bodies have ended or the steps are used up.
  void AwaitEnd() {
    for (uint64_t steps_before = 0; !Threads().caller.TakeWithin(blocked_seconds_max_);) {
      const uint64_t steps = steps_.load(std::memory_order_relaxed);
      if (std::exchange(steps_before, steps) != steps) continue;
      std::cerr << "With seed " << seed_ << " a body has made no step for " << blocked_seconds_max_
                << " seconds after step " << steps
                << ": it waits outside the scheduler, for example for a mutex.\n";
      std::abort();
    }
  }

  [[noreturn]] static void Serve(Thread* thread) {
    self = thread;
    for (;;) {
      thread->turn.Take();
      thread->scheduler->RunBody(*thread);
    }
  }

  void RunBody(const Thread& thread) {
    {
      const testing::ScopedTrace trace(
          __FILE__, __LINE__,
          "seed " + std::to_string(seed_) + ", body " + std::to_string(thread.index));
      try {
        (*thread.body)();
      } catch (const std::exception& exception) {
        ADD_FAILURE() << "It threw: " << exception.what();
      } catch (...) {
        ADD_FAILURE() << "It threw something that is not a std::exception.";
      }
    }
    schedule_.End(thread.index);
    Turn* next =
        schedule_.running().empty() ? &Threads().caller : &threads_[schedule_.Choose()]->turn;
    next->Give();  // From here on the scheduler may be gone.
  }

  void Step(Thread* thread, bool yields) noexcept {
    const uint64_t step = steps_.load(std::memory_order_relaxed) + 1;
    steps_.store(step, std::memory_order_relaxed);
    if (step > steps_max_) SleepForEver(thread);
    Thread* next = threads_[schedule_.Next(thread->index, yields)];
    if (next == thread) return;
    next->turn.Give();
    thread->turn.Take();
  }

  /// Gives the turn to the caller, which forgets the threads that have not ended.
  [[noreturn]] static void SleepForEver(Thread* thread) noexcept {
    Threads().caller.Give();
    for (;;) thread->turn.Take();
  }

  static inline constinit thread_local Thread* self = nullptr;

  // Used by the one that has the turn.
  const uint64_t seed_;
  const uint64_t steps_max_;
  const uint32_t blocked_seconds_max_;
  Schedule schedule_;
  std::vector<Thread*> threads_;
  std::atomic<uint64_t> steps_{0};  ///< The caller reads it while it waits.
};

/// A std::atomic of which each operation is a scheduling point; in a thread that is not scheduled,
/// for example before and after a run, it is only a std::atomic. Weak compare-exchanges fail
/// spuriously now and then.
template <class T>
class ScheduledAtomic {
 public:
  using Operand = std::conditional_t<std::is_pointer_v<T>, ptrdiff_t, T>;

  constexpr ScheduledAtomic() noexcept = default;
  constexpr ScheduledAtomic(T value) noexcept : value_(value) {}

  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    DeterministicScheduler::Point();
    return value_.load(order);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    value_.store(value, order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    return value_.exchange(value, order);
  }
  T fetch_add(Operand value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    return value_.fetch_add(value, order);
  }
  T fetch_sub(Operand value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    return value_.fetch_sub(value, order);
  }
  T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    return value_.fetch_and(value, order);
  }
  T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    return value_.fetch_or(value, order);
  }
  T fetch_xor(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    DeterministicScheduler::Point();
    return value_.fetch_xor(value, order);
  }
  /// `orders`: none, one, or one for success and one for failure.
  template <class... Orders>
  bool compare_exchange_strong(T& expected, T value, Orders... orders) noexcept {
    DeterministicScheduler::Point();
    return value_.compare_exchange_strong(expected, value, orders...);
  }
  template <class... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) noexcept {
    DeterministicScheduler::Point();
    if (!DeterministicScheduler::FailsSpuriously()) {
      return value_.compare_exchange_weak(expected, value, orders...);
    }
    expected = value_.load();
    return false;
  }

 private:
  std::atomic<T> value_{};
};

/// The bodies of one run, on a fresh state.
using MakeBodies = std::function<std::vector<DeterministicScheduler::Body>()>;

/// Runs `make_bodies()` and then `check()` for `count` seeds from `first_seed` up, until an
/// expectation fails, in whatever thread; that names the seed.
inline void ExploreInterleavings(uint64_t count, uint64_t first_seed, const MakeBodies& make_bodies,
                                 const std::function<void()>& check,
                                 const ScheduleOptions& options = {}) {
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (!DeterministicScheduler::Run(seed, make_bodies(), options)) return;
    check();
    if (testing::Test::HasFailure()) return;
  }
}

/// The first of these seeds after whose run `found()` holds: shows that a test can fail.
inline std::optional<uint64_t> FindInterleaving(uint64_t count, uint64_t first_seed,
                                                const MakeBodies& make_bodies,
                                                const std::function<bool()>& found,
                                                const ScheduleOptions& options = {}) {
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    if (!DeterministicScheduler::Run(seed, make_bodies(), options)) return std::nullopt;
    if (found()) return seed;
  }
  return std::nullopt;
}

}  // namespace basalt::base
