#pragma once

#include <string>
#include <vector>

#include "bench/vector_data.h"
#include "bench/vector_peers/peer.h"
#include "bench/vector_report.h"

namespace basalt::bench {

struct VectorSettings {
  std::string output = "build/bench/vector.json";
  std::string peers = "build/bench/vector_peers";
  std::vector<std::string> benchmarks;
  int runs = 3;
  size_t vectors = 100'000;
  size_t queries = 1'000;
};

/// Null: there is no such library.
const VectorPeer* LoadVectorPeer(const std::string& path);

/// One round over one set of vectors, by HnswIndex and by `peer` (null: alone): build, recall
/// against speed, filters, searches beside adds. Times are of the calling thread's processor.
void MeasureVectorGraph(const std::string& name, const VectorData& data, const VectorPeer* peer,
                        VectorReport* report);

/// Half of the vectors replaced ten times, repaired a twentieth at a time; recall beside a fresh
/// build.
void MeasureVectorChurn(const VectorData& data, VectorReport* report);

}  // namespace basalt::bench
