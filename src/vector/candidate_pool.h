#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

// What a walk has found, nearest first: a sorted array, of which the first entries that have not
// been expanded are expanded next. One array serves for both of the queues that the algorithm is
// usually told with.
//
// Entries pass or do not: those that a filter or a removal keeps out of the results are passed
// through only. The array holds the `ef` nearest that pass, and those between them that do not; an
// entry beyond the last of these can no more lead to a result.
//
//   entry   u64: distance (32 bits) | slot (30) | passes | expanded
//
// Entries with equal distances stand by slot: the same graph gives the same answers.
//
// Cost: a binary search and a move of half of the array: 10 ns at ef 64.

namespace basalt::vector {

class CandidatePool {
 public:
  struct Entry {
    uint64_t word;

    uint32_t distance() const noexcept { return static_cast<uint32_t>(word >> 32); }
    uint32_t slot() const noexcept { return static_cast<uint32_t>(word) >> 2; }
    bool passes() const noexcept { return (word & kPasses) != 0; }
  };

  /// Forgets all, to find `ef`, at least 1.
  void Reset(size_t ef) {
    ef_ = ef;
    size_ = passing_ = cursor_ = 0;
    if (entries_.size() < 2 * ef) entries_.resize(2 * ef);
  }

  /// Only what is nearer is worth adding.
  uint32_t bound() const noexcept {
    return passing_ < ef_ ? std::numeric_limits<uint32_t>::max() : At(size_ - 1).distance();
  }

  /// Adds what has not been added before.
  void Add(uint32_t distance, uint32_t slot, bool passes) {
    if (size_ == entries_.size()) entries_.resize(2 * size_);
    const uint64_t word = uint64_t{distance} << 32 | uint64_t{slot} << 2 | (passes ? kPasses : 0);
    uint64_t* const entries = entries_.data();
    size_t at = 0;
    for (size_t count = size_; count != 0;) {
      const size_t half = count / 2;
      const bool is_behind = entries[at + half] < word;
      at = is_behind ? at + half + 1 : at;
      count = is_behind ? count - half - 1 : half;
    }
    std::memmove(entries + at + 1, entries + at, (size_ - at) * sizeof(uint64_t));
    entries[at] = word;
    ++size_;
    if (at < cursor_) cursor_ = at;
    passing_ += static_cast<size_t>(passes);
    if (passing_ >= ef_) Trim();
  }

  /// The nearest entry that has not been expanded, which now counts as such. False: there is none.
  bool Next(uint32_t* slot) noexcept {
    while (cursor_ < size_ && (entries_[cursor_] & kExpanded) != 0) ++cursor_;
    if (cursor_ == size_) return false;
    entries_[cursor_] |= kExpanded;
    *slot = At(cursor_++).slot();
    return true;
  }
  /// What Next would give now, or kNoEntry.
  static constexpr uint32_t kNoEntry = 0xFFFF'FFFF;
  uint32_t Peek() const noexcept {
    for (size_t i = cursor_; i < size_; ++i) {
      if ((entries_[i] & kExpanded) == 0) return At(i).slot();
    }
    return kNoEntry;
  }

  size_t size() const noexcept { return size_; }
  size_t passing() const noexcept { return passing_; }
  Entry At(size_t i) const noexcept { return {entries_[i]}; }
  size_t bytes() const noexcept { return entries_.capacity() * sizeof(uint64_t); }

 private:
  static constexpr uint64_t kPasses = 2;
  static constexpr uint64_t kExpanded = 1;

  // Leaves `ef_` that pass, and nothing behind the last of them.
  void Trim() noexcept {
    while (passing_ > ef_ || !At(size_ - 1).passes()) {
      passing_ -= static_cast<size_t>(At(size_ - 1).passes());
      --size_;
    }
    if (cursor_ > size_) cursor_ = size_;
  }

  std::vector<uint64_t> entries_;
  size_t ef_ = 0;
  size_t size_ = 0;
  size_t passing_ = 0;
  size_t cursor_ = 0;
};

}  // namespace basalt::vector
