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
// weight and properties. Read Graph first, then GraphView. docs/graph.md has the records, byte by
// byte, and what each call costs.
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
struct GraphAccess;
class LoadBatch;
class Reader;
}  // namespace graph

/// The number of a node. A number is never used for a second node.
enum class NodeId : uint64_t {};

/// The longest external id of a node, type, label or property name, and discriminator, in bytes.
inline constexpr size_t kGraphNameBytesMax = 1024;

/// The content of a node.
struct NodeContent {
  std::vector<std::string> labels{};  ///< A set: order and repetitions have no meaning.
  Properties properties{};
};

/// A node that a read found. Labels are in ascending order.
struct Node {
  NodeId id{};
  std::string external_id;
  std::vector<std::string> labels;
  Properties properties;
};

/// The name of an edge. There is one edge for each combination of these fields.
struct EdgeName {
  std::string_view from;  ///< External id.
  std::string_view type;
  std::string_view to;               ///< External id.
  std::string_view discriminator{};  ///< Distinguishes parallel edges of one type.
};

/// The content of an edge.
struct EdgeContent {
  double weight = 1;  ///< Finite, not negative.
  Properties properties{};
  /// When the fact is valid: [valid_from, valid_to). Unset: without a bound. Used by reads as of a
  /// time.
  std::optional<WallTime> valid_from{};
  std::optional<WallTime> valid_to{};
  /// When the edge expires. Unset: never.
  std::optional<WallTime> expiry{};
};

enum class EdgeDirection : uint8_t { kOut, kIn, kBoth };

/// An edge as seen from one of its nodes. An edge from a node to itself is seen twice: as kOut and
/// as kIn.
struct Neighbor {
  NodeId node{};                                  ///< The other end.
  std::string_view type;                          ///< Valid as long as the Graph lives.
  EdgeDirection direction = EdgeDirection::kOut;  ///< kOut or kIn.
  std::string discriminator;
  double weight = 1;
};

/// The edges that a read follows.
struct EdgeFilter {
  EdgeDirection direction = EdgeDirection::kOut;
  /// Empty: all types.
  std::vector<std::string> types{};
  /// Only edges that were valid at this time. Unset: all stored edges.
  std::optional<WallTime> as_of{};
};

/// Bounds of one read. A read that reaches a bound returns what it has found and sets `truncated`.
/// At `fan_out_max` it skips further edges of that node and continues. At the other bounds it ends.
struct ReadLimits {
  uint64_t visited_max = 1'000'000;  ///< Nodes.
  uint64_t fan_out_max = 1'000'000;  ///< Edges followed from one node.
  uint64_t bytes_max = 256 << 20;    ///< Approximate memory for the result and the visited nodes.
  /// Unset: no bound. May be exceeded by the time to read one edge and to sort the result.
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

/// A path through the graph: nodes, and the edges between them.
struct Path {
  std::vector<NodeId> nodes;
  std::vector<Neighbor>
      edges;  ///< One element fewer than `nodes`. edges[i] leads from nodes[i] to nodes[i + 1].
  double cost = 0;  ///< The number of edges, or the sum of their weights.
};
struct PathResult {
  std::vector<Path> paths{};  ///< Empty: there is no path, or none was found within the limits.
  /// True: there may be more paths, and shorter ones.
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
  /// The probability that may remain unassigned at a node, for each of its edges; from 1e-12 to 1.
  /// Smaller is more exact and slower.
  double epsilon = 1e-6;
  ReadLimits limits{};
};
struct PageRankResult {
  std::vector<NodeScore> nodes{};  ///< Greatest score first.
  bool truncated = false;
};

struct ComponentsResult {
  /// For each node the least node of its component, ordered by node.
  std::vector<std::pair<NodeId, NodeId>> components;
  uint64_t count = 0;
  bool truncated = false;
};

struct TraversalResult {
  std::vector<NodeId> nodes;  ///< Each node once, in the order in which it was found.
  bool truncated = false;
};

class GraphView;

/// A traversal. Its steps are described first, and Run executes them. It refers to the GraphView,
/// which must outlive it.
class Traversal {
 public:
  using Predicate = std::function<bool(const Node& node)>;

  /// Follows edges of these types to the nodes at their other ends. Without types: all edges.
  Traversal& Out(std::vector<std::string> types = {});
  Traversal& In(std::vector<std::string> types = {});
  Traversal& Both(std::vector<std::string> types = {});
  Traversal& Out(std::string type) { return Out(std::vector{std::move(type)}); }
  Traversal& In(std::string type) { return In(std::vector{std::move(type)}); }
  Traversal& Both(std::string type) { return Both(std::vector{std::move(type)}); }
  /// Keeps the nodes for which `keeps` returns true. It reads each node's record.
  Traversal& Where(Predicate keeps);
  /// Keeps the nodes that have the label.
  Traversal& HasLabel(std::string label);
  /// Keeps the first `count` nodes.
  Traversal& Limit(uint64_t count);
  /// Follows only edges that were valid at this time. Applies to all steps.
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

/// The graph at one moment. Move-only. Used by one thread at a time; there may be any number of
/// views. While it lives, the versions that it sees are kept, as for a Snapshot. An absent node is
/// nothing, or has no neighbours. An error means that something could not be read.
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
  /// Like ForEachNode, for each node whose external id begins with `prefix`.
  Status ForEachNode(std::string_view prefix,
                     const std::function<bool(const Node& node)>& visit) const;
  /// Calls `visit` with each edge that leaves `node`, until it returns false.
  Status ForEachEdge(
      NodeId node,
      const std::function<bool(const Neighbor& edge, const EdgeContent& content)>& visit) const;

  /// Up to `limit` edges of a node, ordered by direction (out, then in), type and other end. `from`
  /// is the `next` of the previous page. InvalidArgument: `from` is not the `next` of a page.
  Result<NeighborPage> Neighbors(NodeId node, const EdgeFilter& filter = {}, size_t limit = 1000,
                                 std::string_view from = {}) const;
  Traversal Traverse(std::string_view from) const { return Traversal(this, std::string(from)); }
  /// All nodes within `hops` of `node`, by breadth-first search.
  Result<KHopResult> KHop(NodeId node, uint32_t hops, const EdgeFilter& filter = {},
                          const ReadLimits& limits = {}) const;
  /// A path with the fewest edges, or with the least sum of weights (Dijkstra).
  Result<PathResult> ShortestPath(NodeId from, NodeId to, const EdgeFilter& filter = {},
                                  bool weighted = false, const ReadLimits& limits = {}) const;
  /// Up to `count_max` paths of up to `hops` edges without a repeated node, shorter ones first.
  /// InvalidArgument: `hops` is above 64.
  Result<PathResult> Paths(NodeId from, NodeId to, uint32_t hops, size_t count_max,
                           const EdgeFilter& filter = {}, const ReadLimits& limits = {}) const;
  /// The probability that a random walk is at each node. The walk begins at the seeds, follows
  /// edges by their weights, and returns to the seeds with probability `restart` at each step.
  /// Algorithm: local push (Andersen, Chung and Lang, "Local graph partitioning using PageRank
  /// vectors", 2006). The scores of seeds are their shares; absent seeds are left out.
  /// InvalidArgument: a share is not above zero, or restart or epsilon is out of range.
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
  /// Memory that the edges may take besides the store, so that searches need not read them from it:
  /// 16 to 32 bytes an edge (docs/graph.md). Twice as much while they are rebuilt. If they need
  /// more, searches read the store. 0: they always do.
  uint64_t adjacency_bytes_max = uint64_t{1} << 30;
};

struct GraphStats {
  uint64_t nodes = 0;
  uint64_t edges = 0;
  uint64_t labels = 0;  ///< Names that were used at any time.
  uint64_t edge_types = 0;
  uint64_t property_names = 0;
  uint64_t removals = 0;         ///< Removed nodes whose edges still take space.
  uint64_t adjacency_bytes = 0;  ///< Memory of edges. 0: searches read the store.
};

/// A graph. Thread-safe. The store must outlive it.
///
/// Each change is one transaction, and is retried after a conflict. Each function also has a form
/// that takes a Transaction of the same store; the change then takes effect when that commits.
/// Every change is an upsert or a removal: it is not an error if the thing exists already, or is
/// already absent.
class Graph {
 public:
  /// Unsupported: the store has no transactions, keyspaces, snapshots or order; or a newer version
  /// wrote the graph. NotFound: the graph is absent and is not to be created. InvalidArgument: the
  /// keyspace holds other data. Finishes removals that a crash has interrupted.
  static Result<std::unique_ptr<Graph>> Open(Store* store, const GraphOptions& options = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Adds a node, or replaces its labels and properties. Its edges stay.
  Result<NodeId> PutNode(std::string_view external_id, const NodeContent& content = {});
  Result<NodeId> PutNode(Transaction& tx, std::string_view external_id,
                         const NodeContent& content = {});
  /// Removes a node and its edges. False: the node is absent. A node with many edges disappears at
  /// once; the records of its edges are removed in steps, in bounded memory. In a transaction,
  /// FinishRemovals does these steps.
  Result<bool> RemoveNode(std::string_view external_id);
  Result<bool> RemoveNode(Transaction& tx, std::string_view external_id);
  /// Adds an edge, or replaces its content. NotFound: one of the nodes is absent.
  Status PutEdge(const EdgeName& name, const EdgeContent& content = {});
  Status PutEdge(Transaction& tx, const EdgeName& name, const EdgeContent& content = {});
  /// False: the edge is absent.
  Result<bool> RemoveEdge(const EdgeName& name);
  Result<bool> RemoveEdge(Transaction& tx, const EdgeName& name);
  /// Removes the remaining records of removed nodes.
  Status FinishRemovals();

  /// The graph as it is now.
  Result<GraphView> Read() const;
  /// The graph as `tx` sees it, with its own changes up to this call. Call it again after a change.
  /// `tx` must outlive the view.
  Result<GraphView> Read(Transaction& tx) const;

  /// Reads all edges into memory, where searches find them. That happens in the background when
  /// searches have read the edges of several thousand nodes; this call does it at once and returns
  /// when it is done. Reads and changes continue meanwhile. ResourceExhausted: the edges need more
  /// than GraphOptions::adjacency_bytes_max. Corruption: a record is malformed. After an error
  /// searches read the store.
  Status RebuildAdjacency();

  /// Checks all records. Returns one line for each inconsistency, up to `faults_max`; empty if
  /// there is none. The memory that it needs does not grow with the graph.
  Result<std::vector<std::string>> Verify(size_t faults_max = 100) const;
  /// Counts nodes and edges; it reads all keys.
  Result<GraphStats> GetStats() const;

 private:
  friend struct graph::GraphAccess;
  friend class GraphLoader;
  explicit Graph(std::unique_ptr<graph::Core> core);
  const std::unique_ptr<graph::Core> core_;
};

/// Puts many nodes and edges several times faster than Graph's own calls. Puts are collected, and
/// Commit makes them one write:
///
///     basalt::GraphLoader loader(graph.get());
///     for (const auto& edge : edges) loader.PutEdge({edge.from, "knows", edge.to});
///     loader.Commit();
///
/// It remembers the numbers of the nodes that it has met, in up to 256 MiB. One thread at a time;
/// the graph may be changed meanwhile, and must outlive it.
class GraphLoader {
 public:
  /// `make_nodes`: a node that an edge needs is made if it is absent.
  explicit GraphLoader(Graph* graph, bool make_nodes = false);
  GraphLoader(GraphLoader&&) noexcept;
  GraphLoader& operator=(GraphLoader&&) noexcept;
  ~GraphLoader();

  /// As Graph::PutNode and Graph::PutEdge. After an error the put adds no edge and replaces no
  /// node.
  Status PutNode(std::string_view external_id, const NodeContent& content = {});
  /// NotFound: a node is neither in the graph nor among the puts before.
  Status PutEdge(const EdgeName& name, const EdgeContent& content = {});
  /// Writes what was put since the last Commit, all of it or, after an error, nothing. Aborted: a
  /// node was removed meanwhile, or another writer has added a node of the same external id; put it
  /// again. The keyspace and the expiry of `options` are ignored.
  Result<basalt::Commit> Commit(const WriteOptions& options = {});

 private:
  std::unique_ptr<graph::LoadBatch> batch_;
  bool make_nodes_;
};

}  // namespace basalt
