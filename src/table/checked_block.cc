#include "table/checked_block.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/internal_key.h"
#include "table/block.h"
#include "table/stored_block.h"

namespace basalt::table {
namespace {

// Block `i` must hold exactly what lies between the index's entries for it and its predecessor.
Status CheckPlace(const io::File& file, const TableMetadata& metadata, size_t i,
                  const Block& block) {
  const Block& index = *metadata.index;
  const auto at = static_cast<uint32_t>(i);
  const uint32_t last = block.count() - 1;
  const auto corrupt = [&](std::string_view what) {
    return TableError(StatusCode::kCorruption, file.path(), "block", metadata.handle(i).offset,
                      what);
  };
  if (block.tag(last) != index.tag(at) || !block.KeyEquals(last, index.Key(at))) {
    return corrupt("its last record is not the one that the index names");
  }
  if (i == 0) {
    return block.KeyEquals(0, metadata.properties.smallest_key)
               ? Status()
               : corrupt("its first key is not the smallest key of the properties");
  }
  if (base::CompareInternal(index.Key(at - 1), index.tag(at - 1), block.Key(0), block.tag(0)) >=
      0) {
    return corrupt("it begins before the block before it ends");
  }
  return Status();
}

}  // namespace

Result<BlockRef> LoadCheckedBlock(const io::File& file, const TableMetadata& metadata, size_t i,
                                  Cache* cache) {
  const BlockHandle handle = metadata.handle(i);
  const uint64_t file_id = metadata.properties.file_id;
  BASALT_ASSIGN_OR_RETURN(const StoredBlock stored, StoredBlock::Read(file, file_id, handle));
  const size_t size = BlockRef::MemoryBytes(stored.raw_bytes());
  std::optional<CacheAllocation> in_cache;
  Value own;
  char* bytes = nullptr;
  if (cache != nullptr) {
    auto allocation = cache->Allocate(BlockKey::Of(metadata, i).view(), size);
    if (allocation) in_cache.emplace(std::move(*allocation));
  }
  if (in_cache) {
    bytes = in_cache->bytes().data();
  } else {
    own = AllocateBlockMemory(size, &bytes);
  }
  char* const raw = bytes + BlockRef::kHeaderBytes;
  const Result<Block> block = stored.UnpackTo({raw, stored.raw_bytes()}, metadata.dictionary);
  if (!block) {
    return TableError(block.error().code(), file.path(), "block", handle.offset,
                      block.error().message());
  }
  BASALT_RETURN_IF_ERROR(CheckPlace(file, metadata, i, *block));
  const Block::Extent extent = block->extent();
  std::memcpy(bytes, &extent, sizeof extent);
  std::memset(raw + stored.raw_bytes(), 0, size - BlockRef::kHeaderBytes - stored.raw_bytes());
  return BlockRef(in_cache ? std::move(*in_cache).Publish() : std::move(own));
}

}  // namespace basalt::table
