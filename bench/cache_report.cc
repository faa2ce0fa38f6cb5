#include "bench/cache_report.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr std::string_view kOurs = "basalt";
constexpr std::string_view kThroughput = "throughput";

/// Percentiles of one run stand in one row of the table.
constexpr std::string_view kFirstPercentile = "p50";
constexpr std::array<std::string_view, 2> kOtherPercentiles = {"p99", "p99.9"};

bool IsOtherPercentile(const std::string& metric) {
  return std::find(kOtherPercentiles.begin(), kOtherPercentiles.end(), metric) !=
         kOtherPercentiles.end();
}

std::string Readable(double value, const std::string& unit) {
  if (unit.empty()) return Format("%.0f", value);
  if (unit == "ops/s") return Format("%.2f M/s", value / 1e6);
  if (unit == "bytes") return Format("%.1f B", value);
  return Format("%.2f %s", value, unit.c_str());
}

Spread SpreadOf(const Figure& figure) { return {figure.Median(), figure.Min(), figure.Max()}; }

void TrimRight(std::string* line) { line->erase(line->find_last_not_of(' ') + 1); }

}  // namespace

std::string ToText(const Spread& spread) {
  return Format("%.2f (%.2f - %.2f)", spread.median, spread.min, spread.max);
}

bool CacheReport::Row::IsLike(const Row& other) const {
  return threads == other.threads && figure.benchmark == other.figure.benchmark &&
         figure.metric == other.figure.metric;
}

void CacheReport::Add(std::string_view benchmark, int threads, std::string_view subject,
                      std::string_view metric, std::string_view unit, double value) {
  for (Row& row : rows_) {
    if (row.threads == threads && row.figure.benchmark == benchmark &&
        row.figure.subject == subject && row.figure.metric == metric) {
      row.figure.values.push_back(value);
      return;
    }
  }
  Figure figure;
  figure.benchmark = benchmark;
  figure.subject = subject;
  figure.metric = metric;
  figure.unit = unit;
  figure.values = {value};
  rows_.push_back({std::move(figure), threads});
}

const CacheReport::Row* CacheReport::FindRow(std::string_view benchmark, int threads,
                                             std::string_view subject,
                                             std::string_view metric) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.threads == threads && row.figure.benchmark == benchmark &&
           row.figure.subject == subject && row.figure.metric == metric;
  });
  return found == rows_.end() ? nullptr : &*found;
}

std::optional<Spread> CacheReport::Find(std::string_view benchmark, int threads,
                                        std::string_view subject, std::string_view metric) const {
  const Row* row = FindRow(benchmark, threads, subject, metric);
  if (row == nullptr) return std::nullopt;
  return SpreadOf(row->figure);
}

std::optional<Spread> CacheReport::RatioOf(Side ours, Side theirs, int threads,
                                           std::string_view metric) const {
  const Row* our_row = FindRow(ours.benchmark, threads, ours.subject, metric);
  const Row* their_row = FindRow(theirs.benchmark, threads, theirs.subject, metric);
  if (our_row == nullptr || their_row == nullptr) return std::nullopt;
  Figure ratios;
  std::transform(our_row->figure.values.begin(), our_row->figure.values.end(),
                 their_row->figure.values.begin(), std::back_inserter(ratios.values),
                 [](double our_value, double their_value) { return our_value / their_value; });
  return SpreadOf(ratios);
}

std::string CacheReport::ToJson() const {
  std::string json = "[";
  for (const Row& row : rows_) {
    const Figure& figure = row.figure;
    json += json.size() == 1 ? "\n" : ",\n";
    json += Format(
        R"(  {"benchmark": "%s", "subject": "%s", "threads": %d, "metric": "%s", "unit": "%s", )"
        R"("median": %.6g, "min": %.6g, "max": %.6g, "runs": %zu})",
        figure.benchmark.c_str(), figure.subject.c_str(), row.threads, figure.metric.c_str(),
        figure.unit.c_str(), figure.Median(), figure.Min(), figure.Max(), figure.values.size());
  }
  return json + "\n]\n";
}

std::vector<const CacheReport::Row*> CacheReport::DistinctRows() const {
  std::vector<const Row*> distinct;
  for (const Row& row : rows_) {
    const bool is_known = std::any_of(distinct.begin(), distinct.end(),
                                      [&row](const Row* known) { return known->IsLike(row); });
    if (!is_known) distinct.push_back(&row);
  }
  return distinct;
}

std::string CacheReport::Median(const Row& like, const std::string& subject) const {
  const Row* row = FindRow(like.figure.benchmark, like.threads, subject, like.figure.metric);
  return row == nullptr ? "" : Readable(row->figure.Median(), row->figure.unit);
}

std::string CacheReport::Latencies(const Row& like, const std::string& subject) const {
  const auto first = Find(like.figure.benchmark, like.threads, subject, kFirstPercentile);
  if (!first) return "";
  std::string text = Format("%.2f", first->median);
  for (const std::string_view metric : kOtherPercentiles) {
    const auto latency = Find(like.figure.benchmark, like.threads, subject, metric);
    text += Format(latency->median < 100 ? "/%.2f" : "/%.0f", latency->median);
  }
  return text;
}

std::string CacheReport::ToTable(const std::vector<std::unique_ptr<CacheSubject>>& subjects) const {
  std::string names = Format("%-16s%3s  %-14s", "benchmark", "thr", "metric");
  std::string evict = Format("%35s", "evicts  ");
  std::string expire = Format("%35s", "expires  ");
  for (const auto& subject : subjects) {
    names += Format("%16s", subject->name().c_str());
    evict += Format("%16s", subject->is_noop() ? "" : subject->evicts() ? "yes" : "no");
    expire += Format("%16s", subject->is_noop() ? "" : subject->expires() ? "yes" : "no");
  }
  TrimRight(&evict);
  TrimRight(&expire);
  std::string table = names + "\n" + evict + "\n" + expire + "\n";

  for (const Row* row : DistinctRows()) {
    if (IsOtherPercentile(row->figure.metric)) continue;
    const bool is_latency = row->figure.metric == kFirstPercentile;
    std::string line = Format("%-16s%3d  %-14s", row->figure.benchmark.c_str(), row->threads,
                              is_latency ? "p50/99/99.9 us" : row->figure.metric.c_str());
    for (const auto& subject : subjects) {
      line += Format(
          "%16s",
          (is_latency ? Latencies(*row, subject->name()) : Median(*row, subject->name())).c_str());
    }
    TrimRight(&line);
    table += line + "\n";
  }
  return table;
}

std::string CacheReport::ToRatioTable(
    const std::vector<std::unique_ptr<CacheSubject>>& subjects) const {
  std::string table = Format("%-16s%3s", "basalt over", "thr");
  for (const auto& subject : subjects) {
    if (subject->name() != kOurs && !subject->is_noop()) {
      table += Format("%24s", subject->name().c_str());
    }
  }
  table += "\n";
  for (const Row* row : DistinctRows()) {
    const std::string& benchmark = row->figure.benchmark;
    if (row->figure.metric != kThroughput) continue;
    std::string line = Format("%-16s%3d", benchmark.c_str(), row->threads);
    bool is_compared = false;
    for (const auto& subject : subjects) {
      if (subject->name() == kOurs || subject->is_noop()) continue;
      const auto ratio =
          RatioOf({benchmark, kOurs}, {benchmark, subject->name()}, row->threads, kThroughput);
      is_compared = is_compared || ratio;
      line += Format("%24s", ratio ? ToText(*ratio).c_str() : "");
    }
    TrimRight(&line);
    if (is_compared) table += line + "\n";
  }
  return table;
}

}  // namespace basalt::bench
