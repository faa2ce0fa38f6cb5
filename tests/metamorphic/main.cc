// Compares a database with an ordinary map over random lists of operations, on a simulated machine
// that loses power now and then. A failing list is cut down to a short one and printed so that
// --replay reads it: everything else that is printed stands behind a #.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/random.h"
#include "tests/metamorphic/generator.h"
#include "tests/metamorphic/isolation.h"
#include "tests/metamorphic/operation.h"
#include "tests/metamorphic/reducer.h"
#include "tests/metamorphic/runner.h"

namespace basalt::metamorphic {
namespace {

using std::chrono::steady_clock;

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kCannotRead = 3;

constexpr size_t kReducerRunsMax = 3'000;
constexpr size_t kListOperations = 2'000;

struct Arguments {
  uint64_t operations = 1'000'000;
  double minutes = 0;  ///< Above 0: instead of a number of operations.
  std::optional<uint64_t> seed;
  std::string replay;
};

/// Each line of a text behind a #.
void PrintComment(const std::string& text) {
  std::string lines = "# ";
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += "# ";
  }
  std::printf("%s\n", lines.c_str());
  std::fflush(stdout);
}

std::string Describe(const Failure& failure, const OperationList& list) {
  const std::string where = failure.operation < list.operations.size()
                                ? "at operation " + std::to_string(failure.operation + 1) + ": " +
                                      ToText(list.operations[failure.operation])
                                : "at the end";
  return where + "\n" + failure.problem;
}

/// Prints the shortest list found that fails as `failure` did, in the way it fails.
void ReportReduced(OperationList list, const Failure& failure) {
  PrintComment("failed " + Describe(failure, list));
  if (failure.operation < list.operations.size()) list.operations.resize(failure.operation + 1);
  if (!RunIsolated(list)) {
    PrintComment("the same list did not fail again; here it is whole");
    std::fputs(ToText(list).c_str(), stdout);
    return;
  }
  PrintComment("reducing it");
  const OperationList reduced = Reduce(
      std::move(list), [](const OperationList& part) { return RunIsolated(part).has_value(); },
      kReducerRunsMax);
  const std::string text = ToText(reduced);
  const Result<OperationList> parsed = ParseOperations(text);
  const std::optional<Failure> last = parsed ? RunIsolated(*parsed) : std::nullopt;
  PrintComment("save this as a file and run basalt_metamorphic --replay <file>");
  std::fputs(text.c_str(), stdout);
  PrintComment(last ? "it fails " + Describe(*last, reduced) : "it did not fail when read back");
}

int Replay(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    std::fprintf(stderr, "basalt_metamorphic: cannot read %s\n", path.c_str());
    return kCannotRead;
  }
  const Result<OperationList> list = ParseOperations(text);
  if (!list) {
    std::fprintf(stderr, "basalt_metamorphic: %s: %s\n", path.c_str(),
                 list.error().ToString().c_str());
    return kUsage;
  }
  const std::optional<Failure> failure = Run(*list);
  if (!failure) {
    PrintComment("passed: " + std::to_string(list->operations.size()) + " operations");
    return kPassed;
  }
  PrintComment("failed " + Describe(*failure, *list));
  return kFailed;
}

int RunMany(const Arguments& arguments) {
  const uint64_t seed = arguments.seed.value_or(base::RandomSeed());
  PrintComment("seed " + std::to_string(seed));
  const auto start = steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(steady_clock::now() - start).count();
  };
  const auto rate = [&](uint64_t done) {
    return std::to_string(done) + " operations in " +
           std::to_string(static_cast<uint64_t>(seconds())) + " s, " +
           std::to_string(static_cast<uint64_t>(static_cast<double>(done) / seconds())) +
           " a second";
  };
  uint64_t done = 0;
  // The first list of another run with that seed is this one, so that a failure is found again at
  // once.
  for (uint64_t list_seed = seed;; ++list_seed) {
    const bool enough =
        arguments.minutes > 0 ? seconds() >= arguments.minutes * 60 : done >= arguments.operations;
    if (enough) break;
    const OperationList list = Generate(list_seed, kListOperations);
    const std::optional<Failure> failure = RunIsolated(list);
    if (failure) {
      PrintComment("the list of --seed " + std::to_string(list_seed) + " after " + rate(done));
      ReportReduced(list, *failure);
      return kFailed;
    }
    done += kListOperations;
  }
  PrintComment("passed: " + rate(done));
  return kPassed;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Compares a database with a map over random operations.", "basalt_metamorphic");
  // As CLI::PositiveNumber, which says up to what number as well, in 300 digits.
  const auto is_positive = [](const std::string& text) {
    return CLI::PositiveNumber(text).empty() ? "" : "must be a number above 0, not " + text;
  };
  app.add_option("--operations", arguments.operations, "How many operations to run")
      ->capture_default_str()
      ->check(is_positive);
  app.add_option("--minutes", arguments.minutes, "Run that long instead")->check(is_positive);
  app.add_option("--seed", arguments.seed,
                 "Of the first list; the next ones count up; default: random");
  app.add_option("--replay", arguments.replay, "Run one list from a file, in this process");
  app.footer("Exit codes: 0 passed, 1 failed, 2 usage, 3 cannot read the file.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kPassed : kUsage;
  }
  return arguments.replay.empty() ? RunMany(arguments) : Replay(arguments.replay);
}

}  // namespace
}  // namespace basalt::metamorphic

int main(int argc, char** argv) { return basalt::metamorphic::Main(argc, argv); }
