// Weakly connected components: one pass over all nodes and their edges, with a disjoint-set forest.

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "basalt/graph.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/budget.h"
#include "graph/edge_scan.h"
#include "graph/reader.h"

namespace basalt {
namespace {

/// Sets of nodes; the least node of a set stands for it.
class DisjointSets {
 public:
  bool contains(NodeId node) const { return parents_.contains(node); }
  void Add(NodeId node) { parents_.try_emplace(node, node); }
  NodeId Find(NodeId node) {
    NodeId root = node;
    while (parents_[root] != root) root = parents_[root];
    while (node != root) node = std::exchange(parents_[node], root);
    return root;
  }
  void Join(NodeId a, NodeId b) {
    const auto [low, high] = std::minmax({Find(a), Find(b)});
    parents_[high] = low;
  }

 private:
  std::unordered_map<NodeId, NodeId> parents_;
};

}  // namespace

Result<ComponentsResult> GraphView::ConnectedComponents(const EdgeFilter& filter,
                                                        const ReadLimits& limits) const {
  return base::OrOutOfMemory([&]() -> Result<ComponentsResult> {
    graph::Budget budget(limits);
    ComponentsResult result;
    DisjointSets sets;
    std::vector<NodeId> nodes;
    const auto it = reader_->NewIterator(graph::CatalogueKey(graph::CatalogueTag::kExternalId));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      if (!budget.TakeNode(graph::kVisitedNodeBytes)) break;
      BASALT_ASSIGN_OR_RETURN(const NodeId node, graph::ParseNodeId(it->value()));
      nodes.push_back(node);
      sets.Add(node);
    }
    BASALT_RETURN_IF_ERROR(it->status());
    std::ranges::sort(nodes);
    // Each edge is seen from one end, whatever direction the filter names.
    EdgeFilter outgoing = filter;
    outgoing.direction = EdgeDirection::kOut;
    BASALT_ASSIGN_OR_RETURN(graph::EdgeScan scan, graph::EdgeScan::Open(reader_.get(), outgoing));
    for (const NodeId node : nodes) {
      if (!budget.TakeStep()) break;
      uint64_t edges = 0;
      for (scan.Start(node); scan.Valid() && budget.TakeEdge(edges); scan.Next(), ++edges) {
        if (sets.contains(scan.edge().other)) sets.Join(node, scan.edge().other);
      }
      BASALT_RETURN_IF_ERROR(scan.status());
    }
    for (const NodeId node : nodes) {
      const NodeId least = sets.Find(node);
      result.count += least == node ? 1 : 0;
      result.components.emplace_back(node, least);
    }
    result.truncated = budget.truncated();
    return result;
  });
}

}  // namespace basalt
