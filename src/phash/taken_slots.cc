#include "phash/taken_slots.h"

#include <algorithm>

namespace basalt::phash {

TakenSlots::TakenSlots(const LevelShape& shape) : shape_(shape) {
  uint64_t span = 0;
  for (uint64_t chunk = 0; chunk < shape_.chunks(); ++chunk) {
    span = std::max(span, shape_.FirstSliceBegin(chunk + 1) + shape_.slice() - Origin(chunk));
  }
  // One block more: what is shared with the next chunk are whole blocks.
  chunk_blocks_ = span / kBlockSlots + 2 + kBlocksBefore + kBlocksBehind;
  words_.resize(kBlockWords * chunk_blocks_ * shape_.chunks());
}

std::span<uint64_t> TakenSlots::SharedWithPrevious(uint64_t chunk) noexcept {
  const uint64_t slots = shape_.FirstSliceBegin(chunk) + shape_.slice() - Origin(chunk);
  return {Words(chunk), kBlockWords * ((slots + kBlockSlots - 1) / kBlockSlots)};
}

std::span<uint64_t> TakenSlots::SharedWithNext(uint64_t chunk) noexcept {
  const uint64_t before = (Origin(chunk + 1) - Origin(chunk)) / kBlockSlots;
  return {Words(chunk) + kBlockWords * before, SharedWithPrevious(chunk + 1).size()};
}

void TakenSlots::AskNext(uint64_t chunk) noexcept {
  const std::span<uint64_t> to = SharedWithNext(chunk);
  const std::span<uint64_t> from = SharedWithPrevious(chunk + 1);
  for (size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
}

void TakenSlots::TellNext(uint64_t chunk) noexcept {
  const std::span<uint64_t> from = SharedWithNext(chunk);
  const std::span<uint64_t> to = SharedWithPrevious(chunk + 1);
  for (size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
}

void TakenSlots::AppendHoles(uint64_t chunk, std::vector<uint64_t>* holes) const {
  const uint64_t origin = Origin(chunk);
  const uint64_t begin = chunk == 0 ? 0 : shape_.FirstSliceBegin(chunk);
  const uint64_t end =
      chunk + 1 == shape_.chunks() ? shape_.keys() : shape_.FirstSliceBegin(chunk + 1);
  const uint64_t* const words =
      words_.data() + kBlockWords * (chunk * chunk_blocks_ + kBlocksBefore);
  const auto append = [&](uint64_t slot) {
    if (slot >= begin && slot < end) holes->push_back(slot);
  };
  for (uint64_t block = 0; origin + block * kBlockSlots < end; ++block) {
    const uint64_t first = origin + block * kBlockSlots;
    const uint64_t* const word = words + block * kBlockWords;
    if (shape_.dense()) {
      for (uint64_t i = 0; i < kBlockWords; ++i) {
        for (uint64_t free = ~word[i]; free != 0; free &= free - 1) {
          append(first + 64 * i + static_cast<uint64_t>(std::countr_zero(free)));
        }
      }
      continue;
    }
    for (uint64_t free = ~(word[0] & word[1] & word[2] & word[3]); free != 0; free &= free - 1) {
      const auto bit = static_cast<uint64_t>(std::countr_zero(free));
      for (uint64_t i = 0; i < kBlockWords; ++i) {
        if ((word[i] >> bit & 1) == 0) append(first + 4 * bit + i);
      }
    }
  }
}

}  // namespace basalt::phash
