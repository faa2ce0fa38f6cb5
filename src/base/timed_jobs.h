#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/executor.h"

namespace basalt::base {

/// Jobs in the order in which they become due. Not thread-safe.
template <class Time>
class TimedJobs {
 public:
  using Job = std::function<void()>;

  Executor::Timer Add(Time due, Job job) {
    const Executor::Timer timer{++timers_};
    jobs_.emplace(std::pair(due, timer), std::move(job));
    return timer;
  }
  /// Null: it is not there any more. O(jobs).
  Job Take(Executor::Timer timer) {
    const auto place =
        std::ranges::find(jobs_, timer, [](const auto& entry) { return entry.first.second; });
    return place == jobs_.end() ? nullptr : std::move(jobs_.extract(place).mapped());
  }
  /// The first that is due; null: there is none.
  Job TakeDue(Time now) {
    if (jobs_.empty() || now < jobs_.begin()->first.first) return nullptr;
    return std::move(jobs_.extract(jobs_.begin()).mapped());
  }
  std::optional<Time> next_due() const {
    if (jobs_.empty()) return std::nullopt;
    return jobs_.begin()->first.first;
  }

 private:
  std::map<std::pair<Time, Executor::Timer>, Job> jobs_;
  uint64_t timers_ = 0;  // ever made
};

}  // namespace basalt::base
