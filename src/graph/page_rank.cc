// Personalised PageRank by local push.
//
// Each node has a score and a residual, at first the seeds' shares. A push of a node moves
// `restart` of its residual to its score, and spreads the rest over its edges by their weights.
// Nodes are pushed until every residual is below epsilon times the number of the node's edges. The
// sum of scores and residuals stays 1, so that the error of a score is bounded by the residuals
// that are left. A node without edges keeps all of its residual.

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "basalt/graph.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/budget.h"
#include "graph/edge_scan.h"
#include "graph/node_map.h"
#include "graph/reader.h"

namespace basalt {
namespace {

using graph::Budget;
using graph::EdgeScan;

/// An edge of a node that is pushed.
struct Link {
  NodeId other;
  double weight;
};

/// The edges of nodes, from memory or from the records. Records are kept, so that each is read
/// once.
class Links {
 public:
  Links(EdgeScan scan, Budget* budget) : scan_(std::move(scan)), budget_(*budget) {}

  /// Counts the edges of a node with a weight up to `wanted`. False: it has more.
  Result<bool> Count(size_t place, NodeId node, uint64_t wanted, uint64_t* count) {
    if (!scan_.is_in_memory()) return Load(place, node, wanted, count);
    *count = scan_.CountWeighted(node, wanted + 1);
    return *count <= wanted;
  }

  /// The edges of a node that Count has counted to the end. Valid until the next call.
  const std::vector<Link>& Of(size_t place, NodeId node) {
    if (!scan_.is_in_memory()) return loaded_[place].links;
    links_.clear();
    for (scan_.Start(node); scan_.Valid() && budget_.TakeEdge(links_.size()); scan_.Next()) {
      if (scan_.weight() > 0) links_.push_back({scan_.edge().other, scan_.weight()});
    }
    return links_;
  }

 private:
  struct Loaded {
    std::vector<Link> links;
    std::string position;  // Where Load goes on.
  };

  Result<bool> Load(size_t place, NodeId node, uint64_t wanted, uint64_t* count) {
    if (place >= loaded_.size()) loaded_.resize(place + 1);
    auto& [links, position] = loaded_[place];
    bool has_all = true;
    for (scan_.StartAt(node, position); scan_.Valid(); scan_.Next()) {
      if (links.size() >= wanted) {
        position = scan_.position();
        has_all = false;
        break;
      }
      if (!budget_.TakeEdge(links.size()) || !budget_.TakeBytes(sizeof(Link))) break;
      if (scan_.weight() > 0) links.push_back({scan_.edge().other, scan_.weight()});
    }
    BASALT_RETURN_IF_ERROR(scan_.status());
    *count = links.size() + (has_all ? 0 : 1);
    return has_all;
  }

  EdgeScan scan_;
  Budget& budget_;
  std::vector<Link> links_;
  std::vector<Loaded> loaded_;
};

class LocalPush {
 public:
  LocalPush(EdgeScan scan, const PageRankOptions& options, graph::NodeArrays* arrays)
      : options_(options),
        budget_(options.limits),
        links_(std::move(scan), &budget_),
        places_(arrays) {}

  void AddSeed(NodeId node, double share) { AddResidual(node, share); }

  Result<PageRankResult> Run() {
    while (!queue_.empty() && budget_.TakeStep()) {
      const uint32_t place = queue_.front();
      queue_.pop_front();
      nodes_[place].is_queued = false;
      BASALT_RETURN_IF_ERROR(CountEdges(place));
      if (IsDue(nodes_[place])) Push(place);
    }
    PageRankResult result{.truncated = budget_.truncated()};
    for (const PushedNode& node : nodes_) {
      if (node.score > 0) result.nodes.push_back({node.id, node.score});
    }
    std::ranges::sort(result.nodes, [](const NodeScore& a, const NodeScore& b) {
      return a.score != b.score ? a.score > b.score : a.node < b.node;
    });
    return result;
  }

 private:
  struct PushedNode {
    NodeId id{};
    double score = 0;
    double residual = 0;
    uint64_t edges = 0;  // As far as they are counted.
    bool has_all_edges = false;
    bool is_queued = false;
  };

  /// Counts as many edges of a node as its residual may need. A node with more is not due, however
  /// many there are; when its residual has grown, it is counted further.
  Status CountEdges(uint32_t place) {
    PushedNode& node = nodes_[place];
    if (node.has_all_edges) return {};
    const auto wanted = static_cast<uint64_t>(2 * node.residual / options_.epsilon) + 16;
    BASALT_ASSIGN_OR_RETURN(node.has_all_edges, links_.Count(place, node.id, wanted, &node.edges));
    return {};
  }

  bool IsDue(const PushedNode& node) const {
    return node.residual >=
           options_.epsilon * static_cast<double>(std::max<uint64_t>(1, node.edges));
  }

  void AddResidual(NodeId id, double amount) {
    uint32_t place = places_.Find(id);
    if (place == graph::NodeMap::kAbsent) {
      if (!budget_.TakeNode(sizeof(PushedNode) + graph::kVisitedNodeBytes)) return;
      place = static_cast<uint32_t>(nodes_.size());
      places_.Insert(id, place);
      nodes_.push_back({.id = id});
    }
    PushedNode& node = nodes_[place];
    node.residual += amount;
    if (node.is_queued || !IsDue(node)) return;
    node.is_queued = true;
    queue_.push_back(place);
  }

  void Push(uint32_t place) {
    const NodeId id = nodes_[place].id;
    const double residual = std::exchange(nodes_[place].residual, 0);
    const bool is_sink = nodes_[place].edges == 0;
    nodes_[place].score += residual * (is_sink ? 1 : options_.restart);
    if (is_sink) return;
    const std::vector<Link>& links = links_.Of(place, id);
    // Weights are divided by the greatest first, so that neither their sum nor a quotient
    // overflows.
    double greatest = 0;
    for (const Link& link : links) greatest = std::max(greatest, link.weight);
    double sum = 0;
    for (const Link& link : links) sum += link.weight / greatest;
    const double spread = residual * (1 - options_.restart) / sum;
    for (const Link& link : links) AddResidual(link.other, spread * (link.weight / greatest));
  }

  const PageRankOptions options_;
  Budget budget_;
  Links links_;
  graph::NodeMap places_;
  std::vector<PushedNode> nodes_;
  std::deque<uint32_t> queue_;
};

Status CheckPageRank(std::span<const NodeScore> seeds, const PageRankOptions& options) {
  if (!(options.restart >= 0.01 && options.restart <= 1) ||
      !(options.epsilon >= 1e-12 && options.epsilon <= 1)) {
    return Status(StatusCode::kInvalidArgument,
                  "personalised PageRank needs 0.01 <= restart <= 1 and 1e-12 <= epsilon <= 1");
  }
  double total = 0;
  for (const NodeScore& seed : seeds) {
    total += seed.score;
    if (seed.score > 0 && std::isfinite(total)) continue;
    return Status(StatusCode::kInvalidArgument,
                  "the shares of the seeds of personalised PageRank must be above zero, and their "
                  "sum finite");
  }
  return {};
}

}  // namespace

Result<PageRankResult> GraphView::PersonalizedPageRank(std::span<const NodeScore> seeds,
                                                       const PageRankOptions& options) const {
  return base::OrOutOfMemory([&]() -> Result<PageRankResult> {
    BASALT_RETURN_IF_ERROR(CheckPageRank(seeds, options));
    BASALT_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(reader_.get(), options.edges));
    std::vector<NodeScore> present;
    double total = 0;
    for (const NodeScore& seed : seeds) {
      BASALT_ASSIGN_OR_RETURN(const std::optional<graph::NodeRecord> record,
                              reader_->GetRecord(seed.node));
      if (!record) continue;
      present.push_back(seed);
      total += seed.score;
    }
    LocalPush push(std::move(scan), options, reader_->node_arrays());
    for (const NodeScore& seed : present) push.AddSeed(seed.node, seed.score / total);
    return push.Run();
  });
}

}  // namespace basalt
