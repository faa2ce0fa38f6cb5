#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vector/graph_nodes.h"
#include "vector/graph_walk.h"
#include "vector/neighbour_choice.h"

// Adds a slot, whose code is in its place, to a graph.
//
// A walk at each level up to the slot's finds candidates, of which ChooseNeighbours takes up to
// kNeighbours. If the nearest has the same code, the slot joins its ring, and that is all.
// Otherwise its links are written at all levels before anything leads to it; then one neighbour at
// level 0 gets a tree link to it, and the other neighbours their links back. A neighbour whose
// links are full chooses anew.
//
// Threads: any number at once, each holding the graph's maintenance lock shared.
//
// Cost: a walk with ef 200, a choice, and 16 links back, of which few choose: 60 us at 100,000
// codes of 128 bytes.

namespace basalt::vector {

class GraphInsertion {
 public:
  /// Links that a node begins with at each level; links back come on top.
  static constexpr size_t kNeighbours = 16;
  /// Candidates that it chooses from.
  static constexpr size_t kCandidates = 200;

  GraphInsertion(GraphNodes* nodes, WalkMemory* memory) noexcept
      : nodes_(*nodes), memory_(*memory) {}

  /// `slot` has a code and is free. Throws std::bad_alloc, and it is still free.
  void Insert(uint32_t slot);

 private:
  /// Tree links that insertions give to one node, so that it has room for others.
  static constexpr size_t kTreeLinksMax = 12;

  struct Neighbours {
    std::array<Candidate, kNeighbours> links;
    size_t count = 0;

    std::span<const Candidate> span() const noexcept { return {links.data(), count}; }
  };

  bool InsertFirst(uint32_t slot);
  bool JoinRing(uint32_t slot, uint32_t node);
  /// Fills the pool with nodes near the code at one level, beginning at `start`.
  void FindCandidates(uint32_t level, uint32_t start);
  Neighbours Choose();
  void WriteLinks(uint32_t level, uint32_t slot, const Neighbours& neighbours) noexcept;
  /// Adds the tree link by which others get to `slot`.
  void JoinTree(uint32_t slot);
  bool AddTreeLink(uint32_t slot, const Candidate& neighbour);
  /// Some node that may get a tree link, reached over tree links from one that may not.
  Candidate FindRoomInTree(uint32_t from);
  size_t TreeLinks(uint32_t slot) const noexcept;
  void BecomeEntry(uint32_t slot);

  GraphNodes& nodes_;
  WalkMemory& memory_;
  std::vector<Candidate> candidates_;  ///< Of the last choice: those chosen first.
};

/// Adds a link to what `from` links to at a level; where it is full, `from` chooses anew, and may
/// drop it, but no tree link. The lock of `from` is held.
void AddLinkLocked(const GraphNodes& nodes, uint32_t level, uint32_t from, Candidate added);

/// Writes a node's links, nearest first or not.
void WriteLinkWords(LinkWords words, std::span<const Candidate> links) noexcept;

}  // namespace basalt::vector
