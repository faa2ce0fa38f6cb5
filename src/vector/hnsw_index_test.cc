#include "vector/hnsw_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_memory.h"
#include "base/test_memory_operators.h"
#include "vector/test_rows.h"

namespace basalt::vector {
namespace {

// An index, and its vectors.
struct World {
  World(VectorMetric metric, size_t dimension, const std::vector<std::vector<float>>& sample,
        uint64_t seed = 7)
      : rows(metric, dimension) {
    std::vector<float> flat;
    for (const auto& vector : sample) flat.insert(flat.end(), vector.begin(), vector.end());
    index = std::make_unique<HnswIndex>(
        CodeBook::Fit(metric, dimension, seed, flat.data(), sample.size()).value());
  }

  uint32_t Add(const std::vector<float>& vector) {
    const uint32_t slot = index->Add(vector.data()).value();
    rows.Put(slot, vector);
    return slot;
  }
  void Remove(uint32_t slot) {
    EXPECT_TRUE(index->Remove(slot).ok());
    rows.Erase(slot);
  }
  SearchResult Search(const std::vector<float>& query, const SearchRequest& request = {}) const {
    return index->Search(query.data(), request, TestRows::Source(&rows, &query)).value();
  }
  void ExpectSound() const {
    const GraphAudit audit = index->Audit().value();
    EXPECT_EQ(audit.fault, "");
    EXPECT_EQ(audit.reachable, audit.nodes);
  }

  TestRows rows;
  std::unique_ptr<HnswIndex> index;
};

std::vector<std::vector<float>> Draw(Clusters* clusters, size_t count) {
  std::vector<std::vector<float>> vectors;
  for (size_t i = 0; i < count; ++i) vectors.push_back(clusters->Next());
  return vectors;
}

// Of the k nearest, how many are found. Any that is as near as the k-th counts.
template <class Passes>
double Recall(const World& world, const std::vector<std::vector<float>>& queries,
              const SearchRequest& request, const Passes& passes) {
  size_t found = 0;
  size_t wanted = 0;
  for (const auto& query : queries) {
    const std::vector<SearchHit> exact = world.rows.Exact(query, request.k, passes);
    wanted += exact.size();
    const SearchResult result = world.Search(query, request);
    EXPECT_EQ(result.hits.size(), exact.size());
    std::set<uint32_t> slots;
    for (const SearchHit& hit : result.hits) {
      EXPECT_TRUE(world.rows.Has(hit.slot) && passes(hit.slot)) << hit.slot;
      EXPECT_TRUE(slots.insert(hit.slot).second) << hit.slot;
      EXPECT_EQ(hit.distance, world.rows.Distance(query, hit.slot));
      found += static_cast<size_t>(hit.distance <= exact.back().distance);
    }
    EXPECT_TRUE(std::ranges::is_sorted(result.hits, {}, &SearchHit::distance));
  }
  return static_cast<double>(found) / static_cast<double>(wanted);
}

double Recall(const World& world, const std::vector<std::vector<float>>& queries,
              const SearchRequest& request = {}) {
  return Recall(world, queries, request, [](uint32_t) { return true; });
}

TEST(HnswIndex, FindsNearlyAllThatExactSearchFinds) {
  base::Random random(1);
  Clusters clusters(200, 32, 0.5, &random);
  const auto vectors = Draw(&clusters, 6'000);
  const auto queries = Draw(&clusters, 60);
  for (const VectorMetric metric :
       {VectorMetric::kL2, VectorMetric::kCosine, VectorMetric::kInnerProduct}) {
    World world(metric, 32, {vectors.begin(), vectors.begin() + 1'000});
    for (const auto& vector : vectors) world.Add(vector);
    world.ExpectSound();
    SearchRequest request;
    request.ef = 60;
    EXPECT_GT(Recall(world, queries, request), 0.98) << static_cast<int>(metric);
    EXPECT_EQ(world.Search(queries[0], request).path, SearchResult::Path::kWalk);
    request.scans = true;
    EXPECT_GT(Recall(world, queries, request), 0.995) << static_cast<int>(metric);
    EXPECT_EQ(world.Search(queries[0], request).path, SearchResult::Path::kScan);
  }
}

TEST(HnswIndex, OfFewVectorsIsScanned) {
  base::Random random(2);
  Clusters clusters(10, 20, 0.5, &random);
  World world(VectorMetric::kL2, 20, Draw(&clusters, 100));
  const auto query = clusters.Next();
  EXPECT_TRUE(world.Search(query).hits.empty());
  const uint32_t slot = world.Add(clusters.Next());
  EXPECT_EQ(world.Search(query).hits.size(), 1u);
  EXPECT_EQ(world.Search(query).hits[0].slot, slot);
  for (int i = 0; i < 200; ++i) world.Add(clusters.Next());
  const SearchResult result = world.Search(query);
  EXPECT_EQ(result.path, SearchResult::Path::kScan);
  EXPECT_EQ(result.hits.size(), 10u);
}

TEST(HnswIndex, FilteredSearchFindsAsManyAsThereAre) {
  base::Random random(3);
  Clusters clusters(100, 16, 0.6, &random);
  World world(VectorMetric::kL2, 16, Draw(&clusters, 500));
  constexpr size_t kVectors = 10'000;
  for (size_t i = 0; i < kVectors; ++i) world.Add(clusters.Next());
  const auto queries = Draw(&clusters, 20);
  for (const double share : {0.5, 0.1, 0.01, 0.0007, 0.0}) {
    for (const bool is_correlated : {false, true}) {
      // At random, or all on one side.
      std::vector<uint64_t> bits(kVectors / 64 + 1);
      std::vector<std::pair<float, uint32_t>> order;
      for (uint32_t slot = 0; slot < kVectors; ++slot) {
        const float key =
            is_correlated ? world.rows.At(slot)[0] : static_cast<float>(random.NextDouble());
        order.emplace_back(key, slot);
      }
      std::ranges::sort(order);
      order.resize(static_cast<size_t>(share * kVectors));
      for (const auto& [key, slot] : order) bits[slot / 64] |= uint64_t{1} << (slot % 64);
      const auto passes = [&](uint32_t slot) { return (bits[slot / 64] >> (slot % 64) & 1) != 0; };
      SCOPED_TRACE(testing::Message() << share << (is_correlated ? ", on one side" : ""));
      SearchRequest by_bits;
      by_bits.filter.bits = bits;
      by_bits.filter.has_bits = true;
      SearchRequest by_function;
      by_function.filter.predicate = passes;
      if (order.empty()) {
        EXPECT_TRUE(world.Search(queries[0], by_bits).hits.empty());
        EXPECT_TRUE(world.Search(queries[0], by_function).hits.empty());
        continue;
      }
      EXPECT_GT(Recall(world, queries, by_bits, passes), 0.97);
      EXPECT_GT(Recall(world, queries, by_function, passes), 0.97);
    }
  }
}

TEST(HnswIndex, RadiusSearchFindsAllWithin) {
  base::Random random(4);
  Clusters clusters(50, 24, 0.4, &random);
  for (const VectorMetric metric :
       {VectorMetric::kL2, VectorMetric::kCosine, VectorMetric::kInnerProduct}) {
    World world(metric, 24, Draw(&clusters, 500));
    for (int i = 0; i < 8'000; ++i) world.Add(clusters.Next());
    for (const size_t within : {1u, 5u, 40u, 300u}) {
      const auto query = clusters.Next();
      const auto exact = world.rows.Exact(query, within);
      SearchRequest request;
      request.k = 0;
      request.max_distance = static_cast<double>(exact[within - 1].distance);
      const auto all = world.Search(query, request).hits;
      for (const SearchHit& hit : all) {
        EXPECT_LE(hit.distance, exact[within - 1].distance);
      }
      EXPECT_GE(static_cast<double>(all.size()), 0.97 * static_cast<double>(within));
      EXPECT_LE(all.size(), within);
      request.k = 3;
      EXPECT_EQ(world.Search(query, request).hits.size(), std::min<size_t>(3, within));
    }
  }
}

TEST(HnswIndex, SearchWithoutNumberOrDistanceIsRefused) {
  World world(VectorMetric::kL2, 2, {{1, 2}});
  const std::vector<float> query = {0, 0};
  SearchRequest request;
  request.k = 0;
  EXPECT_EQ(world.index->Search(query.data(), request, TestRows::Source(&world.rows, &query))
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(HnswIndex, RemovedVectorsAreNotFoundAndTheirSlotsAreUsedAgain) {
  base::Random random(5);
  Clusters clusters(40, 16, 0.5, &random);
  World world(VectorMetric::kL2, 16, Draw(&clusters, 500));
  for (int i = 0; i < 6'000; ++i) world.Add(clusters.Next());
  std::vector<uint32_t> removed;
  for (uint32_t slot = 0; slot < 6'000; slot += 3) removed.push_back(slot);
  for (const uint32_t slot : removed) world.Remove(slot);
  EXPECT_EQ(world.index->Remove(removed[0]).code(), StatusCode::kNotFound);
  EXPECT_EQ(world.index->Remove(9'999'999).code(), StatusCode::kNotFound);
  EXPECT_EQ(world.index->size(), 4'000u);
  EXPECT_EQ(world.index->Stats().removed, 2'000u);
  const auto queries = Draw(&clusters, 50);
  EXPECT_GT(Recall(world, queries), 0.95);  // Which looks for removed ones, too.

  ASSERT_TRUE(world.index->Repair().ok());
  world.ExpectSound();
  EXPECT_EQ(world.index->Audit().value().nodes, 4'000u);
  EXPECT_EQ(world.index->Stats().removed, 0u);
  EXPECT_EQ(world.index->Stats().free, 2'000u);
  EXPECT_GT(Recall(world, queries), 0.95);

  std::set<uint32_t> used_again;
  for (int i = 0; i < 2'000; ++i) used_again.insert(world.Add(clusters.Next()));
  EXPECT_EQ(used_again, std::set<uint32_t>(removed.begin(), removed.end()));
  EXPECT_EQ(world.index->slots(), 6'000u);
  world.ExpectSound();
  EXPECT_GT(Recall(world, queries), 0.95);
}

TEST(HnswIndex, WhereAWholeRegionIsRemovedTheRestIsFound) {
  base::Random random(6);
  World world(VectorMetric::kL2, 8, {{-10, 0, 0, 0, 0, 0, 0, 0}, {10, 0, 0, 0, 0, 0, 0, 0}});
  std::vector<uint32_t> left;
  for (int i = 0; i < 5'000; ++i) {
    std::vector<float> vector(8);
    for (float& x : vector) x = static_cast<float>(Gaussian(&random));
    vector[0] += i % 2 == 0 ? -10.0F : 10.0F;
    const uint32_t slot = world.Add(vector);
    if (i % 2 == 0) left.push_back(slot);
  }
  for (const uint32_t slot : left) world.Remove(slot);
  // Far from all that is left.
  const std::vector<float> query = {-10, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_GT(Recall(world, {query}), 0.95);
  ASSERT_TRUE(world.index->Repair().ok());
  world.ExpectSound();
  EXPECT_GT(Recall(world, {query}), 0.95);
  for (const uint32_t slot : world.rows.Slots()) world.Remove(slot);
  ASSERT_TRUE(world.index->Repair().ok());
  world.ExpectSound();
  EXPECT_TRUE(world.Search(query).hits.empty());
  world.Add(query);
  EXPECT_EQ(world.Search(query).hits.size(), 1u);
  world.ExpectSound();
}

TEST(HnswIndex, CopiesOfOneVectorDoNotHideTheOthers) {
  base::Random random(7);
  Clusters clusters(100, 16, 0.5, &random);
  World with(VectorMetric::kL2, 16, Draw(&clusters, 500));
  World without(VectorMetric::kL2, 16, Draw(&clusters, 500));
  const auto copied = clusters.Next();
  std::vector<uint32_t> copies;
  for (int i = 0; i < 9'000; ++i) {
    const auto vector = clusters.Next();
    with.Add(vector);
    without.Add(vector);
    if (i % 3 == 0) copies.push_back(with.Add(copied));
  }
  with.ExpectSound();
  EXPECT_EQ(with.index->Audit().value().duplicates, 2'999u);
  std::vector<std::vector<float>> queries = Draw(&clusters, 50);
  SearchRequest request;
  request.ef = 80;
  EXPECT_GT(Recall(with, queries, request), Recall(without, queries, request) - 0.02);

  // Copies are found, and so is what lies behind them.
  request.k = 3'010;
  EXPECT_EQ(with.Search(copied, request).hits.size(), 3'010u);
  request.k = 20;
  request.filter.predicate = [&](uint32_t slot) { return slot == copies[1'500]; };
  ASSERT_EQ(with.Search(copied, request).hits.size(), 1u);
  EXPECT_EQ(with.Search(copied, request).hits[0].slot, copies[1'500]);
  request.filter = {};

  // The first of them is the node: it is removed with some others, then all are.
  for (size_t i = 0; i < copies.size(); i += 2) with.Remove(copies[i]);
  EXPECT_EQ(with.Search(copied, request).hits.size(), 20u);
  EXPECT_GT(Recall(with, {copied}, request), 0.95);
  ASSERT_TRUE(with.index->Repair().ok());
  with.ExpectSound();
  EXPECT_EQ(with.index->Stats().removed, 1u);  // The node, as long as others need it.
  EXPECT_GT(Recall(with, {copied}, request), 0.95);
  for (size_t i = 1; i < copies.size(); i += 2) with.Remove(copies[i]);
  ASSERT_TRUE(with.index->Repair().ok());
  with.ExpectSound();
  EXPECT_EQ(with.index->Stats().removed, 0u);
  EXPECT_EQ(with.index->Stats().free, copies.size());
  EXPECT_GT(Recall(with, queries, request), 0.95);
}

// Thousands of vectors as good as equal: their links would all stay among them.
TEST(HnswIndex, TightClustersAreReachedAndLeft) {
  base::Random random(8);
  Clusters wide(60, 16, 0.5, &random);
  World world(VectorMetric::kL2, 16, Draw(&wide, 500));
  std::vector<std::vector<float>> centres = Draw(&wide, 3);
  for (int i = 0; i < 3'000; ++i) {
    world.Add(wide.Next());
    auto vector = centres[static_cast<size_t>(i) % centres.size()];
    for (float& x : vector) x += static_cast<float>(0.05 * Gaussian(&random));
    world.Add(vector);
  }
  world.ExpectSound();
  EXPECT_GT(Recall(world, Draw(&wide, 50)), 0.95);
  EXPECT_GT(Recall(world, centres), 0.9);
}

// All have the same nearest neighbour, whose links cannot hold them.
TEST(HnswIndex, HubIsReachedFromAll) {
  base::Random random(9);
  constexpr size_t kDimension = 64;
  World world(VectorMetric::kL2, kDimension,
              {std::vector<float>(kDimension, 1.0F), std::vector<float>(kDimension, -1.0F)});
  world.Add(std::vector<float>(kDimension, 0.0F));
  for (int i = 0; i < 2'000; ++i) {
    std::vector<float> vector(kDimension);
    double square = 0;
    for (float& x : vector) {
      x = static_cast<float>(Gaussian(&random));
      square += static_cast<double>(x) * static_cast<double>(x);
    }
    for (float& x : vector) x = static_cast<float>(8 * static_cast<double>(x) / std::sqrt(square));
    world.Add(vector);
  }
  world.ExpectSound();
  world.Remove(0);
  ASSERT_TRUE(world.index->Repair().ok());
  world.ExpectSound();
}

TEST(HnswIndex, ChurnCostsNoRecallAndStrandsNothing) {
  base::Random random(10);
  Clusters clusters(100, 16, 0.6, &random);
  const auto sample = Draw(&clusters, 500);
  World world(VectorMetric::kL2, 16, sample);
  constexpr size_t kVectors = 3'000;
  for (size_t i = 0; i < kVectors; ++i) world.Add(clusters.Next());
  const uint32_t slots_before = world.index->slots();
  // Half are replaced, ten times, a twentieth at a time.
  for (int turn = 0; turn < 100; ++turn) {
    for (size_t i = 0; i < kVectors / 20; ++i) {
      const std::vector<uint32_t> some = {static_cast<uint32_t>(random.Below(slots_before))};
      if (!world.rows.Has(some[0])) continue;
      world.Remove(some[0]);
      world.Add(clusters.Next());
    }
    ASSERT_TRUE(world.index->Repair().ok());
  }
  world.ExpectSound();
  EXPECT_LE(world.index->slots(), kVectors * 11 / 10);
  World fresh(VectorMetric::kL2, 16, sample);
  std::vector<std::vector<float>> kept;
  for (const uint32_t slot : world.rows.Slots()) kept.push_back(world.rows.At(slot));
  for (const auto& vector : kept) fresh.Add(vector);
  const auto queries = Draw(&clusters, 300);
  SearchRequest request;
  request.ef = 30;
  const double churned = Recall(world, queries, request);
  const double built = Recall(fresh, queries, request);
  EXPECT_GT(churned, built - 0.005) << "a fresh build has " << built;
  // Each finds itself.
  size_t lost = 0;
  request.k = 1;
  for (const uint32_t slot : world.rows.Slots()) {
    lost += static_cast<size_t>(world.Search(world.rows.At(slot), request).hits[0].slot != slot);
  }
  EXPECT_LE(lost, 2u);
}

TEST(HnswIndex, RowsThatTheSourceRefusesAreMadeUpFor) {
  base::Random random(11);
  Clusters clusters(30, 16, 0.5, &random);
  World world(VectorMetric::kL2, 16, Draw(&clusters, 500));
  for (int i = 0; i < 9'000; ++i) world.Add(clusters.Next());
  // Not known to the index yet: only one in a hundred is to be seen.
  for (uint32_t slot = 0; slot < 9'000; ++slot) {
    if (slot % 100 != 0) world.rows.Erase(slot);
  }
  for (const auto& query : Draw(&clusters, 10)) {
    EXPECT_EQ(world.Search(query).hits.size(), 10u);
    EXPECT_GT(Recall(world, {query}), 0.7);
  }
}

TEST(HnswIndex, AnErrorOfTheSourceIsReturned) {
  class Broken : public RowSource {
   public:
    Status Distances(std::span<const uint32_t>, float*) const override {
      return Status(StatusCode::kIoError, "the disk is gone");
    }
  };
  World world(VectorMetric::kL2, 2, {{1, 2}});
  world.Add({3, 4});
  const std::vector<float> query = {0, 0};
  const auto broken = world.index->Search(query.data(), {}, Broken());
  EXPECT_EQ(broken.error().message(), "the disk is gone");
}

TEST(HnswIndex, TheSameInsertionsGiveTheSameAnswers) {
  base::Random random(12);
  Clusters clusters(50, 16, 0.6, &random);
  const auto vectors = Draw(&clusters, 6'000);
  World a(VectorMetric::kL2, 16, {vectors.begin(), vectors.begin() + 500});
  World b(VectorMetric::kL2, 16, {vectors.begin(), vectors.begin() + 500});
  for (const auto& vector : vectors) EXPECT_EQ(a.Add(vector), b.Add(vector));
  SearchRequest request;
  request.ef = 10;
  for (const auto& query : Draw(&clusters, 100)) {
    const auto hits = a.Search(query, request).hits;
    const auto others = b.Search(query, request).hits;
    ASSERT_EQ(hits.size(), others.size());
    for (size_t i = 0; i < hits.size(); ++i) EXPECT_EQ(hits[i].slot, others[i].slot);
  }
}

TEST(HnswIndex, WithoutMemoryAnAddChangesNothing) {
  base::Random random(13);
  Clusters clusters(20, 16, 0.5, &random);
  const auto sample = Draw(&clusters, 300);
  base::EachAllocation each({.later_stride = 5});
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    World world(VectorMetric::kL2, 16, sample);
    for (const auto& vector : sample) world.Add(vector);
    const auto vector = clusters.Next();
    const Status added = each.Call([&] { return world.index->Add(vector.data()).status(); });
    if (!added.ok()) {
      EXPECT_EQ(added.code(), StatusCode::kResourceExhausted);
      EXPECT_EQ(world.index->size(), sample.size());
    }
    world.Add(vector);
    world.ExpectSound();
    EXPECT_EQ(world.Search(vector).hits[0].distance, 0);
  }
}

TEST(HnswIndex, WithoutMemoryARepairIsFinishedByTheNext) {
  base::Random random(14);
  Clusters clusters(20, 16, 0.5, &random);
  const auto sample = Draw(&clusters, 300);
  base::EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    World world(VectorMetric::kL2, 16, sample);
    for (const auto& vector : sample) world.Add(vector);
    for (uint32_t slot = 0; slot < 300; slot += 2) world.Remove(slot);
    const Status repaired = each.Call([&] { return world.index->Repair(); });
    if (!repaired.ok()) {
      EXPECT_EQ(repaired.code(), StatusCode::kResourceExhausted);
      EXPECT_EQ(world.Search(sample[1]).hits.size(), 10u);
      ASSERT_TRUE(world.index->Repair().ok());
    }
    world.ExpectSound();
    EXPECT_EQ(world.index->Stats().free, 150u);
    EXPECT_EQ(world.index->Stats().removed, 0u);
  }
}

}  // namespace
}  // namespace basalt::vector
