#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "phash/level_shape.h"

namespace basalt::phash {

/// The hashes of some parts of a level, part by part.
class Partition {
 public:
  /// Hashes that belong to the parts of the chunks [begin, end); others are skipped.
  struct Chunks {
    uint64_t begin;
    uint64_t end;
  };

  /// What a hash becomes before it is used.
  enum class Input : uint8_t { kMixed, kToBeMixed };

  /// Two passes over `hashes`, one to count and one to move; each thread takes a part of them.
  /// Throws std::bad_alloc.
  Partition(const LevelShape& shape, Chunks chunks, std::span<const uint64_t> hashes, Input input,
            uint32_t threads);

  std::span<const uint64_t> operator[](uint64_t part) const noexcept {
    const uint64_t i = part - first_part_;
    return {hashes_.get() + begins_[i], begins_[i + 1] - begins_[i]};
  }
  Chunks chunks() const noexcept { return chunks_; }
  uint64_t size() const noexcept { return begins_.back(); }

 private:
  Chunks chunks_;
  uint64_t first_part_;
  std::unique_ptr<uint64_t[]> hashes_;
  std::vector<uint64_t> begins_;
};

}  // namespace basalt::phash
