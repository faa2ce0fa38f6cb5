#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cache_sim/zipf.h"
#include "bench/workload.h"

// The workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., "Benchmarking Cloud Serving
// Systems with YCSB", SoCC 2010) as lists of requests that every subject is given.
//
// Records are numbered in the order in which they were inserted: the loaded ones in random order of
// their keys, then what the workloads insert, at random places between them. So the records that
// are popular, or recent, lie anywhere among the keys.

namespace basalt::bench {

struct YcsbRequest {
  enum class Kind : uint8_t { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };

  Kind kind;
  uint8_t scan_records;  ///< 1 to 100 for kScan.
  Key key;
};

/// Percentages of requests; the rest are reads. Which record is asked for: Zipf with 0.99 over the
/// loaded records, or over the latest.
struct YcsbWorkload {
  std::string name;
  uint32_t update_percent = 0;
  uint32_t insert_percent = 0;
  uint32_t scan_percent = 0;
  uint32_t read_modify_write_percent = 0;
  bool reads_latest = false;
  uint32_t requests_percent = 100;  ///< How many: of the number of loaded records.
};

/// A to F, in the order in which they run: those that insert come last.
const std::vector<YcsbWorkload>& YcsbWorkloads();

/// The records of a store, and requests for them.
class YcsbRecords {
 public:
  explicit YcsbRecords(uint32_t loaded);

  /// Of the `record`th record that was inserted; at most twice as many as were loaded.
  Key KeyOf(uint32_t record) const;
  /// Counts the inserted records as present afterwards.
  std::vector<YcsbRequest> Requests(const YcsbWorkload& workload, uint64_t seed);

 private:
  YcsbRequest Draw(const YcsbWorkload& workload, base::Random* random);

  std::vector<uint32_t> order_;
  cache_sim::Zipf ranks_;
  uint32_t present_;
};

}  // namespace basalt::bench
