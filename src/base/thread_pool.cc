#include "base/thread_pool.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/fork_count.h"
#include "base/timed_jobs.h"

namespace basalt::base {

struct ThreadPool::Queue {
  using Clock = std::chrono::steady_clock;

  std::mutex mutex;  // Covers the rest.
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  TimedJobs<Clock::time_point> timed;
  bool ending = false;  // Threads end once there are no jobs.
};

namespace {

/// The queue whose jobs this thread runs; null on threads of others.
constinit thread_local const void* queue_of_this_thread = nullptr;

/// On Linux a thread has a priority of its own. Where it does not become lower, the work is done
/// all the same.
void LowerPriorityOfThisThread() noexcept {
  constexpr int kNicer = 10;
  const int nice = getpriority(PRIO_PROCESS, 0);
  static_cast<void>(setpriority(PRIO_PROCESS, 0, nice + kNicer));
}

}  // namespace

ThreadPool::ThreadPool() : queue_(std::make_shared<Queue>()), fork_count_(ForkCount()) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(size_t threads) {
  return Create(threads, Priority::kNormal);
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(size_t threads, Priority priority) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  threads = std::max<size_t>(threads, 1);
  pool->threads_.reserve(threads);
  while (pool->threads_.size() < threads) {
    try {
      pool->threads_.emplace_back([queue = pool->queue_, priority] {
        if (priority == Priority::kLow) LowerPriorityOfThisThread();
        RunJobs(queue);
      });
    } catch (const std::system_error& error) {
      if (!pool->threads_.empty()) break;
      return Status(StatusCode::kResourceExhausted,
                    std::string("start a background thread: ") + error.what() +
                        "; raise the limit on threads or stop some");
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  if (fork_count_ != ForkCount()) {
    // The threads are the parent's, and one of them may have held the mutex when it forked. Nothing
    // here can be joined or locked, so it is left as it is.
    new std::vector<std::thread>(std::move(threads_));
    return;
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ending = true;
  }
  queue_->changed.notify_all();
  const bool own_thread = queue_of_this_thread == queue_.get();
  for (std::thread& thread : threads_) {
    if (own_thread) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void ThreadPool::Schedule(std::function<void()> job) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->jobs.push_back(std::move(job));
  }
  queue_->changed.notify_one();
}

ThreadPool::Timer ThreadPool::ScheduleAfter(std::chrono::milliseconds delay,
                                            std::function<void()> job) {
  Timer timer;
  {
    const std::lock_guard lock(queue_->mutex);
    timer = queue_->timed.Add(Queue::Clock::now() + delay, std::move(job));
  }
  // Whoever waits has to wait for this one from now on: the thread that is woken for a job that
  // comes next may be busy with it for long.
  queue_->changed.notify_all();
  return timer;
}

bool ThreadPool::Cancel(Timer timer) {
  std::function<void()> cancelled;  // destroyed outside the lock
  const std::lock_guard lock(queue_->mutex);
  cancelled = queue_->timed.Take(timer);
  return cancelled != nullptr;
}

/// Waits for a job; null: the pool ends.
std::function<void()> ThreadPool::TakeJob(Queue* queue, std::unique_lock<std::mutex>& lock) {
  while (true) {
    const std::optional<Queue::Clock::time_point> due = queue->timed.next_due();
    if (due && !queue->ending) {
      if (auto job = queue->timed.TakeDue(Queue::Clock::now()); job != nullptr) return job;
    }
    if (!queue->jobs.empty()) {
      std::function<void()> job = std::move(queue->jobs.front());
      queue->jobs.pop_front();
      return job;
    }
    if (queue->ending) return nullptr;
    if (due) {
      queue->changed.wait_until(lock, *due);
    } else {
      queue->changed.wait(lock);
    }
  }
}

void ThreadPool::RunJobs(const std::shared_ptr<Queue>& queue) noexcept {
  queue_of_this_thread = queue.get();
  std::unique_lock lock(queue->mutex);
  while (true) {
    std::function<void()> job = TakeJob(queue.get(), lock);
    if (job == nullptr) return;
    lock.unlock();
    job();
    job = nullptr;  // What the job holds is destroyed outside the lock.
    lock.lock();
  }
}

std::mutex& ThreadPool::SharedMutex() noexcept {
  static constinit std::mutex mutex;
  return mutex;
}

Result<ThreadPool*> ThreadPool::SharedOf(Priority priority, size_t threads) {
  static constinit std::array<ThreadPool*, 2> pools = {};
  const std::lock_guard lock(SharedMutex());
  ThreadPool*& shared = pools[static_cast<size_t>(priority)];
  // The threads of a parent are not those of its child.
  if (shared == nullptr || shared->fork_count_ != ForkCount()) {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool, Create(threads, priority));
    shared = pool.release();
  }
  return shared;
}

Result<ThreadPool*> ThreadPool::Shared(size_t threads) {
  return SharedOf(Priority::kNormal, threads);
}

Result<ThreadPool*> ThreadPool::SharedOfLowPriority(size_t threads) {
  return SharedOf(Priority::kLow, threads);
}

}  // namespace basalt::base
