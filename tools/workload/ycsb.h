#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/random.h"
#include "tools/workload/zipf.h"

// The core workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., "Benchmarking Cloud
// Serving Systems with YCSB", SoCC 2010) as requests for numbered records. Records are numbered in
// the order in which they are inserted. The caller decides which key a record has.

namespace basalt::workload {

/// Percentages of requests; the rest are reads.
struct YcsbMix {
  char name;
  uint32_t updates = 0;
  uint32_t inserts = 0;
  uint32_t scans = 0;
  uint32_t read_modify_writes = 0;
  bool newest_first = false;  ///< The newest record is the most popular one.
};

/// A to F in the order in which they run on one store: those that insert come last.
inline constexpr std::array<YcsbMix, 6> kYcsbMixes = {{
    {.name = 'a', .updates = 50},
    {.name = 'b', .updates = 5},
    {.name = 'c'},
    {.name = 'f', .read_modify_writes = 50},
    {.name = 'd', .inserts = 5, .newest_first = true},
    {.name = 'e', .inserts = 5, .scans = 95},
}};

constexpr const YcsbMix& FindYcsbMix(char name) {
  return *std::ranges::find(kYcsbMixes, name, &YcsbMix::name);
}

struct YcsbRequest {
  enum class Kind : uint8_t { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };

  Kind kind;
  uint32_t scan_records = 0;  ///< Of a scan: 1 to 100.
  uint64_t record = 0;        ///< Not of an insert, which gets the next number.
};

/// Draws the requests of a mix. `Popularity` draws a record that was loaded: ScrambledZipf, as YCSB
/// does, or Zipf if the caller's keys are in random order anyway. Immutable, so thread-safe.
template <class Popularity>
class YcsbRequests {
 public:
  /// `loaded`: the records that were inserted before the first workload.
  YcsbRequests(const YcsbMix& mix, const Popularity& popularity, uint64_t loaded)
      : mix_(mix), popularity_(popularity), ages_(loaded, kYcsbSkew) {}

  /// `present`: the records that have been inserted, at least one.
  YcsbRequest Draw(base::Random& random, uint64_t present) const {
    using Kind = YcsbRequest::Kind;
    auto point = static_cast<uint32_t>(random.Below(100));
    const auto falls_in = [&point](uint32_t percent) {
      const bool is_inside = point < percent;
      point -= is_inside ? 0 : percent;
      return is_inside;
    };
    if (falls_in(mix_.inserts)) return {.kind = Kind::kInsert};
    const uint64_t record = Record(random, present);
    if (falls_in(mix_.updates)) return {.kind = Kind::kUpdate, .record = record};
    if (falls_in(mix_.read_modify_writes)) {
      return {.kind = Kind::kReadModifyWrite, .record = record};
    }
    if (!falls_in(mix_.scans)) return {.kind = Kind::kRead, .record = record};
    const auto records = static_cast<uint32_t>(random.Between(1, kScanRecordsMax));
    return {.kind = Kind::kScan, .scan_records = records, .record = record};
  }

 private:
  static constexpr uint64_t kScanRecordsMax = 100;

  uint64_t Record(base::Random& random, uint64_t present) const {
    if (!mix_.newest_first) return popularity_(random);
    return present - 1 - std::min(present - 1, ages_(random));
  }

  YcsbMix mix_;
  Popularity popularity_;
  Zipf ages_;
};

}  // namespace basalt::workload
