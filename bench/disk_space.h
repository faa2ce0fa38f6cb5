#pragma once

#include <cstdint>
#include <string>

namespace basalt::bench {

/// What the files of a directory take on the disk, with space given to them in advance. Files may
/// come and go meanwhile.
uint64_t BytesOnDisk(const std::string& directory);

}  // namespace basalt::bench
