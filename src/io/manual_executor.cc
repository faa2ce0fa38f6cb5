#include "io/manual_executor.h"

#include <utility>

namespace basalt::io {

void ManualExecutor::Schedule(std::function<void()> job) {
  const std::lock_guard guard(mutex_);
  jobs_.push_back(std::move(job));
}

ManualExecutor::Timer ManualExecutor::ScheduleAfter(std::chrono::milliseconds delay,
                                                    std::function<void()> job) {
  const std::lock_guard guard(mutex_);
  return timed_.Add(now_ + delay, std::move(job));
}

bool ManualExecutor::Cancel(Timer timer) {
  std::function<void()> cancelled;  // destroyed outside the lock
  const std::lock_guard guard(mutex_);
  cancelled = timed_.Take(timer);
  return cancelled != nullptr;
}

void ManualExecutor::Elapse(std::chrono::milliseconds time) {
  const std::lock_guard guard(mutex_);
  now_ += time;
  while (auto job = timed_.TakeDue(now_)) jobs_.push_back(std::move(job));
}

bool ManualExecutor::RunOne() {
  std::function<void()> job;
  {
    const std::lock_guard guard(mutex_);
    if (jobs_.empty()) return false;
    const uint64_t at = random_.has_value() ? random_->Below(jobs_.size()) : 0;
    const auto chosen = jobs_.begin() + static_cast<std::ptrdiff_t>(at);
    job = std::move(*chosen);
    jobs_.erase(chosen);
  }
  job();
  return true;
}

size_t ManualExecutor::RunAll() {
  size_t count = 0;
  while (RunOne()) ++count;
  return count;
}

size_t ManualExecutor::pending() const {
  const std::lock_guard guard(mutex_);
  return jobs_.size();
}

}  // namespace basalt::io
