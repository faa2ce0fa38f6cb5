#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_system.h"

// A file gen-NNNNNN: which files the map consists of. Immutable, written whole: as .tmp, synced,
// the directory synced with the names of the files in it, renamed, the directory synced again, and
// only then published in CONTROL.
//
//   offset size
//        0    8  "BSALTMG1"
//        8    4  version: 1, or 2: keys are hashed under the map id (base/seeded_hash.h)
//       12    4  required features: 0
//       16    8  map id
//       24    8  number of this version
//       32    8  next number of a base, log or index file
//       40    8  live entries, as of location `counted` of the newest changes
//       48    4  counted: changes before it were synced before this list was written
//       52    4  log2 of the shards, at most 20
//       56    4  change sets, 1 or 2: the newest; then those being compacted into the base
//       60    4  0
//       64   12  a shard: number of its base file (8; 0: no records), change sets that apply to it
//                (2), 1 if the file also holds records of shards that were split off (2)
//        .   16  a change set: number of its index file (8), log segments (4), 0 (4)
//        .   32  a segment of it: number of its file (8), capacity in bytes (8), first location
//        (4),
//                end location (4; 0: it is open), low half of its last record's checksum (4), 0 (4)
//        .    8  checksum of all before

namespace basalt::shared_map {

/// A place in a log, counted in units of 8 bytes over all segments of a change set. 0: none.
using Location = uint32_t;

struct SegmentEntry {
  uint64_t file = 0;
  uint64_t capacity_bytes = 0;
  Location first = 0;
  Location end = 0;            ///< 0: open, the log goes on.
  uint32_t last_checksum = 0;  ///< Of what stands before `end`.
  bool operator==(const SegmentEntry&) const = default;
};

struct ChangeSetEntry {
  uint64_t index_file = 0;
  std::vector<SegmentEntry> segments{};
  bool operator==(const ChangeSetEntry&) const = default;
};

struct ShardEntry {
  uint64_t base_file = 0;
  uint16_t change_sets = 1;  ///< 1: the newest; 2: also those being compacted.
  bool mixed = false;        ///< The base also holds records of other shards.
  bool operator==(const ShardEntry&) const = default;
};

struct VersionFiles {
  static constexpr uint32_t kShardBitsMax = 20;
  static constexpr uint32_t kSegmentsMax = 64;  ///< Of a change set.
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;

  uint64_t map_id = 0;
  /// Keys are hashed under the map id, so that strangers who choose them cannot make them collide.
  bool is_seeded = false;
  uint64_t number = 0;
  uint64_t next_file = 1;
  uint64_t entries = 0;
  Location counted = 0;
  uint32_t shard_bits = 0;
  std::vector<ShardEntry> shards{ShardEntry{}};
  std::vector<ChangeSetEntry> change_sets{};

  bool operator==(const VersionFiles&) const = default;
  bool compacting() const noexcept { return change_sets.size() > 1; }
  /// Of base::SeededHash, for all keys.
  uint64_t hash_seed() const noexcept { return is_seeded ? map_id : 0; }
  /// Names of the files in it.
  std::vector<std::string> FileNames() const;

  std::string Encode() const;
  /// `source` is named in errors. Every number that is used later is checked.
  static Result<VersionFiles> Decode(std::string_view bytes, std::string_view source);
};

/// A version's list, and its file, which is marked as in use while it is open.
struct ListFile {
  VersionFiles list;
  std::unique_ptr<io::File> file;

  /// `map_id`: that of CONTROL, if it could be read. Corruption: also when the list has another.
  static Result<ListFile> Open(io::FileSystem* fs, std::string_view directory, uint64_t number,
                               std::optional<uint64_t> map_id);
  /// Writes the file under its name: the bytes of what it names must be synced. Afterwards it
  /// survives a power cut, and so do the names of the files in it. After an error it may be there,
  /// and be lost or kept by one.
  static Status Write(io::FileSystem* fs, const std::string& directory, const VersionFiles& list);
  /// Removes it, if it is there, for good.
  static Status Remove(io::FileSystem* fs, const std::string& directory, uint64_t number);
};

}  // namespace basalt::shared_map
