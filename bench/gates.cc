#include "bench/gates.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>

#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr std::string_view kOurs = "basalt";

enum class Bound : uint8_t { kAtLeast, kAtMost, kBelow };

bool IsMet(double found, Bound bound, double wanted) {
  switch (bound) {
    case Bound::kAtLeast:
      return found >= wanted;
    case Bound::kAtMost:
      return found <= wanted;
    case Bound::kBelow:
      return found < wanted;
  }
  return false;
}

std::string Line(const std::string& name, const Figure& found, Bound bound,
                 std::optional<double> wanted, const char* unit = "x") {
  if (found.values.empty()) return "";
  constexpr const char* kSigns[] = {">=", "<=", "<"};
  const double median = found.Median();
  const char* verdict = "shown";
  std::string limit;
  if (wanted) {
    verdict = IsMet(median, bound, *wanted) ? "met" : "missed";
    limit = Format("%s %.2f %s", kSigns[static_cast<size_t>(bound)], *wanted, unit);
  }
  return Format("  %-6s  %-58s %10s  %.2f (%.2f - %.2f)\n", verdict, name.c_str(), limit.c_str(),
                median, found.Min(), found.Max());
}

/// Whom Basalt is held against.
enum class Peers : uint8_t { kLsm, kLmdb, kAll };

struct RatioGate {
  const char* benchmark;
  const char* metric;
  Peers peers;
  std::optional<double> least;  ///< Unset: there is no gate, but the ratio is of interest.
};

constexpr RatioGate kRatioGates[] = {
    {"fillrandom", "throughput", Peers::kLsm, 3.0},
    {"fillrandom", "drained", Peers::kLsm, 3.0},
    {"fillbatch", "throughput", Peers::kLsm, 4.0},
    {"readrandom", "throughput", Peers::kLsm, 3.0},
    {"readrandom", "throughput", Peers::kLmdb, 1.5},
    {"readmissing", "throughput", Peers::kLsm, 2.0},
    {"ycsb_a", "throughput", Peers::kAll, 3.0},
    {"ycsb_c", "throughput", Peers::kLmdb, 1.0},
    {"ycsb_e", "throughput", Peers::kLsm, 3.0},
    {"readseq", "throughput", Peers::kAll, 1.0},
    {"scan_after_deletes", "throughput", Peers::kLsm, std::nullopt},
    {"fillsync", "throughput", Peers::kAll, 1.0},
    {"fillsync8", "throughput", Peers::kAll, 1.0},
};

bool IsAmong(const Subject& subject, Peers peers) {
  if (subject.name() == kOurs) return false;
  return peers == Peers::kAll || subject.is_lsm_peer() == (peers == Peers::kLsm);
}

std::string RatioLine(const Report& report, const std::vector<const Subject*>& subjects,
                      const RatioGate& gate) {
  constexpr const char* kNames[] = {"the best LSM", "LMDB", "the best of all"};
  std::vector<const Figure*> theirs;
  for (const Subject* subject : subjects) {
    if (!IsAmong(*subject, gate.peers)) continue;
    theirs.push_back(report.Find(gate.benchmark, subject->name(), gate.metric));
  }
  return Line(Format("%s, %s over %s", gate.benchmark, gate.metric,
                     kNames[static_cast<size_t>(gate.peers)]),
              RatioToBest(report.Find(gate.benchmark, kOurs, gate.metric), theirs), Bound::kAtLeast,
              gate.least);
}

/// What two writers reach, and what they could if a put, with the background's work for it, took no
/// more processor time than with one.
std::string TwoWriters(const Report& report) {
  const Figure* const one = report.Find("fillrandom", kOurs, "drained");
  const Figure* const two = report.Find("fillrandom2", kOurs, "drained");
  if (one == nullptr || two == nullptr) return "";
  Figure limit = *report.Find("fillrandom", kOurs, "busy");
  for (double& busy : limit.values) busy = std::thread::hardware_concurrency() / busy;
  return Line("two writers over one, drained", RatioToBest(two, {one}), Bound::kAtLeast, 1.3) +
         Line("processors here over those that one writer keeps busy", limit, Bound::kAtLeast, {});
}

}  // namespace

std::string GateLines(const Report& report, const std::vector<const Subject*>& subjects) {
  std::string lines;
  for (const RatioGate& gate : kRatioGates) lines += RatioLine(report, subjects, gate);
  lines += TwoWriters(report);
  lines += Line("bytes written for each byte put, over rocksdb",
                RatioToBest(report.Find("written", kOurs, "disk"),
                            {report.Find("written", "rocksdb", "disk")}),
                Bound::kAtMost, 1.0);
  for (const char* metric : {"first", "time"}) {
    const Figure* open = report.Find("open", kOurs, metric);
    if (open != nullptr) lines += Line(Format("open, %s", metric), *open, Bound::kBelow, 5, "ms");
  }
  if (lines.empty()) return "";
  return "Gates: what is wanted; found: the median of the rounds (the least - the greatest)\n" +
         lines;
}

}  // namespace basalt::bench
