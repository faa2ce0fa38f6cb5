#include "bench/memtable_report.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr const char* kOurs = "basalt";
constexpr const char* kThroughput = "throughput";
constexpr std::array<const char*, 2> kShapes = {"bin", "dec"};

std::string Line(const std::string& what, const std::optional<Spread>& figure, bool is_met,
                 const std::string& limit) {
  if (!figure) return "";
  return Format("  %-6s  %-50s %-14s %s\n", is_met ? "met" : "missed", what.c_str(), limit.c_str(),
                ToText(*figure).c_str());
}

std::string On(int threads) { return Format(", %d thread%s", threads, threads == 1 ? "" : "s"); }

}  // namespace

void MemTableReport::Add(const std::string& benchmark, int threads, const std::string& subject,
                         const std::string& metric, std::string_view unit, double value) {
  figures_.Add(benchmark, threads, subject, metric, unit, value);
  const bool is_known = std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.benchmark == benchmark && row.threads == threads && row.metric == metric;
  });
  if (!is_known) rows_.push_back({benchmark, threads, metric, std::string(unit)});
}

std::string MemTableReport::Cell(const Row& row, const std::string& subject) const {
  const auto figure = figures_.Find(row.benchmark, row.threads, subject, row.metric);
  if (!figure) return "";
  if (row.metric == "p50") {
    const auto p99 = figures_.Find(row.benchmark, row.threads, subject, "p99");
    const auto p999 = figures_.Find(row.benchmark, row.threads, subject, "p99.9");
    const auto digits = [](double us) { return us < 10 ? 2 : us < 100 ? 1 : 0; };
    return Format("%.*f/%.*f/%.*f", digits(figure->median), figure->median, digits(p99->median),
                  p99->median, digits(p999->median), p999->median);
  }
  if (row.unit == "ops/s") return Format("%.2f M/s", figure->median / 1e6);
  return Format("%.*f %s", figure->median < 10 ? 2 : 1, figure->median, row.unit.c_str());
}

std::string MemTableReport::ToTable(const std::vector<std::string>& subjects) const {
  std::string table = Format("%-18s%3s  %-15s", "benchmark", "thr", "metric");
  for (const std::string& subject : subjects) table += Format("%19s", subject.c_str());
  table += "\n";
  for (const Row& row : rows_) {
    // Beside p50 stand the others, and processor time is for whoever reads the file.
    if (row.metric == "p99" || row.metric == "p99.9" || row.metric == "cpu") continue;
    std::string line = Format("%-18s%3d  %-15s", row.benchmark.c_str(), row.threads,
                              row.metric == "p50" ? "p50/99/99.9 us" : row.metric.c_str());
    for (const std::string& subject : subjects) line += Format("%19s", Cell(row, subject).c_str());
    table += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return table;
}

std::string MemTableReport::ToRatioTable(const std::vector<std::string>& subjects) const {
  std::string table = Format("%-18s%3s", "basalt over", "thr");
  for (const std::string& subject : subjects) {
    if (subject != kOurs) table += Format("%24s", subject.c_str());
  }
  table += "\n";
  for (const Row& row : rows_) {
    if (row.metric != kThroughput) continue;
    std::string line = Format("%-18s%3d", row.benchmark.c_str(), row.threads);
    bool is_compared = false;
    for (const std::string& subject : subjects) {
      if (subject == kOurs) continue;
      const auto ratio = figures_.RatioOf({row.benchmark, kOurs}, {row.benchmark, subject},
                                          row.threads, kThroughput);
      is_compared = is_compared || ratio;
      line += Format("%24s", ratio ? ToText(*ratio).c_str() : "");
    }
    if (is_compared) table += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return table;
}

std::string MemTableReport::Goal(const std::string& benchmark, int threads,
                                 const std::string& metric, Bound bound, double limit,
                                 const char* unit) const {
  const auto figure = figures_.Find(benchmark, threads, kOurs, metric);
  const bool is_met =
      figure && (bound == Bound::kAtLeast ? figure->median >= limit : figure->median <= limit);
  return Line(benchmark + ", " + metric + On(threads), figure, is_met,
              Format("%s %g %s", bound == Bound::kAtLeast ? ">=" : "<=", limit, unit));
}

std::string MemTableReport::RatioGoal(const std::string& benchmark, int threads,
                                      double least) const {
  const auto ratio =
      figures_.RatioOf({benchmark, kOurs}, {benchmark, "rocksdb"}, threads, kThroughput);
  return Line(benchmark + " over rocksdb" + On(threads), ratio, ratio && ratio->median >= least,
              Format(">= %g x", least));
}

std::string MemTableReport::TargetLines() const {
  struct Time {
    const char* benchmark;
    double most_ns;
  };
  constexpr std::array<Time, 6> kTimes = {{{"write", 120},
                                           {"batch_write", 65},
                                           {"multi_get", 40},
                                           {"sort", 65},
                                           {"iterate", 10},
                                           {"scan_1", 300}}};
  struct Ratio {
    const char* benchmark;
    double least;
  };
  constexpr std::array<Ratio, 3> kRatios = {{{"write", 8}, {"get", 5}, {"mixed", 5}}};

  std::string lines;
  for (const Time& time : kTimes) {
    for (const char* shape : kShapes) {
      lines += Goal(Format("%s_%s", time.benchmark, shape), 1, "time", Bound::kAtMost, time.most_ns,
                    "ns");
    }
  }
  lines += Goal("floor_small", 1, "get/floor", Bound::kAtMost, 2, "x");
  lines += Goal("floor_large", 1, "get/floor", Bound::kAtMost, 1.15, "x");
  lines += Goal("lifecycle", 1, "speed", Bound::kAtLeast, 450, "MiB/s");
  lines += Goal("lifecycle", 2, "speed", Bound::kAtLeast, 800, "MiB/s");
  for (const int threads : {1, 2}) {
    lines += Goal("lifecycle", threads, "peak memory", Bound::kAtMost, 1.6, "x");
  }
  for (const char* shape : kShapes) {
    lines += Goal(Format("write_%s", shape), 2, "over 1 thread", Bound::kAtLeast, 1.5, "x");
  }
  for (const Ratio& ratio : kRatios) {
    for (const char* shape : kShapes) {
      for (const int threads : {1, 2}) {
        lines += RatioGoal(Format("%s_%s", ratio.benchmark, shape), threads, ratio.least);
      }
    }
  }
  return lines;
}

}  // namespace basalt::bench
