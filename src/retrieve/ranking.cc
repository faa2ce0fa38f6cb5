#include "retrieve/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "retrieve/passage_walk.h"

namespace basalt::retrieve {
namespace {

/// Hits of each list, at least: a large sample, so that the mean and the deviation of the scores
/// are about those of all passages.
constexpr size_t kHitsMin = 1000;
constexpr size_t kSeeds = 8;
/// Passages that links may add, and that get a share of links, at most.
constexpr size_t kLinkedMax = 1000;
/// The weight of vectors; words have the rest.
constexpr double kDenseWeight = 0.7;

bool IsBetter(double score_a, NodeId a, double score_b, NodeId b) noexcept {
  return score_a != score_b ? score_a > score_b : a < b;
}

}  // namespace

Status Ranking::Run(std::string_view query) {
  BASALT_ASSIGN_OR_RETURN(Candidates candidates, FindCandidates(query));
  BASALT_RETURN_IF_ERROR(AddHybrid(&candidates));
  ChooseSeeds(candidates);
  if (options_.link_weight > 0 && !seeds_.empty()) BASALT_RETURN_IF_ERROR(AddLinks(&candidates));
  for (auto& [node, candidate] : candidates) {
    candidate.score = candidate.parts.hybrid + candidate.parts.links;
    candidates_.push_back(candidate);
  }
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return IsBetter(a.score, a.node, b.score, b.node);
  });
  return {};
}

size_t Ranking::HitsWanted() const noexcept { return std::max(kHitsMin, options_.k); }

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

Status Ranking::AddHybrid(Candidates* candidates) {
  BASALT_ASSIGN_OR_RETURN(const TextIndexStats stats, core_->text().GetStats());
  const size_t passages = std::min<uint64_t>(HitsWanted(), stats.documents);
  const bool has_dense = core_->dense() != nullptr;
  AddStandardScores(
      has_dense ? 1 - kDenseWeight : 1, passages,
      [](const Candidate& each) { return each.parts.bm25; }, candidates);
  if (has_dense) {
    AddStandardScores(
        kDenseWeight, passages, [](const Candidate& each) { return each.parts.dense; }, candidates);
  }
  return {};
}

/// Adds the standard scores of one list to `hybrid`, and to what a passage gets that is in no list.
/// `score_of` gives a candidate's score in the list, if it has one. Passages that the list does not
/// have count with its least score; if the list is shorter than the sample of `passages`, it has
/// all passages that match, and the others count with 0, or with the least score if that is less.
template <class ScoreOf>
void Ranking::AddStandardScores(double weight, size_t passages, const ScoreOf& score_of,
                                Candidates* candidates) {
  double least = std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;
  size_t listed = 0;
  for (const auto& [node, candidate] : *candidates) {
    const std::optional<double> score = score_of(candidate);
    if (!score) continue;
    ++listed;
    sum += *score;
    squares += *score * *score;
    least = std::min(least, *score);
  }
  if (listed == 0) return;
  const double missing = listed < passages ? std::min(0.0, least) : least;
  const size_t sample = std::max(passages, candidates->size());
  const auto unlisted = static_cast<double>(sample - listed);
  sum += unlisted * missing;
  squares += unlisted * missing * missing;
  const double mean = sum / static_cast<double>(sample);
  const double variance = squares / static_cast<double>(sample) - mean * mean;
  if (variance < 1e-12) return;
  const double factor = weight / std::sqrt(variance);
  unlisted_hybrid_ += factor * (missing - mean);
  for (auto& [node, candidate] : *candidates) {
    candidate.parts.hybrid += factor * (score_of(candidate).value_or(missing) - mean);
  }
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

Status Ranking::AddLinks(Candidates* candidates) {
  PassageWalk walk(view_, options_.limits);
  BASALT_ASSIGN_OR_RETURN(std::vector<NodeScore> reached, walk.Run(seeds_));
  truncated_ |= walk.truncated();
  if (reached.empty()) return {};
  if (reached.size() > kLinkedMax) reached.resize(kLinkedMax);
  const double greatest = reached.front().score;
  for (const NodeScore& passage : reached) {
    const auto [found, is_new] =
        candidates->try_emplace(passage.node, Candidate{.node = passage.node, .parts = {}});
    ScoreParts& parts = found->second.parts;
    if (is_new) parts.hybrid = unlisted_hybrid_;
    parts.page_rank = passage.score;
    parts.links = options_.link_weight * std::sqrt(passage.score / greatest);
  }
  return {};
}

}  // namespace basalt::retrieve
