#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "basalt/value.h"
#include "table/block.h"
#include "table/table_format.h"

namespace basalt::table {

/// A data block and the hold on its memory, in the cache or of its own. Move-only; empty when
/// default-constructed.
///
/// The memory, and so the value in the cache:
///
///   offset size
///        0   24  the block's extent()
///       24       the raw form
///             16 room that readers may touch (BlockBuffer::kSlackBytes), and what is missing to
///                more than Value::kInlineBytes: a Value then never moves the bytes
class BlockRef {
 public:
  static constexpr size_t kHeaderBytes = sizeof(Block::Extent);
  /// Of the memory for a raw form of this size.
  static constexpr size_t MemoryBytes(size_t raw_bytes) noexcept {
    return std::max(kHeaderBytes + raw_bytes + BlockBuffer::kSlackBytes, Value::kInlineBytes + 1);
  }

  /// The block in such memory; it does not keep it.
  static Block View(std::string_view memory) noexcept {
    return Block::Attach(memory.data() + kHeaderBytes, FromBytes<Block::Extent>(memory));
  }

  BlockRef() noexcept = default;
  /// Memory that was filled as above, from a block that Parse has accepted.
  explicit BlockRef(Value memory) noexcept;

  explicit operator bool() const noexcept { return block_.count() != 0; }
  const Block& operator*() const noexcept { return block_; }
  const Block* operator->() const noexcept { return &block_; }

 private:
  Value memory_;
  Block block_;
};

/// Memory of its own, of this size, for a BlockRef. Throws std::bad_alloc.
Value AllocateBlockMemory(size_t size, char** bytes);

}  // namespace basalt::table
