#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/graph.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/text_index.h"
#include "basalt/transaction.h"

// Retrieval finds the passages of texts that answer a question. It ranks them by words, by vectors
// if there is a DenseIndex, and by links between passages. docs/retrieval.md has the formulas. Read
// Corpus first.
//
//     auto corpus = basalt::Corpus::Open(store.get()).value();
//     corpus->IngestText({.source = "notes/ada.md", .title = "Ada Lovelace", .text = text});
//     auto found = corpus->Retrieve("who wrote about the engine", {.k = 5}).value();

namespace basalt {

namespace retrieve {
class CorpusCore;
}  // namespace retrieve

/// A passage found by a DenseIndex.
struct DenseHit {
  NodeId passage{};
  double similarity = 0;  ///< Greater is more similar.
};

/// Keeps a vector for each passage and finds similar ones. A Corpus calls it from many threads.
class DenseIndex {
 public:
  virtual ~DenseIndex() = default;
  DenseIndex(const DenseIndex&) = delete;
  DenseIndex& operator=(const DenseIndex&) = delete;

  /// A vector for each text.
  virtual Result<std::vector<std::vector<float>>> Embed(std::span<const std::string> texts) = 0;
  /// Parts of the transaction that adds or removes the passage.
  virtual Status Put(Transaction& tx, NodeId passage, std::span<const float> vector) = 0;
  virtual Status Remove(Transaction& tx, NodeId passage) = 0;
  /// The `k` passages most similar to the query, best first.
  virtual Result<std::vector<DenseHit>> Search(std::string_view query, size_t k) = 0;

 protected:
  DenseIndex() = default;
};

struct DenseIndexOptions {
  std::string name = "corpus.vectors";  ///< The keyspace.
  size_t dimension = 0;                 ///< Of the vectors.
  /// A label for what makes the vectors. The index keeps it, and refuses another one.
  std::string model{};
  /// Makes the vectors of texts, one after the other. Called from many threads.
  std::function<Result<std::vector<float>>(std::span<const std::string_view> texts)> embed{};
};

/// A DenseIndex that keeps its vectors in a VectorIndex (basalt/vector_index.h), and compares them
/// by their cosine. With the embedder of basalt/embed.h:
///
///     auto embedder = basalt::OpenLocalEmbedder(folder).value();
///     auto dense = basalt::OpenDenseIndex(
///         db.get(), {.dimension = embedder->model().dimension,
///                    .model = embedder->model().id,
///                    .embed = [embedder](auto texts) { return embedder->EmbedAll(texts); }});
///
/// The store must be a DB, and outlive the index. InvalidArgument: `embed` is missing, or the index
/// was made for another dimension or model. Other errors are those of VectorIndex.
Result<std::unique_ptr<DenseIndex>> OpenDenseIndex(Store* store, const DenseIndexOptions& options);

struct CorpusOptions {
  /// The keyspace of the graph, up to 200 bytes. The text index is in the keyspace NAME.text.
  std::string name = "corpus";
  bool create_if_missing = true;
  std::optional<std::string> stemmer{};  ///< As TextIndexOptions::stemmer.
  /// The most bytes of a passage, at least 64. A token of a language model has about 4 bytes.
  size_t passage_bytes_max = 1200;
  /// Must outlive the corpus. Null: passages are ranked by words and links. A corpus that was
  /// written with one must be written with it again: otherwise vectors of removed passages stay.
  DenseIndex* dense = nullptr;
};

/// A document to be searched.
struct Document {
  std::string source;   ///< The name of the document, 1 to 900 bytes. A document with the same
                        ///< source is replaced.
  std::string title{};  ///< Up to 1,000 bytes. Searched with each passage.
  std::string text{};   ///< UTF-8. Malformed bytes are kept, and are not searched.
};

struct IngestResult {
  uint64_t passages = 0;
  uint64_t entities = 0;  ///< Distinct entities that the document names, new and known ones.
};

struct RetrieveOptions {
  size_t k = 10;  ///< The most passages.
  /// Passages that would exceed this sum are left out. A token is taken to be 4 bytes of title or
  /// text.
  uint64_t max_tokens = 1'000'000;
  /// Also fill RetrievedPassage::evidence.
  bool explain = false;
  /// The weight of links, finite and not negative. 0: links are not read.
  double link_weight = 2;
  ReadLimits limits{.visited_max = 100'000, .fan_out_max = 10'000};
};

/// The parts of a score.
struct ScoreParts {
  std::optional<double> bm25{};   ///< Nothing: not among the hits of the text index.
  std::optional<double> dense{};  ///< Similarity. Nothing: not among the hits of the dense index.
  double hybrid = 0;              ///< Both as standard scores, weighted and added.
  double page_rank = 0;           ///< What reached the passage over links.
  double links = 0;               ///< link_weight * sqrt(page_rank / greatest page_rank).
};

struct RetrievedPassage {
  NodeId node{};
  std::string source;
  std::string title;
  std::string text;
  uint64_t begin = 0;  ///< The passage is the bytes [begin, end) of the document's text.
  uint64_t end = 0;
  double score = 0;  ///< hybrid + links.
  ScoreParts parts;
  uint64_t tokens = 0;
  /// External ids of the nodes on a path of at most two links, from a passage that words or vectors
  /// found to this one. Empty: there is no such path, or `explain` is false.
  std::vector<std::string> evidence{};
};

struct RetrieveResult {
  std::vector<RetrievedPassage> passages;  ///< Best first.
  uint64_t tokens = 0;                     ///< The sum over the passages.
  uint64_t duplicates = 0;  ///< Passages left out because a better one has almost the same words.
  bool truncated = false;   ///< max_tokens or a limit left something out.
};

/// Documents that are searched by passages. Each document becomes nodes and edges of a Graph, and
/// texts in a TextIndex, in one transaction. Thread-safe. The store must outlive the corpus.
class Corpus {
 public:
  /// InvalidArgument: passage_bytes_max is too small. Other errors are those of Graph::Open and
  /// TextIndex::Open.
  static Result<std::unique_ptr<Corpus>> Open(Store* store, const CorpusOptions& options = {});
  ~Corpus();
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  /// Adds a document, or replaces the one of the same source. Divides the text into passages and
  /// links each to its neighbours and to the entities that it names. InvalidArgument: the source or
  /// the title is too long. ResourceExhausted: the document is too large for one transaction.
  Result<IngestResult> IngestText(const Document& document);
  /// The same as a part of `tx`. Call Tidy after the commit.
  Result<IngestResult> IngestText(Transaction& tx, const Document& document);
  /// Removes a document with its passages, their postings, vectors and links, and the entities that
  /// no other passage names. False: there is no such document.
  Result<bool> Forget(std::string_view source);
  /// The same as a part of `tx`. Call Tidy after the commit.
  Result<bool> Forget(Transaction& tx, std::string_view source);
  /// Packs postings and removes records that are left of removed nodes. Answers do not change.
  /// IngestText and Forget without a transaction do it themselves; if it fails there, they succeed,
  /// and the next call tries again.
  Status Tidy();

  /// The passages that fit the query best. InvalidArgument: link_weight is out of range.
  Result<RetrieveResult> Retrieve(std::string_view query,
                                  const RetrieveOptions& options = {}) const;

  Graph& graph() noexcept;
  TextIndex& text() noexcept;

 private:
  explicit Corpus(std::unique_ptr<retrieve::CorpusCore> core);
  const std::unique_ptr<retrieve::CorpusCore> core_;
};

}  // namespace basalt
