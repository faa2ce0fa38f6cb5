// Property graphs, over basalt::Graph.
//
// Python names nodes by their external ids. A read takes a view, finds what it looks for and the
// external ids of the answer without the GIL, and then makes Python's objects of it.

#include "graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "values.h"

namespace basalt::python {
namespace {

/// Calls `work(view)` without the GIL, and gives its value.
template <class Work>
auto Read(const PyGraph& self, const Work& work) {
  return Change(*self.state, self.tx.get(), [&](auto&... tx) {
    const Result<GraphView> view = self.graph->Read(tx...);
    using Answer = decltype(work(*view));
    return view ? work(*view) : Answer(view.error());
  });
}

Graph& Committed(const PyGraph& self) {
  self.state->Use();
  if (self.tx != nullptr) {
    Raise(Status(StatusCode::kUnsupported,
                 "a transaction cannot do this; call it on the graph itself"));
  }
  return *self.graph;
}

EdgeDirection FromDirection(const std::string& direction) {
  if (direction == "out") return EdgeDirection::kOut;
  if (direction == "in") return EdgeDirection::kIn;
  if (direction == "both") return EdgeDirection::kBoth;
  throw nb::value_error("a direction is 'out', 'in' or 'both'");
}

EdgeFilter MakeFilter(const std::string& direction, nb::handle types, nb::handle as_of) {
  return {.direction = FromDirection(direction),
          .types = FromTexts(types, "an edge type"),
          .as_of = FromTime(as_of)};
}

/// Of a basalt.ReadLimits; None: the defaults.
ReadLimits FromLimits(nb::handle limits) {
  if (limits.is_none()) return {};
  return {.visited_max = nb::cast<uint64_t>(limits.attr("visited_max")),
          .fan_out_max = nb::cast<uint64_t>(limits.attr("fan_out_max")),
          .bytes_max = nb::cast<uint64_t>(limits.attr("bytes_max")),
          .time_max = ToTtl(limits.attr("time_max"))};
}

/// What is found by number, with its external id.
template <class Found>
struct Named {
  std::string id;
  Found found;
};

template <class Found>
Result<std::vector<Named<Found>>> NameAll(const GraphView& view, const std::vector<Found>& all,
                                          NodeId Found::* node) {
  std::vector<Named<Found>> named;
  for (const Found& found : all) {
    const Result<std::optional<Node>> record = view.GetNode(found.*node);
    if (!record) return record.error();
    if (!*record) return Status(StatusCode::kCorruption, "a node that an edge leads to is absent");
    named.push_back({(*record)->external_id, found});
  }
  return named;
}

/// An answer, and whether a limit was reached.
template <class Answer>
struct Limited {
  Answer answer{};
  bool truncated = false;
};
template <class Found>
using NamedAnswer = Limited<std::vector<Named<Found>>>;

template <class Found>
Result<NamedAnswer<Found>> NameAnswer(const GraphView& view, const std::vector<Found>& all,
                                      bool truncated) {
  auto named = NameAll(view, all, &Found::node);
  if (!named) return named.error();
  return NamedAnswer<Found>{*std::move(named), truncated};
}

/// A basalt.Results of what `make` makes of each.
template <class Answer, class ToObject>
nb::object ToResults(const Limited<std::vector<Answer>>& found, const ToObject& make) {
  nb::object results = Make("Results");
  results.attr("truncated") = found.truncated;
  for (const Answer& each : found.answer) {
    if (PyList_Append(results.ptr(), make(each).ptr()) != 0) throw nb::python_error();
  }
  return results;
}

nb::object ToNode(const Node& node) {
  nb::list labels;
  for (const std::string& label : node.labels) labels.append(ToText(label));
  return Make("Node", ToText(node.external_id), nb::tuple(labels), ToProperties(node.properties));
}

// Changes.

void PutNode(PyGraph& self, nb::handle id, nb::handle labels, nb::handle properties) {
  const std::string name = FromText(id, "an id");
  const NodeContent content{.labels = FromTexts(labels, "a label"),
                            .properties = FromProperties(properties)};
  Change(*self.state, self.tx.get(),
         [&](auto&... tx) { return self.graph->PutNode(tx..., name, content); });
}

bool RemoveNode(PyGraph& self, nb::handle id) {
  const std::string name = FromText(id, "an id");
  return Change(*self.state, self.tx.get(),
                [&](auto&... tx) { return self.graph->RemoveNode(tx..., name); });
}

/// The four texts that name an edge.
struct OwnedEdgeName {
  OwnedEdgeName(nb::handle from, nb::handle type, nb::handle to, nb::handle discriminator)
      : from(FromText(from, "an id")),
        type(FromText(type, "an edge type")),
        to(FromText(to, "an id")),
        discriminator(FromText(discriminator, "a discriminator")) {}
  EdgeName view() const { return {from, type, to, discriminator}; }
  std::string from, type, to, discriminator;
};

void PutEdge(PyGraph& self, nb::handle from, nb::handle type, nb::handle to,
             nb::handle discriminator, double weight, nb::handle properties, nb::handle valid_from,
             nb::handle valid_to, nb::handle expiry) {
  const OwnedEdgeName name(from, type, to, discriminator);
  const EdgeContent content{.weight = weight,
                            .properties = FromProperties(properties),
                            .valid_from = FromTime(valid_from),
                            .valid_to = FromTime(valid_to),
                            .expiry = FromTime(expiry)};
  Change(*self.state, self.tx.get(),
         [&](auto&... tx) { return self.graph->PutEdge(tx..., name.view(), content); });
}

bool RemoveEdge(PyGraph& self, nb::handle from, nb::handle type, nb::handle to,
                nb::handle discriminator) {
  const OwnedEdgeName name(from, type, to, discriminator);
  return Change(*self.state, self.tx.get(),
                [&](auto&... tx) { return self.graph->RemoveEdge(tx..., name.view()); });
}

// Reads.

nb::object GetNode(const PyGraph& self, nb::handle id) {
  const std::string name = FromText(id, "an id");
  const std::optional<Node> node =
      Read(self, [&](const GraphView& view) { return view.GetNode(name); });
  return node ? ToNode(*node) : nb::none();
}

nb::object GetEdge(const PyGraph& self, nb::handle from, nb::handle type, nb::handle to,
                   nb::handle discriminator) {
  const OwnedEdgeName name(from, type, to, discriminator);
  const std::optional<EdgeContent> edge =
      Read(self, [&](const GraphView& view) { return view.GetEdge(name.view()); });
  if (!edge) return nb::none();
  return Make("Edge", ToText(name.from), ToText(name.type), ToText(name.to),
              ToText(name.discriminator), edge->weight, ToProperties(edge->properties),
              ToTime(edge->valid_from), ToTime(edge->valid_to), ToTime(edge->expiry));
}

nb::list ListNodes(const PyGraph& self, nb::handle prefix, std::optional<uint64_t> limit) {
  const std::string begins = FromText(prefix, "a prefix");
  const std::vector<Node> nodes =
      Read(self, [&](const GraphView& view) -> Result<std::vector<Node>> {
        std::vector<Node> found;
        if (limit == 0) return found;
        const Status status = view.ForEachNode(begins, [&](const Node& node) {
          found.push_back(node);
          return found.size() != limit;
        });
        if (!status.ok()) return status;
        return found;
      });
  nb::list found;
  for (const Node& node : nodes) found.append(ToNode(node));
  return found;
}

/// All neighbours of a node, up to `limit`, page by page.
Result<std::vector<Named<Neighbor>>> FindNeighbors(const GraphView& view, NodeId node,
                                                   const EdgeFilter& filter, uint64_t limit) {
  constexpr uint64_t kPage = 1000;
  std::vector<Named<Neighbor>> found;
  std::string from;
  do {
    const Result<NeighborPage> page =
        view.Neighbors(node, filter, std::min(kPage, limit - found.size()), from);
    if (!page) return page.error();
    auto named = NameAll(view, page->neighbors, &Neighbor::node);
    if (!named) return named.error();
    found.insert(found.end(), std::make_move_iterator(named->begin()),
                 std::make_move_iterator(named->end()));
    from = page->next;
  } while (!from.empty() && found.size() < limit);
  return found;
}

nb::object ToNeighbor(const Named<Neighbor>& neighbor) {
  const Neighbor& edge = neighbor.found;
  return Make("Neighbor", ToText(neighbor.id), ToText(edge.type),
              edge.direction == EdgeDirection::kIn ? "in" : "out", ToText(edge.discriminator),
              edge.weight);
}

nb::list ListNeighbors(const PyGraph& self, nb::handle id, const std::string& direction,
                       nb::handle types, nb::handle as_of, std::optional<uint64_t> limit) {
  const std::string name = FromText(id, "an id");
  const EdgeFilter filter = MakeFilter(direction, types, as_of);
  const auto neighbors =
      Read(self, [&](const GraphView& view) -> Result<std::vector<Named<Neighbor>>> {
        const Result<std::optional<NodeId>> node = view.FindNode(name);
        if (!node) return node.error();
        if (!*node || limit == 0) return std::vector<Named<Neighbor>>{};
        return FindNeighbors(view, **node, filter, limit.value_or(UINT64_MAX));
      });
  nb::list found;
  for (const Named<Neighbor>& neighbor : neighbors) found.append(ToNeighbor(neighbor));
  return found;
}

nb::object KHop(const PyGraph& self, nb::handle id, uint32_t hops, const std::string& direction,
                nb::handle types, nb::handle as_of, nb::handle limits) {
  const std::string name = FromText(id, "an id");
  const EdgeFilter filter = MakeFilter(direction, types, as_of);
  const ReadLimits bounds = FromLimits(limits);
  using Answer = NamedAnswer<NodeDistance>;
  const Answer found = Read(self, [&](const GraphView& view) -> Result<Answer> {
    const Result<std::optional<NodeId>> node = view.FindNode(name);
    if (!node) return node.error();
    if (!*node) return Answer();
    const Result<KHopResult> result = view.KHop(**node, hops, filter, bounds);
    if (!result) return result.error();
    return NameAnswer(view, result->nodes, result->truncated);
  });
  return ToResults(found, [](const Named<NodeDistance>& each) {
    return Make("NodeDistance", ToText(each.id), each.found.hops);
  });
}

/// The path in the order of its nodes: the first, then each edge with the node behind it.
struct NamedPath {
  std::vector<std::string> nodes;
  std::vector<Named<Neighbor>> edges;
  double cost = 0;
};

nb::object ShortestPath(const PyGraph& self, nb::handle from, nb::handle to, bool weighted,
                        const std::string& direction, nb::handle types, nb::handle as_of,
                        nb::handle limits) {
  const std::string begin = FromText(from, "an id"), end = FromText(to, "an id");
  const EdgeFilter filter = MakeFilter(direction, types, as_of);
  const ReadLimits bounds = FromLimits(limits);
  using Answer = Limited<std::optional<NamedPath>>;
  const Answer found = Read(self, [&](const GraphView& view) -> Result<Answer> {
    const Result<std::optional<NodeId>> first = view.FindNode(begin), last = view.FindNode(end);
    if (!first) return first.error();
    if (!last) return last.error();
    if (!*first || !*last) return Answer();
    const Result<PathResult> result = view.ShortestPath(**first, **last, filter, weighted, bounds);
    if (!result) return result.error();
    if (result->paths.empty()) return Answer{std::nullopt, result->truncated};
    const Path& path = result->paths.front();
    auto edges = NameAll(view, path.edges, &Neighbor::node);
    if (!edges) return edges.error();
    NamedPath named{.nodes = {begin}, .edges = *std::move(edges), .cost = path.cost};
    for (const Named<Neighbor>& edge : named.edges) named.nodes.push_back(edge.id);
    return Answer{std::move(named), result->truncated};
  });
  if (!found.answer) {
    if (!found.truncated) return nb::none();
    Raise(Status(StatusCode::kResourceExhausted,
                 "no path was found within the limits; raise them to search farther"));
  }
  nb::list nodes, edges;
  for (const std::string& node : found.answer->nodes) nodes.append(ToText(node));
  for (const Named<Neighbor>& edge : found.answer->edges) edges.append(ToNeighbor(edge));
  return Make("Path", nodes, edges, found.answer->cost, found.truncated);
}

nb::object PageRank(const PyGraph& self, nb::handle seeds, std::optional<size_t> k, double restart,
                    double epsilon, const std::string& direction, nb::handle types,
                    nb::handle as_of, nb::handle limits) {
  std::vector<std::pair<std::string, double>> shares;
  if (nb::hasattr(seeds, "items")) {
    for (nb::handle item : nb::iter(seeds.attr("items")()))
      shares.emplace_back(FromText(item[0], "an id"), nb::cast<double>(item[1]));
  } else {
    for (std::string& id : FromTexts(seeds, "an id")) shares.emplace_back(std::move(id), 1);
  }
  const PageRankOptions options{.edges = MakeFilter(direction, types, as_of),
                                .restart = restart,
                                .epsilon = epsilon,
                                .limits = FromLimits(limits)};
  using Answer = NamedAnswer<NodeScore>;
  const Answer found = Read(self, [&](const GraphView& view) -> Result<Answer> {
    std::vector<NodeScore> scores;
    for (const auto& [id, share] : shares) {
      const Result<std::optional<NodeId>> node = view.FindNode(id);
      if (!node) return node.error();
      if (*node) scores.push_back({**node, share});
    }
    Result<PageRankResult> result = view.PersonalizedPageRank(scores, options);
    if (!result) return result.error();
    if (k && result->nodes.size() > *k) result->nodes.resize(*k);
    return NameAnswer(view, result->nodes, result->truncated);
  });
  return ToResults(found, [](const Named<NodeScore>& each) {
    return Make("NodeScore", ToText(each.id), each.found.score);
  });
}

/// One step of a traversal, as basalt.Traversal describes it.
struct TraversalStep {
  std::string kind;
  std::vector<std::string> texts{};
  uint64_t count = 0;
};

std::vector<TraversalStep> FromSteps(nb::handle steps) {
  std::vector<TraversalStep> found;
  for (nb::handle step : nb::iter(steps)) {
    TraversalStep& made = found.emplace_back(TraversalStep{.kind = nb::cast<std::string>(step[0])});
    if (made.kind == "limit") {
      made.count = nb::cast<uint64_t>(step[1]);
    } else {
      made.texts = FromTexts(step[1], made.kind == "has_label" ? "a label" : "an edge type");
    }
  }
  return found;
}

void AddStep(Traversal* traversal, const TraversalStep& step) {
  if (step.kind == "out") {
    traversal->Out(step.texts);
  } else if (step.kind == "in") {
    traversal->In(step.texts);
  } else if (step.kind == "both") {
    traversal->Both(step.texts);
  } else if (step.kind == "has_label") {
    traversal->HasLabel(step.texts.front());
  } else {
    traversal->Limit(step.count);
  }
}

nb::object Traverse(const PyGraph& self, nb::handle from, nb::handle steps, nb::handle as_of,
                    nb::handle limits) {
  const std::string begin = FromText(from, "an id");
  const std::vector<TraversalStep> described = FromSteps(steps);
  const std::optional<WallTime> time = FromTime(as_of);
  const ReadLimits bounds = FromLimits(limits);
  struct Reached {
    NodeId node;
  };
  using Answer = NamedAnswer<Reached>;
  const Answer found = Read(self, [&](const GraphView& view) -> Result<Answer> {
    Traversal traversal = view.Traverse(begin);
    for (const TraversalStep& step : described) AddStep(&traversal, step);
    if (time) traversal.AsOf(*time);
    traversal.Within(bounds);
    const Result<TraversalResult> result = traversal.Run();
    if (!result) return result.error();
    std::vector<Reached> reached;
    for (const NodeId node : result->nodes) reached.push_back({node});
    return NameAnswer(view, reached, result->truncated);
  });
  return ToResults(found, [](const Named<Reached>& each) { return ToText(each.id); });
}

nb::list Verify(const PyGraph& self, size_t faults_max) {
  const Graph& graph = Committed(self);
  nb::list faults;
  for (const std::string& fault : WithoutGil([&] { return graph.Verify(faults_max); }))
    faults.append(ToText(fault));
  return faults;
}

nb::dict Stats(const PyGraph& self) {
  const Graph& graph = Committed(self);
  const GraphStats stats = WithoutGil([&] { return graph.GetStats(); });
  nb::dict figures;
  figures["nodes"] = stats.nodes;
  figures["edges"] = stats.edges;
  figures["labels"] = stats.labels;
  figures["edge_types"] = stats.edge_types;
  figures["property_names"] = stats.property_names;
  figures["removals"] = stats.removals;
  return figures;
}

PyGraph OpenGraph(PyDb& self, std::string name, bool create) {
  Store& store = self.store();
  std::shared_ptr<Graph> graph =
      WithoutGil([&] { return Graph::Open(&store, {.name = name, .create_if_missing = create}); });
  return {.state = self.state, .graph = std::move(graph)};
}

}  // namespace

void DefineGraphs(nb::module_& module) {
  using nb::literals::operator""_a;
  nb::class_<PyGraph>(module, "Graph")
      .def("put_node", &PutNode, "id"_a, "labels"_a = nb::tuple(), "properties"_a = nb::none())
      .def("remove_node", &RemoveNode, "id"_a)
      .def("put_edge", &PutEdge, "source"_a, "type"_a, "target"_a, nb::kw_only(),
           "discriminator"_a = "", "weight"_a = 1.0, "properties"_a = nb::none(),
           "valid_from"_a = nb::none(), "valid_to"_a = nb::none(), "expiry"_a = nb::none())
      .def("remove_edge", &RemoveEdge, "source"_a, "type"_a, "target"_a, nb::kw_only(),
           "discriminator"_a = "")
      .def("finish_removals",
           [](PyGraph& self) {
             Graph& graph = Committed(self);
             WithoutGil([&] { return graph.FinishRemovals(); });
           })
      .def("node", &GetNode, "id"_a)
      .def("edge", &GetEdge, "source"_a, "type"_a, "target"_a, nb::kw_only(),
           "discriminator"_a = "")
      .def("nodes", &ListNodes, "prefix"_a = "", nb::kw_only(), "limit"_a = nb::none())
      .def("neighbors", &ListNeighbors, "id"_a, nb::kw_only(), "direction"_a = "out",
           "types"_a = nb::tuple(), "as_of"_a = nb::none(), "limit"_a = nb::none())
      .def("khop", &KHop, "id"_a, "hops"_a, nb::kw_only(), "direction"_a = "out",
           "types"_a = nb::tuple(), "as_of"_a = nb::none(), "limits"_a = nb::none())
      .def("shortest_path", &ShortestPath, "source"_a, "target"_a, nb::kw_only(),
           "weighted"_a = false, "direction"_a = "out", "types"_a = nb::tuple(),
           "as_of"_a = nb::none(), "limits"_a = nb::none())
      .def("page_rank", &PageRank, "seeds"_a, "k"_a = nb::none(), nb::kw_only(),
           "restart"_a = PageRankOptions().restart, "epsilon"_a = PageRankOptions().epsilon,
           "direction"_a = "both", "types"_a = nb::tuple(), "as_of"_a = nb::none(),
           "limits"_a = nb::none())
      .def("_traverse", &Traverse, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none())
      .def("verify", &Verify, "faults_max"_a = 100)
      .def("stats", &Stats);

  nb::borrow<nb::class_<PyDb, PyStore>>(module.attr("DB"))
      .def("graph", &OpenGraph, "name"_a = GraphOptions().name.c_str(), nb::kw_only(),
           "create"_a = true);
  nb::borrow<nb::class_<PyTransaction>>(module.attr("Transaction"))
      .def(
          "graph",
          [](PyTransaction& self, const PyGraph& of) {
            return PyGraph{of.state, of.graph, TransactionOn(of.state, self)};
          },
          "graph"_a, "The same transaction, on a graph.");
}

}  // namespace basalt::python
