#include "table/point_index.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"

namespace basalt::table {
namespace {

constexpr uint32_t kHashedGroups = 2;
// A cell and the bits before it in its first byte are read as 8 bytes.
constexpr uint32_t kCellBitsMax = 57;
// Keys for each 5 slots.
constexpr uint64_t kKeysOfFiveSlots = 4;

uint64_t InWholeLines(uint64_t bytes) noexcept {
  constexpr uint64_t kLineBytes = sizeof(PointIndex::Line);
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

bool PointIndex::Shape::IsValid() const noexcept {
  return groups >= 1 && block_bits <= 32 && ordinal_bits <= 32 && cell_bits() <= kCellBitsMax;
}

uint64_t PointIndex::Shape::cells_at() const noexcept {
  return sizeof(Line) + InWholeLines(groups * kGroupBytes);
}

uint64_t PointIndex::Shape::section_bytes() const noexcept {
  const uint64_t cells_bytes = (groups * kSlots * cell_bits() + 7) / 8;
  return cells_at() + InWholeLines(cells_bytes + sizeof(uint64_t));
}

PointIndex PointIndex::Allocate(uint64_t section_bytes) {
  PointIndex index;
  index.line_count_ = section_bytes / sizeof(Line);
  index.lines_ = base::MakeExtentArray<Line>(index.line_count_);
  return index;
}

void PointIndex::TakeShape(const Shape& shape) noexcept {
  shape_ = shape;
  cells_ = bytes().data() + shape.cells_at();
}

PointIndex PointIndex::Build(std::span<const uint64_t> hashes,
                             std::span<const RecordPlace> places) {
  BASALT_CHECK(hashes.size() == places.size());
  RecordPlace max;
  for (const RecordPlace& place : places) {
    max.block = std::max(max.block, place.block);
    max.ordinal = std::max(max.ordinal, place.ordinal);
  }
  const Shape shape{.groups = hashes.size() * 5 / (kKeysOfFiveSlots * kSlots) + 1,
                    .block_bits = static_cast<uint32_t>(std::bit_width(max.block)),
                    .ordinal_bits = static_cast<uint32_t>(std::bit_width(max.ordinal))};
  if (!shape.IsValid()) return PointIndex();
  PointIndex index = Allocate(shape.section_bytes());
  index.TakeShape(shape);
  char* const header = index.bytes().data();
  base::Store<uint32_t>(header, kHashedGroups);
  base::Store<uint8_t>(header + 4, static_cast<uint8_t>(shape.block_bits));
  base::Store<uint8_t>(header + 5, static_cast<uint8_t>(shape.ordinal_bits));
  base::Store<uint64_t>(header + 8, shape.groups);

  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) index.Prefetch(hashes[i + kAhead]);
    if (!index.Place(hashes[i], places[i])) return PointIndex();
  }
  return index;
}

// The slots of a group that are taken are its first ones.
bool PointIndex::Place(uint64_t hash, RecordPlace place) {
  uint64_t at = GroupOf(hash);
  uint32_t free = SlotsWith(Group(at), 0);
  for (size_t probes = 1; free == 0; ++probes) {
    if (probes == kProbesMax) return false;
    char& overflow = Group(at)[kOverflowAt];
    overflow = static_cast<char>(static_cast<uint8_t>(overflow) | OverflowBit(hash));
    at = After(at);
    free = SlotsWith(Group(at), 0);
  }
  const auto slot = static_cast<uint32_t>(std::countr_zero(free));
  Group(at)[slot] = static_cast<char>(Fingerprint(hash));
  const uint64_t cell = MoreOf(hash) << shape_.place_bits() |
                        uint64_t{place.block} << shape_.ordinal_bits | place.ordinal;
  const uint64_t bit = CellBit(at, slot);
  char* const word = cells_ + bit / 8;
  base::Store(word, base::Load<uint64_t>(word) | cell << (bit % 8));
  return true;
}

Status PointIndex::Validate() {
  if (line_count_ < 3) return Status(StatusCode::kCorruption, "it is shorter than three lines");
  const char* const header = bytes().data();
  const auto kind = base::Load<uint32_t>(header);
  if (kind != kHashedGroups) {
    return Status(StatusCode::kUnsupported,
                  "the index is of kind " + std::to_string(kind) +
                      ", which this version cannot read; open it with the version that wrote it");
  }
  const Shape shape{.groups = base::Load<uint64_t>(header + 8),
                    .block_bits = base::Load<uint8_t>(header + 4),
                    .ordinal_bits = base::Load<uint8_t>(header + 5)};
  if (!shape.IsValid()) {
    return Status(StatusCode::kCorruption, "the index's cells cannot be divided as it says");
  }
  if (shape.groups > bytes().size() || shape.section_bytes() != bytes().size()) {
    return Status(StatusCode::kCorruption, "the index's size is not what its header says");
  }
  TakeShape(shape);
  return Status();
}

}  // namespace basalt::table
