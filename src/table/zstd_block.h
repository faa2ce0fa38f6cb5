#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "basalt/status.h"

// Zstandard over blocks of one table, with a dictionary that the table brings along: what its
// blocks have in common is then not in each of them. A block is one frame, without the dictionary's
// number and without a checksum, as the table knows the one and has the other.

struct ZSTD_CCtx_s;
struct ZSTD_CDict_s;
struct ZSTD_DDict_s;

namespace basalt::table {

/// Of the raw form. A larger block is stored as LZ4, whose ratio has a bound, so that a reader
/// never allocates more than that for a few bytes.
inline constexpr size_t kZstdRawBytesMax = 1 << 20;
inline constexpr size_t kDictionaryBytesMax = 64 << 10;

/// A dictionary of at most `bytes_max` bytes for blocks like these. Empty: they are too few, or
/// have too little in common.
std::string TrainDictionary(std::span<const std::string_view> blocks, size_t bytes_max);

/// One thread at a time.
class ZstdCompressor {
 public:
  /// `dictionary`: of TrainDictionary, or empty. Throws std::bad_alloc.
  explicit ZstdCompressor(std::string_view dictionary);

  /// Writes at most `bytes_max` bytes; gives how many, or 0 when they do not suffice.
  size_t Compress(std::string_view raw, char* out, size_t bytes_max) noexcept;

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
    void operator()(ZSTD_CDict_s* dictionary) const noexcept;
  };

  std::unique_ptr<ZSTD_CDict_s, Free> dictionary_;  // may be null
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

/// A dictionary as a reader needs it; empty when default-constructed. Thread-safe.
class ZstdDictionary {
 public:
  ZstdDictionary() noexcept = default;
  /// Copies the bytes. Corruption: they are no dictionary.
  static Result<ZstdDictionary> Create(std::string_view bytes);

  bool empty() const noexcept { return dictionary_ == nullptr; }
  size_t memory_bytes() const noexcept;

  /// Fills `raw`, whose size is known. False: the bytes are not what was compressed with this
  /// dictionary, or without one if it is empty. Throws std::bad_alloc.
  bool Decompress(std::string_view stored, std::span<char> raw) const;

 private:
  struct Free {
    void operator()(ZSTD_DDict_s* dictionary) const noexcept;
  };

  std::unique_ptr<ZSTD_DDict_s, Free> dictionary_;
};

}  // namespace basalt::table
