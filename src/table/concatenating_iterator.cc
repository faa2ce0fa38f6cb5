#include "table/concatenating_iterator.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace basalt::table {
namespace {

class ConcatenatingIterator final : public base::RecordIterator {
 public:
  ConcatenatingIterator(std::unique_ptr<const SortedTables> tables, bool fill_cache)
      : tables_(std::move(tables)), fill_cache_(fill_cache) {}

  void SeekToFirst() override {
    Open(0);
    if (inner_ != nullptr) inner_->SeekToFirst();
    SkipForward();
  }

  void SeekToLast() override {
    Open(tables_->size() - 1);
    if (inner_ != nullptr) inner_->SeekToLast();
    SkipBackward();
  }

  // The key's versions may begin in a table before the one with the record, or end in one behind
  // it: both seeks go on until one answers.
  void Seek(std::string_view target, base::Tag tag) override {
    target_ = target;  // which may be this iterator's own key
    for (int step = 0; step < kSeekSteps; ++step) SeekStep(step, target_, tag);
  }

  void SeekStep(int step, std::string_view key, base::Tag tag) override {
    if (step == 0) Open(tables_->FirstNotBelow(key));
    if (inner_ != nullptr) inner_->SeekStep(step, key, tag);
    if (step + 1 < kSeekSteps) return;
    while (IsBeyondTable()) {
      Open(index_ + 1);
      if (inner_ != nullptr) inner_->Seek(key, tag);
    }
    Publish();
  }

  void SeekForPrev(std::string_view target, base::Tag tag) override {
    const std::string key(target);
    size_t after = tables_->FirstNotBelow(key);
    while (after < tables_->size() && tables_->SmallestKey(after) <= key) ++after;
    Open(after - 1);
    if (inner_ != nullptr) inner_->SeekForPrev(key, tag);
    while (IsBeyondTable()) {
      Open(index_ - 1);
      if (inner_ != nullptr) inner_->SeekForPrev(key, tag);
    }
    Publish();
  }

  void Next() override {
    inner_->Next();
    SkipForward();
  }

  void Prev() override {
    inner_->Prev();
    SkipBackward();
  }

  std::span<const base::PlainPut> PlainAhead(size_t passed,
                                             base::SequenceNumber at) noexcept override {
    const auto ahead = inner_->PlainAhead(passed, at);
    if (passed != 0) Publish();
    return ahead;
  }

 private:
  // An index out of range closes the present table, and so does an error, which stays until the
  // next one is opened.
  void Open(size_t index) {
    if (inner_ != nullptr && index_ == index) return;
    index_ = index;
    inner_ = nullptr;
    open_status_ = Status();
    if (index >= tables_->size()) return;
    auto opened = tables_->NewIterator(index, fill_cache_);
    if (opened) {
      inner_ = std::move(*opened);
    } else {
      open_status_ = opened.error();
    }
  }

  bool IsBeyondTable() const noexcept {
    return inner_ != nullptr && !inner_->Valid() && inner_->status().ok();
  }

  void SkipForward() {
    while (IsBeyondTable()) {
      Open(index_ + 1);
      if (inner_ != nullptr) inner_->SeekToFirst();
    }
    Publish();
  }

  void SkipBackward() {
    while (IsBeyondTable()) {
      Open(index_ - 1);
      if (inner_ != nullptr) inner_->SeekToLast();
    }
    Publish();
  }

  void Publish() {
    if (inner_ != nullptr) return ShowAs(*inner_);
    valid_ = false;
    status_ = open_status_;
  }

  const std::unique_ptr<const SortedTables> tables_;
  const bool fill_cache_;
  size_t index_ = 0;
  Status open_status_;
  std::string target_;  // of a seek
  // Of the table index_; null beyond either end, and where that cannot be opened.
  std::unique_ptr<base::RecordIterator> inner_;
};

}  // namespace

std::unique_ptr<base::RecordIterator> NewConcatenatingIterator(
    std::unique_ptr<const SortedTables> tables, bool fill_cache) {
  return std::make_unique<ConcatenatingIterator>(std::move(tables), fill_cache);
}

}  // namespace basalt::table
