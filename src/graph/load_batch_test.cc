// Loads of many nodes and edges, beside other changes of the graph.

#include "graph/load_batch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "base/random.h"
#include "graph/test_graph.h"

namespace basalt::graph {
namespace {

class GraphLoaderTest : public testing::Test {
 protected:
  std::unique_ptr<DB> db_ = DB::Open(":memory:", {.memory_budget = 64 << 20}).value();
  std::unique_ptr<Graph> graph_ = Graph::Open(db_.get()).value();
};

TEST_F(GraphLoaderTest, PutsWhatSingleCallsPut) {
  const auto single = Graph::Open(db_.get(), {.name = "single"}).value();
  GraphLoader loader(graph_.get());
  base::Random random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string from = "n" + std::to_string(random.Below(20));
    const std::string to = "n" + std::to_string(random.Below(20));
    if (random.OneIn(4)) {
      const NodeContent content{.labels = {"b", "a", "b"}, .properties = {{"i", i}}};
      ASSERT_TRUE(loader.PutNode(from, content).ok());
      ASSERT_TRUE(single->PutNode(from, content).ok());
      continue;
    }
    const EdgeName name{from, random.OneIn(2) ? "x" : "y", to, random.OneIn(3) ? "again" : ""};
    const EdgeContent content{.weight = static_cast<double>(random.Below(3)),
                              .properties = {{"i", i}}};
    ASSERT_EQ(loader.PutEdge(name, content).code(), single->PutEdge(name, content).code());
    if (!random.OneIn(20)) continue;
    ASSERT_TRUE(loader.Commit().ok());
  }
  ASSERT_TRUE(loader.Commit().ok());
  EXPECT_EQ(DumpOf(*graph_), DumpOf(*single));
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphLoaderTest, MakesNodesThatAreAbsentOnRequest) {
  GraphLoader strict(graph_.get());
  EXPECT_EQ(strict.PutEdge({"a", "x", "b"}).code(), StatusCode::kNotFound);
  ASSERT_TRUE(strict.Commit().ok());
  GraphLoader loader(graph_.get(), /*make_nodes=*/true);
  ASSERT_TRUE(loader.PutEdge({"a", "x", "b"}).ok());
  EXPECT_EQ(loader.PutEdge({"a", "x", "b"}, {.weight = -1}).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(loader.Commit().ok());
  EXPECT_EQ(DumpOf(*graph_).size(), 3u);
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphLoaderTest, NothingIsWrittenIfANodeWasRemovedMeanwhile) {
  ASSERT_TRUE(graph_->PutNode("a").ok());
  GraphLoader loader(graph_.get());
  ASSERT_TRUE(loader.PutEdge({"a", "x", "a"}).ok());
  ASSERT_TRUE(loader.Commit().ok());
  // The loader knows the number of the first "a".
  ASSERT_TRUE(graph_->RemoveNode("a").ok());
  ASSERT_TRUE(graph_->PutNode("a").ok());
  ASSERT_TRUE(loader.PutNode("b").ok());
  ASSERT_TRUE(loader.PutEdge({"a", "y", "a"}).ok());
  EXPECT_EQ(loader.Commit().code(), StatusCode::kAborted);
  EXPECT_EQ(DumpOf(*graph_).size(), 1u);
  EXPECT_TRUE(IsSound(*graph_));
  ASSERT_TRUE(loader.PutEdge({"a", "y", "a"}).ok());
  ASSERT_TRUE(loader.Commit().ok());
  EXPECT_EQ(DumpOf(*graph_).size(), 2u);
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphLoaderTest, NothingIsWrittenIfANodeWasAddedMeanwhile) {
  GraphLoader loader(graph_.get());
  ASSERT_TRUE(loader.PutNode("a", {.labels = {"of the loader"}}).ok());
  ASSERT_TRUE(graph_->PutNode("a").ok());
  EXPECT_EQ(loader.Commit().code(), StatusCode::kAborted);
  ASSERT_TRUE(loader.PutNode("a", {.labels = {"of the loader"}}).ok());
  ASSERT_TRUE(loader.Commit().ok());
  EXPECT_EQ(DumpOf(*graph_), Lines{"node a :of the loader"});
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphLoaderTest, LoadsBesideRemovalsLeaveASoundGraph) {
  std::atomic<bool> is_loading{true};
  std::thread remover([&] {
    base::Random random(1);
    while (is_loading) {
      EXPECT_TRUE(graph_->RemoveNode("n" + std::to_string(random.Below(10))).ok());
    }
  });
  GraphLoader loader(graph_.get(), /*make_nodes=*/true);
  base::Random random(2);
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 10; ++j) {
      const std::string from = "n" + std::to_string(random.Below(10));
      const std::string to = "n" + std::to_string(random.Below(10));
      EXPECT_TRUE(loader.PutEdge({from, "x", to}).ok());
    }
    const Status done = loader.Commit().status();
    EXPECT_TRUE(done.ok() || done.code() == StatusCode::kAborted) << done.ToString();
  }
  is_loading = false;
  remover.join();
  EXPECT_TRUE(IsSound(*graph_));
  DumpOf(*graph_);
}

}  // namespace
}  // namespace basalt::graph
