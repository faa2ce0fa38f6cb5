#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/internal_key.h"
#include "memtable/record.h"
#include "memtable/sorter.h"

namespace basalt::memtable {

/// < 0, 0, > 0: the internal order of two finished records.
int CompareRecords(const Record& a, const Record& b) noexcept;

/// Finished versions of one keyspace in internal order; immutable once made. The records must
/// outlive it.
///
/// Entries are {record, prefix}: `prefix` is the 8 key bytes after the `shared` ones that all keys
/// have in common, so that a search seldom visits a record before its last step.
class SortedRun {
 public:
  SortedRun() = default;
  /// Sorts entries whose prefixes are KeyPrefix(key, 0). Throws std::bad_alloc.
  static SortedRun Sort(std::vector<SortEntry> entries);
  /// The versions of both, each found in one of them only; linear, without visiting the records
  /// between two of the smaller run. Throws std::bad_alloc.
  static SortedRun Merge(const SortedRun& large, SortedRun small);

  size_t size() const noexcept { return entries_.size(); }
  const Record& operator[](size_t i) const noexcept { return *entries_[i].record; }
  uint64_t memory_bytes() const noexcept { return entries_.capacity() * sizeof(SortEntry); }

  /// The first entry at or after (key, tag), size() if there is none.
  size_t LowerBound(std::string_view key, base::Tag tag) const noexcept {
    return Search(key, tag, /*after_equal=*/false);
  }
  /// The first entry after (key, tag), size() if there is none.
  size_t UpperBound(std::string_view key, base::Tag tag) const noexcept {
    return Search(key, tag, /*after_equal=*/true);
  }

  /// Starts to load entry i's record, if there is one. Any i.
  void Prefetch(size_t i) const noexcept {
    if (i >= entries_.size()) return;
    const char* const record = reinterpret_cast<const char*>(entries_[i].record);
    __builtin_prefetch(record);
    __builtin_prefetch(record + 64);
  }

 private:
  size_t Search(std::string_view key, base::Tag tag, bool after_equal) const noexcept;
  void ShortenShared(size_t shared) noexcept;

  std::vector<SortEntry> entries_;
  size_t shared_ = 0;
};

}  // namespace basalt::memtable
