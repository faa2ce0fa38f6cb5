#pragma once

#include <cstddef>
#include <string>

#include "vector/graph_nodes.h"

namespace basalt::vector {

/// What a look at all of a graph found. It is sound when `fault` is empty; recall is a matter of
/// its links, which the other figures describe.
struct GraphAudit {
  size_t nodes = 0;       ///< Removed ones that repair has not taken out yet too.
  size_t duplicates = 0;  ///< Slots in rings, removed or not.
  size_t reachable = 0;   ///< Nodes to which links at level 0 lead from the entry.
  size_t links = 0;       ///< At level 0.
  size_t tree_edges = 0;
  std::string fault;  ///< The first thing that must not be.
};

/// Nobody inserts, removes or repairs meanwhile. Throws std::bad_alloc. Cost: a line or two for
/// each node and for each link: 20 ms for 100,000 nodes.
GraphAudit AuditGraph(const GraphNodes& nodes);

}  // namespace basalt::vector
