#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "basalt/status.h"
#include "base/executor.h"

namespace basalt::base {

/// A fixed number of threads that run jobs in the order of their arrival. The queue has no bound of
/// its own: who schedules keeps at most a stated number of jobs waiting.
///
/// Threads share the queue with the pool object by a reference count, so that the pool may be
/// destroyed anywhere: on another thread the destructor waits until all jobs have run, those
/// included that jobs add meanwhile; on one of the pool's own threads it returns at once, and the
/// threads end by themselves after the last job. A job must not throw.
class ThreadPool final : public Executor {
 public:
  /// Starts `threads` (at least one) threads. Fewer when the system gives no more;
  /// ResourceExhausted when it gives none.
  static Result<std::unique_ptr<ThreadPool>> Create(size_t threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Takes a job; never blocks, never runs it inside the call. Any thread, jobs included.
  void Schedule(std::function<void()> job) override;
  /// Time that the machine sleeps does not count. Where the pool is destroyed before, the job is
  /// dropped.
  Timer ScheduleAfter(std::chrono::milliseconds delay, std::function<void()> job) override;
  bool Cancel(Timer timer) override;

  size_t thread_count() const noexcept { return threads_.size(); }

  /// The one pool of this process. The first call makes it, with `threads` threads; later calls
  /// give the same pool, whatever they ask for. It is never destroyed, so that databases that are
  /// closed by static destructors still have it. In a forked child the first call makes one anew:
  /// the parent's has no threads there.
  static Result<ThreadPool*> Shared(size_t threads);
  /// The same, another pool, whose threads have a low priority for the processor (10 more of
  /// `nice`): for long work that nobody waits for yet. What its jobs start inherits that.
  static Result<ThreadPool*> SharedOfLowPriority(size_t threads);
  /// Covers which pools those are. For the handlers of fork() alone.
  static std::mutex& SharedMutex() noexcept;

 private:
  struct Queue;
  enum class Priority : uint8_t { kNormal, kLow };
  ThreadPool();
  static Result<std::unique_ptr<ThreadPool>> Create(size_t threads, Priority priority);
  static Result<ThreadPool*> SharedOf(Priority priority, size_t threads);
  static std::function<void()> TakeJob(Queue* queue, std::unique_lock<std::mutex>& lock);
  static void RunJobs(const std::shared_ptr<Queue>& queue) noexcept;

  std::shared_ptr<Queue> queue_;
  std::vector<std::thread> threads_;
  uint64_t fork_count_;
};

}  // namespace basalt::base
