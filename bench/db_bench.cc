// Measures Basalt against LevelDB, RocksDB and LMDB: the same keys, values and order of operations
// for each, in alternating order over several rounds. bench/README.md says what each
// figure means.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/gates.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/round.h"
#include "bench/subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

std::string Header(const Settings& settings, const std::vector<const Subject*>& subjects) {
  std::string header =
      Format("%s\n%u keys of %zu bytes, values of %zu bytes (half compressible), %d round%s\n",
             MachineDescription().c_str(), settings.keys, kKeyBytes, kValueBytes, settings.runs,
             settings.runs == 1 ? "" : "s");
  for (const Subject* subject : subjects) {
    header += Format("%-9s%s\n", subject->name().c_str(), subject->description().c_str());
  }
  return header;
}

using Subjects = std::vector<std::unique_ptr<Subject>>;

Subjects MakeSubjects(const Settings& settings) {
  Subjects subjects;
  for (const auto& make : {MakeBasalt, MakeLevelDb, MakeRocksDb, MakeLmdb}) {
    std::unique_ptr<Subject> subject = make(settings.memory);
    if (settings.subjects.contains(subject->name())) subjects.push_back(std::move(subject));
  }
  return subjects;
}

/// Every subject runs on one kind of store before anyone goes on to the next, so that what is
/// compared was measured within seconds; each round begins with another subject.
Report RunRounds(const Settings& settings, const Subjects& subjects) {
  struct Store {
    const char* name;
    void (Round::*run)();
  };
  constexpr Store kStores[] = {{"fillrandom", &Round::RunFillRandom},
                               {"fillseq", &Round::RunFillSeq},
                               {"fillbatch", &Round::RunFillBatch},
                               {"fillsync", &Round::RunFillSync},
                               {"ycsb", &Round::RunYcsb}};
  Report report;
  AgreedCounts agreed;
  for (int round = 0; round < settings.runs; ++round) {
    for (const Store& store : kStores) {
      const auto start = steady_clock::now();
      for (size_t i = 0; i < subjects.size(); ++i) {
        Subject* subject = subjects[(i + static_cast<size_t>(round)) % subjects.size()].get();
        (Round(settings, round, subject, &report, &agreed).*store.run)();
      }
      std::printf("round %d of %d, stores of %-10s %6.1f s\n", round + 1, settings.runs, store.name,
                  SecondsSince(start));
      std::fflush(stdout);
    }
  }
  return report;
}

int Run(const Settings& settings) {
  const Subjects subjects = MakeSubjects(settings);
  std::vector<const Subject*> columns;
  for (const auto& subject : subjects) columns.push_back(subject.get());
  std::printf("%s\n", Header(settings, columns).c_str());
  std::fflush(stdout);
  const Report report = RunRounds(settings, subjects);

  WriteFile(settings.output, report.ToJson());
  std::printf(
      "\n%s\nMedians; ~: half of the way from the least to the greatest, in percent of the median. "
      "A ratio above 1\nsays that basalt is faster. All figures: %s\n\n%s",
      report.ToTable(columns).c_str(), settings.output.c_str(), GateLines(report, columns).c_str());
  return 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  std::vector<std::string> subjects = {"basalt", "leveldb", "rocksdb", "lmdb"};
  std::vector<std::string> benchmarks = kBenchmarks;

  CLI::App app("Compares Basalt with LevelDB, RocksDB and LMDB.", "db_bench");
  AddOutput(&app, &settings.output);
  app.add_option("--dir", settings.directory,
                 "Scratch directory on the disk to measure; emptied first, removed after")
      ->capture_default_str();
  AddChoice(&app, "--subjects", "stores", &subjects);
  AddChoice(&app, "--benchmarks", "benchmarks", &benchmarks);
  auto* keys = app.add_option("--keys", settings.keys, "Keys in a store")
                   ->capture_default_str()
                   ->check(CLI::Range(1'000U, 100'000'000U));
  uint64_t memory_mib = 0;
  app.add_option("--memory", memory_mib,
                 "MiB for each subject but LMDB; unless said otherwise, room for all keys: 256 MiB "
                 "for each million, begun or whole")
      ->check(CLI::Range(16, 1 << 20));
  const auto* runs = AddRuns(&app, &settings.runs);
  app.add_flag("--quick", settings.quick, "100,000 keys and one round, unless said otherwise");
  CLI11_PARSE(app, argc, argv);

  if (settings.quick && keys->count() == 0) settings.keys = 100'000;
  if (settings.quick && runs->count() == 0) settings.runs = 1;
  if (memory_mib == 0) memory_mib = uint64_t{256} * ((settings.keys + 999'999) / 1'000'000);
  settings.memory.total = memory_mib << 20;
  settings.subjects.insert(subjects.begin(), subjects.end());
  settings.benchmarks.insert(benchmarks.begin(), benchmarks.end());
  return Run(settings);
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
