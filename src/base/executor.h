#pragma once

#include <functional>

namespace basalt::base {

/// Runs jobs in the background. Injected, so that a test can run every job from its own seed.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Takes a job; it runs later, exactly once, on some thread, never inside this call.
  virtual void Schedule(std::function<void()> job) = 0;

  /// Called by whoever is about to wait for a job: an executor without threads of its own runs one
  /// job here and answers true; others answer false at once.
  virtual bool RunOne() { return false; }
};

}  // namespace basalt::base
