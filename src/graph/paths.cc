// Shortest paths, and all paths between two nodes.

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "basalt/graph.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/budget.h"
#include "graph/edge_scan.h"
#include "graph/reader.h"

namespace basalt {
namespace {

using graph::Budget;
using graph::EdgeScan;

/// Memory of a node that a search may pass through, with the edge that led to it.
constexpr size_t kReachedNodeBytes = 192;

/// Memory of a node and an edge in a path, about.
constexpr size_t kPathStepBytes = 96;

/// A node that a search has reached, and the best edge to it so far.
struct Reached {
  double cost = 0;
  NodeId before{};
  Neighbor edge{};  // From `before`, seen from there.
  bool is_final = false;
};
using ReachedNodes = std::unordered_map<NodeId, Reached>;

Path PathTo(NodeId to, NodeId from, const ReachedNodes& reached) {
  Path path{.nodes = {to}, .edges = {}, .cost = reached.at(to).cost};
  while (path.nodes.back() != from) {
    const Reached& last = reached.at(path.nodes.back());
    path.edges.push_back(last.edge);
    path.nodes.push_back(last.before);
  }
  std::ranges::reverse(path.nodes);
  std::ranges::reverse(path.edges);
  return path;
}

/// Dijkstra's algorithm; unweighted, each edge costs 1. Then the first way to a node is a shortest
/// one, and the search ends when it has reached the target.
class ShortestPathSearch {
 public:
  ShortestPathSearch(EdgeScan scan, bool weighted, const ReadLimits& limits)
      : scan_(std::move(scan)), weighted_(weighted), budget_(limits) {}

  Result<PathResult> Find(NodeId from, NodeId to) {
    to_ = to;
    if (!budget_.TakeNode(kReachedNodeBytes)) return PathResult{.truncated = true};
    reached_[from] = {};
    open_.push({0, from});
    while (!open_.empty()) {
      const auto [cost, node] = open_.top();
      open_.pop();
      Reached& here = reached_[node];
      if (std::exchange(here.is_final, true)) continue;
      if (node == to || (!weighted_ && reached_.contains(to))) {
        return PathResult{.paths = {PathTo(to, from, reached_)}, .truncated = budget_.truncated()};
      }
      BASALT_RETURN_IF_ERROR(Expand(node, cost));
      if (budget_.exhausted()) break;
    }
    return PathResult{.truncated = budget_.truncated()};
  }

 private:
  using Open = std::pair<double, NodeId>;

  Status Expand(NodeId node, double cost) {
    uint64_t edges = 0;
    for (scan_.Start(node); scan_.Valid() && budget_.TakeEdge(edges); scan_.Next(), ++edges) {
      const NodeId other = scan_.edge().other;
      const double to_other = cost + (weighted_ ? scan_.weight() : 1);
      const auto known = reached_.find(other);
      if (known != reached_.end()) {
        if (known->second.is_final || known->second.cost <= to_other) continue;
      } else if (!budget_.TakeNode(kReachedNodeBytes)) {
        break;
      }
      BASALT_ASSIGN_OR_RETURN(Neighbor edge, scan_.ToNeighbor());
      if (!budget_.TakeBytes(sizeof(Open) + edge.discriminator.size())) break;
      reached_[other] = {.cost = to_other, .before = node, .edge = std::move(edge)};
      open_.push({to_other, other});
      if (!weighted_ && other == to_) break;
    }
    return scan_.status();
  }

  EdgeScan scan_;
  const bool weighted_;
  NodeId to_{};
  Budget budget_;
  ReachedNodes reached_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

/// All paths of one length after another, by depth-first search. The edges of each node are read
/// once and kept.
class AllPathsSearch {
 public:
  AllPathsSearch(EdgeScan scan, NodeId to, size_t count_max, const ReadLimits& limits)
      : scan_(std::move(scan)), to_(to), count_max_(count_max), budget_(limits) {}

  Result<PathResult> Find(NodeId from, uint32_t hops) {
    path_.nodes = {from};
    if (from == to_ && count_max_ > 0) result_.paths.push_back(path_);
    for (uint32_t length = 1; length <= hops && !IsDone(); ++length) {
      BASALT_RETURN_IF_ERROR(Extend(length));
    }
    result_.truncated = has_more_ || budget_.truncated();
    return std::move(result_);
  }

 private:
  bool IsDone() const { return has_more_ || budget_.exhausted(); }

  Result<std::vector<Neighbor>*> NeighborsOf(NodeId node) {
    const auto [place, is_new] = neighbors_.try_emplace(node);
    if (!is_new) return &place->second;
    uint64_t edges = 0;
    for (scan_.Start(node); scan_.Valid() && budget_.TakeEdge(edges); scan_.Next(), ++edges) {
      BASALT_ASSIGN_OR_RETURN(Neighbor neighbor, scan_.ToNeighbor());
      if (!budget_.TakeBytes(sizeof neighbor + neighbor.discriminator.size())) break;
      place->second.push_back(std::move(neighbor));
    }
    BASALT_RETURN_IF_ERROR(scan_.status());
    return &place->second;
  }

  /// Adds the paths that reach the end by exactly `left` more edges.
  Status Extend(uint32_t left) {
    if (!budget_.TakeNode(graph::kVisitedNodeBytes)) return {};
    BASALT_ASSIGN_OR_RETURN(const std::vector<Neighbor>* neighbors,
                            NeighborsOf(path_.nodes.back()));
    for (const Neighbor& neighbor : *neighbors) {
      if (IsDone()) return {};
      const bool is_end = neighbor.node == to_;
      if (is_end != (left == 1) || IsOnPath(neighbor.node)) continue;
      path_.nodes.push_back(neighbor.node);
      path_.edges.push_back(neighbor);
      if (!is_end) {
        BASALT_RETURN_IF_ERROR(Extend(left - 1));
      } else if (result_.paths.size() == count_max_) {
        has_more_ = true;
      } else if (budget_.TakeBytes(path_.edges.size() * kPathStepBytes)) {
        path_.cost = static_cast<double>(path_.edges.size());
        result_.paths.push_back(path_);
      }
      path_.nodes.pop_back();
      path_.edges.pop_back();
    }
    return {};
  }

  bool IsOnPath(NodeId node) const {
    return std::ranges::find(path_.nodes, node) != path_.nodes.end();
  }

  EdgeScan scan_;
  const NodeId to_;
  const size_t count_max_;
  Budget budget_;
  std::unordered_map<NodeId, std::vector<Neighbor>> neighbors_;
  Path path_;
  PathResult result_;
  bool has_more_ = false;  // Than count_max_.
};

/// The most edges of a path that Paths looks for: its search is that deep.
constexpr uint32_t kPathHopsMax = 64;

}  // namespace

Result<PathResult> GraphView::ShortestPath(NodeId from, NodeId to, const EdgeFilter& filter,
                                           bool weighted, const ReadLimits& limits) const {
  return base::OrOutOfMemory([&]() -> Result<PathResult> {
    BASALT_ASSIGN_OR_RETURN(const std::optional<graph::NodeRecord> start, reader_->GetRecord(from));
    BASALT_ASSIGN_OR_RETURN(const std::optional<graph::NodeRecord> end, reader_->GetRecord(to));
    if (!start || !end) return PathResult();
    BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(reader_.get(), filter));
    return ShortestPathSearch(std::move(scan), weighted, limits).Find(from, to);
  });
}

Result<PathResult> GraphView::Paths(NodeId from, NodeId to, uint32_t hops, size_t count_max,
                                    const EdgeFilter& filter, const ReadLimits& limits) const {
  return base::OrOutOfMemory([&]() -> Result<PathResult> {
    if (hops > kPathHopsMax) {
      return Status(StatusCode::kInvalidArgument, "paths of up to " + std::to_string(hops) +
                                                      " edges; the maximum is " +
                                                      std::to_string(kPathHopsMax));
    }
    BASALT_ASSIGN_OR_RETURN(const std::optional<graph::NodeRecord> start, reader_->GetRecord(from));
    BASALT_ASSIGN_OR_RETURN(const std::optional<graph::NodeRecord> end, reader_->GetRecord(to));
    if (!start || !end) return PathResult();
    BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(reader_.get(), filter));
    return AllPathsSearch(std::move(scan), to, count_max, limits).Find(from, hops);
  });
}

}  // namespace basalt
