#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memtable/sorted_run.h"

namespace basalt::memtable {

/// The newest few versions of a keyspace in internal order, each put in its place as it comes: a
/// search and a move of at most a kilobyte, where a run of its own would cost four allocations and
/// merges with others. Who reads takes a copy.
class FreshRun {
 public:
  static constexpr size_t kEntriesMax = 64;

  /// For kEntriesMax entries. Throws std::bad_alloc.
  void Reserve() { entries_.reserve(kEntriesMax); }
  /// A finished record, within what is reserved.
  void Insert(const Record& record) noexcept;
  /// There has been one more Append.
  void CountTail() noexcept { ++tails_; }
  void Clear() noexcept;

  bool empty() const noexcept { return entries_.empty(); }
  size_t size() const noexcept { return entries_.size(); }
  bool HasRoomFor(size_t count) const noexcept { return size() + count <= kEntriesMax; }
  bool is_reserved() const noexcept { return entries_.capacity() != 0; }
  RunView view() const noexcept { return {entries_, shared_, tails_}; }

 private:
  std::vector<SortEntry> entries_;
  size_t shared_ = 0;  // as in RunView
  uint64_t tails_ = 0;
};

}  // namespace basalt::memtable
