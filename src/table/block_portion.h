#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/internal_key.h"
#include "base/record_iterator.h"
#include "table/block.h"

namespace basalt::table {

/// Neighbours in a block, given at once, for much less than steps of a cursor and of all that
/// stands above it. Keeps the keys, whose pieces lie apart in the block. One thread at a time; does
/// not keep the block alive.
class BlockPortion {
 public:
  /// With so many, what a portion needs is one small block, which the allocator has at hand.
  static constexpr size_t kRecordsMax = 12;

  /// The next Take is of another block.
  void Leave() noexcept { with_shared_ = 0; }
  /// From record `first` on, which is not the block's first one, at most `most`, as far as they are
  /// puts with tags up to `newest`, without a time, each of another key than the record before it.
  /// They last until the next Take, the values as long as the block does. Fewer, or none, also
  /// where keys are long, and without memory for the room.
  std::span<const base::PlainPut> Take(const Block& block, uint32_t first, size_t most,
                                       base::Tag newest) noexcept;

 private:
  /// So far ahead values are asked for: a portion is filled in less time than memory takes.
  static constexpr size_t kAheadBytes = 1024;
  /// Of long keys there is room for a few.
  static constexpr size_t kKeyRoomBytes = 640;
  struct Room {
    base::PlainPut puts[kRecordsMax];
    char keys[kKeyRoomBytes];
  };
  template <class End>
  size_t Fill(const Block& block, uint32_t first, size_t count, base::Tag newest) noexcept;

  std::unique_ptr<Room> room_;  // null before the first Take
  size_t with_shared_ = 0;      // so many places in `keys` begin with the block's shared prefix
};

}  // namespace basalt::table
