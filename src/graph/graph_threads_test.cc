// Threads that change one graph through two Graph objects, beside threads that read it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "base/random.h"
#include "graph/core.h"
#include "graph/test_graph.h"

namespace basalt::graph {
namespace {

constexpr int kChangesOfAThread = 400;

std::string SomeNode(base::Random* random) {
  return random->OneIn(3) ? "hub" : "node" + std::to_string(random->Below(6));
}

void ChangeAtRandom(Graph* graph, uint64_t seed) {
  base::Random random(seed);
  for (int i = 0; i < kChangesOfAThread; ++i) {
    const std::string from = SomeNode(&random);
    const std::string to = SomeNode(&random);
    // Long ones make a node large enough for a removal in steps; few types, so that threads meet in
    // the dictionary.
    const std::string discriminator = std::string(1000, 'd') + std::to_string(random.Below(20));
    const std::string type = "type" + std::to_string(i / 20);
    Status done;
    switch (random.Below(10)) {
      case 0:
        done = graph->RemoveNode(from).status();
        break;
      case 1:
        done = graph->RemoveEdge({from, type, to, discriminator}).status();
        break;
      case 2:
      case 3:
      case 4:
        done = graph->PutNode(from, {.labels = {"label" + std::to_string(i / 10)}}).status();
        break;
      default:
        done = graph->PutEdge({from, type, to, discriminator}, {.properties = {{type, i}}});
        if (done.code() == StatusCode::kNotFound) done = {};
    }
    // A thread may lose every one of its tries against the others.
    ASSERT_TRUE(done.ok() || done.code() == StatusCode::kAborted) << done.ToString();
  }
}

TEST(GraphThreads, ChangesAndReadsSideBySideLeaveASoundGraph) {
  const auto db = DB::Open(":memory:", {.memory_budget = 32 << 20}).value();
  const auto first = Graph::Open(db.get()).value();
  const auto second = Graph::Open(db.get()).value();
  std::atomic<int> changing{4};
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      ChangeAtRandom(seed % 2 == 0 ? first.get() : second.get(), seed);
      --changing;
    });
  }
  threads.emplace_back([&] {
    while (changing > 0) {
      DumpOf(*first);  // Compares both directions.
      EXPECT_TRUE(IsSound(*second));
    }
  });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(first->FinishRemovals().ok());
  EXPECT_TRUE(IsSound(*first));
  EXPECT_EQ(first->GetStats().value().removals, 0u);
  EXPECT_EQ(DumpOf(*first), DumpOf(*second));
  EXPECT_EQ(DumpOf(*Graph::Open(db.get()).value()), DumpOf(*first));
}

TEST(GraphThreads, TheAdjacencyAgreesWithTheRecordsBesideWriters) {
  const auto db = DB::Open(":memory:", {.memory_budget = 64 << 20}).value();
  // It is built at once, and merged again and again.
  const auto graph = GraphAccess::Make(
      Core::Open(db.get(), {}, {.scanned_nodes_before_build = 1, .delta_entries_min = 50}).value());
  for (const char* const node : {"hub", "node0", "node1", "node2", "node3", "node4", "node5"}) {
    ASSERT_TRUE(graph->PutNode(node).ok());
  }
  std::atomic<int> changing{3};
  std::atomic<int> reads_in_memory{0};
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    threads.emplace_back([&, seed] {
      ChangeAtRandom(graph.get(), seed);
      --changing;
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (changing > 0) {
        DumpOf(*graph);  // Compares the records with the adjacency, at one moment.
        reads_in_memory += graph->GetStats().value().adjacency_bytes > 0 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reads_in_memory, 0);
  const Lines in_memory = DumpOf(*graph);
  EXPECT_EQ(in_memory, DumpOf(*Graph::Open(db.get(), {.adjacency_bytes_max = 0}).value()));
  ASSERT_TRUE(graph->RebuildAdjacency().ok());
  EXPECT_EQ(in_memory, DumpOf(*graph));
}

}  // namespace
}  // namespace basalt::graph
