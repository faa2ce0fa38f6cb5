// Measures whether a database stays as it is: half an hour of overwriting, second by second; with
// --sustained, whether compaction keeps up with new keys; with --growth, what an operation costs as
// the number of keys grows. bench/README.md says what the figures mean.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>

#include "bench/report.h"
#include "bench/steady/child_process.h"
#include "bench/steady/growth.h"
#include "bench/steady/steadiness.h"
#include "bench/steady/sustained.h"
#include "bench/text.h"
#include "bench/workload.h"

namespace basalt::bench {
namespace {

void PrintHeader(uint64_t memory_budget) {
  const std::string budget =
      memory_budget == 0 ? "the default, a quarter of the machine's"
                         : Format("%.0f MiB", static_cast<double>(memory_budget) / (1 << 20));
  std::printf("%s\nkeys of %zu bytes, values of %zu bytes (half compressible), memory budget %s\n",
              MachineDescription().c_str(), kKeyBytes, kValueBytes, budget.c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace basalt::bench

int main(int argc, char** argv) {
  namespace bench = basalt::bench;
  bench::SteadinessSettings steadiness;
  bench::GrowthSettings growth;
  bench::SustainedSettings sustained;
  bool is_growth = false;
  bool is_sustained = false;
  std::string output;
  std::string directory = "build/bench/scratch";
  uint64_t budget_mib = 64;

  CLI::App app("Measures how steady Basalt is, and how costs grow with the number of keys.",
               "steady_bench");
  app.add_option("--output", output,
                 "Where the figures go, as JSON; build/bench/steady.json or growth.json if unset");
  app.add_option("--dir", directory,
                 "Scratch directory on the disk to measure; emptied first, removed after")
      ->capture_default_str();
  app.add_option("--budget", budget_mib, "Memory budget, MiB; 0, of --growth: the default one")
      ->capture_default_str()
      ->check(CLI::Range(0, 16'384));
  app.add_option("--minutes", steadiness.minutes, "How long to overwrite")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 1'440.0));
  app.add_flag("--sustained", is_sustained, "Put new keys instead, for --minutes");
  app.add_option("--keyspaces", sustained.keyspaces, "That share the puts of --sustained")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--threads", sustained.threads, "That put, of --sustained")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_flag("--growth", is_growth, "Measure costs at 1 M, 4 M, 16 M .. keys instead");
  app.add_option("--keys-max", growth.keys_max, "The most keys of --growth")
      ->capture_default_str()
      ->check(CLI::Range(1'000'000U, 1'000'000'000U));
  app.add_option("--runs", growth.runs, "Rounds of --growth; figures are medians over them")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  if (!is_growth && budget_mib == 0) bench::Fail("--budget", "overwriting wants a budget");

  steadiness.directory = growth.directory = sustained.directory = directory;
  steadiness.memory_budget = growth.memory_budget = sustained.memory_budget = budget_mib << 20;
  sustained.minutes = steadiness.minutes;
  if (output.empty() && is_sustained) output = "build/bench/sustained.json";
  if (output.empty()) output = is_growth ? "build/bench/growth.json" : "build/bench/steady.json";
  bench::PrintHeader(budget_mib << 20);
  std::string text;
  bool is_flat = true;
  if (is_sustained) {
    const auto samples = bench::MeasureSustained(sustained);
    bench::WriteFile(output, bench::SustainedJson(sustained, samples));
    text = bench::SustainedText(sustained, samples, &is_flat);
  } else if (is_growth) {
    const auto figures = bench::MeasureGrowth(growth);
    bench::WriteFile(output, bench::GrowthJson(growth, figures));
    text = bench::GrowthText(figures);
  } else {
    const auto measured = bench::MeasureSteadiness(steadiness);
    bench::WriteFile(output, bench::SteadinessJson(steadiness, measured));
    text = bench::SteadinessText(steadiness, measured);
  }
  std::printf("%s\nAll figures: %s\n", text.c_str(), output.c_str());
  return is_flat ? 0 : 1;
}
