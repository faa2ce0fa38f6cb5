#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "basalt/status.h"
#include "io/file_system.h"
#include "table/block.h"
#include "table/table_format.h"
#include "table/zstd_block.h"

// A data block, or a part of the index, as it lies in the file:
//
//   payload: the raw form (see Block), or, where that saves 12.5 % or more, the LZ4 block
//   compression of its packed form (see packed_columns.h), or a frame of Zstandard
//   trailer, 16 bytes:
//     0  1  compression: 0 none, 1 LZ4 of the raw form (read, not written any more), 2 Zstandard,
//           3 LZ4 of the packed form
//     1  7  bytes of the raw form
//     8  8  checksum of payload and the trailer's first 8 bytes

namespace basalt::table {

inline constexpr size_t kBlockTrailerBytes = 16;

/// The bytes that StoreBlock needs for a raw form of this size, at most.
constexpr size_t StoredBytesMax(size_t raw_bytes) noexcept {
  return raw_bytes + kBlockTrailerBytes;
}

/// How blocks are compressed: by Zstandard if there is such a compressor (the largest blocks are
/// not), else by LZ4 if `lz4`.
struct BlockCompression {
  bool lz4 = false;
  ZstdCompressor* zstd = nullptr;
};

/// Writes the stored form of `raw`, which will lie at `offset` of the file, to `out`. Gives the
/// payload's size; the trailer follows it. Throws std::bad_alloc.
size_t StoreBlock(std::string_view raw, const BlockCompression& compression, uint64_t file_id,
                  uint64_t offset, char* out);

/// The same of a block with one large record, which is not copied unless compression is worth it:
/// `raw` has kBlockTrailerBytes of room behind it for a trailer. Gives payload and trailer, which
/// lie there or in `compressed`.
std::string_view StoreLargeBlock(std::span<char> raw, const BlockCompression& compression,
                                 uint64_t file_id, uint64_t offset,
                                 std::unique_ptr<char[]>* compressed);

/// A stored block in memory, its checksum found right.
class StoredBlock {
 public:
  /// `handle` must lie within the file: it bounds what is allocated. Errors name file, `part` and
  /// offset.
  static Result<StoredBlock> Read(const io::File& file, uint64_t file_id, BlockHandle handle,
                                  std::string_view part);

  /// Of the raw form.
  size_t raw_bytes() const noexcept { return raw_bytes_; }
  /// Writes the raw form to `raw`, which has BlockBuffer::kSlackBytes of room behind it, and checks
  /// it. `dictionary`: the table's. Errors say what, but not in which file.
  Result<Block> UnpackTo(std::span<char> raw, const ZstdDictionary& dictionary,
                         Block::Content content) const;

 private:
  /// The numbers stand in the file.
  enum class StoredAs : uint8_t { kRaw = 0, kLz4 = 1, kZstd = 2, kPackedLz4 = 3 };
  friend size_t StoreBlock(std::string_view raw, const BlockCompression& compression,
                           uint64_t file_id, uint64_t offset, char* out);
  friend std::string_view StoreLargeBlock(std::span<char> raw, const BlockCompression& compression,
                                          uint64_t file_id, uint64_t offset,
                                          std::unique_ptr<char[]>* compressed);
  static void WriteTrailer(StoredAs stored_as, size_t raw_bytes, uint64_t file_id, uint64_t offset,
                           char* payload, size_t payload_bytes);

  StoredBlock(BlockBuffer bytes, size_t payload_bytes, StoredAs stored_as, size_t raw_bytes)
      : bytes_(std::move(bytes)),
        payload_bytes_(payload_bytes),
        stored_as_(stored_as),
        raw_bytes_(raw_bytes) {}
  bool Unpack(std::span<char> raw, const ZstdDictionary& dictionary) const;

  BlockBuffer bytes_;
  size_t payload_bytes_;
  StoredAs stored_as_;
  size_t raw_bytes_;
};

}  // namespace basalt::table
