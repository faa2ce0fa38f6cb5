#include "shared_map/environment.h"

#include <algorithm>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/thread_pool.h"
#include "io/memory_file_system.h"

namespace basalt::shared_map {
namespace {

/// Of low priority: a compaction must not take processors from those who read and write meanwhile.
Result<base::Executor*> SharedExecutor() {
  const uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  BASALT_ASSIGN_OR_RETURN(base::ThreadPool* const pool,
                          base::ThreadPool::SharedOfLowPriority(std::clamp(cores - 1, 1U, 4U)));
  return static_cast<base::Executor*>(pool);
}

}  // namespace

Result<uint64_t> ReadBootId(io::FileSystem* fs) {
  constexpr size_t kBytes = 36;
  std::string text(kBytes, '\0');
  Status status;
  if (const auto file = fs->Open(kBootIdPath, io::OpenMode::kRead)) {
    status = (*file)->ReadExactAt(0, text);
  } else {
    status = file.error();
  }
  if (status.ok()) return base::Hash(text);
  return Status(StatusCode::kFailedPrecondition,
                std::string(status.message()) +
                    "; a shared map needs it, to know what is of before a restart of the machine: "
                    "mount /proc where this process sees it");
}

Result<Environment> Environment::System() {
  return base::OrOutOfMemory([]() -> Result<Environment> {
    Environment environment;
    environment.fs = io::FileSystem::Posix();
    BASALT_ASSIGN_OR_RETURN(environment.executor, SharedExecutor());
    BASALT_ASSIGN_OR_RETURN(environment.boot_id, ReadBootId(environment.fs));
    return environment;
  });
}

Result<Environment> Environment::Memory() {
  return base::OrOutOfMemory([]() -> Result<Environment> {
    Environment environment;
    environment.owned_fs = io::NewMemoryFileSystem();
    environment.fs = environment.owned_fs.get();
    BASALT_ASSIGN_OR_RETURN(environment.executor, SharedExecutor());
    environment.boot_id = 1;
    return environment;
  });
}

}  // namespace basalt::shared_map
