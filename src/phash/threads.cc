#include "phash/threads.h"

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace basalt::phash {

void RunOnThreads(uint32_t count, const std::function<void(uint32_t thread)>& work,
                  const std::function<void()>& stop) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](uint32_t thread) noexcept {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
      stop();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (uint32_t thread = 1; thread < count; ++thread) {
      try {
        threads.emplace_back(run, thread);
      } catch (const std::system_error&) {
        break;
      }
    }
    run(0);
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace basalt::phash
