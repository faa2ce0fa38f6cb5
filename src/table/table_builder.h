#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/options.h"
#include "basalt/status.h"
#include "base/internal_key.h"
#include "io/file_system.h"

namespace basalt::table {

/// What the manifest keeps of a table, and the table's own properties section.
struct TableProperties {
  uint64_t file_id = 0;
  uint32_t keyspace = 0;  ///< kSharedKeyspaces: several, and each key begins with its own.
  uint64_t file_bytes = 0;
  uint64_t records = 0;   ///< Versions, of any kind.
  uint64_t deletes = 0;   ///< Those of kind kDelete.
  uint64_t merges = 0;    ///< Those of kind kMerge.
  uint64_t expiring = 0;  ///< Those of kind kPut that expire.
  uint64_t raw_key_bytes = 0;
  uint64_t raw_value_bytes = 0;
  base::SequenceNumber smallest_sequence = 0;
  base::SequenceNumber largest_sequence = 0;
  uint64_t earliest_expiry_ms = 0;  ///< Wall milliseconds since 1970; 0: no put expires.
  uint64_t latest_expiry_ms = 0;
  std::string smallest_key;
  std::string largest_key;
};

/// So much of its smallest and its largest key an open table keeps (Table::properties).
inline constexpr size_t kKeptKeyBytes = 256;
inline std::string_view CutKey(std::string_view key) noexcept {
  return key.substr(0, kKeptKeyBytes);
}

/// A record that would carry a block beyond so many bytes begins the next one. A read of a cached
/// block costs about the same whatever its size, so that fewer are better; one that has to load a
/// block pays for all of its bytes.
inline constexpr size_t kBlockBytes = size_t{16} << 10;
inline constexpr size_t kBlockBytesBeyondMemory = size_t{8} << 10;

struct TableBuilderOptions {
  uint64_t file_id = 0;   ///< Of no other file; 64 random bits.
  uint32_t keyspace = 0;  ///< As in TableProperties.
  /// kLz4ThenZstd: Zstandard at the last level, LZ4 above it.
  Compression compression = Compression::kLz4;
  bool at_last_level = false;  ///< Nothing lies below: the records stay for long.
  size_t block_bytes = kBlockBytes;
};

/// Writes one table (docs/table.md) into an empty file. One thread at a time.
///
/// Records gather in a BlockBuilder until a block is full; the block is then compressed into a
/// write buffer that goes out in pieces of some 256 KiB. Per key it keeps 16 bytes (its hash and
/// the place of its newest version, for filter and point index), per block the last key, or a short
/// separator where that is long. Nothing is allocated per record. For Zstandard the first 512 KiB
/// of blocks wait until a dictionary has been made of them.
class TableBuilder {
 public:
  /// `file` must outlive the builder.
  TableBuilder(io::File* file, const TableBuilderOptions& options);
  ~TableBuilder();
  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;

  /// Takes the next version; `time_ms` is that of base::RecordIterator, and a merge's value is its
  /// operator's byte and its operand. A record out of internal order, of another kind than put,
  /// delete and merge, a delete with a value or a time, a merge without a value or a time, or an
  /// oversized key or value is a failed check. An error of the file stays: later calls answer it
  /// too, and the file must be thrown away.
  Status Add(std::string_view key, base::Tag tag, uint64_t time_ms, std::string_view value);

  /// Writes the metadata and syncs the file. FailedPrecondition when nothing was added: there is no
  /// table without records.
  Status Finish();

  /// Bytes of the file so far: written, waiting to be written, and estimates of the open block, the
  /// index, the filter and the point index.
  uint64_t file_bytes() const;
  /// Complete after Finish; before that, of the records so far (without `file_bytes`).
  const TableProperties& properties() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace basalt::table
