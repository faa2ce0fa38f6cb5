#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cache_subject.h"
#include "bench/report.h"

namespace basalt::bench {

/// The median of some rounds' values, and how far apart they lie.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Collects figures in the order in which they first arrive, and writes them out.
class CacheReport {
 public:
  void Add(std::string_view benchmark, int threads, std::string_view subject,
           std::string_view metric, std::string_view unit, double value);

  std::optional<Spread> Find(std::string_view benchmark, int threads, std::string_view subject,
                             std::string_view metric) const;
  /// `ours` over `theirs`, each a benchmark and a subject, round by round.
  struct Side {
    std::string_view benchmark;
    std::string_view subject;
  };
  std::optional<Spread> RatioOf(Side ours, Side theirs, int threads, std::string_view metric) const;

  /// An array of {benchmark, subject, threads, metric, unit, median, min, max, runs}.
  std::string ToJson() const;
  /// One row a benchmark, number of threads and metric, one column a subject.
  std::string ToTable(const std::vector<std::unique_ptr<CacheSubject>>& subjects) const;
  /// Basalt's throughput over each peer's.
  std::string ToRatioTable(const std::vector<std::unique_ptr<CacheSubject>>& subjects) const;

 private:
  /// One metric of one subject with a number of threads, one value a round.
  struct Row {
    Figure figure;
    int threads = 1;
    bool IsLike(const Row& other) const;
  };
  const Row* FindRow(std::string_view benchmark, int threads, std::string_view subject,
                     std::string_view metric) const;
  /// What the table says of a subject in the row of `like`.
  std::string Median(const Row& like, const std::string& subject) const;
  std::string Latencies(const Row& like, const std::string& subject) const;
  /// The first row of each benchmark, number of threads and metric.
  std::vector<const Row*> DistinctRows() const;

  std::vector<Row> rows_;
};

/// "1.23 (1.20 - 1.31)".
std::string ToText(const Spread& spread);

}  // namespace basalt::bench
