#include "basalt/graph.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "basalt/memtable.h"
#include "basalt/transaction.h"
#include "graph/keys.h"
#include "graph/test_graph.h"

namespace basalt::graph {
namespace {

using std::string_literals::operator""s;
using std::string_view_literals::operator""sv;

WallTime At(int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

class GraphTest : public testing::Test {
 protected:
  void PutNodes(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) ASSERT_TRUE(graph_->PutNode(id).ok());
  }
  void PutEdge(std::string_view from, std::string_view type, std::string_view to,
               double weight = 1) {
    const Status put = graph_->PutEdge({.from = from, .type = type, .to = to}, {.weight = weight});
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  NodeId IdOf(std::string_view id) { return graph_->Read().value().FindNode(id).value().value(); }
  std::vector<std::string> NamesOf(const GraphView& view, const std::vector<NodeId>& nodes) {
    std::vector<std::string> names;
    for (const NodeId node : nodes) names.push_back(view.GetNode(node).value()->external_id);
    return names;
  }
  std::vector<std::string> NeighborsOf(std::string_view id, const EdgeFilter& filter = {}) {
    const GraphView view = graph_->Read().value();
    std::vector<NodeId> nodes;
    for (const Neighbor& each : view.Neighbors(IdOf(id), filter).value().neighbors) {
      nodes.push_back(each.node);
    }
    return NamesOf(view, nodes);
  }

  std::unique_ptr<DB> db_ = DB::Open(":memory:", {.memory_budget = 16 << 20}).value();
  std::unique_ptr<Graph> graph_ = Graph::Open(db_.get()).value();
};

TEST_F(GraphTest, KeepsNodesAndEdgesOfAllTypesOfValues) {
  const Properties properties = {{"null", {}},
                                 {"bool", true},
                                 {"integer", std::numeric_limits<int64_t>::min()},
                                 {"double", 0.1},
                                 {"string", "text"},
                                 {"bytes", Bytes{"\0\xFF"s}},
                                 {"time", At(-5)},
                                 {"list", PropertyValue::List{1, "two", PropertyValue::List{}}}};
  ASSERT_TRUE(graph_->PutNode("a", {.labels = {"B", "A", "B"}, .properties = properties}).ok());
  ASSERT_TRUE(graph_->PutNode("b").ok());
  const EdgeContent content{.weight = 0.5,
                            .properties = properties,
                            .valid_from = At(1),
                            .valid_to = At(9),
                            .expiry = At(int64_t{1} << 45)};
  ASSERT_TRUE(graph_->PutEdge({"a", "knows", "b", "2nd"}, content).ok());
  const GraphView view = graph_->Read().value();
  const Node node = view.GetNode("a").value().value();
  EXPECT_EQ(node.labels, (Lines{"A", "B"}));
  EXPECT_EQ(node.properties, properties);
  const EdgeContent edge = view.GetEdge({"a", "knows", "b", "2nd"}).value().value();
  EXPECT_EQ(edge.weight, 0.5);
  EXPECT_EQ(edge.properties, properties);
  EXPECT_EQ(edge.valid_from, content.valid_from);
  EXPECT_EQ(edge.valid_to, content.valid_to);
  EXPECT_EQ(edge.expiry, content.expiry);
  EXPECT_FALSE(view.GetEdge({"a", "knows", "b"}).value().has_value());
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphTest, RemovingAnAbsentEdgeLeavesLiveOnesAlone) {
  PutNodes({"a", "b"});
  PutEdge("a", "knows", "b");
  EXPECT_FALSE(graph_->RemoveEdge({"a", "likes", "b"}).value());
  EXPECT_FALSE(graph_->RemoveEdge({"a", "knows", "b", "other"}).value());
  EXPECT_FALSE(graph_->RemoveEdge({"b", "knows", "a"}).value());
  EXPECT_EQ(NeighborsOf("a"), Lines{"b"});
  EXPECT_EQ(NeighborsOf("b", {.direction = EdgeDirection::kIn}), Lines{"a"});
}

TEST_F(GraphTest, AddingTwiceAndRemovingOnceLeavesNothing) {
  PutNodes({"a", "b"});
  PutEdge("a", "knows", "b", 1);
  PutEdge("a", "knows", "b", 2);
  EXPECT_TRUE(graph_->RemoveEdge({"a", "knows", "b"}).value());
  EXPECT_FALSE(graph_->RemoveEdge({"a", "knows", "b"}).value());
  EXPECT_EQ(NeighborsOf("a", {.direction = EdgeDirection::kBoth}), Lines{});
  EXPECT_EQ(NeighborsOf("b", {.direction = EdgeDirection::kBoth}), Lines{});
  EXPECT_EQ(graph_->GetStats().value().edges, 0u);
}

TEST_F(GraphTest, TakesIdsOfAnyBytes) {
  const Lines ids = {"", "\0"s, "\0\0"s, "a\0b"s, "a:b", "\xFF\xFF"s, std::string(1024, 'x')};
  PutNodes(ids);
  for (const std::string& from : ids) {
    for (const std::string& to : ids) {
      ASSERT_TRUE(graph_->PutEdge({from, "\0\xFF"s, to, "\0"s}).ok());
    }
  }
  for (const std::string& id : ids) {
    EXPECT_EQ(NeighborsOf(id).size(), ids.size());
    EXPECT_EQ(graph_->Read().value().GetNode(id).value()->external_id, id);
  }
  EXPECT_TRUE(IsSound(*graph_));
  EXPECT_TRUE(graph_->RemoveNode("\0"s).value());
  EXPECT_EQ(NeighborsOf("").size(), ids.size() - 1);
  EXPECT_EQ(graph_->PutNode(std::string(1025, 'x')).code(), StatusCode::kInvalidArgument);
}

TEST_F(GraphTest, RefusesEdgesOfAbsentNodesAndBadWeights) {
  PutNodes({"a"});
  EXPECT_EQ(graph_->PutEdge({"a", "knows", "b"}).code(), StatusCode::kNotFound);
  EXPECT_EQ(graph_->PutEdge({"b", "knows", "a"}).code(), StatusCode::kNotFound);
  for (const double weight : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(graph_->PutEdge({"a", "knows", "a"}, {.weight = weight}).code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(GraphTest, GivesARemovedNodesNameANewNumber) {
  PutNodes({"a", "b"});
  PutEdge("a", "knows", "b");
  PutEdge("a", "knows", "a");
  const NodeId before = IdOf("a");
  EXPECT_TRUE(graph_->RemoveNode("a").value());
  EXPECT_FALSE(graph_->RemoveNode("a").value());
  PutNodes({"a"});
  EXPECT_NE(IdOf("a"), before);
  EXPECT_EQ(NeighborsOf("a", {.direction = EdgeDirection::kBoth}), Lines{});
  EXPECT_EQ(NeighborsOf("b", {.direction = EdgeDirection::kBoth}), Lines{});
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphTest, CommitsNodesEdgesAndKeysTogether) {
  PutNodes({"a"});
  Transaction tx = db_->Begin().value();
  ASSERT_TRUE(graph_->PutNode(tx, "b").ok());
  ASSERT_TRUE(graph_->PutEdge(tx, {"a", "knows", "b"}).ok());
  ASSERT_TRUE(tx.Put("key", "value").ok());
  {
    const GraphView inside = graph_->Read(tx).value();
    EXPECT_TRUE(inside.FindNode("b").value().has_value());
    EXPECT_EQ(inside.Neighbors(IdOf("a")).value().neighbors.size(), 1u);
  }
  EXPECT_EQ(NeighborsOf("a"), Lines{});
  ASSERT_TRUE(tx.Commit().ok());
  EXPECT_EQ(NeighborsOf("a"), Lines{"b"});
  EXPECT_TRUE(db_->Contains("key").value());
}

TEST_F(GraphTest, AnEdgeToANodeThatIsRemovedMeanwhileIsAConflict) {
  PutNodes({"a", "b"});
  Transaction linking = db_->Begin().value();
  ASSERT_TRUE(graph_->PutEdge(linking, {"a", "knows", "b"}).ok());
  ASSERT_TRUE(graph_->RemoveNode("b").value());
  EXPECT_EQ(linking.Commit().code(), StatusCode::kAborted);
  Transaction removing = db_->Begin().value();
  ASSERT_TRUE(graph_->RemoveNode(removing, "a").value());
  PutNodes({"c"});
  PutEdge("a", "knows", "c");
  EXPECT_EQ(removing.Commit().code(), StatusCode::kAborted);
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphTest, AnEdgeOfATypeThatIsNewMeanwhileIsAConflict) {
  PutNodes({"a", "b"});
  Transaction removing = db_->Begin().value();
  ASSERT_FALSE(graph_->RemoveEdge(removing, {"a", "new", "b"}).value());
  ASSERT_TRUE(graph_->PutNode(removing, "c").ok());
  Transaction reading = db_->Begin().value();
  const NodeId a = IdOf("a");
  {
    const GraphView view = graph_->Read(reading).value();
    ASSERT_TRUE(view.Neighbors(a, {.types = {"new"}}).value().neighbors.empty());
  }
  ASSERT_TRUE(graph_->PutNode(reading, "d").ok());
  PutEdge("a", "new", "b");
  EXPECT_EQ(removing.Commit().code(), StatusCode::kAborted);
  EXPECT_EQ(reading.Commit().code(), StatusCode::kAborted);
}

TEST_F(GraphTest, PagesOfNeighborsAreAllOfThemOnce) {
  Lines ids;
  for (int i = 0; i < 25; ++i) ids.push_back("n" + std::to_string(100 + i));
  PutNodes(ids);
  for (const std::string& id : ids) {
    PutEdge("n100", id < "n110" ? "a" : "b", id);
    PutEdge(id, "c", "n100");
  }
  const GraphView view = graph_->Read().value();
  for (const EdgeFilter& filter :
       {EdgeFilter{.direction = EdgeDirection::kBoth}, EdgeFilter{.types = {"b", "a", "none"}},
        EdgeFilter{.direction = EdgeDirection::kBoth, .types = {"c", "b"}}}) {
    const auto all = view.Neighbors(IdOf("n100"), filter).value().neighbors;
    for (size_t limit = 1; limit < 30; limit += 3) {
      std::vector<Neighbor> paged;
      std::string next;
      do {
        NeighborPage page = view.Neighbors(IdOf("n100"), filter, limit, next).value();
        EXPECT_LE(page.neighbors.size(), limit);
        for (Neighbor& each : page.neighbors) paged.push_back(std::move(each));
        next = page.next;
      } while (!next.empty());
      ASSERT_EQ(paged.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(paged[i].node, all[i].node);
        EXPECT_EQ(paged[i].type, all[i].type);
        EXPECT_EQ(paged[i].direction, all[i].direction);
      }
    }
  }
  EXPECT_EQ(view.Neighbors(IdOf("n100"), {}, 5, "no page").code(), StatusCode::kInvalidArgument);
}

TEST_F(GraphTest, ReadsAsOfATimeSeeOnlyEdgesThatWereValid) {
  PutNodes({"a", "b", "c"});
  ASSERT_TRUE(graph_->PutEdge({"a", "x", "b"}, {.valid_from = At(10), .valid_to = At(20)}).ok());
  ASSERT_TRUE(graph_->PutEdge({"a", "x", "c"}, {.valid_from = At(20)}).ok());
  EXPECT_EQ(NeighborsOf("a"), (Lines{"b", "c"}));
  EXPECT_EQ(NeighborsOf("a", {.as_of = At(9)}), Lines{});
  EXPECT_EQ(NeighborsOf("a", {.as_of = At(10)}), Lines{"b"});
  EXPECT_EQ(NeighborsOf("a", {.as_of = At(20)}), Lines{"c"});
  EXPECT_EQ(NeighborsOf("b", {.direction = EdgeDirection::kIn, .as_of = At(20)}), Lines{});
}

TEST_F(GraphTest, AnExpiredEdgeIsGoneAtBothEnds) {
  PutNodes({"a", "b"});
  ASSERT_TRUE(graph_->PutEdge({"a", "x", "b"}, {.expiry = At(1)}).ok());
  EXPECT_EQ(NeighborsOf("a", {.direction = EdgeDirection::kBoth}), Lines{});
  EXPECT_EQ(NeighborsOf("b", {.direction = EdgeDirection::kBoth}), Lines{});
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphTest, TraversesStepByStep) {
  for (const char* person : {"ann", "bob", "cid", "dan"}) {
    ASSERT_TRUE(graph_->PutNode(person, {.labels = {"Person"}, .properties = {{"n", 1}}}).ok());
  }
  ASSERT_TRUE(graph_->PutNode("town", {.labels = {"Place"}}).ok());
  PutEdge("ann", "knows", "bob");
  PutEdge("ann", "knows", "cid");
  PutEdge("ann", "lives", "town");
  PutEdge("dan", "lives", "town");
  PutEdge("cid", "knows", "dan");
  const GraphView view = graph_->Read().value();
  const auto names = [&](const Traversal& traversal) {
    return NamesOf(view, traversal.Run().value().nodes);
  };
  EXPECT_EQ(names(view.Traverse("ann").Out("knows")), (Lines{"bob", "cid"}));
  EXPECT_EQ(names(view.Traverse("ann").Out()), (Lines{"bob", "cid", "town"}));
  EXPECT_EQ(names(view.Traverse("ann").Out().HasLabel("Place")), Lines{"town"});
  EXPECT_EQ(names(view.Traverse("ann").Out("lives").In("lives")), (Lines{"ann", "dan"}));
  EXPECT_EQ(names(view.Traverse("ann").Out("knows").Limit(1)), Lines{"bob"});
  EXPECT_EQ(names(view.Traverse("ann")
                      .Out("knows")
                      .Where([](const Node& node) { return node.external_id > "bz"; })
                      .Out("knows")),
            Lines{"dan"});
  EXPECT_EQ(names(view.Traverse("nobody").Out()), Lines{});
  const auto limited = view.Traverse("ann").Out().Within({.visited_max = 2}).Run().value();
  EXPECT_EQ(limited.nodes.size(), 2u);
  EXPECT_TRUE(limited.truncated);
}

TEST_F(GraphTest, LimitsTruncateEveryRead) {
  Lines ids;
  for (int i = 0; i < 50; ++i) ids.push_back("n" + std::to_string(100 + i));
  PutNodes(ids);
  for (size_t i = 1; i < ids.size(); ++i) {
    PutEdge("n100", "x", ids[i]);
    PutEdge(ids[i], "x", ids[(i + 1) % ids.size()]);
  }
  PutNodes({"island"});
  const GraphView view = graph_->Read().value();
  const NodeId n100 = IdOf("n100");
  const NodeId island = IdOf("island");
  for (const ReadLimits& limits :
       {ReadLimits{.visited_max = 5}, ReadLimits{.fan_out_max = 5}, ReadLimits{.bytes_max = 2000},
        ReadLimits{.time_max = std::chrono::milliseconds(0)}}) {
    EXPECT_TRUE(view.KHop(n100, 1, {}, limits).value().truncated);
    EXPECT_TRUE(view.Traverse("n100").Out().Within(limits).Run().value().truncated);
    EXPECT_TRUE(view.ShortestPath(n100, island, {}, false, limits).value().truncated);
    EXPECT_TRUE(view.Paths(n100, island, 3, 9, {}, limits).value().truncated);
    const NodeScore seed{n100, 1};
    EXPECT_TRUE(view.PersonalizedPageRank({&seed, 1}, {.limits = limits}).value().truncated);
    EXPECT_TRUE(view.ConnectedComponents({}, limits).value().truncated);
  }
  EXPECT_FALSE(view.KHop(n100, 1).value().truncated);
  EXPECT_EQ(view.KHop(n100, 1).value().nodes.size(), 50u);
}

TEST_F(GraphTest, VerifyNamesWhatIsWrong) {
  PutNodes({"a", "b"});
  PutEdge("a", "x", "b", 2);
  const KeyspaceId keyspace = db_->OpenKeyspace("graph").value();
  const std::string out = EdgeKey(IdOf("a"), NodeTag::kOut, 0, IdOf("b"), "");
  const std::string in = EdgeKey(IdOf("b"), NodeTag::kIn, 0, IdOf("a"), "");
  const auto spoiled = [&](const std::string& key, const char* value, const char* what) {
    const std::string before = db_->Get(key, {.keyspace = keyspace}).value().value().ToString();
    const Status written = value == nullptr ? Status(db_->Delete(key, {.keyspace = keyspace}))
                                            : Status(db_->Put(key, value, {.keyspace = keyspace}));
    EXPECT_TRUE(written.ok());
    const auto faults = graph_->Verify().value();
    EXPECT_FALSE(faults.empty()) << what;
    bool is_named = false;
    for (const std::string& fault : faults) is_named |= fault.find(what) != std::string::npos;
    EXPECT_TRUE(is_named) << what << ", but: " << (faults.empty() ? "" : faults[0]);
    EXPECT_TRUE(db_->Put(key, before, {.keyspace = keyspace}).ok());
  };
  spoiled(in, nullptr, "missing at the node that it leads to");
  spoiled(out, nullptr, "missing at the node that it comes from");
  spoiled(in, "\1", "the two ends of the edge differ");
  spoiled(out, "\x7F", "unknown flags");
  spoiled(ExternalIdKey("a"), nullptr, "does not lead to it");
  spoiled(NodeKey(IdOf("a"), NodeTag::kNode), nullptr, "has no record");
  spoiled(NameKey(Dictionary::kEdgeType, 0), nullptr, "another name");
  spoiled(NameIdKey(Dictionary::kEdgeType, "x"), nullptr, "another id");
  spoiled(CounterKey(kNodeCounter), nullptr, "not given out");
  const auto expire = [&](int64_t ms) {
    const std::string value = db_->Get(in, {.keyspace = keyspace}).value().value().ToString();
    EXPECT_TRUE(db_->Put(in, value, {.keyspace = keyspace, .expiry = At(ms)}).ok());
  };
  expire(int64_t{1} << 45);
  EXPECT_EQ(graph_->Verify().value().size(), 2u);  // Once at each end.
  PutEdge("a", "x", "b", 2);
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphTest, CorruptRecordsAreErrorsOfEveryRead) {
  PutNodes({"a", "b", "c"});
  PutEdge("a", "x", "b", 2);
  const NodeId a = IdOf("a");
  const NodeScore seed{a, 1};
  const KeyspaceId keyspace = db_->OpenKeyspace("graph").value();
  const auto while_spoiled = [&](const std::string& key, std::string_view value,
                                 const std::function<void()>& look) {
    const MaybeValue before = db_->Get(key, {.keyspace = keyspace}).value();
    ASSERT_TRUE(db_->Put(key, value, {.keyspace = keyspace}).ok());
    look();
    const bool is_back = before ? db_->Put(key, before->view(), {.keyspace = keyspace}).ok()
                                : db_->Delete(key, {.keyspace = keyspace}).ok();
    ASSERT_TRUE(is_back);
  };
  const auto expect_no_edges = [&] {
    const GraphView view = graph_->Read().value();
    EXPECT_EQ(view.Neighbors(a).code(), StatusCode::kCorruption);
    EXPECT_EQ(view.KHop(a, 2).code(), StatusCode::kCorruption);
    EXPECT_EQ(view.Traverse("a").Out().Run().code(), StatusCode::kCorruption);
    // To "b" it may find the way before it meets the fault.
    EXPECT_EQ(view.ShortestPath(a, IdOf("c")).code(), StatusCode::kCorruption);
    EXPECT_EQ(view.Paths(a, IdOf("b"), 2, 2).code(), StatusCode::kCorruption);
    EXPECT_EQ(view.PersonalizedPageRank({&seed, 1}).code(), StatusCode::kCorruption);
    EXPECT_EQ(view.ConnectedComponents().code(), StatusCode::kCorruption);
    EXPECT_FALSE(graph_->Verify().value().empty());
  };
  const std::string edge = EdgeKey(a, NodeTag::kOut, 0, IdOf("b"), "");
  for (const std::string_view value : {""sv, "\x08"sv, "\1short"sv, "\2"sv}) {
    while_spoiled(edge, value, [&] {
      expect_no_edges();
      EXPECT_EQ(graph_->Read().value().GetEdge({"a", "x", "b"}).code(), StatusCode::kCorruption);
    });
  }
  while_spoiled(NodeKey(a, NodeTag::kOut) + "short", "", expect_no_edges);
  while_spoiled(NodeKey(a, NodeTag::kNode), "\1", [&] {
    EXPECT_EQ(graph_->Read().value().GetNode(a).code(), StatusCode::kCorruption);
    EXPECT_EQ(graph_->Read().value().GetNode("a").code(), StatusCode::kCorruption);
  });
  for (const std::string_view id :
       {"abc"sv, "\0\0\0\0\0\0\0\0"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv}) {
    while_spoiled(ExternalIdKey("a"), id, [&] {
      EXPECT_EQ(graph_->Read().value().FindNode("a").code(), StatusCode::kCorruption);
      EXPECT_EQ(graph_->PutNode("a").code(), StatusCode::kCorruption);
      EXPECT_EQ(graph_->RemoveNode("a").code(), StatusCode::kCorruption);
      EXPECT_EQ(graph_->PutEdge({"b", "x", "a"}).code(), StatusCode::kCorruption);
      EXPECT_FALSE(graph_->Verify().value().empty());
    });
    while_spoiled(CounterKey(kNodeCounter), id, [&] {
      const auto reopened = Graph::Open(db_.get()).value();
      EXPECT_EQ(reopened->PutNode("new").code(), StatusCode::kCorruption);
      EXPECT_FALSE(graph_->Verify().value().empty());
    });
  }
  while_spoiled(CounterKey(1 + static_cast<int>(Dictionary::kLabel)), "abc", [&] {
    EXPECT_EQ(graph_->PutNode("a", {.labels = {"new"}}).code(), StatusCode::kCorruption);
  });
  // A removal that names the catalogue must not remove it.
  while_spoiled(RemovalKey(NodeId{0}), "", [&] {
    EXPECT_FALSE(graph_->Verify().value().empty());
    EXPECT_TRUE(Graph::Open(db_.get()).ok());
  });
  EXPECT_TRUE(IsSound(*graph_));
  EXPECT_EQ(DumpOf(*graph_).size(), 4u);
}

TEST_F(GraphTest, AnEdgeToALargeNodeThatIsRemovedMeanwhileIsAConflict) {
  PutNodes({"a", "b", "hub"});
  PutEdge("a", "x", "hub");
  for (int i = 0; i < 20; ++i) {
    const std::string discriminator = std::string(1000, 'd') + std::to_string(i);
    ASSERT_TRUE(graph_->PutEdge({"b", "x", "hub", discriminator}).ok());
  }
  Transaction tx = db_->Begin().value();
  const NodeId a = IdOf("a");
  {
    const GraphView view = graph_->Read(tx).value();
    ASSERT_EQ(view.Neighbors(a).value().neighbors.size(), 1u);
  }
  ASSERT_TRUE(tx.Put("seen", "a leads to hub").ok());
  Transaction removal = db_->Begin().value();
  ASSERT_TRUE(graph_->RemoveNode(removal, "hub").value());
  ASSERT_TRUE(removal.Commit().ok());
  // The records of its edges are left, and nobody sees them.
  EXPECT_EQ(graph_->GetStats().value().removals, 1u);
  EXPECT_EQ(graph_->GetStats().value().edges, 0u);
  EXPECT_EQ(NeighborsOf("a"), Lines{});
  EXPECT_EQ(NeighborsOf("b"), Lines{});
  EXPECT_TRUE(IsSound(*graph_));
  EXPECT_EQ(tx.Commit().code(), StatusCode::kAborted);
  PutNodes({"hub"});
  PutEdge("a", "y", "hub");
  ASSERT_TRUE(graph_->FinishRemovals().ok());
  EXPECT_EQ(graph_->GetStats().value().removals, 0u);
  EXPECT_EQ(NeighborsOf("a"), Lines{"hub"});
  EXPECT_EQ(graph_->GetStats().value().edges, 1u);
  EXPECT_TRUE(IsSound(*graph_));
}

TEST_F(GraphTest, TakesNoKeyspaceOfOtherData) {
  const KeyspaceId keyspace = db_->OpenOrCreateKeyspace("other").value();
  ASSERT_TRUE(db_->Put("key", "value", {.keyspace = keyspace}).ok());
  EXPECT_EQ(Graph::Open(db_.get(), {.name = "other"}).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(db_->Delete("key", {.keyspace = keyspace}).ok());
  EXPECT_TRUE(Graph::Open(db_.get(), {.name = "other"}).ok());
  EXPECT_TRUE(Graph::Open(db_.get(), {.name = "other"}).ok());
  ASSERT_TRUE(db_->Put(CatalogueKey(CatalogueTag::kFormat), "\2", {.keyspace = keyspace}).ok());
  EXPECT_EQ(Graph::Open(db_.get(), {.name = "other"}).code(), StatusCode::kUnsupported);
}

/// Puts a hub with `edges` edges into an empty store, and removes it.
void RemoveHub(Store* store, int edges) {
  const auto graph = Graph::Open(store).value();
  ASSERT_TRUE(graph->PutNode("hub").ok());
  ASSERT_TRUE(graph->PutNode("b").ok());
  for (int i = 0; i < edges; ++i) {
    const std::string discriminator = std::to_string(i);
    ASSERT_TRUE(graph->PutEdge({"b", "x", "hub", discriminator}).ok());
  }
  ASSERT_TRUE(graph->RemoveNode("hub").value());
  EXPECT_EQ(graph->GetStats().value().edges, 0u);
  EXPECT_EQ(graph->GetStats().value().removals, 0u);
  EXPECT_EQ(DumpOf(*graph), Lines{"node b"});
  EXPECT_TRUE(IsSound(*graph));
}

// A little below what one transaction removes, above it, and far above it: batches must fit.
TEST(GraphStores, HubsAreRemovedFromSmallStores) {
  for (const int edges : {600, 700, 3000}) {
    SCOPED_TRACE(edges);
    const auto table = MemTable::Create({.memory_budget = 1 << 20}).value();
    ASSERT_NO_FATAL_FAILURE(RemoveHub(table.get(), edges));
    const auto db = DB::Open(":memory:", {.memory_budget = 1 << 20}).value();
    ASSERT_NO_FATAL_FAILURE(RemoveHub(db.get(), edges));
  }
}

TEST(GraphStores, WorksOnAMemTable) {
  const auto table = MemTable::Create({.memory_budget = 16 << 20}).value();
  const auto graph = Graph::Open(table.get()).value();
  ASSERT_TRUE(graph->PutNode("a").ok());
  ASSERT_TRUE(graph->PutEdge({"a", "x", "a"}).ok());
  EXPECT_EQ(DumpOf(*graph).size(), 2u);
  EXPECT_TRUE(IsSound(*graph));
  EXPECT_EQ(Graph::Open(table.get(), {.name = "other", .create_if_missing = false}).code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace basalt::graph
