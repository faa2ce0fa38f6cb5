#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/internal_key.h"

// Range deletes, flattened: for each key the greatest sequence number of those that cover it.

namespace basalt::base {

/// Neighbouring keys with one answer.
struct CoverStretch {
  std::optional<std::string_view> begin;
  std::optional<std::string_view> end;  ///< Exclusive. Both are there if the sequence is not 0.
  SequenceNumber sequence = 0;

  bool Contains(std::string_view key) const noexcept {
    return (!begin || *begin <= key) && (!end || key < *end);
  }
};

/// Immutable; built in O(n log n), asked in O(log n). A search goes over 8 bytes of each piece's
/// begin, which lie side by side, and looks at whole keys only where these are equal. It searches
/// every 64th of them first, so it reads few cache lines: of 100,000 ranges 25 KB and 8 lines.
class RangeCover {
 public:
  struct Range {
    std::string_view begin;
    std::string_view end;  ///< Exclusive.
    SequenceNumber sequence;
  };

  RangeCover() = default;
  /// The keys' bytes must outlive it. Throws std::bad_alloc.
  explicit RangeCover(const std::vector<Range>& ranges);
  /// Of all ranges that some covers were made of; in linear time, as long as they are few. Throws
  /// std::bad_alloc.
  static RangeCover Of(std::span<const RangeCover* const> covers);

  bool empty() const noexcept { return pieces_.empty(); }
  /// 0: none covers it.
  SequenceNumber SequenceAt(std::string_view key) const noexcept;
  /// The longest one that the key lies in.
  CoverStretch StretchOf(std::string_view key) const noexcept;
  /// The greatest sequence number of all.
  SequenceNumber newest() const noexcept { return newest_; }
  uint64_t ByteSize() const noexcept {
    return pieces_.capacity() * sizeof(Piece) +
           (prefixes_.capacity() + samples_.capacity()) * sizeof(uint64_t);
  }

 private:
  static constexpr size_t kSampled = 64;

  /// From `begin` to the next piece's begin.
  struct Piece {
    std::string_view begin;
    SequenceNumber sequence;
  };
  /// The first one that begins behind the key.
  std::vector<Piece>::const_iterator After(std::string_view key) const noexcept;
  /// From `begin`, which is behind all that was added, the sequence is this.
  void Add(std::string_view begin, SequenceNumber sequence);
  /// The first of prefixes_ that is not below this one.
  size_t FirstNotBelow(uint64_t prefix) const noexcept;
  /// When all are added.
  void IndexPieces();

  std::vector<Piece> pieces_;
  std::string_view shared_;         // What all begins have in common.
  std::vector<uint64_t> prefixes_;  // Of each begin, behind that (KeyPrefix).
  std::vector<uint64_t> samples_;   // Every kSampled-th of them, from the first on.
  SequenceNumber newest_ = 0;
};

/// Some covers that are asked as one. Immutable.
class RangeCovers {
 public:
  /// `loose`: ranges that are in none of the covers. All must outlive it. Throws std::bad_alloc.
  explicit RangeCovers(std::vector<const RangeCover*> covers,
                       const std::vector<RangeCover::Range>& loose = {});
  RangeCovers(const RangeCovers&) = delete;
  RangeCovers& operator=(const RangeCovers&) = delete;

  /// One that the key lies in.
  CoverStretch StretchOf(std::string_view key) const noexcept;
  /// The greatest sequence number of all.
  SequenceNumber newest() const noexcept;

 private:
  const RangeCover loose_;
  std::vector<const RangeCover*> covers_;  ///< None is empty.
};

/// Null: there is nothing in them.
std::shared_ptr<const RangeCovers> NewRangeCovers(std::vector<const RangeCover*> covers,
                                                  const std::vector<RangeCover::Range>& loose);

/// Asks for one key after the other, mostly neighbours: what was said of a key is kept.
class RangeCoverCursor {
 public:
  explicit RangeCoverCursor(const RangeCovers* covers) noexcept : covers_(covers) {}

  const CoverStretch& StretchOf(std::string_view key) noexcept {
    if (!stretch_.Contains(key)) stretch_ = covers_->StretchOf(key);
    return stretch_;
  }
  const CoverStretch& stretch() const noexcept { return stretch_; }

 private:
  const RangeCovers* covers_;
  CoverStretch stretch_{.begin = {}, .end = std::string_view()};  // has no key yet
};

}  // namespace basalt::base
