#include "retrieve/corpus_core.h"

#include <cstdio>
#include <map>
#include <optional>
#include <span>

#include "base/check.h"
#include "retrieve/entity_names.h"
#include "retrieve/passages.h"

namespace basalt::retrieve {
namespace {

constexpr size_t kSourceBytesMax = 900;
constexpr size_t kTitleBytesMax = 1000;
constexpr size_t kPassageBytesMin = 64;

std::string EntityId(std::string_view name) { return "entity/" + std::string(name); }

/// What is searched for a passage.
std::string SearchedText(const std::string& title, const std::string& text) {
  return title.empty() ? text : title + "\n" + text;
}

/// Whether an entity has an edge that leads neither to nor from one of `passages`.
Result<bool> HasOtherEdges(const GraphView& view, NodeId entity,
                           const std::map<NodeId, std::string>& passages) {
  std::string next;
  do {
    BASALT_ASSIGN_OR_RETURN(
        const NeighborPage page,
        view.Neighbors(entity, {.direction = EdgeDirection::kBoth}, passages.size() + 1, next));
    for (const Neighbor& neighbor : page.neighbors) {
      if (!passages.contains(neighbor.node)) return true;
    }
    next = page.next;
  } while (!next.empty());
  return false;
}

}  // namespace

std::string DocumentId(std::string_view source) { return "document/" + std::string(source); }

std::string PassageId(std::string_view source, size_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "/%08zu", number);
  return std::string(kPassageIdPrefix).append(source) + text;
}

std::string_view SourceOfPassage(std::string_view passage_id) {
  const size_t number = passage_id.rfind('/');
  if (!passage_id.starts_with(kPassageIdPrefix) || number < kPassageIdPrefix.size()) return {};
  return passage_id.substr(0, number).substr(kPassageIdPrefix.size());
}

Result<std::unique_ptr<CorpusCore>> CorpusCore::Open(Store* store, const CorpusOptions& options) {
  if (options.passage_bytes_max < kPassageBytesMin) {
    return Status(StatusCode::kInvalidArgument, "CorpusOptions::passage_bytes_max is " +
                                                    std::to_string(options.passage_bytes_max) +
                                                    "; it must be at least " +
                                                    std::to_string(kPassageBytesMin));
  }
  std::unique_ptr<CorpusCore> core(new CorpusCore(store, options));
  BASALT_ASSIGN_OR_RETURN(
      core->graph_,
      Graph::Open(store, {.name = options.name, .create_if_missing = options.create_if_missing}));
  BASALT_ASSIGN_OR_RETURN(core->text_,
                          TextIndex::Open(store, {.name = options.name + ".text",
                                                  .create_if_missing = options.create_if_missing,
                                                  .stemmer = options.stemmer}));
  return core;
}

Result<PreparedDocument> CorpusCore::Prepare(const Document& document) const {
  if (document.source.empty() || document.source.size() > kSourceBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  "the source of a document has " + std::to_string(document.source.size()) +
                      " bytes; it must have 1 to " + std::to_string(kSourceBytesMax));
  }
  if (document.title.size() > kTitleBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  "the title of a document has " + std::to_string(document.title.size()) +
                      " bytes; it may have up to " + std::to_string(kTitleBytesMax));
  }
  PreparedDocument prepared{
      .source = document.source, .title = document.title, .subject = EntityOfTitle(document.title)};
  for (const text::Span span : DividePassages(document.text, options_.passage_bytes_max)) {
    const std::string_view text = span.Of(document.text);
    prepared.passages.push_back({.begin = span.begin,
                                 .end = span.end,
                                 .text = std::string(text),
                                 .names = FindEntityNames(text)});
    prepared.passages.back().names.erase(prepared.subject);
  }
  if (dense() == nullptr || prepared.passages.empty()) return prepared;

  std::vector<std::string> texts;
  for (const auto& passage : prepared.passages) {
    texts.push_back(SearchedText(prepared.title, passage.text));
  }
  BASALT_ASSIGN_OR_RETURN(std::vector<std::vector<float>> vectors, dense()->Embed(texts));
  if (vectors.size() != texts.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "a dense index gave " + std::to_string(vectors.size()) + " vectors for " +
                      std::to_string(texts.size()) + " passages");
  }
  for (size_t i = 0; i < texts.size(); ++i) prepared.passages[i].vector = std::move(vectors[i]);
  return prepared;
}

Result<IngestResult> CorpusCore::Ingest(Transaction& tx, const PreparedDocument& document) {
  BASALT_RETURN_IF_ERROR(Forget(tx, document.source).status());
  BASALT_RETURN_IF_ERROR(
      graph_
          ->PutNode(tx, DocumentId(document.source),
                    {.labels = {"Document"}, .properties = {{"title", document.title}}})
          .status());
  for (size_t i = 0; i < document.passages.size(); ++i) {
    BASALT_RETURN_IF_ERROR(AddPassage(tx, document, i));
  }
  BASALT_ASSIGN_OR_RETURN(const uint64_t entities, Link(tx, document));
  return IngestResult{.passages = document.passages.size(), .entities = entities};
}

Status CorpusCore::AddPassage(Transaction& tx, const PreparedDocument& document, size_t number) {
  const PreparedDocument::Passage& passage = document.passages[number];
  const std::string id = PassageId(document.source, number);
  BASALT_ASSIGN_OR_RETURN(
      const NodeId node,
      graph_->PutNode(tx, id,
                      {.labels = {"Passage"},
                       .properties = {{"begin", static_cast<int64_t>(passage.begin)},
                                      {"end", static_cast<int64_t>(passage.end)},
                                      {"text", passage.text}}}));
  BASALT_RETURN_IF_ERROR(
      text_->Put(tx, static_cast<uint64_t>(node), SearchedText(document.title, passage.text)));
  if (dense() != nullptr) BASALT_RETURN_IF_ERROR(dense()->Put(tx, node, passage.vector));
  const std::string document_id = DocumentId(document.source);
  BASALT_RETURN_IF_ERROR(graph_->PutEdge(tx, {.from = document_id, .type = kHas, .to = id}));
  if (number == 0) return {};
  const std::string previous = PassageId(document.source, number - 1);
  return graph_->PutEdge(tx, {.from = previous, .type = kNext, .to = id});
}

/// Links the passages to their entities. Gives the number of entities.
Result<uint64_t> CorpusCore::Link(Transaction& tx, const PreparedDocument& document) {
  std::set<std::string> entities;
  if (!document.subject.empty() && !document.passages.empty()) entities.insert(document.subject);
  for (const auto& passage : document.passages) {
    entities.insert(passage.names.begin(), passage.names.end());
  }
  BASALT_ASSIGN_OR_RETURN(const GraphView view, graph_->Read(tx));
  for (const std::string& name : entities) {
    BASALT_ASSIGN_OR_RETURN(const std::optional<NodeId> known, view.FindNode(EntityId(name)));
    if (known) continue;
    BASALT_RETURN_IF_ERROR(graph_->PutNode(tx, EntityId(name), {.labels = {"Entity"}}).status());
  }
  for (size_t i = 0; i < document.passages.size(); ++i) {
    const std::string id = PassageId(document.source, i);
    const auto link = [&](const char* type, const std::string& name) {
      const std::string entity = EntityId(name);
      return graph_->PutEdge(tx, {.from = id, .type = type, .to = entity});
    };
    if (!document.subject.empty()) BASALT_RETURN_IF_ERROR(link(kAbout, document.subject));
    for (const std::string& name : document.passages[i].names) {
      BASALT_RETURN_IF_ERROR(link(kNames, name));
    }
  }
  return entities.size();
}

/// All is read before the first write: a scan in a transaction copies what it has written.
Result<bool> CorpusCore::Forget(Transaction& tx, std::string_view source) {
  const std::string document_id = DocumentId(source);
  std::map<NodeId, std::string> passages;
  std::vector<std::string> unused;
  {
    BASALT_ASSIGN_OR_RETURN(const GraphView view, graph_->Read(tx));
    BASALT_ASSIGN_OR_RETURN(const std::optional<NodeId> document, view.FindNode(document_id));
    if (!document) return false;
    BASALT_ASSIGN_OR_RETURN(const NeighborPage of_document,
                            view.Neighbors(*document, {.types = {kHas}}, SIZE_MAX));
    std::set<NodeId> entities;
    for (const Neighbor& neighbor : of_document.neighbors) {
      BASALT_ASSIGN_OR_RETURN(const std::optional<Node> passage, view.GetNode(neighbor.node));
      if (!passage) continue;
      passages.emplace(passage->id, passage->external_id);
      BASALT_ASSIGN_OR_RETURN(const NeighborPage named,
                              view.Neighbors(passage->id, {.types = {kAbout, kNames}}, SIZE_MAX));
      for (const Neighbor& entity : named.neighbors) entities.insert(entity.node);
    }
    for (const NodeId entity : entities) {
      BASALT_ASSIGN_OR_RETURN(const bool is_used, HasOtherEdges(view, entity, passages));
      if (is_used) continue;
      BASALT_ASSIGN_OR_RETURN(const std::optional<Node> node, view.GetNode(entity));
      if (node) unused.push_back(node->external_id);
    }
  }
  for (const auto& [node, id] : passages) BASALT_RETURN_IF_ERROR(RemovePassage(tx, node, id));
  BASALT_RETURN_IF_ERROR(graph_->RemoveNode(tx, document_id).status());
  for (const std::string& id : unused) {
    BASALT_RETURN_IF_ERROR(graph_->RemoveNode(tx, id).status());
  }
  return true;
}

Status CorpusCore::RemovePassage(Transaction& tx, NodeId node, std::string_view id) {
  BASALT_RETURN_IF_ERROR(text_->Remove(tx, static_cast<uint64_t>(node)).status());
  if (dense() != nullptr) BASALT_RETURN_IF_ERROR(dense()->Remove(tx, node));
  return graph_->RemoveNode(tx, id).status();
}

Status CorpusCore::Tidy() {
  BASALT_RETURN_IF_ERROR(graph_->FinishRemovals());
  return text_->MergePostings();
}

}  // namespace basalt::retrieve
