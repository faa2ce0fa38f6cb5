#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "base/executor.h"
#include "base/random.h"
#include "base/timed_jobs.h"

namespace basalt::io {

/// An executor without threads: jobs wait until somebody runs them, on the thread of that call, so
/// that a run replays. Thread-safe; jobs may schedule jobs, and run others. Jobs that are left are
/// dropped.
class ManualExecutor final : public base::Executor {
 public:
  /// Runs jobs in the order in which they came.
  ManualExecutor() = default;
  /// Draws the next job from those that wait.
  explicit ManualExecutor(uint64_t seed) : random_(seed) {}

  void Schedule(std::function<void()> job) override;
  /// Runs one job; false when none waits.
  bool RunOne() override;
  Timer ScheduleAfter(std::chrono::milliseconds delay, std::function<void()> job) override;
  bool Cancel(Timer timer) override;
  /// Lets time pass, which stands still otherwise: what becomes due is scheduled.
  void Elapse(std::chrono::milliseconds time);
  /// Runs jobs, also those scheduled meanwhile, until none waits. Gives their number.
  size_t RunAll();
  /// Jobs that wait to be run; those whose time has not come do not count.
  size_t pending() const;

 private:
  mutable std::mutex mutex_;  // Covers the rest; not held while a job runs.
  std::deque<std::function<void()>> jobs_;
  std::optional<base::Random> random_;
  base::TimedJobs<std::chrono::milliseconds> timed_;
  std::chrono::milliseconds now_{0};
};

}  // namespace basalt::io
