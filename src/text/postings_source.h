#pragma once

// src/text: tokens, postings and BM25, without a store. Read Tokenizer (tokenizer.h) first, then
// PostingsSource, from which queries read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "text/bm25.h"
#include "text/postings.h"

namespace basalt::text {

/// The postings of one term, without removals.
struct TermPostings {
  uint64_t document_frequency = 0;         ///< Documents that hold the term, exactly.
  std::unique_ptr<PostingsCursor> cursor;  ///< Null: no document holds it.
};

/// Where queries find postings: an index in memory (memory_index.h), or in a store. What it hands
/// out stays valid while it lives and is not changed. One thread at a time.
class PostingsSource {
 public:
  virtual ~PostingsSource() = default;

  virtual CollectionStats GetStats() const = 0;
  virtual Result<TermPostings> Find(std::string_view term) = 0;
  /// The first `limit` terms that begin with `prefix`, bytewise ascending.
  virtual Result<std::vector<std::string>> TermsWithPrefix(std::string_view prefix,
                                                           size_t limit) = 0;
};

}  // namespace basalt::text
