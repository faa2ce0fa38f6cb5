#include "base/asymmetric_fence.h"

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/check.h"

namespace basalt::base {
namespace {

#ifdef __linux__
bool Membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

bool Register() noexcept { return Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

void FenceOfAllThreads() noexcept {
  if (Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // A kernel may forget the registration in a forked child.
  BASALT_CHECK(Register() && Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}
#else
bool Register() noexcept { return false; }

void FenceOfAllThreads() noexcept {}
#endif

}  // namespace

constinit std::atomic<bool> internal::fence_is_light{false};

std::mutex& AsymmetricFence::mutex() noexcept {
  static constinit std::mutex mutex;
  return mutex;
}

void AsymmetricFence::Prepare() noexcept {
  static constinit std::atomic<bool> is_asked{false};
  if (is_asked.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex());
  if (is_asked.load(std::memory_order_relaxed)) return;
  internal::fence_is_light.store(Register(), std::memory_order_relaxed);
  is_asked.store(true, std::memory_order_release);
}

void AsymmetricFence::Heavy() noexcept {
  Prepare();
  if (IsLight()) FenceOfAllThreads();
}

}  // namespace basalt::base
