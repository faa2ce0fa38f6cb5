#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "basalt/retrieve.h"
#include "bench/retrieval_data.h"

namespace basalt::bench {

/// A passage as a method has ranked it.
struct RankedPassage {
  std::string title;
  uint64_t tokens = 0;
};

/// A way to answer questions: gives passages for a question's number, best first.
struct RetrievalMethod {
  std::string name;
  std::function<std::vector<RankedPassage>(size_t question)> rank;
};

/// A corpus over the passages of the data, one passage a document, and the methods that are
/// compared on it. `data` outlives it.
class RetrievalMethods {
 public:
  explicit RetrievalMethods(const RetrievalData& data);
  ~RetrievalMethods();
  RetrievalMethods(const RetrievalMethods&) = delete;
  RetrievalMethods& operator=(const RetrievalMethods&) = delete;

  /// The default is the last one.
  std::vector<RetrievalMethod> All() const;

 private:
  class GivenVectors;
  std::vector<RankedPassage> Retrieve(const Corpus& corpus, size_t question,
                                      const RetrieveOptions& options) const;
  std::vector<RankedPassage> ByVectors(size_t question) const;
  std::vector<RankedPassage> VectorThenExpand(size_t question) const;
  RankedPassage Ranked(NodeId passage) const;

  const RetrievalData& data_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<GivenVectors> vectors_;  // Null: the data has none.
  std::unique_ptr<Corpus> by_words_;
  std::unique_ptr<Corpus> with_vectors_;  // Null: the data has none.
};

}  // namespace basalt::bench
