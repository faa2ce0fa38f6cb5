#include "text/scorer.h"

#include <algorithm>

#include "base/check.h"

namespace basalt::text {
namespace {

/// Bounds are summed in another order than scores, so that rounding may differ.
constexpr double kRoundingMargin = 1 + 1e-9;

}  // namespace

TermScorer::TermScorer(std::unique_ptr<PostingsCursor> cursor, const Bm25& bm25, double weight)
    : cursor_(std::move(cursor)), bm25_(bm25), weight_(weight) {
  document_ = cursor_->document();
  score_max_ = cursor_->frequency_max() == 0
                   ? 0
                   : weight_ * bm25_.TermWeight(cursor_->frequency_max(), cursor_->length_min());
}

double TermScorer::Score() {
  return weight_ * bm25_.TermWeight(cursor_->frequency(), cursor_->length());
}

void TermScorer::DoSeek(uint64_t target) {
  if (target == document_ + 1) {
    cursor_->Next();
  } else {
    cursor_->Seek(target);
  }
  document_ = cursor_->document();
}

PhraseScorer::PhraseScorer(std::vector<Term> terms, const Bm25& bm25, double weight)
    : terms_(std::move(terms)), bm25_(bm25), weight_(weight) {
  BASALT_CHECK(!terms_.empty());
  uint32_t frequency_max = UINT32_MAX;
  uint32_t length_min = 0;
  for (const Term& term : terms_) {
    frequency_max = std::min(frequency_max, term.cursor->frequency_max());
    length_min = std::max(length_min, term.cursor->length_min());
  }
  score_max_ = frequency_max == 0 ? 0 : weight_ * bm25_.TermWeight(frequency_max, length_min);
  DoSeek(0);
}

double PhraseScorer::Score() {
  return weight_ * bm25_.TermWeight(frequency_, terms_.front().cursor->length());
}

void PhraseScorer::DoSeek(uint64_t target) {
  while (Align(target)) {
    frequency_ = CountPhrases();
    if (frequency_ > 0) return;
    target = document_ + 1;
  }
}

/// To the first document from `target` on that has all terms. False: there is none.
bool PhraseScorer::Align(uint64_t target) {
  for (size_t agreeing = 0; agreeing < terms_.size();) {
    PostingsCursor& cursor = *terms_[agreeing].cursor;
    cursor.Seek(target);
    if (cursor.document() == kNoDocument) {
      document_ = kNoDocument;
      return false;
    }
    // One that stands further on has to be reached by the others first.
    agreeing = cursor.document() == target ? agreeing + 1 : 0;
    target = cursor.document();
  }
  document_ = target;
  return true;
}

/// How often the phrase stands in the document that all cursors are at.
uint32_t PhraseScorer::CountPhrases() {
  for (size_t i = 0; i < terms_.size(); ++i) {
    const uint32_t offset = terms_[i].offset;
    terms_[i].cursor->ReadPositions(&positions_);
    if (i == 0) {
      begins_.clear();
      for (const uint32_t position : positions_) {
        if (position >= offset) begins_.push_back(position - offset);
      }
      continue;
    }
    size_t at = 0;
    const auto is_absent = [&](uint32_t begin) {
      const uint64_t wanted = uint64_t{begin} + offset;
      while (at < positions_.size() && positions_[at] < wanted) ++at;
      return at == positions_.size() || positions_[at] != wanted;
    };
    std::erase_if(begins_, is_absent);
    if (begins_.empty()) return 0;
  }
  return static_cast<uint32_t>(begins_.size());
}

Status PhraseScorer::status() const {
  for (const Term& term : terms_) {
    if (!term.cursor->status().ok()) return term.cursor->status();
  }
  return Status();
}

AllScorer::AllScorer(std::vector<std::unique_ptr<Scorer>> children)
    : children_(std::move(children)) {
  BASALT_CHECK(!children_.empty());
  for (const auto& child : children_) score_max_ += child->score_max();
  score_max_ *= kRoundingMargin;
  DoSeek(0);
}

double AllScorer::Score() {
  double score = 0;
  for (const auto& child : children_) score += child->Score();
  return score;
}

void AllScorer::DoSeek(uint64_t target) {
  for (size_t agreeing = 0; agreeing < children_.size();) {
    Scorer& child = *children_[agreeing];
    child.Seek(target);
    agreeing = child.document() == target ? agreeing + 1 : 0;
    target = child.document();
    if (target == kNoDocument) break;
  }
  document_ = target;
}

Status AllScorer::status() const {
  for (const auto& child : children_) {
    if (Status status = child->status(); !status.ok()) return status;
  }
  return Status();
}

AnyScorer::AnyScorer(std::vector<std::unique_ptr<Scorer>> children, Combine combine)
    : combine_(combine), scores_(children.size()) {
  for (size_t place = 0; place < children.size(); ++place) {
    children_.push_back({.scorer = std::move(children[place]), .place = place});
  }
  std::sort(children_.begin(), children_.end(), [](const Child& a, const Child& b) {
    const double of_a = a.scorer->score_max();
    const double of_b = b.scorer->score_max();
    return of_a != of_b ? of_a < of_b : a.place < b.place;
  });
  for (Child& child : children_) {
    score_max_ = Combined(score_max_, child.scorer->score_max());
    child.bound = score_max_;
  }
  score_max_ *= kRoundingMargin;
  DoSeek(0);
}

double AnyScorer::Combined(double a, double b) const noexcept {
  return combine_ == Combine::kSum ? a + b : std::max(a, b);
}

/// Whether a score with that bound is not above the threshold.
bool AnyScorer::Falls(double bound) const noexcept { return bound * kRoundingMargin <= threshold_; }

void AnyScorer::DoSeek(uint64_t target) {
  document_ = kNoDocument;
  for (size_t i = essential_; i < children_.size(); ++i) {
    Scorer& child = *children_[i].scorer;
    child.Seek(target);
    document_ = std::min(document_, child.document());
  }
}

double AnyScorer::Score() {
  std::fill(scores_.begin(), scores_.end(), 0);
  double so_far = 0;
  for (size_t i = children_.size(); i-- > 0;) {
    const bool is_essential = i >= essential_;
    if (!is_essential && Falls(Combined(so_far, children_[i].bound))) return so_far;
    Scorer& child = *children_[i].scorer;
    if (!is_essential) child.Seek(document_);
    if (child.document() != document_) continue;
    scores_[children_[i].place] = child.Score();
    so_far = Combined(so_far, scores_[children_[i].place]);
  }
  // In the order of the query, so that a threshold changes no digit.
  double score = 0;
  for (const double of_child : scores_) score = Combined(score, of_child);
  return score;
}

void AnyScorer::SetThreshold(double threshold) {
  threshold_ = threshold;
  while (essential_ < children_.size() && Falls(children_[essential_].bound)) ++essential_;
}

Status AnyScorer::status() const {
  for (const Child& child : children_) {
    if (Status status = child.scorer->status(); !status.ok()) return status;
  }
  return Status();
}

Result<std::vector<Hit>> FindBest(Scorer* scorer, size_t k,
                                  const std::function<bool(uint64_t document)>& admits) {
  const auto is_better = [](const Hit& a, const Hit& b) {
    return a.score != b.score ? a.score > b.score : a.document < b.document;
  };
  std::vector<Hit> best;  // A heap with the worst on top.
  for (; k > 0 && scorer->document() != kNoDocument; scorer->Next()) {
    if (admits && !admits(scorer->document())) continue;
    const Hit hit = {scorer->document(), scorer->Score()};
    // Documents ascend, so that of equal scores the one that is there is better.
    if (best.size() == k) {
      if (hit.score <= best.front().score) continue;
      std::pop_heap(best.begin(), best.end(), is_better);
      best.pop_back();
    }
    best.push_back(hit);
    std::push_heap(best.begin(), best.end(), is_better);
    if (best.size() == k) scorer->SetThreshold(best.front().score);
  }
  BASALT_RETURN_IF_ERROR(scorer->status());
  std::sort_heap(best.begin(), best.end(), is_better);
  return best;
}

}  // namespace basalt::text
