#include "memtable/generation_iterator.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace basalt::memtable {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

// Of a longer record the processor fetches the rest by itself, once it is read.
constexpr size_t kFetchedBytesMax = 1024;

// Into the first cache. Prefetching has no wrong addresses: they are numbers, and may lie anywhere.
[[gnu::always_inline]] inline void FetchLine(uintptr_t at) noexcept {
  __builtin_prefetch(reinterpret_cast<const char*>(at));
}

// Neighbours in order most often differ in the last bytes of their keys. Those of a shorter key
// are read with the end of its record's header, and moved out of it.
uint64_t LastBytes(std::string_view key) noexcept {
  constexpr size_t kBytes = sizeof(uint64_t);
  static_assert(kBytes <= Record::kHeaderBytes);
  const auto last = base::Load<uint64_t>(key.data() + key.size() - kBytes);
  if (key.size() >= kBytes) [[likely]]
    return last;
  return key.empty() ? 0 : last >> 8 * (kBytes - key.size());
}

// The lines of [begin, end) of a record: one every 64 bytes, and one more for the line that its
// last byte may lie in, since nobody can guess where in a line it begins. The first three without a
// loop.
// Inlined by force: g++ takes a function that only prefetches for one without effects, and leaves
// calls of it out.
[[gnu::always_inline]] inline void Fetch(const Record* record, size_t begin, size_t end) noexcept {
  constexpr size_t kLineBytes = 64;
  const char* const bytes = reinterpret_cast<const char*>(record);
  const auto fetch = [bytes](size_t at) {
    __builtin_prefetch(bytes + at, /*rw=*/0, /*locality=*/2);
  };
  const size_t last = end - 1;
  fetch(begin);
  fetch(std::min(begin + kLineBytes, last));
  fetch(std::min(begin + 2 * kLineBytes, last));
  for (size_t at = begin + 3 * kLineBytes; at < last; at += kLineBytes) fetch(at);
  fetch(last);
}

}  // namespace

GenerationIterator::GenerationIterator(std::shared_ptr<const void> table,
                                       std::shared_ptr<const RunList> runs, SortedRun own,
                                       base::SequenceNumber visible)
    : table_(std::move(table)), runs_(std::move(runs)), own_(std::move(own)), visible_(visible) {
  WaitIn(&few_waiting_);
  const size_t run_count = (runs_ != nullptr ? runs_->size() : 0) + 1;
  if (run_count > kFewRuns) many_cursors_ = std::make_unique_for_overwrite<Cursor[]>(run_count);
  Cursor* const first = many_cursors_ != nullptr ? many_cursors_.get() : few_cursors_;
  Cursor* end = first;
  const auto add = [&end](const SortedRun& run) {
    if (run.size() != 0) Begin(end++, run);
  };
  if (runs_ != nullptr) {
    for (const auto& run : *runs_) add(*run);
  }
  add(own_);
  if (end == first) return;

  cursors_ = {first, end};
  RunView all = *cursors_.front().run;  // shares what all runs share, once the loop is through
  for (const Cursor& cursor : cursors_) all.shared = SharedByRuns(all, *cursor.run);
  for (Cursor& cursor : cursors_) cursor.shift = PrefixShift(*cursor.run, all.shared);
  typical_ = cursors_.back().begin->record;
  __builtin_prefetch(typical_);
}

void GenerationIterator::Begin(Cursor* cursor, const SortedRun& run) noexcept {
  const std::span<const SortEntry> entries = run.view().entries;
  cursor->run = &run;
  cursor->begin = entries.data();
  cursor->end = entries.data() + entries.size();
  cursor->cut = cursor->begin;
}

void GenerationIterator::SeekToFirst() {
  for (Cursor& cursor : cursors_) cursor.cut = cursor.begin;
  Start<Direction::kForward>();
  ShowFirst<Direction::kForward>();
}

void GenerationIterator::SeekToLast() {
  for (Cursor& cursor : cursors_) cursor.cut = cursor.end;
  Start<Direction::kBackward>();
  ShowFirst<Direction::kBackward>();
}

void GenerationIterator::Seek(std::string_view key, base::Tag tag) {
  for (int step = 0; step < kSeekSteps; ++step) SeekStep(step, key, tag);
}

void GenerationIterator::SeekForPrev(std::string_view key, base::Tag tag) {
  FindNear(key);
  Cut(key, tag, /*after_equal=*/true);
  Start<Direction::kBackward>();
  ShowFirst<Direction::kBackward>();
}

void GenerationIterator::SeekStep(int step, std::string_view key, base::Tag tag) {
  static_assert(kSeekSteps == 4);
  if (step == 0) return FindNear(key);
  if (step == 1) return Cut(key, tag, /*after_equal=*/false);
  if (step == 2) return Start<Direction::kForward>();
  ShowFirst<Direction::kForward>();
}

// Apart from Cut, so that the runs wait for memory together. Between them `cut` and `near` are
// where the run looks further, as places in it.
void GenerationIterator::FindNear(std::string_view key) noexcept {
  for (Cursor& cursor : cursors_) {
    const auto [begin, end] = cursor.run->Near(key);
    cursor.cut = cursor.begin + begin;
    cursor.near = end;
  }
}

void GenerationIterator::Cut(std::string_view key, base::Tag tag, bool after_equal) noexcept {
  for (Cursor& cursor : cursors_) {
    const SortedRun::Place near{static_cast<size_t>(cursor.cut - cursor.begin), cursor.near};
    cursor.cut = cursor.begin + cursor.run->Find(near, key, tag, after_equal);
  }
}

void GenerationIterator::Next() {
  assert(valid_);
  if (direction_ == Direction::kForward) {
    ++shown_;
  } else {
    Turn<Direction::kForward>();
  }
  ShowNext<Direction::kForward>();
}

void GenerationIterator::Prev() {
  assert(valid_);
  if (direction_ == Direction::kBackward) {
    ++shown_;
  } else {
    Turn<Direction::kBackward>();
  }
  ShowNext<Direction::kBackward>();
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

// Finds the cursor with the nearest entry; false: all are at their ends.
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
  nearest_ = best;
  rival_ = rival;
  return !best->AtEnd<direction>();
}

// From the cut on, with an empty window.
template <GenerationIterator::Direction direction>
void GenerationIterator::Start() noexcept {
  direction_ = direction;
  for (Cursor& cursor : cursors_) LoadNear<direction>(&cursor);
  has_more_ = Choose<direction>();
  shown_ = 0;
  filled_ = 0;
  window_ = kWindowFirst;
  GuessBytes();
  Fill<direction>(window_);
  refill_at_ = filled_;
}

// Of what Start has fetched.
template <GenerationIterator::Direction direction>
void GenerationIterator::ShowFirst() noexcept {
  const size_t fetched_bytes = likely_bytes_;
  ShowNext<direction>();
  if (!valid_) return;
  GuessBytes();
  if (likely_bytes_ <= fetched_bytes) return;
  for (size_t i = shown_; i != filled_; ++i) {
    Fetch(RecordAt(i), fetched_bytes, likely_bytes_);
  }
}

// Cuts anew, so that the present entry has just been passed in the new direction.
template <GenerationIterator::Direction direction>
void GenerationIterator::Turn() noexcept {
  FindNear(key_);
  Cut(key_, tag_, direction == Direction::kForward);
  Start<direction>();
}

// Up to this number.
template <GenerationIterator::Direction direction>
void GenerationIterator::Fill(size_t full) noexcept {
  constexpr ptrdiff_t kStep = direction == Direction::kForward ? 1 : -1;
  constexpr ptrdiff_t kEntryBytes = sizeof(SortEntry);
  const size_t likely_bytes = likely_bytes_;
  size_t filled = filled_;
  while (has_more_ && filled < full) {
    Cursor cursor = *nearest_;
    const uint64_t rival = rival_;
    do {
      const Record* const record = cursor.Nearest<direction>().record;
      Fetch(record, 0, likely_bytes);
      RecordAt(filled) = record;
      ++filled;
      cursor.cut += kStep;
      // Of many runs the processor does not see by itself that each is read in order.
      FetchLine(reinterpret_cast<uintptr_t>(cursor.cut) + kStep * kEntriesAhead * kEntryBytes);
      LoadNear<direction>(&cursor);
    } while (cursor.near < rival && filled < full);
    nearest_->cut = cursor.cut;
    nearest_->near = cursor.near;
    has_more_ = cursor.near < rival || Choose<direction>();
  }
  // What FetchSoon finds behind the last one.
  for (size_t i = 0; i != kSoon; ++i) RecordAt(filled + i) = nullptr;
  filled_ = filled;
}

// Before a refill. False: there is no memory for it, and the window stays the first one.
bool GenerationIterator::WaitForMany() noexcept {
  if (many_waiting_ != nullptr) return true;
  many_waiting_.reset(new (std::nothrow) ManyWaiting);
  if (many_waiting_ == nullptr) return false;
  WaitIn(many_waiting_.get());
  return true;
}

// Before the entry refill_at_ is shown. False: there is none.
template <GenerationIterator::Direction direction>
bool GenerationIterator::Refill() noexcept {
  const size_t next = refill_at_;
  if (!has_more_) {
    refill_at_ = filled_;
    return next != filled_;
  }
  const bool grows = WaitForMany();
  if (grows) window_ = std::min(window_ * 2, kWindowMax);
  GuessBytes();
  Fill<direction>(next + window_);
  refill_at_ = grows && has_more_ ? next + window_ / 2 : filled_;
  return true;
}

// From the second cache into the first: the lines in which a record begins and ends that is shown
// soon.
[[gnu::always_inline]] inline void GenerationIterator::FetchSoon() const noexcept {
  const auto at = reinterpret_cast<uintptr_t>(RecordAt(shown_ + kSoon));
  FetchLine(at);
  FetchLine(at + likely_bytes_ - 1);
}

// Shows the first visible entry of the window.
template <GenerationIterator::Direction direction>
[[gnu::always_inline]] inline void GenerationIterator::ShowNext() noexcept {
  for (;; ++shown_) {
    if (shown_ == refill_at_ && !Refill<direction>()) [[unlikely]] {
      valid_ = false;
      return;
    }
    const Record& record = *RecordAt(shown_);
    const base::Tag tag = record.tag.load(std::memory_order_relaxed);
    if (base::TagSequence(tag) > visible_) continue;
    FetchSoon();
    Show(record, tag);
    valid_ = true;
    return;
  }
}

[[gnu::always_inline]] inline void GenerationIterator::Show(const Record& record,
                                                            base::Tag tag) noexcept {
  typical_ = &record;
  key_ = record.key();
  value_ = record.value();
  tag_ = tag;
  time_ms_ = record.time_ms();
}

static_assert(sizeof(GenerationIterator) <= 1024,
              "malloc takes several hundred instructions more for larger blocks");

std::span<const base::PlainPut> GenerationIterator::PlainAhead(size_t passed,
                                                               base::SequenceNumber at) noexcept {
  if (direction_ != Direction::kForward) return {};
  if (passed != 0) {
    shown_ += passed;
    const Record& record = *RecordAt(shown_);
    Show(record, record.tag.load(std::memory_order_relaxed));
  }
  const size_t next = shown_ + 1;
  if (next == refill_at_) Refill<Direction::kForward>();
  const size_t end = std::min(refill_at_, next + kPlainMax);
  const base::Tag newest = base::SeekTag(std::min(visible_, at));
  base::PlainPut* out = plain_;
  size_t key_size = key_.size();
  uint64_t last_bytes = LastBytes(key_);
  for (size_t i = next; i < end; ++i) {
    const Record& record = *RecordAt(i);
    const base::Tag tag = record.tag.load(std::memory_order_relaxed);
    if (tag > newest || base::TagKind(tag) != RecordKind::kPut) break;
    if ((record.flags & Record::kFlagTime) != 0) break;
    const std::string_view key(record.body() + record.time_offset(), record.key_size);
    const uint64_t its_last_bytes = LastBytes(key);
    if (key.size() == key_size && its_last_bytes == last_bytes) break;
    key_size = key.size();
    last_bytes = its_last_bytes;
    *out++ = {key.data(), key.data() + key.size(), record.key_size, record.value_size};
  }
  return {plain_, out};
}

void GenerationIterator::GuessBytes() noexcept {
  if (typical_ == nullptr) return;
  const std::string_view value = typical_->value();
  const char* const end = value.data() + value.size();
  likely_bytes_ = std::min(static_cast<size_t>(end - reinterpret_cast<const char*>(typical_)),
                           kFetchedBytesMax);
}

}  // namespace basalt::memtable
