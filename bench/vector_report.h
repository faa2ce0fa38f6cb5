#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/cache_report.h"

namespace basalt::bench {

/// The figures of a run of vector_bench, one value a round.
class VectorReport {
 public:
  static constexpr std::string_view kOurs = "basalt";

  void Add(const std::string& benchmark, const std::string& subject, const std::string& metric,
           std::string_view unit, double value);
  std::string ToJson() const { return figures_.ToJson(); }
  /// One row a benchmark and metric, one column a subject.
  std::string ToTable() const;
  /// What basalt is to reach: one line a goal, with the figure and "met" or "missed". Goals without
  /// figures are left out.
  std::string TargetLines() const;

 private:
  struct Row {
    std::string benchmark;
    std::string metric;
    std::string unit;
  };
  std::string Ratio(const std::string& benchmark, const std::string& metric,
                    const std::string& subject, double least) const;

  CacheReport figures_;
  std::vector<Row> rows_;
  std::vector<std::string> subjects_;
};

}  // namespace basalt::bench
