#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/serializability/history.h"

// Whether a history is serializable (Adya, "Weak Consistency: A Generalized Theory and Optimistic
// Implementations for Distributed Transactions", 1999). The order of the versions of each key is
// that of the commits' sequence numbers. The checker draws a graph with the transactions as nodes
// and three kinds of edges:
//
//   write-read ....... the writer of a version, to each who has read it
//   write-write ...... the writer of a version, to the writer of the next
//   read-write ....... who has read a version, to the writer of the next. A range that was scanned
//                      was read at every key, so that an insert into a gap is a next version
//
// The history is serializable if the graph has no cycle. The store promises more, that the sequence
// numbers are a serial order: an edge against them is a fault too.
//
// A read of an absent key does not say which of the deletes it has seen. It is taken for the one
// that fits best: the last before the reader's commit; for a reader without a commit the first that
// is not before all else that it has seen.
//
// Cost: O(n log n) for n reads and writes.

namespace basalt::serializability {

struct CheckReport {
  uint64_t transactions = 0;
  uint64_t reads = 0;
  uint64_t edges = 0;
  uint64_t cycles = 0;              ///< Sets of transactions that no order can separate.
  uint64_t against_order = 0;       ///< Edges against the sequence numbers.
  uint64_t unknown_reads = 0;       ///< Values that no committed transaction has left.
  std::vector<std::string> faults;  ///< Some of them, in words.

  bool ok() const noexcept { return cycles == 0 && against_order == 0 && unknown_reads == 0; }
};

CheckReport CheckHistory(History history);

}  // namespace basalt::serializability
