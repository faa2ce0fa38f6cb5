#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"
#include "db/version.h"
#include "io/file_system.h"
#include "table/table.h"
#include "wal/recovery.h"

// The manifest: which tables a database has, and from where its log counts. It is written whole
// into MANIFEST.tmp, synced, and renamed over MANIFEST after the directory was synced, so that a
// reader finds the old one or the new one and both name only files that are there. A table costs
// about 150 bytes and its two end keys, so that a whole rewrite per flush is a small part of what
// the flush itself writes up to some ten thousand tables.
//
//   offset size  header
//        0    8  magic "BSLTMAN1"
//        8    4  format version, 1
//       12    4  required features: an unknown bit refuses the file. Without bit 0 the body ends
//                with the tables, and their entries with the keys; without bit 1 entries of tables
//                end with the time; without bit 2 the body ends with the range deletes; without
//                bit 3 there are no blocks of range deletes
//       16    4  optional features, 0
//       20    4  zero
//       24    8  database id, random for life
//       32    8  bytes of the body
//       40    8  checksum of the body, bound to database id and offset 64
//       48    8  zero
//       56    8  checksum of bytes 0 to 55, bound to offset 0
//
//                body
//       64    8  next table number
//       72    8  flushed LSN: the log up to it is in the tables
//       80    8  durable LSN: the log up to it was known to survive a power cut
//       88    8  last sequence number in the tables, or known to be used
//       96    8  wall clock in ms since 1970 when it was written; never runs backwards
//      104    4  number of tables
//      108    4  zero
//      112       tables, keyspace by keyspace, level by level, level 0 newest first, others in key
//                order:
//
//        0    8  number            8  8  file id
//       16    4  keyspace, 0xFFFFFFFF: several (tree_key.h)
//       20    4  level
//       24    8  file bytes       32  8  records
//       40    8  deletes          48  8  raw key bytes
//       56    8  raw value bytes  64  8  smallest sequence
//       72    8  largest sequence 80  8  earliest expiry, 0: none
//       88    8  latest expiry    96  2  smallest key's length
//       98    2  largest key's length    100  smallest key, largest key
//                then
//        0    8  merges            8  8  records that expire
//       16    8  sequence up to which range deletes have been applied to it
//       24    8  when it was written, in ms since 1970
//       32    8  when half of its keys and values will have expired, in ms since 1970; 0: never
//       40    8  bytes of keys and values that are there for snapshots alone
//
//                then the keyspaces, ascending
//        0    4  number of keyspaces other than the default one
//        4    4  next keyspace id
//                each:
//        0    4  id                4  1  durability (Durability), 255: the database's
//        5    1  zero              6  2  name's length     8  name
//
//                then the range deletes, ascending by keyspace
//        0    4  number of them    4  4  zero
//                each:
//        0    8  sequence          8  4  keyspace
//       12    2  begin's length   14  2  end's length     16  begin, end
//
//                then with bit 3 further range deletes, if there are many
//        0    4  number of blocks  4  4  zero
//        8       the blocks (range_delete_blocks.h)
//
//                then the keyspaces that were dropped, ascending, whose records some table may hold
//        0    4  number of them    4  4  zero
//                each:
//        0    4  id                4  4  zero
//        8    8  table number: tables below it may hold some

namespace basalt::db {

/// A larger file is not read.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

struct ManifestTable {
  TableFile::Place place;
  uint32_t level = 0;
  table::TableProperties properties;  ///< With keys as the table itself has them.
};

/// A keyspace other than the default one.
struct Keyspace {
  uint32_t id = 0;
  std::optional<Durability> durability{};  ///< Of writes that name none; unset: the database's.
  std::string name;
};

struct Manifest {
  uint64_t database_id = 0;
  uint64_t next_table_number = 1;
  uint64_t flushed_lsn = 0;
  uint64_t durable_lsn = 0;
  uint64_t last_sequence = 0;
  uint64_t wall_ms = 0;
  uint32_t next_keyspace_id = 1;
  std::vector<Keyspace> keyspaces;  ///< Ascending by id.
  std::vector<ManifestTable> tables;
  std::vector<ManifestRangeDelete> range_deletes;
  /// Further ones, by tree; only to be written.
  std::vector<RangeDeletes> tree_range_deletes{};
  std::vector<DroppedKeyspace> dropped_keyspaces;

  wal::ManifestClaims ClaimsOfLog() const noexcept {
    return {.database_id = database_id, .flushed_lsn = flushed_lsn, .durable_lsn = durable_lsn};
  }
};

std::string EncodeManifest(const Manifest& manifest);
/// Validates everything. `path` is for messages. Corruption names path and offset; Unsupported
/// names the version that wrote it.
Result<Manifest> DecodeManifest(std::string_view bytes, std::string_view path);

/// A range delete by the keys of its tree.
RangeDelete InTree(const ManifestRangeDelete& deleted);

/// The tables and range deletes that it names, as a version.
std::shared_ptr<const Version> VersionOf(const Manifest& manifest, io::FileSystem* fs,
                                         const std::string& directory,
                                         const TableFile::Resources& resources);

/// Of the manifest in `directory`, to be decoded. NotFound when there is none.
Result<std::string> ReadManifestBytes(io::FileSystem* fs, const std::string& directory);
/// NotFound when there is none.
Result<Manifest> ReadManifest(io::FileSystem* fs, const std::string& directory);
/// The bytes of the manifest in `directory`, which ReadManifest will accept. ResourceExhausted:
/// they would be more than `max_bytes`.
Result<std::string> EncodeReadable(const Manifest& manifest, const std::string& directory,
                                   uint64_t max_bytes = kMaxManifestBytes);
/// Makes the entries of the files that it names durable, and writes it beside the present one,
/// which is still there after an error.
Status WriteEncoded(io::FileSystem* fs, const std::string& directory, std::string_view bytes);
/// Puts it in the place of the present one, atomically and durably. After an error the old or the
/// new one may be there: files of both must stay.
Status InstallWritten(io::FileSystem* fs, const std::string& directory);
/// All three.
Status WriteManifest(io::FileSystem* fs, const std::string& directory, const Manifest& manifest);

}  // namespace basalt::db
