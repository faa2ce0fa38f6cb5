#pragma once

#include <cstddef>

#include "basalt/cache.h"
#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block_ref.h"
#include "table/table_metadata.h"

namespace basalt::table {

/// Reads data block `index` from the file, straight into the cache's memory, or into its own where
/// there is no cache, or no room in it. Checks its bytes, its form, and that it holds exactly what
/// lies between the index's entries for it and its predecessor. Errors name file and offset.
Result<BlockRef> LoadCheckedBlock(const io::File& file, const TableMetadata& metadata, size_t index,
                                  Cache* cache);

/// A block's key in the cache.
struct BlockKey {
  uint64_t file_id;
  uint64_t index;

  static BlockKey Of(const TableMetadata& metadata, size_t index) noexcept {
    return {metadata.properties.file_id, index};
  }
  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(this), sizeof *this};
  }
};

}  // namespace basalt::table
