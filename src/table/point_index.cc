#include "table/point_index.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"

namespace basalt::table {
namespace {

constexpr uint32_t kHashedLines = 1;
constexpr uint32_t kCellsBits = 47 * 8;
constexpr uint32_t kMoreBitsMin = 4;
constexpr uint32_t kMoreBitsMax = 8;
// A cell and the bits before it in its first byte are read as 8 bytes.
constexpr uint32_t kCellBitsMax = 57;
// Keys for each 5 slots.
constexpr uint64_t kKeysOfFiveSlots = 4;

}  // namespace

PointIndex::Shape PointIndex::Shape::For(RecordPlace max) noexcept {
  Shape shape;
  shape.block_bits = static_cast<uint32_t>(std::bit_width(max.block));
  shape.ordinal_bits = static_cast<uint32_t>(std::bit_width(max.ordinal));
  const uint32_t least = shape.place_bits() + kMoreBitsMin;
  if (least > kCellBitsMax) return shape;
  shape.slots = std::min<uint32_t>(kFingerprints, kCellsBits / least);
  shape.more_bits = std::min({kMoreBitsMax, kCellsBits / shape.slots - shape.place_bits(),
                              kCellBitsMax - shape.place_bits()});
  return shape;
}

bool PointIndex::Shape::IsValid() const noexcept {
  return slots >= 1 && slots <= kFingerprints && block_bits <= 32 && ordinal_bits <= 32 &&
         more_bits >= kMoreBitsMin && more_bits <= kMoreBitsMax && cell_bits() <= kCellBitsMax &&
         slots * cell_bits() <= kCellsBits;
}

PointIndex PointIndex::Allocate(uint64_t section_bytes) {
  PointIndex index;
  index.count_ = section_bytes / sizeof(Line);
  index.lines_ = base::MakeExtentArray<Line>(index.count_);
  return index;
}

PointIndex PointIndex::Build(std::span<const uint64_t> hashes,
                             std::span<const RecordPlace> places) {
  BASALT_CHECK(hashes.size() == places.size());
  RecordPlace max;
  for (const RecordPlace& place : places) {
    max.block = std::max(max.block, place.block);
    max.ordinal = std::max(max.ordinal, place.ordinal);
  }
  const Shape shape = Shape::For(max);
  if (shape.slots == 0) return PointIndex();
  const uint64_t lines = hashes.size() * 5 / (kKeysOfFiveSlots * shape.slots) + 1;
  PointIndex index = Allocate((lines + 1) * sizeof(Line));
  index.shape_ = shape;
  char* const header = index.bytes().data();
  base::Store<uint32_t>(header, kHashedLines);
  base::Store<uint8_t>(header + 4, static_cast<uint8_t>(shape.slots));
  base::Store<uint8_t>(header + 5, static_cast<uint8_t>(shape.more_bits));
  base::Store<uint8_t>(header + 6, static_cast<uint8_t>(shape.block_bits));
  base::Store<uint8_t>(header + 7, static_cast<uint8_t>(shape.ordinal_bits));
  base::Store<uint64_t>(header + 8, lines);

  std::vector<uint8_t> used(lines);
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) {
      __builtin_prefetch(index.line(index.LineOf(hashes[i + kAhead])), 1);
    }
    if (!index.Place(hashes[i], places[i], used.data())) return PointIndex();
  }
  return index;
}

// `used`: for each line the slots that are taken, which are its first ones.
bool PointIndex::Place(uint64_t hash, RecordPlace place, uint8_t* used) {
  uint64_t at = LineOf(hash);
  for (size_t probes = 1; used[at] == shape_.slots; ++probes) {
    if (probes == kProbesMax) return false;
    char& overflow = line(at)[kOverflowAt];
    overflow = static_cast<char>(static_cast<uint8_t>(overflow) | OverflowBit(hash));
    at = After(at);
  }
  char* const bytes = line(at);
  const uint32_t slot = used[at]++;
  bytes[kFingerprintsAt + slot] = static_cast<char>(Fingerprint(hash));
  const uint64_t cell = MoreOf(hash) << shape_.place_bits() |
                        uint64_t{place.block} << shape_.ordinal_bits | place.ordinal;
  const uint32_t bit = slot * shape_.cell_bits();
  char* const word = bytes + bit / 8;
  base::Store(word, base::Load<uint64_t>(word) | cell << (bit % 8));
  return true;
}

Status PointIndex::Validate() {
  if (count_ < 2) return Status(StatusCode::kCorruption, "the index is shorter than two lines");
  const char* const header = bytes().data();
  const auto kind = base::Load<uint32_t>(header);
  if (kind != kHashedLines) {
    return Status(StatusCode::kUnsupported,
                  "the index is of kind " + std::to_string(kind) +
                      ", which this version cannot read; open it with the version that wrote it");
  }
  shape_ = {.slots = base::Load<uint8_t>(header + 4),
            .more_bits = base::Load<uint8_t>(header + 5),
            .block_bits = base::Load<uint8_t>(header + 6),
            .ordinal_bits = base::Load<uint8_t>(header + 7)};
  if (!shape_.IsValid()) {
    return Status(StatusCode::kCorruption, "the index's lines cannot be divided as it says");
  }
  if (base::Load<uint64_t>(header + 8) != count_ - 1) {
    return Status(StatusCode::kCorruption, "the index's size is not what its header says");
  }
  return Status();
}

}  // namespace basalt::table
