#include "retrieve/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace basalt::retrieve {
namespace {

/// Each list gives more hits than are returned: the mean and the deviation need a sample.
constexpr size_t kHitsMin = 100;
constexpr size_t kHitsFactor = 4;
constexpr size_t kHitsFactorKMax = 100'000;
constexpr size_t kSeeds = 8;
/// The weight of vectors; words have the rest.
constexpr double kDenseWeight = 0.7;
constexpr double kRestart = 0.5;

bool IsBetter(double score_a, NodeId a, double score_b, NodeId b) noexcept {
  return score_a != score_b ? score_a > score_b : a < b;
}

/// Adds the standard scores of one list to `hybrid`. `score_of` gives a candidate's score in the
/// list, if it has one.
template <class ScoreOf, class Candidates>
void AddStandardScores(double weight, const ScoreOf& score_of, Candidates* candidates) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [node, candidate] : *candidates) {
    if (score_of(candidate)) least = std::min(least, *score_of(candidate));
  }
  if (!std::isfinite(least)) return;
  double sum = 0;
  double squares = 0;
  for (const auto& [node, candidate] : *candidates) {
    const double score = score_of(candidate).value_or(least);
    sum += score;
    squares += score * score;
  }
  const auto count = static_cast<double>(candidates->size());
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  if (deviation < 1e-12) return;
  for (auto& [node, candidate] : *candidates) {
    candidate.parts.hybrid += weight * (score_of(candidate).value_or(least) - mean) / deviation;
  }
}

}  // namespace

Status Ranking::Run(std::string_view query) {
  BASALT_ASSIGN_OR_RETURN(Candidates candidates, FindCandidates(query));
  AddHybrid(&candidates);
  ChooseSeeds(candidates);
  if (options_.link_weight > 0 && !seeds_.empty()) BASALT_RETURN_IF_ERROR(AddLinks(&candidates));
  for (auto& [node, candidate] : candidates) {
    candidate.score = candidate.parts.hybrid + candidate.parts.links;
    candidates_.push_back(std::move(candidate));
  }
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return IsBetter(a.score, a.node, b.score, b.node);
  });
  return {};
}

size_t Ranking::HitsWanted() const noexcept {
  return std::max(kHitsMin, kHitsFactor * std::min(options_.k, kHitsFactorKMax));
}

Result<Ranking::Candidates> Ranking::FindCandidates(std::string_view query) const {
  const size_t hits = HitsWanted();
  Candidates candidates;
  BASALT_ASSIGN_OR_RETURN(const std::vector<TextHit> by_words, core_->text().Search(query, hits));
  for (const TextHit& hit : by_words) candidates[NodeId{hit.document}].parts.bm25 = hit.score;
  if (core_->dense() != nullptr) {
    BASALT_ASSIGN_OR_RETURN(const std::vector<DenseHit> by_vectors,
                            core_->dense()->Search(query, hits));
    for (const DenseHit& hit : by_vectors) candidates[hit.passage].parts.dense = hit.similarity;
  }
  for (auto& [node, candidate] : candidates) candidate.node = node;
  return candidates;
}

void Ranking::AddHybrid(Candidates* candidates) const {
  const bool has_dense = core_->dense() != nullptr;
  AddStandardScores(
      has_dense ? 1 - kDenseWeight : 1, [](const Candidate& each) { return each.parts.bm25; },
      candidates);
  if (!has_dense) return;
  AddStandardScores(
      kDenseWeight, [](const Candidate& each) { return each.parts.dense; }, candidates);
}

void Ranking::ChooseSeeds(const Candidates& candidates) {
  for (const auto& [node, candidate] : candidates) {
    seeds_.push_back({node, candidate.parts.hybrid});
  }
  std::ranges::sort(seeds_, [](const NodeScore& a, const NodeScore& b) {
    return IsBetter(a.score, a.node, b.score, b.node);
  });
  if (seeds_.size() > kSeeds) seeds_.resize(kSeeds);
  if (seeds_.empty()) return;
  const double greatest = seeds_.front().score;
  double sum = 0;
  for (NodeScore& seed : seeds_) sum += seed.score = std::exp(seed.score - greatest);
  for (NodeScore& seed : seeds_) seed.score /= sum;
}

Result<bool> Ranking::IsPassage(NodeId id) const {
  BASALT_ASSIGN_OR_RETURN(const std::optional<Node> node, view_->GetNode(id));
  return node && std::ranges::find(node->labels, "Passage") != node->labels.end();
}

/// PageRank of a node, without the part that it has as a seed.
double Ranking::ArrivedAt(const NodeScore& node) const noexcept {
  double arrived = node.score;
  for (const NodeScore& seed : seeds_) {
    if (seed.node == node.node) arrived -= kRestart * seed.score;
  }
  return std::max(0.0, arrived);
}

Status Ranking::AddLinks(Candidates* candidates) {
  const PageRankOptions walk{
      .edges = {.direction = EdgeDirection::kBoth, .types = {kAbout, kNames, kNext}},
      .restart = kRestart,
      .limits = options_.limits};
  BASALT_ASSIGN_OR_RETURN(const PageRankResult ranked, view_->PersonalizedPageRank(seeds_, walk));
  truncated_ |= ranked.truncated;
  double least = 0;
  for (const auto& [node, candidate] : *candidates) {
    least = std::min(least, candidate.parts.hybrid);
  }
  double greatest = 0;
  std::vector<Candidate*> reached;
  for (const NodeScore& node : ranked.nodes) {
    // The nodes come by score: what reaches those left is too little to matter.
    if (reached.size() == HitsWanted()) break;
    auto known = candidates->find(node.node);
    if (known == candidates->end()) {
      BASALT_ASSIGN_OR_RETURN(const bool is_passage, IsPassage(node.node));
      if (!is_passage) continue;
      known = candidates->emplace(node.node, Candidate{.node = node.node, .parts = {}}).first;
      known->second.parts.hybrid = least;
    }
    known->second.parts.page_rank = ArrivedAt(node);
    greatest = std::max(greatest, known->second.parts.page_rank);
    reached.push_back(&known->second);
  }
  if (greatest <= 0) return {};
  for (Candidate* candidate : reached) {
    candidate->parts.links =
        options_.link_weight * std::sqrt(candidate->parts.page_rank / greatest);
  }
  return {};
}

}  // namespace basalt::retrieve
