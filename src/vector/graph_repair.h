#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <vector>

#include "vector/graph_nodes.h"
#include "vector/graph_walk.h"
#include "vector/neighbour_choice.h"

// Takes removed slots out of a graph, many at a time, and leaves the others as well linked as
// before.
//
//   1. condemn   alone in the graph: removed slots leave their rings; removed nodes whose rings are
//                empty are condemned, so that nothing new links to them; the edges of the tree that
//                end at one are joined to a path; an entry that is condemned is replaced
//   2. relink    beside searches and insertions: each node that links to condemned ones chooses
//   anew
//                among its other neighbours and the neighbours of those; where that is too few, a
//                walk finds more
//   3. free      nothing leads to them any more: they are the caller's (slot_allocator.h)
//
// Source for 2: A. Singh et al., "FreshDiskANN" (2021). Lists are filled to three quarters, which
// kept recall better over many repairs than filling them up.
//
// Cost: step 1 a microsecond a removed slot; step 2 a pass over all links, and 10 to 20 us for each
// node that has lost a neighbour: at 5 % removed, most nodes have. So the more are removed at a
// time, the less one costs: 0.3 ms each at 1 %, 0.1 ms at 5 %.

namespace basalt::vector {

class GraphRepair {
 public:
  /// `maintenance` is what insertions hold shared.
  GraphRepair(GraphNodes* nodes, std::shared_mutex* maintenance, WalkMemory* memory) noexcept
      : nodes_(*nodes), maintenance_(*maintenance), memory_(*memory) {}

  /// Takes out all that are removed now. Gives their slots, which stay condemned until the caller
  /// frees them. Throws std::bad_alloc: then the graph is whole, and the next repair goes on.
  std::vector<uint32_t> Run();

 private:
  void Condemn();
  void LeaveRings(uint32_t node);
  void LeaveTree(uint32_t node);
  void JoinInTree(uint32_t a, uint32_t b);
  void MakeTreeLink(uint32_t from, uint32_t to);
  void ReplaceEntry();

  bool IsCondemned(uint32_t slot) const noexcept {
    return nodes_.IsSpecial(slot) && nodes_.State(slot) == SlotState::kCondemned;
  }
  bool LinksToCondemned(uint32_t level, uint32_t slot) const noexcept;
  void Relink(uint32_t level, uint32_t slot);
  /// The lock of `slot` is held, here and below.
  void CollectCandidates(uint32_t level, uint32_t slot);
  void WalkForCandidates(uint32_t level, uint32_t slot);

  GraphNodes& nodes_;
  std::shared_mutex& maintenance_;
  WalkMemory& memory_;
  std::vector<uint32_t> condemned_;  ///< Nodes, and slots that left their rings.
  std::vector<Candidate> candidates_;
};

}  // namespace basalt::vector
