// Measures basalt::MemTable against RocksDB's, a concurrent map and two maps under a lock: the same
// requests for each, in alternating order over several rounds. bench/README.md says what each
// figure means.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/cache_subject.h"
#include "bench/cache_ticks.h"
#include "bench/memtable_report.h"
#include "bench/memtable_subject.h"
#include "bench/memtable_workloads.h"
#include "bench/options.h"
#include "bench/report.h"

namespace basalt::bench {
namespace {

using Subjects = std::vector<std::unique_ptr<MemTableSubject>>;

Subjects AllSubjects() {
  Subjects subjects;
  for (const auto& make :
       {MakeBasaltMemTable, MakeRocksDbSkipList, MakeTbbConcurrentMap, MakeAbslBtree, MakeStdMap}) {
    subjects.push_back(make());
  }
  return subjects;
}

std::vector<std::string> NamesOf(const Subjects& subjects) {
  std::vector<std::string> names;
  for (const auto& subject : subjects) names.push_back(subject->name());
  return names;
}

std::vector<std::string> AllBenchmarks() {
  std::vector<std::string> names;
  for (const MemTableWorkloads::Group& group : MemTableWorkloads::Groups()) {
    names.insert(names.end(), group.benchmarks.begin(), group.benchmarks.end());
  }
  return names;
}

void RunRounds(const MemTableSettings& settings, const Subjects& subjects, bool forks,
               MemTableWorkloads* workloads) {
  using std::chrono::steady_clock;
  for (int round = 0; round < settings.runs; ++round) {
    for (const MemTableWorkloads::Group& group : MemTableWorkloads::Groups()) {
      const bool is_wanted =
          std::any_of(group.benchmarks.begin(), group.benchmarks.end(),
                      [&](const auto& name) { return settings.benchmarks.contains(name); });
      if (!is_wanted || group.forks != forks) continue;
      const auto start = steady_clock::now();
      for (size_t i = 0; i < subjects.size(); ++i) {
        const size_t turn = (i + static_cast<size_t>(round)) % subjects.size();
        (workloads->*group.run)(subjects[turn].get(), round);
      }
      std::fprintf(stderr, "round %d of %d, %-10s %6.1f s\n", round + 1, settings.runs,
                   group.name.c_str(),
                   std::chrono::duration<double>(steady_clock::now() - start).count());
    }
  }
}

int Run(const MemTableSettings& settings) {
  Subjects subjects = AllSubjects();
  std::erase_if(subjects, [&settings](const auto& subject) {
    return !settings.subjects.contains(subject->name());
  });
  const std::vector<std::string> names = NamesOf(subjects);
  std::printf("%s\n%u records of %zu + %zu bytes, %d round%s; timing one operation takes %.0f ns\n",
              MachineDescription().c_str(), settings.records, kKeyBytes, kValueBytes, settings.runs,
              settings.runs == 1 ? "" : "s", TimingCostNs());
  for (const auto& subject : subjects) {
    std::printf("%-9s%s\n", subject->name().c_str(), subject->description().c_str());
  }
  std::fflush(stdout);

  MemTableReport report;
  MemTableWorkloads workloads(settings, &report);
  for (const bool forks : {true, false}) RunRounds(settings, subjects, forks, &workloads);
  WriteFile(settings.output, report.ToJson());
  std::printf("\n%s\nMedian (least - most) of the rounds; above 1, basalt is faster:\n%s",
              report.ToTable(names).c_str(), report.ToRatioTable(names).c_str());
  const std::string targets = report.TargetLines();
  if (!targets.empty()) std::printf("\nWhat basalt is to reach:\n%s", targets.c_str());
  std::printf("\nAll figures: %s\n", settings.output.c_str());
  return 0;
}

int Main(int argc, char** argv) {
  MemTableSettings settings;
  std::vector<std::string> subjects = NamesOf(AllSubjects());
  std::vector<std::string> benchmarks = AllBenchmarks();
  bool quick = false;

  CLI::App app("Compares Basalt's memtable with RocksDB's and with ordered maps.",
               "memtable_bench");
  app.footer(
      "Examples:\n"
      "  memtable_bench                                  everything, some ten minutes\n"
      "  memtable_bench --quick                          everything on few records, once\n"
      "  memtable_bench --subjects basalt,rocksdb --benchmarks write,get --threads 1\n"
      "  memtable_bench --subjects basalt --benchmarks lifecycle,floor --runs 3");
  AddOutput(&app, &settings.output);
  AddChoice(&app, "--subjects", "stores", &subjects);
  AddChoice(&app, "--benchmarks", "benchmarks", &benchmarks);
  AddThreads(&app, &settings.threads);
  auto* records = app.add_option("--records", settings.records, "Records of a store")
                      ->check(CLI::Range(10'000, 10'000'000))
                      ->capture_default_str();
  const auto* runs = AddRuns(&app, &settings.runs);
  app.add_flag("--quick", quick, "Fewer records, and one round unless said otherwise");
  CLI11_PARSE(app, argc, argv);

  if (quick && runs->count() == 0) settings.runs = 1;
  if (quick && records->count() == 0) settings.records = 100'000;
  if (quick) {
    settings.large_records = 1'000'000;
    settings.lifecycle_bytes = uint64_t{128} << 20;
  }
  settings.subjects.insert(subjects.begin(), subjects.end());
  settings.benchmarks.insert(benchmarks.begin(), benchmarks.end());
  return Run(settings);
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
