// Graphs: content goes in and answers come out as JSON (content_json.h).

#include "basalt/graph.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c_api/call.h"
#include "c_api/content_json.h"
#include "c_api/handles.h"
#include "c_api/json_writer.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

Status CheckGraph(const basalt_graph* graph, const basalt_transaction* transaction) {
  BASALT_C_REQUIRE(graph != nullptr, "graph");
  BASALT_C_RETURN_IF_ERROR(CheckShare(graph->share));
  return CheckOptional(transaction);
}

Status ToEdgeName(const basalt_edge_name* from, EdgeName* to) {
  BASALT_C_REQUIRE(from != nullptr, "edge name");
  BASALT_C_REQUIRE(IsBytes(from->from, from->from_size), "from");
  BASALT_C_REQUIRE(IsBytes(from->type, from->type_size), "type");
  BASALT_C_REQUIRE(IsBytes(from->to, from->to_size), "to");
  BASALT_C_REQUIRE(IsBytes(from->discriminator, from->discriminator_size), "discriminator");
  to->from = ViewOf(from->from, from->from_size);
  to->type = ViewOf(from->type, from->type_size);
  to->to = ViewOf(from->to, from->to_size);
  to->discriminator = ViewOf(from->discriminator, from->discriminator_size);
  return {};
}

/// The graph at the present moment, or as a transaction sees it.
Result<GraphView> ReadGraph(const basalt_graph& graph, basalt_transaction* transaction) {
  if (transaction == nullptr) return graph.graph->Read();
  return graph.graph->Read(transaction->transaction);
}

/// The external id of a node that an edge leads to.
Result<std::string> ExternalIdOf(const GraphView& view, NodeId id) {
  Result<std::optional<Node>> node = view.GetNode(id);
  if (!node) return node.error();
  return *node ? std::move((*node)->external_id) : std::string();
}

Result<std::string> NeighborJson(const GraphView& view, const Neighbor& neighbor) {
  Result<std::string> id = ExternalIdOf(view, neighbor.node);
  if (!id) return id.error();
  ObjectWriter writer;
  writer.Add("id", *id)
      .Add("type", neighbor.type)
      .Add("direction", std::string_view(neighbor.direction == EdgeDirection::kIn ? "in" : "out"));
  if (!neighbor.discriminator.empty()) writer.Add("discriminator", neighbor.discriminator);
  return writer.Add("weight", neighbor.weight).Finish();
}

std::string ArrayJson(const std::vector<std::string>& elements) {
  std::string json = "[";
  for (const std::string& element : elements) {
    if (json.size() > 1) json += ',';
    json += element;
  }
  return json += ']';
}

Result<std::string> PathJson(const GraphView& view, const Path& path) {
  std::vector<std::string> nodes;
  for (const NodeId id : path.nodes) {
    Result<std::string> external = ExternalIdOf(view, id);
    if (!external) return external.error();
    nodes.push_back(*std::move(external));
  }
  std::vector<std::string> edges;
  for (const Neighbor& edge : path.edges) {
    Result<std::string> json = NeighborJson(view, edge);
    if (!json) return json.error();
    edges.push_back(*std::move(json));
  }
  return ObjectWriter()
      .Add("nodes", nodes)
      .AddJson("edges", ArrayJson(edges))
      .Add("cost", path.cost)
      .Finish();
}

/// Two nodes by their external ids; one that is absent is nothing.
struct Ends {
  std::optional<NodeId> from{};
  std::optional<NodeId> to{};
};
Result<Ends> FindEnds(const GraphView& view, std::string_view from, std::string_view to) {
  const Result<std::optional<NodeId>> first = view.FindNode(from);
  if (!first) return first.error();
  const Result<std::optional<NodeId>> second = view.FindNode(to);
  if (!second) return second.error();
  return Ends{.from = *first, .to = *second};
}

Status GivePaths(const GraphView& view, const Ends& ends, uint32_t hops, size_t count_max,
                 const EdgeFilter& filter, const ReadLimits& limits, char** json) {
  PathResult found;
  if (ends.from && ends.to) {
    Result<PathResult> paths = view.Paths(*ends.from, *ends.to, hops, count_max, filter, limits);
    if (!paths) return paths.error();
    found = *std::move(paths);
  }
  std::vector<std::string> paths;
  for (const Path& path : found.paths) {
    Result<std::string> text = PathJson(view, path);
    if (!text) return text.error();
    paths.push_back(*std::move(text));
  }
  *json = CopyForCaller(
      ObjectWriter().AddJson("paths", ArrayJson(paths)).Add("truncated", found.truncated).Finish());
  return {};
}

/// Those of the ids that are nodes, with equal shares.
Result<std::vector<NodeScore>> FindSeeds(const GraphView& view, size_t count,
                                         const void* const* ids, const size_t* id_sizes) {
  std::vector<NodeScore> seeds;
  for (size_t i = 0; i < count; ++i) {
    Result<std::optional<NodeId>> node = view.FindNode(ViewOf(ids[i], id_sizes[i]));
    if (!node) return node.error();
    if (*node) seeds.push_back({.node = **node, .score = 1});
  }
  return seeds;
}

Status GivePageRank(const GraphView& view, const std::vector<NodeScore>& seeds,
                    const PageRankOptions& options, size_t limit, char** json) {
  PageRankResult ranked;
  if (!seeds.empty()) {
    Result<PageRankResult> found = view.PersonalizedPageRank(seeds, options);
    if (!found) return found.error();
    ranked = *std::move(found);
  }
  std::vector<std::string> nodes;
  for (const NodeScore& score : ranked.nodes) {
    if (nodes.size() == limit) break;
    Result<std::string> id = ExternalIdOf(view, score.node);
    if (!id) return id.error();
    nodes.push_back(ObjectWriter().Add("id", *id).Add("score", score.score).Finish());
  }
  *json = CopyForCaller(ObjectWriter()
                            .AddJson("nodes", ArrayJson(nodes))
                            .Add("truncated", ranked.truncated)
                            .Finish());
  return {};
}

/// Removes by `remove(graph, transaction or nothing)`, and tells whether it was there.
template <class Remove>
Status GiveRemoved(basalt_graph* graph, basalt_transaction* transaction, bool* found,
                   const Remove& remove) {
  if (found != nullptr) *found = false;
  BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, transaction));
  const Result<bool> removed = remove();
  if (!removed) return removed.error();
  if (found != nullptr) *found = *removed;
  return {};
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_graph_open(basalt_store* store, const basalt_graph_options* options,
                      basalt_graph** graph, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(graph != nullptr, "graph");
    *graph = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    GraphOptions open;
    BASALT_C_RETURN_IF_ERROR(ToGraphOptions(options, &open));
    StoreShare share(*store);
    Result<std::unique_ptr<Graph>> opened = Graph::Open(share.store.get(), open);
    if (!opened) return opened.error();
    *graph = new basalt_graph{.share = std::move(share), .graph = *std::move(opened)};
    return {};
  });
}

void basalt_graph_free(basalt_graph* graph) { delete graph; }

int basalt_graph_put_node(basalt_graph* graph, basalt_transaction* transaction, const void* id,
                          size_t id_size, const char* content, size_t content_size,
                          basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, transaction));
    BASALT_C_REQUIRE(IsBytes(id, id_size), "id");
    BASALT_C_REQUIRE(IsBytes(content, content_size), "content");
    const Result<NodeContent> parsed = ParseNodeContent(ViewOf(content, content_size));
    if (!parsed) return parsed.error();
    const std::string_view name = ViewOf(id, id_size);
    return transaction == nullptr
               ? graph->graph->PutNode(name, *parsed).status()
               : graph->graph->PutNode(transaction->transaction, name, *parsed).status();
  });
}

int basalt_graph_remove_node(basalt_graph* graph, basalt_transaction* transaction, const void* id,
                             size_t id_size, bool* found, basalt_error* error) {
  return Call(error, [&] {
    return GiveRemoved(graph, transaction, found, [&]() -> Result<bool> {
      BASALT_C_REQUIRE(IsBytes(id, id_size), "id");
      const std::string_view name = ViewOf(id, id_size);
      return transaction == nullptr ? graph->graph->RemoveNode(name)
                                    : graph->graph->RemoveNode(transaction->transaction, name);
    });
  });
}

int basalt_graph_put_edge(basalt_graph* graph, basalt_transaction* transaction,
                          const basalt_edge_name* edge, const char* content, size_t content_size,
                          basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, transaction));
    BASALT_C_REQUIRE(IsBytes(content, content_size), "content");
    EdgeName name;
    BASALT_C_RETURN_IF_ERROR(ToEdgeName(edge, &name));
    const Result<EdgeContent> parsed = ParseEdgeContent(ViewOf(content, content_size));
    if (!parsed) return parsed.error();
    return transaction == nullptr ? graph->graph->PutEdge(name, *parsed)
                                  : graph->graph->PutEdge(transaction->transaction, name, *parsed);
  });
}

int basalt_graph_remove_edge(basalt_graph* graph, basalt_transaction* transaction,
                             const basalt_edge_name* edge, bool* found, basalt_error* error) {
  return Call(error, [&] {
    return GiveRemoved(graph, transaction, found, [&]() -> Result<bool> {
      EdgeName name;
      BASALT_C_RETURN_IF_ERROR(ToEdgeName(edge, &name));
      return transaction == nullptr ? graph->graph->RemoveEdge(name)
                                    : graph->graph->RemoveEdge(transaction->transaction, name);
    });
  });
}

int basalt_graph_finish_removals(basalt_graph* graph, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, nullptr));
    return graph->graph->FinishRemovals();
  });
}

int basalt_graph_get_node(const basalt_graph* graph, basalt_transaction* transaction,
                          const void* id, size_t id_size, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, transaction));
    BASALT_C_REQUIRE(IsBytes(id, id_size), "id");
    const Result<GraphView> view = ReadGraph(*graph, transaction);
    if (!view) return view.error();
    const Result<std::optional<Node>> node = view->GetNode(ViewOf(id, id_size));
    if (!node) return node.error();
    if (*node) *json = CopyForCaller(NodeJson(**node));
    return {};
  });
}

int basalt_graph_get_edge(const basalt_graph* graph, basalt_transaction* transaction,
                          const basalt_edge_name* edge, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, transaction));
    EdgeName name;
    BASALT_C_RETURN_IF_ERROR(ToEdgeName(edge, &name));
    const Result<GraphView> view = ReadGraph(*graph, transaction);
    if (!view) return view.error();
    const Result<std::optional<EdgeContent>> content = view->GetEdge(name);
    if (!content) return content.error();
    if (*content) *json = CopyForCaller(EdgeContentJson(**content));
    return {};
  });
}

int basalt_graph_neighbors(const basalt_graph* graph, basalt_transaction* transaction,
                           const void* id, size_t id_size, const basalt_edge_filter* filter,
                           size_t limit, const char* from, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, transaction));
    BASALT_C_REQUIRE(IsBytes(id, id_size), "id");
    EdgeFilter edges;
    BASALT_C_RETURN_IF_ERROR(ToEdgeFilter(filter, &edges));
    const Result<std::string> begin = FromHex(from == nullptr ? "" : from);
    if (!begin) return begin.error();
    const Result<GraphView> view = ReadGraph(*graph, transaction);
    if (!view) return view.error();
    const Result<std::optional<NodeId>> node = view->FindNode(ViewOf(id, id_size));
    if (!node) return node.error();
    NeighborPage page;
    if (*node) {
      Result<NeighborPage> read = view->Neighbors(**node, edges, limit, *begin);
      if (!read) return read.error();
      page = *std::move(read);
    }
    std::vector<std::string> neighbors;
    for (const Neighbor& neighbor : page.neighbors) {
      Result<std::string> text = NeighborJson(*view, neighbor);
      if (!text) return text.error();
      neighbors.push_back(*std::move(text));
    }
    *json = CopyForCaller(ObjectWriter()
                              .AddJson("neighbors", ArrayJson(neighbors))
                              .Add("next", ToHex(page.next))
                              .Finish());
    return {};
  });
}

int basalt_graph_paths(const basalt_graph* graph, const void* from, size_t from_size,
                       const void* to, size_t to_size, uint32_t hops, size_t count_max,
                       const basalt_edge_filter* filter, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, nullptr));
    BASALT_C_REQUIRE(IsBytes(from, from_size), "from");
    BASALT_C_REQUIRE(IsBytes(to, to_size), "to");
    EdgeFilter edges;
    BASALT_C_RETURN_IF_ERROR(ToEdgeFilter(filter, &edges));
    const Result<GraphView> view = graph->graph->Read();
    if (!view) return view.error();
    const Result<Ends> ends = FindEnds(*view, ViewOf(from, from_size), ViewOf(to, to_size));
    if (!ends) return ends.error();
    return GivePaths(*view, *ends, hops, count_max, edges, ToReadLimits(filter), json);
  });
}

int basalt_graph_page_rank(const basalt_graph* graph, size_t count, const void* const* ids,
                           const size_t* id_sizes, const basalt_edge_filter* filter, size_t limit,
                           char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, nullptr));
    BASALT_C_REQUIRE(count == 0 || (ids != nullptr && id_sizes != nullptr), "ids");
    for (size_t i = 0; i < count; ++i) BASALT_C_REQUIRE(IsBytes(ids[i], id_sizes[i]), "ids");
    PageRankOptions options;
    if (filter != nullptr) BASALT_C_RETURN_IF_ERROR(ToEdgeFilter(filter, &options.edges));
    options.limits = ToReadLimits(filter);
    const Result<GraphView> view = graph->graph->Read();
    if (!view) return view.error();
    const Result<std::vector<NodeScore>> seeds = FindSeeds(*view, count, ids, id_sizes);
    if (!seeds) return seeds.error();
    return GivePageRank(*view, *seeds, options, limit, json);
  });
}

int basalt_graph_stats(const basalt_graph* graph, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckGraph(graph, nullptr));
    const Result<GraphStats> stats = graph->graph->GetStats();
    if (!stats) return stats.error();
    *json = CopyForCaller(ObjectWriter()
                              .Add("nodes", stats->nodes)
                              .Add("edges", stats->edges)
                              .Add("labels", stats->labels)
                              .Add("edge_types", stats->edge_types)
                              .Add("property_names", stats->property_names)
                              .Add("removals", stats->removals)
                              .Finish());
    return {};
  });
}
