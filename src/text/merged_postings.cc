#include "text/merged_postings.h"

#include <algorithm>

#include "base/check.h"

namespace basalt::text {

static_assert(kPostingsBlock <= UINT8_MAX + 1);

MergedCursor::MergedCursor(std::vector<std::unique_ptr<PostingsCursor>> newest_first,
                           Removals removals)
    : children_(std::move(newest_first)), removals_(removals) {
  BASALT_CHECK(!children_.empty());
  length_min_ = UINT32_MAX;
  for (const auto& child : children_) {
    frequency_max_ = std::max(frequency_max_, child->frequency_max());
    // Without a frequency it has only removals.
    if (child->frequency_max() > 0) length_min_ = std::min(length_min_, child->length_min());
  }
  LoadBlock(0);
}

void MergedCursor::DoLoadBlock(uint64_t target) {
  for (const auto& child : children_) {
    child->Seek(std::max(target, resume_));
    if (!child->status().ok()) {
      Fail(child->status());
      return;
    }
  }
  // A block of nothing but removals is passed.
  while (count_ == 0 && FillBlock()) {
  }
}

/// Takes postings until a child would leave its block. False: there are none any more.
bool MergedCursor::FillBlock() {
  while (count_ < kPostingsBlock) {
    const auto [newest, document, others] = FindNewest();
    if (document == kNoDocument) return false;
    const bool goes_on = others == document ? TakeShared(newest) : TakeRun(newest, others);
    if (!goes_on) break;
  }
  return status_.ok();
}

/// The newest of the children with the least document, that document, and the least one that
/// another child stands at.
MergedCursor::Turn MergedCursor::FindNewest() const noexcept {
  Turn turn;
  for (size_t i = 0; i < children_.size(); ++i) {
    const uint64_t document = children_[i]->document();
    if (document < turn.document) {
      turn = {.newest = i, .document = document, .others = turn.document};
    } else {
      turn.others = std::min(turn.others, document);
    }
  }
  return turn;
}

/// Adds the posting at which a child stands, unless it is a removal and hidden.
void MergedCursor::Take(size_t i) noexcept {
  const PostingsCursor& child = *children_[i];
  resume_ = child.document() + 1;
  if (child.frequency() == 0 && removals_ == Removals::kHide) return;
  documents_[count_] = child.document();
  frequencies_[count_] = child.frequency();
  lengths_[count_] = child.length();
  child_of_[count_] = static_cast<uint32_t>(i);
  place_of_[count_] = static_cast<uint8_t>(child.at_);
  ++count_;
}

/// Moves a child on. False if it would have to leave a block from which positions may still be
/// read: it stays, and DoLoadBlock moves it.
bool MergedCursor::Step(PostingsCursor* child) {
  if (child->at_ + 1 < child->count_) {
    ++child->at_;
    return true;
  }
  if (count_ > 0) return false;
  child->Next();
  if (!child->status().ok()) Fail(child->status());
  return child->status().ok();
}

/// Takes a document that other children have, too.
bool MergedCursor::TakeShared(size_t newest) {
  const uint64_t document = children_[newest]->document();
  Take(newest);
  bool all_moved = true;
  for (const auto& child : children_) {
    if (child->document() == document) all_moved &= Step(child.get());
  }
  return all_moved;
}

/// Takes what a child has below `limit`, where no other child has anything.
bool MergedCursor::TakeRun(size_t i, uint64_t limit) {
  do {
    Take(i);
    if (!Step(children_[i].get())) return false;
  } while (count_ < kPostingsBlock && children_[i]->document() < limit);
  return true;
}

void MergedCursor::DoReadPositions(size_t at, std::vector<uint32_t>* positions) {
  children_[child_of_[at]]->DoReadPositions(place_of_[at], positions);
}

namespace {

std::vector<std::unique_ptr<PostingsCursor>> CursorsOf(
    const std::vector<std::string_view>& segments) {
  std::vector<std::unique_ptr<PostingsCursor>> cursors;
  cursors.reserve(segments.size());
  for (const std::string_view segment : segments) {
    cursors.push_back(std::make_unique<SegmentCursor>(segment));
  }
  return cursors;
}

}  // namespace

std::unique_ptr<PostingsCursor> OpenSegments(const std::vector<std::string_view>& newest_first) {
  if (newest_first.size() == 1) {
    auto only = std::make_unique<SegmentCursor>(newest_first.front());
    if (only->removals() == 0) return only;
  }
  return std::make_unique<MergedCursor>(CursorsOf(newest_first));
}

Result<std::string> MergeSegments(const std::vector<std::string_view>& newest_first,
                                  bool is_oldest) {
  MergedCursor merged(CursorsOf(newest_first),
                      is_oldest ? MergedCursor::Removals::kHide : MergedCursor::Removals::kKeep);
  PostingsBuilder builder;
  std::vector<uint32_t> positions;
  for (; merged.document() != kNoDocument; merged.Next()) {
    merged.ReadPositions(&positions);
    builder.Add({merged.document(), merged.length(), positions});
  }
  if (!merged.status().ok()) return merged.status();
  return builder.empty() ? std::string() : builder.Finish();
}

}  // namespace basalt::text
