#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block.h"
#include "table/bloom_filter.h"
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
  std::shared_ptr<const Block> index;
  ZstdDictionary dictionary;  ///< Empty: the table has none.
  /// Empty: the table has none, or there was no room for it.
  PointIndex point_index;
  BloomFilter filter;  ///< Empty: the table has none, or the point index is there.
  MetadataCharge charge;

  /// The handle of data block `i` < index->count().
  BlockHandle handle(size_t i) const noexcept {
    return FromBytes<BlockHandle>(index->value(static_cast<uint32_t>(i)));
  }
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

  /// What lookups need: the point index if `budget` (null: no limit) has room for it, else the
  /// filter.
  Result<std::unique_ptr<TableMetadata>> Read(std::shared_ptr<MetadataBudget> budget);
  /// All of it.
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
  const char* part_ = "header";
  uint64_t part_offset_ = 0;
  FileHeader header_{};
  FileTrailer trailer_{};
  std::unique_ptr<TableMetadata> metadata_;
};

}  // namespace basalt::table
