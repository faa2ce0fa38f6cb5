// Reads of single nodes and edges, and pages of neighbours.

#include <utility>

#include "basalt/graph.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/edge_scan.h"
#include "graph/keys.h"
#include "graph/reader.h"

namespace basalt {

using graph::EdgeScan;

GraphView::GraphView(std::unique_ptr<graph::Reader> reader) : reader_(std::move(reader)) {}
GraphView::GraphView(GraphView&&) noexcept = default;
GraphView& GraphView::operator=(GraphView&&) noexcept = default;
GraphView::~GraphView() = default;

Result<std::optional<NodeId>> GraphView::FindNode(std::string_view external_id) const {
  return base::OrOutOfMemory([&]() -> Result<std::optional<NodeId>> {
    if (external_id.size() > kGraphNameBytesMax) return std::nullopt;
    return reader_->FindNode(external_id);
  });
}

Result<std::optional<Node>> GraphView::GetNode(NodeId id) const {
  return base::OrOutOfMemory([&]() -> Result<std::optional<Node>> {
    BASALT_ASSIGN_OR_RETURN(std::optional<graph::NodeRecord> record, reader_->GetRecord(id));
    if (!record) return std::nullopt;
    BASALT_ASSIGN_OR_RETURN(Node node, reader_->NodeOf(id, std::move(*record)));
    return std::optional(std::move(node));
  });
}

Result<std::optional<Node>> GraphView::GetNode(std::string_view external_id) const {
  BASALT_ASSIGN_OR_RETURN(const std::optional<NodeId> node, FindNode(external_id));
  if (!node) return std::nullopt;
  return GetNode(*node);
}

Result<std::optional<EdgeContent>> GraphView::GetEdge(const EdgeName& name) const {
  return base::OrOutOfMemory([&]() -> Result<std::optional<EdgeContent>> {
    BASALT_ASSIGN_OR_RETURN(const std::optional<NodeId> from, FindNode(name.from));
    BASALT_ASSIGN_OR_RETURN(const std::optional<NodeId> to, FindNode(name.to));
    BASALT_ASSIGN_OR_RETURN(const std::optional<uint32_t> type,
                            reader_->FindName(graph::Dictionary::kEdgeType, name.type));
    if (!from || !to || !type || name.discriminator.size() > kGraphNameBytesMax) {
      return std::nullopt;
    }
    BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> found,
                            reader_->GetEntry(graph::EdgeKey(*from, graph::NodeTag::kOut, *type,
                                                             *to, name.discriminator)));
    if (!found) return std::nullopt;
    BASALT_ASSIGN_OR_RETURN(graph::EdgeRecord record, graph::DecodeEdge(found->value.view()));
    BASALT_ASSIGN_OR_RETURN(EdgeContent content, reader_->ContentOf(std::move(record)));
    content.expiry = found->expiry;
    return std::optional(std::move(content));
  });
}

Status GraphView::ForEachNode(const std::function<bool(const Node& node)>& visit) const {
  return ForEachNode({}, visit);
}

Status GraphView::ForEachNode(std::string_view prefix,
                              const std::function<bool(const Node& node)>& visit) const {
  return base::OrOutOfMemory([&]() -> Status {
    const auto it = reader_->NewIterator(graph::ExternalIdKey(prefix));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      BASALT_ASSIGN_OR_RETURN(const NodeId id, graph::ParseNodeId(it->value()));
      BASALT_ASSIGN_OR_RETURN(const std::optional<Node> node, GetNode(id));
      if (node && !visit(*node)) return {};
    }
    return it->status();
  });
}

Status GraphView::ForEachEdge(
    NodeId node,
    const std::function<bool(const Neighbor& edge, const EdgeContent& content)>& visit) const {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::OpenRecords(reader_.get(), {}, node));
    for (scan.Start(node); scan.Valid(); scan.Next()) {
      BASALT_ASSIGN_OR_RETURN(const Neighbor neighbor, scan.ToNeighbor());
      BASALT_ASSIGN_OR_RETURN(graph::EdgeRecord record, graph::DecodeEdge(scan.value()));
      BASALT_ASSIGN_OR_RETURN(EdgeContent content, reader_->ContentOf(std::move(record)));
      content.expiry = scan.expiry();
      if (!visit(neighbor, content)) return {};
    }
    return scan.status();
  });
}

Result<NeighborPage> GraphView::Neighbors(NodeId node, const EdgeFilter& filter, size_t limit,
                                          std::string_view from) const {
  return base::OrOutOfMemory([&]() -> Result<NeighborPage> {
    // The shortest position has a tag, a type and a node.
    if (!from.empty() && !graph::ParseEdgeKey(graph::NodePrefix(NodeId{1}).append(from))) {
      return Status(StatusCode::kInvalidArgument,
                    "the beginning of a page of neighbours is not what a page has ended with");
    }
    NeighborPage page;
    BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::OpenAt(reader_.get(), filter, node));
    for (scan.StartAt(node, from); scan.Valid(); scan.Next()) {
      if (page.neighbors.size() == limit) {
        page.next = scan.position();
        return page;
      }
      BASALT_ASSIGN_OR_RETURN(Neighbor neighbor, scan.ToNeighbor());
      page.neighbors.push_back(std::move(neighbor));
    }
    BASALT_RETURN_IF_ERROR(scan.status());
    return page;
  });
}

}  // namespace basalt
