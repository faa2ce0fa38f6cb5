// Searches on the adjacency in memory against the same searches on the records.

#include "graph/adjacency.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "base/random.h"
#include "db/environment.h"
#include "graph/core.h"
#include "graph/keys.h"
#include "graph/test_graph.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::graph {
namespace {

constexpr uint64_t kAdjacencyNodes = 8;

std::string NodeAt(uint64_t i) { return "n" + std::to_string(i); }

std::string LineOf(const Neighbor& edge) {
  return std::to_string(static_cast<uint64_t>(edge.node)) + "/" + std::string(edge.type) + "/" +
         std::to_string(static_cast<int>(edge.direction)) + "/" + edge.discriminator + "/" +
         std::to_string(edge.weight);
}

void AppendNeighbors(const GraphView& view, NodeId node, const EdgeFilter& filter, Lines* lines) {
  std::string from;
  do {
    const NeighborPage page = view.Neighbors(node, filter, 3, from).value();
    for (const Neighbor& edge : page.neighbors) lines->push_back(LineOf(edge));
    lines->push_back(page.next);
    from = page.next;
  } while (!from.empty());
}

void AppendPageRank(const GraphView& view, NodeId node, Lines* lines) {
  const NodeScore seed{node, 1};
  const auto ranked = view.PersonalizedPageRank({&seed, 1}, {.epsilon = 1e-4}).value();
  for (const NodeScore& each : ranked.nodes) {
    lines->push_back(std::to_string(static_cast<uint64_t>(each.node)) + "=" +
                     std::to_string(each.score));
  }
}

void AppendPaths(const PathResult& result, Lines* lines) {
  for (const Path& path : result.paths) {
    lines->push_back("cost " + std::to_string(path.cost));
    for (const Neighbor& edge : path.edges) lines->push_back(LineOf(edge));
  }
}

/// What searches of all kinds find, in the order in which they find it.
Lines AnswersOf(const GraphView& view, WallTime as_of) {
  Lines lines;
  std::vector<EdgeFilter> filters;
  for (const auto direction : {EdgeDirection::kOut, EdgeDirection::kIn, EdgeDirection::kBoth}) {
    filters.push_back({.direction = direction});
    filters.push_back({.direction = direction, .types = {"b", "a"}});
    filters.push_back({.direction = direction, .as_of = as_of});
  }
  for (uint64_t i = 0; i < kAdjacencyNodes; ++i) {
    const auto node = view.FindNode(NodeAt(i)).value();
    lines.push_back(NodeAt(i) + (node ? "" : " is absent"));
    if (!node) continue;
    for (const EdgeFilter& filter : filters) AppendNeighbors(view, *node, filter, &lines);
    const auto near = view.KHop(*node, 2, filters[2 + i % 3]).value();
    for (const NodeDistance& each : near.nodes) {
      lines.push_back(std::to_string(static_cast<uint64_t>(each.node)) + "@" +
                      std::to_string(each.hops));
    }
    AppendPageRank(view, *node, &lines);
    AppendPaths(view.ShortestPath(NodeId{1}, *node, {}, /*weighted=*/true).value(), &lines);
    AppendPaths(view.Paths(*node, NodeId{1}, 3, 5).value(), &lines);
    const auto reached = view.Traverse(NodeAt(i)).Out("a").In().AsOf(as_of).Run().value();
    for (const NodeId each : reached.nodes) {
      lines.push_back(std::to_string(static_cast<uint64_t>(each)));
    }
  }
  return lines;
}

class AdjacencyTest : public testing::Test {
 protected:
  AdjacencyTest() {
    db::Environment environment;
    environment.fs = &disk_;
    environment.clock = &clock_;
    environment.executor = &executor_;
    db_ = db::OpenDatabase("/db", {.memory_budget = uint64_t{16} << 20}, environment).value();
    stored_ = Graph::Open(db_.get(), {.adjacency_bytes_max = 0}).value();
    Reopen({});
  }

  /// Without a thread that builds the adjacency.
  void Reopen(const GraphOptions& options) {
    graph_.reset();
    auto core =
        Core::Open(db_.get(), options,
                   {.scanned_nodes_before_build = UINT64_MAX, .delta_entries_min = SIZE_MAX});
    adjacency_ = &(*core)->adjacency();
    graph_ = GraphAccess::Make(*std::move(core));
  }

  WallTime Now() {
    return WallTime(std::chrono::milliseconds(static_cast<int64_t>(clock_.WallMillis())));
  }

  void ChangeAtRandom() {
    const std::string from = NodeAt(random_.Below(kAdjacencyNodes));
    const std::string to = NodeAt(random_.Below(kAdjacencyNodes));
    const std::string type(1, static_cast<char>('a' + random_.Below(3)));
    const std::string discriminator =
        random_.OneIn(3) ? std::string(random_.Below(2) * 1'000, 'd') + NodeAt(random_.Below(20))
                         : "";
    switch (random_.Below(20)) {
      case 0:
        ASSERT_TRUE(graph_->RemoveNode(from).ok());
        break;
      case 1: {  // Leaves the edges of a large node to FinishRemovals.
        Transaction tx = db_->Begin().value();
        ASSERT_TRUE(graph_->RemoveNode(tx, from).ok());
        ASSERT_TRUE(tx.Commit().ok());
        break;
      }
      case 2:
      case 3:
      case 4:
        ASSERT_TRUE(graph_->PutNode(from).ok());
        break;
      case 5:
      case 6:
        ASSERT_TRUE(graph_->RemoveEdge({from, type, to, discriminator}).ok());
        break;
      case 7:
        clock_.Advance(random_.Between(1, 300) * 1000);
        break;
      case 8:
        ASSERT_TRUE(graph_->FinishRemovals().ok());
        break;
      default:
        PutEdgeAtRandom({from, type, to, discriminator});
    }
  }
  void PutEdgeAtRandom(const EdgeName& name) {
    EdgeContent content{.weight = static_cast<double>(random_.Below(3))};
    if (random_.OneIn(3)) content.valid_from = Now() - std::chrono::milliseconds(random_.Below(90));
    if (random_.OneIn(3)) content.valid_to = Now() + std::chrono::milliseconds(random_.Below(90));
    if (random_.OneIn(3)) {
      content.expiry = Now() + std::chrono::milliseconds(random_.Between(1, 900));
    }
    const Status put = graph_->PutEdge(name, content);
    ASSERT_TRUE(put.ok() || put.code() == StatusCode::kNotFound) << put.ToString();
  }

  bool IsInMemory() const { return graph_->GetStats().value().adjacency_bytes > 0; }

  base::Random random_{1};
  io::SimClock clock_;
  io::SimFileSystem disk_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<Graph> stored_;  ///< Always reads the records.
  std::unique_ptr<Graph> graph_;
  Adjacency* adjacency_ = nullptr;  // Of graph_.
};

TEST_F(AdjacencyTest, AnswersAreThoseOfTheRecordsAtEachSnapshot) {
  struct Held {
    GraphView view;
    WallTime as_of;
    Lines answers;
  };
  std::vector<Held> held;
  std::unique_ptr<Adjacency::Merge> merge;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    ASSERT_NO_FATAL_FAILURE(ChangeAtRandom());
    if (i % 60 == 20) {
      ASSERT_TRUE(graph_->RebuildAdjacency().ok());
    }
    if (i % 20 == 0) merge = adjacency_->BeginMerge();
    if (i % 20 == 7 && merge != nullptr) {
      ASSERT_TRUE(adjacency_->FinishMerge(std::move(merge)).ok());
    }
    ASSERT_TRUE(IsInMemory() || i < 20);
    if (!random_.OneIn(3)) continue;
    const Lines expected = AnswersOf(stored_->Read().value(), Now());
    GraphView view = graph_->Read().value();
    ASSERT_EQ(AnswersOf(view, Now()), expected);
    held.push_back({std::move(view), Now(), expected});
    const Held& old = held[random_.Below(held.size())];
    ASSERT_EQ(AnswersOf(old.view, old.as_of), old.answers) << "an older view";
  }
  Transaction tx = db_->Begin().value();
  ASSERT_TRUE(graph_->PutNode(tx, "n0").ok());
  ASSERT_TRUE(graph_->PutEdge(tx, {"n0", "a", "n0", "own write"}).ok());
  const NodeId own = graph_->Read(tx).value().FindNode("n0").value().value();
  EXPECT_EQ(graph_->Read(tx).value().KHop(own, 1).value().nodes.front().node, own);
  EXPECT_EQ(AnswersOf(graph_->Read(tx).value(), Now()),
            AnswersOf(stored_->Read(tx).value(), Now()));
}

TEST_F(AdjacencyTest, NodesAfterTheBaseAreFound) {
  ASSERT_TRUE(graph_->RebuildAdjacency().ok());
  // More than one chunk of the delta.
  for (uint64_t i = 0; i < 1'200; ++i) ASSERT_TRUE(graph_->PutNode(NodeAt(i)).ok());
  for (uint64_t i = 1; i < 1'200; ++i) {
    ASSERT_TRUE(graph_->PutEdge({NodeAt(i - 1), "next", NodeAt(i)}).ok());
  }
  const GraphView view = graph_->Read().value();
  const NodeId first = view.FindNode("n0").value().value();
  EXPECT_EQ(view.KHop(first, 2'000).value().nodes.size(), 1'200u);
  auto merge = adjacency_->BeginMerge();
  ASSERT_NE(merge, nullptr);
  ASSERT_TRUE(adjacency_->FinishMerge(std::move(merge)).ok());
  EXPECT_EQ(graph_->Read().value().KHop(first, 2'000).value().nodes.size(), 1'200u);
}

TEST_F(AdjacencyTest, MoreMemoryThanAllowedIsNotTaken) {
  for (uint64_t i = 0; i < 2'000; ++i) ASSERT_TRUE(graph_->PutNode(NodeAt(i)).ok());
  Reopen({.adjacency_bytes_max = 40'000});
  ASSERT_TRUE(graph_->RebuildAdjacency().ok());
  for (uint64_t i = 1; i < 1'000; ++i) {
    ASSERT_TRUE(graph_->PutEdge({"n0", "next", NodeAt(i)}).ok());
  }
  EXPECT_FALSE(IsInMemory()) << "the delta is too large";
  for (uint64_t i = 1; i < 2'000; ++i) {
    ASSERT_TRUE(graph_->PutEdge({NodeAt(i), "next", NodeAt(i / 2)}).ok());
    ASSERT_TRUE(graph_->PutEdge({NodeAt(i), "next", NodeAt(i / 3)}).ok());
  }
  EXPECT_EQ(graph_->RebuildAdjacency().code(), StatusCode::kResourceExhausted);
  const NodeId first = graph_->Read().value().FindNode("n0").value().value();
  EXPECT_EQ(graph_->Read().value().KHop(first, 1).value().nodes.size(), 1'000u);
  Reopen({.adjacency_bytes_max = 0});
  EXPECT_EQ(graph_->RebuildAdjacency().code(), StatusCode::kResourceExhausted);
}

TEST_F(AdjacencyTest, WhatCannotBeFollowedIsReadFromTheRecords) {
  const NodeId node = graph_->PutNode("n0").value();
  ASSERT_TRUE(graph_->PutEdge({"n0", "a", "n0"}).ok());
  ASSERT_TRUE(graph_->RebuildAdjacency().ok());
  const KeyspaceId keyspace = db_->OpenKeyspace("graph").value();
  ASSERT_TRUE(
      db_->DeleteRange(NodePrefix(NodeId{1}), NodePrefix(NodeId{100}), {.keyspace = keyspace})
          .ok());
  EXPECT_FALSE(IsInMemory());
  EXPECT_TRUE(graph_->Read().value().Neighbors(node).value().neighbors.empty());
  ASSERT_TRUE(graph_->RebuildAdjacency().ok());
  EXPECT_TRUE(IsInMemory());
  const std::string key = EdgeKey(node, NodeTag::kOut, 0, node, {});
  ASSERT_TRUE(db_->Put(key, "\xff", {.keyspace = keyspace}).ok());
  EXPECT_FALSE(IsInMemory());
  EXPECT_EQ(graph_->Read().value().Neighbors(node).code(), StatusCode::kCorruption);
  EXPECT_EQ(graph_->RebuildAdjacency().code(), StatusCode::kCorruption);
}

TEST_F(AdjacencyTest, AReadOnlyStoreHasItToo) {
  ASSERT_TRUE(graph_->PutNode("n0").ok());
  ASSERT_TRUE(graph_->PutEdge({"n0", "a", "n0"}).ok());
  graph_.reset();
  stored_.reset();
  ASSERT_TRUE(db_->Close().ok());
  db_.reset();
  executor_.RunAll();
  db::Environment environment;
  environment.fs = &disk_;
  environment.clock = &clock_;
  environment.executor = &executor_;
  db_ = db::OpenDatabaseReadOnly("/db", {}, environment).value();
  Reopen({.create_if_missing = false});
  ASSERT_TRUE(graph_->RebuildAdjacency().ok());
  EXPECT_TRUE(IsInMemory());
  EXPECT_EQ(DumpOf(*graph_).size(), 2u);
}

}  // namespace
}  // namespace basalt::graph
