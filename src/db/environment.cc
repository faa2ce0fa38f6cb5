#include "db/environment.h"

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/thread_pool.h"

namespace basalt::db {

Result<Environment> Environment::System(uint32_t background_threads) {
  const uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  const uint32_t threads =
      background_threads != 0 ? background_threads : std::clamp(cores - 1, 1U, 4U);
  BASALT_ASSIGN_OR_RETURN(base::ThreadPool* const pool, base::ThreadPool::Shared(threads));
  Environment environment;
  io::RaiseDescriptorLimit();
  environment.fs = io::FileSystem::Posix();
  environment.descriptors = io::DescriptorPool::Process();
  environment.clock = io::Clock::System();
  environment.executor = pool;
  return environment;
}

}  // namespace basalt::db
