#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"
#include "bench/report.h"
#include "bench/subject.h"
#include "bench/workload.h"
#include "bench/ycsb.h"

namespace basalt::bench {

/// In the order in which they run.
extern const std::vector<std::string> kBenchmarks;

struct Settings {
  std::string output = "build/bench/db.json";
  std::string directory = "build/bench/scratch";
  std::set<std::string> subjects;
  std::set<std::string> benchmarks;
  uint32_t keys = 1'000'000;
  Memory memory;
  uint32_t synced_writes = 2'000;          ///< By one thread.
  uint32_t synced_writes_of_many = 8'000;  ///< By all threads together.
  int runs = 5;
  bool quick = false;
};

/// Numbers of records that every subject must find alike; the first to come says how many.
using AgreedCounts = std::map<std::string, uint64_t>;

/// The benchmarks of one subject in one round. Each function runs those of one store, from empty
/// to removed, and nothing if none of them is wanted.
class Round {
 public:
  Round(const Settings& settings, int number, Subject* subject, Report* report,
        AgreedCounts* agreed)
      : settings_(settings), number_(number), subject_(subject), report_(report), agreed_(agreed) {}

  /// Two stores, so that what two writers gain is told from neighbouring runs.
  void RunFillRandom();
  void RunFillSeq();
  void RunFillBatch();
  void RunFillSync();
  void RunYcsb();

 private:
  bool Wanted(const std::string& benchmark) const {
    return settings_.benchmarks.contains(benchmark);
  }
  bool AnyWanted(const std::vector<std::string>& benchmarks) const;

  void OpenFresh(Level level);
  void CloseAndRemove();

  void Add(std::string_view benchmark, std::string_view metric, std::string_view unit, double value,
           uint32_t threads = 1);
  /// Runs and reports throughput and times of calls.
  Measurement Run(std::string_view benchmark, const Plan& plan,
                  const std::function<void(uint32_t)>& operation);
  /// Waits until nothing is left to do, and reports how long that took and what it left.
  void Drain(std::string_view benchmark, const Plan& plan, const Measurement& fill);
  void Expect(std::string_view benchmark, uint64_t found, uint64_t expected) const;

  void RunFillRandom1();
  void RunFillRandom2();
  void RunOverwrite(uint64_t written_before);
  void RunReads();
  void RunScansAcrossDeletes();
  void RunOpens();
  void RunYcsbMix(const workload::YcsbMix& mix, YcsbRecords* records);

  const Settings& settings_;
  const int number_;
  Subject* subject_;
  Report* report_;
  AgreedCounts* agreed_;
  Level level_ = Level::kProcess;
};

}  // namespace basalt::bench
