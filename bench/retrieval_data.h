#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace basalt::bench {

/// Vectors of one dimension, one after the other.
struct VectorRows {
  size_t dimension = 0;
  std::vector<float> elements{};

  std::vector<float> Row(size_t i) const {
    const auto begin = elements.begin() + static_cast<ptrdiff_t>(i * dimension);
    return {begin, begin + static_cast<ptrdiff_t>(dimension)};
  }
};

/// Passages and questions with published supporting passages, in the layout of HotpotQA:
///
///   corpus.json            {title: [sentence, ...], ...}
///   questions.json         [{question, supporting_facts: [[title, sentence], ...]}, ...]
///   corpus_*.npy           optional: a vector for each passage, in the order of corpus.json
///   questions_*.npy        optional: a vector for each question
struct RetrievalData {
  struct Passage {
    std::string title;
    std::string text;
  };
  struct Question {
    std::string text;
    std::set<std::string> gold{};  // Titles.
  };
  std::vector<Passage> passages{};
  std::vector<Question> questions{};
  VectorRows passage_vectors{};  // Dimension 0: there are none.
  VectorRows question_vectors{};

  bool has_vectors() const noexcept { return passage_vectors.dimension > 0; }

  /// Ends the program if a file is absent or malformed.
  static RetrievalData Load(const std::string& folder);
};

}  // namespace basalt::bench
