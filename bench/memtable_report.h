#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/cache_report.h"

namespace basalt::bench {

/// The figures of a run, and how they are shown.
class MemTableReport {
 public:
  void Add(const std::string& benchmark, int threads, const std::string& subject,
           const std::string& metric, std::string_view unit, double value);

  std::string ToJson() const { return figures_.ToJson(); }
  /// One row a benchmark, number of threads and metric, one column a subject.
  std::string ToTable(const std::vector<std::string>& subjects) const;
  /// Basalt's throughput over each peer's.
  std::string ToRatioTable(const std::vector<std::string>& subjects) const;
  /// What Basalt is meant to reach on the machine at hand: one line a goal, with the figure and
  /// "met" or "missed". Goals without figures are left out.
  std::string TargetLines() const;

 private:
  struct Row {
    std::string benchmark;
    int threads;
    std::string metric;
    std::string unit;
  };

  std::string Cell(const Row& row, const std::string& subject) const;
  enum class Bound : uint8_t { kAtLeast, kAtMost };
  std::string Goal(const std::string& benchmark, int threads, const std::string& metric,
                   Bound bound, double limit, const char* unit) const;
  std::string RatioGoal(const std::string& benchmark, int threads, double least) const;

  CacheReport figures_;
  std::vector<Row> rows_;
};

}  // namespace basalt::bench
