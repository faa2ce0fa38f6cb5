#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/transaction.h"

// Full-text search in a transactional store. Read TextIndex first. docs/text.md explains it.

namespace basalt {

namespace retrieve {
class TextIndexCore;
}  // namespace retrieve

struct TextIndexOptions {
  std::string name = "text";  ///< The keyspace. One store may hold several indexes.
  bool create_if_missing = true;
  /// The Snowball stemmer for the words of texts and queries, such as "english". Empty: none. The
  /// index stores the name. Unset: the stemmer that the index was created with; none for a new
  /// index. InvalidArgument: the index was created with another stemmer, or this build does not
  /// have it.
  std::optional<std::string> stemmer{};
};

/// A document that a search found.
struct TextHit {
  uint64_t document = 0;
  double score = 0;  ///< BM25.

  friend bool operator==(const TextHit&, const TextHit&) = default;
};

struct TextIndexStats {
  uint64_t documents = 0;
  uint64_t tokens = 0;  ///< The sum over all documents.
};

/// A full-text index in a transactional Store. The caller numbers the documents; texts are UTF-8
/// and are not kept. docs/text.md describes terms, queries and scores. Thread-safe. The store must
/// outlive the index.
///
///     auto index = basalt::TextIndex::Open(store.get(), {.stemmer = "english"}).value();
///     index->Put(7, "The quick brown fox");
///     auto hits = index->Search("foxes quick", 10).value();
class TextIndex {
 public:
  /// Unsupported: the store has no transactions, keyspaces, snapshots, merges or order. NotFound:
  /// the index is absent and create_if_missing is false.
  static Result<std::unique_ptr<TextIndex>> Open(Store* store,
                                                 const TextIndexOptions& options = {});
  ~TextIndex();
  TextIndex(const TextIndex&) = delete;
  TextIndex& operator=(const TextIndex&) = delete;

  /// Adds a document, or replaces it. `document` is below 2^64 - 1. Writes one record for each
  /// distinct term. ResourceExhausted: the document is too large for one transaction.
  Status Put(uint64_t document, std::string_view text);
  /// The same as a part of `tx`. Call MergePostings after the commit.
  Status Put(Transaction& tx, uint64_t document, std::string_view text);
  /// False: the document is absent.
  Result<bool> Remove(uint64_t document);
  Result<bool> Remove(Transaction& tx, uint64_t document);

  /// The `k` documents with the greatest scores, best first; of equal scores the smaller document
  /// first. Documents for which `admits` is false are left out. The search sees one moment of the
  /// store.
  Result<std::vector<TextHit>> Search(
      std::string_view query, size_t k,
      const std::function<bool(uint64_t document)>& admits = {}) const;
  Result<TextIndexStats> GetStats() const;

  /// Packs the postings of terms that this object has written and that have many new postings, so
  /// that queries read fewer records. Search results do not change. Put and Remove without a
  /// transaction call it themselves. If packing fails there, they still succeed, and the next call
  /// tries again.
  Status MergePostings();

 private:
  explicit TextIndex(std::unique_ptr<retrieve::TextIndexCore> core);
  const std::unique_ptr<retrieve::TextIndexCore> core_;
};

}  // namespace basalt
