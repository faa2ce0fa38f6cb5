#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/shared_map_measure.h"

namespace basalt::bench {

/// The figures of a run, and how they are shown.
class SharedMapReport {
 public:
  void Add(uint64_t keys, const std::string& subject, const SharedMapFigures& figures);

  /// An array of {keys, benchmark, subject, metric, unit, median, min, max, runs}.
  std::string ToJson() const;
  /// For each number of keys, one row a subject.
  std::string ToTables() const;
  /// What ours is meant to reach: one line a goal, with the median, the least and the greatest of
  /// the rounds, and "met" or "MISSED". Goals without figures are left out.
  std::string ToTargets() const;

 private:
  struct Row {
    uint64_t keys;
    std::string subject;
    std::string benchmark;
    std::string metric;
    std::string unit;
    std::vector<double> values;  // One a round.
  };

  const std::vector<double>* Find(uint64_t keys, const std::string& subject,
                                  const std::string& benchmark, const std::string& metric) const;
  /// The median for people, or "-".
  std::string Cell(uint64_t keys, const std::string& subject, const std::string& benchmark,
                   const std::string& metric, int decimals) const;
  std::string ReadTable(uint64_t keys) const;
  std::string SpaceTable(uint64_t keys) const;
  std::string ChangesTable(uint64_t keys) const;
  std::string WriterTable(uint64_t keys) const;
  std::string FloorLines(uint64_t keys) const;
  std::vector<uint64_t> KeyCounts() const;
  std::vector<std::string> Subjects(uint64_t keys, const std::string& benchmark) const;

  std::vector<Row> rows_;
};

}  // namespace basalt::bench
