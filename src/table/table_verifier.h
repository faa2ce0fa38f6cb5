#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block_ref.h"
#include "table/table_metadata.h"

namespace basalt::table {

/// Reads all of an open table again and holds its parts against each other: see Table::Verify. One
/// use.
class TableVerifier {
 public:
  using OnBlock = std::function<bool(uint64_t bytes)>;
  using OnFault = std::function<void(uint64_t offset, Status fault)>;

  /// `metadata`: as the table was opened with.
  TableVerifier(const io::File& file, const TableMetadata& metadata, const OnBlock& on_block,
                const OnFault& on_fault)
      : file_(file), metadata_(metadata), on_block_(on_block), on_fault_(on_fault) {}

  Status Run();

 private:
  bool GoesOn(uint64_t bytes) const { return !on_block_ || on_block_(bytes); }
  void Report(uint64_t offset, Status fault) const {
    if (on_fault_) on_fault_(offset, std::move(fault));
  }
  /// Gives what lookups go through: all that there is, or, if that cannot be read, what is open.
  const TableMetadata& ReadMetadata();
  /// Part `part` of the index, which is in parts; null: it cannot be read, and part_fault_ says
  /// why.
  const Block* Part(size_t part);
  /// The index's entry for a block; false: its part cannot be read.
  bool FindEntry(size_t index, IndexEntry* entry);
  /// The block that holds the first record at or after (key, tag), as far as that can be found out.
  size_t FindBlock(std::string_view key, base::Tag tag);
  void SkipBlock(size_t index);
  void CheckEnd(uint64_t next_offset, const char* next) const;
  void CheckBlock(size_t index, const IndexEntry& entry);
  /// That filter and point index lead to a key's newest version, which lies here.
  void CheckLookups(size_t index, const IndexEntry& entry, uint32_t record, std::string_view key);
  bool HoldsKey(RecordPlace place, std::string_view key, size_t newest_block);
  void CheckPlaces() const;
  void CheckCounts() const;

  const io::File& file_;
  const TableMetadata& metadata_;
  const OnBlock& on_block_;
  const OnFault& on_fault_;
  std::unique_ptr<TableMetadata> all_metadata_;
  const TableMetadata* lookups_ = nullptr;
  BlockRef part_;                  // of an index in parts
  size_t part_number_ = SIZE_MAX;  // none yet
  Status part_fault_;
  TableProperties census_;
  std::vector<uint32_t> record_counts_;       // of the blocks; 0: unreadable
  uint64_t blocks_end_ = sizeof(FileHeader);  // of those looked at; 0: not known
};

}  // namespace basalt::table
