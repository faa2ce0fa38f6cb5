#pragma once

#include <cstdint>
#include <string_view>

namespace basalt::table {

/// The key in the cache of a part of a table: a data block, a part of its index, a page of its
/// filter.
struct PartKey {
  uint64_t file_id;
  uint64_t number;  ///< What kind of part it is, in the upper byte, and which one.

  static PartKey OfBlock(uint64_t file_id, uint64_t block) noexcept { return {file_id, block}; }
  static PartKey OfIndexPart(uint64_t file_id, uint64_t part) noexcept {
    return {file_id, uint64_t{1} << 56 | part};
  }
  static PartKey OfFilterPage(uint64_t file_id, uint64_t page) noexcept {
    return {file_id, uint64_t{2} << 56 | page};
  }
  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(this), sizeof *this};
  }
};

}  // namespace basalt::table
