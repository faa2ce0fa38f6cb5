#pragma once

#include <cstdint>
#include <vector>

#include "bench/workload.h"
#include "tools/workload/ycsb.h"

// The workloads of YCSB (tools/workload/ycsb.h) as lists of requests that every subject is given.

namespace basalt::bench {

struct YcsbKeyRequest {
  workload::YcsbRequest::Kind kind;
  uint8_t scan_records;  ///< Of a scan.
  Key key;
};

/// The records of a store, and requests for them. The loaded records are numbered in random order
/// of their keys, and the inserted ones have keys at random places between them. So the popular and
/// the recent records lie anywhere among the keys.
class YcsbRecords {
 public:
  explicit YcsbRecords(uint32_t loaded);

  /// Of the `record`th record that was inserted; at most twice as many as were loaded.
  Key KeyOf(uint64_t record) const;
  /// As many requests as there are loaded records, or a tenth of that if they are scans. Counts the
  /// inserted records as present afterwards.
  std::vector<YcsbKeyRequest> Requests(const workload::YcsbMix& mix, uint64_t seed);

 private:
  std::vector<uint32_t> order_;
  workload::Zipf popularity_;
  uint64_t present_;
};

}  // namespace basalt::bench
