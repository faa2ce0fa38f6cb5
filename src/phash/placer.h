#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "phash/level_shape.h"

namespace basalt::phash {

/// Finds the seeds of neighbouring buckets: one after the other, larger ones earlier than their
/// turn, each takes the seed that puts its keys on free slots as far to the left as can be.
///
/// Cost: under shift seeds some 240 instructions a key for all 255 shifts; under dense seeds 255
/// places are tried for each key, 16 at once with AVX-512.
///
/// Holds scratch memory: one a thread.
class Placer {
 public:
  /// Buckets with more keys are not placed.
  static constexpr uint32_t kBucketKeysMax = 16;

  explicit Placer(const LevelShape& shape);

  /// Neighbouring buckets: bucket i has hashes[begins[i] .. begins[i + 1]).
  struct Buckets {
    std::span<const uint64_t> hashes;
    std::span<const uint32_t> begins;

    uint64_t count() const noexcept { return begins.size() - 1; }
    std::span<const uint64_t> operator[](uint64_t i) const noexcept {
      return hashes.subspan(begins[i], begins[i + 1] - begins[i]);
    }
  };
  /// Where buckets go: slots are counted from `origin`, whose words are `words` (TakenSlots).
  struct Slots {
    uint64_t origin;
    uint64_t* words;
  };

  /// Writes a seed for each bucket and marks its slots; where there is none, writes 0 and appends
  /// the bucket's hashes to `bumped`, and those that stand there twice to `repeated` too. Throws
  /// std::bad_alloc.
  void Place(const Buckets& buckets, const Slots& slots, uint8_t* seeds,
             std::vector<uint64_t>* bumped, std::vector<uint64_t>* repeated);

 private:
  void Order(const Buckets& buckets);
  uint32_t FindShift(std::span<const uint64_t> hashes, const Slots& slots) noexcept;
  uint32_t FindDense(std::span<const uint64_t> hashes, const Slots& slots) noexcept;

  LevelShape shape_;
  uint64_t slice_begins_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> turns_;
};

/// Puts `hashes`, all of the `count` buckets from `first_bucket` on, bucket by bucket into
/// `grouped` (of the same size), and where each bucket begins into begins[0 .. count):
/// `first_place` and more.
void GroupByBucket(const LevelShape& shape, uint64_t first_bucket, uint64_t count,
                   std::span<const uint64_t> hashes, uint64_t* grouped, uint32_t first_place,
                   uint32_t* begins) noexcept;

}  // namespace basalt::phash
