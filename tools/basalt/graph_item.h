#pragma once

#include <string>
#include <variant>

#include "basalt/graph.h"

namespace basalt::tools {

/// A node, or an edge, of a file.
struct GraphNodeItem {
  std::string id;
  NodeContent content;
};
struct GraphEdgeItem {
  std::string from;
  std::string type;
  std::string to;
  std::string discriminator;
  EdgeContent content;

  EdgeName name() const {
    return {.from = from, .type = type, .to = to, .discriminator = discriminator};
  }
};
using GraphItem = std::variant<GraphNodeItem, GraphEdgeItem>;

}  // namespace basalt::tools
