#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "text/postings_source.h"
#include "text/scorer.h"
#include "text/tokenizer.h"

namespace basalt::text {

/// What is looked for: a tree.
///
///   kTerm     documents with a term
///   kPrefix   documents with a term that begins with one; the best of these terms counts
///   kPhrase   documents with terms at given distances
///   kAny      documents that any child matches; scores are summed
///   kAll      documents that all children match; scores are summed
struct Query {
  enum class Kind : uint8_t { kTerm, kPrefix, kPhrase, kAny, kAll };
  struct PhraseTerm {
    std::string term;
    uint32_t offset = 0;  ///< Ascending from 0.

    friend bool operator==(const PhraseTerm&, const PhraseTerm&) = default;
  };

  Kind kind = Kind::kAny;
  double weight = 1;                 ///< Of kTerm, kPrefix, kPhrase: a factor of the score.
  std::string term{};                ///< Of kTerm, kPrefix.
  std::vector<PhraseTerm> phrase{};  ///< Of kPhrase.
  std::vector<Query> children{};     ///< Of kAny, kAll.

  friend bool operator==(const Query&, const Query&) = default;
};

/// The most terms that a prefix stands for: the first ones, bytewise.
inline constexpr size_t kPrefixTermsMax = 128;

/// The most terms and phrases that ParseQuery takes from a text: the first ones.
inline constexpr size_t kQueryChildrenMax = 1'024;

/// What a user types: any of its words (kAny). "Words in quotation marks" are a phrase. A word that
/// ends with * is a prefix, and is not stemmed. A character of a script without spaces that stands
/// alone is a prefix, too; more of them in a row are their pairs. A word that is repeated counts
/// more. Every text is a query; one without words finds nothing.
Query ParseQuery(std::string_view text, Tokenizer* tokenizer);

/// The iterators for a query, which hold postings of `source`. Errors are those of the source.
Result<std::unique_ptr<Scorer>> MakeScorer(const Query& query, PostingsSource* source,
                                           Bm25::Parameters parameters = {});

}  // namespace basalt::text
