// Measures how well passages are retrieved, on questions with published supporting passages: the
// parts of the ranking alone and together, and how long an answer takes. bench/README.md says what
// each figure means.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/json/src.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/retrieval_data.h"
#include "bench/retrieval_methods.h"
#include "bench/retrieval_scale.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

struct Settings {
  std::string folder;
  std::string output = "build/bench/retrieval.json";
  size_t passages = 0;
};

constexpr std::array<const char*, 6> kMeasures = {"recall@5",   "recall@10",   "all_gold@10",
                                                  "recall_500", "recall_1000", "recall_2000"};

/// What a method has come to for each question, from 0 to 1.
struct Outcome {
  std::string method;
  std::array<std::vector<double>, kMeasures.size()> measures{};
  std::vector<double> milliseconds{};
};

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// The share of the gold passages among the first `k`.
double RecallAt(const std::vector<RankedPassage>& ranked, const std::set<std::string>& gold,
                size_t k) {
  size_t found = 0;
  for (size_t i = 0; i < std::min(k, ranked.size()); ++i) found += gold.count(ranked[i].title);
  return static_cast<double>(found) / static_cast<double>(gold.size());
}

/// The share of the gold passages among those that fit into a budget, as Retrieve fills it.
double RecallWithin(const std::vector<RankedPassage>& ranked, const std::set<std::string>& gold,
                    uint64_t tokens) {
  size_t found = 0;
  for (const RankedPassage& passage : ranked) {
    if (passage.tokens > tokens) continue;
    tokens -= passage.tokens;
    found += gold.count(passage.title);
  }
  return static_cast<double>(found) / static_cast<double>(gold.size());
}

Outcome Measure(const RetrievalMethod& method, const RetrievalData& data) {
  Outcome outcome{.method = method.name};
  for (size_t i = 0; i < data.questions.size(); ++i) {
    const std::set<std::string>& gold = data.questions[i].gold;
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<RankedPassage> ranked = method.rank(i);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    outcome.milliseconds.push_back(taken.count());
    const double recall_10 = RecallAt(ranked, gold, 10);
    const std::array<double, kMeasures.size()> values = {
        RecallAt(ranked, gold, 5),        recall_10,
        recall_10 == 1 ? 1.0 : 0.0,       RecallWithin(ranked, gold, 500),
        RecallWithin(ranked, gold, 1000), RecallWithin(ranked, gold, 2000)};
    for (size_t m = 0; m < values.size(); ++m) outcome.measures[m].push_back(values[m]);
  }
  return outcome;
}

struct Interval {
  double low = 0;
  double high = 0;
};

/// The middle 95 % of the mean difference over questions drawn with replacement.
Interval BootstrapDifference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  constexpr int kDraws = 10'000;
  base::Random random(1);
  std::vector<double> means;
  for (int draw = 0; draw < kDraws; ++draw) {
    double sum = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      const size_t question = random.Below(ours.size());
      sum += ours[question] - theirs[question];
    }
    means.push_back(sum / static_cast<double>(ours.size()));
  }
  std::ranges::sort(means);
  return {means[kDraws / 40], means[kDraws - kDraws / 40 - 1]};
}

double Quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  return values.empty() ? 0 : values[at];
}

void Print(const std::vector<Outcome>& outcomes, size_t questions) {
  std::printf(
      "Percent, means over %zu questions. In brackets: the 95 %% interval of the last row's "
      "lead,\nby a paired bootstrap over the questions.\n\n%-19s",
      questions, "");
  for (const char* measure : kMeasures) std::printf(" %-22s", measure);
  std::printf(" median, P99 ms\n");
  const Outcome& ours = outcomes.back();
  for (const Outcome& outcome : outcomes) {
    std::printf("%-19s", outcome.method.c_str());
    for (size_t m = 0; m < kMeasures.size(); ++m) {
      std::string cell = Format("%5.1f", 100 * Mean(outcome.measures[m]));
      if (&outcome != &ours) {
        const Interval lead = BootstrapDifference(ours.measures[m], outcome.measures[m]);
        cell += Format(" [%+.1f, %+.1f]", 100 * lead.low, 100 * lead.high);
      }
      std::printf(" %-22s", cell.c_str());
    }
    std::printf(" %.2f, %.2f\n", Quantile(outcome.milliseconds, 0.5),
                Quantile(outcome.milliseconds, 0.99));
  }
}

void AddTo(Report* report, const Outcome& outcome) {
  const auto add = [&](const char* metric, const char* unit, double value) {
    report->Add("retrieval", outcome.method, Level::kProcess, metric, unit, value);
  };
  for (size_t m = 0; m < kMeasures.size(); ++m) {
    add(kMeasures[m], "percent", 100 * Mean(outcome.measures[m]));
  }
  add("median", "ms", Quantile(outcome.milliseconds, 0.5));
  add("p99", "ms", Quantile(outcome.milliseconds, 0.99));
}

void Run(const Settings& settings) {
  Report report;
  if (!settings.folder.empty()) {
    const RetrievalData data = RetrievalData::Load(settings.folder);
    const RetrievalMethods methods(data);
    std::vector<Outcome> outcomes;
    for (const RetrievalMethod& method : methods.All()) {
      outcomes.push_back(Measure(method, data));
      AddTo(&report, outcomes.back());
    }
    Print(outcomes, data.questions.size());
  }
  if (settings.passages > 0) MeasureScale(settings.passages, &report);
  WriteFile(settings.output, report.ToJson());
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) {
  basalt::bench::Settings settings;
  CLI::App app("How well and how fast passages are retrieved.", "retrieval_bench");
  app.add_option("FOLDER", settings.folder,
                 "Questions and passages: corpus.json, questions.json, and vectors as *.npy")
      ->envname("FOLDER")
      ->check(CLI::ExistingDirectory);
  app.add_option("--passages", settings.passages,
                 "Also measure growth, with so many passages of made-up text");
  basalt::bench::AddOutput(&app, &settings.output);
  CLI11_PARSE(app, argc, argv);
  if (settings.folder.empty() && settings.passages == 0) {
    std::fprintf(stderr, "retrieval_bench: give FOLDER, --passages, or both\n");
    return 2;
  }
  basalt::bench::Run(settings);
  return 0;
}
