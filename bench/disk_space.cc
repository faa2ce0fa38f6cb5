#include "bench/disk_space.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace basalt::bench {

uint64_t BytesOnDisk(const std::string& directory) {
  constexpr uint64_t kStatBlockBytes = 512;
  uint64_t bytes = 0;
  std::error_code gone;
  std::filesystem::recursive_directory_iterator entry(directory, gone);
  for (; !gone && entry != std::filesystem::recursive_directory_iterator(); entry.increment(gone)) {
    struct stat status{};
    if (stat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      bytes += static_cast<uint64_t>(status.st_blocks) * kStatBlockBytes;
    }
  }
  return bytes;
}

}  // namespace basalt::bench
