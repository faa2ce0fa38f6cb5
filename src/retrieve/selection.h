#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "basalt/graph.h"
#include "basalt/retrieve.h"
#include "retrieve/near_duplicates.h"
#include "retrieve/ranking.h"

namespace basalt::retrieve {

/// Chooses the passages that are returned: in the order of the ranking, without near-duplicates,
/// as many as k and the budget of tokens admit. A passage that does not fit is passed over, because
/// a shorter one may fit.
class Selection {
 public:
  Selection(const GraphView* view, const RetrieveOptions& options)
      : view_(view), options_(options) {}

  Result<RetrieveResult> Choose(const Ranking& ranking);

 private:
  Result<std::optional<RetrievedPassage>> ReadPassage(NodeId node);
  Result<std::string> TitleOf(const std::string& source);
  Result<std::vector<std::string>> FindEvidence(NodeId passage,
                                                const std::vector<NodeScore>& seeds) const;

  const GraphView* view_;
  const RetrieveOptions& options_;
  NearDuplicates chosen_;
  std::map<std::string, std::string> titles_;  // By source.
};

}  // namespace basalt::retrieve
