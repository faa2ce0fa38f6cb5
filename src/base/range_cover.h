#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal_key.h"

namespace basalt::base {

/// Range deletes, flattened: for each key the greatest sequence number of those that cover it.
/// Immutable; built in O(n log n), asked in O(log n).
class RangeCover {
 public:
  struct Range {
    std::string_view begin;
    std::string_view end;  ///< Exclusive.
    SequenceNumber sequence;
  };

  RangeCover() = default;
  /// Copies what it needs. Throws std::bad_alloc.
  explicit RangeCover(const std::vector<Range>& ranges);

  bool empty() const noexcept { return pieces_.empty(); }
  /// 0: none covers it.
  SequenceNumber SequenceAt(std::string_view key) const noexcept;
  /// Neighbouring keys with one answer.
  struct Stretch {
    std::optional<std::string_view> begin;
    std::optional<std::string_view> end;  ///< Exclusive. Both are there if the sequence is not 0.
    SequenceNumber sequence = 0;

    bool Contains(std::string_view key) const noexcept {
      return (!begin || *begin <= key) && (!end || key < *end);
    }
  };
  /// The longest one that the key lies in; valid as long as the cover.
  Stretch StretchOf(std::string_view key) const noexcept;
  /// The greatest sequence number of all.
  SequenceNumber newest() const noexcept { return newest_; }
  /// Whether a version of `sequence` is deleted.
  bool Covers(std::string_view key, SequenceNumber sequence) const noexcept {
    return !pieces_.empty() && SequenceAt(key) > sequence;
  }

 private:
  /// From `begin` to the next piece's begin.
  struct Piece {
    std::string begin;
    SequenceNumber sequence;
  };
  /// The first one that begins behind the key.
  std::vector<Piece>::const_iterator After(std::string_view key) const noexcept;

  std::vector<Piece> pieces_;
  SequenceNumber newest_ = 0;
};

}  // namespace basalt::base
