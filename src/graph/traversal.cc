// Traversals step by step, and neighbourhoods of several hops.

#include <utility>

#include "basalt/graph.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/budget.h"
#include "graph/edge_scan.h"
#include "graph/node_map.h"
#include "graph/reader.h"

namespace basalt {

using graph::Budget;
using graph::EdgeScan;

Traversal& Traversal::Follow(EdgeDirection direction, std::vector<std::string> types) {
  steps_.push_back({.follow = EdgeFilter{.direction = direction, .types = std::move(types)}});
  return *this;
}
Traversal& Traversal::Out(std::vector<std::string> types) {
  return Follow(EdgeDirection::kOut, std::move(types));
}
Traversal& Traversal::In(std::vector<std::string> types) {
  return Follow(EdgeDirection::kIn, std::move(types));
}
Traversal& Traversal::Both(std::vector<std::string> types) {
  return Follow(EdgeDirection::kBoth, std::move(types));
}
Traversal& Traversal::Where(Predicate keeps) {
  steps_.push_back({.keeps = std::move(keeps)});
  return *this;
}
Traversal& Traversal::HasLabel(std::string label) {
  return Where([label = std::move(label)](const Node& node) {
    for (const std::string& each : node.labels) {
      if (each == label) return true;
    }
    return false;
  });
}
Traversal& Traversal::Limit(uint64_t count) {
  steps_.push_back({.limit = count});
  return *this;
}
Traversal& Traversal::AsOf(WallTime time) {
  as_of_ = time;
  return *this;
}
Traversal& Traversal::Within(const ReadLimits& limits) {
  limits_ = limits;
  return *this;
}

Result<TraversalResult> Traversal::Run() const {
  return base::OrOutOfMemory([&]() -> Result<TraversalResult> {
    TraversalResult found;
    BASALT_ASSIGN_OR_RETURN(const std::optional<NodeId> start, view_->FindNode(from_));
    if (start) found.nodes.push_back(*start);
    for (const Step& step : steps_) {
      if (step.follow || step.keeps) BASALT_RETURN_IF_ERROR(Take(step, &found));
      if (step.limit && found.nodes.size() > *step.limit) found.nodes.resize(*step.limit);
    }
    return found;
  });
}

/// Replaces the nodes that were found by those that one step finds from them.
Status Traversal::Take(const Step& step, TraversalResult* found) const {
  const std::vector<NodeId> before = std::exchange(found->nodes, {});
  if (step.keeps) {
    for (const NodeId id : before) {
      BASALT_ASSIGN_OR_RETURN(const std::optional<Node> node, view_->GetNode(id));
      if (node && step.keeps(*node)) found->nodes.push_back(id);
    }
    return {};
  }
  EdgeFilter filter = *step.follow;
  filter.as_of = as_of_;
  Budget budget(limits_);
  graph::NodeMap known(view_->reader_->node_arrays());
  BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(view_->reader_.get(), filter));
  for (const NodeId id : before) {
    if (budget.exhausted() || !budget.TakeStep()) break;
    uint64_t edges = 0;
    for (scan.Start(id); scan.Valid() && budget.TakeEdge(edges); scan.Next(), ++edges) {
      const NodeId other = scan.edge().other;
      if (known.Find(other) != graph::NodeMap::kAbsent) continue;
      if (!budget.TakeNode(graph::kVisitedNodeBytes)) break;
      known.Insert(other, 0);
      found->nodes.push_back(other);
    }
    BASALT_RETURN_IF_ERROR(scan.status());
  }
  found->truncated |= budget.truncated();
  return {};
}

Result<KHopResult> GraphView::KHop(NodeId node, uint32_t hops, const EdgeFilter& filter,
                                   const ReadLimits& limits) const {
  return base::OrOutOfMemory([&]() -> Result<KHopResult> {
    KHopResult result;
    BASALT_ASSIGN_OR_RETURN(const std::optional<graph::NodeRecord> start, reader_->GetRecord(node));
    if (!start) return result;
    Budget budget(limits);
    if (!budget.TakeNode(graph::kVisitedNodeBytes)) {
      result.truncated = true;
      return result;
    }
    BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(reader_.get(), filter));
    graph::NodeMap known(reader_->node_arrays());
    known.Insert(node, 0);
    result.nodes.push_back({node, 0});
    for (size_t at = 0; at < result.nodes.size(); ++at) {
      const NodeDistance from = result.nodes[at];
      if (from.hops == hops || budget.exhausted() || !budget.TakeStep()) break;
      uint64_t edges = 0;
      for (scan.Start(from.node); scan.Valid() && budget.TakeEdge(edges); scan.Next(), ++edges) {
        const NodeId other = scan.edge().other;
        if (known.Find(other) != graph::NodeMap::kAbsent) continue;
        if (!budget.TakeNode(graph::kVisitedNodeBytes)) break;
        known.Insert(other, 0);
        result.nodes.push_back({other, from.hops + 1});
      }
      BASALT_RETURN_IF_ERROR(scan.status());
    }
    result.truncated = budget.truncated();
    return result;
  });
}

}  // namespace basalt
