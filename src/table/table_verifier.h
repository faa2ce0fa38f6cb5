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
#include "table/table_metadata.h"

namespace basalt::table {

/// Reads all of an open table again and holds its parts against each other: see Table::Verify. One
/// use.
class TableVerifier {
 public:
  using OnBlock = std::function<bool(uint64_t bytes)>;
  using OnFault = std::function<void(uint64_t offset, Status fault)>;

  /// `metadata`: as the table was opened with; its block index is what blocks are found by.
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
  void CheckBlock(size_t index);
  /// That filter and point index lead to a key's newest version, which lies here.
  void CheckLookups(size_t index, uint32_t record, std::string_view key) const;
  bool HoldsKey(RecordPlace place, std::string_view key, size_t newest_block) const;
  void CheckPlaces() const;
  void CheckCounts() const;

  const io::File& file_;
  const TableMetadata& metadata_;
  const OnBlock& on_block_;
  const OnFault& on_fault_;
  std::unique_ptr<TableMetadata> all_metadata_;
  const TableMetadata* lookups_ = nullptr;
  TableProperties census_;
  std::vector<uint32_t> record_counts_;  // of the blocks; 0: unreadable
};

}  // namespace basalt::table
