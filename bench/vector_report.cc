#include "bench/vector_report.h"

#include <algorithm>

#include "bench/text.h"

namespace basalt::bench {
namespace {

std::string Line(const std::string& what, bool is_met, const std::string& limit,
                 const std::string& figure) {
  return Format("  %-6s  %-52s %-12s %s\n", is_met ? "met" : "missed", what.c_str(), limit.c_str(),
                figure.c_str());
}

}  // namespace

void VectorReport::Add(const std::string& benchmark, const std::string& subject,
                       const std::string& metric, std::string_view unit, double value) {
  figures_.Add(benchmark, 1, subject, metric, unit, value);
  const bool is_known = std::ranges::any_of(
      rows_, [&](const Row& row) { return row.benchmark == benchmark && row.metric == metric; });
  if (!is_known) rows_.push_back({benchmark, metric, std::string(unit)});
  if (std::ranges::find(subjects_, subject) == subjects_.end()) subjects_.push_back(subject);
}

std::string VectorReport::ToTable() const {
  std::string table = Format("%-18s %-22s", "benchmark", "metric");
  for (const std::string& subject : subjects_) table += Format("%22s", subject.c_str());
  table += "\n";
  for (const Row& row : rows_) {
    std::string line = Format("%-18s %-22s", row.benchmark.c_str(), row.metric.c_str());
    for (const std::string& subject : subjects_) {
      const auto figure = figures_.Find(row.benchmark, 1, subject, row.metric);
      const double value = figure ? figure->median : 0;
      const std::string cell = !figure ? ""
                                       : Format("%.*f %s",
                                                value < 1     ? 4
                                                : value < 100 ? 2
                                                              : 0,
                                                value, row.unit.c_str());
      line += Format("%22s", cell.c_str());
    }
    table += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  return table;
}

std::string VectorReport::Ratio(const std::string& benchmark, const std::string& metric,
                                const std::string& subject, double least) const {
  const auto ratio = figures_.RatioOf({benchmark, kOurs}, {benchmark, subject}, 1, metric);
  if (!ratio) return "";
  return Line(benchmark + ", " + metric + " over " + subject, ratio->median >= least,
              Format(">= %g x", least), ToText(*ratio));
}

std::string VectorReport::TargetLines() const {
  std::string lines;
  lines += Ratio("kernel_memory", "throughput", "read", 0.85);
  lines += Ratio("kernel_cache", "throughput", "faiss", 1.3);
  struct Target {
    const char* benchmark;
    double at_95;
    double at_99;
  };
  for (const Target& target : {Target{"clusters_128", 2, 1.7}, Target{"lsa_128", 2, 1.7},
                               Target{"minilm_384", 2.7, 2.5}}) {
    lines += Ratio(target.benchmark, "qps_at_0.95", "hnswlib", target.at_95);
    lines += Ratio(target.benchmark, "qps_at_0.99", "hnswlib", target.at_99);
    lines += Ratio(target.benchmark, "build_rate", "hnswlib", 2);
    lines += Ratio(target.benchmark, "scan_1_percent", "hnswlib", 20);
    const auto bytes = figures_.Find(target.benchmark, 1, kOurs, "bytes_beyond_code");
    if (bytes) {
      lines += Line(std::string(target.benchmark) + ", bytes beyond rows and codes",
                    bytes->median <= 160, "<= 160", ToText(*bytes));
    }
    const auto beside = figures_.Find(target.benchmark, 1, kOurs, "qps_beside_adds_share");
    if (beside) {
      lines += Line(std::string(target.benchmark) + ", search beside adds, of alone",
                    beside->median >= 0.75, ">= 0.75", ToText(*beside));
    }
  }
  return lines;
}

}  // namespace basalt::bench
