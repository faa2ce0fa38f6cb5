#include "transaction/own_iterator.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "base/key_bound.h"
#include "base/out_of_memory.h"
#include "base/wall_time_millis.h"

namespace basalt::transaction {
namespace {

/// The deleted range that the key lies in, or the end.
OwnWrites::Ranges::const_iterator RangeAround(const OwnWrites::Ranges& ranges,
                                              std::string_view key) noexcept {
  auto range = ranges.upper_bound(key);
  if (range == ranges.begin() || key >= std::prev(range)->second) return ranges.end();
  return std::prev(range);
}

}  // namespace

OwnIterator::OwnIterator(std::unique_ptr<Iterator> base, const ReadOptions& options,
                         Overlay overlay, uint64_t now_ms, ReadSet* reads,
                         std::shared_ptr<LiveIterators> live)
    : base_(std::move(base)),
      keyspace_(options.keyspace),
      keys_only_(options.keys_only),
      overlay_(std::move(overlay)),
      now_ms_(now_ms),
      reads_(reads),
      live_(std::move(live)) {
  if (options.prefix) {
    lower_ = *options.prefix;
    upper_ = base::PrefixEnd(*options.prefix);
  } else {
    if (options.lower) lower_ = *options.lower;
    if (options.upper) upper_ = std::string(*options.upper);
  }
  live_->push_back(this);
}

OwnIterator::~OwnIterator() {
  std::erase(*live_, this);
  try {
    TellReads();
  } catch (const std::bad_alloc&) {
    reads_->SetIncomplete();
  }
}

std::optional<WallTime> OwnIterator::expiry() const noexcept {
  return shows_base_ ? base_->expiry() : own_expiry_;
}

// Moves

void OwnIterator::SeekToFirst() { Seek(lower_); }

void OwnIterator::SeekToLast() {
  if (!IsUsable()) return;
  BeginStretch(upper_);
  forward_ = false;
  base_->SeekToLast();
  place_ = overlay_.own.size();
  FindBackward();
}

void OwnIterator::Seek(std::string_view target) {
  if (!IsUsable()) return;
  const std::string from(std::max<std::string_view>(target, lower_));
  BeginStretch(from);
  forward_ = true;
  base_->Seek(from);
  place_ = PlaceAtOrBehind(from);
  FindForward();
}

void OwnIterator::SeekForPrev(std::string_view target) {
  if (upper_ && target >= *upper_) return SeekToLast();
  if (!IsUsable()) return;
  const std::string from(target);
  BeginStretch(base::KeyBehind(from));
  forward_ = false;
  base_->SeekForPrev(from);
  place_ = PlaceBehind(from);
  FindBackward();
}

void OwnIterator::Next() {
  if (!Valid() || !IsUsable()) return;
  if (forward_) {
    const bool base_is_here = BaseIsAt(key_);
    if (place_ < overlay_.own.size() && overlay_.own[place_].key == key_) ++place_;
    if (base_is_here) base_->Next();
  } else {
    TurnForward();
  }
  FindForward();
}

void OwnIterator::Prev() {
  if (!Valid() || !IsUsable()) return;
  if (!forward_) {
    const bool base_is_here = BaseIsAt(key_);
    if (place_ > 0 && overlay_.own[place_ - 1].key == key_) --place_;
    if (base_is_here) base_->Prev();
  } else {
    TurnBackward();
  }
  FindBackward();
}

void OwnIterator::TurnForward() {
  ExtendStretch();
  const std::string from(key_);
  forward_ = true;
  base_->Seek(from);
  if (BaseIsAt(from)) base_->Next();
  place_ = PlaceBehind(from);
}

void OwnIterator::TurnBackward() {
  ExtendStretch();
  const std::string from(key_);
  forward_ = false;
  base_->SeekForPrev(from);
  if (BaseIsAt(from)) base_->Prev();
  place_ = PlaceAtOrBehind(from);
}

void OwnIterator::FindForward() {
  while (true) {
    if (!base_->Valid() && !base_->status().ok()) return Fail(base_->status());
    const bool has_own = place_ < overlay_.own.size();
    if (!base_->Valid() && !has_own) return ShowNothing();
    if (!has_own || (base_->Valid() && base_->key() < overlay_.own[place_].key)) {
      const auto range = RangeAround(overlay_.deleted, base_->key());
      if (range == overlay_.deleted.end()) return ShowBase();
      base_->Seek(range->second);
      continue;
    }
    const Own& own = overlay_.own[place_];
    const bool is_equal = BaseIsAt(own.key);
    if (ShowOwn(own, is_equal) || !status_.ok()) return;
    ++place_;
    if (is_equal) base_->Next();
  }
}

void OwnIterator::FindBackward() {
  while (true) {
    if (!base_->Valid() && !base_->status().ok()) return Fail(base_->status());
    if (!base_->Valid() && place_ == 0) return ShowNothing();
    if (place_ == 0 || (base_->Valid() && base_->key() > overlay_.own[place_ - 1].key)) {
      const auto range = RangeAround(overlay_.deleted, base_->key());
      if (range == overlay_.deleted.end()) return ShowBase();
      base_->SeekForPrev(range->first);
      if (BaseIsAt(range->first)) base_->Prev();
      continue;
    }
    const Own& own = overlay_.own[place_ - 1];
    const bool is_equal = BaseIsAt(own.key);
    if (ShowOwn(own, is_equal) || !status_.ok()) return;
    --place_;
    if (is_equal) base_->Prev();
  }
}

// What is shown

bool OwnIterator::ShowOwn(const Own& own, bool base_is_equal) {
  status_ = Status();
  const OwnState& state = own.state;
  std::optional<WallTime> expiry = state.expiry;
  std::string_view value = state.value;
  if (state.kind == OwnState::Kind::kDeleted) return false;
  if (state.kind == OwnState::Kind::kMerges && base_is_equal) expiry = base_->expiry();
  if (!state.merges.empty() && !keys_only_) {
    std::optional<std::string_view> present;
    if (base_is_equal) present = base_->value();
    Result<base::MergedValue> merged = state.Merged(present, base::MillisOf(expiry), now_ms_);
    if (!merged) {
      Fail(merged.error());
      return false;
    }
    merged_ = std::move(merged->value);
    value = merged_;
    expiry = base::WallTimeOf(merged->expiry_ms);
  }
  if (expiry && base::MillisOf(expiry) <= now_ms_) return false;
  if (base_is_equal && reads_ != nullptr) reads_->AddExpiry(base::MillisOf(base_->expiry()));
  shows_base_ = false;
  own_expiry_ = expiry;
  key_ = own.key;
  value_ = keys_only_ ? std::string_view() : value;
  valid_ = true;
  return true;
}

void OwnIterator::ShowBase() {
  if (reads_ != nullptr) reads_->AddExpiry(base::MillisOf(base_->expiry()));
  shows_base_ = true;
  key_ = base_->key();
  value_ = base_->value();
  valid_ = true;
  status_ = Status();
}

void OwnIterator::ShowNothing() noexcept {
  valid_ = false;
  status_ = Status();
}

void OwnIterator::Fail(Status why) noexcept {
  valid_ = false;
  status_ = std::move(why);
}

bool OwnIterator::IsUsable() {
  if (finished_.ok()) return true;
  Fail(finished_);
  return false;
}

size_t OwnIterator::PlaceBehind(std::string_view key) const noexcept {
  const auto own =
      std::ranges::partition_point(overlay_.own, [&](const Own& one) { return one.key <= key; });
  return static_cast<size_t>(own - overlay_.own.begin());
}

size_t OwnIterator::PlaceAtOrBehind(std::string_view key) const noexcept {
  const auto own =
      std::ranges::partition_point(overlay_.own, [&](const Own& one) { return one.key < key; });
  return static_cast<size_t>(own - overlay_.own.begin());
}

// What was read

void OwnIterator::BeginStretch(std::optional<std::string> at) {
  if (reads_ == nullptr) return;
  TellReads();
  stretch_ = Stretch{.low = at, .high = std::move(at)};
}

void OwnIterator::ExtendStretch() {
  if (!stretch_) return;
  if (!forward_) {
    if (!Valid()) {
      stretch_->low = lower_;
    } else if (!stretch_->low || key_ < *stretch_->low) {
      stretch_->low = std::string(key_);
    }
  } else if (!Valid()) {
    stretch_->high = upper_;
  } else if (stretch_->high && key_ >= *stretch_->high) {
    stretch_->high = base::KeyBehind(key_);
  }
}

void OwnIterator::TellReads() {
  if (reads_ == nullptr || !stretch_) return;
  ExtendStretch();
  if (!stretch_->low) return;
  std::optional<std::string_view> high;
  if (stretch_->high) high = *stretch_->high;
  reads_->AddRange(static_cast<uint32_t>(keyspace_), *stretch_->low, high);
}

void OwnIterator::Finish(const Status& why) noexcept {
  finished_ = why;
  reads_ = nullptr;
  stretch_.reset();
  Fail(why);
}

}  // namespace basalt::transaction
