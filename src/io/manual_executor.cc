#include "io/manual_executor.h"

#include <algorithm>
#include <utility>

namespace basalt::io {

void ManualExecutor::Schedule(std::function<void()> job) {
  const std::lock_guard guard(mutex_);
  jobs_.push_back(std::move(job));
}

ManualExecutor::Timer ManualExecutor::ScheduleAfter(std::chrono::milliseconds delay,
                                                    std::function<void()> job) {
  const std::lock_guard guard(mutex_);
  const Timer timer{++timers_};
  timed_.emplace(std::pair(now_ + delay, timer), std::move(job));
  return timer;
}

bool ManualExecutor::Cancel(Timer timer) {
  decltype(timed_)::node_type cancelled;  // destroyed outside the lock
  const std::lock_guard guard(mutex_);
  const auto place =
      std::ranges::find(timed_, timer, [](const auto& entry) { return entry.first.second; });
  if (place == timed_.end()) return false;
  cancelled = timed_.extract(place);
  return true;
}

void ManualExecutor::Elapse(std::chrono::milliseconds time) {
  const std::lock_guard guard(mutex_);
  now_ += time;
  while (!timed_.empty() && timed_.begin()->first.first <= now_) {
    jobs_.push_back(std::move(timed_.extract(timed_.begin()).mapped()));
  }
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
