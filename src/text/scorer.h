#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "basalt/status.h"
#include "text/bm25.h"
#include "text/postings.h"

// Queries as trees of iterators over documents. Each node stands at a document that matches it, and
// can say that document's score and a bound of all its scores. The nodes know no store and no
// query language; query.h makes them.

namespace basalt::text {

/// A node. It stands at its first document when it is made. Documents ascend. One thread at a time.
class Scorer {
 public:
  virtual ~Scorer() = default;
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  /// kNoDocument: beyond the last one. After an error documents are missing: look at status().
  uint64_t document() const noexcept { return document_; }
  /// To the first document from `target` on, if that lies ahead.
  void Seek(uint64_t target) {
    if (document_ < target) DoSeek(target);
  }
  void Next() {
    if (document_ != kNoDocument) DoSeek(document_ + 1);
  }
  /// Of document(), which is not kNoDocument. Under a threshold, any number not above it stands for
  /// a score that is not above it.
  virtual double Score() = 0;
  /// No score is above it.
  double score_max() const noexcept { return score_max_; }
  /// From now on, documents whose score is not above `threshold` may be left out. It never sinks.
  virtual void SetThreshold(double /*threshold*/) {}
  /// Ok, or the first error of a cursor.
  virtual Status status() const = 0;

 protected:
  Scorer() = default;
  virtual void DoSeek(uint64_t target) = 0;

  uint64_t document_ = kNoDocument;
  double score_max_ = 0;
};

/// The documents of one term.
class TermScorer final : public Scorer {
 public:
  /// `weight` is that of the term, its idf included.
  TermScorer(std::unique_ptr<PostingsCursor> cursor, const Bm25& bm25, double weight);

  double Score() override;
  Status status() const override { return cursor_->status(); }

 private:
  void DoSeek(uint64_t target) override;

  std::unique_ptr<PostingsCursor> cursor_;
  Bm25 bm25_;
  double weight_;
};

/// The documents that hold terms at given distances. Its frequency is how often they do.
class PhraseScorer final : public Scorer {
 public:
  struct Term {
    std::unique_ptr<PostingsCursor> cursor;
    uint32_t offset = 0;  ///< Position in the phrase; ascending.
  };
  /// At least one term. `weight`: the sum of their idfs.
  PhraseScorer(std::vector<Term> terms, const Bm25& bm25, double weight);

  double Score() override;
  Status status() const override;

 private:
  void DoSeek(uint64_t target) override;
  bool Align(uint64_t target);
  uint32_t CountPhrases();

  std::vector<Term> terms_;
  Bm25 bm25_;
  double weight_;
  uint32_t frequency_ = 0;
  std::vector<uint32_t> begins_;     // where the phrase may begin
  std::vector<uint32_t> positions_;  // of one term
};

/// The documents that all children match; the score is the sum of theirs.
class AllScorer final : public Scorer {
 public:
  /// At least one child.
  explicit AllScorer(std::vector<std::unique_ptr<Scorer>> children);

  double Score() override;
  Status status() const override;

 private:
  void DoSeek(uint64_t target) override;

  std::vector<std::unique_ptr<Scorer>> children_;
};

/// The documents that any child matches; the score is the sum of the scores of those that do, or
/// the greatest one. Under a threshold it works as MaxScore (Turtle and Flood, "Query evaluation:
/// strategies and optimizations", 1995): children whose bounds together do not exceed the threshold
/// find no documents; they are asked only about those that the others find.
class AnyScorer final : public Scorer {
 public:
  enum class Combine : uint8_t { kSum, kMax };
  AnyScorer(std::vector<std::unique_ptr<Scorer>> children, Combine combine);

  double Score() override;
  void SetThreshold(double threshold) override;
  Status status() const override;

 private:
  struct Child {
    std::unique_ptr<Scorer> scorer;
    double bound = 0;  // of this child and all before it together
    size_t place = 0;  // in the query
  };
  void DoSeek(uint64_t target) override;
  double Combined(double a, double b) const noexcept;
  bool Falls(double bound) const noexcept;

  std::vector<Child> children_;  // by score_max, ascending
  Combine combine_;
  size_t essential_ = 0;  // From here on, children find documents.
  double threshold_ = -1;
  std::vector<double> scores_;  // of the present document, by place
};

/// A document that was found.
struct Hit {
  uint64_t document = 0;
  double score = 0;

  friend bool operator==(const Hit&, const Hit&) = default;
};

/// The `k` documents of greatest score, best first; of equal scores, the smaller document first.
/// Documents that `admits` (if given) refuses are left out before they are scored. Takes the scorer
/// to its end. Scores are the same to the last digit whatever `k` is.
Result<std::vector<Hit>> FindBest(Scorer* scorer, size_t k,
                                  const std::function<bool(uint64_t document)>& admits = {});

}  // namespace basalt::text
