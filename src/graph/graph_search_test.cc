// Searches of random graphs against plain algorithms over a matrix of all edges.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "basalt/graph.h"
#include "basalt/memtable.h"
#include "base/random.h"

namespace basalt::graph {
namespace {

constexpr size_t kNodes = 12;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// weight[a][b] is that of the edge from a to b; 0: there is none.
using Matrix = std::array<std::array<double, kNodes>, kNodes>;

class GraphSearchTest : public testing::Test {
 protected:
  /// Edges of type x, with noise of type y, which the filters of the tests leave out.
  void Make(uint64_t seed) {
    table_ = MemTable::Create({.memory_budget = 4 << 20}).value();
    graph_ = Graph::Open(table_.get()).value();
    base::Random random(seed);
    ids_.clear();
    for (size_t i = 0; i < kNodes; ++i) ids_.push_back(graph_->PutNode(Name(i)).value());
    weights_ = {};
    for (uint64_t edges = random.Between(5, 30); edges > 0; --edges) {
      const size_t from = random.Below(kNodes);
      const size_t to = random.Below(kNodes);
      weights_[from][to] = static_cast<double>(random.Between(1, 5));
      Put(from, "x", to, weights_[from][to]);
      Put(random.Below(kNodes), "y", random.Below(kNodes), 0.5);
    }
    view_ = std::make_unique<GraphView>(graph_->Read().value());
  }
  void TearDown() override { view_.reset(); }

  static std::string Name(size_t i) { return "n" + std::to_string(i); }
  void Put(size_t from, std::string_view type, size_t to, double weight) {
    ASSERT_TRUE(graph_->PutEdge({Name(from), type, Name(to)}, {.weight = weight}).ok());
  }
  size_t IndexOf(NodeId id) const {
    return static_cast<size_t>(std::ranges::find(ids_, id) - ids_.begin());
  }

  /// Costs from `from` by Bellman and Ford's algorithm.
  std::vector<double> CostsFrom(size_t from, bool weighted) const {
    std::vector<double> costs(kNodes, kNever);
    costs[from] = 0;
    for (size_t round = 0; round < kNodes; ++round) {
      ForEachEdge([&](size_t a, size_t b, double weight) {
        costs[b] = std::min(costs[b], costs[a] + (weighted ? weight : 1));
      });
    }
    return costs;
  }
  void ForEachEdge(const std::function<void(size_t, size_t, double)>& visit) const {
    for (size_t a = 0; a < kNodes; ++a) {
      for (size_t b = 0; b < kNodes; ++b) {
        if (weights_[a][b] > 0) visit(a, b, weights_[a][b]);
      }
    }
  }
  size_t CountPaths(std::vector<size_t>* path, size_t to, uint32_t hops) const {
    if (path->back() == to) return 1;
    if (hops == 0) return 0;
    size_t count = 0;
    for (size_t next = 0; next < kNodes; ++next) {
      if (weights_[path->back()][next] == 0 || std::ranges::count(*path, next) > 0) continue;
      path->push_back(next);
      count += CountPaths(path, to, hops - 1);
      path->pop_back();
    }
    return count;
  }

  void ExpectPath(const Path& path, size_t from, size_t to, double cost, bool weighted) const {
    ASSERT_EQ(path.nodes.size(), path.edges.size() + 1);
    EXPECT_EQ(path.nodes.front(), ids_[from]);
    EXPECT_EQ(path.nodes.back(), ids_[to]);
    double sum = 0;
    for (size_t i = 0; i < path.edges.size(); ++i) {
      const double weight = weights_[IndexOf(path.nodes[i])][IndexOf(path.nodes[i + 1])];
      EXPECT_EQ(path.edges[i].node, path.nodes[i + 1]);
      EXPECT_EQ(path.edges[i].weight, weight);
      sum += weighted ? weight : 1;
    }
    EXPECT_EQ(path.cost, cost);
    EXPECT_EQ(sum, cost);
  }

  const EdgeFilter x_ = {.types = {"x"}};
  std::unique_ptr<MemTable> table_;
  std::unique_ptr<Graph> graph_;
  std::vector<NodeId> ids_;
  Matrix weights_{};
  std::unique_ptr<GraphView> view_;
};

TEST_F(GraphSearchTest, FindsWhatPlainAlgorithmsFind) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed);
    for (size_t from = 0; from < kNodes; ++from) {
      const std::vector<double> hops = CostsFrom(from, false);
      const std::vector<double> costs = CostsFrom(from, true);
      for (uint32_t bound : {0u, 2u, 20u}) {
        std::map<size_t, uint32_t> found;
        for (const NodeDistance& each : view_->KHop(ids_[from], bound, x_).value().nodes) {
          EXPECT_TRUE(found.emplace(IndexOf(each.node), each.hops).second);
        }
        for (size_t to = 0; to < kNodes; ++to) {
          EXPECT_EQ(found.contains(to), hops[to] <= bound);
          if (!found.contains(to)) continue;
          EXPECT_EQ(found[to], hops[to]);
        }
      }
      for (size_t to = 0; to < kNodes; ++to) {
        for (const bool weighted : {false, true}) {
          const double cost = weighted ? costs[to] : hops[to];
          const auto result = view_->ShortestPath(ids_[from], ids_[to], x_, weighted).value();
          ASSERT_EQ(result.paths.size(), cost < kNever ? 1u : 0u);
          EXPECT_FALSE(result.truncated);
          if (cost < kNever) ExpectPath(result.paths[0], from, to, cost, weighted);
        }
        std::vector<size_t> path = {from};
        const auto result = view_->Paths(ids_[from], ids_[to], 4, 10'000, x_).value();
        EXPECT_EQ(result.paths.size(), CountPaths(&path, to, 4));
        double cost = 0;
        for (const Path& each : result.paths) {
          EXPECT_LE(cost, each.cost);
          cost = each.cost;
          ExpectPath(each, from, to, cost, false);
        }
      }
    }
  }
}

TEST_F(GraphSearchTest, ComponentsAreThoseOfPlainUnions) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed);
    std::vector<size_t> least(kNodes);
    std::iota(least.begin(), least.end(), size_t{0});
    for (size_t round = 0; round < kNodes; ++round) {
      ForEachEdge(
          [&](size_t a, size_t b, double) { least[a] = least[b] = std::min(least[a], least[b]); });
    }
    const auto result = view_->ConnectedComponents(x_).value();
    ASSERT_EQ(result.components.size(), kNodes);
    for (const auto& [node, first] : result.components) {
      EXPECT_EQ(IndexOf(first), least[IndexOf(node)]);
    }
    size_t count = 0;
    for (size_t i = 0; i < kNodes; ++i) count += least[i] == i ? 1 : 0;
    EXPECT_EQ(result.count, count);
  }
}

/// Exact scores, by iteration: a node without edges keeps what it gets.
std::vector<double> Iterated(const Matrix& weights, std::vector<double> mass, double restart) {
  std::vector<double> scores(kNodes, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> next(kNodes, 0);
    for (size_t a = 0; a < kNodes; ++a) {
      const double sum = std::accumulate(weights[a].begin(), weights[a].end(), 0.0);
      scores[a] += mass[a] * (sum == 0 ? 1 : restart);
      if (sum == 0) continue;
      for (size_t b = 0; b < kNodes; ++b) {
        next[b] += mass[a] * (1 - restart) * weights[a][b] / sum;
      }
    }
    mass = next;
  }
  return scores;
}

TEST_F(GraphSearchTest, PageRankIsThatOfIteration) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed);
    const std::vector<NodeScore> seeds = {{ids_[0], 3}, {ids_[1], 1}, {NodeId{99'999}, 4}};
    std::vector<double> mass(kNodes, 0);
    mass[0] = 0.75;
    mass[1] = 0.25;
    const std::vector<double> expected = Iterated(weights_, mass, 0.2);
    const auto result =
        view_->PersonalizedPageRank(seeds, {.edges = x_, .restart = 0.2, .epsilon = 1e-9}).value();
    EXPECT_FALSE(result.truncated);
    std::vector<double> scores(kNodes, 0);
    for (size_t i = 0; i < result.nodes.size(); ++i) {
      scores[IndexOf(result.nodes[i].node)] = result.nodes[i].score;
    }
    EXPECT_TRUE(std::ranges::is_sorted(result.nodes, std::ranges::greater(), &NodeScore::score));
    for (size_t i = 0; i < kNodes; ++i) EXPECT_NEAR(scores[i], expected[i], 1e-6);
  }
}

TEST_F(GraphSearchTest, PageRankTakesTheSmallestAndTheGreatestWeights) {
  Make(1);
  for (const double weight :
       {std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(), 1.0}) {
    for (const size_t to : {1u, 2u, 3u}) Put(0, "z", to, weight);
    Put(0, "z", 4, 0);
    view_ = std::make_unique<GraphView>(graph_->Read().value());
    const NodeScore seed{ids_[0], 1};
    const auto result = view_->PersonalizedPageRank({&seed, 1}, {.edges = {.types = {"z"}}});
    ASSERT_EQ(result->nodes.size(), 4u);
    EXPECT_EQ(result->nodes[0].score, 0.5);
    for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(result->nodes[i].score, 0.5 / 3, 1e-12);
  }
}

TEST_F(GraphSearchTest, PageRankReadsNoMoreEdgesOfAHubThanItsShareNeeds) {
  Make(1);
  ASSERT_TRUE(graph_->PutNode("hub").ok());
  ASSERT_TRUE(graph_->PutNode("seed").ok());
  ASSERT_TRUE(graph_->PutEdge({"seed", "h", "hub"}, {.weight = 1}).ok());
  ASSERT_TRUE(graph_->PutEdge({"seed", "h", "n0"}, {.weight = 999}).ok());
  for (int i = 0; i < 1500; ++i) {
    const std::string leaf = "leaf" + std::to_string(i);
    ASSERT_TRUE(graph_->PutNode(leaf).ok());
    ASSERT_TRUE(graph_->PutEdge({"hub", "h", leaf}).ok());
  }
  view_ = std::make_unique<GraphView>(graph_->Read().value());
  const NodeScore seed{view_->FindNode("seed").value().value(), 1};
  const auto rank = [&](double epsilon, uint64_t visited_max) {
    return view_
        ->PersonalizedPageRank(
            {&seed, 1},
            {.edges = {.types = {"h"}}, .epsilon = epsilon, .limits = {.visited_max = visited_max}})
        .value();
  };
  // The hub gets 0.0005: enough for 50 edges, and not for all.
  const PageRankResult small = rank(1e-5, 500);
  EXPECT_FALSE(small.truncated);
  EXPECT_EQ(small.nodes.size(), 2u);
  EXPECT_TRUE(rank(1e-7, 500).truncated);
  // More comes later, by a longer way, and the rest of the edges is read.
  ASSERT_TRUE(graph_->PutEdge({"n0", "h", "n1"}).ok());
  ASSERT_TRUE(graph_->PutEdge({"n1", "h", "hub"}).ok());
  view_ = std::make_unique<GraphView>(graph_->Read().value());
  const PageRankResult all = rank(1e-6, 5000);
  EXPECT_EQ(all.nodes.size(), 1504u);
  double sum = 0;
  for (const NodeScore& each : all.nodes) sum += each.score;
  EXPECT_GT(sum, 0.99);
  EXPECT_EQ(all.nodes[4].score, all.nodes[1503].score);
}

TEST_F(GraphSearchTest, RefusesBadArguments) {
  Make(1);
  const auto code_of = [&](double share, const PageRankOptions& options) {
    const NodeScore seed{ids_[0], share};
    return view_->PersonalizedPageRank({&seed, 1}, options).code();
  };
  EXPECT_EQ(code_of(0, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(std::nan(""), {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(kNever, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(1, {.restart = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(1, {.restart = 1e-300}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(1, {.epsilon = 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(view_->Paths(ids_[0], ids_[1], 65, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(view_->PersonalizedPageRank({}).value().nodes.empty());
}

TEST_F(GraphSearchTest, AbsentNodesHaveNoPathsAndNoNeighbours) {
  Make(1);
  const NodeId absent{99'999};
  EXPECT_TRUE(view_->ShortestPath(ids_[0], absent).value().paths.empty());
  EXPECT_TRUE(view_->ShortestPath(absent, absent).value().paths.empty());
  EXPECT_TRUE(view_->Paths(absent, ids_[0], 3, 3).value().paths.empty());
  EXPECT_TRUE(view_->KHop(absent, 3).value().nodes.empty());
  for (const NodeId id : {absent, NodeId{0}, NodeId{UINT64_MAX}}) {
    EXPECT_TRUE(
        view_->Neighbors(id, {.direction = EdgeDirection::kBoth}).value().neighbors.empty());
    EXPECT_FALSE(view_->GetNode(id).value().has_value());
  }
}

}  // namespace
}  // namespace basalt::graph
