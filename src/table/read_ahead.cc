#include "table/read_ahead.h"

#include <algorithm>
#include <utility>

#include "table/stored_block.h"

namespace basalt::table {

void ReadAhead::Reading(const io::File& file, size_t index, BlockHandle block,
                        uint64_t data_end) noexcept {
  const size_t before = std::exchange(last_, index);
  const uint64_t end = block.offset + block.payload_bytes + kBlockTrailerBytes;
  const Run run = index == before + 1   ? Run::kForward
                  : index + 1 == before ? Run::kBackward
                                        : Run::kNone;
  if (run != run_) {
    run_ = run;
    window_bytes_ = 0;
    loaded_to_ = run == Run::kForward ? end : block.offset;
  }
  if (run == Run::kForward) {
    loaded_to_ = std::max(loaded_to_, end);
    if (loaded_to_ - end > window_bytes_ / 2) return;
    Widen();
    const uint64_t to = std::min(loaded_to_ + window_bytes_, data_end);
    if (to > loaded_to_) file.WillRead(loaded_to_, to - loaded_to_);
    loaded_to_ = to;
  } else if (run == Run::kBackward) {
    loaded_to_ = std::min(loaded_to_, block.offset);
    if (block.offset - loaded_to_ > window_bytes_ / 2) return;
    Widen();
    const uint64_t to = loaded_to_ - std::min(loaded_to_, window_bytes_);
    if (to < loaded_to_) file.WillRead(to, loaded_to_ - to);
    loaded_to_ = to;
  }
}

}  // namespace basalt::table
