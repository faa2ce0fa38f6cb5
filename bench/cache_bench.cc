// Measures Basalt's cache against the classic sharded map, oneTBB, libcuckoo and RocksDB's caches:
// the same requests for each, in alternating order over several rounds. bench/README.md says what
// each figure means.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/cache_report.h"
#include "bench/cache_subject.h"
#include "bench/cache_targets.h"
#include "bench/cache_ticks.h"
#include "bench/cache_workloads.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;
using Subjects = std::vector<std::unique_ptr<CacheSubject>>;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

Subjects AllSubjects() {
  Subjects subjects;
  for (const auto& make : {MakeBasaltCache, MakeShardedMap, MakeTbbMap, MakeCuckooMap,
                           MakeHyperClockCache, MakeLruCache, MakeNoopCache}) {
    subjects.push_back(make());
  }
  return subjects;
}

std::vector<std::string> AllSubjectNames() {
  std::vector<std::string> names;
  for (const auto& subject : AllSubjects()) names.push_back(subject->name());
  return names;
}

std::vector<std::string> AllBenchmarks() {
  std::vector<std::string> names;
  for (const CacheWorkloads::Group& group : CacheWorkloads::Groups()) {
    names.insert(names.end(), group.benchmarks.begin(), group.benchmarks.end());
  }
  return names;
}

bool AnyWanted(const CacheWorkloads::Group& group, const CacheSettings& settings) {
  return std::any_of(group.benchmarks.begin(), group.benchmarks.end(), [&](const auto& benchmark) {
    return settings.benchmarks.contains(benchmark);
  });
}

std::string Header(const CacheSettings& settings, const Subjects& subjects) {
  std::string header = Format(
      "%s\n%u operations a run, %d round%s; timing one operation takes %.0f ns, which its latency "
      "contains\n",
      MachineDescription().c_str(), settings.operations, settings.runs,
      settings.runs == 1 ? "" : "s", TimingCostNs());
  for (const auto& subject : subjects) {
    header += Format("%-13s%s\n", subject->name().c_str(), subject->description().c_str());
  }
  return header;
}

void RunRounds(const CacheSettings& settings, const Subjects& subjects, CacheReport* report) {
  std::fprintf(stderr, "making requests\n");
  CacheWorkloads workloads(settings, report);
  for (int round = 0; round < settings.runs; ++round) {
    for (const CacheWorkloads::Group& group : CacheWorkloads::Groups()) {
      if (!AnyWanted(group, settings)) continue;
      const auto start = steady_clock::now();
      for (size_t i = 0; i < subjects.size(); ++i) {
        CacheSubject* subject = subjects[(i + static_cast<size_t>(round)) % subjects.size()].get();
        (workloads.*group.run)(subject, round);
      }
      std::fprintf(stderr, "round %d of %d, %-12s %6.1f s\n", round + 1, settings.runs,
                   group.name.c_str(), SecondsSince(start));
    }
  }
}

int Run(const CacheSettings& settings) {
  Subjects subjects = AllSubjects();
  std::erase_if(subjects, [&settings](const auto& subject) {
    return !settings.subjects.contains(subject->name());
  });
  std::printf("%s\n", Header(settings, subjects).c_str());
  std::fflush(stdout);

  CacheReport report;
  RunRounds(settings, subjects, &report);
  WriteFile(settings.output, report.ToJson());
  std::printf("%s\nMedian (least - most) of the rounds; above 1, basalt is faster:\n%s",
              report.ToTable(subjects).c_str(), report.ToRatioTable(subjects).c_str());
  const std::string targets = TargetLines(report);
  if (!targets.empty()) std::printf("\nWhat basalt is to reach:\n%s", targets.c_str());
  std::printf("\nAll figures: %s\n", settings.output.c_str());
  return 0;
}

int Main(int argc, char** argv) {
  CacheSettings settings;
  std::vector<std::string> subjects = AllSubjectNames();
  std::vector<std::string> benchmarks = AllBenchmarks();
  bool quick = false;

  CLI::App app("Compares Basalt's cache with other caches and concurrent maps.", "cache_bench");
  AddOutput(&app, &settings.output);
  AddChoice(&app, "--subjects", "caches", &subjects);
  AddChoice(&app, "--benchmarks", "benchmarks", &benchmarks);
  AddThreads(&app, &settings.threads);
  const auto* runs = AddRuns(&app, &settings.runs);
  app.add_flag("--quick", quick, "Fewer operations, and one round unless said otherwise");
  CLI11_PARSE(app, argc, argv);

  if (quick && runs->count() == 0) settings.runs = 1;
  if (quick) {
    settings.operations = 200'000;
    settings.grown_entries = 1'000'000;
  }
  settings.subjects.insert(subjects.begin(), subjects.end());
  settings.benchmarks.insert(benchmarks.begin(), benchmarks.end());
  return Run(settings);
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
