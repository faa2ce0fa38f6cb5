#include "base/merging_iterator.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"

namespace basalt::base {
namespace {

// Layout: a binary heap of the children that have a record, best first, each with its key's first 8
// bytes as a number. The heap's order is the direction's: internal order, ties by the child's
// place, or exactly the reverse of that. The front is the present record.
//
// Invariant while Valid(): forward, every other child stands at its first record after the front;
// backward, at its last record before it. A change of direction re-establishes it by seeks.
class MergingIterator final : public base::RecordIterator {
 public:
  explicit MergingIterator(std::vector<std::unique_ptr<base::RecordIterator>> children)
      : children_(std::move(children)) {
    heap_.reserve(children_.size());
  }

  void SeekToFirst() override {
    Start(true, [](base::RecordIterator& child) { child.SeekToFirst(); });
  }
  void SeekToLast() override {
    Start(false, [](base::RecordIterator& child) { child.SeekToLast(); });
  }
  void Seek(std::string_view key, base::Tag tag) override {
    target_ = key;
    for (const auto& child : children_) child->BeginSeek(target_, tag);
    Start(true, [&](base::RecordIterator& child) { child.FinishSeek(target_, tag); });
  }
  void SeekForPrev(std::string_view key, base::Tag tag) override {
    target_ = key;
    Start(false, [&](base::RecordIterator& child) { child.SeekForPrev(target_, tag); });
  }

  void Next() override {
    if (!forward_) Turn();
    if (!status_.ok()) return;
    heap_.front().child->Next();
    Advanced();
  }
  void Prev() override {
    if (forward_) Turn();
    if (!status_.ok()) return;
    heap_.front().child->Prev();
    Advanced();
  }

 private:
  struct Entry {
    uint64_t prefix;
    base::RecordIterator* child;
    size_t place;
  };

  // Internal order, ties by place: a total order.
  static bool Before(const Entry& a, const Entry& b) noexcept {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    const int order =
        base::CompareInternal(a.child->key(), a.child->tag(), b.child->key(), b.child->tag());
    return order != 0 ? order < 0 : a.place < b.place;
  }
  bool Better(const Entry& a, const Entry& b) const noexcept {
    return forward_ ? Before(a, b) : Before(b, a);
  }

  // Positions every child by `seek` and builds the heap.
  template <class SeekChild>
  void Start(bool forward, SeekChild seek) {
    forward_ = forward;
    status_ = Status();
    heap_.clear();
    for (size_t place = 0; place < children_.size(); ++place) {
      seek(*children_[place]);
      if (!Push(place)) return;
    }
    Heapify();
    Publish();
  }

  // Adds a positioned child without regard to order; false: its error ended the iteration.
  bool Push(size_t place) {
    base::RecordIterator* const child = children_[place].get();
    if (child->Valid()) {
      heap_.push_back({.prefix = base::KeyPrefix(child->key()), .child = child, .place = place});
    } else if (!child->status().ok()) {
      Fail(child->status());
      return false;
    }
    return true;
  }

  // Turns round at the present record: the others move to its other side.
  void Turn() {
    const size_t present = heap_.front().place;
    forward_ = !forward_;
    heap_.clear();
    for (size_t place = 0; place < children_.size(); ++place) {
      if (place != present) SeekBeyond(*children_[place], place < present);
      if (!Push(place)) return;
    }
    Heapify();
  }

  // To the nearest record on the new side of the present one. Of records equal to it, those of
  // earlier children lie before it, those of later ones behind it.
  void SeekBeyond(base::RecordIterator& child, bool is_earlier) {
    if (forward_) {
      child.Seek(key_, tag_);
      if (is_earlier && IsAtPresent(child)) child.Next();
    } else {
      child.SeekForPrev(key_, tag_);
      if (!is_earlier && IsAtPresent(child)) child.Prev();
    }
  }
  bool IsAtPresent(const base::RecordIterator& child) const noexcept {
    return child.Valid() && child.tag() == tag_ && child.key() == key_;
  }

  // The front child took a step: put it in its place and show the new front.
  void Advanced() {
    Entry& front = heap_.front();
    if (front.child->Valid()) {
      front.prefix = base::KeyPrefix(front.child->key());
    } else if (!front.child->status().ok()) {
      Fail(front.child->status());
      return;
    } else {
      front = heap_.back();
      heap_.pop_back();
    }
    if (heap_.size() > 1) SiftDown(0);
    Publish();
  }

  void Heapify() {
    for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown(i);
  }

  void SiftDown(size_t at) {
    const Entry moving = heap_[at];
    for (size_t next = 2 * at + 1; next < heap_.size(); next = 2 * at + 1) {
      if (next + 1 < heap_.size() && Better(heap_[next + 1], heap_[next])) ++next;
      if (!Better(heap_[next], moving)) break;
      heap_[at] = heap_[next];
      at = next;
    }
    heap_[at] = moving;
  }

  void Fail(const Status& status) {
    status_ = status;
    valid_ = false;
  }

  void Publish() noexcept {
    valid_ = !heap_.empty();
    if (!valid_) return;
    const base::RecordIterator& front = *heap_.front().child;
    key_ = front.key();
    tag_ = front.tag();
    time_ms_ = front.time_ms();
    value_ = front.value();
  }

  std::vector<std::unique_ptr<base::RecordIterator>> children_;
  std::vector<Entry> heap_;
  bool forward_ = true;
  std::string target_;  // of a seek: a copy, for it may be this iterator's own key
};

}  // namespace

std::unique_ptr<base::RecordIterator> NewMergingIterator(
    std::vector<std::unique_ptr<base::RecordIterator>> children) {
  if (children.size() == 1) return std::move(children.front());
  return std::make_unique<MergingIterator>(std::move(children));
}

}  // namespace basalt::base
