#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vector/graph_nodes.h"

// Which of many candidates a node links to: the nearest ones, but none that is nearer to one chosen
// before than to the node. So links go in all directions and not all into one cluster: that one is
// reached through its nearest member. (The heuristic of Malkov and Yashunin, algorithm 4.)

namespace basalt::vector {

struct Candidate {
  uint32_t distance;
  uint32_t word;  ///< A link: its slot, and whether it is of the tree.

  friend auto operator<=>(const Candidate& a, const Candidate& b) noexcept {
    const auto key = [](const Candidate& c) {
      return uint64_t{c.distance} << 32 | Link::SlotOf(c.word);
    };
    return key(a) <=> key(b);
  }
};

/// Reorders `candidates`, which are sorted by distance and differ, so that those chosen come first,
/// `chosen_max` at most, and gives how many these are. Tree links are always chosen; there are no
/// more than `chosen_max`. Fewer than `filled` are filled up with the nearest of the others.
size_t ChooseNeighbours(const GraphNodes& nodes, size_t chosen_max, size_t filled,
                        std::span<Candidate> candidates);

}  // namespace basalt::vector
