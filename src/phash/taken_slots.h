#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "phash/level_shape.h"

namespace basalt::phash {

/// Which slots of a level are taken, chunk by chunk: some 32 KiB each, of which placing
/// touches the few hundred bytes around the present bucket. Each chunk's slots begin at its origin,
/// a multiple of a block; those behind its own that its last slices reach are there twice, here and
/// in the next chunk.
///
/// A block is 256 slots in 4 words. Under dense seeds slot s is bit s; under shift seeds word c of
/// a block has the slots with s % 4 == c, because a shift moves keys by 4: 64 shifts are 64 bits in
/// a row.
///
/// Distinct chunks may be used by distinct threads; when all are done, so may AskNext and TellNext.
class TakenSlots {
 public:
  static constexpr uint64_t kBlockSlots = 256;
  static constexpr uint64_t kBlockWords = 4;

  /// Throws std::bad_alloc.
  explicit TakenSlots(const LevelShape& shape);

  /// The slot that a chunk's words begin with.
  uint64_t Origin(uint64_t chunk) const noexcept {
    return shape_.FirstSliceBegin(chunk) / kBlockSlots * kBlockSlots;
  }
  /// Whoever reads windows of slots may read kBlocksBefore blocks before, and kBlocksBehind blocks
  /// behind what slices reach.
  uint64_t* Words(uint64_t chunk) noexcept {
    return words_.data() + kBlockWords * (chunk * chunk_blocks_ + kBlocksBefore);
  }

  /// Lets `chunk` know what of the slots behind its own is taken, and TellNext the next chunk.
  void AskNext(uint64_t chunk) noexcept;
  void TellNext(uint64_t chunk) noexcept;

  /// Appends the chunk's own slots that are not taken, in order.
  void AppendHoles(uint64_t chunk, std::vector<uint64_t>* holes) const;

 private:
  static constexpr uint64_t kBlocksBefore = 4;
  static constexpr uint64_t kBlocksBehind = 3;

  std::span<uint64_t> SharedWithNext(uint64_t chunk) noexcept;
  std::span<uint64_t> SharedWithPrevious(uint64_t chunk) noexcept;

  LevelShape shape_;
  uint64_t chunk_blocks_;
  std::vector<uint64_t> words_;
};

}  // namespace basalt::phash
