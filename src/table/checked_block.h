#pragma once

#include <cstddef>

#include "basalt/cache.h"
#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block_index.h"
#include "table/block_ref.h"
#include "table/table_metadata.h"

namespace basalt::table {

// Both read straight into the cache's memory, or into their own where there is no cache, or no room
// in it. Errors name file and offset.

/// Reads data block `index` from the file. Checks its bytes, its form, and that it holds exactly
/// what lies between the index's entries for it, `entry`, and its predecessor.
Result<BlockRef> LoadCheckedBlock(const io::File& file, const TableMetadata& metadata, size_t index,
                                  const IndexEntry& entry, Cache* cache);

/// Reads part `part` of an index in parts. Checks its bytes, its form, and that it fits the root.
Result<BlockRef> LoadIndexPart(const io::File& file, const TableMetadata& metadata, size_t part,
                               Cache* cache);

}  // namespace basalt::table
