#include "bench/report.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr std::string_view kOurs = "basalt";

const char* LevelName(Level level) { return level == Level::kPower ? "power" : "process"; }

/// Four significant digits are more than a run repeats.
std::string Readable(double value, const std::string& unit) {
  if (unit == "ops/s") return Format("%.1f k/s", value / 1e3);
  if (unit == "bytes") return Format("%.1f MiB", value / (1 << 20));
  return Format("%.2f %s", value, unit.c_str());
}

/// The median, and half of the way from the least to the greatest in percent of it.
std::string Cell(const Figure* figure) {
  if (figure == nullptr) return "";
  const double median = figure->Median();
  std::string cell = Readable(median, figure->unit);
  if (figure->values.size() > 1 && median > 0) {
    cell += Format(" ~%.0f%%", 50 * (figure->Max() - figure->Min()) / median);
  }
  return cell;
}

std::string Ratio(const Figure* ours, const std::vector<const Figure*>& theirs) {
  const Figure ratio = RatioToBest(ours, theirs);
  return ratio.values.empty() ? "" : Format("%.2fx", ratio.Median());
}

}  // namespace

double Figure::Median() const {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
double Figure::Min() const { return *std::min_element(values.begin(), values.end()); }
double Figure::Max() const { return *std::max_element(values.begin(), values.end()); }

void Report::Add(std::string_view benchmark, std::string_view subject, Level level,
                 std::string_view metric, std::string_view unit, double value, int threads) {
  for (Figure& figure : figures_) {
    if (figure.benchmark == benchmark && figure.subject == subject && figure.metric == metric) {
      figure.values.push_back(value);
      return;
    }
  }
  figures_.push_back({std::string(benchmark),
                      std::string(subject),
                      level,
                      std::string(metric),
                      std::string(unit),
                      {value},
                      threads});
}

std::string Report::ToJson() const {
  std::string json = "[";
  for (const Figure& figure : figures_) {
    json += json.size() == 1 ? "\n" : ",\n";
    json += Format(
        R"(  {"benchmark": "%s", "subject": "%s", "threads": %d, "durability": "%s", )"
        R"("metric": "%s", "unit": "%s", "median": %.6g, "min": %.6g, "max": %.6g, "runs": %zu})",
        figure.benchmark.c_str(), figure.subject.c_str(), figure.threads, LevelName(figure.level),
        figure.metric.c_str(), figure.unit.c_str(), figure.Median(), figure.Min(), figure.Max(),
        figure.values.size());
  }
  return json + "\n]\n";
}

const Figure* Report::Find(std::string_view benchmark, std::string_view subject,
                           std::string_view metric) const {
  for (const Figure& figure : figures_) {
    if (figure.benchmark == benchmark && figure.subject == subject && figure.metric == metric) {
      return &figure;
    }
  }
  return nullptr;
}

std::string Report::ToTable(const std::vector<const Subject*>& subjects) const {
  std::string table = Format("%-20s %-11s", "benchmark", "metric");
  for (const Subject* subject : subjects) table += Format("%18s", subject->name().c_str());
  for (const Subject* subject : subjects) {
    if (subject->name() != kOurs) table += Format("%11s", ("/" + subject->name()).c_str());
  }
  table += Format("%11s\n", "/best LSM");

  std::set<std::tuple<std::string, std::string>> printed;
  for (const Figure& row : figures_) {
    if (!printed.emplace(row.benchmark, row.metric).second) continue;
    std::string line = Format("%-20s %-11s", row.benchmark.c_str(), row.metric.c_str());
    std::string ratios;
    const Figure* ours = row.unit == "ops/s" ? Find(row.benchmark, kOurs, row.metric) : nullptr;
    std::vector<const Figure*> lsm_peers;
    for (const Subject* subject : subjects) {
      const Figure* figure = Find(row.benchmark, subject->name(), row.metric);
      line += Format("%18s", Cell(figure).c_str());
      if (subject->name() == kOurs) continue;
      ratios += Format("%11s", Ratio(ours, {figure}).c_str());
      if (subject->is_lsm_peer()) lsm_peers.push_back(figure);
    }
    line += ratios + Format("%11s", Ratio(ours, lsm_peers).c_str());
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return table;
}

Figure RatioToBest(const Figure* ours, const std::vector<const Figure*>& theirs) {
  Figure ratio;
  if (ours == nullptr || theirs.empty()) return ratio;
  for (size_t round = 0; round < ours->values.size(); ++round) {
    double best = 0;
    for (const Figure* peer : theirs) {
      if (peer == nullptr || round >= peer->values.size()) return {};
      best = std::max(best, peer->values[round]);
    }
    ratio.values.push_back(ours->values[round] / best);
  }
  return ratio;
}

std::string MachineDescription() {
  std::string model = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname system{};
  uname(&system);
  return Format("%s, %u cores, %s %s", model.c_str(), std::thread::hardware_concurrency(),
                system.sysname, system.release);
}

void WriteFile(const std::string& path, const std::string& text) {
  const std::filesystem::path output(path);
  if (output.has_parent_path()) std::filesystem::create_directories(output.parent_path());
  std::ofstream file(output);
  file << text;
  file.close();
  if (!file) Fail("write " + path, "the file could not be written");
}

}  // namespace basalt::bench
