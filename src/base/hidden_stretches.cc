#include "base/hidden_stretches.h"

#include <string_view>
#include <utility>

namespace basalt::base {
namespace {

class WithoutHidden final : public RecordIterator {
 public:
  WithoutHidden(std::unique_ptr<RecordIterator> source, const RangeCovers* ranges,
                SequenceNumber newest)
      : source_(std::move(source)), ranges_(ranges), newest_(newest) {}

  void SeekToFirst() override {
    source_->SeekToFirst();
    PassForward();
  }
  void SeekToLast() override {
    source_->SeekToLast();
    PassBackward();
  }
  void Seek(std::string_view key, Tag tag) override {
    source_->Seek(key, tag);
    PassForward();
  }
  void SeekForPrev(std::string_view key, Tag tag) override {
    source_->SeekForPrev(key, tag);
    PassBackward();
  }
  void SeekStep(int step, std::string_view key, Tag tag) override {
    source_->SeekStep(step, key, tag);
    if (step + 1 == kSeekSteps) PassForward();
  }
  void Next() override {
    source_->Next();
    PassForward();
  }
  void Prev() override {
    source_->Prev();
    PassBackward();
  }
  void SkipVersions() override {
    source_->SkipVersions();
    PassForward();
  }

 private:
  // Stretches next to each other have different sequences: both may hide all.
  void PassForward() {
    while (IsHidden()) source_->Seek(*ranges_.stretch().end, kNewestTag);
    ShowAs(*source_);
  }
  void PassBackward() {
    while (IsHidden()) source_->SeekForPrev(*ranges_.stretch().begin, kNewestTag);
    ShowAs(*source_);
  }

  /// Whether the source stands in a stretch of which it shows nothing.
  bool IsHidden() {
    if (!source_->Valid()) return false;
    return ranges_.StretchOf(source_->key()).sequence > newest_;
  }

  const std::unique_ptr<RecordIterator> source_;
  RangeCoverCursor ranges_;
  const SequenceNumber newest_;
};

}  // namespace

std::unique_ptr<RecordIterator> WithoutHiddenStretches(std::unique_ptr<RecordIterator> source,
                                                       const RangeCovers* ranges,
                                                       SequenceNumber newest) {
  if (ranges == nullptr || ranges->newest() <= newest) return source;
  return std::make_unique<WithoutHidden>(std::move(source), ranges, newest);
}

}  // namespace basalt::base
