#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "base/internal_key.h"
#include "table/block.h"
#include "table/table_format.h"

namespace basalt::table {

/// What the index says of one data block.
struct IndexEntry {
  BlockHandle handle{};
  /// The record that the block ends with, or a separator: see BlockIndex.
  std::string last_key{};
  base::Tag last_tag = 0;
  /// Its first record comes after this one, unless it is the table's first block.
  std::string bound_key{};
  base::Tag bound_tag = 0;
};

/// A table's block index: one entry for each data block, in order. It is in memory whole, or in
/// parts: then only its root is here, and whoever looks something up reads the part that the root
/// names (see LoadIndexPart), mostly from the cache.
///
/// The root has one record for each part. Its key and tag are a *separator*: at or after the last
/// entry of its part, and before the first record of the block that follows; that of the last part
/// is the last entry itself. Separators are as short as they can be, and have the tag kNewestTag.
/// All parts but the last list the same number of blocks, so that a block's number says where its
/// entry is. The entry of a block is its last record, or, where that has a long key, a separator
/// too.
///
/// A record that is sought and that lies between a part's last entry and its separator begins the
/// next part: a search of the part then gives the number behind its last block, which is right. One
/// that lies between a block's last record and its separator begins the next block: a search of the
/// block then gives the number behind its last record.
///
/// Cost of a search: of the root and of one part, each as of a Block. Immutable, so thread-safe.
class BlockIndex {
 public:
  BlockIndex() noexcept = default;
  explicit BlockIndex(std::shared_ptr<const Block> whole) noexcept
      : whole_(std::move(whole)), block_count_(whole_->count()) {}
  /// In parts, which must fill the file from `begin` to `end`. Corruption: they do not.
  static Result<BlockIndex> InParts(std::shared_ptr<const Block> root, uint64_t begin,
                                    uint64_t end);

  bool empty() const noexcept { return block_count_ == 0; }
  size_t block_count() const noexcept { return block_count_; }
  /// Of what is in memory.
  size_t memory_bytes() const noexcept { return whole_ ? whole_->size() : root_->size(); }
  /// Null: it is in parts.
  const Block* whole() const noexcept { return whole_.get(); }
  /// Whether the table's last record has this key.
  bool EndsWith(std::string_view key) const noexcept;
  /// Entry `i` < block_count(); only of a whole index.
  IndexEntry Entry(size_t i) const { return EntryAt(*whole_, i, i); }

  // Only of an index in parts.
  size_t part_count() const noexcept { return root_->count(); }
  IndexPartHandle handle(size_t part) const noexcept {
    return FromBytes<IndexPartHandle>(root_->value(static_cast<uint32_t>(part)));
  }
  /// The only part that may list the block with the first record at or after (key, tag), or end
  /// just before it; part_count() when no block has one.
  size_t FindPart(std::string_view key, base::Tag tag) const noexcept {
    return root_->LowerBound(key, tag);
  }
  size_t PartOf(size_t block) const noexcept { return block / blocks_of_part_; }
  size_t FirstBlockOf(size_t part) const noexcept { return part * blocks_of_part_; }
  /// The entry of `block`, which `entries`, its part, lists.
  IndexEntry EntryIn(const Block& entries, size_t block) const {
    return EntryAt(entries, block - FirstBlockOf(PartOf(block)), block);
  }
  /// Whether `entries` can be part `part` of an index for data that ends at `data_end`.
  Status CheckPart(size_t part, const Block& entries, uint64_t data_end) const;

 private:
  IndexEntry EntryAt(const Block& entries, size_t at, size_t block) const;

  std::shared_ptr<const Block> whole_;
  std::shared_ptr<const Block> root_;
  size_t block_count_ = 0;
  size_t blocks_of_part_ = 0;
};

/// Whether the blocks that `entries` lists follow one another from `begin` on, and none reaches
/// beyond `data_end`; gives where the last one ends. The message names a block by its number, that
/// of the first being `first_block`.
Result<uint64_t> CheckTiling(const Block& entries, size_t first_block, uint64_t begin,
                             uint64_t data_end);

/// The shortest key after `key` and not after `next`, which is greater.
std::string_view ShortestBetween(std::string_view key, std::string_view next) noexcept;

}  // namespace basalt::table
