#include "vector/graph_audit.h"

#include <cstdint>
#include <string>
#include <vector>

namespace basalt::vector {
namespace {

class Auditor {
 public:
  explicit Auditor(const GraphNodes& nodes) : nodes_(nodes), in_rings_(nodes.size()) {}

  GraphAudit Run() {
    for (uint32_t slot = 0; slot < nodes_.size(); ++slot) {
      if (!IsNode(nodes_.State(slot))) continue;
      ++audit_.nodes;
      CheckLinks(slot);
      CheckRing(slot);
    }
    CheckSlots();
    CheckEntry();
    audit_.reachable = Reach(/*over_tree=*/false);
    if (audit_.reachable != audit_.nodes) {
      Fault("links lead to " + std::to_string(audit_.reachable) + " of " +
            std::to_string(audit_.nodes) + " nodes");
    }
    // A tree has one edge less than nodes, and is one piece.
    audit_.tree_edges /= 2;
    if (audit_.tree_edges + 1 != audit_.nodes && audit_.nodes != 0) {
      Fault(std::to_string(audit_.nodes) + " nodes have a tree of " +
            std::to_string(audit_.tree_edges) + " edges");
    }
    if (Reach(/*over_tree=*/true) != audit_.nodes) Fault("the tree is in pieces");
    return std::move(audit_);
  }

 private:
  void Fault(const std::string& what) {
    if (audit_.fault.empty()) audit_.fault = what;
  }
  void Fault(uint32_t slot, const std::string& what) {
    if (audit_.fault.empty()) audit_.fault = "slot " + std::to_string(slot) + " " + what;
  }

  void CheckLinks(uint32_t slot) {
    for (uint32_t level = 0; level <= nodes_.LevelOf(slot); ++level) {
      std::vector<uint32_t> seen;
      ForEachLink(nodes_.Links(level, slot), [&](uint32_t word) {
        const uint32_t next = Link::SlotOf(word);
        if (next >= nodes_.size() || !IsNode(nodes_.State(next)))
          return Fault(slot, "links to a slot without a node");
        if (nodes_.LevelOf(next) < level) return Fault(slot, "links to a node of a lower level");
        if (next == slot) return Fault(slot, "links to itself");
        for (const uint32_t other : seen) {
          if (other == next) return Fault(slot, "links to a node twice");
        }
        seen.push_back(next);
        if (level != 0) return;
        ++audit_.links;
        if (!Link::IsTree(word)) return;
        ++audit_.tree_edges;
        bool is_mutual = false;
        ForEachLink(nodes_.Links(0, next),
                    [&](uint32_t back) { is_mutual |= back == (slot | Link::kTree); });
        if (!is_mutual) Fault(slot, "has an edge of the tree in one direction only");
      });
    }
  }

  void CheckRing(uint32_t node) {
    size_t count = 0;
    for (uint32_t slot = nodes_.NextInRing(node); slot != node; slot = nodes_.NextInRing(slot)) {
      if (slot >= nodes_.size() || in_rings_[slot]) return Fault(node, "has a broken ring");
      const SlotState state = nodes_.State(slot);
      if (state != SlotState::kDuplicate && state != SlotState::kRemovedDuplicate) {
        return Fault(slot, "is in a ring and is not a duplicate");
      }
      if (nodes_.Distance(nodes_.Code(node), slot) != 0) {
        return Fault(slot, "is in the ring of another code");
      }
      in_rings_[slot] = true;
      ++count;
    }
    audit_.duplicates += count;
    if (count != 0 && !nodes_.IsSpecial(node)) Fault(node, "has a ring and is not marked");
  }

  void CheckSlots() {
    for (uint32_t slot = 0; slot < nodes_.size(); ++slot) {
      const SlotState state = nodes_.State(slot);
      if (state != SlotState::kLive && !nodes_.IsSpecial(slot)) Fault(slot, "is not marked");
      if (state == SlotState::kCondemned) Fault(slot, "is condemned");
      const bool is_duplicate =
          state == SlotState::kDuplicate || state == SlotState::kRemovedDuplicate;
      if (is_duplicate && !in_rings_[slot]) Fault(slot, "is not in a ring");
    }
  }

  void CheckEntry() {
    const GraphNodes::Entry entry = nodes_.entry();
    if (entry.slot == kNoSlot) {
      if (audit_.nodes != 0) Fault("there are nodes and no entry");
      return;
    }
    if (entry.slot >= nodes_.size() || !IsNode(nodes_.State(entry.slot)) ||
        entry.level != nodes_.LevelOf(entry.slot)) {
      return Fault("the entry is not a node of its level");
    }
    for (uint32_t slot = 0; slot < nodes_.size(); ++slot) {
      if (IsNode(nodes_.State(slot)) && nodes_.LevelOf(slot) > entry.level)
        Fault(slot, "is above the entry");
    }
  }

  size_t Reach(bool over_tree) {
    const uint32_t entry = nodes_.entry().slot;
    if (entry >= nodes_.size()) return 0;
    std::vector<bool> seen(nodes_.size());
    std::vector<uint32_t> reached = {entry};
    seen[entry] = true;
    for (size_t i = 0; i < reached.size(); ++i) {
      ForEachLink(nodes_.Links(0, reached[i]), [&](uint32_t word) {
        const uint32_t next = Link::SlotOf(word);
        if (next >= nodes_.size() || seen[next] || (over_tree && !Link::IsTree(word))) return;
        seen[next] = true;
        reached.push_back(next);
      });
    }
    return reached.size();
  }

  const GraphNodes& nodes_;
  std::vector<bool> in_rings_;
  GraphAudit audit_;
};

}  // namespace

GraphAudit AuditGraph(const GraphNodes& nodes) { return Auditor(nodes).Run(); }

}  // namespace basalt::vector
