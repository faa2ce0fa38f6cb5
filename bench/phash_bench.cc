// Measures Basalt's perfect hash functions and fingerprint sets against other libraries: the same
// keys for each, in alternating order over several rounds, each in a process of its own.
// bench/README.md says what each figure means.

#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "bench/options.h"
#include "bench/phash_measure.h"
#include "bench/report.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

struct Subject {
  std::string name;
  std::string description;
  bool is_set = false;
  bool is_peer_program = false;  // Measured by phash_peers.
  bool has_threads = true;
  uint64_t keys_max = 1'000'000'000;
};

const std::vector<Subject>& AllSubjects() {
  static const std::vector<Subject> subjects = {
      {.name = "basalt", .description = "PerfectHash, shift seeds (the default)"},
      {.name = "basalt_dense", .description = "PerfectHash, dense seeds"},
      {.name = "phast_plus",
       .description = "PHast+ with wrapping, 8-bit seeds (crate ph)",
       .is_peer_program = true},
      {.name = "phast", .description = "PHast, 8-bit seeds (crate ph)", .is_peer_program = true},
      {.name = "ptr_hash_fast",
       .description = "PtrHash, fast: numbers up to 1.01 n, one part, one thread (crate ptr_hash)",
       .is_peer_program = true,
       .has_threads = false,
       .keys_max = 10'000'000},
      {.name = "ptr_hash",
       .description = "PtrHash, default: one part, one thread",
       .is_peer_program = true,
       .has_threads = false,
       .keys_max = 10'000'000},
      {.name = "ptr_hash_compact", .description = "PtrHash, compact", .is_peer_program = true},
      {.name = "cmph_chd",
       .description = "CHD (libcmph), keys as 8 bytes, one thread",
       .has_threads = false,
       .keys_max = 10'000'000},
      {.name = "cmph_bdz",
       .description = "BDZ (libcmph), keys as 8 bytes, one thread",
       .has_threads = false,
       .keys_max = 10'000'000},
      {.name = "fingerprint_6", .description = "FingerprintSet, 6 bits", .is_set = true},
      {.name = "fingerprint_7", .description = "FingerprintSet, 7 bits", .is_set = true},
      {.name = "fingerprint_8", .description = "FingerprintSet, 8 bits", .is_set = true},
      {.name = "bloom",
       .description = "the tables' blocked Bloom filter, 10 bits a key",
       .is_set = true},
  };
  return subjects;
}

struct Settings {
  std::string output = "build/bench/phash.json";
  std::string peers = "build/bench/phash_peers/release/phash_peers";
  std::vector<std::string> subjects;
  std::vector<uint64_t> keys = {1'000'000, 10'000'000, 100'000'000};
  std::vector<uint32_t> threads = {1, 2};
  int runs = 5;
  uint64_t seed = 1;
};

// The figures of one subject with so many keys and threads: metric -> one value a round.
struct Case {
  const Subject* subject;
  uint64_t keys;
  uint32_t threads;
  std::vector<std::string> metrics;  // In the order in which they came.
  std::map<std::string, std::vector<double>> values;

  double Median(const std::string& metric) const {
    const auto found = values.find(metric);
    if (found == values.end()) return 0;
    std::vector<double> sorted = found->second;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// The program itself measures in a process of its own, as phash_peers does: both print a line.
PhashFigures RunInProcess(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) Fail(command, "no process could be started");
  std::string line;
  std::array<char, 512> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) line += buffer.data();
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail(command, "it failed");
  return FromLine(line);
}

std::string CommandFor(const Settings& settings, const Case& which, const std::string& self,
                       uint64_t seed) {
  const char* const name = which.subject->name.c_str();
  if (which.subject->is_peer_program) {
    return Format("'%s' %s %llu %u %llu", settings.peers.c_str(), name,
                  static_cast<unsigned long long>(which.keys), which.threads,
                  static_cast<unsigned long long>(seed));
  }
  return Format("'%s' --measure %s --keys %llu --threads %u --seed %llu", self.c_str(), name,
                static_cast<unsigned long long>(which.keys), which.threads,
                static_cast<unsigned long long>(seed));
}

std::vector<Case> CasesOf(const Settings& settings) {
  std::vector<Case> cases;
  for (const uint64_t keys : settings.keys) {
    for (const uint32_t threads : settings.threads) {
      for (const Subject& subject : AllSubjects()) {
        const bool is_wanted =
            std::ranges::find(settings.subjects, subject.name) != settings.subjects.end();
        const bool is_able =
            keys <= subject.keys_max && (threads == 1 || (subject.has_threads && !subject.is_set));
        if (is_wanted && is_able) cases.push_back({&subject, keys, threads, {}, {}});
      }
    }
  }
  return cases;
}

void RunRound(const Settings& settings, const std::string& self, int round,
              std::vector<Case>* cases) {
  for (size_t i = 0; i < cases->size(); ++i) {
    Case& which = (*cases)[(i + static_cast<size_t>(round)) % cases->size()];
    const uint64_t seed = settings.seed + static_cast<uint64_t>(round);
    for (const PhashFigure& figure : RunInProcess(CommandFor(settings, which, self, seed))) {
      if (!which.values.contains(figure.metric)) which.metrics.push_back(figure.metric);
      which.values[figure.metric].push_back(figure.value);
    }
  }
}

std::string ToJson(const std::vector<Case>& cases) {
  std::string json = "[\n";
  const char* comma = "";
  for (const Case& which : cases) {
    for (const std::string& metric : which.metrics) {
      const std::vector<double>& values = which.values.at(metric);
      json += Format(
          "%s{\"subject\":\"%s\",\"keys\":%llu,\"threads\":%u,\"metric\":\"%s\","
          "\"median\":%.6g,\"min\":%.6g,\"max\":%.6g,\"runs\":%zu}",
          comma, which.subject->name.c_str(), static_cast<unsigned long long>(which.keys),
          which.threads, metric.c_str(), which.Median(metric), *std::ranges::min_element(values),
          *std::ranges::max_element(values), values.size());
      comma = ",\n";
    }
  }
  return json + "\n]\n";
}

std::string Cell(const Case& which, const std::string& metric, const char* format) {
  if (!which.values.contains(metric)) return "-";
  const double value = which.Median(metric);
  return std::string(format) == "%.1f" ? Format("%.1f", value) : Format("%.2f", value);
}

std::string ToTable(const std::vector<Case>& cases, bool sets) {
  using Column = std::tuple<const char*, const char*, const char*>;
  const std::vector<Column> columns =
      sets ? std::vector<Column>{{"bits", "bits", "%.2f"},
                                 {"false_positives", "false %", "%.2f"},
                                 {"build_ns", "build ns", "%.1f"},
                                 {"hit_loop_ns", "hit ns", "%.1f"},
                                 {"miss_loop_ns", "miss ns", "%.1f"},
                                 {"hit_dependent_ns", "hit dep.", "%.1f"},
                                 {"miss_dependent_ns", "miss dep.", "%.1f"},
                                 {"hit_streamed_ns", "streamed", "%.1f"}}
           : std::vector<Column>{{"bits", "bits", "%.2f"},
                                 {"build_ns", "build ns", "%.1f"},
                                 {"memory_bytes", "memory B", "%.1f"},
                                 {"loop_ns", "query ns", "%.1f"},
                                 {"dependent_ns", "dependent", "%.1f"},
                                 {"streamed_ns", "streamed", "%.1f"}};
  std::string table;
  uint64_t keys = 0;
  uint32_t threads = 0;
  for (const Case& which : cases) {
    if (which.subject->is_set != sets) continue;
    if (which.keys != keys || which.threads != threads) {
      keys = which.keys;
      threads = which.threads;
      table += Format("\n%llu keys, %u thread%s\n%-18s", static_cast<unsigned long long>(keys),
                      threads, threads == 1 ? "" : "s", "");
      for (const auto& [metric, title, format] : columns) table += Format("%11s", title);
      table += "\n";
    }
    table += Format("%-18s", which.subject->name.c_str());
    for (const auto& [metric, title, format] : columns) {
      table += Format("%11s", Cell(which, metric, format).c_str());
    }
    table += "\n";
  }
  return table;
}

const Case* Find(const std::vector<Case>& cases, const std::string& subject, const Case& like,
                 uint32_t threads) {
  for (const Case& which : cases) {
    if (which.subject->name == subject && which.keys == like.keys && which.threads == threads) {
      return &which;
    }
  }
  return nullptr;
}

// `theirs` over `ours`, round by round: above 1, ours takes less.
std::string Ratio(const Case& theirs, const Case& ours, const std::string& metric) {
  const auto their_values = theirs.values.find(metric);
  const auto our_values = ours.values.find(metric);
  if (their_values == theirs.values.end() || our_values == ours.values.end()) return "-";
  std::vector<double> ratios;
  for (size_t i = 0; i < our_values->second.size(); ++i) {
    ratios.push_back(their_values->second[i] / our_values->second[i]);
  }
  std::sort(ratios.begin(), ratios.end());
  return Format("%.2f (%.2f - %.2f)", ratios[ratios.size() / 2], ratios.front(), ratios.back());
}

std::string ToRatios(const std::vector<Case>& cases) {
  std::string lines;
  for (const Case& ours : cases) {
    if (!ours.subject->name.starts_with("basalt")) continue;
    const std::string head = Format("%-13s %9llu keys, %u thread%s", ours.subject->name.c_str(),
                                    static_cast<unsigned long long>(ours.keys), ours.threads,
                                    ours.threads == 1 ? " " : "s");
    const std::string peer = ours.subject->name == "basalt" ? "phast_plus" : "phast";
    if (const Case* theirs = Find(cases, peer, ours, ours.threads); theirs != nullptr) {
      lines +=
          Format("%s  %-10s build %s, query %s, bits %s\n", head.c_str(), peer.c_str(),
                 Ratio(*theirs, ours, "build_ns").c_str(), Ratio(*theirs, ours, "loop_ns").c_str(),
                 Ratio(*theirs, ours, "bits").c_str());
    }
    const Case* alone = ours.threads == 1 ? nullptr : Find(cases, ours.subject->name, ours, 1);
    if (alone != nullptr) {
      lines += Format("%s  %-10s build %s\n", head.c_str(), "one thread",
                      Ratio(*alone, ours, "build_ns").c_str());
    }
  }
  return lines;
}

std::string ToTargets(const std::vector<Case>& cases) {
  struct Target {
    const char* metric;
    double shift;
    double dense;
  };
  constexpr std::array<Target, 4> kTargets = {
      {{"bits", 2.2, 2.0}, {"build_ns", 75, 65}, {"memory_bytes", 20, 20}, {"loop_ns", 3, 3}}};
  std::string lines;
  for (const Case& ours : cases) {
    const bool is_dense = ours.subject->name == "basalt_dense";
    if (!ours.subject->name.starts_with("basalt") || ours.threads != 1) continue;
    if (ours.keys < 1'000'000) continue;
    for (const Target& target : kTargets) {
      if (std::string(target.metric) == "loop_ns" && ours.keys > 1'000'000) continue;
      const double least = is_dense ? target.dense : target.shift;
      const double value = ours.Median(target.metric);
      lines += Format("%-13s %9llu keys  %-13s %6.2f  at most %5.1f  %s\n",
                      ours.subject->name.c_str(), static_cast<unsigned long long>(ours.keys),
                      target.metric, value, least, value <= least ? "met" : "MISSED");
    }
  }
  return lines;
}

int Run(const Settings& settings, const std::string& self) {
  std::printf("%s\n%d round%s; medians, nanoseconds a key or query\n", MachineDescription().c_str(),
              settings.runs, settings.runs == 1 ? "" : "s");
  std::vector<Case> cases = CasesOf(settings);
  for (const Subject& subject : AllSubjects()) {
    if (std::ranges::find(settings.subjects, subject.name) == settings.subjects.end()) continue;
    std::printf("%-18s%s\n", subject.name.c_str(), subject.description.c_str());
  }
  std::fflush(stdout);
  for (int round = 0; round < settings.runs; ++round) {
    RunRound(settings, self, round, &cases);
    std::fprintf(stderr, "round %d of %d\n", round + 1, settings.runs);
  }

  WriteFile(settings.output, ToJson(cases));
  std::printf(
      "%s%s\nThe peer's over ours, median (least - most) of the rounds; above 1, ours takes "
      "less:\n%s\nWhat it is to reach:\n%s\nAll figures: %s\n",
      ToTable(cases, false).c_str(), ToTable(cases, true).c_str(), ToRatios(cases).c_str(),
      ToTargets(cases).c_str(), settings.output.c_str());
  return 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  for (const auto& subject : AllSubjects()) settings.subjects.push_back(subject.name);
  bool quick = false;
  std::string measured;

  CLI::App app("Compares perfect hash functions, and fingerprint sets with a Bloom filter.",
               "phash_bench");
  app.footer(
      "Examples:\n"
      "  phash_bench                                      everything, some 25 minutes and 4 GiB\n"
      "  phash_bench --quick                              everything on few keys, once\n"
      "  phash_bench --keys 1000000                       a minute\n"
      "  phash_bench --subjects basalt,phast_plus --threads 1");
  AddOutput(&app, &settings.output);
  app.add_option("--peers", settings.peers, "The program that bench/phash_peers/build made")
      ->capture_default_str();
  AddChoice(&app, "--subjects", "subjects", &settings.subjects);
  auto* keys = app.add_option("--keys", settings.keys, "Numbers of keys, separated by commas")
                   ->delimiter(',')
                   ->check(CLI::Range(1'000, 1'000'000'000));
  app.add_option("--threads", settings.threads, "Numbers of threads, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--seed", settings.seed, "Of the first round's keys")->capture_default_str();
  const auto* runs = AddRuns(&app, &settings.runs);
  app.add_flag("--quick", quick, "100,000 keys, and one round unless said otherwise");
  app.add_option("--measure", measured, "")->group("");
  CLI11_PARSE(app, argc, argv);

  if (!measured.empty()) {
    const auto subject =
        std::ranges::find(AllSubjects(), measured, [](const auto& each) { return each.name; });
    if (subject == AllSubjects().end()) Fail("measure " + measured, "no such subject");
    const auto figures = subject->is_set ? MeasureSet(measured, settings.keys[0], settings.seed)
                                         : MeasureFunction(measured, settings.keys[0],
                                                           settings.threads[0], settings.seed);
    std::printf("%s\n", ToLine(figures).c_str());
    return 0;
  }
  if (quick && runs->count() == 0) settings.runs = 1;
  if (quick && keys->count() == 0) settings.keys = {100'000};
  if (!std::filesystem::exists(settings.peers)) {
    std::fprintf(stderr,
                 "phash_bench: without PHast and PtrHash: there is no %s (bench/phash_peers/build "
                 "makes it)\n",
                 settings.peers.c_str());
    std::erase_if(settings.subjects, [](const std::string& name) {
      return std::ranges::find(AllSubjects(), name, [](const auto& each) { return each.name; })
          ->is_peer_program;
    });
  }
  return Run(settings, std::filesystem::read_symlink("/proc/self/exe").string());
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) { return basalt::bench::Main(argc, argv); }
