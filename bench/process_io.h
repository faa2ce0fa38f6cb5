#pragma once

#include <cstdint>

namespace basalt::bench {

/// What this process has written so far, by /proc/self/io.
struct ProcessIo {
  uint64_t call_bytes = 0;  ///< Given to write() and its like.
  /// Of pages made dirty, by calls or through mappings, which is what goes to the disk unless its
  /// file is gone before. A page that changes again before it was written back counts once.
  uint64_t page_bytes = 0;
};

ProcessIo ReadProcessIo();

}  // namespace basalt::bench
