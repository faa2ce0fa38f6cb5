// Measures Basalt against LevelDB, RocksDB and LMDB: the same keys, values and order of operations
// for each, one thread, in alternating order over several rounds. bench/README.md says what each
// figure means.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/random.h"
#include "bench/idle.h"
#include "bench/report.h"
#include "bench/subject.h"
#include "bench/text.h"
#include "bench/workload.h"

namespace basalt::bench {

void Fail(std::string_view what, std::string_view why) {
  std::fflush(stdout);
  std::fprintf(stderr, "db_bench: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(why.size()), why.data());
  std::exit(1);
}

namespace {

using std::chrono::steady_clock;

/// In the order in which they run. Those up to seekrandom share the store that fillrandom fills.
const std::vector<std::string> kBenchmarks = {
    "fillrandom", "overwrite",  "compact", "readrandom", "readmissing",
    "readseq",    "seekrandom", "fillseq", "fillbatch",  "fillsync"};

struct Settings {
  std::string output = "build/bench/db.json";
  std::string directory = "build/bench/scratch";
  std::set<std::string> subjects;
  std::set<std::string> benchmarks;
  uint32_t keys = 1'000'000;
  uint32_t synced_writes = 2'000;
  int runs = 5;
  bool quick = false;
};

constexpr uint64_t kValueSeed = 1;
constexpr uint64_t kFillSeed = 2;
constexpr uint64_t kOverwriteSeed = 3;
constexpr uint64_t kReadSeed = 4;
constexpr uint32_t kBatchRecords = 100;
constexpr int kNexts = 10;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

/// All benchmarks of one subject in one round, each on stores of its own under one directory.
class Round {
 public:
  Round(const Settings& settings, Subject* subject, Report* report)
      : settings_(settings), subject_(subject), report_(report) {}

  void Run() {
    if (AnyWanted({"fillrandom", "overwrite", "compact", "readrandom", "readmissing", "readseq",
                   "seekrandom"})) {
      RunOnFilledStore();
    }
    if (Wanted("fillseq")) RunFillSeq();
    if (Wanted("fillbatch")) RunFillBatch();
    if (Wanted("fillsync")) RunFillSync();
  }

 private:
  bool Wanted(const std::string& benchmark) const {
    return settings_.benchmarks.contains(benchmark);
  }
  bool AnyWanted(const std::vector<std::string>& benchmarks) const {
    return std::any_of(benchmarks.begin(), benchmarks.end(),
                       [this](const std::string& benchmark) { return Wanted(benchmark); });
  }

  void OpenFresh(Level level) {
    std::filesystem::remove_all(settings_.directory);
    std::filesystem::create_directories(settings_.directory);
    sync();  // What the previous subject left to be written back is not this one's cost.
    level_ = level;
    subject_->Open(settings_.directory, level);
  }
  void CloseAndRemove() {
    subject_->Close();
    std::filesystem::remove_all(settings_.directory);
  }

  void Add(std::string_view benchmark, std::string_view metric, std::string_view unit,
           double value) {
    if (Wanted(std::string(benchmark))) {
      report_->Add(benchmark, subject_->name(), level_, metric, unit, value);
    }
  }

  /// Calls `operation` with 0 .. calls - 1, each worth `operations_per_call`; reports throughput,
  /// and of every 16th call (every call of a short benchmark) the time.
  void Measure(std::string_view benchmark, uint32_t calls, uint32_t operations_per_call,
               const std::function<void(uint32_t)>& operation) {
    const uint32_t every = calls >= 100'000 ? 16 : 1;
    base::Histogram samples_ns;
    const auto start = steady_clock::now();
    for (uint32_t i = 0; i < calls; ++i) {
      if (i % every != 0) {
        operation(i);
        continue;
      }
      const auto before = steady_clock::now();
      operation(i);
      samples_ns.Record(static_cast<uint64_t>((steady_clock::now() - before).count()));
    }
    const double seconds = SecondsSince(start);
    Add(benchmark, "throughput", "ops/s",
        static_cast<double>(calls) * operations_per_call / seconds);
    Add(benchmark, "p50", "us", static_cast<double>(samples_ns.Percentile(50)) / 1e3);
    Add(benchmark, "p99", "us", static_cast<double>(samples_ns.Percentile(99)) / 1e3);
  }

  void Expect(const char* benchmark, uint64_t found, uint64_t expected) const {
    if (found != expected) {
      Fail(Format("%s of %s", benchmark, subject_->name().c_str()),
           "gave " + std::to_string(found) + " records instead of " + std::to_string(expected));
    }
  }

  void RunOnFilledStore() {
    OpenFresh(Level::kProcess);
    Values values(kValueSeed);
    const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
    Measure("fillrandom", settings_.keys, 1,
            [&](uint32_t i) { subject_->Put(PresentKey(order[i]).view(), values.Next()); });
    Add("fillrandom", "settle", "s", WaitUntilIdle());
    if (Wanted("overwrite")) {
      const std::vector<uint32_t> again = Permutation(settings_.keys, kOverwriteSeed);
      Measure("overwrite", settings_.keys, 1,
              [&](uint32_t i) { subject_->Put(PresentKey(again[i]).view(), values.Next()); });
      Add("overwrite", "settle", "s", WaitUntilIdle());
    }
    if (AnyWanted({"compact", "readrandom", "readmissing", "readseq", "seekrandom"})) {
      const auto start = steady_clock::now();
      subject_->CompactAll();
      Add("compact", "time", "s", SecondsSince(start));
      WaitUntilIdle();
      Add("compact", "size", "bytes", static_cast<double>(BytesIn(settings_.directory)));
      RunReads();
    }
    CloseAndRemove();
  }

  void RunReads() {
    Expect("warm-up scan", subject_->ScanAll(), settings_.keys);
    if (Wanted("readrandom")) {
      base::Random random(kReadSeed);
      uint64_t found = 0;
      Measure("readrandom", settings_.keys, 1, [&](uint32_t) {
        found += subject_->Get(PresentKey(random.Below(settings_.keys)).view()) ? 1 : 0;
      });
      Expect("readrandom", found, settings_.keys);
    }
    if (Wanted("readmissing")) {
      base::Random random(kReadSeed);
      uint64_t found = 0;
      Measure("readmissing", settings_.keys, 1, [&](uint32_t) {
        found += subject_->Get(MissingKey(random.Below(settings_.keys)).view()) ? 1 : 0;
      });
      Expect("readmissing", found, 0);
    }
    if (Wanted("readseq")) {
      const auto start = steady_clock::now();
      Expect("readseq", subject_->ScanAll(), settings_.keys);
      Add("readseq", "throughput", "ops/s", settings_.keys / SecondsSince(start));
    }
    if (Wanted("seekrandom")) {
      base::Random random(kReadSeed);
      const uint32_t last = settings_.keys - kNexts;
      const uint32_t seeks = settings_.keys / 10;
      uint64_t read = 0;
      Measure("seekrandom", seeks, 1, [&](uint32_t) {
        read += subject_->SeekAndNext(PresentKey(random.Below(last)).view(), kNexts);
      });
      Expect("seekrandom", read, uint64_t{seeks} * (kNexts + 1));
    }
  }

  void RunFillSeq() {
    OpenFresh(Level::kProcess);
    Values values(kValueSeed);
    Measure("fillseq", settings_.keys, 1,
            [&](uint32_t i) { subject_->Put(PresentKey(i).view(), values.Next()); });
    Add("fillseq", "settle", "s", WaitUntilIdle());
    CloseAndRemove();
  }

  void RunFillBatch() {
    OpenFresh(Level::kProcess);
    Values values(kValueSeed);
    const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
    std::vector<Key> keys(kBatchRecords, Key(0));
    std::vector<Record> batch(kBatchRecords);
    Measure("fillbatch", settings_.keys / kBatchRecords, kBatchRecords, [&](uint32_t i) {
      for (uint32_t j = 0; j < kBatchRecords; ++j) {
        keys[j] = PresentKey(order[i * kBatchRecords + j]);
        batch[j] = {keys[j].view(), values.Next()};
      }
      subject_->PutBatch(batch);
    });
    Add("fillbatch", "settle", "s", WaitUntilIdle());
    CloseAndRemove();
  }

  void RunFillSync() {
    OpenFresh(Level::kPower);
    Values values(kValueSeed);
    const std::vector<uint32_t> order = Permutation(settings_.keys, kFillSeed);
    Measure("fillsync", std::min(settings_.synced_writes, settings_.keys), 1,
            [&](uint32_t i) { subject_->Put(PresentKey(order[i]).view(), values.Next()); });
    CloseAndRemove();
  }

  const Settings& settings_;
  Subject* subject_;
  Report* report_;
  Level level_ = Level::kProcess;
};

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

int Run(const Settings& settings) {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const auto& make : {MakeBasalt, MakeLevelDb, MakeRocksDb, MakeLmdb}) {
    std::unique_ptr<Subject> subject = make();
    if (settings.subjects.contains(subject->name())) subjects.push_back(std::move(subject));
  }
  std::vector<const Subject*> columns;
  for (const auto& subject : subjects) columns.push_back(subject.get());
  const std::string header = Header(settings, columns);
  std::printf("%s\n", header.c_str());

  Report report;
  for (int round = 0; round < settings.runs; ++round) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      Subject* subject = subjects[(i + static_cast<size_t>(round)) % subjects.size()].get();
      const auto start = steady_clock::now();
      Round(settings, subject, &report).Run();
      std::printf("round %d of %d, %-8s %6.1f s\n", round + 1, settings.runs,
                  subject->name().c_str(), SecondsSince(start));
      std::fflush(stdout);
    }
  }

  const std::filesystem::path output(settings.output);
  if (output.has_parent_path()) std::filesystem::create_directories(output.parent_path());
  std::ofstream file(output);
  file << report.ToJson();
  file.close();
  if (!file) Fail("write " + settings.output, "the file could not be written");
  std::printf("\n%s\nMedians; a ratio above 1 says that basalt is faster. All figures: %s\n",
              report.ToTable(columns).c_str(), settings.output.c_str());
  return 0;
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) {
  using basalt::bench::kBenchmarks;
  const std::vector<std::string> all_subjects = {"basalt", "leveldb", "rocksdb", "lmdb"};
  basalt::bench::Settings settings;
  std::vector<std::string> subjects = all_subjects;
  std::vector<std::string> benchmarks = kBenchmarks;

  CLI::App app("Compares Basalt with LevelDB, RocksDB and LMDB.", "db_bench");
  app.add_option("--output", settings.output, "Where the figures go, as JSON")
      ->capture_default_str();
  app.add_option("--dir", settings.directory,
                 "Scratch directory on the disk to measure; emptied first, removed after")
      ->capture_default_str();
  app.add_option("--subjects", subjects, "Which stores, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(all_subjects));
  app.add_option("--benchmarks", benchmarks, "Which benchmarks, separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember(kBenchmarks));
  auto* keys = app.add_option("--keys", settings.keys, "Keys in a store")
                   ->capture_default_str()
                   ->check(CLI::Range(1'000U, 100'000'000U));
  auto* runs = app.add_option("--runs", settings.runs, "Rounds; figures are medians over them")
                   ->capture_default_str()
                   ->check(CLI::Range(1, 1'000));
  app.add_flag("--quick", settings.quick, "100,000 keys and one round, unless said otherwise");
  CLI11_PARSE(app, argc, argv);

  if (settings.quick && keys->count() == 0) settings.keys = 100'000;
  if (settings.quick && runs->count() == 0) settings.runs = 1;
  settings.subjects.insert(subjects.begin(), subjects.end());
  settings.benchmarks.insert(benchmarks.begin(), benchmarks.end());
  return basalt::bench::Run(settings);
}
