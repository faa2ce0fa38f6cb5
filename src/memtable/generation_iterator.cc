#include "memtable/generation_iterator.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace basalt::memtable {
namespace {

constexpr size_t kPrefetchDistance = 12;
constexpr uint64_t kNone = ~uint64_t{0};

}  // namespace

GenerationIterator::GenerationIterator(std::shared_ptr<const void> table,
                                       std::shared_ptr<const RunList> runs, SortedRun own,
                                       base::SequenceNumber visible)
    : table_(std::move(table)), runs_(std::move(runs)), own_(std::move(own)), visible_(visible) {
  cursors_.reserve((runs_ != nullptr ? runs_->size() : 0) + 1);
  if (runs_ != nullptr) {
    for (const auto& run : *runs_) AddCursor(*run);
  }
  AddCursor(own_);
  if (cursors_.empty()) return;

  size_t entries = 0;
  RunView all = *cursors_.front().run;  // shares what all runs share, once the loop is through
  for (const Cursor& cursor : cursors_) {
    entries += cursor.run->size();
    all.shared = SharedByRuns(all, *cursor.run);
  }
  const double ahead_an_entry =
      static_cast<double>(kPrefetchDistance - 1) / static_cast<double>(entries);
  for (Cursor& cursor : cursors_) {
    cursor.shift = PrefixShift(*cursor.run, all.shared);
    cursor.ahead =
        1 + static_cast<size_t>(static_cast<double>(cursor.run->size()) * ahead_an_entry);
  }
}

void GenerationIterator::AddCursor(const SortedRun& run) {
  if (run.size() == 0) return;
  Cursor& cursor = cursors_.emplace_back();
  cursor.run = &run;
  cursor.begin = run.view().entries.data();
  cursor.end = cursor.begin + run.size();
  cursor.cut = cursor.begin;
}

void GenerationIterator::SeekToFirst() {
  for (Cursor& cursor : cursors_) cursor.cut = cursor.begin;
  Start<Direction::kForward>();
}

void GenerationIterator::SeekToLast() {
  for (Cursor& cursor : cursors_) cursor.cut = cursor.end;
  Start<Direction::kBackward>();
}

void GenerationIterator::Seek(std::string_view key, base::Tag tag) {
  for (Cursor& cursor : cursors_) cursor.cut = cursor.begin + cursor.run->LowerBound(key, tag);
  Start<Direction::kForward>();
}

void GenerationIterator::SeekForPrev(std::string_view key, base::Tag tag) {
  for (Cursor& cursor : cursors_) cursor.cut = cursor.begin + cursor.run->UpperBound(key, tag);
  Start<Direction::kBackward>();
}

void GenerationIterator::Next() {
  assert(valid_);
  ++present_->cut;
  if (direction_ == Direction::kForward) {
    LoadNear<Direction::kForward>(present_);
    ShowForward(ChooseIfPassed<Direction::kForward>());
  } else {
    Turn<Direction::kForward>();
    ShowForward(Choose<Direction::kForward>());
  }
}

void GenerationIterator::Prev() {
  assert(valid_);
  if (direction_ == Direction::kBackward) {
    ShowBackward(ChooseIfPassed<Direction::kBackward>());
  } else {
    Turn<Direction::kBackward>();
    ShowBackward(Choose<Direction::kBackward>());
  }
}

template <GenerationIterator::Direction direction>
void GenerationIterator::LoadNear(Cursor* cursor) noexcept {
  if (cursor->AtEnd<direction>()) {
    cursor->near = kNone;
    return;
  }
  const uint64_t prefix = cursor->shift(cursor->Nearest<direction>().prefix);
  cursor->near = direction == Direction::kForward ? prefix : ~prefix;
}

// For cursors with the same `near`, which says nothing.
template <GenerationIterator::Direction direction>
bool GenerationIterator::IsNearer(const Cursor& a, const Cursor& b) noexcept {
  if (a.AtEnd<direction>()) return false;
  if (b.AtEnd<direction>()) return true;
  const int order = CompareRecords(*a.Nearest<direction>().record, *b.Nearest<direction>().record);
  return direction == Direction::kForward ? order < 0 : order > 0;
}

// The record of the entry that is `distance` steps from the nearest one.
// Inlined by force: g++ takes a function that only prefetches for one without effects, and leaves
// calls of it out.
template <GenerationIterator::Direction direction>
[[gnu::always_inline]] inline void GenerationIterator::Prefetch(const Cursor& cursor,
                                                                size_t distance) noexcept {
  const SortEntry* entry;
  if (direction == Direction::kForward) {
    if (static_cast<size_t>(cursor.end - cursor.cut) <= distance) return;
    entry = cursor.cut + distance;
  } else {
    if (static_cast<size_t>(cursor.cut - cursor.begin) <= distance) return;
    entry = cursor.cut - 1 - distance;
  }
  const char* const record = reinterpret_cast<const char*>(entry->record);
  __builtin_prefetch(record);
  __builtin_prefetch(record + 64);
}

template <GenerationIterator::Direction direction>
void GenerationIterator::Turn() noexcept {
  direction_ = direction;
  for (Cursor& cursor : cursors_) LoadNear<direction>(&cursor);
}

template <GenerationIterator::Direction direction>
void GenerationIterator::Start() noexcept {
  Turn<direction>();
  for (const Cursor& cursor : cursors_) {
    for (size_t i = 0; i < cursor.ahead; ++i) Prefetch<direction>(cursor, i);
  }
  if (direction == Direction::kForward) {
    ShowForward(Choose<direction>());
  } else {
    ShowBackward(Choose<direction>());
  }
}

// Makes the cursor with the nearest entry the present one; false: all are at their ends.
template <GenerationIterator::Direction direction>
bool GenerationIterator::Choose() noexcept {
  if (cursors_.empty()) return false;
  Cursor* best = cursors_.data();
  uint64_t rival = kNone;
  for (Cursor* at = best + 1; at != cursors_.data() + cursors_.size(); ++at) {
    bool is_nearer = at->near < best->near;
    if (at->near == best->near) [[unlikely]]
      is_nearer = IsNearer<direction>(*at, *best);
    rival = std::min(rival, is_nearer ? best->near : at->near);
    best = is_nearer ? at : best;
  }
  present_ = best;
  rival_ = rival;
  return !best->AtEnd<direction>();
}

// After a step of the present cursor.
template <GenerationIterator::Direction direction>
bool GenerationIterator::ChooseIfPassed() noexcept {
  return present_->near < rival_ || Choose<direction>();
}

// Shows the nearest entry of the present cursor that is visible, if there is `any`. The cut stays
// before it.
void GenerationIterator::ShowForward(bool any) noexcept {
  for (; any; any = ChooseIfPassed<Direction::kForward>()) {
    Prefetch<Direction::kForward>(*present_, present_->ahead);
    if (Show(*present_->cut->record)) return;
    ++present_->cut;
    LoadNear<Direction::kForward>(present_);
  }
  valid_ = false;
}

// Moves the cut before the entry that it shows.
void GenerationIterator::ShowBackward(bool any) noexcept {
  for (; any; any = ChooseIfPassed<Direction::kBackward>()) {
    Prefetch<Direction::kBackward>(*present_, present_->ahead);
    --present_->cut;
    LoadNear<Direction::kBackward>(present_);
    if (Show(*present_->cut->record)) return;
  }
  valid_ = false;
}

bool GenerationIterator::Show(const Record& record) noexcept {
  const base::Tag tag = record.tag.load(std::memory_order_relaxed);
  if (base::TagSequence(tag) > visible_) return false;
  key_ = record.key();
  value_ = record.value();
  tag_ = tag;
  valid_ = true;
  return true;
}

}  // namespace basalt::memtable
