// basalt graph export.

#include <functional>
#include <string>
#include <utility>

#include "tools/basalt/graph.h"
#include "tools/basalt/graph_json.h"
#include "tools/basalt/graph_writer.h"
#include "tools/basalt/open_graph.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {
namespace {

/// Goes over all nodes, or all edges, of a view.
class GraphWalk {
 public:
  using NodeFunction = std::function<bool(const Node& node)>;
  using EdgeFunction =
      std::function<bool(const Node& from, const Neighbor& edge, const EdgeContent& content)>;

  GraphWalk(const GraphView& view, Progress* progress) : view_(view), progress_(progress) {}

  Status Nodes(const NodeFunction& visit) const {
    uint64_t count = 0;
    progress_->BeginStage("reading nodes", ProgressUnit::kKeys, 0, 0);
    return view_.ForEachNode([&](const Node& node) {
      progress_->Update(++count, 0);
      return visit(node);
    });
  }

  Status Edges(const EdgeFunction& visit) const {
    uint64_t count = 0;
    progress_->BeginStage("reading edges", ProgressUnit::kKeys, 0, 0);
    Status edges;
    const Status nodes = view_.ForEachNode([&](const Node& node) {
      bool goes_on = true;
      edges = view_.ForEachEdge(node.id, [&](const Neighbor& edge, const EdgeContent& content) {
        progress_->Update(++count, 0);
        return goes_on = visit(node, edge, content);
      });
      return edges.ok() && goes_on;
    });
    return nodes.ok() ? edges : nodes;
  }

 private:
  const GraphView& view_;
  Progress* const progress_;
};

Status ExportNdjson(const GraphView& view, const GraphWalk& walk, Output& out) {
  Status status = walk.Nodes([&](const Node& node) {
    return out.Write(GraphItemLine(
        GraphNodeItem{node.external_id, {.labels = node.labels, .properties = node.properties}}));
  });
  if (!status.ok()) return status;
  Status of_node;
  status = walk.Edges([&](const Node& from, const Neighbor& edge, const EdgeContent& content) {
    const Result<std::optional<Node>> to = view.GetNode(edge.node);
    of_node = to.status();
    if (!to || !*to) return to.ok();
    return out.Write(GraphItemLine(GraphEdgeItem{from.external_id, std::string(edge.type),
                                                 (*to)->external_id, edge.discriminator, content}));
  });
  return status.ok() ? of_node : status;
}

Status ExportDot(const GraphWalk& walk, Output& out) {
  out.Write(DotBegin());
  Status status = walk.Nodes([&](const Node& node) { return out.Write(DotNode(node)); });
  if (status.ok()) {
    status = walk.Edges([&](const Node& from, const Neighbor& edge, const EdgeContent&) {
      return out.Write(DotEdge(from.id, edge));
    });
  }
  out.Write(DotEnd());
  return status;
}

Status ExportGraphMl(const GraphWalk& walk, Output& out) {
  GraphMlWriter writer;
  Status status = walk.Nodes([&](const Node& node) {
    writer.Declare(node);
    return true;
  });
  if (!status.ok()) return status;
  status = walk.Edges([&](const Node&, const Neighbor&, const EdgeContent& content) {
    writer.Declare(content);
    return true;
  });
  if (!status.ok()) return status;
  out.Write(writer.Begin());
  status = walk.Nodes([&](const Node& node) { return out.Write(writer.NodeElement(node)); });
  if (!status.ok()) return status;
  status = walk.Edges([&](const Node& from, const Neighbor& edge, const EdgeContent& content) {
    return out.Write(writer.EdgeElement(from.id, edge, content));
  });
  out.Write(GraphMlWriter::End());
  return status;
}

Status ExportView(const GraphView& view, const GraphExportOptions& options, Output& out) {
  Progress progress(ProgressStyleForStderr(options.progress), "reading nodes", 0);
  const GraphWalk walk(view, &progress);
  switch (options.format) {
    case GraphExportFormat::kDot:
      return ExportDot(walk, out);
    case GraphExportFormat::kGraphMl:
      return ExportGraphMl(walk, out);
    case GraphExportFormat::kNdjson:
      break;
  }
  return ExportNdjson(view, walk, out);
}

}  // namespace

ExitCode GraphExport(const GraphExportOptions& options, Output& out) {
  const Result<OpenGraph> open = OpenGraphToRead(options.path, options.graph, options.access);
  if (!open) return Report(open.error());
  const Result<GraphView> view = open->graph->Read();
  if (!view) return Report(view.error());
  return Report(ExportView(*view, options, out));
}

}  // namespace basalt::tools
