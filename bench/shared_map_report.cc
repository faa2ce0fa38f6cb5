#include "bench/shared_map_report.h"

#include <algorithm>

#include "bench/text.h"

namespace basalt::bench {
namespace {

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

enum class Bound : uint8_t { kAtMost, kAtLeast };

// One goal's line, or nothing if it has no figures.
std::string GoalLine(const std::string& what, uint64_t keys, const std::vector<double>& values,
                     Bound bound, double limit, const char* unit) {
  if (values.empty()) return "";
  const double median = MedianOf(values);
  const bool is_met = bound == Bound::kAtMost ? median <= limit : median >= limit;
  return Format("%-56s %9llu keys  %7.2f%s (%.2f - %.2f)  %s %g%s  %s\n", what.c_str(),
                static_cast<unsigned long long>(keys), median, unit,
                *std::ranges::min_element(values), *std::ranges::max_element(values),
                bound == Bound::kAtMost ? "at most" : "at least", limit, unit,
                is_met ? "met" : "MISSED");
}

// Round by round.
std::vector<double> Ratios(const std::vector<double>* theirs, const std::vector<double>* ours) {
  std::vector<double> ratios;
  if (theirs == nullptr || ours == nullptr) return ratios;
  for (size_t i = 0; i < std::min(theirs->size(), ours->size()); ++i) {
    ratios.push_back((*theirs)[i] / (*ours)[i]);
  }
  return ratios;
}

}  // namespace

void SharedMapReport::Add(uint64_t keys, const std::string& subject,
                          const SharedMapFigures& figures) {
  for (const SharedMapFigure& figure : figures) {
    const auto row = std::ranges::find_if(rows_, [&](const Row& each) {
      return each.keys == keys && each.subject == subject && each.benchmark == figure.benchmark &&
             each.metric == figure.metric;
    });
    if (row != rows_.end()) {
      row->values.push_back(figure.value);
    } else {
      rows_.push_back(
          {keys, subject, figure.benchmark, figure.metric, figure.unit, {figure.value}});
    }
  }
}

const std::vector<double>* SharedMapReport::Find(uint64_t keys, const std::string& subject,
                                                 const std::string& benchmark,
                                                 const std::string& metric) const {
  for (const Row& row : rows_) {
    if (row.keys == keys && row.subject == subject && row.benchmark == benchmark &&
        row.metric == metric) {
      return &row.values;
    }
  }
  return nullptr;
}

std::string SharedMapReport::Cell(uint64_t keys, const std::string& subject,
                                  const std::string& benchmark, const std::string& metric,
                                  int decimals) const {
  const std::vector<double>* const values = Find(keys, subject, benchmark, metric);
  return values == nullptr ? "-" : Format("%.*f", decimals, MedianOf(*values));
}

std::string SharedMapReport::ToJson() const {
  std::string json = "[";
  for (const Row& row : rows_) {
    json += json.size() == 1 ? "\n" : ",\n";
    json += Format(
        R"(  {"keys": %llu, "benchmark": "%s", "subject": "%s", "metric": "%s", "unit": "%s", )"
        R"("median": %.6g, "min": %.6g, "max": %.6g, "runs": %zu})",
        static_cast<unsigned long long>(row.keys), row.benchmark.c_str(), row.subject.c_str(),
        row.metric.c_str(), row.unit.c_str(), MedianOf(row.values),
        *std::ranges::min_element(row.values), *std::ranges::max_element(row.values),
        row.values.size());
  }
  return json + "\n]\n";
}

std::vector<uint64_t> SharedMapReport::KeyCounts() const {
  std::vector<uint64_t> counts;
  for (const Row& row : rows_) {
    if (std::ranges::find(counts, row.keys) == counts.end()) counts.push_back(row.keys);
  }
  std::ranges::sort(counts);
  return counts;
}

std::vector<std::string> SharedMapReport::Subjects(uint64_t keys,
                                                   const std::string& benchmark) const {
  std::vector<std::string> subjects;
  for (const Row& row : rows_) {
    if (row.keys == keys && row.benchmark == benchmark &&
        std::ranges::find(subjects, row.subject) == subjects.end()) {
      subjects.push_back(row.subject);
    }
  }
  return subjects;
}

std::string SharedMapReport::ReadTable(uint64_t keys) const {
  std::string table = Format("\n%llu keys: nanoseconds a read\n%-18s%10s%10s%12s%8s%8s%8s%8s%8s\n",
                             static_cast<unsigned long long>(keys), "", "dependent", "/floor",
                             "independent", "miss", "batch", "p50", "p99", "p99.9");
  for (const std::string& subject : Subjects(keys, "read")) {
    const auto cell = [&](const char* metric, int decimals) {
      return Cell(keys, subject, "read", metric, decimals);
    };
    table +=
        Format("%-18s%10s%10s%12s%8s%8s%8s%8s%8s\n", subject.c_str(), cell("dependent", 1).c_str(),
               cell("over_floor", 2).c_str(), cell("independent", 1).c_str(),
               cell("miss", 1).c_str(), cell("batch", 1).c_str(), cell("p50", 0).c_str(),
               cell("p99", 0).c_str(), cell("p99.9", 0).c_str());
  }
  return table;
}

std::string SharedMapReport::FloorLines(uint64_t keys) const {
  std::string lines;
  for (const std::string& subject : Subjects(keys, "read")) {
    const auto cell = [&](const char* metric, int decimals) {
      return Cell(keys, subject, "read", metric, decimals);
    };
    if (cell("floor", 1) == "-") continue;
    lines += Format(
        "beside %s: floor %s, with keys %s (a dependent get is %s of that), of a batch %s (ours is "
        "%s of that); a key %s; huge pages of the floor's file %s %%\n",
        subject.c_str(), cell("floor", 1).c_str(), cell("floor_with_keys", 1).c_str(),
        cell("over_floor_with_keys", 2).c_str(), cell("floor_batch", 1).c_str(),
        cell("batch_over_floor", 2).c_str(), cell("key", 1).c_str(),
        Cell(keys, subject, "space", "floor_huge", 0).c_str());
  }
  return lines;
}

std::string SharedMapReport::SpaceTable(uint64_t keys) const {
  std::string table =
      Format("\n%llu keys\n%-18s%12s%12s%12s%12s%12s%10s\n", static_cast<unsigned long long>(keys),
             "", "build ns", "records/s", "MB/s", "bytes/key", "over raw", "huge %");
  for (const std::string& subject : Subjects(keys, "build")) {
    const auto cell = [&](const char* benchmark, const char* metric, int decimals) {
      return Cell(keys, subject, benchmark, metric, decimals);
    };
    table += Format("%-18s%12s%12s%12s%12s%12s%10s\n", subject.c_str(),
                    cell("build", "ns", 0).c_str(), cell("build", "records", 0).c_str(),
                    cell("build", "raw_megabytes", 0).c_str(), cell("space", "bytes", 1).c_str(),
                    cell("space", "over_raw", 3).c_str(), cell("space", "huge", 0).c_str());
  }
  return table;
}

std::string SharedMapReport::ChangesTable(uint64_t keys) const {
  std::string table;
  for (const Row& row : rows_) {
    if (row.keys != keys || row.metric != "dependent" || !row.benchmark.starts_with("changes_")) {
      continue;
    }
    if (table.empty()) {
      table =
          Format("\n%llu keys, so many of them changed since the last fold: nanoseconds a read\n",
                 static_cast<unsigned long long>(keys)) +
          Format("%-18s%10s%12s%8s%8s\n", "", "dependent", "independent", "miss", "batch");
    }
    const auto cell = [&](const char* metric) {
      return Cell(keys, row.subject, row.benchmark, metric, 1);
    };
    table += Format("%-18s%10s%12s%8s%8s\n",
                    (row.benchmark.substr(row.benchmark.find('_') + 1) + " %").c_str(),
                    cell("dependent").c_str(), cell("independent").c_str(), cell("miss").c_str(),
                    cell("batch").c_str());
  }
  return table;
}

std::string SharedMapReport::WriterTable(uint64_t keys) const {
  std::string lines;
  for (const char* const benchmark :
       {"beside_writer_get", "beside_writer_batch", "beside_writer_floor"}) {
    for (const std::string& subject : Subjects(keys, benchmark)) {
      const auto cell = [&](const char* metric) {
        return Cell(keys, subject, benchmark, metric, 0);
      };
      lines += Format(
          "%s: %s reads/s, quiet %s, so %s %% (of processor time %s %%), beside %s puts/s by "
          "another process and %s folds\n",
          benchmark, cell("reads").c_str(), cell("quiet").c_str(), cell("share").c_str(),
          cell("processor_share").c_str(), cell("puts").c_str(), cell("folds").c_str());
    }
  }
  return lines.empty() ? lines
                       : Format("\n%llu keys\n", static_cast<unsigned long long>(keys)) + lines;
}

std::string SharedMapReport::ToTables() const {
  std::string tables;
  for (const uint64_t keys : KeyCounts()) {
    tables += ReadTable(keys) + FloorLines(keys) + SpaceTable(keys) + ChangesTable(keys) +
              WriterTable(keys);
  }
  return tables;
}

std::string SharedMapReport::ToTargets() const {
  struct Layout {
    const char* subject;
    double over_floor_at_million;
    double over_floor_above;
    double batch_ns;
  };
  constexpr Layout kLayouts[] = {{"basalt_fixed", 1.2, 1.4, 25}, {"basalt_variable", 1.9, 2.3, 40}};
  std::string lines;
  for (const uint64_t keys : KeyCounts()) {
    for (const Layout& layout : kLayouts) {
      const std::string name = layout.subject;
      const auto figures = [&](const char* benchmark, const char* metric) {
        const std::vector<double>* const values = Find(keys, name, benchmark, metric);
        return values == nullptr ? std::vector<double>() : *values;
      };
      const auto against = [&](const char* peer, const char* metric) {
        return Ratios(Find(keys, peer, "read", metric), Find(keys, name, "read", metric));
      };
      lines +=
          GoalLine(name + ": dependent get over the floor", keys, figures("read", "over_floor"),
                   Bound::kAtMost,
                   keys <= 1'000'000 ? layout.over_floor_at_million : layout.over_floor_above, "x");
      lines += GoalLine(name + ": MultiGet with copies, a key", keys, figures("read", "batch"),
                        Bound::kAtMost, layout.batch_ns, " ns");
      // One of the two is asked for.
      const std::vector<double> dependent = against("flat_map", "dependent");
      const std::vector<double> batch = against("flat_map", "batch");
      const bool batch_is_better =
          !batch.empty() && !dependent.empty() && MedianOf(batch) > MedianOf(dependent);
      lines += GoalLine(
          name + ": speed over flat_map's, " + (batch_is_better ? "batches" : "dependent gets"),
          keys, batch_is_better ? batch : dependent, Bound::kAtLeast, 2, "x");
      lines += GoalLine(name + ": speed over LMDB's, dependent gets", keys,
                        against("lmdb", "dependent"), Bound::kAtLeast, 3.5, "x");
      lines += GoalLine(name + ": files over raw bytes", keys, figures("space", "over_raw"),
                        Bound::kAtMost, 1.15, "x");
      for (const char* const benchmark : {"beside_writer_get", "beside_writer_batch"}) {
        lines += GoalLine(name + ": " + benchmark + ", of the quiet rate", keys,
                          figures(benchmark, "share"), Bound::kAtLeast, 80, " %");
      }
    }
  }
  return lines;
}

}  // namespace basalt::bench
