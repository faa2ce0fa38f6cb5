#include "tools/basalt/bench.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/verb.h"
#include "tools/basalt/workload.h"

namespace basalt::tools {
namespace {

std::string WorkloadList() {
  std::string text = "Workloads (those that begin with an empty database are marked *):\n";
  for (const Workload& workload : AllWorkloads()) {
    text += "  " + Left(workload.name, 13) + (workload.begins_empty ? "* " : "  ") +
            std::string(workload.description) + "\n";
  }
  return text;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

void AddSizes(const Verb<BenchOptions>& bench) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  BenchOptions& options = *bench.options;
  const auto add = [&](const char* name, uint64_t& number, uint64_t least, uint64_t most,
                       const char* description) {
    bench.app->add_option(name, number, description)
        ->check(WholeNumber(least, most))
        ->capture_default_str()
        ->type_name("N");
  };
  add("--num", options.num, 1, kMost, "Records");
  bench.app->add_option("--reads", options.reads, "Operations of what reads; default: --num")
      ->check(WholeNumber(1, kMost))
      ->type_name("N");
  add("--value-size", options.value_bytes, 0, uint64_t{1} << 30, "Bytes of a value");
  add("--batch-size", options.batch_records, 1, 1'000'000, "Records of a batch of fillbatch");
  add("--nexts", options.nexts, 0, kMost, "Steps after each seek of seekrandom");
  bench.app->add_option("--threads", options.threads, "They share the operations")
      ->check(WholeNumber(1, 256))
      ->capture_default_str()
      ->type_name("N");
  add("--seed", options.seed, 0, UINT64_MAX, "The same seed gives the same keys and values");
}

}  // namespace

void AddBenchVerb(const VerbList& verbs) {
  const auto bench =
      verbs.Add<BenchOptions>("bench", "Measure workloads by the names of db_bench and YCSB", Bench,
                              R"(  basalt bench ./bench
  basalt bench :memory: --benchmarks fillrandom,readrandom --num 100000 --threads 2
  basalt bench ./bench --benchmarks ycsbload,ycsba,ycsbc --value-size 1000
  basalt bench ./bench --benchmarks fillseq,readseq --output csv > figures.csv

)" + WorkloadList());
  bench.app
      ->add_option("PATH", bench.options->path,
                   "A directory of its own, or :memory:; an older bench in it is used or replaced")
      ->required()
      ->type_name("");
  bench.app
      ->add_option_function<std::string>(
          "--benchmarks",
          [options = bench.options](const std::string& names) {
            options->workloads = CLI::detail::split(names, ',');
          },
          "In this order; default: " + Joined(bench.options->workloads))
      ->type_name("A,B,...");
  AddSizes(bench);
  AddDurabilityAs(bench, "What each write must survive: process (the default) or power",
                  [](BenchOptions& options, Durability level) { options.durability = level; });
  AddMemoryBudget(bench);
  bench.app->add_flag("--replace-database", bench.options->replace_database,
                      "Remove a database in PATH that no bench has made");
  AddOutput(bench, {"table", "csv", "json", "raw"});
  AddProgress(bench);
}

}  // namespace basalt::tools
