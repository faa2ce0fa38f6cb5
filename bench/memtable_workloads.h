#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cache_crew.h"
#include "bench/cache_requests.h"
#include "bench/memtable_report.h"
#include "bench/memtable_subject.h"

namespace basalt::bench {

struct MemTableSettings {
  std::string output = "build/bench/memtable.json";
  std::set<std::string> subjects;
  std::set<std::string> benchmarks;
  std::vector<int> threads = {1, 2};
  uint32_t records = 500'000;
  uint32_t large_records = 4'000'000;  ///< Of the second floor.
  uint64_t lifecycle_bytes = uint64_t{1} << 30;
  int runs = 5;
};

/// The benchmarks, in groups of those that share what they need.
class MemTableWorkloads {
 public:
  /// Makes the requests.
  MemTableWorkloads(const MemTableSettings& settings, MemTableReport* report);

  struct Group {
    std::string name;
    /// Runs the group's wanted benchmarks on a subject; nothing if it takes no part.
    void (MemTableWorkloads::*run)(MemTableSubject* subject, int round);
    std::vector<std::string> benchmarks;
    /// Runs in child processes, and so in all rounds before the other groups' first: they start
    /// threads, which a child would lack.
    bool forks = false;
  };
  /// In the order in which they run.
  static const std::vector<Group>& Groups();

 private:
  /// Keys of one shape: each once in random order, and what is asked of a store that has them.
  struct Shape {
    std::string name;
    CacheRequests puts;
    CacheRequests gets;
    CacheRequests mixed;
  };

  void RunLifecycle(MemTableSubject* subject, int round);
  void RunMemory(MemTableSubject* subject, int round);
  void RunWrites(MemTableSubject* subject, int round);
  void RunReads(MemTableSubject* subject, int round);
  void RunSealed(MemTableSubject* subject, int round);
  void RunScans(MemTableSubject* subject, int round);
  void RunOrder(MemTableSubject* subject, int round);
  void RunFloor(MemTableSubject* subject, int round);

  /// Puts all of a shape into an empty store; the throughput.
  double MeasureWrite(const Shape& shape, bool in_batches, int threads, bool check,
                      MemTableSubject* subject);
  void MeasureScan(const Shape& shape, uint32_t interval, MemTableSubject* subject);
  void MeasureFloor(const std::string& benchmark, uint32_t records, MemTableSubject* subject);
  bool Wanted(const std::string& benchmark) const {
    return settings_.benchmarks.contains(benchmark);
  }
  /// Throughput, wall and processor time an operation, and latencies.
  void AddSpeed(const std::string& benchmark, int threads, const MemTableSubject& subject,
                const CrewResult& result);

  const MemTableSettings& settings_;
  MemTableReport* report_;
  std::vector<Shape> shapes_;
};

}  // namespace basalt::bench
