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
#include <unordered_map>
#include <utility>
#include <vector>

#include "basalt/graph.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/budget.h"
#include "graph/edge_scan.h"
#include "graph/reader.h"

namespace basalt {
namespace {

using graph::Budget;
using graph::EdgeScan;

class LocalPush {
 public:
  LocalPush(EdgeScan scan, const PageRankOptions& options)
      : scan_(std::move(scan)), options_(options), budget_(options.limits) {}

  void AddSeed(NodeId node, double share) {
    const size_t place = PlaceOf(node);
    if (place != kNoRoom) AddResidual(place, share);
  }

  Result<PageRankResult> Run() {
    while (!queue_.empty() && budget_.TakeStep()) {
      const size_t place = queue_.front();
      queue_.pop_front();
      nodes_[place].is_queued = false;
      BASALT_RETURN_IF_ERROR(LoadEdges(place));
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
  static constexpr size_t kNoRoom = SIZE_MAX;
  struct Link {
    size_t place;
    double share;  // Of what the node spreads.
  };
  struct PushedNode {
    NodeId id{};
    double score = 0;
    double residual = 0;
    std::vector<Link> links{};  // Weights in place of shares until it has all.
    std::string position{};     // Where LoadEdges goes on.
    bool has_all_links = false;
    bool is_queued = false;
  };

  size_t PlaceOf(NodeId node) {
    const auto known = places_.find(node);
    if (known != places_.end()) return known->second;
    if (!budget_.TakeNode(sizeof(PushedNode) + graph::kVisitedNodeBytes)) return kNoRoom;
    places_.emplace(node, nodes_.size());
    nodes_.push_back({.id = node});
    return nodes_.size() - 1;
  }

  /// Reads so many edges of a node as its residual may need, and keeps them. A node with more edges
  /// is not due, however many there are; when its residual has grown, the rest is read from where
  /// this has stopped.
  Status LoadEdges(size_t place) {
    if (nodes_[place].has_all_links) return {};
    const auto wanted = static_cast<size_t>(2 * nodes_[place].residual / options_.epsilon) + 16;
    std::vector<Link> links = std::move(nodes_[place].links);
    bool has_all = true;
    for (scan_.StartAt(nodes_[place].id, nodes_[place].position); scan_.Valid(); scan_.Next()) {
      if (links.size() >= wanted) {
        nodes_[place].position = scan_.position();
        has_all = false;
        break;
      }
      if (!budget_.TakeEdge(links.size()) || !budget_.TakeBytes(sizeof(Link))) break;
      if (scan_.head().weight == 0) continue;
      const size_t other = PlaceOf(scan_.edge().other);
      if (other == kNoRoom) break;
      links.push_back({other, scan_.head().weight});
    }
    BASALT_RETURN_IF_ERROR(scan_.status());
    if (has_all) MakeShares(&links);
    nodes_[place].has_all_links = has_all;
    nodes_[place].links = std::move(links);
    return {};
  }

  /// Turns weights into shares. Weights are divided by the greatest first, so that neither their
  /// sum nor a quotient overflows.
  static void MakeShares(std::vector<Link>* links) {
    double greatest = 0;
    for (const Link& link : *links) greatest = std::max(greatest, link.share);
    double sum = 0;
    for (Link& link : *links) sum += link.share /= greatest;
    for (Link& link : *links) link.share /= sum;
  }

  bool IsDue(const PushedNode& node) const {
    const size_t edges = std::max<size_t>(1, node.links.size());
    return node.residual >= options_.epsilon * static_cast<double>(edges);
  }

  void AddResidual(size_t place, double amount) {
    PushedNode& node = nodes_[place];
    node.residual += amount;
    if (node.is_queued || !IsDue(node)) return;
    node.is_queued = true;
    queue_.push_back(place);
  }

  void Push(size_t place) {
    PushedNode& node = nodes_[place];
    const double residual = std::exchange(node.residual, 0);
    const bool is_sink = node.links.empty();
    node.score += residual * (is_sink ? 1 : options_.restart);
    if (is_sink) return;
    const double spread = residual * (1 - options_.restart);
    for (const Link& link : node.links) AddResidual(link.place, spread * link.share);
  }

  EdgeScan scan_;
  const PageRankOptions options_;
  Budget budget_;
  std::unordered_map<NodeId, size_t> places_;
  std::vector<PushedNode> nodes_;
  std::deque<size_t> queue_;
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
    LocalPush push(std::move(scan), options);
    for (const NodeScore& seed : present) push.AddSeed(seed.node, seed.score / total);
    return push.Run();
  });
}

}  // namespace basalt
