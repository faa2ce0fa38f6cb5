#include "base/fork_generation.h"

#include <pthread.h>

#include <atomic>

#include "base/check.h"

namespace basalt::base {
namespace {

constinit std::atomic<uint64_t> fork_generation{0};

/// Runs in the child, in its only thread, before fork() returns there.
void RaiseGeneration() { fork_generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const bool kRegistered = [] {
  BASALT_CHECK(pthread_atfork(nullptr, nullptr, RaiseGeneration) == 0);
  return true;
}();

}  // namespace

uint64_t ForkGeneration() noexcept { return fork_generation.load(std::memory_order_relaxed); }

}  // namespace basalt::base
