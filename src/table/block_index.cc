#include "table/block_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "table/stored_block.h"

namespace basalt::table {
namespace {

Status CorruptIndex(std::string_view what) { return Status(StatusCode::kCorruption, what); }

}  // namespace

Result<BlockIndex> BlockIndex::InParts(std::shared_ptr<const Block> root, uint64_t begin,
                                       uint64_t end) {
  // Each block takes more than its trailer before the parts begin.
  const uint64_t blocks_max = begin / kBlockTrailerBytes;
  BlockIndex index;
  index.root_ = std::move(root);
  index.blocks_of_part_ = index.handle(0).blocks;
  const size_t parts = index.part_count();
  for (size_t part = 0; part < parts; ++part) {
    const IndexPartHandle handle = index.handle(part);
    if (handle.offset != begin || end - begin < kBlockTrailerBytes ||
        handle.payload_bytes > end - begin - kBlockTrailerBytes) {
      return CorruptIndex("part " + std::to_string(part) +
                          " does not begin where the one before it ends");
    }
    begin += handle.payload_bytes + kBlockTrailerBytes;
    const bool is_even = part + 1 == parts ? handle.blocks <= index.blocks_of_part_
                                           : handle.blocks == index.blocks_of_part_;
    if (handle.blocks == 0 || !is_even || handle.blocks > blocks_max - index.block_count_) {
      return CorruptIndex("part " + std::to_string(part) + " cannot list " +
                          std::to_string(handle.blocks) + " blocks");
    }
    index.block_count_ += handle.blocks;
  }
  if (begin != end) return CorruptIndex("the last part does not end where the parts do");
  return index;
}

bool BlockIndex::EndsWith(std::string_view key) const noexcept {
  const Block& block = whole_ != nullptr ? *whole_ : *root_;
  return block.KeyEquals(block.count() - 1, key);
}

IndexEntry BlockIndex::EntryAt(const Block& entries, size_t at, size_t block) const {
  const auto i = static_cast<uint32_t>(at);
  IndexEntry entry{.handle = FromBytes<BlockHandle>(entries.value(i)),
                   .last_key = entries.Key(i),
                   .last_tag = entries.tag(i)};
  if (i > 0) {
    entry.bound_key = entries.Key(i - 1);
    entry.bound_tag = entries.tag(i - 1);
  } else if (block > 0) {
    const auto before = static_cast<uint32_t>(PartOf(block) - 1);
    entry.bound_key = root_->Key(before);
    entry.bound_tag = root_->tag(before);
  }
  return entry;
}

Status BlockIndex::CheckPart(size_t part, const Block& entries, uint64_t data_end) const {
  if (entries.count() != handle(part).blocks) {
    return CorruptIndex("it lists " + std::to_string(entries.count()) +
                        " blocks, the index root says " + std::to_string(handle(part).blocks));
  }
  const uint64_t begin = FromBytes<BlockHandle>(entries.value(0)).offset;
  if (begin < sizeof(FileHeader) || begin > data_end) {
    return CorruptIndex("its first block cannot be at offset " + std::to_string(begin));
  }
  BASALT_RETURN_IF_ERROR(CheckTiling(entries, FirstBlockOf(part), begin, data_end).status());
  const auto at = static_cast<uint32_t>(part);
  const uint32_t last = entries.count() - 1;
  const auto compare = [&](uint32_t separator, uint32_t entry) {
    return base::CompareInternal(root_->Key(separator), root_->tag(separator), entries.Key(entry),
                                 entries.tag(entry));
  };
  const bool ends_right =
      part + 1 == part_count() ? compare(at, last) == 0 : compare(at, last) >= 0;
  if (!ends_right || (part > 0 && compare(at - 1, 0) >= 0)) {
    return CorruptIndex(
        "its entries are not between the index root's entries for it and its predecessor");
  }
  return Status();
}

Result<uint64_t> CheckTiling(const Block& entries, size_t first_block, uint64_t begin,
                             uint64_t data_end) {
  uint64_t end = begin;
  for (uint32_t i = 0; i < entries.count(); ++i) {
    const auto handle = FromBytes<BlockHandle>(entries.value(i));
    if (handle.offset != end || data_end - end < kBlockTrailerBytes ||
        handle.payload_bytes > data_end - end - kBlockTrailerBytes) {
      return CorruptIndex("block " + std::to_string(first_block + i) +
                          " does not begin where the one before it ends");
    }
    end += handle.payload_bytes + kBlockTrailerBytes;
  }
  return end;
}

std::string_view ShortestBetween(std::string_view key, std::string_view next) noexcept {
  const auto [at, in_next] = std::ranges::mismatch(key, next);
  return next.substr(0, static_cast<size_t>(in_next - next.begin()) + 1);
}

}  // namespace basalt::table
