#include "table/table.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "table/block.h"
#include "table/block_ref.h"
#include "table/stored_block.h"
#include "table/table_iterator.h"
#include "table/table_metadata.h"

namespace basalt::table {
namespace {

// Keeps a block alive for a value that lies in it.
struct BlockPin : Value::Pin {
  BlockPin(BlockRef pinned, std::string_view value)
      : Value::Pin{.data = value.data(), .release = &Release}, block(std::move(pinned)) {}

  static void Release(Value::Pin* pin) noexcept { delete static_cast<BlockPin*>(pin); }

  BlockRef block;
};

// A block's key in the cache.
struct BlockKey {
  uint64_t file_id;
  uint64_t offset;
  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(this), sizeof *this};
  }
};

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

// Reads block `i` straight into the cache's memory, or into its own where there is no cache, or no
// room in it.
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
    auto allocation = cache->Allocate(BlockKey{file_id, handle.offset}.view(), size);
    if (allocation) in_cache.emplace(std::move(*allocation));
  }
  if (in_cache) {
    bytes = in_cache->bytes().data();
  } else {
    own = AllocateBlockMemory(size, &bytes);
  }
  char* const raw = bytes + BlockRef::kHeaderBytes;
  const Result<Block> block = stored.UnpackTo({raw, stored.raw_bytes()});
  if (!block) {
    return TableError(block.error().code(), file.path(), "block", handle.offset,
                      block.error().message());
  }
  BASALT_RETURN_IF_ERROR(CheckPlace(file, metadata, i, *block));
  base::Store(bytes, uint64_t{stored.raw_bytes()});
  base::Store(bytes + 8, uint64_t{block->key_bytes_max()});
  std::memset(raw + stored.raw_bytes(), 0, size - BlockRef::kHeaderBytes - stored.raw_bytes());
  return BlockRef(in_cache ? std::move(*in_cache).Publish() : std::move(own));
}

// Counts what blocks hold, to be held against the properties.
struct Census {
  void Count(std::string_view key, base::Tag tag, std::string_view value) {
    ++records;
    deletes += base::TagKind(tag) == RecordKind::kDelete ? 1 : 0;
    key_bytes += key.size();
    value_bytes += value.size();
    smallest_sequence = std::min(smallest_sequence, base::TagSequence(tag));
    largest_sequence = std::max(largest_sequence, base::TagSequence(tag));
  }
  bool Matches(const TableProperties& properties) const {
    return records == properties.records && deletes == properties.deletes &&
           key_bytes == properties.raw_key_bytes && value_bytes == properties.raw_value_bytes &&
           smallest_sequence == properties.smallest_sequence &&
           largest_sequence == properties.largest_sequence;
  }

  uint64_t records = 0;
  uint64_t deletes = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  base::SequenceNumber smallest_sequence = base::kMaxSequence;
  base::SequenceNumber largest_sequence = 0;
};

}  // namespace

Table::Table(std::unique_ptr<io::File> file, std::unique_ptr<const TableMetadata> metadata,
             std::shared_ptr<Cache> cache)
    : file_(std::move(file)), metadata_(std::move(metadata)), cache_(std::move(cache)) {}

Table::~Table() = default;

Result<std::shared_ptr<Table>> Table::Open(std::unique_ptr<io::File> file,
                                           uint64_t expected_file_id, uint32_t expected_keyspace,
                                           uint64_t expected_bytes, std::shared_ptr<Cache> cache) {
  MetadataReader reader(*file, expected_file_id, expected_keyspace, expected_bytes);
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<const TableMetadata> metadata, reader.Read());
  return std::shared_ptr<Table>(new Table(std::move(file), std::move(metadata), std::move(cache)));
}

size_t Table::block_count() const { return metadata_->index->count(); }
const TableProperties& Table::properties() const { return metadata_->properties; }
const std::string& Table::path() const { return file_->path(); }

uint64_t Table::metadata_bytes() const {
  return sizeof(TableMetadata) + metadata_->index->size() + metadata_->filter.bytes().size();
}

size_t Table::FindBlock(std::string_view key, base::Tag tag) const {
  return metadata_->index->LowerBound(key, tag);
}

Result<BlockRef> Table::ReadBlock(size_t index, bool fill_cache) const {
  if (cache_ != nullptr) {
    const BlockKey key{metadata_->properties.file_id, metadata_->handle(index).offset};
    if (MaybeValue cached = cache_->Get(key.view())) return BlockRef(std::move(*cached));
  }
  return LoadCheckedBlock(*file_, *metadata_, index, fill_cache ? cache_.get() : nullptr);
}

Result<bool> Table::Get(std::string_view key, uint64_t hash, base::SequenceNumber at,
                        bool fill_cache, TableRead* found) const {
  if (!metadata_->filter.empty() && !metadata_->filter.MayContain(hash)) return false;
  const base::Tag seek_tag = base::SeekTag(at);
  const size_t index = FindBlock(key, seek_tag);
  if (index == block_count()) return false;
  BASALT_ASSIGN_OR_RETURN(BlockRef block, ReadBlock(index, fill_cache));
  // The block ends at or after the target, so the first record from there on is in it.
  const uint32_t record = block->LowerBound(key, seek_tag);
  if (record == block->count() || !block->KeyEquals(record, key)) return false;
  found->tag = block->tag(record);
  const std::string_view value = block->value(record);
  if (value.size() <= Value::kInlineBytes) {
    found->value = Value::Copy(value);
  } else {
    found->value = Value::Pinned(new BlockPin(std::move(block), value), value.size());
  }
  return true;
}

std::unique_ptr<base::RecordIterator> Table::NewIterator(bool fill_cache) const {
  return std::make_unique<TableIterator>(shared_from_this(), fill_cache);
}

Status Table::Verify(const std::function<bool(uint64_t bytes)>& on_block,
                     const std::function<void(uint64_t offset, Status fault)>& on_fault) const {
  const auto cancelled = [&](uint64_t bytes) { return on_block && !on_block(bytes); };
  const auto report = [&](uint64_t offset, Status fault) {
    if (on_fault) on_fault(offset, std::move(fault));
  };
  Status cancelled_status(StatusCode::kCancelled, "verify " + path() + ": cancelled");
  const TableProperties& properties = metadata_->properties;

  MetadataReader reader(*file_, properties.file_id, properties.keyspace, properties.file_bytes);
  if (const auto metadata = reader.Read(); !metadata) report(reader.offset(), metadata.error());
  if (cancelled(sizeof(FileHeader) + properties.file_bytes - metadata_->data_end)) {
    return cancelled_status;
  }

  Census census;
  bool whole = true;
  BlockCursor cursor;
  for (size_t i = 0; i < block_count(); ++i) {
    const BlockHandle handle = metadata_->handle(i);
    const auto block = LoadCheckedBlock(*file_, *metadata_, i, nullptr);
    if (!block) {
      report(handle.offset, block.error());
      whole = false;
    } else {
      cursor.Reset(**block);
      for (cursor.MoveTo(0); cursor.Valid(); cursor.Next()) {
        census.Count(cursor.key(), cursor.tag(), cursor.value());
        if (metadata_->filter.empty() || metadata_->filter.MayContain(base::Hash(cursor.key()))) {
          continue;
        }
        report(handle.offset, TableError(StatusCode::kCorruption, path(), "block", handle.offset,
                                         "the filter does not know the key of record " +
                                             std::to_string(cursor.index())));
      }
    }
    if (cancelled(handle.payload_bytes + kBlockTrailerBytes)) return cancelled_status;
  }
  if (whole && !census.Matches(properties)) {
    report(metadata_->properties_offset,
           TableError(StatusCode::kCorruption, path(), "properties", metadata_->properties_offset,
                      "they do not describe the records; " + std::to_string(census.records) +
                          " were found, " + std::to_string(properties.records) + " are claimed"));
  }
  return Status();
}

}  // namespace basalt::table
