#pragma once

// src/table: immutable sorted files of records. Read Table first; table_format.h has the bytes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "basalt/cache.h"
#include "basalt/status.h"
#include "basalt/value.h"
#include "base/internal_key.h"
#include "base/record_iterator.h"
#include "io/file_system.h"
#include "table/metadata_budget.h"
#include "table/record_place.h"
#include "table/table_builder.h"

namespace basalt::table {

class Block;
class BlockHint;
class BlockRef;
class ReadAhead;
struct IndexEntry;
struct TableMetadata;

/// What a lookup in a table found.
struct TableRead {
  base::Tag tag = 0;
  uint64_t time_ms = 0;  ///< As in base::RecordIterator.
  Value value;           ///< Empty for a delete. Of a merge: its operator and its operand. A copy,
                         ///< but one of a quarter of its block or more pins the block instead.
};

/// An open table: index, and point index or filter, in memory; blocks through the cache. Index and
/// filter for which the budget has no room are read in parts, through the cache too.
///
/// Invariants, checked when a part is read and relied on afterwards: the blocks follow one another
/// from the header to the first section without a gap; block i begins after the last record of
/// block i - 1 and ends with exactly the record that the index names. A search of the index
/// therefore names the one block that can hold the answer.
///
/// Cost of a Get, in cache misses: 1 for the point index, which ends it for 299 of 300 absent keys,
/// and at the same time 1 for the key's place; then one block of the cache: its slot, its head, the
/// columns of one record, its value, some ten lines that are asked for together (see BlockHint) and
/// take little more than one. Without a point index: 1 for the filter, which ends it for 99 % of
/// absent keys; 2-3 in the index's prefix column; the block's slot, its prefix column (2), its
/// record. What is in parts costs a lookup in the cache more for the filter, and one for the index.
/// A value that is small is copied out of the block under the cache's epoch, so that threads share
/// nothing that they write.
/// Thread-safe: nothing changes after Open but the cache and the hints.
class Table : public std::enable_shared_from_this<Table> {
 public:
  /// Reads header, trailer, section table, index, properties, and the point index where `budget`
  /// has room for it, else the filter; and holds them against what the manifest says. `cache` may
  /// be null: blocks are then read every time, and nothing is read in parts. `budget` null: no
  /// limit. Corruption: not this table, or damaged; Unsupported: written by a newer version. Both
  /// name file and offset.
  static Result<std::shared_ptr<Table>> Open(std::unique_ptr<io::File> file,
                                             uint64_t expected_file_id, uint32_t expected_keyspace,
                                             uint64_t expected_bytes, std::shared_ptr<Cache> cache,
                                             std::shared_ptr<MetadataBudget> budget = nullptr);
  /// The same for a table that no manifest names: nothing but itself says what it should be.
  static Result<std::shared_ptr<Table>> OpenUnnamed(std::unique_ptr<io::File> file);
  ~Table();

  /// The newest version of `key` with a sequence <= `at`. False: none here. `hash` is
  /// base::Hash(key).
  Result<bool> Get(std::string_view key, uint64_t hash, base::SequenceNumber at, bool fill_cache,
                   TableRead* found) const;
  /// What a lookup without I/O gives.
  enum class CachedAnswer : uint8_t {
    kAbsent,
    kFound,
    kUnknown,  ///< A block would have to be read, or is not what it should be: ask Get.
  };
  /// The same without I/O, so that it may be called inside an epoch.
  CachedAnswer GetCached(std::string_view key, uint64_t hash, base::SequenceNumber at,
                         TableRead* found) const;
  /// Starts to load the line where a lookup begins.
  void Prefetch(uint64_t hash) const noexcept;
  /// Where a lookup will look first, if the point index knows the key: read from the lines for
  /// which Prefetch has asked. Starts to load what PrefetchRecord reads.
  std::optional<RecordPlace> FirstPlace(uint64_t hash) const noexcept;
  /// Starts to load a record and what leads to it, if its block was cached when it was last seen.
  void PrefetchRecord(RecordPlace place) const noexcept;

  /// All versions, in internal order; keeps the table alive. Blocks that are not cached are kept in
  /// the cache only under `fill_cache`.
  std::unique_ptr<base::RecordIterator> NewIterator(bool fill_cache) const;

  /// Bytes of memory that the table takes besides its blocks: what its budget is charged.
  uint64_t metadata_bytes() const;
  /// Whether lookups use the point index.
  bool has_point_index() const;
  /// Whether the index or the filter is read in parts.
  bool is_in_parts() const;
  /// The smallest and the largest key are cut (CutKey).
  const TableProperties& properties() const;
  const std::string& path() const;

  /// Reads the whole file again, past the cache: metadata, then every block; checks checksums,
  /// order, counts against the properties, that the filter knows every key, and that the point
  /// index leads to the newest version of each. `on_block` hears of the bytes done; when it answers
  /// false, the result is Cancelled. Each fault goes to `on_fault` with its offset, and the reading
  /// goes on behind it. Either may be empty.
  Status Verify(const std::function<bool(uint64_t bytes)>& on_block,
                const std::function<void(uint64_t offset, Status fault)>& on_fault) const;

  // What the table's own iterator uses.
  size_t block_count() const;
  /// The block that holds the first record at or after (key, tag); block_count() when none does.
  /// Reads an index in parts, which stay in the cache whatever becomes of the blocks.
  Result<size_t> FindBlock(std::string_view key, base::Tag tag) const;
  /// Block `index` (< block_count()), from the cache or the file. `ahead`: of the reader, which is
  /// about to read more.
  Result<BlockRef> ReadBlock(size_t index, bool fill_cache, ReadAhead* ahead = nullptr) const;
  /// Starts to load what PrefetchSearch looks at.
  void PrefetchHint(size_t index) const noexcept;
  /// Starts to load what a search in block `index` (< block_count()) begins with, if it is cached.
  void PrefetchSearch(size_t index) const noexcept;

 private:
  /// What a block says to a lookup of a key.
  enum class Answer : uint8_t {
    kFound,
    kOther,    ///< There is another key.
    kTooNew,   ///< The key's version is one that the reader does not see.
    kOutside,  ///< The block has no such record.
    kNotCached,
    kFailed,  ///< A status says why.
  };
  struct Located {
    Answer answer = Answer::kOther;
    uint32_t record = 0;  ///< When found.
  };

  /// Where blocks may come from.
  enum class Access : uint8_t { kCached, kRead, kReadAndKeep };

  /// Where a lookup may look, what it has found, and why it failed.
  struct Reading {
    Access access;
    TableRead* found;
    Status error{};
  };

  /// Not kTooNew or kOutside.
  Answer Lookup(std::string_view key, uint64_t hash, base::SequenceNumber at,
                Reading* reading) const;
  /// Asks `locate(block)` of block `index`, and takes the record that it found.
  template <class Locate>
  Answer AskBlock(size_t index, const Locate& locate, Reading* reading) const;
  /// Looks at one record, for the key's newest version.
  Answer AskPlace(RecordPlace place, std::string_view key, base::Tag seek_tag,
                  Reading* reading) const;
  /// kFound: the index was asked for the block as FindBlock says.
  Answer AskIndex(std::string_view key, base::Tag tag, Reading* reading, size_t* block) const;
  /// kFound: a key with this hash may be there.
  Answer AskFilter(uint64_t hash, Reading* reading) const;
  /// What the index says of block `index`.
  Result<IndexEntry> ReadEntry(size_t index) const;
  Result<BlockRef> LoadBlock(size_t index, bool fill_cache, ReadAhead* ahead) const;
  /// By the index alone.
  Answer Search(std::string_view key, base::Tag seek_tag, Reading* reading) const;

  Table(std::unique_ptr<io::File> file, std::unique_ptr<const TableMetadata> metadata,
        std::shared_ptr<Cache> cache);

  std::unique_ptr<io::File> file_;
  std::unique_ptr<const TableMetadata> metadata_;
  std::shared_ptr<Cache> cache_;
  const std::unique_ptr<BlockHint[]>
      hints_;  // of each block; null without a cache or a whole index
};

}  // namespace basalt::table
