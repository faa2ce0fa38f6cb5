#pragma once

#include <string>

#include "bench/vector_report.h"

namespace basalt::bench {

/// One round of distances: rows that stream from memory beside reading alone, rows in the
/// first-level cache beside FAISS's (`faiss` is its library; without it, only ours), and 10,000
/// vectors that lie about. All with 512 dimensions.
void MeasureVectorKernels(const std::string& faiss, VectorReport* report);

}  // namespace basalt::bench
