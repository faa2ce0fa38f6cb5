// basalt graph neighbors, path, rank, verify and stat: what reads a graph.

#include "tools/basalt/graph.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "basalt/wall_time.h"
#include "base/base64.h"
#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/open_graph.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

EdgeFilter FilterOf(const GraphEdgeOptions& options, EdgeDirection by_default) {
  EdgeFilter filter{.direction = by_default, .types = options.types};
  if (options.direction == "out") filter.direction = EdgeDirection::kOut;
  if (options.direction == "in") filter.direction = EdgeDirection::kIn;
  if (options.direction == "both") filter.direction = EdgeDirection::kBoth;
  if (options.as_of_ms) filter.as_of = WallTime(std::chrono::milliseconds(*options.as_of_ms));
  return filter;
}

Result<NodeId> NodeNamed(const GraphView& view, const std::string& id) {
  const Result<std::optional<NodeId>> node = view.FindNode(id);
  if (!node) return node.error();
  if (*node) return **node;
  return Status(StatusCode::kNotFound, "there is no node " + KeyText(id));
}

Result<std::string> ExternalIdOf(const GraphView& view, NodeId id) {
  Result<std::optional<Node>> node = view.GetNode(id);
  if (!node) return node.error();
  return *node ? (*node)->external_id : std::string();
}

/// A node that a command line names is absent: kAbsent.
ExitCode ReportOfNode(const Status& status) {
  if (status.code() != StatusCode::kNotFound) return Report(status);
  (void)ReportPlainly(status);
  return ExitCode::kAbsent;
}

void WarnOfTruncation(bool is_truncated) {
  if (is_truncated) Complain("the graph is larger than the search's limits: there may be more");
}

/// "-[type]->", or "<-[type]-" of an edge that comes in.
std::string ArrowText(const Neighbor& edge) {
  const std::string type = "-[" + ToText(edge.type) + "]-";
  return edge.direction == EdgeDirection::kOut ? type + ">" : "<" + type;
}

Document EdgeDocument(const Neighbor& edge, const std::string& other) {
  Document document = {{"direction", edge.direction == EdgeDirection::kOut ? "out" : "in"},
                       {"type", BytesValue(edge.type)},
                       {"id", BytesValue(other)}};
  if (!edge.discriminator.empty()) document["discriminator"] = BytesValue(edge.discriminator);
  document["weight"] = edge.weight;
  return document;
}

Status PrintEdges(const GraphView& view, const GraphNeighborsOptions& options, Output& out) {
  std::string from;
  if (!options.from.empty()) {
    Result<std::string> position = base::DecodeBase64(options.from);
    if (!position) return position.error();
    from = *std::move(position);
  }
  const Result<NodeId> node = NodeNamed(view, options.id);
  if (!node) return node.error();
  const Result<NeighborPage> page =
      view.Neighbors(*node, FilterOf(options.edges, EdgeDirection::kBoth), options.limit, from);
  if (!page) return page.error();
  for (const Neighbor& edge : page->neighbors) {
    const Result<std::string> other = ExternalIdOf(view, edge.node);
    if (!other) return other.error();
    out.Write(options.output == OutputFormat::kJson
                  ? JsonLine(EdgeDocument(edge, *other))
                  : ArrowText(edge) + "\t" + ToText(*other) + "\t" + FormatDecimal(edge.weight, 3) +
                        "\t" + ToText(edge.discriminator) + "\n");
  }
  if (!page->next.empty()) {
    std::string next;
    base::AppendBase64(page->next, next);
    Complain("there are more edges: --from " + next);
  }
  return Status();
}

Status PrintPath(const GraphView& view, const Path& path, OutputFormat format, Output& out) {
  const Result<std::string> start = ExternalIdOf(view, path.nodes.front());
  if (!start) return start.error();
  std::string line = FormatDecimal(path.cost, 3) + "\t" + ToText(*start);
  boost::json::array edges;
  for (const Neighbor& edge : path.edges) {
    const Result<std::string> id = ExternalIdOf(view, edge.node);
    if (!id) return id.error();
    line += " " + ArrowText(edge) + " " + ToText(*id);
    edges.push_back(EdgeDocument(edge, *id));
  }
  if (format == OutputFormat::kJson) {
    line = JsonLine({{"cost", path.cost}, {"from", BytesValue(*start)}, {"edges", edges}});
  } else {
    line += "\n";
  }
  out.Write(line);
  return Status();
}

Result<PathResult> FindPaths(const GraphView& view, const GraphPathOptions& options) {
  const Result<NodeId> from = NodeNamed(view, options.from);
  if (!from) return from.error();
  const Result<NodeId> to = NodeNamed(view, options.to);
  if (!to) return to.error();
  const EdgeFilter filter = FilterOf(options.edges, EdgeDirection::kOut);
  if (options.hops == 0) return view.ShortestPath(*from, *to, filter, options.weighted);
  return view.Paths(*from, *to, static_cast<uint32_t>(options.hops), options.count, filter);
}

Status PrintRanking(const GraphView& view, const GraphRankOptions& options, Output& out) {
  std::vector<NodeScore> seeds;
  for (const std::string& id : options.seeds) {
    const Result<NodeId> node = NodeNamed(view, id);
    if (!node) return node.error();
    seeds.push_back({*node, 1});
  }
  const Result<PageRankResult> ranking =
      view.PersonalizedPageRank(seeds, {.edges = FilterOf(options.edges, EdgeDirection::kBoth),
                                        .restart = options.restart,
                                        .epsilon = options.epsilon});
  if (!ranking) return ranking.error();
  for (size_t i = 0; i < ranking->nodes.size() && i < options.count; ++i) {
    const Result<std::string> id = ExternalIdOf(view, ranking->nodes[i].node);
    if (!id) return id.error();
    const double score = ranking->nodes[i].score;
    out.Write(options.output == OutputFormat::kJson
                  ? JsonLine({{"id", BytesValue(*id)}, {"score", score}})
                  : FormatDecimal(score, 6) + "\t" + ToText(*id) + "\n");
  }
  WarnOfTruncation(ranking->truncated);
  return Status();
}

/// Calls `read` with the present view of a graph.
template <class Options, class Read>
ExitCode WithGraphView(const Options& options, const Read& read) {
  const Result<OpenGraph> open = OpenGraphToRead(options.path, options.graph, options.access);
  if (!open) return Report(open.error());
  const Result<GraphView> view = open->graph->Read();
  if (!view) return Report(view.error());
  return read(*view);
}

}  // namespace

ExitCode GraphNeighbors(const GraphNeighborsOptions& options, Output& out) {
  return WithGraphView(
      options, [&](const GraphView& view) { return ReportOfNode(PrintEdges(view, options, out)); });
}

ExitCode GraphPath(const GraphPathOptions& options, Output& out) {
  return WithGraphView(options, [&](const GraphView& view) {
    const Result<PathResult> found = FindPaths(view, options);
    if (!found) return ReportOfNode(found.error());
    for (const Path& path : found->paths) {
      const Status printed = PrintPath(view, path, options.output, out);
      if (!printed.ok()) return Report(printed);
    }
    WarnOfTruncation(found->truncated);
    if (!found->paths.empty()) return ExitCode::kOk;
    Complain("no path leads from " + KeyText(options.from) + " to " + KeyText(options.to));
    return ExitCode::kAbsent;
  });
}

ExitCode GraphRank(const GraphRankOptions& options, Output& out) {
  return WithGraphView(options, [&](const GraphView& view) {
    return ReportOfNode(PrintRanking(view, options, out));
  });
}

ExitCode GraphVerify(const GraphVerifyOptions& options, Output& out) {
  const Result<OpenGraph> open = OpenGraphToRead(options.path, options.graph, options.access);
  if (!open) return Report(open.error());
  const Result<std::vector<std::string>> faults = open->graph->Verify();
  if (!faults) return Report(faults.error());
  for (const std::string& fault : *faults) out.Write(fault + "\n");
  if (!faults->empty()) return ExitCode::kCorruption;
  out.Write("all records agree\n");
  return ExitCode::kOk;
}

ExitCode GraphStat(const GraphStatOptions& options, Output& out) {
  const Result<OpenGraph> open = OpenGraphToRead(options.path, options.graph, options.access);
  if (!open) return Report(open.error());
  const Result<GraphStats> stats = open->graph->GetStats();
  if (!stats) return Report(stats.error());
  const Document document = {{"nodes", stats->nodes},
                             {"edges", stats->edges},
                             {"labels", stats->labels},
                             {"edge_types", stats->edge_types},
                             {"property_names", stats->property_names},
                             {"removals", stats->removals}};
  if (options.output != OutputFormat::kTable) {
    out.Write(Rendered(options.output, document));
    return ExitCode::kOk;
  }
  for (const auto& member : document) {
    out.Write(Row(Left(member.key(), 16), FormatCount(member.value().get_uint64())));
  }
  return ExitCode::kOk;
}

}  // namespace basalt::tools
