#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block_index.h"
#include "table/bloom_filter.h"
#include "table/filter_pages.h"
#include "table/metadata_budget.h"
#include "table/point_index.h"
#include "table/table_builder.h"
#include "table/table_format.h"
#include "table/zstd_block.h"

namespace basalt::table {

/// What an open table keeps in memory.
struct TableMetadata {
  TableProperties properties;
  uint64_t properties_offset = 0;
  uint64_t point_index_offset = 0;
  uint64_t data_end = 0;  ///< Where the last data block ends and the first section begins.
  BlockIndex index;
  ZstdDictionary dictionary;  ///< Empty: the table has none.
  /// Empty: the table has none, or there was no room for it.
  PointIndex point_index;
  /// Empty: the table has none, or the point index is there, or there was no room for it.
  BloomFilter filter;
  FilterPages filter_pages;  ///< Not empty: there was no room for the filter.
  MetadataCharge charge;

  bool is_in_parts() const noexcept { return index.whole() == nullptr || !filter_pages.empty(); }
};

/// Counts one more version in the numbers of `properties`.
void CountRecord(std::string_view key, base::Tag tag, uint64_t time_ms, std::string_view value,
                 TableProperties* properties) noexcept;

/// The bytes of the properties section.
std::string EncodeProperties(const TableProperties& properties);

/// Reads and checks a table file but its data blocks. One use.
class MetadataReader {
 public:
  MetadataReader(const io::File& file, uint64_t expected_file_id, uint32_t expected_keyspace,
                 uint64_t expected_bytes)
      : file_(file),
        expected_file_id_(expected_file_id),
        expected_keyspace_(expected_keyspace),
        expected_bytes_(expected_bytes) {}

  /// Where index and filter stay for which the budget has no room.
  enum class NoRoom : uint8_t {
    kInParts,   ///< In the file; who needs a part reads it, through a cache.
    kInMemory,  ///< In memory all the same.
  };

  /// What lookups need: the index; the point index if `budget` (null: no limit) has room for it,
  /// else the filter.
  Result<std::unique_ptr<TableMetadata>> Read(std::shared_ptr<MetadataBudget> budget,
                                              NoRoom no_room);
  /// Filter and point index; the index in parts, which are not read, if the file has it so.
  Result<std::unique_ptr<TableMetadata>> ReadAll();

  /// Where the part begins that is being read, or at which Read failed.
  uint64_t offset() const noexcept { return part_offset_; }

 private:
  Status ReadHeader();
  Status ReadTrailer();
  Result<std::unique_ptr<TableMetadata>> ReadSections();
  Status ReadSectionTable(std::string* entries);
  Status ReadSection(const SectionEntry& entry);
  Status ReadIndex(const SectionEntry& entry);
  Status ReadIndexRoot(const SectionEntry& entry);
  Result<std::shared_ptr<const Block>> ReadIndexBlock(const SectionEntry& entry);
  Result<std::shared_ptr<const Block>> ParseIndex(BlockBuffer buffer);
  /// Checks a whole index and makes it the table's.
  Status TakeIndex(std::shared_ptr<const Block> index);
  /// Decides whether an index in parts is to be in memory whole.
  Status OpenIndex();
  /// Reads all parts of the index.
  Status GatherIndex();
  Status ReadDictionary(const SectionEntry& entry);
  Status ReadPointIndex(const SectionEntry& entry);
  Status ReadFilter(const SectionEntry& entry);
  Status ReadProperties(const SectionEntry& entry);
  Status SkipUnknown(const SectionEntry& entry);
  Status ReadChecked(const SectionEntry& entry, std::span<char> out);
  Status CheckWhole();

  /// Names the part that the next errors are about.
  void Enter(const char* part, uint64_t offset) noexcept {
    part_ = part;
    part_offset_ = offset;
  }
  Status Error(StatusCode code, std::string_view what) const {
    return TableError(code, file_.path(), part_, part_offset_, what);
  }
  Status Corrupt(std::string_view what) const { return Error(StatusCode::kCorruption, what); }
  Status Unsupported(std::string_view what) const;

  const io::File& file_;
  const uint64_t expected_file_id_;
  const uint32_t expected_keyspace_;
  const uint64_t expected_bytes_;
  bool reads_all_ = false;
  NoRoom no_room_ = NoRoom::kInMemory;
  const char* part_ = "header";
  uint64_t part_offset_ = 0;
  FileHeader header_{};
  FileTrailer trailer_{};
  SectionEntry index_parts_{};  // kind 0: there are none
  uint64_t index_root_offset_ = 0;
  std::shared_ptr<const Block> index_root_;
  std::unique_ptr<TableMetadata> metadata_;
};

}  // namespace basalt::table
