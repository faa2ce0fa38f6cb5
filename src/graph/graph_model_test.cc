// A graph against a reference in memory, under random changes in transactions that conflict, edges
// that expire, and power cuts on a simulated file system. After each cut the graph is as it was
// after some commit, no commit that was acknowledged as durable is missing, and Verify finds no
// fault. Some nodes have so many bytes of edges that they are removed in steps. The adjacency is
// built several times, and merged while transactions commit; whatever it says is compared with the
// records.
// BASALT_GRAPH_SEEDS=n runs n seeds instead of three.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/graph.h"
#include "basalt/transaction.h"
#include "base/random.h"
#include "db/environment.h"
#include "graph/adjacency.h"
#include "graph/core.h"
#include "graph/test_graph.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"

namespace basalt::graph {
namespace {

/// The same changes as those of Graph, on maps.
class ReferenceGraph {
 public:
  void PutNode(const std::string& id, NodeContent content) { nodes_[id] = std::move(content); }
  bool RemoveNode(const std::string& id) {
    std::erase_if(edges_, [&](const auto& edge) {
      return std::get<0>(edge.first) == id || std::get<2>(edge.first) == id;
    });
    return nodes_.erase(id) > 0;
  }
  bool PutEdge(const EdgeName& name, EdgeContent content) {
    if (!nodes_.contains(std::string(name.from)) || !nodes_.contains(std::string(name.to))) {
      return false;
    }
    edges_[KeyOf(name)] = std::move(content);
    return true;
  }
  bool RemoveEdge(const EdgeName& name) { return edges_.erase(KeyOf(name)) > 0; }
  /// Removes the edges that have expired. Whether there were any.
  bool Expire(WallTime now) {
    return std::erase_if(edges_, [&](const auto& edge) {
             return edge.second.expiry && *edge.second.expiry <= now;
           }) > 0;
  }

  Lines Dump() const {
    Lines lines;
    for (const auto& [id, content] : nodes_) {
      lines.push_back(NodeLine(id, content.labels, content.properties));
    }
    for (const auto& [key, content] : edges_) {
      const auto& [from, type, to, discriminator] = key;
      lines.push_back(EdgeLine(from, type, to, discriminator, content.weight, content.properties));
    }
    std::ranges::sort(lines);
    return lines;
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  static Key KeyOf(const EdgeName& name) {
    return {std::string(name.from), std::string(name.type), std::string(name.to),
            std::string(name.discriminator)};
  }
  std::map<std::string, NodeContent> nodes_;
  std::map<Key, EdgeContent> edges_;
};

/// A change of a random kind.
struct Change {
  enum class Kind : uint8_t { kPutNode, kRemoveNode, kPutEdge, kRemoveEdge };
  Kind kind = Kind::kPutEdge;
  std::string from;
  std::string type;
  std::string to;
  std::string discriminator;
  NodeContent node;
  EdgeContent edge;

  static Change Random(base::Random* random, WallTime now) {
    Change change;
    const uint64_t turn = random->Below(100);
    change.kind = turn < 25   ? Kind::kPutNode
                  : turn < 30 ? Kind::kRemoveNode
                  : turn < 85 ? Kind::kPutEdge
                              : Kind::kRemoveEdge;
    change.from = NodeName(random);
    change.to = NodeName(random);
    change.type = "type" + std::to_string(random->Below(3));
    // Long ones make a node large enough for a removal in steps.
    if (random->OneIn(2)) change.discriminator = std::string(1000, 'd') + Digit(random);
    change.node.labels = {"label" + Digit(random), "label" + Digit(random)};
    change.node.properties = {{"p" + Digit(random), static_cast<int64_t>(random->Next())}};
    change.edge.weight = static_cast<double>(random->Below(4));
    if (random->OneIn(2)) change.edge.properties = {{"q" + Digit(random), "value"}};
    if (random->OneIn(3)) {
      change.edge.expiry = now + std::chrono::milliseconds(random->Between(1, 3000));
    }
    return change;
  }

  EdgeName name() const {
    return {.from = from, .type = type, .to = to, .discriminator = discriminator};
  }
  void ApplyTo(ReferenceGraph* reference) const {
    switch (kind) {
      case Kind::kPutNode:
        reference->PutNode(from, node);
        break;
      case Kind::kRemoveNode:
        reference->RemoveNode(from);
        break;
      case Kind::kPutEdge:
        reference->PutEdge(name(), edge);
        break;
      case Kind::kRemoveEdge:
        reference->RemoveEdge(name());
        break;
    }
  }
  Status ApplyTo(Graph* graph, Transaction& tx) const {
    switch (kind) {
      case Kind::kPutNode:
        return graph->PutNode(tx, from, node).status();
      case Kind::kRemoveNode:
        return graph->RemoveNode(tx, from).status();
      case Kind::kPutEdge:
        return NotFoundIsGood(graph->PutEdge(tx, name(), edge));
      case Kind::kRemoveEdge:
        return graph->RemoveEdge(tx, name()).status();
    }
    return {};
  }

 private:
  static std::string Digit(base::Random* random) { return std::to_string(random->Below(10)); }
  /// Few, of which one is in every third edge.
  static std::string NodeName(base::Random* random) {
    return random->OneIn(3) ? "hub" : "node" + Digit(random);
  }
  static Status NotFoundIsGood(const Status& status) {
    return status.code() == StatusCode::kNotFound ? Status() : status;
  }
};

/// How often what the test is about has happened.
struct Events {
  int cuts = 0;
  int aborted = 0;
  int removals_left = 0;
  int expired = 0;
  int merges = 0;
  int reads_in_memory = 0;
};

class GraphUnderPowerCuts {
 public:
  GraphUnderPowerCuts(uint64_t seed, Events* events) : random_(seed), events_(events) {}
  ~GraphUnderPowerCuts() { disk_.SetObserver({}); }

  void Run(int steps) {
    db_ = OpenDb(&disk_, &executor_);
    ASSERT_NO_FATAL_FAILURE(OpenGraph());
    ASSERT_TRUE(db_->Sync().ok());
    states_.push_back({reference_, reference_.Dump()});
    disk_.SetObserver([this](uint64_t, std::string_view, std::string_view) {
      if (random_.OneIn(100)) moments_.push_back({disk_.Clone(), durable_});
    });
    for (int i = 0; i < steps; ++i) {
      if (random_.OneIn(4)) LetTimePass();
      ASSERT_NO_FATAL_FAILURE(Step());
      if (random_.OneIn(25)) {
        ASSERT_NO_FATAL_FAILURE(Reopen());
      }
      for (const Moment& moment : std::exchange(moments_, {})) {
        ASSERT_NO_FATAL_FAILURE(Cut(moment));
      }
    }
    ASSERT_TRUE(IsSound(*graph_));
  }

 private:
  struct Moment {
    std::unique_ptr<io::SimFileSystem> disk;
    size_t durable = 0;
  };
  struct State {
    ReferenceGraph graph;
    Lines dump;
  };

  WallTime Now() {
    return WallTime(std::chrono::milliseconds(static_cast<int64_t>(clock_.WallMillis())));
  }

  void LetTimePass() {
    clock_.Advance(random_.Between(1, 1000) * 1000);
    for (State& state : states_) {
      if (!state.graph.Expire(Now())) continue;
      state.dump = state.graph.Dump();
      ++events_->expired;
    }
    reference_.Expire(Now());
  }

  std::unique_ptr<DB> OpenDb(io::SimFileSystem* disk, io::ManualExecutor* executor) {
    db::Environment environment;
    environment.fs = disk;
    environment.clock = &clock_;
    environment.executor = executor;
    environment.memtable_bytes = 64 << 10;
    environment.table_bytes = 32 << 10;
    auto opened = db::OpenDatabase("/db", {.memory_budget = uint64_t{4} << 20}, environment);
    EXPECT_TRUE(opened.ok()) << opened.error().ToString();
    return opened ? std::move(*opened) : nullptr;
  }

  /// Without a thread that builds the adjacency.
  void OpenGraph() {
    auto core = Core::Open(
        db_.get(), {}, {.scanned_nodes_before_build = UINT64_MAX, .delta_entries_min = SIZE_MAX});
    ASSERT_TRUE(core.ok()) << core.error().ToString();
    adjacency_ = &(*core)->adjacency();
    graph_ = GraphAccess::Make(*std::move(core));
  }

  /// Two transactions of several changes side by side. Both may commit if they do not conflict.
  void Step() {
    Transaction first = db_->Begin().value();
    Transaction second = db_->Begin().value();
    const std::vector<Change> changes_of_first = SomeChanges();
    const std::vector<Change> changes_of_second = SomeChanges();
    ASSERT_NO_FATAL_FAILURE(ApplyAll(changes_of_first, first));
    ASSERT_NO_FATAL_FAILURE(ApplyAll(changes_of_second, second));
    if (random_.OneIn(20)) {
      ASSERT_TRUE(graph_->RebuildAdjacency().ok());
    }
    std::unique_ptr<Adjacency::Merge> merge;
    if (random_.OneIn(5)) merge = adjacency_->BeginMerge();
    ASSERT_NO_FATAL_FAILURE(CommitAs(changes_of_first, first));
    if (merge != nullptr) {
      ASSERT_TRUE(adjacency_->FinishMerge(std::move(merge)).ok());
      ++events_->merges;
    }
    ASSERT_NO_FATAL_FAILURE(CommitAs(changes_of_second, second));
    // The removals that the transactions have left are visible as done.
    ASSERT_EQ(DumpOf(*graph_), states_.back().dump);
    const GraphStats stats = graph_->GetStats().value();
    if (stats.removals > 0) ++events_->removals_left;
    if (stats.adjacency_bytes > 0) ++events_->reads_in_memory;
    const Status tidied = random_.OneIn(2)    ? graph_->FinishRemovals()
                          : random_.OneIn(10) ? db_->Flush()
                                              : Status();
    ASSERT_TRUE(tidied.ok()) << tidied.ToString();
    ASSERT_TRUE(IsSound(*graph_));
    if (random_.OneIn(3)) executor_.RunOne();
  }

  std::vector<Change> SomeChanges() {
    std::vector<Change> changes;
    for (uint64_t left = random_.Between(1, 8); left > 0; --left) {
      changes.push_back(Change::Random(&random_, Now()));
    }
    return changes;
  }
  void ApplyAll(const std::vector<Change>& changes, Transaction& tx) {
    for (const Change& change : changes) {
      const Status applied = change.ApplyTo(graph_.get(), tx);
      ASSERT_TRUE(applied.ok()) << applied.ToString();
    }
  }
  void CommitAs(const std::vector<Change>& changes, Transaction& tx) {
    const bool power = random_.OneIn(4);
    // The commit may be cut at any moment: what it leads to is known before.
    ReferenceGraph next = reference_;
    // One that writes nothing has its place where it began to read, is no conflict, and syncs
    // nothing.
    const bool writes = tx.count() > 0;
    if (writes) {
      for (const Change& change : changes) change.ApplyTo(&next);
    }
    states_.push_back({next, next.Dump()});
    const Result<Commit> committed =
        tx.Commit({.durability = power ? Durability::kPower : Durability::kProcess});
    if (!committed) {
      ASSERT_EQ(committed.error().code(), StatusCode::kAborted) << committed.error().ToString();
      states_.pop_back();
      ++events_->aborted;
      return;
    }
    reference_ = std::move(next);
    if (power && writes) durable_ = states_.size() - 1;
  }

  void Reopen() {
    graph_.reset();
    db_.reset();
    executor_.RunAll();
    db_ = OpenDb(&disk_, &executor_);
    ASSERT_NO_FATAL_FAILURE(OpenGraph());
    ASSERT_EQ(graph_->GetStats().value().removals, 0u);
    ASSERT_EQ(DumpOf(*graph_), states_.back().dump);
    ASSERT_TRUE(IsSound(*graph_));
  }

  void Cut(const Moment& moment) {
    const std::unique_ptr<io::SimFileSystem> disk = moment.disk->Clone();
    disk->Crash(random_.Next());
    io::ManualExecutor executor;
    std::unique_ptr<DB> db = OpenDb(disk.get(), &executor);
    ASSERT_NE(db, nullptr);
    {
      const std::unique_ptr<Graph> graph = Graph::Open(db.get()).value();
      const Lines found = DumpOf(*graph);
      const auto known =
          std::find_if(states_.begin() + static_cast<ptrdiff_t>(moment.durable), states_.end(),
                       [&](const State& state) { return state.dump == found; });
      ASSERT_NE(known, states_.end()) << "the graph is none that was committed";
      ASSERT_TRUE(IsSound(*graph));
      ASSERT_EQ(graph->GetStats().value().removals, 0u);
    }
    ++events_->cuts;
    db.reset();
    executor.RunAll();
  }

  base::Random random_;
  Events* const events_;
  io::SimClock clock_;
  io::SimFileSystem disk_;
  io::ManualExecutor executor_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<Graph> graph_;
  Adjacency* adjacency_ = nullptr;  // Of graph_.
  ReferenceGraph reference_;
  std::vector<State> states_;  // After each commit, without what has expired since.
  std::vector<Moment> moments_;
  size_t durable_ = 0;
};

TEST(GraphModel, IsTheReferenceUnderConflictsAndPowerCuts) {
  const char* const seeds = std::getenv("BASALT_GRAPH_SEEDS");
  const uint64_t last = seeds != nullptr ? std::stoull(seeds) : 3;
  Events events;
  for (uint64_t seed = 1; seed <= last; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(GraphUnderPowerCuts(seed, &events).Run(150));
  }
  EXPECT_GT(events.cuts, 30);
  EXPECT_GT(events.aborted, 0);
  EXPECT_GT(events.removals_left, 0);
  EXPECT_GT(events.expired, 0);
  EXPECT_GT(events.merges, 0);
  EXPECT_GT(events.reads_in_memory, 100);
}

}  // namespace
}  // namespace basalt::graph
