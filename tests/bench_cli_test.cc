// `basalt bench`, run as a person or a script runs it.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using std::string_literals::operator""s;

class BenchCli : public CommandTest {
 protected:
  /// Runs workloads and gives their results by name.
  std::map<std::string, json::object> Bench(const std::string& arguments) const {
    std::map<std::string, json::object> results;
    const Outcome outcome = Run("$B bench --output json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (json::object& result : ParseLines(outcome.out)) {
      const std::string name = Text(result, "workload");
      results[name] = std::move(result);
    }
    return results;
  }
};

TEST_F(BenchCli, EveryWorkloadDoesWhatItsNameSays) {
  auto results = Bench(
      "db --num 2000 --benchmarks "
      "fillseq,readrandom,readmissing,readseq,readreverse,seekrandom,overwrite,compact");
  ASSERT_EQ(results.size(), 8U);
  for (const char* name : {"fillseq", "readrandom", "readmissing", "readseq", "readreverse",
                           "seekrandom", "overwrite"}) {
    EXPECT_EQ(Number(results[name], "operations"), 2000U) << name;
    EXPECT_GT(results[name].at("ops_per_s").to_number<double>(), 0) << name;
    const double median = results[name].at("p50_us").to_number<double>();
    EXPECT_LE(median, results[name].at("p99_us").to_number<double>()) << name;
    EXPECT_LE(median, results[name].at("max_us").to_number<double>()) << name;
  }
  EXPECT_EQ(Number(results["readrandom"], "found"), 2000U);
  EXPECT_EQ(Number(results["seekrandom"], "found"), 2000U);
  EXPECT_EQ(Number(results["readmissing"], "lookups"), 2000U);
  EXPECT_EQ(Number(results["readmissing"], "found"), 0U);
  EXPECT_EQ(Number(results["compact"], "operations"), 1U);
  EXPECT_EQ(Out("$B scan db --limit 1 --keys-only; $B scan db --reverse --limit 1 --keys-only; "
                "$B scan db | wc -l"),
            "0000000000000000\n0000000000001999\n2000\n");

  EXPECT_EQ(Number(Bench("db --num 2000 --benchmarks fillsync")["fillsync"], "operations"), 2U);
  EXPECT_LE(std::stoi(Out("$B scan db | wc -l")), 2) << "it has begun with an empty database";
  results = Bench("db --num 2500 --benchmarks fillbatch,deleterandom");
  EXPECT_EQ(Number(results["fillbatch"], "operations"), 2500U);
  EXPECT_EQ(Number(results["deleterandom"], "operations"), 2500U);
  const int left = std::stoi(Out("$B scan db | wc -l"));
  EXPECT_GT(left, 2500 / 4) << "some 37 of 100 keys are not hit";
  EXPECT_LT(left, 2500 / 2);
  Bench("db --num 3000 --benchmarks fillrandom");
  const int filled = std::stoi(Out("$B scan db | wc -l"));
  EXPECT_GT(filled, 3000 / 2) << "some 63 of 100 keys are hit";
  EXPECT_LT(filled, 3000 * 3 / 4);
  EXPECT_NE(Out("$B check db").find("No faults found."), std::string::npos);
}

TEST_F(BenchCli, YcsbReadsWhatItHasLoaded) {
  const auto results = Bench(
      ":memory: --num 1000 --reads 4000 --benchmarks "
      "ycsbload,ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf");
  ASSERT_EQ(results.size(), 7U);
  // The least and most of 4000 operations that look for a key.
  const std::map<std::string, std::pair<uint64_t, uint64_t>> lookups = {
      {"ycsba", {1700, 2300}}, {"ycsbb", {3700, 3900}}, {"ycsbc", {4000, 4000}},
      {"ycsbd", {3700, 3900}}, {"ycsbe", {3700, 3900}}, {"ycsbf", {4000, 4000}}};
  EXPECT_EQ(Number(results.at("ycsbload"), "operations"), 1000U);
  for (const auto& [name, range] : lookups) {
    const json::object& result = results.at(name);
    EXPECT_EQ(Number(result, "operations"), 4000U) << name;
    EXPECT_GE(Number(result, "lookups"), range.first) << name;
    EXPECT_LE(Number(result, "lookups"), range.second) << name;
    EXPECT_EQ(Number(result, "found"), Number(result, "lookups")) << name;
  }
}

TEST_F(BenchCli, YcsbInsertsNewRecords) {
  Bench("db --num 1000 --reads 2000 --benchmarks ycsbload,ycsbd");
  const std::string keys = Out("$B scan db --keys-only");
  const int64_t records = std::count(keys.begin(), keys.end(), '\n');
  EXPECT_GT(records, 1050) << "one in twenty operations inserts";
  EXPECT_LT(records, 1150);
  EXPECT_EQ(keys.substr(0, 4), "user");
  EXPECT_EQ(keys.find('\n'), 24U);
}

TEST_F(BenchCli, ThreadsShareTheOperations) {
  auto results = Bench(
      "db --num 1001 --threads 3 --benchmarks fillseq,readseq,readreverse,readrandom,compact");
  EXPECT_EQ(Number(results["fillseq"], "threads"), 3U);
  EXPECT_EQ(Number(results["fillseq"], "operations"), 1001U);
  EXPECT_EQ(Number(results["readseq"], "operations"), 1001U);
  EXPECT_EQ(Number(results["readreverse"], "operations"), 1001U);
  EXPECT_EQ(Number(results["readrandom"], "found"), 1001U);
  EXPECT_EQ(Number(results["compact"], "threads"), 1U);
  EXPECT_EQ(Out("$B scan db | wc -l"), "1001\n");
}

TEST_F(BenchCli, SizesAreAsAsked) {
  auto results = Bench(
      "db --num 100 --reads 50 --value-size 1000 --batch-size 7 --nexts 4 --memory-budget 8M "
      "--durability power --benchmarks fillbatch,seekrandom");
  EXPECT_EQ(Number(results["fillbatch"], "operations"), 100U);
  EXPECT_EQ(Text(results["fillbatch"], "durability"), "power");
  EXPECT_EQ(Number(results["seekrandom"], "operations"), 50U);
  EXPECT_EQ(Out("$B get db 0000000000000042 --raw | wc -c"), "1000\n");
  EXPECT_NE(Out("$B compact db"), "");
  const json::object table = ParseObject(Out("$B inspect " + OnlyFile(".tbl")));
  const uint64_t stored = Number(table, "bytes");
  EXPECT_GT(stored, 100U * 1000U * 4 / 10) << "values compress to about half";
  EXPECT_LT(stored, 100U * 1000U * 7 / 10);
}

TEST_F(BenchCli, TheSameSeedGivesTheSameRecords) {
  Bench("db --num 500 --seed 7 --benchmarks fillrandom");
  const std::string first = Out("$B dump db");
  Bench("db --num 500 --seed 7 --benchmarks fillrandom");
  EXPECT_EQ(Out("$B dump db"), first);
  Bench("db --num 500 --seed 8 --benchmarks fillrandom");
  EXPECT_NE(Out("$B dump db"), first);
}

TEST_F(BenchCli, ResultsComeInEveryFormat) {
  const std::string bench = "$B bench :memory: --num 300 --benchmarks fillseq,readrandom,fillseq";
  const auto lines = ParseCsv(Out(bench + " --output csv"));
  ASSERT_EQ(lines.size(), 4U);
  const auto objects = ParseLines(Out(bench + " --output json"));
  ASSERT_EQ(objects.size(), 3U);
  std::vector<std::string> names;
  for (const auto& member : objects[0]) names.emplace_back(member.key());
  EXPECT_EQ(lines[0], names);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i + 1].size(), names.size());
    EXPECT_EQ(lines[i + 1][0], Text(objects[i], "workload"));
  }
  EXPECT_EQ(Out(bench + " --output raw | cut -f 1,3"),
            "fillseq\t300\nreadrandom\t300\nfillseq\t300\n");
  const std::string table = Out(bench);
  EXPECT_EQ(table.find("300 records, values of 100 bytes that compress to about half, "), 0U)
      << table;
  EXPECT_NE(table.find("\nworkload "), std::string::npos) << table;
  EXPECT_NE(table.find("  300 of 300\n"), std::string::npos) << table;
}

TEST_F(BenchCli, ADatabaseThatItHasNotMadeIsLeftAlone) {
  EXPECT_EQ(Out("$B put db mine value; mkdir other; touch other/file; touch file"), "");
  ExpectRefused("$B bench db --num 10", 3, "--replace-database");
  ExpectRefused("$B bench db --num 10 --benchmarks readrandom", 3, "--replace-database");
  EXPECT_EQ(Out("$B get db mine"), "value\n");
  ExpectRefused("$B bench other --num 10", 2, "not empty");
  ExpectRefused("$B bench other --num 10 --replace-database", 2, "not empty");
  EXPECT_EQ(Out("ls other"), "file\n");
  ExpectRefused("$B bench file --num 10", 3, "is a file");

  const std::string replace = "$B bench db --num 10 --benchmarks fillseq";
  EXPECT_NE(Out(replace + " --replace-database"), "");
  ExpectRefused("$B get db mine", 1, "mine");
  EXPECT_NE(Out(replace), "") << "this one it has made itself";
  EXPECT_EQ(Out("$B scan db | wc -l"), "10\n");
  const auto held = DB::Open(At("db").string()).value();
  ExpectRefused(replace, 5, "Busy");
}

TEST_F(BenchCli, WorkloadsUseWhatOlderOnesHaveLeft) {
  Bench("db --num 100 --benchmarks fillseq");
  EXPECT_EQ(Number(Bench("db --num 100 --benchmarks readrandom")["readrandom"], "found"), 100U);
  Bench("db --num 100 --benchmarks ycsbload");
  const Outcome outcome = Run("$B bench db --num 100 --benchmarks readrandom --output json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Number(ParseObject(outcome.out), "found"), 0U);
  EXPECT_NE(outcome.err.find("run `fillseq` before it"), std::string::npos) << outcome.err;
  ASSERT_NE(Out("$B compact db"), "") << "other verbs work on it too";
}

TEST_F(BenchCli, MistakesTeach) {
  ExpectRefused("$B bench db --benchmarks fillsq", 2, "there is no workload 'fillsq'; there are ");
  ExpectRefused("$B bench db --num 0", 2, "'0' is not a whole number from 1");
  ExpectRefused("$B bench db --threads 0", 2, "from 1 to 256");
  ExpectRefused("$B bench db --durability fast", 2, "fast");
  ExpectRefused("$B bench db --memory-budget 1k --num 10", 2, "memory_budget");
  ExpectRefused("$B bench", 2, "PATH is required");
  ExpectRefused("$B benhc db", 2, "did you mean `basalt bench`?");
  const std::string help = Out("$B bench --help");
  for (const char* name : {"fillseq", "fillrandom", "fillsync", "fillbatch", "overwrite",
                           "readrandom", "readseq", "readreverse", "readmissing", "seekrandom",
                           "deleterandom", "compact", "ycsbload", "ycsba", "ycsbf"}) {
    EXPECT_NE(help.find("\n  "s + name + " "), std::string::npos) << name;
  }
  EXPECT_FALSE(fs::exists(At("db")));
}

}  // namespace
}  // namespace basalt
