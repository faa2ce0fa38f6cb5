#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/subject.h"

namespace basalt::bench {

/// One figure of one subject, once for each round.
struct Figure {
  std::string benchmark;
  std::string subject;
  Level level = Level::kProcess;
  std::string metric;  ///< throughput, p50, p99, settle, time, size.
  std::string unit;    ///< ops/s, us, s, bytes.
  std::vector<double> values;

  double Median() const;
  double Min() const;
  double Max() const;
};

/// Collects figures in the order in which they first arrive, and writes them out.
class Report {
 public:
  void Add(std::string_view benchmark, std::string_view subject, Level level,
           std::string_view metric, std::string_view unit, double value);

  /// An array of {benchmark, subject, threads, durability, metric, unit, median, min, max, runs}.
  std::string ToJson() const;
  /// One row a benchmark and metric, one column a subject; behind them, for throughput, Basalt's
  /// ratio to each peer and to the best LSM among them.
  std::string ToTable(const std::vector<const Subject*>& subjects) const;

 private:
  const Figure* Find(const Figure& like, std::string_view subject) const;

  std::vector<Figure> figures_;
};

/// The processor's name and the number of its cores, as this process sees them.
std::string MachineDescription();

}  // namespace basalt::bench
