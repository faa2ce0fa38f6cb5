#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "basalt/vector_index.h"
#include "base/random.h"
#include "vector/index_core.h"
#include "vector/test_vectors.h"

// Searches beside writers, through two indexes over one keyspace.

namespace basalt::vector {
namespace {

constexpr size_t kStressDimension = 6;

std::vector<float> StressVector(base::Random* random) {
  std::vector<float> vector(kStressDimension);
  for (float& element : vector) element = static_cast<float>(Gaussian(random));
  return vector;
}

TEST(VectorIndexThreads, ASearchSeesOneMomentBesideWriters) {
#if defined(__SANITIZE_THREAD__)
  constexpr int kTurns = 250;
#else
  constexpr int kTurns = 1'500;
#endif
  // Every writer has pairs, in a group of their own. A commit moves the first of a pair, or both;
  // it gives both the same version. The number of a writer's vectors never changes.
  constexpr int kPairs = 150;
  constexpr int kWriters = 2;
  const auto db = DB::Open(":memory:").value();
  const RowSet::Options small{.graph_rows_min = 300};
  const VectorIndexOptions options{.dimension = kStressDimension, .metric = VectorMetric::kL2};
  const auto first = IndexAccess::Make(IndexCore::Create(db.get(), "v", options, small).value());
  const auto second = IndexAccess::Make(IndexCore::Open(db.get(), "v", options, small).value());
  const auto id_of = [](int writer, int pair, int half) {
    return std::to_string(writer) + '/' + std::to_string(pair) + '/' + std::to_string(half);
  };

  std::atomic<int> running{kWriters};
  const auto write = [&](int writer, VectorIndex* index) {
    base::Random random(static_cast<uint64_t>(writer) + 1);
    for (int turn = 0; turn < kTurns; ++turn) {
      const int pair = turn < kPairs ? turn : static_cast<int>(random.Below(kPairs));
      std::vector<VectorItem> items;
      for (int half = 0; half < 2; ++half) {
        items.push_back({id_of(writer, pair, half),
                         StressVector(&random),
                         {{"pair", pair}, {"version", turn}, {"writer", writer}}});
      }
      EXPECT_TRUE(index->AddBatch(items));
      // A write that has returned is found, by either index.
      for (const VectorIndex* reader : {first.get(), second.get()}) {
        const auto found = reader->Search(items[0].vector, {.k = 1}).value();
        EXPECT_EQ(found.hits.size(), 1u);
        EXPECT_EQ(found.hits[0].id, items[0].id) << VectorSearchPathName(found.plan.path);
      }
      // An odd one that comes and goes.
      const std::vector<float> brief = StressVector(&random);
      const std::string id = "brief" + std::to_string(writer);
      EXPECT_TRUE(index->Add(id, brief));
      EXPECT_TRUE(index->Remove(id));
      for (const VectorHit& hit : index->Search(brief).value().hits) EXPECT_NE(hit.id, id);
    }
    running.fetch_sub(1);
  };
  const auto search = [&](const VectorIndex* index, uint64_t seed) {
    base::Random random(seed);
    while (running.load() != 0) {
      const int writer = static_cast<int>(random.Below(kWriters));
      const int pair = static_cast<int>(random.Below(kPairs));
      VectorSearchOptions of_pair{.k = 10, .with_attributes = true};
      std::string expression = "pair == " + std::to_string(pair);
      expression += " and writer == " + std::to_string(writer);
      of_pair.filter = random.OneIn(2)
                           ? VectorFilter::Parse(expression).value()
                           : VectorFilter::Ids({id_of(writer, pair, 0), id_of(writer, pair, 1)});
      of_pair.exact = random.OneIn(8);
      const auto found = index->Search(StressVector(&random), of_pair);
      ASSERT_TRUE(found) << found.status().ToString();
      // Both or none, and of one version.
      ASSERT_NE(found->hits.size(), 1u) << VectorSearchPathName(found->plan.path);
      ASSERT_LE(found->hits.size(), 2u);
      if (!found->hits.empty()) {
        ASSERT_EQ(found->hits[0].attributes.at("version"), found->hits[1].attributes.at("version"));
      }
      const auto nearest = index->Search(StressVector(&random), {.k = 20});
      ASSERT_TRUE(nearest) << nearest.status().ToString();
      ASSERT_GE(index->Count().value() + 2, nearest->hits.size());
    }
  };
  const auto save = [&] {
    while (running.load() != 0) {
      EXPECT_TRUE(first->SaveCheckpoint().ok());
      EXPECT_TRUE(first->Compact().ok());
      EXPECT_TRUE(IndexCore::Open(db.get(), "v", {}, small).has_value());
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(write, 0, first.get());
  threads.emplace_back(write, 1, second.get());
  threads.emplace_back(search, first.get(), 10);
  threads.emplace_back(search, second.get(), 11);
  threads.emplace_back(save);
  for (std::thread& thread : threads) thread.join();

  for (const VectorIndex* index : {first.get(), second.get()}) {
    EXPECT_EQ(index->Count().value(), uint64_t{2} * kPairs * kWriters);
    EXPECT_GT(index->Stats().linked, 100u);
    EXPECT_EQ(
        index->Search(std::vector<float>(kStressDimension), {.k = 10'000}).value().hits.size(),
        size_t{2} * kPairs * kWriters);
  }
}

}  // namespace
}  // namespace basalt::vector
