#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/executor.h"

namespace basalt::db {

/// Counts jobs that are scheduled or run. An object of its own, so that a job can say that it has
/// ended after it let go of everything else. Thread-safe.
class JobCount {
 public:
  void Begin();
  void End();
  /// Returns when the count is zero; runs jobs here when the executor wants that.
  void WaitForAll(base::Executor* executor);

 private:
  std::mutex mutex_;
  std::condition_variable none_left_;
  uint32_t count_ = 0;
};

}  // namespace basalt::db
