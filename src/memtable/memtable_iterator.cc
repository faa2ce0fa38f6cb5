#include "memtable/memtable_iterator.h"

#include <cassert>
#include <utility>

namespace basalt::memtable {
namespace {

constexpr size_t kPrefetchDistance = 12;

}  // namespace

MemTableIterator::MemTableIterator(std::shared_ptr<const void> table,
                                   std::shared_ptr<const SortedRun> shared, SortedRun own,
                                   base::SequenceNumber visible) noexcept
    : table_(std::move(table)),
      shared_(std::move(shared)),
      own_(std::move(own)),
      visible_(visible) {}

void MemTableIterator::SeekToFirst() {
  shared_at_ = 0;
  own_at_ = 0;
  ShowAtOrAfterCut();
}

void MemTableIterator::SeekToLast() {
  shared_at_ = shared_->size();
  own_at_ = own_.size();
  ShowBeforeCut();
}

void MemTableIterator::Seek(std::string_view key, base::Tag tag) {
  shared_at_ = shared_->LowerBound(key, tag);
  own_at_ = own_.LowerBound(key, tag);
  ShowAtOrAfterCut();
}

void MemTableIterator::SeekForPrev(std::string_view key, base::Tag tag) {
  shared_at_ = shared_->UpperBound(key, tag);
  own_at_ = own_.UpperBound(key, tag);
  ShowBeforeCut();
}

void MemTableIterator::Next() {
  assert(valid_);
  ++(PresentIsOwn() ? own_at_ : shared_at_);
  ShowAtOrAfterCut();
}

void MemTableIterator::Prev() {
  assert(valid_);
  ShowBeforeCut();
}

// Whether the lesser entry at the cut, which must not be at both ends, is in own_.
bool MemTableIterator::PresentIsOwn() const noexcept {
  if (own_at_ == own_.size()) return false;
  if (shared_at_ == shared_->size()) return true;
  return CompareRecords(own_[own_at_], (*shared_)[shared_at_]) < 0;
}

void MemTableIterator::ShowAtOrAfterCut() noexcept {
  while (shared_at_ < shared_->size() || own_at_ < own_.size()) {
    const bool is_own = PresentIsOwn();
    if (is_own) {
      own_.Prefetch(own_at_ + kPrefetchDistance);
    } else {
      shared_->Prefetch(shared_at_ + kPrefetchDistance);
    }
    if (Show(is_own ? own_[own_at_] : (*shared_)[shared_at_])) return;
    ++shared_at_;  // only the shared run has versions that are not visible
  }
  valid_ = false;
}

void MemTableIterator::ShowBeforeCut() noexcept {
  while (shared_at_ != 0 || own_at_ != 0) {
    const bool is_own =
        shared_at_ == 0 ||
        (own_at_ != 0 && CompareRecords(own_[own_at_ - 1], (*shared_)[shared_at_ - 1]) > 0);
    if (is_own) {
      --own_at_;
      own_.Prefetch(own_at_ - kPrefetchDistance);
    } else {
      --shared_at_;
      shared_->Prefetch(shared_at_ - kPrefetchDistance);
    }
    if (Show(is_own ? own_[own_at_] : (*shared_)[shared_at_])) return;
  }
  valid_ = false;
}

bool MemTableIterator::Show(const Record& record) noexcept {
  const base::Tag tag = record.tag.load(std::memory_order_relaxed);
  if (base::TagSequence(tag) > visible_) return false;
  key_ = record.key();
  value_ = record.value();
  tag_ = tag;
  valid_ = true;
  return true;
}

}  // namespace basalt::memtable
