#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/extent_lists.h"

namespace basalt::cache {

/// A shard's memory for objects between those of slabs and those of the ExtentPool. It takes blocks
/// from the process's ChunkPool and divides each into a header and a row of extents
/// (base/extent_lists.h), so that objects of any size lie side by side.
///
/// Invariants. A block goes back when nothing is taken in it. Objects that stay scatter over blocks
/// when the sizes of new ones change, and then hold memory that nothing else can use. So the owner
/// empties blocks while `is_sparse`: it walks the objects of the one with the fewest bytes in use,
/// and moves or frees them. That block is closed meanwhile: nothing is allocated in it, and its
/// extents are not joined, so that the walk finds the next one.
///
/// Cost: Take and Give touch the heads of an extent and its neighbours, and the block's header.
///
/// Not thread-safe.
class EntryHeap {
 public:
  static constexpr size_t kAlignment = 16;
  static constexpr size_t kBlockBytesMin = size_t{16} << 10;
  static constexpr size_t kBlockBytesMax = size_t{128} << 10;
  /// Of a block; larger objects would leave too much of it unused.
  static constexpr size_t kObjectShare = 16;

  /// For a shard of so many bytes: a sixteenth of them.
  static constexpr size_t BlockBytesFor(uint64_t shard_bytes) noexcept {
    return std::bit_floor(std::clamp<size_t>(shard_bytes / 16, kBlockBytesMin, kBlockBytesMax));
  }

  explicit EntryHeap(size_t block_bytes) noexcept;
  /// Everything has been given back.
  ~EntryHeap();
  EntryHeap(const EntryHeap&) = delete;
  EntryHeap& operator=(const EntryHeap&) = delete;

  size_t block_bytes() const noexcept { return block_bytes_; }
  bool Holds(size_t bytes) const noexcept { return bytes <= block_bytes_ / kObjectShare; }

  /// Memory of at least `bytes`, which it Holds, with any contents. Null: the system has none.
  char* Take(size_t bytes) noexcept;
  void Give(char* object) noexcept;
  static size_t UsableBytes(const char* object) noexcept { return Extents::UsableBytes(object); }
  static size_t TakenBytes(const char* object) noexcept {
    return UsableBytes(object) + Extents::kHeadBytes;
  }

  /// Of blocks.
  uint64_t bytes() const noexcept { return blocks_ * block_bytes_; }
  /// Whether more than a tenth of the blocks is free, and more than one block in any case; with
  /// `retires`, whether there are blocks at all.
  bool is_sparse(bool retires) const noexcept {
    if (retires) return blocks_ != closed_;
    return free_bytes_ > std::max<uint64_t>(bytes() / 10, block_bytes_);
  }

  // Emptying a block.

  /// Closes the block with the fewest bytes in use: without `retires`, of those that are less than
  /// seven eighths full, but not the newest. False: there is none, or each has been tried and
  /// nothing was freed in it since.
  bool StartEmptying(bool retires) noexcept;
  bool is_emptying() const noexcept { return emptied_ != nullptr; }
  /// Whether a block that is being emptied, or was, holds the object.
  bool IsClosed(const char* object) const noexcept;
  /// The object at which the walk is; null: it is at its end, or the block has become empty.
  char* Emptied() noexcept;
  /// Goes on to the next one.
  void SkipEmptied() noexcept;
  /// Ends the walk. `reopens`: objects are left that will stay; else the block goes back with its
  /// last object.
  void EndEmptying(bool reopens) noexcept;

 private:
  using Extents = base::ExtentLists<kAlignment, kBlockBytesMax>;
  using Head = Extents::Head;
  struct Block;
  static constexpr size_t kFills = 8;

  Block* BlockOf(const Head* head) const noexcept;
  uint32_t block_units() const noexcept;
  Head* TakeBlock() noexcept;
  void GiveBlock(Block* block) noexcept;
  // Open blocks stand in lists by how full they are.
  void List(Block* block) noexcept;
  void Unlist(Block* block) noexcept;
  void AddUsed(Block* block, int64_t units) noexcept;
  void Close(Block* block) noexcept;
  void Reopen(Block* block) noexcept;

  const size_t block_bytes_;
  uint64_t blocks_ = 0;
  uint64_t closed_ = 0;
  uint64_t free_bytes_ = 0;  ///< In open blocks.
  Block* newest_ = nullptr;  ///< Taken last: what leaves another one may have gone there.
  Block* emptied_ = nullptr;
  Head* emptied_at_ = nullptr;
  std::array<Block*, kFills> fills_{};  ///< The emptiest first.
  Extents extents_;
};

}  // namespace basalt::cache
