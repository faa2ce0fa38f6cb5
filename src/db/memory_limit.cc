#include "db/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "io/file_system.h"

namespace basalt::db {
namespace {

/// The number that the file begins with; 0: there is none, as where the file says "max".
uint64_t NumberIn(const char* path) {
  std::array<char, 32> text{};
  const auto file = io::FileSystem::Posix()->Open(path, io::OpenMode::kRead);
  const size_t size = file ? (*file)->ReadAt(0, text).value_or(0) : 0;
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + size, number);
  return number;
}

}  // namespace

uint64_t MemoryLimit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  uint64_t limit = uint64_t{1} << 30;
  if (pages > 0 && page_bytes > 0) {
    limit = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  }
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (const uint64_t bytes = NumberIn(path); bytes > 0) limit = std::min(limit, bytes);
  }
  return limit;
}

}  // namespace basalt::db
