#include "bench/cache_sim/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/cache_sim/generated_trace.h"
#include "bench/cache_sim/trace_file.h"
#include "bench/cache_sim/zipf.h"

namespace basalt::cache_sim {
namespace {

Result<Trace> Read(const std::string& text) {
  std::istringstream input(text);
  return ReadTrace(input, "requests.csv");
}

std::string ErrorOf(const std::string& text) {
  const Result<Trace> trace = Read(text);
  return trace ? "no error" : trace.error().ToString();
}

TEST(TraceBuilder, NumbersKeysInTheOrderOfTheirFirstAppearance) {
  TraceBuilder builder("a");
  builder.Add(700, 10);
  builder.Add(3, 20);
  builder.Add(700, 10);
  const Trace trace = std::move(builder).Finish();
  EXPECT_EQ(trace.requests, (std::vector<Request>{{0, 10}, {1, 20}, {0, 10}}));
  EXPECT_EQ(trace.key_count, 2u);
  EXPECT_EQ(trace.footprint_bytes, 30u);
  EXPECT_EQ(trace.requested_bytes, 40u);
  EXPECT_FALSE(trace.is_uniform);
}

TEST(Zipf, EachRankComesAsOftenAsItsWeightSays) {
  base::Random random(1);
  const Zipf zipf(100, 1.0);
  std::vector<int> counts(100);
  for (int i = 0; i < 1'000'000; ++i) ++counts.at(zipf(&random));
  EXPECT_NEAR(static_cast<double>(counts[0]) / counts[9], 10, 1);
  EXPECT_NEAR(counts[0] / 1e6, 1 / 5.187, 0.002);  // 5.187 is the sum of 1/1 .. 1/100.
  EXPECT_GT(counts[99], 0);
}

TEST(GeneratedTrace, SameSeedGivesTheSameRequestsAndAnotherSeedOthers) {
  for (const TraceKind& kind : TraceKinds()) {
    SCOPED_TRACE(kind.name);
    const TraceShape shape{1000, 20'000, 7};
    const Trace trace = kind.make(shape);
    EXPECT_EQ(trace.name, kind.name);
    EXPECT_EQ(trace.requests.size(), 20'000u);
    EXPECT_EQ(trace.requests, kind.make(shape).requests);
    if (kind.name != "loop") {
      EXPECT_NE(trace.requests, kind.make({1000, 20'000, 8}).requests);
    }
  }
}

TEST(GeneratedTrace, SixAreCommon) {
  std::set<std::string_view> common;
  for (const TraceKind& kind : TraceKinds()) {
    if (kind.is_common) common.insert(kind.name);
  }
  EXPECT_EQ(common,
            (std::set<std::string_view>{"zipf80", "zipf99", "drift", "scan", "loop", "mixed"}));
}

Trace Generate(std::string_view name, const TraceShape& shape) {
  const auto kind = std::find_if(TraceKinds().begin(), TraceKinds().end(),
                                 [&](const TraceKind& k) { return k.name == name; });
  return kind->make(shape);
}

TEST(GeneratedTrace, ALoopAsksForEachKeyInTurn) {
  const Trace trace = Generate("loop", {1000, 5000, 1});
  for (size_t i = 0; i < trace.requests.size(); ++i) ASSERT_EQ(trace.requests[i].key, i % 1000);
}

TEST(GeneratedTrace, AFifthOfAScanTraceIsReadOnce) {
  const Trace trace = Generate("scan", {1000, 200'000, 1});
  EXPECT_NEAR(trace.key_count - 1000.0, 40'000, 4000);
}

TEST(GeneratedTrace, MixedSizesAreLogUniform) {
  const Trace trace = Generate("mixed", {10'000, 100'000, 1});
  std::set<uint32_t> seen;
  int below_256 = 0;
  for (const Request& request : trace.requests) {
    ASSERT_GE(request.size, 16u);
    ASSERT_LT(request.size, 4096u);
    if (seen.insert(request.key).second && request.size < 256) ++below_256;
  }
  EXPECT_NEAR(below_256, trace.key_count / 2.0, trace.key_count * 0.03);
}

TEST(GeneratedTrace, ADriftMakesEachKeyTheMostPopularInTurn) {
  for (const char* name : {"drift", "heat"}) {
    SCOPED_TRACE(name);
    const Trace trace = Generate(name, {100, 1000, 1});
    EXPECT_EQ(trace.key_count, 100u);
  }
}

TEST(TraceFile, TakesCommasTabsAndBlanksAndSkipsComments) {
  const Result<Trace> trace = Read(
      "# key,size\n"
      "user:1,100\n"
      "\n"
      "user:2 , 200\r\n"
      "user:1\t100\n"
      "  user:3   7\n"
      "user:4");
  ASSERT_TRUE(trace) << trace.error().ToString();
  EXPECT_EQ(trace->requests, (std::vector<Request>{{0, 100}, {1, 200}, {0, 100}, {2, 7}, {3, 1}}));
}

TEST(TraceFile, NamesTheLineOfAFault) {
  EXPECT_EQ(ErrorOf("a,1\n\nb,big\n"),
            "InvalidArgument: requests.csv, line 3: 'big' is not a size: a number of bytes is; a "
            "line is key, or key,size");
  EXPECT_NE(ErrorOf("a,1\nb,0\n").find("line 2: size 0 is not between"), std::string::npos);
  EXPECT_NE(ErrorOf("a,4294967296").find("line 1: size 4294967296 is not between"),
            std::string::npos);
  EXPECT_NE(ErrorOf("a,-1").find("line 1: '-1' is not a size"), std::string::npos);
  EXPECT_NE(ErrorOf("a,1,2").find("line 1: '1,2' is not a size"), std::string::npos);
  EXPECT_NE(ErrorOf(",1").find("line 1: the key is missing"), std::string::npos);
  EXPECT_NE(ErrorOf("a,\n").find("line 1: the size after the comma is missing"), std::string::npos);
}

TEST(TraceFile, RefusesAnEmptyTraceAndAFileThatIsNotThere) {
  EXPECT_EQ(ErrorOf("# nothing\n"), "InvalidArgument: requests.csv: has no requests");
  const Result<Trace> trace = ReadTraceFile("no/such/file");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().ToString(), "IoError: open no/such/file: No such file or directory");
}

}  // namespace
}  // namespace basalt::cache_sim
