#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "basalt/status.h"
#include "base/record_iterator.h"

namespace basalt::table {

/// A sorted run: tables in key order, whose records do not overlap (every record of one sorts
/// before every record of the next; versions of one key may lie in neighbours).
class SortedTables {
 public:
  virtual ~SortedTables() = default;
  virtual size_t size() const noexcept = 0;
  /// The first table whose largest key is not below `key`; size(): none.
  virtual size_t FirstNotBelow(std::string_view key) const noexcept = 0;
  virtual std::string_view SmallestKey(size_t i) const noexcept = 0;
  /// All records of table i, which lives as long as this object, or why it cannot be opened.
  virtual Result<std::unique_ptr<base::RecordIterator>> NewIterator(size_t i,
                                                                    bool fill_cache) const = 0;
};

/// All records of the run. Has one of its tables open at a time, and asks for no other.
std::unique_ptr<base::RecordIterator> NewConcatenatingIterator(
    std::unique_ptr<const SortedTables> tables, bool fill_cache);

}  // namespace basalt::table
