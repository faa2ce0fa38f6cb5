#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "phash/format.h"
#include "phash/level.h"

// How one level of a function divides hashes into buckets, buckets into parts and those into
// chunks, and slots into slices. All of it follows from the number of keys and the kind of seeds
// alone, never from the machine, so that every build gives the same bytes.
//
// A part is a run of buckets whose hashes fit a second-level cache. A chunk is a run of parts that
// is placed by itself. Slices of its last buckets reach into the next chunk's slots: these buckets,
// the seam, are placed when both chunks are done.
namespace basalt::phash {

class LevelShape {
 public:
  LevelShape(uint64_t keys, PerfectHashSeeds seeds) noexcept
      : keys_(keys),
        dense_(seeds == PerfectHashSeeds::kDense || keys < kShiftKeysMin),
        slice_log2_(SliceLog2(keys, dense_)),
        chunks_(std::clamp<uint64_t>(keys / kChunkKeys, 1, kChunksMax)),
        parts_per_chunk_(std::clamp<uint64_t>(keys / chunks_ / kPartKeys, 1, kPartsMax / chunks_)) {
    const double keys_a_bucket = keys < kShiftKeysMin ? 4.3 : dense_ ? 4.6 : 4.35;
    const auto wanted = static_cast<uint64_t>(static_cast<double>(keys) / keys_a_bucket) + 1;
    buckets_per_part_ = (wanted + parts() - 1) / parts();
  }

  uint64_t keys() const noexcept { return keys_; }
  bool dense() const noexcept { return dense_; }
  uint32_t slice_log2() const noexcept { return slice_log2_; }
  uint64_t slice() const noexcept { return uint64_t{1} << slice_log2_; }
  uint64_t slice_begins() const noexcept { return keys_ - slice() + 1; }
  uint64_t chunks() const noexcept { return chunks_; }
  uint64_t parts_per_chunk() const noexcept { return parts_per_chunk_; }
  uint64_t parts() const noexcept { return chunks_ * parts_per_chunk_; }
  uint64_t buckets_per_part() const noexcept { return buckets_per_part_; }
  uint64_t buckets_per_chunk() const noexcept { return parts_per_chunk_ * buckets_per_part_; }
  uint64_t buckets() const noexcept { return parts() * buckets_per_part_; }

  uint64_t Part(uint64_t mixed) const noexcept { return MulHigh(mixed, parts()); }
  uint64_t Bucket(uint64_t mixed) const noexcept { return MulHigh(mixed, buckets()); }
  uint64_t SliceBegin(uint64_t mixed) const noexcept { return MulHigh(mixed, slice_begins()); }

  /// Where slices of chunk `chunk` begin at the earliest; for chunks(): one past the last begin.
  uint64_t FirstSliceBegin(uint64_t chunk) const noexcept {
    if (chunk == chunks_) return slice_begins();
    // The chunk's least hash: the least one whose product with chunks() passes chunk * 2^64.
    __extension__ using Wide = unsigned __int128;
    const Wide least = ((Wide{chunk} << 64) + chunks_ - 1) / chunks_;
    return SliceBegin(static_cast<uint64_t>(least));
  }
  /// Buckets at the end of every chunk but the last whose slices may reach into the next chunk.
  uint64_t SeamBuckets() const noexcept {
    return chunks_ == 1 ? 0 : (slice() * buckets() + slice_begins() - 1) / slice_begins() + 2;
  }

 private:
  static constexpr uint64_t kChunkKeys = 250'000;
  static constexpr uint64_t kPartKeys = 60'000;
  static constexpr uint64_t kChunksMax = 1024;
  static constexpr uint64_t kPartsMax = 2048;

  // A longer slice leaves fewer keys over until the ends, where slots are hard to reach, weigh
  // more.
  static uint32_t SliceLog2(uint64_t keys, bool dense) noexcept {
    if (!dense || keys >= 65'536) return 10;
    if (keys >= 8192) return 9;
    if (keys >= 1024) return 8;
    return std::min<uint32_t>(6, static_cast<uint32_t>(std::bit_width(keys)) - 1);
  }

  uint64_t keys_;
  bool dense_;
  uint32_t slice_log2_;
  uint64_t chunks_;
  uint64_t parts_per_chunk_;
  uint64_t buckets_per_part_;
};

}  // namespace basalt::phash
