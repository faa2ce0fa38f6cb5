#include "bench/cache_sim/report.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "bench/cache_sim/generated_trace.h"
#include "bench/text.h"

namespace basalt::cache_sim {
namespace {

using bench::Format;

// Misses against LRU's that the real cache must stay below: by default on the mean of the common
// traces and on each trace and size of all, with S3-FIFO on the mean.
constexpr double kClockMeanMax = -0.04;
constexpr double kClockWorstMax = 0.02;
constexpr double kS3FifoMeanMax = -0.08;
/// Of the real cache with S3-FIFO against the simulated one, on each trace and size.
constexpr double kS3FifoOverSimulatedMax = 0.05;

/// In the order of their first appearance.
template <class T, class Field>
std::vector<T> Distinct(const std::vector<Figure>& figures, Field Figure::* field) {
  std::vector<T> values;
  for (const Figure& figure : figures) {
    if (std::find(values.begin(), values.end(), figure.*field) == values.end()) {
      values.push_back(figure.*field);
    }
  }
  return values;
}

std::string Bytes(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10'000) return Format("%.0f B", number);
  if (bytes < 1'000'000) return Format("%.1f kB", number / 1e3);
  return Format("%.2f MB", number / 1e6);
}

/// What the real cache held, and in how much memory.
std::string MemoryLine(const Figure& figure) {
  const auto asked_for =
      static_cast<uint64_t>(figure.size * static_cast<double>(figure.footprint_bytes));
  return Format("  %s at %g %%: held %s (asked for: %s) in %s of memory, %u shard%s\n",
                figure.policy.c_str(), figure.size * 100, Bytes(figure.held_bytes).c_str(),
                Bytes(asked_for).c_str(), Bytes(figure.capacity_bytes).c_str(), figure.shards,
                figure.shards == 1 ? "" : "s");
}

/// Its misses against LRU's over a set of figures.
struct AgainstLru {
  double mean = 0;
  double worst = 0;
  const Figure* worst_figure = nullptr;  ///< Null: there are no figures.
};

AgainstLru Sum(const std::vector<Figure>& figures, std::string_view policy) {
  AgainstLru sum;
  int count = 0;
  for (const Figure& figure : figures) {
    if (figure.policy != policy) continue;
    sum.mean += figure.AgainstLru();
    ++count;
    if (sum.worst_figure == nullptr || figure.AgainstLru() > sum.worst) {
      sum.worst = figure.AgainstLru();
      sum.worst_figure = &figure;
    }
  }
  if (count > 0) sum.mean /= count;
  return sum;
}

bool IsCommon(std::string_view trace) {
  return std::ranges::any_of(
      TraceKinds(), [&](const TraceKind& kind) { return kind.is_common && kind.name == trace; });
}

std::string Where(const Figure& figure) {
  return Format("%s at %g %%", figure.trace.c_str(), figure.size * 100);
}

/// A row a policy; `cell` formats a figure in 20 columns.
template <class Cell>
std::string Grid(const std::vector<Figure>& figures, const char* title, Cell cell) {
  std::string table = Format("  %-12s", title);
  for (const double size : Distinct<double>(figures, &Figure::size)) {
    table += Format("%18g %%", size * 100);
  }
  table += "\n";
  for (const std::string& policy : Distinct<std::string>(figures, &Figure::policy)) {
    table += Format("  %-12s", policy.c_str());
    for (const Figure& figure : figures) {
      if (figure.policy == policy) table += cell(figure);
    }
    table += "\n";
  }
  return table;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += Format("\\u%04x", static_cast<unsigned>(c));
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string TraceTable(const Trace& trace, const std::vector<Figure>& figures) {
  std::string table =
      Format("%s: %zu requests, %u keys, %s\n", trace.name.c_str(), trace.requests.size(),
             trace.key_count, Bytes(trace.footprint_bytes).c_str());
  table += Grid(figures, "misses", [](const Figure& figure) {
    return Format("%11.4f %+6.1f %%", figure.MissRatio(), figure.AgainstLru() * 100);
  });
  if (!trace.is_uniform) {
    table += Grid(figures, "missed bytes", [](const Figure& figure) {
      return Format("%11.4f %8s", figure.ByteMissRatio(), "");
    });
  }
  for (const Figure& figure : figures) {
    if (figure.capacity_bytes != 0) table += MemoryLine(figure);
  }
  return table;
}

std::string SummaryTable(const std::vector<Figure>& figures) {
  std::string table = Format("misses against LRU   %10s %10s\n", "mean", "worst");
  for (const std::string& policy : Distinct<std::string>(figures, &Figure::policy)) {
    const AgainstLru sum = Sum(figures, policy);
    table += Format("  %-18s %+8.1f %% %+8.1f %%  %s\n", policy.c_str(), sum.mean * 100,
                    sum.worst * 100, Where(*sum.worst_figure).c_str());
  }
  return table;
}

std::string ToJson(const std::vector<Figure>& figures) {
  std::string json = "[";
  for (const Figure& figure : figures) {
    json += json.size() == 1 ? "\n" : ",\n";
    json += Format(
        R"(  {"trace": %s, "requests": %s, "footprint_bytes": %s, "policy": "%s", "size": %g, )"
        R"("held_bytes": %s, "capacity_bytes": %s, "shards": %u, "miss_ratio": %.6f, )"
        R"("byte_miss_ratio": %.6f, "against_lru": %.6f})",
        Quoted(figure.trace).c_str(), std::to_string(figure.requests).c_str(),
        std::to_string(figure.footprint_bytes).c_str(), figure.policy.c_str(), figure.size,
        std::to_string(figure.held_bytes).c_str(), std::to_string(figure.capacity_bytes).c_str(),
        figure.shards, figure.MissRatio(), figure.ByteMissRatio(), figure.AgainstLru());
  }
  return json + "\n]\n";
}

Verdict Judge(const std::vector<Figure>& figures) {
  Verdict verdict;
  const auto expect = [&](const char* what, double value, double most, const std::string& where,
                          const char* other = "LRU") {
    const bool holds = value <= most;
    verdict.holds = verdict.holds && holds;
    verdict.text +=
        Format("%-6s %s: %+.1f %% misses against %s%s, at most %+.0f %%\n", holds ? "ok" : "MISSED",
               what, value * 100, other, where.c_str(), most * 100);
  };
  std::vector<Figure> common;
  std::ranges::copy_if(figures, std::back_inserter(common),
                       [](const Figure& figure) { return IsCommon(figure.trace); });
  expect("basalt, mean", Sum(common, "basalt").mean, kClockMeanMax, "");
  if (const AgainstLru all = Sum(figures, "basalt"); all.worst_figure != nullptr) {
    expect("basalt, worst", all.worst, kClockWorstMax, " (" + Where(*all.worst_figure) + ")");
  }
  expect("basalt-s3, mean", Sum(common, "basalt-s3").mean, kS3FifoMeanMax, "");
  double over_simulated = -1;
  std::string where;
  for (const Figure& real : figures) {
    for (const Figure& simulated : figures) {
      if (real.policy != "basalt-s3" || simulated.policy != "s3fifo" ||
          real.trace != simulated.trace || real.size != simulated.size) {
        continue;
      }
      const double over = (1 + real.AgainstLru()) / (1 + simulated.AgainstLru()) - 1;
      if (over <= over_simulated) continue;
      over_simulated = over;
      where = " (" + Where(real) + ")";
    }
  }
  expect("basalt-s3, worst", over_simulated, kS3FifoOverSimulatedMax, where, "s3fifo");
  return verdict;
}

}  // namespace basalt::cache_sim
