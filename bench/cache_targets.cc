#include "bench/cache_targets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr std::string_view kOurs = "basalt";
constexpr double kGrowthMicros = 20;  // of a put that may have to split what it grows

enum class Bound : uint8_t { kAtLeast, kAtMost };

std::string Line(const std::string& what, const std::optional<Spread>& figure, Bound bound,
                 double limit, const char* unit, const std::string& remark = "") {
  if (!figure) return "";
  const bool is_met = bound == Bound::kAtLeast ? figure->median >= limit : figure->median <= limit;
  return Format("  %-6s  %-67s %s %5.2f %-2s  %s%s\n", is_met ? "met" : "missed", what.c_str(),
                bound == Bound::kAtLeast ? ">=" : "<=", limit, unit, ToText(*figure).c_str(),
                remark.c_str());
}

std::string On(int threads) { return Format(", %d thread%s", threads, threads == 1 ? "" : "s"); }

/// How much faster `ours` must be than `theirs`; beside it, what their processor times say.
std::string SpeedLine(const CacheReport& report, const std::string& what, CacheReport::Side ours,
                      CacheReport::Side theirs, int threads, double least) {
  const auto cpu = report.RatioOf(theirs, ours, threads, "cpu");
  return Line(what + On(threads), report.RatioOf(ours, theirs, threads, "throughput"),
              Bound::kAtLeast, least, "x",
              cpu ? Format("; by processor time %.2f", cpu->median) : "");
}

std::string Speeds(const CacheReport& report, int threads) {
  struct Goal {
    const char* peer;
    double least;
  };
  constexpr std::array<Goal, 3> kHits = {{{"libcuckoo", 1.0}, {"tbb", 1.5}, {"sharded_map", 1.8}}};
  std::string lines;
  for (const Goal& goal : kHits) {
    lines += SpeedLine(report, Format("uniform hits over %s", goal.peer), {"hit", kOurs},
                       {"hit", goal.peer}, threads, goal.least);
  }

  std::string_view best;
  double best_speed = 0;
  for (const std::string_view peer : {"sharded_map", "tbb", "libcuckoo", "hyperclock", "lru"}) {
    const auto speed = report.Find("kv_r90w10", threads, peer, "throughput");
    if (!speed || speed->median <= best_speed) continue;
    best = peer;
    best_speed = speed->median;
  }
  lines += SpeedLine(report, Format("kv_r90w10 over the best peer (%s)", std::string(best).c_str()),
                     {"kv_r90w10", kOurs}, {"kv_r90w10", best}, threads, 1.3);
  lines += SpeedLine(report, "MultiGet of 16 over Get", {"multiget_16", kOurs},
                     {"multiget_1", kOurs}, threads, 4.0);
  lines += SpeedLine(report, "MultiGet of 16 over Gets in turn", {"multiget_16", kOurs},
                     {"get_in_turn", kOurs}, threads, 4.0);
  return lines;
}

/// Percent against percent.
std::string HitLine(const std::string& what, const std::optional<Spread>& ours,
                    const std::optional<Spread>& theirs) {
  if (!theirs) return "";
  return Line(what, ours, Bound::kAtLeast, theirs->median, "%");
}

std::string ReadThroughs(const CacheReport& report, int threads) {
  const std::string on = On(threads);
  std::string lines;
  for (const char* benchmark : {"read_through_100", "read_through_4k"}) {
    lines += SpeedLine(report, Format("%s over HyperClockCache", benchmark), {benchmark, kOurs},
                       {benchmark, "hyperclock"}, threads, 1.1);
    const auto hits = report.Find(benchmark, threads, kOurs, "hits");
    lines += HitLine(Format("hits of %s, and LRUCache's%s", benchmark, on.c_str()), hits,
                     report.Find(benchmark, threads, "lru", "hits"));
    lines += HitLine(Format("hits of %s, and an LRU's of as many%s", benchmark, on.c_str()), hits,
                     report.Find(benchmark, threads, kOurs, "exact LRU"));
  }
  return lines;
}

std::string BytesAnEntry(const CacheReport& report) {
  std::string lines;
  for (const char* metric : {"charged", "rss"}) {
    lines += Line(Format("bytes an entry, %s", metric), report.Find("bytes", 1, kOurs, metric),
                  Bound::kAtMost, 60, "B");
    lines += Line(Format("bytes an entry with a time to live, %s", metric),
                  report.Find("bytes_ttl", 1, kOurs, metric), Bound::kAtMost, 68, "B");
  }
  return lines;
}

/// A time to live may cost no more than what lies between the median and the slowest round without.
std::string Expiry(const CacheReport& report, int threads) {
  std::string lines;
  for (const char* benchmark : {"fill", "put", "get", "r90w10"}) {
    const std::string with = Format("ttl_%s", benchmark);
    const std::string without = "no_" + with;
    const auto speed = report.Find(without, threads, kOurs, "throughput");
    if (!speed) continue;
    lines += SpeedLine(report, with + " over " + without, {with, kOurs}, {without, kOurs}, threads,
                       speed->min / speed->median);
    lines += Line("P99.9 of " + with + On(threads), report.Find(with, threads, kOurs, "p99.9"),
                  Bound::kAtMost, std::string_view(benchmark) == "fill" ? kGrowthMicros : 5, "us");
  }
  return lines;
}

}  // namespace

std::string TargetLines(const CacheReport& report) {
  std::string lines;
  for (const int threads : {1, 2}) lines += Speeds(report, threads);
  lines += Line("P99 of uniform hits, 2 threads", report.Find("hit", 2, kOurs, "p99"),
                Bound::kAtMost, 0.7, "us");
  lines += Line("P99.9 of uniform hits, 2 threads", report.Find("hit", 2, kOurs, "p99.9"),
                Bound::kAtMost, 1.2, "us");
  for (const int threads : {1, 2}) lines += ReadThroughs(report, threads);
  lines += BytesAnEntry(report);
  for (const int threads : {1, 2}) lines += Expiry(report, threads);
  lines += Line("sweeping a million keys with times to live, of a processor",
                report.Find("ttl_sweep", 1, kOurs, "share"), Bound::kAtMost, 1, "%");
  lines += Line("P99.9 of a put while growing to all entries",
                report.Find("growth", 1, kOurs, "p99.9"), Bound::kAtMost, kGrowthMicros, "us");
  return lines;
}

}  // namespace basalt::bench
