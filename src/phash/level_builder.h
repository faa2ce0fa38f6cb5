#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "phash/level_shape.h"
#include "phash/partition.h"
#include "phash/taken_slots.h"

namespace basalt::phash {

/// Builds one level of a function, chunk by chunk.
class LevelBuilder {
 public:
  /// Throws std::bad_alloc.
  LevelBuilder(const LevelShape& shape, uint32_t threads);

  /// Called on the building thread with the number of keys that are placed; false stops the build.
  using Progress = std::function<bool(uint64_t keys)>;

  /// Places the hashes of `partition`'s chunks, all but the seams. Every chunk comes once, in any
  /// order. False: `progress` said so. Throws std::bad_alloc, and what `progress` throws.
  bool Place(const Partition& partition, const Progress& progress);
  /// Places the seams, when all chunks are placed.
  void PlaceSeams();

  std::span<const uint8_t> seeds() const noexcept { return seeds_; }
  /// The slots that stayed empty, as many as hashes were bumped. Ascending.
  std::vector<uint64_t> Holes() const;
  /// The hashes that found no place, in any order.
  std::vector<uint64_t> TakeBumped();
  /// Hashes that were there twice.
  std::span<const uint64_t> repeated() const noexcept { return repeated_; }

  /// Bytes that building a level of this shape takes beside its partitions and seeds, about.
  static uint64_t ScratchBytes(const LevelShape& shape, uint32_t threads) noexcept;

 private:
  struct Thread;  // What a thread works in.
  // How many hashes there were.
  uint64_t PlaceChunk(const Partition& partition, uint64_t chunk, Thread* thread);
  void PlaceSeam(uint64_t chunk, Thread* thread);
  void Collect(std::vector<Thread>* threads);

  LevelShape shape_;
  uint32_t threads_;
  uint64_t seam_buckets_;
  std::vector<uint8_t> seeds_;
  TakenSlots taken_;
  std::vector<std::vector<uint64_t>> seams_;  // The hashes of each chunk's last buckets.
  std::vector<uint64_t> bumped_;
  std::vector<uint64_t> repeated_;
  uint64_t placed_ = 0;
};

}  // namespace basalt::phash
