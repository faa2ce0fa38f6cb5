#include "table/checked_block.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/internal_key.h"
#include "table/block.h"
#include "table/part_key.h"
#include "table/stored_block.h"

namespace basalt::table {
namespace {

// A block must hold exactly what lies between the index's entries for it and its predecessor. An
// entry is the block's last record or a separator behind it.
Status CheckPlace(const TableMetadata& metadata, size_t index, const IndexEntry& entry,
                  const Block& block) {
  const auto corrupt = [](const char* what) { return Status(StatusCode::kCorruption, what); };
  const uint32_t last = block.count() - 1;
  if (entry.last_tag == base::kNewestTag) {
    if (base::CompareInternal(block.Key(last), block.tag(last), entry.last_key, entry.last_tag) >=
        0) {
      return corrupt("it ends after the key that the index names");
    }
  } else if (block.tag(last) != entry.last_tag || !block.KeyEquals(last, entry.last_key)) {
    return corrupt("its last record is not the one that the index names");
  }
  if (index == 0) {
    return CutKey(block.Key(0)) == CutKey(metadata.properties.smallest_key)
               ? Status()
               : corrupt("its first key is not the smallest key of the properties");
  }
  if (base::CompareInternal(entry.bound_key, entry.bound_tag, block.Key(0), block.tag(0)) >= 0) {
    return corrupt("it begins before the block before it ends");
  }
  return Status();
}

// What is to be read, and as what.
struct StoredPart {
  const char* name;
  BlockHandle handle;
  Block::Content content;
  PartKey key;
};

// `check(block)` says whether it is the one that belongs there.
template <class Check>
Result<BlockRef> Load(const io::File& file, const TableMetadata& metadata, const StoredPart& part,
                      Cache* cache, const Check& check) {
  const uint64_t file_id = metadata.properties.file_id;
  BASALT_ASSIGN_OR_RETURN(const StoredBlock stored,
                          StoredBlock::Read(file, file_id, part.handle, part.name));
  const size_t size = BlockRef::MemoryBytes(stored.raw_bytes());
  std::optional<CacheAllocation> in_cache;
  Value own;
  char* bytes = nullptr;
  if (cache != nullptr) {
    auto allocation = cache->Allocate(part.key.view(), size);
    if (allocation) in_cache.emplace(std::move(*allocation));
  }
  if (in_cache) {
    bytes = in_cache->bytes().data();
  } else {
    own = AllocateBlockMemory(size, &bytes);
  }
  char* const raw = bytes + BlockRef::kHeaderBytes;
  const Result<Block> block =
      stored.UnpackTo({raw, stored.raw_bytes()}, metadata.dictionary, part.content);
  const Status status = block ? check(*block) : block.error();
  if (!status.ok()) {
    return TableError(status.code(), file.path(), part.name, part.handle.offset, status.message());
  }
  const Block::Extent extent = block->extent();
  std::memcpy(bytes, &extent, sizeof extent);
  std::memset(raw + stored.raw_bytes(), 0, size - BlockRef::kHeaderBytes - stored.raw_bytes());
  return BlockRef(in_cache ? std::move(*in_cache).Publish() : std::move(own));
}

}  // namespace

Result<BlockRef> LoadCheckedBlock(const io::File& file, const TableMetadata& metadata, size_t index,
                                  const IndexEntry& entry, Cache* cache) {
  const StoredPart part = {.name = "block",
                           .handle = entry.handle,
                           .content = Block::Content::kData,
                           .key = PartKey::OfBlock(metadata.properties.file_id, index)};
  return Load(file, metadata, part, cache,
              [&](const Block& block) { return CheckPlace(metadata, index, entry, block); });
}

Result<BlockRef> LoadIndexPart(const io::File& file, const TableMetadata& metadata, size_t part,
                               Cache* cache) {
  const IndexPartHandle handle = metadata.index.handle(part);
  const StoredPart stored = {
      .name = "index part",
      .handle = {.offset = handle.offset, .payload_bytes = handle.payload_bytes},
      .content = Block::Content::kIndex,
      .key = PartKey::OfIndexPart(metadata.properties.file_id, part)};
  return Load(file, metadata, stored, cache, [&](const Block& entries) {
    return metadata.index.CheckPart(part, entries, metadata.data_end);
  });
}

}  // namespace basalt::table
