#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/property.h"
#include "basalt/snapshot.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/transaction.h"
#include "basalt/wall_time.h"

// A property graph in a transactional Store: nodes with labels and properties, edges with a type, a
// weight and properties. docs/graph.md has the records, byte by byte, and what each call costs.
//
//     auto graph = basalt::Graph::Open(store.get()).value();
//     graph->PutNode("ada", {.labels = {"Person"}, .properties = {{"born", 1815}}});
//     graph->PutNode("engine", {.labels = {"Machine"}});
//     graph->PutEdge({.from = "ada", .type = "wrote about", .to = "engine"});
//     auto view = graph->Read().value();
//     auto found = view.Traverse("ada").Out("wrote about").Run().value();

namespace basalt {

namespace graph {
class Core;
class Reader;
}  // namespace graph

/// The number of a node. A number is never used for a second node.
enum class NodeId : uint64_t {};

/// The longest external id of a node, type, label or property name, and discriminator, in bytes.
inline constexpr size_t kGraphNameBytesMax = 1024;

/// What is stored at a node.
struct NodeContent {
  std::vector<std::string> labels{};  ///< A set: order and repetitions mean nothing.
  Properties properties{};
};

/// A node as it was found. Labels ascend.
struct Node {
  NodeId id{};
  std::string external_id;
  std::vector<std::string> labels;
  Properties properties;
};

/// Names an edge. There is one edge for each combination of these.
struct EdgeName {
  std::string_view from;  ///< External id.
  std::string_view type;
  std::string_view to;               ///< External id.
  std::string_view discriminator{};  ///< Tells parallel edges of one type apart.
};

/// What is stored at an edge.
struct EdgeContent {
  double weight = 1;  ///< Finite, not negative.
  Properties properties{};
  /// When the fact holds: [valid_from, valid_to). Nothing: without a bound. For reads as of a time.
  std::optional<WallTime> valid_from{};
  std::optional<WallTime> valid_to{};
  /// When the edge disappears by itself. Nothing: never.
  std::optional<WallTime> expiry{};
};

enum class EdgeDirection : uint8_t { kOut, kIn, kBoth };

/// An edge as it is seen from one of its nodes. An edge from a node to itself is seen twice: as
/// kOut and as kIn.
struct Neighbor {
  NodeId node{};                                  ///< The other end.
  std::string_view type;                          ///< Lives as long as the Graph.
  EdgeDirection direction = EdgeDirection::kOut;  ///< kOut or kIn.
  std::string discriminator;
  double weight = 1;
};

/// Which edges a read follows.
struct EdgeFilter {
  EdgeDirection direction = EdgeDirection::kOut;
  /// Empty: all types.
  std::vector<std::string> types{};
  /// Only edges that were valid at this time. Nothing: all edges that are stored.
  std::optional<WallTime> as_of{};
};

/// Bounds of one read. A read that reaches one gives what it has found and says `truncated`. At
/// `fan_out_max` it leaves out further edges of that node and continues; at the others it ends.
struct ReadLimits {
  uint64_t visited_max = 1'000'000;  ///< Nodes.
  uint64_t fan_out_max = 1'000'000;  ///< Edges that are followed from one node.
  uint64_t bytes_max = 256 << 20;    ///< Memory for the answer and what was visited, about.
  /// Nothing: no bound. The time of one edge and of sorting the answer may be added.
  std::optional<std::chrono::milliseconds> time_max{};
};

/// A part of a node's edges.
struct NeighborPage {
  std::vector<Neighbor> neighbors;
  /// Where the next page begins. Empty: there are no more.
  std::string next;
};

struct NodeDistance {
  NodeId node{};
  uint32_t hops = 0;
};
struct KHopResult {
  std::vector<NodeDistance> nodes;  ///< By distance, the start first.
  bool truncated = false;
};

/// A way through the graph: nodes, and the edges between them.
struct Path {
  std::vector<NodeId> nodes;
  std::vector<Neighbor> edges;  ///< One less; edges[i] leads from nodes[i] to nodes[i + 1].
  double cost = 0;              ///< Edges, or the sum of their weights.
};
struct PathResult {
  std::vector<Path> paths{};  ///< Empty: there is none, or none was found within the limits.
  /// There may be more paths, and shorter ones.
  bool truncated = false;
};

struct NodeScore {
  NodeId node{};
  double score = 0;
};
struct PageRankOptions {
  EdgeFilter edges{.direction = EdgeDirection::kBoth};
  /// The probability of returning to the seeds at each step, from 0.01 to 1.
  double restart = 0.5;
  /// What may remain unassigned at a node, for each of its edges; from 1e-12 to 1. Smaller is more
  /// exact and slower.
  double epsilon = 1e-6;
  ReadLimits limits{};
};
struct PageRankResult {
  std::vector<NodeScore> nodes{};  ///< Greatest score first.
  bool truncated = false;
};

struct ComponentsResult {
  /// For each node the least node of its component; by node.
  std::vector<std::pair<NodeId, NodeId>> components;
  uint64_t count = 0;
  bool truncated = false;
};

struct TraversalResult {
  std::vector<NodeId> nodes;  ///< Each once, in the order in which they were found.
  bool truncated = false;
};

class GraphView;

/// A traversal, step by step. It is described first and read by Run. It refers to the GraphView,
/// which must outlive it.
class Traversal {
 public:
  using Predicate = std::function<bool(const Node& node)>;

  /// Goes on to the nodes behind edges of these types; without types, of all.
  Traversal& Out(std::vector<std::string> types = {});
  Traversal& In(std::vector<std::string> types = {});
  Traversal& Both(std::vector<std::string> types = {});
  Traversal& Out(std::string type) { return Out(std::vector{std::move(type)}); }
  Traversal& In(std::string type) { return In(std::vector{std::move(type)}); }
  Traversal& Both(std::string type) { return Both(std::vector{std::move(type)}); }
  /// Keeps the nodes for which it is true. It reads each node's record.
  Traversal& Where(Predicate keeps);
  /// Keeps nodes with a label.
  Traversal& HasLabel(std::string label);
  /// Keeps the first `count` nodes.
  Traversal& Limit(uint64_t count);
  /// Follows only edges that were valid at this time; for all steps.
  Traversal& AsOf(WallTime time);
  Traversal& Within(const ReadLimits& limits);

  Result<TraversalResult> Run() const;

 private:
  friend class GraphView;
  struct Step {
    std::optional<EdgeFilter> follow{};
    Predicate keeps{};
    std::optional<uint64_t> limit{};
  };
  Traversal(const GraphView* view, std::string from) : view_(view), from_(std::move(from)) {}
  Traversal& Follow(EdgeDirection direction, std::vector<std::string> types);
  Status Take(const Step& step, TraversalResult* found) const;

  const GraphView* view_;
  std::string from_;
  std::vector<Step> steps_;
  std::optional<WallTime> as_of_;
  ReadLimits limits_;
};

/// The graph at one moment. Move-only. One thread at a time; any number of views. While it lives,
/// old versions are kept, as for a Snapshot. A node that is absent is nothing, or has no
/// neighbours; errors are for what could not be read.
class GraphView {
 public:
  GraphView(GraphView&&) noexcept;
  GraphView& operator=(GraphView&&) noexcept;
  ~GraphView();

  Result<std::optional<NodeId>> FindNode(std::string_view external_id) const;
  Result<std::optional<Node>> GetNode(NodeId node) const;
  Result<std::optional<Node>> GetNode(std::string_view external_id) const;
  Result<std::optional<EdgeContent>> GetEdge(const EdgeName& name) const;
  /// Calls `visit` with each node, by external id, until it returns false.
  Status ForEachNode(const std::function<bool(const Node& node)>& visit) const;
  /// Calls `visit` with each node whose external id begins with `prefix`; the same.
  Status ForEachNode(std::string_view prefix,
                     const std::function<bool(const Node& node)>& visit) const;
  /// Calls `visit` with each edge that leaves `node`, until it returns false.
  Status ForEachEdge(
      NodeId node,
      const std::function<bool(const Neighbor& edge, const EdgeContent& content)>& visit) const;

  /// Up to `limit` edges of a node, by direction (out, then in), type and other end. `from`: where
  /// a page before has ended. InvalidArgument: `from` is no such text.
  Result<NeighborPage> Neighbors(NodeId node, const EdgeFilter& filter = {}, size_t limit = 1000,
                                 std::string_view from = {}) const;
  Traversal Traverse(std::string_view from) const { return Traversal(this, std::string(from)); }
  /// All nodes within `hops` of `node`, by breadth-first search.
  Result<KHopResult> KHop(NodeId node, uint32_t hops, const EdgeFilter& filter = {},
                          const ReadLimits& limits = {}) const;
  /// A path with the fewest edges, or with the least sum of weights (Dijkstra).
  Result<PathResult> ShortestPath(NodeId from, NodeId to, const EdgeFilter& filter = {},
                                  bool weighted = false, const ReadLimits& limits = {}) const;
  /// Up to `count_max` paths without a repeated node, of up to `hops` edges; shorter ones first.
  /// InvalidArgument: `hops` is above 64.
  Result<PathResult> Paths(NodeId from, NodeId to, uint32_t hops, size_t count_max,
                           const EdgeFilter& filter = {}, const ReadLimits& limits = {}) const;
  /// Where a walk is found that begins at the seeds, follows edges by their weights, and returns to
  /// the seeds now and then: local push (Andersen, Chung and Lang, "Local graph partitioning using
  /// PageRank vectors", 2006). The scores of seeds are their shares; seeds that are absent are left
  /// out. InvalidArgument: a share is not above zero; restart or epsilon is out of range.
  Result<PageRankResult> PersonalizedPageRank(std::span<const NodeScore> seeds,
                                              const PageRankOptions& options = {}) const;
  /// Weakly connected components of the whole graph.
  Result<ComponentsResult> ConnectedComponents(const EdgeFilter& filter = {},
                                               const ReadLimits& limits = {}) const;

 private:
  friend class Graph;
  friend class Traversal;
  explicit GraphView(std::unique_ptr<graph::Reader> reader);
  std::unique_ptr<graph::Reader> reader_;
};

struct GraphOptions {
  std::string name =
      "graph";  ///< The keyspace, up to 200 bytes. One store may hold several graphs.
  bool create_if_missing = true;
};

struct GraphStats {
  uint64_t nodes = 0;
  uint64_t edges = 0;
  uint64_t labels = 0;  ///< Names that were ever used.
  uint64_t edge_types = 0;
  uint64_t property_names = 0;
  uint64_t removals = 0;  ///< Nodes that were removed and whose edges still take space.
};

/// A graph. Any number of threads. The store must outlive it.
///
/// Each change is one transaction, and is tried again when it meets a conflict. Each also takes a
/// Transaction of the same store; then it takes effect when that commits. Every change is an upsert
/// or a removal; what is there already, or absent already, is no error.
class Graph {
 public:
  /// Unsupported: the store has no transactions, keyspaces, snapshots or order; or a newer version
  /// has written the graph. NotFound: the graph is absent and is not to be created.
  /// InvalidArgument: the keyspace holds other data. Finishes removals that a crash has
  /// interrupted.
  static Result<std::unique_ptr<Graph>> Open(Store* store, const GraphOptions& options = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Adds a node, or replaces its labels and properties; edges stay.
  Result<NodeId> PutNode(std::string_view external_id, const NodeContent& content = {});
  Result<NodeId> PutNode(Transaction& tx, std::string_view external_id,
                         const NodeContent& content = {});
  /// Removes a node and its edges. False: it is not there. A node of many edges disappears at once;
  /// the records of its edges are removed in steps, in bounded memory. In a transaction that is
  /// left to FinishRemovals.
  Result<bool> RemoveNode(std::string_view external_id);
  Result<bool> RemoveNode(Transaction& tx, std::string_view external_id);
  /// Adds an edge, or replaces its content. NotFound: one of the nodes is absent.
  Status PutEdge(const EdgeName& name, const EdgeContent& content = {});
  Status PutEdge(Transaction& tx, const EdgeName& name, const EdgeContent& content = {});
  /// False: it is not there.
  Result<bool> RemoveEdge(const EdgeName& name);
  Result<bool> RemoveEdge(Transaction& tx, const EdgeName& name);
  /// Removes the records that are left of removed nodes.
  Status FinishRemovals();

  /// The present moment.
  Result<GraphView> Read() const;
  /// The graph as `tx` sees it, its own changes up to this call included: read again after a
  /// change. `tx` must outlive the view.
  Result<GraphView> Read(Transaction& tx) const;

  /// Looks at all records. One line for each inconsistency, up to `faults_max`; empty: there is
  /// none. Memory: does not grow with the graph.
  Result<std::vector<std::string>> Verify(size_t faults_max = 100) const;
  /// Counts; it reads all keys.
  Result<GraphStats> GetStats() const;

 private:
  explicit Graph(std::unique_ptr<graph::Core> core);
  const std::unique_ptr<graph::Core> core_;
};

}  // namespace basalt
