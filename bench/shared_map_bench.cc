// Measures Basalt's shared map against other maps in files and in memory: the same records for
// each, in alternating order over several rounds, each in a process of its own. bench/README.md
// says what each figure means.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/cache_ticks.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/shared_map_measure.h"
#include "bench/shared_map_report.h"

namespace basalt::bench {
namespace {

struct Subject {
  std::string name;
  std::string description;
  std::function<SharedMapFigures(const SharedMapPlan&, const std::string& directory)> measure;
  std::string counted_to{};  // Whose figures they are, if not its own.
  bool is_of_first = false;  // Only for the first number of keys.
};

Subject Ours(const std::string& name, const std::string& description, SharedMapLayout layout) {
  return {name, description, [layout](const SharedMapPlan& plan, const std::string& directory) {
            BasaltSubject subject(layout);
            return MeasureMap(&subject, plan, directory, true);
          }};
}

Subject Peer(const std::string& name, const std::string& description,
             std::unique_ptr<SharedMapSubject> (*make)()) {
  return {name, description, [make](const SharedMapPlan& plan, const std::string& directory) {
            return MeasureMap(make().get(), plan, directory, false);
          }};
}

const std::vector<Subject>& AllSubjects() {
  static const std::vector<Subject> subjects = {
      Ours("basalt_fixed", "SharedMap, the fixed layout", SharedMapLayout::kFixed),
      Ours("basalt_variable", "SharedMap, the variable layout", SharedMapLayout::kVariable),
      Peer("unordered_map", "std::unordered_map<std::string, std::string>, XXH3", MakeUnorderedMap),
      Peer("flat_map", "boost::unordered_flat_map<std::string, std::string>, XXH3", MakeFlatMap),
      Peer("lmdb", "LMDB, one read transaction for all reads", MakeLmdbMap),
      Peer("cdb", "tinycdb, mapped", MakeCdb),
      Peer("plain_table", "RocksDB's PlainTable, mapped, hash index over whole keys",
           MakePlainTable),
      {"changes", "SharedMap, reads while more and more keys are changed", MeasureChanges,
       "basalt_fixed", true},
      {"beside_writer", "SharedMap, reads while another process writes at full speed",
       MeasureBesideWriter, "basalt_fixed", true},
  };
  return subjects;
}

struct Settings {
  std::string output = "build/bench/shared_map.json";
  std::string directory = "build/bench/shared_map_files";
  std::vector<std::string> subjects;
  std::vector<uint64_t> keys = {1'000'000, 10'000'000};
  uint64_t operations = 1'000'000;
  int runs = 5;
  uint64_t seed = 1;
};

void RunRound(const Settings& settings, int round, uint64_t keys,
              const std::vector<const Subject*>& subjects, SharedMapReport* report) {
  SharedMapPlan plan{.keys = keys, .operations = settings.operations};
  plan.seed = settings.seed + static_cast<uint64_t>(round);
  if (settings.operations < 1'000'000) plan.slice_seconds = 0.3;
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject& subject = *subjects[(i + static_cast<size_t>(round)) % subjects.size()];
    if (subject.is_of_first && keys != settings.keys.front()) continue;
    std::fprintf(stderr, "round %d of %d, %llu keys: %s\n", round + 1, settings.runs,
                 static_cast<unsigned long long>(keys), subject.name.c_str());
    report->Add(keys, subject.counted_to.empty() ? subject.name : subject.counted_to,
                RunInChild(settings.directory, [&](const std::string& directory) {
                  return subject.measure(plan, directory);
                }));
  }
}

// Whether the map in memory that takes most, and the files of ours beside it, have room.
bool FitsMemory(uint64_t keys) {
  constexpr uint64_t kBytesPerKey = 800;
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  for (uint64_t kilobytes = 0; meminfo >> name >> kilobytes;) {
    if (name == "MemAvailable:") return keys * kBytesPerKey <= kilobytes * 1024;
    meminfo.ignore(100, '\n');
  }
  return true;
}

int Run(const Settings& settings) {
  std::printf(
      "%s\n%d round%s; medians. Timing one operation costs %.1f ns, which is in p50 to "
      "p99.9\n",
      MachineDescription().c_str(), settings.runs, settings.runs == 1 ? "" : "s", TimingCostNs());
  std::vector<const Subject*> subjects;
  for (const Subject& subject : AllSubjects()) {
    if (std::ranges::find(settings.subjects, subject.name) == settings.subjects.end()) continue;
    std::printf("%-18s%s\n", subject.name.c_str(), subject.description.c_str());
    subjects.push_back(&subject);
  }
  std::fflush(stdout);
  SharedMapReport report;
  for (const uint64_t keys : settings.keys) {
    if (!FitsMemory(keys)) {
      std::printf("\nwithout %llu keys: there is too little memory\n",
                  static_cast<unsigned long long>(keys));
      continue;
    }
    for (int round = 0; round < settings.runs; ++round) {
      RunRound(settings, round, keys, subjects, &report);
    }
  }
  std::filesystem::remove_all(settings.directory);

  WriteFile(settings.output, report.ToJson());
  std::printf(
      "%s\nWhat it is to reach, medians (least - most) of the rounds:\n%s\nAll figures: %s\n",
      report.ToTables().c_str(), report.ToTargets().c_str(), settings.output.c_str());
  return 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  for (const auto& subject : AllSubjects()) settings.subjects.push_back(subject.name);
  bool quick = false;

  CLI::App app("Compares maps that many processes read, and hash tables in memory.",
               "shared_map_bench");
  app.footer(
      "Examples:\n"
      "  shared_map_bench                                 everything; some 12 GiB of memory and "
      "disk\n"
      "  shared_map_bench --quick                         everything on few keys, once\n"
      "  shared_map_bench --keys 1000000 --runs 3         minutes\n"
      "  shared_map_bench --subjects basalt_fixed,lmdb    only these");
  AddOutput(&app, &settings.output);
  app.add_option("--dir", settings.directory, "Where the maps' files go; removed at the end")
      ->capture_default_str();
  AddChoice(&app, "--subjects", "subjects", &settings.subjects);
  auto* keys = app.add_option("--keys", settings.keys, "Numbers of keys, separated by commas")
                   ->delimiter(',')
                   ->check(CLI::Range(uint64_t{1'000}, kSharedMapRecordsMax));
  app.add_option("--seed", settings.seed, "Of the first round's records")->capture_default_str();
  const auto* runs = AddRuns(&app, &settings.runs);
  app.add_flag("--quick", quick, "100,000 keys, and one round unless said otherwise");
  CLI11_PARSE(app, argc, argv);

  if (quick) settings.operations = 100'000;
  if (quick && runs->count() == 0) settings.runs = 1;
  if (quick && keys->count() == 0) settings.keys = {100'000};
  return Run(settings);
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
