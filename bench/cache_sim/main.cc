// Simulates caches on traces and reports what they miss: known policies, Belady's bound, and the
// real basalt::Cache. README.md says what is compared, and how.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "bench/cache_sim/generated_trace.h"
#include "bench/cache_sim/report.h"
#include "bench/cache_sim/simulation.h"
#include "bench/cache_sim/trace_file.h"

namespace basalt::cache_sim {
namespace {

const char* const kExamples = R"(
Examples:
  cache_sim                                      six traces at 1 % and 10 % of the footprint
  cache_sim --traces zipf99,loop --policies lru,basalt,belady
  cache_sim --trace requests.csv --sizes 0.05    a trace of your own: a line is key or key,size
  zcat requests.gz | cache_sim --trace -
  cache_sim --check                              exits with 1 where basalt misses its targets
  cache_sim --curve --output curve.json          for plot.py: eight sizes from 0.1 % to 50 %
)";

struct Settings {
  std::vector<std::string> traces;
  std::vector<std::string> trace_files;
  std::vector<std::string> policies;
  std::vector<double> sizes = {0.01, 0.1};
  TraceShape shape;
  std::string output;
  bool check = false;
};

const std::vector<double> kCurveSizes = {0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5};
const char* const kAllTraces = "all";

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "cache_sim: %s\n", why.c_str());
  std::exit(2);
}

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Simulates one trace, prints its table and adds its figures to the others.
void RunTrace(const Trace& trace, const Settings& settings, std::vector<Figure>* all) {
  std::vector<Figure> figures;
  for (const double size : settings.sizes) {
    Simulation simulation(trace, size);
    for (const PolicyKind& kind : PolicyKinds()) {
      const std::string name(kind.name);
      if (std::find(settings.policies.begin(), settings.policies.end(), name) ==
          settings.policies.end()) {
        continue;
      }
      std::fprintf(stderr, "%s, %g %%: %s\n", trace.name.c_str(), size * 100, name.c_str());
      const Result<Figure> figure = simulation.Run(kind);
      if (!figure) Fail(trace.name + ", " + name + ": " + figure.error().ToString());
      figures.push_back(*figure);
    }
  }
  Say(TraceTable(trace, figures) + "\n");
  all->insert(all->end(), figures.begin(), figures.end());
}

void WriteJson(const std::string& path, const std::vector<Figure>& figures) {
  const std::filesystem::path file_path(path);
  std::error_code ignored;  // Opening the file will tell.
  std::filesystem::create_directories(file_path.parent_path(), ignored);
  std::ofstream file(file_path);
  file << ToJson(figures);
  file.close();
  if (!file) Fail("write " + path + ": the file could not be written");
  Say("All figures: " + path + "\n");
}

int Run(const Settings& settings) {
  std::vector<Figure> figures;
  for (const std::string& path : settings.trace_files) {
    const Result<Trace> trace = ReadTraceFile(path);
    if (!trace) Fail(trace.error().ToString());
    RunTrace(*trace, settings, &figures);
  }
  for (const TraceKind& kind : TraceKinds()) {
    if (std::find(settings.traces.begin(), settings.traces.end(), kind.name) ==
        settings.traces.end()) {
      continue;
    }
    RunTrace(kind.make(settings.shape), settings, &figures);
  }
  Say(SummaryTable(figures));
  if (!settings.output.empty()) WriteJson(settings.output, figures);
  if (!settings.check) return 0;
  const Verdict verdict = Judge(figures);
  Say("\n" + verdict.text);
  return verdict.holds ? 0 : 1;
}

std::vector<std::string> CommonTraces() {
  std::vector<std::string> names;
  for (const TraceKind& kind : TraceKinds()) {
    if (kind.is_common) names.emplace_back(kind.name);
  }
  return names;
}

template <class Kind>
std::vector<std::string> Names(const std::vector<Kind>& kinds) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

std::string Footer() {
  std::string footer = "Policies:\n";
  const auto add = [&](std::string_view name, std::string_view description) {
    footer += "  " + std::string(name) + std::string(12 - name.size(), ' ');
    footer += std::string(description) + "\n";
  };
  for (const PolicyKind& kind : PolicyKinds()) add(kind.name, kind.description);
  footer += "\nTraces that are generated:\n";
  for (const TraceKind& kind : TraceKinds()) {
    add(kind.name, std::string(kind.description) + (kind.is_common ? "" : " (not by default)"));
  }
  return footer + kExamples;
}

}  // namespace
}  // namespace basalt::cache_sim

int main(int argc, char** argv) {
  namespace cache_sim = basalt::cache_sim;
  cache_sim::Settings settings;
  settings.policies = cache_sim::Names(cache_sim::PolicyKinds());

  CLI::App app("Simulates caches on traces and reports what they miss.", "cache_sim");
  app.footer(cache_sim::Footer());
  auto* files = app.add_option("--trace", settings.trace_files,
                               "A file with a request a line, key or key,size; - is stdin");
  std::vector<std::string> trace_names = cache_sim::Names(cache_sim::TraceKinds());
  trace_names.emplace_back(cache_sim::kAllTraces);
  auto* traces = app.add_option("--traces", settings.traces,
                                "Which to generate, separated by commas; all: every one")
                     ->delimiter(',')
                     ->check(CLI::IsMember(trace_names));
  auto* policies =
      app.add_option("--policies", settings.policies, "Which to simulate, separated by commas")
          ->delimiter(',')
          ->check(CLI::IsMember(cache_sim::Names(cache_sim::PolicyKinds())));
  auto* sizes =
      app.add_option("--sizes", settings.sizes, "Of the cache, as parts of the trace's footprint")
          ->delimiter(',')
          ->check(CLI::Range(1e-6, 1.0))
          ->capture_default_str();
  bool curve_wanted = false;
  auto* curve =
      app.add_flag("--curve", curve_wanted, "Eight sizes from 0.1 % to 50 %")->excludes(sizes);
  app.add_option("--keys", settings.shape.keys, "Of a generated trace, to draw from")
      ->check(CLI::Range(100U, 100'000'000U))
      ->capture_default_str();
  app.add_option("--requests", settings.shape.requests, "Of a generated trace")
      ->check(CLI::Range(1'000U, 4'000'000'000U))
      ->capture_default_str();
  app.add_option("--seed", settings.shape.seed, "Of a generated trace")->capture_default_str();
  app.add_option("--output", settings.output, "Where the figures go, as JSON");
  app.add_flag("--check", settings.check,
               "All traces and sizes; exit with 1 where basalt misses its targets")
      ->excludes(files)
      ->excludes(traces)
      ->excludes(policies)
      ->excludes(sizes)
      ->excludes(curve);
  CLI11_PARSE(app, argc, argv);

  if (curve_wanted) settings.sizes = cache_sim::kCurveSizes;
  if (traces->count() == 0 && files->count() == 0) settings.traces = cache_sim::CommonTraces();
  if (settings.check || std::find(settings.traces.begin(), settings.traces.end(),
                                  cache_sim::kAllTraces) != settings.traces.end()) {
    settings.traces = cache_sim::Names(cache_sim::TraceKinds());
  }
  return cache_sim::Run(settings);
}
