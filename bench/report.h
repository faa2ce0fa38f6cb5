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
  std::string metric;  ///< As bench/README.md lists them.
  std::string unit;    ///< ops/s, us, s, bytes.
  std::vector<double> values;
  int threads = 1;

  double Median() const;
  double Min() const;
  double Max() const;
};

/// Collects figures in the order in which they first arrive, and writes them out.
class Report {
 public:
  void Add(std::string_view benchmark, std::string_view subject, Level level,
           std::string_view metric, std::string_view unit, double value, int threads = 1);

  /// Null: there is none.
  const Figure* Find(std::string_view benchmark, std::string_view subject,
                     std::string_view metric) const;

  /// An array of {benchmark, subject, threads, durability, metric, unit, median, min, max, runs}.
  std::string ToJson() const;
  /// One row a benchmark and metric, one column a subject: the median, and how far from it the
  /// rounds lie; behind them, for throughput, Basalt's ratio to each peer and to the better LSM of
  /// each round.
  std::string ToTable(const std::vector<const Subject*>& subjects) const;

 private:
  std::vector<Figure> figures_;
};

/// `ours` over the greatest of `theirs`, round by round, so that each ratio is of neighbouring
/// runs. Empty where somebody has no figure.
Figure RatioToBest(const Figure* ours, const std::vector<const Figure*>& theirs);

/// The processor's name and the number of its cores, as this process sees them.
std::string MachineDescription();

/// Makes the file, and its directory where there is none. Ends the program when it cannot be
/// written.
void WriteFile(const std::string& path, const std::string& text);

}  // namespace basalt::bench
