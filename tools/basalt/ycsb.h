#pragma once

#include "tools/basalt/workload.h"

namespace basalt::tools {

// The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC
// 2010). Record n has the key "user" and the 20 digits of n's FNV hash, so that neighbours in time
// are none in the order of keys. Every record is one value.
//
// | name  | operations                                  | keys are chosen by             |
// |-------|---------------------------------------------|--------------------------------|
// | ycsba | 50 % reads, 50 % updates                    | scrambled Zipf, 0.99           |
// | ycsbb | 95 % reads, 5 % updates                     | scrambled Zipf, 0.99           |
// | ycsbc | reads                                       | scrambled Zipf, 0.99           |
// | ycsbd | 95 % reads, 5 % inserts                     | Zipf, 0.99, the newest first   |
// | ycsbe | 95 % scans of 1 to 100 records, 5 % inserts | scrambled Zipf, 0.99           |
// | ycsbf | 50 % reads, 50 % read-modify-writes         | scrambled Zipf, 0.99           |

/// Inserts the records 0 to num - 1.
Status RunYcsbLoad(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
Status RunYcsbA(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
Status RunYcsbB(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
Status RunYcsbC(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
Status RunYcsbD(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
Status RunYcsbE(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);
Status RunYcsbF(WorkloadRun& run, const WorkloadShare& share, WorkloadCounts& counts);

}  // namespace basalt::tools
