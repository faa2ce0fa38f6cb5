#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "io/file_system.h"
#include "table/table_format.h"

namespace basalt::table {

/// Which blocks an iterator reads from the file, one after the other; from that, which ones it will
/// read next, and the hint to the file system to load them.
///
/// A block next to the one before it makes a run, forward or backward. A run is followed by a
/// window of bytes that are loaded ahead, moved on when half of it is used up, and each time
/// doubled. Runs that were short so load little in vain: at most about as much as they read.
class ReadAhead {
 public:
  static constexpr uint64_t kWindowBytesMin = uint64_t{32} << 10;
  static constexpr uint64_t kWindowBytesMax = uint64_t{1} << 20;

  /// Block `index`, which lies at `block`, is about to be read; blocks end at `data_end`.
  void Reading(const io::File& file, size_t index, BlockHandle block, uint64_t data_end) noexcept;

 private:
  void Widen() noexcept {
    window_bytes_ = std::clamp(2 * window_bytes_, kWindowBytesMin, kWindowBytesMax);
  }

  enum class Run : uint8_t { kNone, kForward, kBackward };
  Run run_ = Run::kNone;
  size_t last_ = SIZE_MAX - 1;  // no block is next to it
  uint64_t window_bytes_ = 0;
  uint64_t loaded_to_ = 0;  // the end of what has been asked for in the run's direction
};

}  // namespace basalt::table
