#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace basalt::base {

/// Runs jobs in the background. Injected, so that a test can run every job from its own seed.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Takes a job; it runs later, exactly once, on some thread, never inside this call.
  virtual void Schedule(std::function<void()> job) = 0;

  /// Of a job that waits for its time.
  enum class Timer : uint64_t { kNone = 0 };

  /// Takes a job that is scheduled once `delay` has passed. kNone: it was dropped, since this
  /// executor knows no time.
  virtual Timer ScheduleAfter([[maybe_unused]] std::chrono::milliseconds delay,
                              std::function<void()> job) {
    job = nullptr;
    return Timer::kNone;
  }
  /// Drops a job whose time has not come. False: it has come, the job runs or has run.
  virtual bool Cancel([[maybe_unused]] Timer timer) { return false; }

  /// Called by whoever is about to wait for a job: an executor without threads of its own runs one
  /// job here and answers true; others answer false at once.
  virtual bool RunOne() { return false; }
};

}  // namespace basalt::base
