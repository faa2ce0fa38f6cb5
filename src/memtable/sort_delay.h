#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace basalt::memtable {

/// Whether the background should leave the newest records unsorted for now. While as many threads
/// write as there are processors, it would take one from them, in the middle of a put and perhaps
/// while others wait for that. Sorted later and at once, records are merged less often, so
/// that waiting costs nothing but the time of the next iterator, if one comes meanwhile.
///
/// It does not go on waiting with kUnsortedMax records or more, nor where iterators come, which
/// would have to sort for themselves. Not thread-safe.
class SortDelay {
 public:
  /// An iterator sorts so many in some 15 ms.
  static constexpr uint64_t kUnsortedMax = uint64_t{1} << 19;

  /// `processors` 0: unknown, and it never waits.
  explicit SortDelay(uint32_t processors) noexcept : processors_(processors) {}

  /// What there is to be said of the generation that is written to, and since the last time.
  struct Moment {
    uint64_t generation = 0;                 ///< Another number for another generation.
    std::vector<uint32_t> segment_counts{};  ///< How many records each segment has taken.
    uint64_t unsorted = 0;                   ///< How many of all records are not sorted.
    bool was_iterated = false;               ///< Since the last time.
  };
  /// To be asked some milliseconds apart: a segment that has grown since is one writer.
  bool IsSortDue(Moment now) {
    const bool is_same = now.generation == last_.generation;
    uint32_t writers = 0;
    for (size_t i = 0; i < now.segment_counts.size(); ++i) {
      const uint32_t before =
          is_same && i < last_.segment_counts.size() ? last_.segment_counts[i] : 0;
      writers += now.segment_counts[i] != before ? 1 : 0;
    }
    last_ = std::move(now);
    const bool is_processor_free = processors_ == 0 || writers < processors_;
    return is_processor_free || last_.was_iterated || last_.unsorted >= kUnsortedMax;
  }

 private:
  const uint32_t processors_;
  Moment last_;
};

}  // namespace basalt::memtable
