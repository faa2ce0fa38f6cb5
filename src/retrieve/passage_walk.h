#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "basalt/graph.h"

// Personalised PageRank over passages, by local push (Andersen, Chung and Lang, "Local graph
// partitioning using PageRank vectors", 2006).
//
// A step of the walk leads from a passage to another one that shares an entity with it. The entity
// is chosen with a probability proportional to 1 / d, d the number of its passages (the node
// specificity of HippoRAG, Gutierrez et al., 2024); then one of its other d - 1 passages is chosen.
// So a rare name leads farther than a frequent one, and an entity that only one passage names leads
// nowhere and takes nothing. A neighbour in the text counts as the other passage of an entity with
// d = 2. Entities of more than kEntityPassagesMax passages are left out: they say little, and
// reading them is slow.
//
// Graph has a PageRank of its own, which walks from nodes to nodes and so often returns from an
// entity to where it came from.

namespace basalt::retrieve {

inline constexpr size_t kEntityPassagesMax = 100;

/// One walk. One thread. The view outlives it.
class PassageWalk {
 public:
  PassageWalk(const GraphView* view, const ReadLimits& limits) : view_(view), limits_(limits) {}

  /// What reaches passages over links, greatest first: PageRank without the shares that the seeds
  /// have as such. The shares of the seeds sum up to 1.
  Result<std::vector<NodeScore>> Run(std::span<const NodeScore> seeds);
  /// A limit left something out.
  bool truncated() const noexcept { return truncated_; }

 private:
  struct Step {
    size_t to = 0;  // A place in passages_.
    double probability = 0;
  };
  struct Passage {
    NodeId id{};
    double score = 0;
    double residual = 0;
    bool is_queued = false;
    bool has_steps = false;
    std::vector<Step> steps{};
  };

  bool IsOverTime() const;
  size_t PlaceOf(NodeId passage);
  void AddResidual(size_t place, double amount);
  Status Push(size_t place);
  Status LoadSteps(size_t place);
  void AddSteps(size_t from, const std::vector<NodeId>& passages, std::vector<Step>* steps);
  Result<const std::vector<NodeId>*> PassagesOf(NodeId entity);

  const GraphView* view_;
  const ReadLimits limits_;
  std::unordered_map<NodeId, size_t> places_;
  std::vector<Passage> passages_;
  std::unordered_map<NodeId, std::vector<NodeId>> passages_of_entity_;  // Empty: left out.
  std::deque<size_t> queue_;
  uint64_t bytes_ = 0;  // Of passages and steps, about.
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool truncated_ = false;
};

}  // namespace basalt::retrieve
