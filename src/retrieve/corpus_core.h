#pragma once

// src/retrieve: full-text search and ranked passages in a store. Read CorpusCore first, then
// TextIndexCore (text_index_core.h).

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/graph.h"
#include "basalt/retrieve.h"
#include "basalt/text_index.h"
#include "basalt/transaction.h"

// A document in the graph. All of it is derived from the document alone, so the order in which
// documents are added does not matter.
//
//   node                      external id                   label     properties
//   the document              document/SOURCE               Document  title
//   a passage                 passage/SOURCE/00000007       Passage   begin, end, text
//   an entity                 entity/NAME                   Entity
//
//   document --has--> passage --next--> passage
//   passage --about--> entity     the title's entity, from each passage
//   passage --names--> entity     entity_names.h
//
// An entity that exists is not written again, so that properties and edges of others stay. It is
// removed when its last edge goes. A transaction that removes a document reads the edges of its
// entities, and conflicts with one that links them meanwhile.

namespace basalt::retrieve {

inline constexpr const char* kHas = "has";
inline constexpr const char* kNext = "next";
inline constexpr const char* kAbout = "about";
inline constexpr const char* kNames = "names";

inline constexpr std::string_view kPassageIdPrefix = "passage/";
std::string DocumentId(std::string_view source);
std::string PassageId(std::string_view source, size_t number);
/// The source in the id of a passage. Empty: it is not the id of a passage.
std::string_view SourceOfPassage(std::string_view passage_id);

/// A document as it will be written. It is made once, outside of transactions, which may be
/// repeated.
struct PreparedDocument {
  struct Passage {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string text;
    std::set<std::string> names{};  // Entities, without the subject.
    std::vector<float> vector{};    // Empty: there is no dense index.
  };
  std::string source;
  std::string title;
  std::string subject;  // The title's entity. Empty: none.
  std::vector<Passage> passages{};
};

/// A corpus that is open: writes documents. Ranking and Selection read them. Thread-safe.
class CorpusCore {
 public:
  static Result<std::unique_ptr<CorpusCore>> Open(Store* store, const CorpusOptions& options);

  Store& store() const noexcept { return *store_; }
  Graph& graph() const noexcept { return *graph_; }
  TextIndex& text() const noexcept { return *text_; }
  DenseIndex* dense() const noexcept { return options_.dense; }

  Result<PreparedDocument> Prepare(const Document& document) const;
  Result<IngestResult> Ingest(Transaction& tx, const PreparedDocument& document);
  Result<bool> Forget(Transaction& tx, std::string_view source);
  Status Tidy();

 private:
  CorpusCore(Store* store, CorpusOptions options) : store_(store), options_(std::move(options)) {}
  Status AddPassage(Transaction& tx, const PreparedDocument& document, size_t number);
  Result<uint64_t> Link(Transaction& tx, const PreparedDocument& document);
  Status RemovePassage(Transaction& tx, NodeId node, std::string_view id);

  Store* const store_;
  const CorpusOptions options_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<TextIndex> text_;
};

}  // namespace basalt::retrieve
