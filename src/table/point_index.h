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
#include "table/record_place.h"

namespace basalt::table {

/// Tells where the newest version of each key of a table lies: a hash table in groups of 15 slots,
/// by the keys' hashes (base::Hash), without the keys. Whoever looks a key up compares it with what
/// lies at each place that is named.
///
/// Layout (a table's point index section), in memory aligned to lines of 64 bytes:
///
///     line 0: kind u32 = 2 | block bits u8 | ordinal bits u8 | 0 u16 | groups u64 | zeros
///     a group each: 15 bytes  the first 8 bits of a fingerprint for each slot; 0: free
///                    1 byte   overflow: bit k is set when a key with k in its hash's bits 16 to 18
///                             found this group full
///     zeros to the next line
///     cells, one for each slot of each group, one after the other, from the lowest bit on:
///              ordinal | block | 4 more bits of fingerprint
///     at least 8 bytes of zeros, up to a whole line
///
/// A hash's high bits, scaled to the number of groups, choose its group; its bits 0 to 7 (1 instead
/// of 0) are the fingerprint's first part, the bits from 8 on the second. A key whose group is full
/// lies in the next one, or the next: at most kProbesMax groups are looked at. Behind the last
/// group comes the first. (Of 20 million keys one or two lie 20 groups from their own.)
///
/// A cell has as many bits as the table needs: 19 bits of place for 250,000 records in 16 KiB
/// blocks. Four fifths of the slots are taken: 4.9 bytes a key. The fingerprints stand apart, 1.3
/// bytes a key: for an absent key mostly nothing else is touched, so that what lookups of absent
/// keys need stays in the processor's caches four times as long. 12 bits of fingerprint let one of
/// some 300 absent keys pass.
///
/// Cost of a lookup in cache misses: 1 for an absent key, 2 for a present one, for which nothing
/// has to be awaited in between. Immutable once built or validated.
class PointIndex {
 public:
  struct alignas(64) Line {
    char bytes[64];
  };
  static constexpr size_t kSlots = 15;  ///< Of a group.
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

  bool empty() const noexcept { return line_count_ == 0; }

  /// Starts to load the lines where a lookup begins. Inlined by force: g++ takes a function that
  /// only prefetches for one without effects.
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const noexcept {
    if (empty()) return;
    const uint64_t group = GroupOf(hash);
    __builtin_prefetch(Group(group));
    PrefetchCells(group);
  }

  /// The section's bytes.
  std::span<char> bytes() noexcept {
    return {reinterpret_cast<char*>(lines_.get()), line_count_ * sizeof(Line)};
  }
  std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(lines_.get()), line_count_ * sizeof(Line)};
  }

  /// Calls `visit` with each key's place.
  template <class Visitor>
  void ForEach(const Visitor& visit) const {
    for (uint64_t group = 0; group < shape_.groups; ++group) {
      for (uint32_t slot = 0; slot < kSlots; ++slot) {
        if (Group(group)[slot] != 0) visit(PlaceOf(Cell(group, slot)));
      }
    }
  }

 private:
  static constexpr size_t kGroupBytes = 16;
  static constexpr size_t kOverflowAt = kSlots;
  static constexpr uint32_t kMoreBits = 4;

  /// How the section is divided.
  struct Shape {
    uint64_t groups = 0;
    uint32_t block_bits = 0;
    uint32_t ordinal_bits = 0;

    uint32_t place_bits() const noexcept { return block_bits + ordinal_bits; }
    uint32_t cell_bits() const noexcept { return place_bits() + kMoreBits; }
    bool IsValid() const noexcept;
    uint64_t cells_at() const noexcept;
    uint64_t section_bytes() const noexcept;
  };

  static uint64_t Ones(uint32_t bits) noexcept { return (uint64_t{1} << bits) - 1; }
  static uint8_t Fingerprint(uint64_t hash) noexcept {
    const auto low = static_cast<uint8_t>(hash);
    return low != 0 ? low : 1;
  }
  static uint64_t MoreOf(uint64_t hash) noexcept { return hash >> 8 & Ones(kMoreBits); }
  static uint8_t OverflowBit(uint64_t hash) noexcept {
    return static_cast<uint8_t>(1u << (hash >> 16 & 7));
  }
  void TakeShape(const Shape& shape) noexcept;
  /// Below shape_.groups, as are all numbers of groups.
  uint64_t GroupOf(uint64_t hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{hash} * shape_.groups) >> 64);
  }
  uint64_t After(uint64_t group) const noexcept {
    return group + 1 == shape_.groups ? 0 : group + 1;
  }
  char* Group(uint64_t i) noexcept { return lines_[1].bytes + i * kGroupBytes; }
  const char* Group(uint64_t i) const noexcept { return lines_[1].bytes + i * kGroupBytes; }
  uint64_t CellBit(uint64_t group, uint32_t slot) const noexcept {
    return (group * kSlots + slot) * shape_.cell_bits();
  }
  /// Reads 8 bytes, as many as lie behind the last cell.
  uint64_t Cell(uint64_t group, uint32_t slot) const noexcept {
    const uint64_t bit = CellBit(group, slot);
    return base::Load<uint64_t>(cells_ + bit / 8) >> (bit % 8) & Ones(shape_.cell_bits());
  }
  /// The group's slots with this byte, a bit each.
  static uint32_t SlotsWith(const char* group, uint8_t byte) noexcept {
#if defined(__SSE2__)
    const __m128i equal = _mm_cmpeq_epi8(_mm_load_si128(reinterpret_cast<const __m128i*>(group)),
                                         _mm_set1_epi8(static_cast<char>(byte)));
    return static_cast<uint32_t>(_mm_movemask_epi8(equal)) & ((1u << kSlots) - 1);
#else
    uint32_t slots = 0;
    for (uint32_t i = 0; i < kSlots; ++i) {
      slots |= uint32_t{static_cast<uint8_t>(group[i]) == byte} << i;
    }
    return slots;
#endif
  }
  /// Slots are taken from the first one on, mostly 12 of them: asks for the line in their middle.
  [[gnu::always_inline]] void PrefetchCells(uint64_t group) const noexcept {
    __builtin_prefetch(cells_ + CellBit(group, 5) / 8);
  }
  RecordPlace PlaceOf(uint64_t cell) const noexcept {
    const uint32_t ordinal_bits = shape_.ordinal_bits;
    return {.block = static_cast<uint32_t>(cell >> ordinal_bits & Ones(shape_.block_bits)),
            .ordinal = static_cast<uint32_t>(cell & Ones(ordinal_bits))};
  }
  bool Place(uint64_t hash, RecordPlace place);

  std::unique_ptr<Line[], base::GiveExtent> lines_;  // in huge pages: lookups are at random
  uint64_t line_count_ = 0;
  char* cells_ = nullptr;
  Shape shape_;
};

/// The places at which a key with some hash may lie, one after the other.
class PointIndex::Lookup {
 public:
  /// `index` is not empty.
  Lookup(const PointIndex& index, uint64_t hash) noexcept
      : index_(index), hash_(hash), group_(index.GroupOf(hash)) {
    index_.PrefetchCells(group_);
    MatchFingerprints();
  }

  /// False: there are no more.
  bool Next(RecordPlace* place) noexcept {
    for (;;) {
      while (matches_ != 0) {
        const auto slot = static_cast<uint32_t>(std::countr_zero(matches_));
        matches_ &= matches_ - 1;
        const uint64_t cell = index_.Cell(group_, slot);
        if (cell >> index_.shape_.place_bits() != MoreOf(hash_)) continue;
        *place = index_.PlaceOf(cell);
        return true;
      }
      const auto overflow = static_cast<uint8_t>(index_.Group(group_)[kOverflowAt]);
      if ((overflow & OverflowBit(hash_)) == 0 || ++probes_ == kProbesMax) return false;
      group_ = index_.After(group_);
      MatchFingerprints();
    }
  }

 private:
  void MatchFingerprints() noexcept {
    matches_ = SlotsWith(index_.Group(group_), Fingerprint(hash_));
  }

  const PointIndex& index_;
  const uint64_t hash_;
  uint64_t group_;
  size_t probes_ = 0;
  uint32_t matches_ = 0;  // slots of the group, not looked at yet
};

}  // namespace basalt::table
