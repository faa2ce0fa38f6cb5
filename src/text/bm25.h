#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace basalt::text {

/// What a score depends on beyond a document and a term.
struct CollectionStats {
  uint64_t documents = 0;     ///< Those without a token, too.
  uint64_t total_length = 0;  ///< Tokens of all of them.
};

/// BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009), with the inverse
/// document frequency of Lucene, which is never negative:
///
///   score(term, document) = idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average_length))
///   idf                   = ln(1 + (N - n + 0.5) / (n + 0.5))
///
/// N documents, n of them with the term, f times in this one. The score of a document is the sum
/// over the terms of the query.
class Bm25 {
 public:
  struct Parameters {
    double k1 = 1.2;
    double b = 0.75;
  };

  Bm25(const CollectionStats& stats, Parameters parameters) noexcept
      : documents_(static_cast<double>(stats.documents)),
        gain_(parameters.k1 + 1),
        base_(parameters.k1 * (1 - parameters.b)),
        per_token_(stats.total_length == 0 ? 0
                                           : parameters.k1 * parameters.b * documents_ /
                                                 static_cast<double>(stats.total_length)) {}

  double Idf(uint64_t document_frequency) const noexcept {
    const auto n = static_cast<double>(document_frequency);
    return std::log1p((std::max(documents_, n) - n + 0.5) / (n + 0.5));
  }

  /// The score for an idf of 1. In this form every rounded step is monotone: a greater frequency,
  /// or a smaller length, never gives less, so that a bound from the greatest frequency and the
  /// least length is one. `frequency` is above 0.
  double TermWeight(uint32_t frequency, uint32_t length) const noexcept {
    const double damping = base_ + per_token_ * static_cast<double>(length);
    return gain_ / (1 + damping / static_cast<double>(frequency));
  }

 private:
  double documents_;
  double gain_;
  double base_;
  double per_token_;
};

}  // namespace basalt::text
