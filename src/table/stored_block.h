#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block.h"
#include "table/table_format.h"

// A data block as it lies in the file:
//
//   payload: the raw form (see Block), or its LZ4 block compression where that saves 12.5 % or more
//   trailer, 16 bytes:
//     0  1  compression: 0 none, 1 LZ4
//     1  7  bytes of the raw form
//     8  8  checksum of payload and the trailer's first 8 bytes

namespace basalt::table {

inline constexpr size_t kBlockTrailerBytes = 16;

/// The bytes that StoreBlock needs for a raw form of this size, at most.
constexpr size_t StoredBytesMax(size_t raw_bytes) noexcept {
  return raw_bytes + kBlockTrailerBytes;
}

/// Writes the stored form of `raw`, which will lie at `offset` of the file, to `out`. Gives the
/// payload's size; the trailer follows it.
size_t StoreBlock(std::string_view raw, bool compress, uint64_t file_id, uint64_t offset,
                  char* out) noexcept;

/// A stored block in memory, its checksum found right.
class StoredBlock {
 public:
  /// `handle` must lie within the file: it bounds what is allocated. Errors name file and offset.
  static Result<StoredBlock> Read(const io::File& file, uint64_t file_id, BlockHandle handle);

  /// Of the raw form.
  size_t raw_bytes() const noexcept { return raw_bytes_; }
  /// Writes the raw form to `raw`, which has BlockBuffer::kSlackBytes of room behind it, and checks
  /// it as a data block. Errors say what, but not in which file.
  Result<Block> UnpackTo(std::span<char> raw) const;

 private:
  StoredBlock(BlockBuffer bytes, size_t payload_bytes, bool is_compressed, size_t raw_bytes)
      : bytes_(std::move(bytes)),
        payload_bytes_(payload_bytes),
        is_compressed_(is_compressed),
        raw_bytes_(raw_bytes) {}

  BlockBuffer bytes_;
  size_t payload_bytes_;
  bool is_compressed_;
  size_t raw_bytes_;
};

}  // namespace basalt::table
