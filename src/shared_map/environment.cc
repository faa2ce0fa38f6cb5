#include "shared_map/environment.h"

#include <algorithm>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "io/memory_file_system.h"

namespace basalt::shared_map {
namespace {

/// Of low priority: a fold must not take processors from those who read and write meanwhile.
Result<base::Executor*> SharedExecutor() {
  const uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  BASALT_ASSIGN_OR_RETURN(base::ThreadPool* const pool,
                          base::ThreadPool::SharedOfLowPriority(std::clamp(cores - 1, 1U, 4U)));
  return static_cast<base::Executor*>(pool);
}

/// Without a /proc to ask, no two processes agree: readers then build indexes of their own.
uint64_t SystemBootId() {
  auto file = io::FileSystem::Posix()->Open("/proc/sys/kernel/random/boot_id", io::OpenMode::kRead);
  if (!file) return base::RandomSeed();
  std::string text(36, '\0');
  const Result<size_t> read = (*file)->ReadAt(0, text);
  if (!read || *read != text.size()) return base::RandomSeed();
  return base::Hash(text);
}

}  // namespace

Result<Environment> Environment::System() {
  Environment environment;
  environment.fs = io::FileSystem::Posix();
  BASALT_ASSIGN_OR_RETURN(environment.executor, SharedExecutor());
  environment.boot_id = SystemBootId();
  return environment;
}

Result<Environment> Environment::Memory() {
  Environment environment;
  environment.owned_fs = io::NewMemoryFileSystem();
  environment.fs = environment.owned_fs.get();
  BASALT_ASSIGN_OR_RETURN(environment.executor, SharedExecutor());
  environment.boot_id = 1;
  return environment;
}

}  // namespace basalt::shared_map
