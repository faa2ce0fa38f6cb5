#include "base/fork_generation.h"

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

// What is done at a fork(). A child has one thread, a copy of the one that forked. Whatever another
// thread was about to do to memory it has half done there, for good: a mutex that one held is never
// unlocked, an epoch that one was in never left.
//
// What belongs to the process as a whole has to work in a child all the same, for databases, caches
// and memtables of its own. So the thread that forks first takes the mutexes below, which cover all
// of that which is not lock-free; the child gets it in order, and lets them go as the parent does.
// Of the epochs' slots it keeps its own thread's.
//
// What belongs to one object is left alone: a child does not use an object that its parent made
// (see ForkGeneration). Locks on files have a handler of their own (io/posix_file_lock.cc).

namespace basalt::base {
namespace {

constinit std::atomic<uint64_t> fork_generation{0};

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
  fork_generation.fetch_add(1, std::memory_order_relaxed);
}

// As the library is loaded: by then the pools are made, so that no thread can be found making them.
[[maybe_unused]] const bool kRegistered = [] {
  Mutexes();
  BASALT_CHECK(pthread_atfork(LockAll, UnlockAll, BeginChild) == 0);
  return true;
}();

}  // namespace

uint64_t ForkGeneration() noexcept { return fork_generation.load(std::memory_order_relaxed); }

}  // namespace basalt::base
