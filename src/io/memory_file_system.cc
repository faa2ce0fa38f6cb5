#include "io/memory_file_system.h"

#include "io/sim_file_system.h"

namespace basalt::io {

std::unique_ptr<FileSystem> NewMemoryFileSystem() {
  return std::make_unique<SimFileSystem>(SimFileSystem::Durability::kIgnored);
}

}  // namespace basalt::io
