#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "basalt/status.h"
#include "base/coding.h"
#include "base/extent_pool.h"

namespace basalt::table {

/// A record's place in its table.
struct RecordPlace {
  uint32_t block = 0;
  uint32_t ordinal = 0;  ///< In the block.

  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

/// Tells where the newest version of each key of a table lies: a hash table in lines of 64 bytes,
/// by the keys' hashes (base::Hash), without the keys. Whoever looks a key up compares it with what
/// lies at each place that is named.
///
/// Layout (a table's point index section), lines aligned to 64 bytes in memory:
///
///     line 0:   kind u32 = 1 | slots u8 | more u8 | block bits u8 | ordinal bits u8 | lines u64 |
///               zeros
///     line 1..: 47 bytes  a cell for each slot, one after the other, from the lowest bit on:
///                         ordinal | block | `more` bits of fingerprint
///               16 bytes  the first 8 bits of a fingerprint for each slot; 0: free
///                1 byte   overflow: bit k is set when a key with k in its hash's bits 16 to 18
///                         found this line full
///
/// A hash's high bits, scaled to the number of lines, choose its line; its bits 0 to 7 (1 instead
/// of 0) are the fingerprint's first part, the bits from 8 on the second. A key whose line is full
/// lies in the next one, or the next: at most kProbesMax lines are looked at. Behind the last line
/// comes the first. (Of 20 million keys one or two lie 20 lines from their own.)
///
/// A cell has as many bits as the table needs: with 16 slots a line 19 bits of place (250,000
/// records in 16 KiB blocks) and 4 of fingerprint. Four fifths of the slots are taken: 5.0 bytes a
/// key. 12 bits of fingerprint let one of some 280 absent keys pass.
///
/// Cost of a lookup in cache misses: 1; a second, the line next to it, for 5 of 100 present keys
/// and 11 of 100 absent ones. Immutable once built or validated.
class PointIndex {
 public:
  struct alignas(64) Line {
    char bytes[64];
  };
  static constexpr size_t kProbesMax = 64;

  class Lookup;

  PointIndex() = default;
  /// Key i has hashes[i] and lies at places[i]. Empty: they cannot be placed, which takes hundreds
  /// of equal hashes, or places beyond what a cell may have.
  static PointIndex Build(std::span<const uint64_t> hashes, std::span<const RecordPlace> places);

  /// An index of `section_bytes` bytes in all, to be filled from a file and then checked by
  /// Validate.
  static PointIndex Allocate(uint64_t section_bytes);
  /// Corruption or Unsupported: the bytes are no index that this version knows. What cells name is
  /// not checked.
  Status Validate();

  bool empty() const noexcept { return count_ == 0; }

  /// Starts to load the line where a lookup begins. Inlined by force: g++ takes a function that
  /// only prefetches for one without effects.
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const noexcept {
    if (!empty()) __builtin_prefetch(line(LineOf(hash)));
  }

  /// The section's bytes.
  std::span<char> bytes() noexcept {
    return {reinterpret_cast<char*>(lines_.get()), count_ * sizeof(Line)};
  }
  std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(lines_.get()), count_ * sizeof(Line)};
  }

  /// Calls `visit` with each key's place.
  template <class Visitor>
  void ForEach(const Visitor& visit) const {
    for (uint64_t at = 0; at + 1 < count_; ++at) {
      for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
        if (line(at)[kFingerprintsAt + slot] != 0) visit(PlaceOf(Cell(line(at), slot)));
      }
    }
  }

 private:
  static constexpr size_t kFingerprintsAt = 47;
  static constexpr size_t kFingerprints = 16;
  static constexpr size_t kOverflowAt = 63;

  /// How the bits of a line are divided.
  struct Shape {
    uint32_t slots = 0;
    uint32_t more_bits = 0;
    uint32_t block_bits = 0;
    uint32_t ordinal_bits = 0;

    uint32_t place_bits() const noexcept { return block_bits + ordinal_bits; }
    uint32_t cell_bits() const noexcept { return place_bits() + more_bits; }
    bool IsValid() const noexcept;
    /// No slots: there is no shape for such places.
    static Shape For(RecordPlace max) noexcept;
  };

  static uint64_t Ones(uint32_t bits) noexcept { return (uint64_t{1} << bits) - 1; }
  static uint8_t Fingerprint(uint64_t hash) noexcept {
    const auto low = static_cast<uint8_t>(hash);
    return low != 0 ? low : 1;
  }
  uint64_t MoreOf(uint64_t hash) const noexcept { return hash >> 8 & Ones(shape_.more_bits); }
  static uint8_t OverflowBit(uint64_t hash) noexcept {
    return static_cast<uint8_t>(1u << (hash >> 16 & 7));
  }
  /// Below count_ - 1, as are all numbers of lines.
  uint64_t LineOf(uint64_t hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{hash} * (count_ - 1)) >> 64);
  }
  uint64_t After(uint64_t line) const noexcept { return line + 1 == count_ - 1 ? 0 : line + 1; }
  char* line(uint64_t i) noexcept { return lines_[i + 1].bytes; }
  const char* line(uint64_t i) const noexcept { return lines_[i + 1].bytes; }
  /// Reads 8 bytes; a cell ends before the fingerprints, which are 17 from the line's end.
  uint64_t Cell(const char* line, uint32_t slot) const noexcept {
    const uint32_t bit = slot * shape_.cell_bits();
    return base::Load<uint64_t>(line + bit / 8) >> (bit % 8) & Ones(shape_.cell_bits());
  }
  RecordPlace PlaceOf(uint64_t cell) const noexcept {
    const uint32_t ordinal_bits = shape_.ordinal_bits;
    return {.block = static_cast<uint32_t>(cell >> ordinal_bits & Ones(shape_.block_bits)),
            .ordinal = static_cast<uint32_t>(cell & Ones(ordinal_bits))};
  }
  bool Place(uint64_t hash, RecordPlace place, uint8_t* used);

  std::unique_ptr<Line[], base::GiveExtent> lines_;  // in huge pages: lookups are at random
  uint64_t count_ = 0;                               // with line 0
  Shape shape_;
};

/// The places at which a key with some hash may lie, one after the other.
class PointIndex::Lookup {
 public:
  /// `index` is not empty.
  Lookup(const PointIndex& index, uint64_t hash) noexcept
      : index_(index), hash_(hash), line_(index.LineOf(hash)) {
    MatchFingerprints();
  }

  /// False: there are no more.
  bool Next(RecordPlace* place) noexcept {
    const Shape& shape = index_.shape_;
    for (;;) {
      while (matches_ != 0) {
        const auto slot = static_cast<uint32_t>(std::countr_zero(matches_));
        matches_ &= matches_ - 1;
        if (slot >= shape.slots) break;
        const uint64_t cell = index_.Cell(index_.line(line_), slot);
        if (cell >> shape.place_bits() != index_.MoreOf(hash_)) continue;
        *place = index_.PlaceOf(cell);
        return true;
      }
      const auto overflow = static_cast<uint8_t>(index_.line(line_)[kOverflowAt]);
      if ((overflow & OverflowBit(hash_)) == 0 || ++probes_ == kProbesMax) return false;
      line_ = index_.After(line_);
      MatchFingerprints();
    }
  }

 private:
  void MatchFingerprints() noexcept {
    const char* const fingerprints = index_.line(line_) + kFingerprintsAt;
    const uint8_t wanted = Fingerprint(hash_);
#if defined(__SSE2__)
    const __m128i equal =
        _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(fingerprints)),
                       _mm_set1_epi8(static_cast<char>(wanted)));
    matches_ = static_cast<uint32_t>(_mm_movemask_epi8(equal));
#else
    matches_ = 0;
    for (uint32_t i = 0; i < kFingerprints; ++i) {
      matches_ |= uint32_t{static_cast<uint8_t>(fingerprints[i]) == wanted} << i;
    }
#endif
  }

  const PointIndex& index_;
  const uint64_t hash_;
  uint64_t line_;
  size_t probes_ = 0;
  uint32_t matches_ = 0;  // slots of the line, not looked at yet
};

}  // namespace basalt::table
