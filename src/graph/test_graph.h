#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "basalt/graph.h"

// What tests compare graphs by.

namespace basalt::graph {

using Lines = std::vector<std::string>;

inline std::string ToString(const PropertyValue& value) {
  if (const auto* text = value.As<std::string>()) return "'" + *text + "'";
  if (const auto* number = value.As<int64_t>()) return std::to_string(*number);
  if (const auto* number = value.As<double>()) return std::to_string(*number);
  if (const auto* truth = value.As<bool>()) return *truth ? "true" : "false";
  if (const auto* bytes = value.As<Bytes>()) return "b'" + bytes->bytes + "'";
  if (const auto* time = value.As<WallTime>()) {
    return "t" + std::to_string(time->time_since_epoch().count());
  }
  if (const auto* list = value.As<PropertyValue::List>()) {
    std::string text = "[";
    for (const PropertyValue& each : *list) text += ToString(each) + " ";
    return text + "]";
  }
  return "null";
}
inline std::string ToString(const Properties& properties) {
  std::string text;
  for (const auto& [name, value] : properties) text += " " + name + "=" + ToString(value);
  return text;
}

inline std::string NodeLine(std::string_view id, const std::vector<std::string>& labels,
                            const Properties& properties) {
  std::string line = "node " + std::string(id);
  for (const std::string& label : std::set<std::string>(labels.begin(), labels.end()))
    line += " :" + label;
  return line + ToString(properties);
}
/// A long text by its length and its end.
inline std::string Shortened(std::string_view text) {
  if (text.size() <= 16) return std::string(text);
  return std::to_string(text.size()) + "*" + std::string(text.substr(text.size() - 8));
}
inline std::string EdgeLine(std::string_view from, std::string_view type, std::string_view to,
                            std::string_view discriminator, double weight,
                            const Properties& properties) {
  return "edge " + std::string(from) + " -" + std::string(type) + "/" + Shortened(discriminator) +
         "-> " + std::string(to) + " " + std::to_string(weight) + ToString(properties);
}

/// All nodes and edges, by names instead of ids, sorted. Edges are read at both ends, and at the
/// first one from their records and as neighbours. All three must agree.
inline Lines DumpOf(const GraphView& view) {
  Lines lines;
  Lines seen_from_behind;
  Lines seen_as_neighbours;
  Lines seen_from_front;
  const auto name_of = [&view](NodeId id) {
    const auto node = view.GetNode(id);
    EXPECT_TRUE(node && *node) << "an edge to a node that is not there";
    return node && *node ? (*node)->external_id : std::string("?");
  };
  const Status read = view.ForEachNode([&](const Node& node) {
    lines.push_back(NodeLine(node.external_id, node.labels, node.properties));
    EXPECT_TRUE(view.ForEachEdge(node.id,
                                 [&](const Neighbor& edge, const EdgeContent& content) {
                                   const std::string to = name_of(edge.node);
                                   lines.push_back(EdgeLine(node.external_id, edge.type, to,
                                                            edge.discriminator, content.weight,
                                                            content.properties));
                                   seen_from_behind.push_back(EdgeLine(node.external_id, edge.type,
                                                                       to, edge.discriminator,
                                                                       edge.weight, {}));
                                   return true;
                                 })
                    .ok());
    const auto page = view.Neighbors(node.id, {.direction = EdgeDirection::kBoth}, SIZE_MAX);
    EXPECT_TRUE(page.ok());
    for (const Neighbor& edge : page->neighbors) {
      const std::string other = name_of(edge.node);
      const bool is_out = edge.direction == EdgeDirection::kOut;
      (is_out ? seen_as_neighbours : seen_from_front)
          .push_back(EdgeLine(is_out ? node.external_id : other, edge.type,
                              is_out ? other : node.external_id, edge.discriminator, edge.weight,
                              {}));
    }
    return true;
  });
  EXPECT_TRUE(read.ok()) << read.ToString();
  std::ranges::sort(seen_from_behind);
  std::ranges::sort(seen_as_neighbours);
  std::ranges::sort(seen_from_front);
  EXPECT_EQ(seen_from_behind, seen_as_neighbours);
  EXPECT_EQ(seen_from_behind, seen_from_front);
  std::ranges::sort(lines);
  return lines;
}

inline Lines DumpOf(const Graph& graph) {
  const auto view = graph.Read();
  EXPECT_TRUE(view.ok());
  return DumpOf(*view);
}

inline testing::AssertionResult IsSound(const Graph& graph) {
  const auto faults = graph.Verify();
  if (!faults) return testing::AssertionFailure() << faults.error().ToString();
  if (faults->empty()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  for (const std::string& fault : *faults) failure << fault << "\n";
  return failure;
}

}  // namespace basalt::graph
