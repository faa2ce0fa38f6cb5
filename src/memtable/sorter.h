#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memtable/record.h"

// Sorts versions of one keyspace into internal order (key, then descending tag).
//
// Comparing keys costs a cache miss each, so what is sorted are 16-byte entries {record, 8 bytes of
// its key as a number}, by Highway's VQSort (on x86-64) or a radix sort. Which 8 bytes: those after
// the bytes that all keys share. Ties are broken in the same way, range by range: keys that end
// within the 8 bytes are ordered by length (the padding of a short key is zeros, and so may be the
// bytes of a longer one), the others share 8 bytes more; they are sorted by the 8 bytes after all
// that these share. So each step passes at least 8 bytes of every key in its range, a long common
// prefix costs one step, and ranges to do stand on a heap stack, not on the thread's. Ranges of up
// to 32 are sorted by whole comparison.
//
// Cost: about 20-30 ns an entry without ties; each level of ties adds a visit of the tied records.
// Sorter::kComparison does none of this: it is what the others are checked against.

namespace basalt::memtable {

/// How records are sorted. All give the same order.
enum class Sorter : uint8_t {
  kVector,      ///< Vectorised quicksort on 8-byte pieces of keys (Highway's VQSort, on x86-64 with
                ///< SSSE3); elsewhere as kRadix.
  kRadix,       ///< Least significant byte first, on the same pieces.
  kComparison,  ///< std::sort on whole keys: the reference for the others.
};

struct alignas(16) SortEntry {
  const Record* record;
  uint64_t prefix;
};
static_assert(sizeof(SortEntry) == 16);

/// Sorts entries of finished records, whose `prefix` is KeyPrefix(key, 0). Gives how many bytes all
/// keys share, and sets every `prefix` to the 8 key bytes after those. All sorters give the same.
/// Throws std::bad_alloc.
size_t SortEntries(std::span<SortEntry> entries, Sorter sorter = Sorter::kVector);

}  // namespace basalt::memtable
