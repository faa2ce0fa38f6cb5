#include "tools/basalt/demo_graph.h"

#include <chrono>
#include <utility>

#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPutsOfBatch = 1'000;
constexpr size_t kShownMax = 5;

double SecondsFrom(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

EdgeFilter Hard(EdgeDirection direction) {
  return {.direction = direction, .types = {"Depends", "Pre-Depends"}};
}

Result<std::string> NameOf(const GraphView& view, NodeId id) {
  const Result<std::optional<Node>> node = view.GetNode(id);
  if (!node) return node.error();
  return *node ? (*node)->external_id : std::string("?");
}

Status PutPackage(const DemoPackage& package, GraphLoader* loader) {
  Properties properties;
  properties["section"] = std::string(package.section);
  properties["description"] = std::string(package.description);
  Status put =
      loader->PutNode(package.name, {.labels = {"Package"}, .properties = std::move(properties)});
  if (!put.ok()) return put;
  for (const DemoDependency& dependency : package.dependencies) {
    EdgeContent content;
    if (!dependency.versions.empty())
      content.properties["versions"] = std::string(dependency.versions);
    const Status linked = loader->PutEdge({package.name, dependency.type, dependency.on}, content);
    if (!linked.ok()) return linked;
  }
  return {};
}

}  // namespace

Result<DemoGraph> DemoGraph::Load(DB* db, const DemoInput& input) {
  const Clock::time_point start = Clock::now();
  Result<std::unique_ptr<Graph>> graph = Graph::Open(db, {.name = std::string(kName)});
  if (!graph) return graph.error();
  GraphLoader loader(graph->get(), /*make_nodes=*/true);
  Figures figures;
  uint64_t puts = 0;
  size_t offset = 0;
  while (const std::optional<DemoPackage> package = NextPackage(input, offset)) {
    if (const Status put = PutPackage(*package, &loader); !put.ok()) return put;
    ++figures.packages;
    figures.dependencies += package->dependencies.size();
    puts += 1 + package->dependencies.size();
    if (puts < kPutsOfBatch) continue;
    if (const Result<Commit> done = loader.Commit(); !done) return done.error();
    puts = 0;
  }
  if (const Result<Commit> done = loader.Commit(); !done) return done.error();
  figures.seconds = SecondsFrom(start);
  if (const Status built = (*graph)->RebuildAdjacency(); !built.ok()) return built;
  Result<GraphView> view = (*graph)->Read();
  if (!view) return view.error();
  DemoGraph made(*std::move(graph), *std::move(view));
  made.figures_ = figures;
  return made;
}

Result<std::string> DemoGraph::FirstOf(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    const Result<std::optional<NodeId>> node = view_.FindNode(name);
    if (!node) return node.error();
    if (*node) return name;
  }
  return std::string();
}

Result<DemoGraph::Needing> DemoGraph::WhatNeeds(const std::string& name) const {
  Needing needing;
  const Result<std::optional<NodeId>> node = view_.FindNode(name);
  if (!node) return node.error();
  if (!*node) return needing;
  const Clock::time_point start = Clock::now();
  const Result<KHopResult> near = view_.KHop(**node, 2, Hard(EdgeDirection::kIn));
  if (!near) return near.error();
  needing.microseconds = SecondsFrom(start) * 1e6;
  needing.count = near->nodes.size() - 1;
  for (const NodeDistance& each : near->nodes) {
    if (each.hops != 1 || needing.direct.size() == kShownMax) continue;
    const Result<std::string> found = NameOf(view_, each.node);
    if (!found) return found.error();
    needing.direct.push_back(ToText(*found));
  }
  return needing;
}

Result<std::string> DemoGraph::WhyNeeds(const std::string& name, const std::string& needed) const {
  const Result<std::optional<NodeId>> from = view_.FindNode(name);
  if (!from) return from.error();
  const Result<std::optional<NodeId>> to = view_.FindNode(needed);
  if (!to) return to.error();
  if (!*from || !*to) return std::string();
  const Result<PathResult> found = view_.ShortestPath(**from, **to, Hard(EdgeDirection::kOut));
  if (!found) return found.error();
  if (found->paths.empty()) return std::string();
  std::string text = ToText(name);
  for (const Neighbor& edge : found->paths[0].edges) {
    const Result<std::string> next = NameOf(view_, edge.node);
    if (!next) return next.error();
    text += " -[" + std::string(edge.type) + "]-> " + ToText(*next);
  }
  return text;
}

}  // namespace basalt::tools
