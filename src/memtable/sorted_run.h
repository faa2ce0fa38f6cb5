#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/internal_key.h"
#include "memtable/record.h"
#include "memtable/sorter.h"

namespace basalt::memtable {

/// < 0, 0, > 0: the internal order of two finished records.
int CompareRecords(const Record& a, const Record& b) noexcept;

/// Entries in internal order, whose prefixes are the 8 key bytes after the `shared` ones that all
/// their keys have in common. Points to what a SortedRun or somebody else owns.
struct RunView {
  std::span<const SortEntry> entries;
  size_t shared = 0;
  uint64_t tails = 1;  ///< That have been merged into it.

  const Record& first() const noexcept { return *entries.front().record; }
};

/// What makes the prefixes of runs that share different numbers of bytes comparable: moves a
/// prefix to the left, so that bytes that the run's keys share come in, and as many fall out.
class PrefixShift {
 public:
  PrefixShift() = default;
  /// For a run that is not empty, to prefixes after `shared` bytes, at most the run's own.
  PrefixShift(const RunView& run, size_t shared) noexcept;

  bool is_none() const noexcept { return coming_ == 0 && ~kept_ == 0 && bits_ == 0; }
  uint64_t operator()(uint64_t prefix) const noexcept {
    return coming_ | (prefix & kept_) >> bits_;
  }

 private:
  uint64_t coming_ = 0;
  uint64_t kept_ = ~uint64_t{0};
  uint64_t bits_ = 0;
};

/// Bytes that all keys of both runs share; neither is empty.
size_t SharedByRuns(const RunView& a, const RunView& b) noexcept;

/// Finished versions of one keyspace in internal order; immutable once made. The records must
/// outlive it.
///
/// A large run has the prefix of every 32nd entry beside it, a quarter of a byte an entry: a search
/// passes over these, which stay in the processor's caches, and waits for memory once. The entries
/// of a run above 2 MiB lie in a block of the process's pool: in huge pages that the last merge has
/// left, as a rule, since runs come and go with every merge.
///
/// Prefixes as in RunView let a search, and a merge, seldom visit a record before its last step.
class SortedRun {
 public:
  SortedRun() = default;
  /// A copy of `view`. Throws std::bad_alloc.
  explicit SortedRun(const RunView& view);
  /// Sorts entries whose prefixes are KeyPrefix(key, 0). Throws std::bad_alloc.
  static SortedRun Sort(std::vector<SortEntry> entries, Sorter sorter = Sorter::kVector);
  /// The versions of both, each found in one of them only. Linear; visits records only where
  /// prefixes are equal; quicker when one is much smaller. Throws std::bad_alloc.
  static SortedRun Merge(RunView a, RunView b);

  RunView view() const noexcept { return {{entries_.get(), size_}, shared_, tails_}; }
  operator RunView() const noexcept { return view(); }  // NOLINT(google-explicit-constructor)

  size_t size() const noexcept { return size_; }
  uint64_t tails() const noexcept { return tails_; }
  const Record& operator[](size_t i) const noexcept { return *entries_[i].record; }
  uint64_t memory_bytes() const noexcept {
    const size_t pool_bytes = entries_.get_deleter().pool_bytes;
    return (pool_bytes != 0 ? pool_bytes : size_ * sizeof(SortEntry)) +
           sample_count() * sizeof(uint64_t);
  }

  /// Where `key` belongs by its prefix: all entries before [begin, end) have smaller prefixes,
  /// those behind it have not. Starts to load them. Empty: just there, whatever the prefixes say.
  struct Place {
    size_t begin;
    size_t end;
  };
  Place Near(std::string_view key) const noexcept;
  /// The first entry at or after (key, tag), or behind it; size() if there is none. `near` is
  /// Near(key).
  size_t Find(Place near, std::string_view key, base::Tag tag, bool after_equal) const noexcept;

  /// The first entry at or after (key, tag), size() if there is none.
  size_t LowerBound(std::string_view key, base::Tag tag) const noexcept {
    return Find(Near(key), key, tag, /*after_equal=*/false);
  }
  /// The first entry after (key, tag), size() if there is none.
  size_t UpperBound(std::string_view key, base::Tag tag) const noexcept {
    return Find(Near(key), key, tag, /*after_equal=*/true);
  }

 private:
  static constexpr size_t kSampledEntriesMin = 1024;
  static constexpr size_t kSampleEvery = 32;

  SortedRun(size_t size, size_t shared, uint64_t tails);
  size_t sample_count() const noexcept {
    return size_ < kSampledEntriesMin ? 0 : (size_ + kSampleEvery - 1) / kSampleEvery;
  }
  void TakeSamples() noexcept;

  struct FreeEntries {
    size_t pool_bytes;  // of a block of the process's pool; 0: of the heap
    void operator()(SortEntry* entries) const noexcept;
  };
  using Entries = std::unique_ptr<SortEntry[], FreeEntries>;

  static Entries Allocate(size_t size);

  Entries entries_{nullptr, FreeEntries{0}};
  std::unique_ptr<uint64_t[]> samples_;  // of a large run, the prefix of every 32nd entry
  size_t size_ = 0;
  size_t shared_ = 0;
  uint64_t tails_ = 0;
};

}  // namespace basalt::memtable
