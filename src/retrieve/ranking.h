#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/graph.h"
#include "basalt/retrieve.h"
#include "retrieve/corpus_core.h"

// How passages are ranked.
//
// 1. The best hits of the text index and, if there is one, of the dense index are candidates.
// 2. Each list of scores becomes standard scores, (score - mean) / deviation, over a sample of
//    passages: the candidates and, up to 1,000, passages that no list has. Their weighted sum is
//    `hybrid`.
// 3. The best 8 candidates are the seeds of a walk over the links of passages (passage_walk.h).
// Their
//    shares are the softmax of `hybrid`.
// 4. What reaches a passage is its `page_rank`; links = link_weight * sqrt(page_rank / greatest
//    page_rank). Passages that only links reach become candidates with the
//    `hybrid` of a passage that no list has.
// 5. score = hybrid + links.

namespace basalt::retrieve {

/// A passage that may be an answer.
struct Candidate {
  NodeId node{};
  double score = 0;
  ScoreParts parts;
};

/// Ranks the passages of a corpus for one query. One thread.
class Ranking {
 public:
  Ranking(const CorpusCore* core, const GraphView* view, const RetrieveOptions& options)
      : core_(core), view_(view), options_(options) {}

  Status Run(std::string_view query);

  const std::vector<Candidate>& candidates() const noexcept { return candidates_; }
  const std::vector<NodeScore>& seeds() const noexcept { return seeds_; }
  bool truncated() const noexcept { return truncated_; }

 private:
  using Candidates = std::map<NodeId, Candidate>;

  Result<Candidates> FindCandidates(std::string_view query) const;
  Status AddHybrid(Candidates* candidates);
  template <class ScoreOf>
  void AddStandardScores(double weight, size_t passages, const ScoreOf& score_of,
                         Candidates* candidates);
  void ChooseSeeds(const Candidates& candidates);
  Status AddLinks(Candidates* candidates);
  size_t HitsWanted() const noexcept;

  const CorpusCore* core_;
  const GraphView* view_;
  const RetrieveOptions& options_;
  std::vector<NodeScore> seeds_;
  std::vector<Candidate> candidates_;
  double unlisted_hybrid_ = 0;  // Of a passage that no list has.
  bool truncated_ = false;
};

}  // namespace basalt::retrieve
