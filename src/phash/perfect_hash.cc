#include "basalt/perfect_hash.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/seeded_hash.h"
#include "phash/format.h"
#include "phash/function_builder.h"
#include "phash/hole_list.h"

namespace basalt {

using phash::Header;
using phash::HoleList;
using phash::Level;
using phash::LevelRecord;

namespace {

// What a function without levels looks up, so that Index needs no question for it.
constexpr uint8_t kNoSeed = 0;
constexpr size_t kGroup = 32;

Status Corrupt(const std::string& what) {
  return Status(StatusCode::kCorruption,
                "opening a perfect hash function: " + what + "; rebuild it from its keys");
}

Status Unsupported(const std::string& what) {
  return Status(StatusCode::kUnsupported, "opening a perfect hash function: " + what);
}

Result<Header> CheckHeader(std::string_view bytes) {
  if (bytes.size() < sizeof(Header)) {
    return Corrupt("there are " + std::to_string(bytes.size()) + " bytes, fewer than a header has");
  }
  const auto header = phash::Read<Header>(bytes.data());
  if (header.magic != phash::kFunctionMagic) return Corrupt("the first 8 bytes are not BSALTPH1");
  if (header.version != phash::kFormatVersion && header.version != phash::kSeededFormatVersion) {
    return Unsupported("its format is version " + std::to_string(header.version) +
                       ", this program reads versions up to " +
                       std::to_string(phash::kSeededFormatVersion));
  }
  if (header.required_features != 0) {
    return Unsupported("it needs features " + std::to_string(header.required_features) +
                       " that this program does not have; read it with the one that wrote it");
  }
  if (header.bytes != bytes.size()) {
    return Corrupt("there are " + std::to_string(bytes.size()) + " bytes where its header says " +
                   std::to_string(header.bytes));
  }
  if (header.checksum != phash::FormChecksum(bytes)) return Corrupt("its checksum does not match");
  const std::string_view golden(phash::kGoldenKey, sizeof phash::kGoldenKey - 1);
  const uint64_t golden_hash = header.version == phash::kFormatVersion
                                   ? base::Hash(golden, header.hash_seed)
                                   : base::SeededHash(header.hash_seed)(golden);
  if (header.golden_hash != phash::Mix(golden_hash)) {
    return Unsupported("its keys were hashed with another hash function");
  }
  return header;
}

}  // namespace

// What only a bumped key's lookup needs.
struct PerfectHash::Rest {
  std::string owned;
  std::vector<Level> levels;    // The first one too.
  std::vector<HoleList> holes;  // One a level.
  std::vector<uint64_t> hole_bytes;
  const char* table = nullptr;
  uint64_t table_keys = 0;
  std::unique_ptr<const base::SeededHash> hash;  // Null: base::Hash under the seed.

  uint64_t TableIndex(uint64_t mixed) const noexcept {
    uint64_t begin = 0;
    uint64_t count = table_keys;
    while (count > 1) {
      const uint64_t half = count / 2;
      if (base::Load<uint64_t>(table + 8 * (begin + half)) <= mixed) begin += half;
      count -= half;
    }
    return begin;
  }

  // Reads levels, table and holes of `bytes`, whose header is checked.
  Status Parse(const Header& header, std::string_view bytes);
  Status ParseLevels(const Header& header, std::string_view records);
};

Status PerfectHash::Rest::ParseLevels(const Header& header, std::string_view records) {
  uint64_t keys_max = header.keys;
  for (uint32_t i = 0; i < header.levels; ++i) {
    const auto record = phash::Read<LevelRecord>(records.data() + i * sizeof(LevelRecord));
    const std::string name = "level " + std::to_string(i);
    const bool dense = record.seeds == static_cast<uint8_t>(PerfectHashSeeds::kDense);
    if (!dense && record.seeds != static_cast<uint8_t>(PerfectHashSeeds::kShift)) {
      return Corrupt(name + " has seeds of an unknown kind");
    }
    if (record.keys == 0 || record.keys > keys_max || (i == 0 && record.keys != header.keys)) {
      return Corrupt(name + " has " + std::to_string(record.keys) + " keys");
    }
    const bool known_slice = dense
                                 ? record.slice_log2 >= 1 && record.slice_log2 <= Level::kSliceLog2
                                 : record.slice_log2 == Level::kSliceLog2;
    if (!known_slice || (uint64_t{1} << record.slice_log2) > record.keys) {
      return Corrupt(name + " has slices of 2^" + std::to_string(record.slice_log2) + " slots");
    }
    if (record.buckets == 0) return Corrupt(name + " has no buckets");
    levels.push_back({.seeds = nullptr,
                      .buckets = record.buckets,
                      .slice_begins = record.keys - (uint64_t{1} << record.slice_log2) + 1,
                      .keys = record.keys,
                      .drop = 32u - record.slice_log2,
                      .dense = dense});
    keys_max = record.keys;
  }
  table_keys = header.table_keys;
  if (table_keys > keys_max || (header.levels == 0 && table_keys != header.keys)) {
    return Corrupt("its table has " + std::to_string(table_keys) + " keys");
  }
  return Status();
}

Status PerfectHash::Rest::Parse(const Header& header, std::string_view bytes) {
  if (header.version == phash::kSeededFormatVersion) {
    hash = std::make_unique<const base::SeededHash>(header.hash_seed);
  }
  if (header.keys > PerfectHashBuilder::kKeysMax) {
    return Corrupt("its header says " + std::to_string(header.keys) + " keys");
  }
  if (header.seeds != static_cast<uint8_t>(PerfectHashSeeds::kShift) &&
      header.seeds != static_cast<uint8_t>(PerfectHashSeeds::kDense)) {
    return Corrupt("its seeds are of an unknown kind");
  }
  base::Decoder decoder(bytes);
  decoder.ReadBytes(sizeof(Header));
  const std::string_view records = decoder.ReadBytes(sizeof(LevelRecord) * header.levels);
  if (!decoder.ok() || header.levels > phash::kLevelsMax) return Corrupt("it has too many levels");
  BASALT_RETURN_IF_ERROR(ParseLevels(header, records));
  table = decoder.ReadBytes(8 * table_keys).data();
  for (size_t i = 0; i < levels.size(); ++i) {
    Level& level = levels[i];
    level.seeds =
        reinterpret_cast<const uint8_t*>(decoder.ReadBytes(base::RoundUp(level.buckets, 8)).data());
    const uint64_t bumped = i + 1 < levels.size() ? levels[i + 1].keys : table_keys;
    hole_bytes.push_back(HoleList::Bytes(bumped, level.keys));
    const std::string_view list = decoder.ReadBytes(hole_bytes.back());
    if (!decoder.ok()) return Corrupt("its parts do not add up to its size");
    holes.emplace_back(list.data(), bumped, level.keys);
  }
  if (!decoder.ok() || !decoder.AtEnd()) return Corrupt("its parts do not add up to its size");
  return Status();
}

PerfectHash::PerfectHash(const phash::Header& header, std::shared_ptr<const Rest> rest,
                         std::string_view bytes)
    : top_{.seeds = &kNoSeed,
           .buckets = 0,
           .slice_begins = 0,
           .keys = 0,
           .drop = 32,
           .dense = false},
      size_(header.keys),
      hash_seed_(header.hash_seed),
      seeds_(static_cast<PerfectHashSeeds>(header.seeds)),
      bytes_(bytes),
      rest_(std::move(rest)) {
  if (!rest_->levels.empty()) top_ = rest_->levels[0];
}

Result<PerfectHash> PerfectHash::Open(std::string_view bytes) try {
  BASALT_ASSIGN_OR_RETURN(const Header header, CheckHeader(bytes));
  const auto rest = std::make_shared<Rest>();
  BASALT_RETURN_IF_ERROR(rest->Parse(header, bytes));
  return PerfectHash(header, rest, bytes);
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, "opening a perfect hash function: out of memory");
}

Result<PerfectHash> PerfectHash::Own(Result<std::string> bytes) try {
  if (!bytes) return bytes.error();
  const auto rest = std::make_shared<Rest>();
  rest->owned = std::move(*bytes);
  const auto header = phash::Read<Header>(rest->owned.data());
  BASALT_RETURN_IF_ERROR(rest->Parse(header, rest->owned));
  return PerfectHash(header, rest, rest->owned);
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, "building a perfect hash function: out of memory");
}

uint64_t PerfectHash::IndexOfBumped(uint64_t mixed) const noexcept {
  const Rest& rest = *rest_;
  const size_t levels = rest.levels.size();
  size_t level = 0;
  uint64_t index = 0;
  for (;; ++level) {
    if (level == levels) {
      index = rest.TableIndex(mixed);
      break;
    }
    const Level& here = rest.levels[level];
    const uint32_t seed = here.seeds[here.Bucket(mixed)];
    if (seed != 0) {
      index = here.Slot(mixed, seed);
      break;
    }
    mixed = phash::MixForNextLevel(mixed);
  }
  while (level > 0) index = rest.holes[--level].Select(index);
  return index;
}

void PerfectHash::IndexMany(std::span<const uint64_t> hashes,
                            std::span<uint64_t> indexes) const noexcept {
  BASALT_CHECK(indexes.size() >= hashes.size());
  // The next group's seeds are on their way while this group's are used.
  std::array<std::array<uint64_t, kGroup>, 2> mixed;
  const auto fetch = [&](size_t begin) {
    std::array<uint64_t, kGroup>& group = mixed[begin / kGroup % 2];
    const size_t count = std::min(kGroup, hashes.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      group[i] = phash::Mix(hashes[begin + i]);
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
      indexes[begin + i] = seed != 0 ? top_.Slot(group[i], seed) : IndexOfBumped(group[i]);
    }
  }
}

void PerfectHash::IndexMany(std::span<const std::string_view> keys,
                            std::span<uint64_t> indexes) const noexcept {
  BASALT_CHECK(indexes.size() >= keys.size());
  std::array<uint64_t, 8 * kGroup> hashes;
  for (size_t begin = 0; begin < keys.size(); begin += hashes.size()) {
    const size_t count = std::min(hashes.size(), keys.size() - begin);
    for (size_t i = 0; i < count; ++i) hashes[i] = HashKey(keys[begin + i]);
    IndexMany(std::span(hashes).first(count), indexes.subspan(begin, count));
  }
}

uint64_t PerfectHash::HashKey(std::string_view key) const noexcept {
  return rest_->hash != nullptr ? (*rest_->hash)(key) : base::Hash(key, hash_seed_);
}

double PerfectHash::bits_per_key() const noexcept {
  return size_ == 0 ? 0 : 8 * static_cast<double>(bytes_.size()) / static_cast<double>(size_);
}

std::vector<PerfectHash::LevelFigures> PerfectHash::levels() const {
  std::vector<LevelFigures> figures;
  for (size_t i = 0; i < rest_->levels.size(); ++i) {
    const Level& level = rest_->levels[i];
    figures.push_back(
        {.keys = level.keys,
         .buckets = level.buckets,
         .slice = uint64_t{1} << (32 - level.drop),
         .bytes = base::RoundUp(level.buckets, 8) + rest_->hole_bytes[i] + sizeof(LevelRecord)});
  }
  if (rest_->table_keys > 0) {
    figures.push_back(
        {.keys = rest_->table_keys, .buckets = 0, .slice = 0, .bytes = 8 * rest_->table_keys});
  }
  return figures;
}

PerfectHashBuilder::PerfectHashBuilder(PerfectHashOptions options) : options_(std::move(options)) {}
PerfectHashBuilder::~PerfectHashBuilder() = default;

Result<PerfectHash> PerfectHashBuilder::Build(std::span<const std::string_view> keys) const {
  return PerfectHash::Own(phash::FunctionBuilder(options_).Build(keys));
}

Result<PerfectHash> PerfectHashBuilder::Build(const KeySource& keys) const {
  return PerfectHash::Own(phash::FunctionBuilder(options_).Build(keys));
}

Result<PerfectHash> PerfectHashBuilder::BuildFromHashes(std::span<const uint64_t> hashes) const {
  return PerfectHash::Own(phash::FunctionBuilder(options_).BuildFromHashes(hashes));
}

}  // namespace basalt
