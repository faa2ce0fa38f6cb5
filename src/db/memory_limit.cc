#include "db/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace basalt::db {

uint64_t MemoryLimit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  uint64_t limit = uint64_t{1} << 30;
  if (pages > 0 && page_bytes > 0) {
    limit = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  }
  // Version 2 of the interface says "max" for no limit, which leaves the number unread.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    uint64_t bytes = 0;
    if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);
  }
  return limit;
}

}  // namespace basalt::db
