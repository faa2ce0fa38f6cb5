#pragma once

#include <cstdint>

#include "basalt/status.h"
#include "basalt/store.h"
#include "tests/serializability/history.h"

namespace basalt::serializability {

struct WorkloadOptions {
  uint64_t transactions = 10'000;  ///< That commit.
  uint64_t seed = 1;
  unsigned threads = 4;
  KeyNumber keys = 60;  ///< Of each of two keyspaces.
};

struct WorkloadResult {
  History history;
  uint64_t aborted = 0;
};

/// Runs random transactions, batches with conditions and plain writes in several threads on an
/// empty store. An error is one that no operation should have met. What each thread does is a
/// function of the seed and of what it reads; how the threads meet is not.
Result<WorkloadResult> RunWorkload(Store* store, const WorkloadOptions& options);

}  // namespace basalt::serializability
