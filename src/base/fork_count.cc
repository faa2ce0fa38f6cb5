#include "base/fork_count.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>

#include "base/arena.h"
#include "base/asymmetric_fence.h"
#include "base/check.h"
#include "base/epoch.h"
#include "base/extent_pool.h"
#include "base/thread_pool.h"

// The fork handlers. A child has one thread, a copy of the forking one. Changes that other threads
// were making to memory stay half done there: a mutex that they held is never unlocked, an epoch
// that they were in never left.
//
// The state of the whole process must still work in a child, for databases, caches and memtables
// that the child creates. So the forking thread first takes the mutexes below, which cover all of
// this state that is not lock-free. The child gets it in a consistent state, and unlocks the
// mutexes as the parent does. It keeps only its own thread's epoch slot.
//
// The state of a single object is left alone: a child does not use an object that its parent made
// (see ForkCount). Locks on files have a handler of their own (io/posix_file_lock.cc).

namespace basalt::base {
namespace {

constinit std::atomic<uint64_t> fork_count{0};

/// In the order in which they may be taken together.
std::array<std::mutex*, 4> Mutexes() {
  return {&ThreadPool::SharedMutex(), &AsymmetricFence::mutex(), &ExtentPool::Process()->mutex(),
          &ChunkPool::Process()->mutex()};
}

void LockAll() {
  for (std::mutex* const mutex : Mutexes()) mutex->lock();
}

void UnlockAll() {
  for (std::mutex* const mutex : Mutexes()) mutex->unlock();
}

/// Runs in the child, in its only thread, before fork() returns there.
void BeginChild() {
  ChunkPool::Process()->ForgetJobOfParent();
  UnlockAll();
  internal::ForgetSlotsOfParent();
  fork_count.fetch_add(1, std::memory_order_relaxed);
}

// As the library is loaded: by then the pools are made, so that no thread can be found making them.
[[maybe_unused]] const bool kRegistered = [] {
  Mutexes();
  BASALT_CHECK(pthread_atfork(LockAll, UnlockAll, BeginChild) == 0);
  return true;
}();

}  // namespace

uint64_t ForkCount() noexcept { return fork_count.load(std::memory_order_relaxed); }

}  // namespace basalt::base
