#pragma once

#include <cstdint>
#include <string_view>

#include "basalt/write_batch.h"
#include "base/coding.h"

// src/base: what all folders use: hashing, coding, epochs, threads, and the order and merging of
// versions. Read this file first, then VisibleIterator (visible_iterator.h).
//
// How versions of keys are ordered everywhere below the public API: by user key, bytewise; for one
// key, newest first, which is by descending tag.

namespace basalt::base {

/// Counts operations; 56 bits.
using SequenceNumber = uint64_t;
inline constexpr SequenceNumber kMaxSequence = (uint64_t{1} << 56) - 1;

/// A sequence number above a record kind: greater tag, newer version.
using Tag = uint64_t;
constexpr Tag MakeTag(SequenceNumber sequence, RecordKind kind) noexcept {
  return sequence << 8 | static_cast<uint8_t>(kind);
}
constexpr SequenceNumber TagSequence(Tag tag) noexcept { return tag >> 8; }
constexpr RecordKind TagKind(Tag tag) noexcept { return static_cast<RecordKind>(tag & 0xFF); }
/// Sorts before every version that a reader at `sequence` may see, and after every newer one.
constexpr Tag SeekTag(SequenceNumber sequence) noexcept { return sequence << 8 | 0xFF; }
inline constexpr Tag kNewestTag = SeekTag(kMaxSequence);

/// < 0, 0, > 0: the internal order.
inline int CompareInternal(std::string_view key_a, Tag tag_a, std::string_view key_b,
                           Tag tag_b) noexcept {
  if (const int order = CompareKeys(key_a, key_b); order != 0) return order;
  return tag_a > tag_b ? -1 : (tag_a < tag_b ? 1 : 0);
}

}  // namespace basalt::base
