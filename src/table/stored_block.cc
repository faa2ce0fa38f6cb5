#include "table/stored_block.h"

#include <lz4.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/hash.h"
#include "table/packed_columns.h"

namespace basalt::table {
namespace {

// LZ4 cannot make a block more than 255 times smaller.
constexpr uint64_t kLz4RatioMax = 255;

// The largest size of what is worth being compressed.
constexpr size_t CompressedBytesMax(size_t raw_bytes) noexcept { return raw_bytes - raw_bytes / 8; }

// Gives the compressed size, or 0 when it would not save an eighth.
size_t TryPackedLz4(std::string_view raw, char* out) {
  if (raw.size() > LZ4_MAX_INPUT_SIZE) return 0;
  std::unique_ptr<char[]> packed;
  if (base::Load<uint32_t>(raw.data()) != 1) {  // The columns of one record are packed as they are.
    packed = std::make_unique_for_overwrite<char[]>(raw.size());
    PackColumns(raw, packed.get());
  }
  const char* const source = packed != nullptr ? packed.get() : raw.data();
  const int size_max = static_cast<int>(CompressedBytesMax(raw.size()));
  const int size = LZ4_compress_default(source, out, static_cast<int>(raw.size()), size_max);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

// Whether pieces of `raw` from all over it save an eighth.
bool IsCompressible(std::string_view raw) {
  constexpr size_t kPieces = 16;
  constexpr size_t kPieceBytes = size_t{32} << 10;
  if (raw.size() <= kPieces * kPieceBytes) return true;
  const auto out = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  size_t saved = 0;
  for (size_t i = 0; i < kPieces; ++i) {
    const char* const piece = raw.data() + i * ((raw.size() - kPieceBytes) / (kPieces - 1));
    const int size = LZ4_compress_default(piece, out.get(), kPieceBytes, kPieceBytes);
    if (size > 0) saved += kPieceBytes - static_cast<size_t>(size);
  }
  return saved >= kPieces * kPieceBytes / 8;
}

bool UnpackLz4(std::string_view payload, std::span<char> raw) noexcept {
  const int unpacked = LZ4_decompress_safe(
      payload.data(), raw.data(), static_cast<int>(payload.size()), static_cast<int>(raw.size()));
  return unpacked >= 0 && static_cast<uint64_t>(unpacked) == raw.size();
}

}  // namespace

size_t StoreBlock(std::string_view raw, const BlockCompression& compression, uint64_t file_id,
                  uint64_t offset, char* out) {
  using StoredAs = StoredBlock::StoredAs;
  StoredAs stored_as = StoredAs::kRaw;
  size_t payload_bytes = 0;
  if (compression.zstd != nullptr && raw.size() <= kZstdRawBytesMax) {
    stored_as = StoredAs::kZstd;
    payload_bytes = compression.zstd->Compress(raw, out, CompressedBytesMax(raw.size()));
  } else if (compression.lz4) {
    stored_as = StoredAs::kPackedLz4;
    payload_bytes = TryPackedLz4(raw, out);
  }
  if (payload_bytes == 0) {
    stored_as = StoredAs::kRaw;
    payload_bytes = raw.size();
    std::memcpy(out, raw.data(), raw.size());
  }
  StoredBlock::WriteTrailer(stored_as, raw.size(), file_id, offset, out, payload_bytes);
  return payload_bytes;
}

std::string_view StoreLargeBlock(std::span<char> raw, const BlockCompression& compression,
                                 uint64_t file_id, uint64_t offset,
                                 std::unique_ptr<char[]>* compressed) {
  using StoredAs = StoredBlock::StoredAs;
  const std::string_view bytes(raw.data(), raw.size());
  size_t payload_bytes = 0;
  if (compression.lz4 && IsCompressible(bytes)) {
    *compressed =
        std::make_unique_for_overwrite<char[]>(CompressedBytesMax(raw.size()) + kBlockTrailerBytes);
    payload_bytes = TryPackedLz4(bytes, compressed->get());
  }
  const bool is_compressed = payload_bytes != 0;
  char* const payload = is_compressed ? compressed->get() : raw.data();
  if (!is_compressed) payload_bytes = raw.size();
  StoredBlock::WriteTrailer(is_compressed ? StoredAs::kPackedLz4 : StoredAs::kRaw, raw.size(),
                            file_id, offset, payload, payload_bytes);
  return {payload, payload_bytes + kBlockTrailerBytes};
}

void StoredBlock::WriteTrailer(StoredAs stored_as, size_t raw_bytes, uint64_t file_id,
                               uint64_t offset, char* payload, size_t payload_bytes) {
  char* const trailer = payload + payload_bytes;
  base::Store(trailer, uint64_t{raw_bytes} << 8 | static_cast<uint8_t>(stored_as));
  base::Store(trailer + 8, base::Checksum(file_id, offset, {payload, payload_bytes + 8}));
}

Result<StoredBlock> StoredBlock::Read(const io::File& file, uint64_t file_id, BlockHandle handle,
                                      std::string_view part) {
  const auto error = [&](StatusCode code, const std::string& what) {
    return TableError(code, file.path(), part, handle.offset, what);
  };
  const size_t payload_bytes = handle.payload_bytes;
  BlockBuffer stored = BlockBuffer::Allocate(payload_bytes + kBlockTrailerBytes);
  BASALT_RETURN_IF_ERROR(file.ReadExactAt(handle.offset, {stored.bytes.get(), stored.size}));
  const std::string_view checked(stored.bytes.get(), payload_bytes + 8);
  if (base::Load<uint64_t>(checked.end()) != base::Checksum(file_id, handle.offset, checked)) {
    return error(StatusCode::kCorruption, "its checksum is wrong: its " +
                                              std::to_string(stored.size) +
                                              " bytes are not those that were written here");
  }
  const auto word = base::Load<uint64_t>(stored.bytes.get() + payload_bytes);
  const uint64_t raw_bytes = word >> 8;
  const auto stored_as = static_cast<StoredAs>(word & 0xFF);
  const auto is_possible = [&] {
    switch (stored_as) {
      case StoredAs::kRaw:
        return raw_bytes == payload_bytes;
      case StoredAs::kLz4:
      case StoredAs::kPackedLz4:
        return raw_bytes <= payload_bytes * kLz4RatioMax && raw_bytes <= LZ4_MAX_INPUT_SIZE;
      case StoredAs::kZstd:
        return raw_bytes <= kZstdRawBytesMax;
    }
    return false;
  };
  if (stored_as <= StoredAs::kPackedLz4) {
    if (!is_possible()) {
      return error(StatusCode::kCorruption, "the block's raw size cannot be right");
    }
    return StoredBlock(std::move(stored), payload_bytes, stored_as, raw_bytes);
  }
  return error(StatusCode::kUnsupported,
               "the block is compressed by method " + std::to_string(word & 0xFF) +
                   ", which this version cannot read; open it with the version that wrote it");
}

bool StoredBlock::Unpack(std::span<char> raw, const ZstdDictionary& dictionary) const {
  const std::string_view payload(bytes_.bytes.get(), payload_bytes_);
  switch (stored_as_) {
    case StoredAs::kRaw:
      if (!raw.empty()) std::memcpy(raw.data(), payload.data(), raw.size());
      return true;
    case StoredAs::kLz4:
      return UnpackLz4(payload, raw);
    case StoredAs::kPackedLz4:
      if (!UnpackLz4(payload, raw)) return false;
      UnpackColumns(raw);
      return true;
    case StoredAs::kZstd:
      return dictionary.Decompress(payload, raw);
  }
  return false;
}

Result<Block> StoredBlock::UnpackTo(std::span<char> raw, const ZstdDictionary& dictionary,
                                    Block::Content content) const {
  if (!Unpack(raw, dictionary)) {
    return Status(StatusCode::kCorruption, "the block cannot be decompressed");
  }
  return Block::Parse({raw.data(), raw.size()}, content);
}

}  // namespace basalt::table
