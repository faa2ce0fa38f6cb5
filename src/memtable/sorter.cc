#include "memtable/sorter.h"

#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/internal_key.h"

namespace basalt::memtable {
namespace {

static_assert(sizeof(SortEntry) == sizeof(hwy::K64V64) &&
              alignof(SortEntry) == alignof(hwy::K64V64) &&
              offsetof(SortEntry, record) == offsetof(hwy::K64V64, value) &&
              offsetof(SortEntry, prefix) == offsetof(hwy::K64V64, key));

constexpr size_t kComparedEntriesMax = 32;
constexpr size_t kPrefetchDistance = 16;
constexpr size_t kPrefixBytes = sizeof(uint64_t);

using Entries = std::span<SortEntry>;

void Prefetch(Entries entries, size_t i) noexcept {
  if (i < entries.size()) __builtin_prefetch(entries[i].record);
}

// Whole comparison of keys that share their first `shared` bytes.
void SortByComparison(Entries entries, size_t shared) {
  std::sort(entries.begin(), entries.end(), [shared](const SortEntry& a, const SortEntry& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    const int order = a.record->key().substr(shared).compare(b.record->key().substr(shared));
    if (order != 0) return order < 0;
    return a.record->tag.load(std::memory_order_relaxed) >
           b.record->tag.load(std::memory_order_relaxed);
  });
}

void SetPrefixes(Entries entries, size_t offset) noexcept {
  for (size_t i = 0; i < entries.size(); ++i) {
    Prefetch(entries, i + kPrefetchDistance);
    entries[i].prefix = base::KeyPrefix(entries[i].record->key(), offset);
  }
}

// How many of the first `shared` bytes of `key`, not less than `known`, every `step`th entry has.
size_t SharedBySome(std::string_view key, size_t shared, Entries entries, size_t step,
                    size_t known) noexcept {
  for (size_t i = 0; i < entries.size() && shared > known; i += step) {
    Prefetch(entries, i + kPrefetchDistance * step);
    const std::string_view rest = entries[i].record->key().substr(known);
    shared = known + base::SharedBytes(key.substr(known, shared - known), rest);
  }
  return shared;
}

// Sets the prefixes behind what all keys share, and gives how many bytes that is; they are known to
// share the first `known`. One pass over the records where some that are asked first share no more
// than all do; else two.
size_t SetPrefixesBehindShared(Entries entries, size_t known) noexcept {
  constexpr size_t kAsked = 64;
  const std::string_view first = entries.front().record->key();
  const size_t shared =
      SharedBySome(first, first.size(), entries, entries.size() / kAsked + 1, known);
  for (size_t i = 0; i < entries.size(); ++i) {
    Prefetch(entries, i + kPrefetchDistance);
    const std::string_view key = entries[i].record->key();
    const std::string_view behind_known = first.substr(known, shared - known);
    if (base::SharedBytes(behind_known, key.substr(known)) < behind_known.size()) {
      const size_t shared_by_all = SharedBySome(first, shared, entries.subspan(i), 1, known);
      SetPrefixes(entries, shared_by_all);
      return shared_by_all;
    }
    entries[i].prefix = base::KeyPrefix(key, shared);
  }
  return shared;
}

// Sorts by prefix, one byte of it after the other from the least significant on. All bytes are
// counted in one pass, and those in which all prefixes agree are skipped.
class RadixSorter {
 public:
  void Sort(Entries entries) {
    for (ByteCounts& counts : counts_) counts.fill(0);
    for (const SortEntry& entry : entries) {
      for (size_t byte = 0; byte < kPrefixBytes; ++byte) ++counts_[byte][ByteOf(entry, byte)];
    }
    other_.resize(std::max(other_.size(), entries.size()));
    Entries from = entries;
    Entries to = Entries(other_).first(entries.size());
    for (size_t byte = 0; byte < kPrefixBytes; ++byte) {
      if (counts_[byte][ByteOf(entries[0], byte)] == entries.size()) continue;
      Distribute(from, to, byte);
      std::swap(from, to);
    }
    if (from.data() != entries.data()) std::ranges::copy(from, entries.begin());
  }

 private:
  using ByteCounts = std::array<size_t, 256>;

  static size_t ByteOf(const SortEntry& entry, size_t byte) noexcept {
    return entry.prefix >> (8 * byte) & 0xFF;
  }
  // Entries that agree in the byte keep their order. Counts become places.
  void Distribute(Entries from, Entries to, size_t byte) noexcept {
    ByteCounts& places = counts_[byte];
    std::exclusive_scan(places.begin(), places.end(), places.begin(), size_t{0});
    for (const SortEntry& entry : from) to[places[ByteOf(entry, byte)]++] = entry;
  }

  std::array<ByteCounts, kPrefixBytes> counts_;
  std::vector<SortEntry> other_;
};

// Whether VQSort gives the right order here. In Highway 1.0.3 it ends the process on an x86-64
// without SSSE3; and by its code for SVE of any length, where vectors have 256 bits or more,
// entries with equal prefixes get each other's records, some twice and some not at all.
//
// It may be asked by several threads at first, of which none waits for another: in the child of a
// fork that would not be there.
bool HasVectorSort() noexcept {
  static constinit std::atomic<int64_t> known{0};  // a processor has some
  int64_t targets = known.load(std::memory_order_relaxed);
  if (targets == 0) {
    targets = hwy::SupportedTargets();
    known.store(targets, std::memory_order_relaxed);
  }
  return (targets & (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL)) != 0;
}

class TieBreaker {
 public:
  /// `sorter` is not kComparison.
  explicit TieBreaker(Sorter sorter)
      : uses_vectors_(sorter == Sorter::kVector && HasVectorSort()) {}

  void SortByPrefix(Entries entries) {
    if (entries.size() <= kComparedEntriesMax) {
      std::sort(entries.begin(), entries.end(),
                [](const SortEntry& a, const SortEntry& b) { return a.prefix < b.prefix; });
    } else if (!uses_vectors_) {
      radix_sort_.Sort(entries);
    } else {
      // VQSort fills up its vectors with the greatest key and may leave that in place of an entry
      // that has it: those go to the end beforehand.
      const auto greatest =
          std::partition(entries.begin(), entries.end(),
                         [](const SortEntry& entry) { return entry.prefix != ~uint64_t{0}; });
      vector_sort_(reinterpret_cast<hwy::K64V64*>(entries.data()),
                   static_cast<size_t>(greatest - entries.begin()), hwy::SortAscending());
    }
  }

  // Sorts `entries`, whose keys share `shared` bytes and whose prefixes are the 8 bytes after
  // those. Leaves the prefixes as they are.
  void Sort(Entries entries, size_t shared) {
    SortByPrefix(entries);
    ForEachTie(entries, [&](Entries tied) {
      if (tied.size() <= kComparedEntriesMax) {
        SortByComparison(tied, shared);
      } else {
        SortTied(tied, shared);
      }
    });
  }

 private:
  // Keys that share `shared` bytes and agree in the padded prefix after those.
  struct Range {
    size_t begin;
    size_t end;
    size_t shared;
  };

  template <class Visit>
  static void ForEachTie(Entries entries, const Visit& visit) {
    for (size_t begin = 0; begin < entries.size();) {
      size_t end = begin + 1;
      while (end < entries.size() && entries[end].prefix == entries[begin].prefix) ++end;
      if (end - begin > 1) visit(entries.subspan(begin, end - begin));
      begin = end;
    }
  }

  // Works on a copy, because deeper prefixes take the place of the first ones.
  void SortTied(Entries tied, size_t shared) {
    deeper_.assign(tied.begin(), tied.end());
    ranges_.push_back({0, deeper_.size(), shared});
    while (!ranges_.empty()) {
      const Range range = ranges_.back();
      ranges_.pop_back();
      SortRange(range);
    }
    for (size_t i = 0; i < tied.size(); ++i) tied[i].record = deeper_[i].record;
  }

  void SortRange(const Range& range) {
    const Entries entries = Entries(deeper_).subspan(range.begin, range.end - range.begin);
    const auto ends = [&range](const SortEntry& entry) {
      return entry.record->key_size < range.shared + kPrefixBytes;
    };
    const auto middle = std::partition(entries.begin(), entries.end(), ends);
    const auto ended = static_cast<size_t>(middle - entries.begin());
    SortEnded(entries.first(ended));

    const Entries rest = entries.subspan(ended);
    if (rest.size() <= kComparedEntriesMax) {
      SortByComparison(rest, range.shared + kPrefixBytes);
      return;
    }
    const size_t shared = SetPrefixesBehindShared(rest, range.shared + kPrefixBytes);
    SortByPrefix(rest);
    ForEachTie(rest, [&](Entries tied) {
      const auto begin = static_cast<size_t>(tied.data() - deeper_.data());
      ranges_.push_back({begin, begin + tied.size(), shared});
    });
  }

  // Keys that end within a prefix in which they agree: those of one length are equal.
  void SortEnded(Entries entries) {
    for (SortEntry& entry : entries) entry.prefix = entry.record->key_size;
    SortByPrefix(entries);
    ForEachTie(entries, [this](Entries equal) {
      for (SortEntry& entry : equal) {
        entry.prefix = ~entry.record->tag.load(std::memory_order_relaxed);
      }
      SortByPrefix(equal);
    });
  }

  const bool uses_vectors_;
  hwy::Sorter vector_sort_;
  RadixSorter radix_sort_;
  std::vector<SortEntry> deeper_;
  std::vector<Range> ranges_;
};

size_t SortWholeKeys(Entries entries) {
  std::sort(entries.begin(), entries.end(), [](const SortEntry& a, const SortEntry& b) {
    return base::CompareInternal(a.record->key(), a.record->tag.load(std::memory_order_relaxed),
                                 b.record->key(),
                                 b.record->tag.load(std::memory_order_relaxed)) < 0;
  });
  const size_t shared =
      base::SharedBytes(entries.front().record->key(), entries.back().record->key());
  SetPrefixes(entries, shared);
  return shared;
}

}  // namespace

size_t SortEntries(Entries entries, Sorter sorter) {
  if (entries.empty()) return 0;
  if (sorter == Sorter::kComparison) return SortWholeKeys(entries);
  uint64_t differing_bits = 0;
  for (const SortEntry& entry : entries) differing_bits |= entry.prefix ^ entries[0].prefix;
  size_t shared = 0;
  if (differing_bits >> 56 == 0) {
    shared = SetPrefixesBehindShared(entries, 0);
  }
  if (entries.size() <= kComparedEntriesMax) {
    SortByComparison(entries, shared);
  } else {
    TieBreaker(sorter).Sort(entries, shared);
  }
  return shared;
}

}  // namespace basalt::memtable
