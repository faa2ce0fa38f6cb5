#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "base/coding.h"
#include "base/internal_key.h"

namespace basalt::table {

/// Bytes that will become a block, with room behind them that readers may touch.
struct BlockBuffer {
  static constexpr size_t kSlackBytes = 16;
  static BlockBuffer Allocate(size_t size) {
    return {std::make_unique_for_overwrite<char[]>(size + kSlackBytes), size};
  }
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
};

/// A sorted run of records in memory: a data block, or a table's index.
///
/// Layout (the raw form, as it also stands in the file before compression), n = count:
///
///     offset  size
///          0     4  n, at least 1
///          4     4  flags: bit 0 wide, bit 1 timed
///          8     2  bytes of the prefix that all keys share
///         10     6  zero
///         16    8n  key prefixes: 8 bytes after the shared prefix, as base::KeyPrefix
///                   8n  tags
///                   8n  times, as of base::RecordIterator; only when timed
///                  wn  ends of the key rests, cumulative; w = 4 when wide, else 2
///                  wn  ends of the values, cumulative
///                   n  how many bytes of each key prefix are the key's: 0..8, the others are zero
///                      the shared prefix, once
///                      the key rests: what lies beyond shared prefix + 8
///                      the values
///
/// A key is shared prefix + its prefix bytes + its rest. A record's place in the order is decided
/// by its number in the first column, hardly ever by more.
///
/// Invariants, all checked by Parse, so that access is not: the columns fill the block exactly;
/// ends never fall; a rest only behind 8 prefix bytes; keys of at most 65,535 bytes; records
/// strictly in internal order; in a data block kinds put, delete (without value or time) and merge
/// (with a time, and a value of at least a byte), and in a timed one a time that is not zero; in an
/// index values of 16 bytes and no times.
///
/// Cost of a search, in cache misses: log2(8n / 64) lines of the prefix column (2-3 for a 16 KiB
/// block), then tag, ends and rest of the record: 1 each. Immutable, so thread-safe.
///
/// A Block is a view: the bytes, with BlockBuffer::kSlackBytes behind them, outlive it.
class Block {
 public:
  enum class Content : uint8_t { kData, kIndex };

  static constexpr size_t kHeaderBytes = 16;
  static constexpr uint32_t kFlagWide = 1;
  static constexpr uint32_t kFlagTimed = 2;
  /// Of a column of prefixes that is no longer, all lines are asked for at once.
  static constexpr uint32_t kSearchedLinesMax = 24;
  /// What a record takes besides its key rest and its value.
  static constexpr size_t RecordBytes(bool wide, bool timed) noexcept {
    return (wide ? 25 : 21) + (timed ? sizeof(uint64_t) : 0);
  }

  /// Of no bytes; for nothing but to be assigned to.
  Block() noexcept = default;
  /// Checks the raw form; O(n). Corruption: the bytes are no block; Unsupported: flags or kinds of
  /// records that this version does not read, named. The message says what, but not in which file.
  static Result<Block> Parse(std::string_view raw, Content content);
  /// The same, keeping the bytes.
  static Result<std::shared_ptr<const Block>> Parse(BlockBuffer buffer, Content content);
  /// What Parse has found out and Attach is told, so that it has to look at the header only.
  struct Extent {
    uint64_t size;
    uint64_t key_bytes_max;
    uint64_t values_at;  ///< Offset of the values.
  };
  Extent extent() const noexcept;
  /// What Parse has checked before; O(1).
  static Block Attach(const char* raw, const Extent& extent) noexcept;

  const char* raw() const noexcept {
    return reinterpret_cast<const char*>(prefixes_) - kHeaderBytes;
  }
  /// How it is divided.
  struct Outline {
    uint64_t count;
    uint64_t size;
    uint64_t values_at;
    bool wide;
    bool timed;
    bool rests;  ///< Some key has one.
  };
  Outline outline() const noexcept {
    return {.count = count_,
            .size = size_,
            .values_at = static_cast<uint64_t>(values_ - raw()),
            .wide = wide_,
            .timed = times_ != nullptr,
            .rests = rests_ != values_};
  }

  uint32_t count() const noexcept { return count_; }
  /// Of the raw form.
  size_t size() const noexcept { return size_; }

  /// The first record at or after (key, tag) in internal order; count() when there is none.
  uint32_t LowerBound(std::string_view key, base::Tag tag) const noexcept;

  /// Starts to load the columns of record i, if there is one.
  void PrefetchRecord(uint32_t i) const noexcept;

  // Of record i < count().
  base::Tag tag(uint32_t i) const noexcept { return tags_[i]; }
  uint64_t time_ms(uint32_t i) const noexcept { return times_ == nullptr ? 0 : times_[i]; }
  std::string_view value(uint32_t i) const noexcept {
    const size_t begin = i == 0 ? 0 : End(value_ends_, i - 1);
    return {values_ + begin, End(value_ends_, i) - begin};
  }
  size_t key_size(uint32_t i) const noexcept {
    return shared_bytes_ + prefix_bytes_[i] + rest(i).size();
  }
  bool KeyEquals(uint32_t i, std::string_view key) const noexcept {
    return key.size() == key_size(i) && prefixes_[i] == base::KeyPrefix(key, shared_bytes_) &&
           base::SameBytes(key.substr(0, shared_bytes_), shared()) && key.ends_with(rest(i));
  }
  std::string Key(uint32_t i) const;

  /// The greatest key_size().
  size_t key_bytes_max() const noexcept { return key_bytes_max_; }

 private:
  friend class BlockCursor;
  friend class BlockPortion;

  /// Where the columns before the values lie; the header's count and flags are good for them.
  void FindColumns(std::string_view raw) noexcept;
  template <class End>
  Status Validate(Content content);
  Status ValidateRecord(uint32_t i, size_t value_bytes) const;
  int CompareAtEqualPrefix(uint32_t i, size_t prefix_bytes, std::string_view key_rest,
                           base::Tag tag) const noexcept;

  size_t End(const char* ends, uint32_t i) const noexcept {
    if (wide_) return reinterpret_cast<const uint32_t*>(ends)[i];
    return reinterpret_cast<const uint16_t*>(ends)[i];
  }
  std::string_view rest(uint32_t i) const noexcept {
    size_t begin = 0;
    size_t end = 0;
    // Where all are empty, their ends are not looked at: a cache line less.
    if (rests_ != values_) {
      begin = i == 0 ? 0 : End(rest_ends_, i - 1);
      end = End(rest_ends_, i);
    }
    return {rests_ + begin, end - begin};
  }
  std::string_view shared() const noexcept { return {shared_, shared_bytes_}; }
  /// Whether record i, not the first one, which has the key prefix of the one before it, has its
  /// key.
  bool HasKeyOfPrevious(uint32_t i) const noexcept {
    return prefix_bytes_[i] == prefix_bytes_[i - 1] && rest(i) == rest(i - 1);
  }
  size_t CopyKey(uint32_t i, char* key) const noexcept {
    return PutKey(key, shared_bytes_, prefixes_[i], prefix_bytes_[i], rest(i));
  }
  /// Puts a key together behind the shared prefix, which stands at `key`; gives the size of the
  /// whole. Touches up to kKeySlackBytes beyond its end.
  static size_t PutKey(char* key, size_t shared_bytes, uint64_t prefix, size_t prefix_bytes,
                       std::string_view rest) noexcept {
    char* const out = key + shared_bytes;
    const uint64_t prefix_as_bytes = __builtin_bswap64(prefix);
    __builtin_memcpy(out, &prefix_as_bytes, sizeof prefix);
    // Both sides have kSlackBytes of room: short rests are copied without a loop or a call.
    if (rest.size() <= BlockBuffer::kSlackBytes) {
      __builtin_memcpy(out + sizeof prefix, rest.data(), BlockBuffer::kSlackBytes);
    } else {
      __builtin_memcpy(out + sizeof prefix, rest.data(), rest.size());
    }
    return shared_bytes + prefix_bytes + rest.size();
  }
  /// What PutKey may write, and more than the key: not all 8 bytes of a prefix are the key's.
  static constexpr size_t kKeySlackBytes = sizeof(uint64_t) + BlockBuffer::kSlackBytes;

  // Columns, all inside the raw form; what a search needs comes first.
  const uint64_t* prefixes_ = nullptr;
  uint32_t count_ = 0;
  uint16_t shared_bytes_ = 0;
  bool wide_ = false;
  const char* shared_ = nullptr;
  const base::Tag* tags_ = nullptr;
  const uint64_t* times_ = nullptr;  // null: all are zero
  const uint8_t* prefix_bytes_ = nullptr;
  const char* rest_ends_ = nullptr;
  const char* rests_ = nullptr;
  const char* value_ends_ = nullptr;
  const char* values_ = nullptr;
  size_t key_bytes_max_ = 0;
  size_t size_ = 0;
};

/// Walks one block's records. Keeps the present key in a buffer of its own, of which a step
/// rewrites only what comes after the shared prefix. Does not keep the block alive.
class BlockCursor {
 public:
  /// Takes a block, which must outlive the cursor's use of it; not positioned yet.
  void Reset(const Block& block);
  /// Out of range: leaves the cursor invalid.
  void MoveTo(uint32_t index) noexcept {
    index_ = index;
    if (index_ < block_->count_) Fill();
  }

  bool Valid() const noexcept { return block_ != nullptr && index_ < block_->count_; }
  uint32_t index() const noexcept { return index_; }

  /// Only when Valid(); invalid beyond either end.
  void Next() noexcept {
    ++index_;
    if (index_ < block_->count_) Fill();
  }
  void Prev() noexcept {
    --index_;  // from 0 to the greatest number, which is out of range
    if (index_ < block_->count_) Fill();
  }

  std::string_view key() const noexcept { return {key_.get(), key_bytes_}; }
  base::Tag tag() const noexcept { return block_->tags_[index_]; }
  uint64_t time_ms() const noexcept { return block_->time_ms(index_); }
  std::string_view value() const noexcept { return block_->value(index_); }

 private:
  void Fill() noexcept { key_bytes_ = block_->CopyKey(index_, key_.get()); }

  const Block* block_ = nullptr;
  uint32_t index_ = 0;
  size_t key_bytes_ = 0;
  size_t key_capacity_ = 0;
  std::unique_ptr<char[]> key_;
};

}  // namespace basalt::table
