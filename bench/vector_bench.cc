// Measures distances between vectors and HnswIndex against hnswlib and FAISS: the same vectors for
// each, one after the other in each of several rounds. bench/README.md says what each figure means.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "basalt/vector.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/text.h"
#include "bench/vector_data.h"
#include "bench/vector_graph.h"
#include "bench/vector_kernels.h"
#include "bench/vector_report.h"

namespace basalt::bench {
namespace {

bool IsWanted(const VectorSettings& settings, const std::string& benchmark) {
  return std::ranges::find(settings.benchmarks, benchmark) != settings.benchmarks.end();
}

VectorData DataOf(const VectorSettings& settings, const std::string& benchmark) {
  if (benchmark == "clusters_128" || benchmark == "churn") {
    return VectorData::Clusters(settings.vectors, settings.queries, 128, settings.vectors / 33, 1);
  }
  return VectorData::FromFile(settings.peers + "/data/" + benchmark + ".fvecs", settings.queries);
}

int Run(const VectorSettings& settings) {
  const VectorPeer* const peer = LoadVectorPeer(settings.peers + "/hnswlib_peer.so");
  std::printf("%s, %s; %d round%s; times are of the measuring thread's processor\n",
              MachineDescription().c_str(), VectorInstructionSet(), settings.runs,
              settings.runs == 1 ? "" : "s");
  if (peer == nullptr) std::printf("hnswlib is not there: bench/vector_peers/build fetches it\n");
  std::fflush(stdout);
  VectorReport report;
  for (const std::string& benchmark : {std::string("clusters_128"), std::string("lsa_128"),
                                       std::string("minilm_384"), std::string("churn")}) {
    if (!IsWanted(settings, benchmark)) continue;
    const VectorData data = DataOf(settings, benchmark);
    if (data.is_empty()) {
      std::printf("%s is not there: bench/vector_peers/build makes it\n", benchmark.c_str());
      continue;
    }
    for (int round = 0; round < settings.runs; ++round) {
      if (benchmark == "churn") {
        if (round == 0) MeasureVectorChurn(data, &report);
      } else {
        MeasureVectorGraph(benchmark, data, peer, &report);
      }
      std::fprintf(stderr, "%s, round %d of %d\n", benchmark.c_str(), round + 1, settings.runs);
    }
  }
  if (IsWanted(settings, "kernels")) {
    for (int round = 0; round < settings.runs; ++round) {
      MeasureVectorKernels(settings.peers + "/faiss/libfaiss.so", &report);
      std::fprintf(stderr, "kernels, round %d of %d\n", round + 1, settings.runs);
    }
  }
  WriteFile(settings.output, report.ToJson());
  std::printf(
      "\n%s\nWhat basalt is to reach, median (least - most) of the rounds:\n%s\nAll figures: %s\n",
      report.ToTable().c_str(), report.TargetLines().c_str(), settings.output.c_str());
  return 0;
}

int Main(int argc, char** argv) {
  VectorSettings settings;
  settings.benchmarks = {"kernels", "clusters_128", "lsa_128", "minilm_384", "churn"};
  bool quick = false;
  CLI::App app("Compares vector distances and an index of vectors with hnswlib and FAISS.",
               "vector_bench");
  app.footer(
      "Examples:\n"
      "  vector_bench                              everything, an hour\n"
      "  vector_bench --quick                      everything on few vectors, once\n"
      "  vector_bench --benchmarks kernels         a minute");
  AddOutput(&app, &settings.output);
  AddChoice(&app, "--benchmarks", "benchmarks", &settings.benchmarks);
  app.add_option("--peers", settings.peers, "What bench/vector_peers/build made")
      ->capture_default_str();
  auto* vectors = app.add_option("--vectors", settings.vectors, "Vectors that are generated")
                      ->check(CLI::Range(5'000, 10'000'000))
                      ->capture_default_str();
  const auto* runs = AddRuns(&app, &settings.runs);
  app.add_flag("--quick", quick, "Fewer vectors, and one round unless said otherwise");
  CLI11_PARSE(app, argc, argv);
  if (quick && runs->count() == 0) settings.runs = 1;
  if (quick && vectors->count() == 0) settings.vectors = 10'000;
  if (quick) settings.queries = 200;
  return Run(settings);
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
