#include "retrieve/selection.h"

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "retrieve/corpus_core.h"

namespace basalt::retrieve {
namespace {

constexpr uint64_t kBytesPerToken = 4;

std::string StringOf(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  const auto* text = found == properties.end() ? nullptr : found->second.As<std::string>();
  return text == nullptr ? std::string() : *text;
}
uint64_t NumberOf(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  const auto* number = found == properties.end() ? nullptr : found->second.As<int64_t>();
  return number == nullptr || *number < 0 ? 0 : static_cast<uint64_t>(*number);
}

}  // namespace

Result<RetrieveResult> Selection::Choose(const Ranking& ranking) {
  RetrieveResult result{.passages = {}, .truncated = ranking.truncated()};
  for (const Candidate& candidate : ranking.candidates()) {
    if (result.passages.size() >= options_.k) break;
    BASALT_ASSIGN_OR_RETURN(std::optional<RetrievedPassage> passage, ReadPassage(candidate.node));
    if (!passage) continue;
    if (passage->tokens > options_.max_tokens - result.tokens) {
      result.truncated = true;
      continue;
    }
    if (!chosen_.Add(passage->text)) {
      ++result.duplicates;
      continue;
    }
    passage->score = candidate.score;
    passage->parts = candidate.parts;
    if (options_.explain) {
      BASALT_ASSIGN_OR_RETURN(passage->evidence, FindEvidence(candidate.node, ranking.seeds()));
    }
    result.tokens += passage->tokens;
    result.passages.push_back(*std::move(passage));
  }
  return result;
}

/// Nothing: the passage is not in this view. It was added later, or removed before.
Result<std::optional<RetrievedPassage>> Selection::ReadPassage(NodeId id) {
  BASALT_ASSIGN_OR_RETURN(const std::optional<Node> node, view_->GetNode(id));
  if (!node) return std::nullopt;
  const std::string source(SourceOfPassage(node->external_id));
  if (source.empty()) return std::nullopt;
  RetrievedPassage passage;
  passage.node = id;
  passage.source = source;
  BASALT_ASSIGN_OR_RETURN(passage.title, TitleOf(source));
  passage.text = StringOf(node->properties, "text");
  passage.begin = NumberOf(node->properties, "begin");
  passage.end = NumberOf(node->properties, "end");
  passage.tokens =
      (passage.title.size() + passage.text.size() + kBytesPerToken - 1) / kBytesPerToken;
  return std::optional(std::move(passage));
}

Result<std::string> Selection::TitleOf(const std::string& source) {
  const auto known = titles_.find(source);
  if (known != titles_.end()) return known->second;
  BASALT_ASSIGN_OR_RETURN(const std::optional<Node> document, view_->GetNode(DocumentId(source)));
  return titles_[source] = document ? StringOf(document->properties, "title") : std::string();
}

/// A path from the best seed that has one.
Result<std::vector<std::string>> Selection::FindEvidence(
    NodeId passage, const std::vector<NodeScore>& seeds) const {
  std::vector<std::string> ids;
  for (const NodeScore& seed : seeds) {
    if (seed.node == passage) continue;
    BASALT_ASSIGN_OR_RETURN(
        const PathResult found,
        view_->Paths(seed.node, passage, 2, 1,
                     {.direction = EdgeDirection::kBoth, .types = {kAbout, kNames, kNext}},
                     {.visited_max = 10'000, .fan_out_max = 1'000}));
    if (found.paths.empty()) continue;
    for (const NodeId id : found.paths.front().nodes) {
      BASALT_ASSIGN_OR_RETURN(const std::optional<Node> node, view_->GetNode(id));
      if (node) ids.push_back(node->external_id);
    }
    break;
  }
  return ids;
}

}  // namespace basalt::retrieve
