#include "phash/function.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"

namespace basalt::phash {
namespace {

// What a function without levels looks up, so that Index needs no question for it.
constexpr uint8_t kNoSeed = 0;
constexpr size_t kGroup = 32;

Status CorruptFunction(const std::string& what) {
  return Status(StatusCode::kCorruption,
                "opening a perfect hash function: " + what + "; rebuild it from its keys");
}

Status UnsupportedFunction(const std::string& what) {
  return Status(StatusCode::kUnsupported, "opening a perfect hash function: " + what);
}

Result<Header> CheckHeader(std::string_view bytes) {
  if (bytes.size() < sizeof(Header)) {
    return CorruptFunction("there are " + std::to_string(bytes.size()) +
                           " bytes, fewer than a header has");
  }
  const auto header = Read<Header>(bytes.data());
  if (header.magic != kFunctionMagic) return CorruptFunction("the first 8 bytes are not BSALTPH1");
  if (header.version != kFormatVersion && header.version != kSeededFormatVersion) {
    return UnsupportedFunction("its format is version " + std::to_string(header.version) +
                               ", this program reads versions up to " +
                               std::to_string(kSeededFormatVersion));
  }
  if (header.required_features != 0) {
    return UnsupportedFunction(
        "it needs features " + std::to_string(header.required_features) +
        " that this program does not have; read it with the one that wrote it");
  }
  if (header.bytes != bytes.size()) {
    return CorruptFunction("there are " + std::to_string(bytes.size()) +
                           " bytes where its header says " + std::to_string(header.bytes));
  }
  if (header.checksum != FormChecksum(bytes)) return CorruptFunction("its checksum does not match");
  const std::string_view golden(kGoldenKey, sizeof kGoldenKey - 1);
  const uint64_t golden_hash = header.version == kFormatVersion
                                   ? base::Hash(golden, header.hash_seed)
                                   : base::SeededHash(header.hash_seed)(golden);
  if (header.golden_hash != Mix(golden_hash)) {
    return UnsupportedFunction("its keys were hashed with another hash function");
  }
  return header;
}

}  // namespace

Function::Function(const Header& header, std::string_view bytes) noexcept
    : top_{.seeds = &kNoSeed,
           .buckets = 0,
           .slice_begins = 0,
           .keys = 0,
           .drop = 32,
           .dense = false},
      size_(header.keys),
      hash_seed_(header.hash_seed),
      seeds_(static_cast<PerfectHashSeeds>(header.seeds)),
      bytes_(bytes) {}

Result<Function> Function::Open(std::string_view bytes) {
  BASALT_ASSIGN_OR_RETURN(const Header header, CheckHeader(bytes));
  Function function(header, bytes);
  BASALT_RETURN_IF_ERROR(function.Parse(header));
  if (!function.levels_.empty()) function.top_ = function.levels_[0];
  return function;
}

Status Function::ParseLevels(const Header& header, std::string_view records) {
  uint64_t keys_max = header.keys;
  for (uint32_t i = 0; i < header.levels; ++i) {
    const auto record = Read<LevelRecord>(records.data() + i * sizeof(LevelRecord));
    const std::string name = "level " + std::to_string(i);
    const bool dense = record.seeds == static_cast<uint8_t>(PerfectHashSeeds::kDense);
    if (!dense && record.seeds != static_cast<uint8_t>(PerfectHashSeeds::kShift)) {
      return CorruptFunction(name + " has seeds of an unknown kind");
    }
    if (record.keys == 0 || record.keys > keys_max || (i == 0 && record.keys != header.keys)) {
      return CorruptFunction(name + " has " + std::to_string(record.keys) + " keys");
    }
    const bool known_slice = dense
                                 ? record.slice_log2 >= 1 && record.slice_log2 <= Level::kSliceLog2
                                 : record.slice_log2 == Level::kSliceLog2;
    if (!known_slice || (uint64_t{1} << record.slice_log2) > record.keys) {
      return CorruptFunction(name + " has slices of 2^" + std::to_string(record.slice_log2) +
                             " slots");
    }
    if (record.buckets == 0) return CorruptFunction(name + " has no buckets");
    levels_.push_back({.seeds = nullptr,
                       .buckets = record.buckets,
                       .slice_begins = record.keys - (uint64_t{1} << record.slice_log2) + 1,
                       .keys = record.keys,
                       .drop = 32u - record.slice_log2,
                       .dense = dense});
    keys_max = record.keys;
  }
  table_keys_ = header.table_keys;
  if (table_keys_ > keys_max || (header.levels == 0 && table_keys_ != header.keys)) {
    return CorruptFunction("its table has " + std::to_string(table_keys_) + " keys");
  }
  return Status();
}

Status Function::Parse(const Header& header) {
  if (header.version == kSeededFormatVersion) {
    hash_ = std::make_unique<const base::SeededHash>(header.hash_seed);
  }
  if (header.keys > PerfectHashBuilder::kKeysMax) {
    return CorruptFunction("its header says " + std::to_string(header.keys) + " keys");
  }
  if (header.seeds != static_cast<uint8_t>(PerfectHashSeeds::kShift) &&
      header.seeds != static_cast<uint8_t>(PerfectHashSeeds::kDense)) {
    return CorruptFunction("its seeds are of an unknown kind");
  }
  base::Decoder decoder(bytes_);
  decoder.ReadBytes(sizeof(Header));
  const std::string_view records = decoder.ReadBytes(sizeof(LevelRecord) * header.levels);
  if (!decoder.ok() || header.levels > kLevelsMax) return CorruptFunction("it has too many levels");
  BASALT_RETURN_IF_ERROR(ParseLevels(header, records));
  table_ = decoder.ReadBytes(8 * table_keys_).data();
  for (size_t i = 0; i < levels_.size(); ++i) {
    Level& level = levels_[i];
    level.seeds =
        reinterpret_cast<const uint8_t*>(decoder.ReadBytes(base::RoundUp(level.buckets, 8)).data());
    const uint64_t bumped = i + 1 < levels_.size() ? levels_[i + 1].keys : table_keys_;
    hole_bytes_.push_back(HoleList::Bytes(bumped, level.keys));
    const std::string_view list = decoder.ReadBytes(hole_bytes_.back());
    if (!decoder.ok()) return CorruptFunction("its parts do not add up to its size");
    holes_.emplace_back(list.data(), bumped, level.keys);
  }
  if (!decoder.ok() || !decoder.AtEnd())
    return CorruptFunction("its parts do not add up to its size");
  return Status();
}

uint64_t Function::IndexInTable(uint64_t mixed) const noexcept {
  uint64_t begin = 0;
  uint64_t count = table_keys_;
  while (count > 1) {
    const uint64_t half = count / 2;
    if (base::Load<uint64_t>(table_ + 8 * (begin + half)) <= mixed) begin += half;
    count -= half;
  }
  return begin;
}

uint64_t Function::IndexInFurtherLevels(uint64_t mixed) const noexcept {
  size_t level = 0;
  uint64_t index = 0;
  for (;; ++level) {
    if (level == levels_.size()) {
      index = IndexInTable(mixed);
      break;
    }
    const Level& here = levels_[level];
    const uint32_t seed = here.seeds[here.Bucket(mixed)];
    if (seed != 0) {
      index = here.Slot(mixed, seed);
      break;
    }
    mixed = MixForNextLevel(mixed);
  }
  while (level > 0) index = holes_[--level].Select(index);
  return index;
}

void Function::IndexMany(std::span<const uint64_t> hashes,
                         std::span<uint64_t> indexes) const noexcept {
  BASALT_CHECK(indexes.size() >= hashes.size());
  // The next group's seeds are on their way while this group's are used.
  std::array<std::array<uint64_t, kGroup>, 2> mixed;
  const auto fetch = [&](size_t begin) {
    std::array<uint64_t, kGroup>& group = mixed[begin / kGroup % 2];
    const size_t count = std::min(kGroup, hashes.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      group[i] = Mix(hashes[begin + i]);
      __builtin_prefetch(top_.seeds + top_.Bucket(group[i]));
    }
  };
  if (!hashes.empty()) fetch(0);
  for (size_t begin = 0; begin < hashes.size(); begin += kGroup) {
    if (begin + kGroup < hashes.size()) fetch(begin + kGroup);
    const std::array<uint64_t, kGroup>& group = mixed[begin / kGroup % 2];
    const size_t count = std::min(kGroup, hashes.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t seed = top_.seeds[top_.Bucket(group[i])];
      indexes[begin + i] = seed != 0 ? top_.Slot(group[i], seed) : IndexInFurtherLevels(group[i]);
    }
  }
}

uint64_t Function::HashKey(std::string_view key) const noexcept {
  return hash_ != nullptr ? (*hash_)(key) : base::Hash(key, hash_seed_);
}

std::vector<PerfectHash::LevelFigures> Function::levels() const {
  std::vector<PerfectHash::LevelFigures> figures;
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    figures.push_back(
        {.keys = level.keys,
         .buckets = level.buckets,
         .slice = uint64_t{1} << (32 - level.drop),
         .bytes = base::RoundUp(level.buckets, 8) + hole_bytes_[i] + sizeof(LevelRecord)});
  }
  if (table_keys_ > 0) {
    figures.push_back({.keys = table_keys_, .buckets = 0, .slice = 0, .bytes = 8 * table_keys_});
  }
  return figures;
}

}  // namespace basalt::phash
