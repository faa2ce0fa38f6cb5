#include "db/job_count.h"

namespace basalt::db {

void JobCount::Begin() {
  const std::scoped_lock lock(mutex_);
  ++count_;
}

void JobCount::End() {
  const std::scoped_lock lock(mutex_);
  if (--count_ == 0) none_left_.notify_all();
}

void JobCount::WaitForAll(base::Executor* executor) {
  std::unique_lock lock(mutex_);
  while (count_ > 0) {
    lock.unlock();
    const bool ran = executor->RunOne();
    lock.lock();
    if (!ran) none_left_.wait(lock, [&] { return count_ == 0; });
  }
}

}  // namespace basalt::db
