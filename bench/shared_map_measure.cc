#include "bench/shared_map_measure.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/histogram.h"
#include "base/random.h"
#include "bench/cache_ticks.h"
#include "bench/shared_map_floor.h"

namespace basalt::bench {
namespace {

// Bytes that everything in a directory takes on the disk.
double DiskBytes(const std::string& directory) {
  constexpr double kUnit = 512;  // of st_blocks, by POSIX
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat attributes{};
    if (entry.is_regular_file() && stat(entry.path().c_str(), &attributes) == 0) {
      bytes += kUnit * static_cast<double>(attributes.st_blocks);
    }
  }
  return bytes;
}

struct MappedBytes {
  double resident = 0;
  double huge = 0;
};

// What this process has mapped of files whose paths begin so, and by huge pages; empty: memory of
// its own.
MappedBytes Mapped(const std::string& path) {
  MappedBytes sum;
  bool counts = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.ends_with(':')) {
      double kilobytes = 0;
      words >> kilobytes;
      if (!counts) continue;
      if (name == "Rss:") sum.resident += 1024 * kilobytes;
      if (name == "FilePmdMapped:" || name == "AnonHugePages:") sum.huge += 1024 * kilobytes;
    } else {
      const size_t at = line.find('/');
      counts = path.empty() ? at == std::string::npos
                            : at != std::string::npos && line.compare(at, path.size(), path) == 0;
    }
  }
  return sum;
}

// Where every lookup is timed: the processor finishes one before it begins the next.
void AddPercentiles(SharedMapSubject* subject, const SharedMapPlan& plan,
                    SharedMapFigures* figures) {
  base::Histogram ticks;
  uint64_t wrong = 0;
  for (const RecordKey& key : RandomHits(plan.keys, plan.operations, plan.seed)) {
    const uint64_t before = TicksBefore();
    const Seen seen = subject->Get(key.view());
    ticks.Record(TicksAfter() - before);
    wrong |= seen.own ^ key.digits().text();
  }
  if (wrong != 0) Fail("look up keys", "a value is missing, or not the one that was put");
  const std::pair<const char*, double> percentiles[] = {{"p50", 50}, {"p99", 99}, {"p99.9", 99.9}};
  for (const auto& [metric, percent] : percentiles) {
    const auto value = static_cast<double>(ticks.Percentile(percent)) * NanosecondsPerTick();
    figures->push_back({"read", metric, "ns", value});
  }
}

void AddReads(SharedMapSubject* subject, const SharedMapPlan& plan, const SharedMapFloor* floor,
              SharedMapFigures* figures) {
  struct Kind {
    const char* metric;
    std::function<double(uint64_t seed)> measure;
    double least = 1e9;
  };
  std::vector<Kind> kinds;
  if (floor != nullptr) {
    kinds.push_back({"floor", [&](uint64_t seed) {
                       return floor->ChainNs(plan.operations, seed % plan.keys);
                     }});
    kinds.push_back({"floor_with_keys", [&](uint64_t seed) {
                       return floor->ChainWithKeysNs(plan.operations, seed % plan.keys);
                     }});
    kinds.push_back(
        {"floor_batch", [&](uint64_t seed) { return floor->BatchNs(plan.operations, seed); }});
    kinds.push_back({"key", [&](uint64_t) { return KeyNs(plan.operations); }});
  }
  kinds.push_back({"dependent", [&](uint64_t seed) {
                     return DependentNs(subject, plan.operations, seed % plan.keys);
                   }});
  kinds.push_back({"independent", [&](uint64_t seed) {
                     return IndependentNs(subject, RandomHits(plan.keys, plan.operations, seed));
                   }});
  kinds.push_back({"miss", [&](uint64_t seed) {
                     return MissNs(subject, RandomMisses(plan.keys, plan.operations, seed));
                   }});
  kinds.push_back({"batch", [&](uint64_t seed) {
                     return BatchNs(subject, RandomHits(plan.keys, plan.operations, seed));
                   }});
  base::Random seeds(plan.seed);
  for (int pass = 0; pass < plan.passes; ++pass) {
    for (Kind& kind : kinds) kind.least = std::min(kind.least, kind.measure(seeds.Next()));
  }
  std::map<std::string_view, double> least;
  for (const Kind& kind : kinds) {
    figures->push_back({"read", kind.metric, "ns", kind.least});
    least[kind.metric] = kind.least;
  }
  if (floor == nullptr) return;
  const auto add_ratio = [&](const char* metric, const char* of, const char* over) {
    figures->push_back({"read", metric, "x", least[of] / least[over]});
  };
  add_ratio("over_floor", "dependent", "floor");
  add_ratio("over_floor_with_keys", "dependent", "floor_with_keys");
  add_ratio("batch_over_floor", "batch", "floor_batch");
}

void AddBuild(double seconds, const SharedMapRecords& records, SharedMapFigures* figures) {
  const auto count = static_cast<double>(records.count());
  figures->push_back({"build", "ns", "ns", 1e9 * seconds / count});
  figures->push_back({"build", "records", "1/s", count / seconds});
  figures->push_back(
      {"build", "raw_megabytes", "MB/s", static_cast<double>(records.raw_bytes()) / 1e6 / seconds});
}

void AddSpace(const SharedMapSubject& subject, const std::string& directory, double own_before,
              const SharedMapRecords& records, SharedMapFigures* figures) {
  const bool in_files = subject.lies_in_files();
  const MappedBytes mapped = Mapped(in_files ? directory : "");
  const double bytes = in_files ? DiskBytes(directory) : mapped.resident - own_before;
  const auto count = static_cast<double>(records.count());
  figures->push_back({"space", "bytes", "bytes", bytes / count});
  figures->push_back({"space", "over_raw", "x", bytes / static_cast<double>(records.raw_bytes())});
  figures->push_back({"space", "huge", "%", 100 * mapped.huge / std::max(mapped.resident, 1.0)});
}

}  // namespace

SharedMapFigures RunInChild(const std::string& directory,
                            const std::function<SharedMapFigures(const std::string&)>& measure) {
  const std::string place = directory + "/run";
  std::filesystem::remove_all(place);
  std::filesystem::create_directories(place);
  int ends[2];
  if (pipe(ends) != 0) Fail("start a child process", "there is no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) Fail("start a child process", "fork failed");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    std::FILE* const out = fdopen(ends[1], "w");
    for (const SharedMapFigure& figure : measure(std::filesystem::canonical(place).string())) {
      std::fprintf(out, "%s %s %s %.9g\n", figure.benchmark.c_str(), figure.metric.c_str(),
                   figure.unit.c_str(), figure.value);
    }
    _exit(std::fclose(out) == 0 ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  const bool ended = waitpid(child, &status, 0) == child;
  std::filesystem::remove_all(place);
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    Fail("measure", "the child process failed");
  }
  SharedMapFigures figures;
  std::istringstream lines(text);
  for (SharedMapFigure figure;
       lines >> figure.benchmark >> figure.metric >> figure.unit >> figure.value;) {
    figures.push_back(figure);
  }
  return figures;
}

SharedMapFigures MeasureMap(SharedMapSubject* subject, const SharedMapPlan& plan,
                            const std::string& directory, bool with_floor) {
  SharedMapFigures figures;
  const SharedMapRecords records(plan.keys, plan.seed);
  const std::string place = directory + "/map";
  std::filesystem::create_directory(place);
  const double own_before = Mapped("").resident;
  const auto start = std::chrono::steady_clock::now();
  subject->Build(records, place);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  AddBuild(passed.count(), records, &figures);

  subject->Open(place);
  ReadAll(subject, plan.keys);
  AddSpace(*subject, place, own_before, records, &figures);
  std::optional<SharedMapFloor> floor;
  if (with_floor) {
    floor.emplace(records, directory + "/floor");
    floor->ChainNs(plan.keys, 0);  // Maps every page.
    const MappedBytes mapped = Mapped(directory + "/floor");
    figures.push_back({"space", "floor_huge", "%", 100 * mapped.huge / mapped.resident});
  }
  AddReads(subject, plan, floor ? &*floor : nullptr, &figures);
  AddPercentiles(subject, plan, &figures);
  return figures;
}

}  // namespace basalt::bench
