#include "bench/cache_sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "bench/cache_sim/basalt_policy.h"
#include "bench/cache_sim/generated_trace.h"
#include "bench/cache_sim/report.h"

namespace basalt::cache_sim {
namespace {

const PolicyKind& Kind(std::string_view name) {
  return *std::find_if(PolicyKinds().begin(), PolicyKinds().end(),
                       [&](const PolicyKind& kind) { return kind.name == name; });
}

Trace Generate(std::string_view name) {
  const auto kind = std::find_if(TraceKinds().begin(), TraceKinds().end(),
                                 [&](const TraceKind& k) { return k.name == name; });
  return kind->make({20'000, 100'000, 1});
}

TEST(BasaltPolicy, CountsTheBytesThatTheCacheHolds) {
  for (const char* name : {"zipf99", "mixed"}) {
    SCOPED_TRACE(name);
    const Trace trace = Generate(name);
    auto policy = BasaltPolicy::Make(Eviction::kClock, 256 << 10);
    ASSERT_TRUE(policy) << policy.error().ToString();
    for (const Request& request : trace.requests) (*policy)->Access(request.key, request.size);
    uint64_t held_bytes = 0;
    const Status visited =
        (*policy)->cache()->ForEach([&](std::string_view, std::string_view value) {
          held_bytes += value.size();
          return true;
        });
    ASSERT_TRUE(visited.ok()) << visited.ToString();
    EXPECT_GT(held_bytes, 0u);
    EXPECT_EQ((*policy)->held_bytes(), held_bytes);
  }
}

TEST(BasaltPolicy, HitsWhatItHolds) {
  auto policy = BasaltPolicy::Make(Eviction::kS3Fifo, 1 << 20);
  ASSERT_TRUE(policy) << policy.error().ToString();
  EXPECT_FALSE((*policy)->Access(1, 100));
  EXPECT_FALSE((*policy)->Access(2, 100));
  EXPECT_TRUE((*policy)->Access(1, 100));
  EXPECT_EQ((*policy)->held_bytes(), 200u);
}

TEST(Simulation, OursGetsMemoryUntilItHoldsWhatWasAskedFor) {
  for (const char* name : {"zipf99", "mixed"}) {
    SCOPED_TRACE(name);
    const Trace trace = Generate(name);
    for (const char* policy : {"basalt", "basalt-s3"}) {
      SCOPED_TRACE(policy);
      const Result<Figure> figure = Simulation(trace, 0.2).Run(Kind(policy));
      ASSERT_TRUE(figure) << figure.error().ToString();
      EXPECT_NEAR(
          static_cast<double>(figure->held_bytes) / static_cast<double>(trace.footprint_bytes), 0.2,
          0.002);
      EXPECT_LE(figure->Deviation(), kDeviationMax);
      EXPECT_GT(figure->capacity_bytes, figure->held_bytes);
      EXPECT_GE(figure->shards, 1u);
    }
  }
}

TEST(Simulation, OursSaysWhereItCannotBeAsSmallAsAskedFor) {
  const Trace trace = Generate("zipf99");
  const Result<Figure> figure = Simulation(trace, 0.001).Run(Kind("basalt"));
  ASSERT_TRUE(figure) << figure.error().ToString();
  EXPECT_GT(figure->Deviation(), 1);
  EXPECT_NE(TraceTable(trace, {*figure}).find("(asked for: 1334 B) in"), std::string::npos)
      << TraceTable(trace, {*figure});
}

TEST(Simulation, LruIsAsGoodAsLruAndBeladyBetter) {
  const Trace trace = Generate("zipf80");
  Simulation simulation(trace, 0.1);
  const Result<Figure> lru = simulation.Run(Kind("lru"));
  const Result<Figure> belady = simulation.Run(Kind("belady"));
  ASSERT_TRUE(lru && belady);
  EXPECT_EQ(lru->AgainstLru(), 0);
  EXPECT_EQ(lru->held_bytes, trace.footprint_bytes / 10);
  EXPECT_LT(belady->AgainstLru(), -0.1);
  EXPECT_LT(belady->MissRatio(), lru->MissRatio());
}

TEST(Simulation, ByteMissRatioWeighsMissesBySize) {
  TraceBuilder builder("two");
  builder.Add(1, 10);
  builder.Add(2, 90);
  builder.Add(1, 10);
  builder.Add(1, 10);
  const Trace trace = std::move(builder).Finish();
  const Result<Figure> figure = Simulation(trace, 1).Run(Kind("lru"));
  ASSERT_TRUE(figure);
  EXPECT_DOUBLE_EQ(figure->MissRatio(), 0.5);
  EXPECT_DOUBLE_EQ(figure->ByteMissRatio(), 100.0 / 120);
}

Figure Against(const char* policy, const char* trace, uint64_t misses) {
  Figure figure;
  figure.policy = policy;
  figure.trace = trace;
  figure.size = 0.1;
  figure.requests = 2000;
  figure.requested_bytes = 2000;
  figure.misses = misses;
  figure.lru_misses = 1000;
  return figure;
}

TEST(Report, JudgesTheMeanOfCommonTracesAndTheWorstOfAll) {
  EXPECT_TRUE(Judge({Against("basalt", "zipf99", 890), Against("basalt", "loop", 1019),
                     Against("basalt", "heat", 1019), Against("basalt-s3", "zipf99", 919),
                     Against("basalt-s3", "heat", 1900)})
                  .holds);
  const Verdict worst = Judge({Against("basalt", "zipf99", 800), Against("basalt", "heat", 1021),
                               Against("basalt-s3", "zipf99", 920)});
  EXPECT_FALSE(worst.holds);
  EXPECT_NE(worst.text.find("MISSED basalt, worst: +2.1 % misses against LRU (heat at 10 %)"),
            std::string::npos)
      << worst.text;
  EXPECT_FALSE(Judge({Against("basalt", "zipf99", 961), Against("basalt", "heat", 800),
                      Against("basalt-s3", "zipf99", 920)})
                   .holds);
  EXPECT_FALSE(
      Judge({Against("basalt", "zipf99", 900), Against("basalt-s3", "zipf99", 921)}).holds);
  EXPECT_FALSE(Judge({}).holds);
}

TEST(Report, JudgesTheRealS3FifoByTheSimulatedOne) {
  EXPECT_TRUE(Judge({Against("basalt", "zipf99", 890), Against("basalt-s3", "zipf99", 900),
                     Against("s3fifo", "zipf99", 860)})
                  .holds);
  const Verdict verdict =
      Judge({Against("basalt", "zipf99", 890), Against("basalt-s3", "zipf99", 900),
             Against("s3fifo", "zipf99", 840), Against("s3fifo", "scan", 100)});
  EXPECT_FALSE(verdict.holds);
  EXPECT_NE(
      verdict.text.find("MISSED basalt-s3, worst: +7.1 % misses against s3fifo (zipf99 at 10 %)"),
      std::string::npos)
      << verdict.text;
}

TEST(Report, SummaryNamesTheWorstTrace) {
  const std::string table = SummaryTable({Against("sieve", "a", 900), Against("sieve", "b", 1500)});
  EXPECT_NE(table.find("sieve                 +20.0 %    +50.0 %  b at 10 %"), std::string::npos)
      << table;
}

TEST(Report, JsonQuotesTheNamesOfTraces) {
  const std::string json = ToJson({Against("lru", "a \"b\"\n\\", 1000)});
  EXPECT_NE(json.find(R"("trace": "a \"b\"\u000a\\", "requests": 2000,)"), std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("miss_ratio": 0.500000)"), std::string::npos) << json;
}

}  // namespace
}  // namespace basalt::cache_sim
