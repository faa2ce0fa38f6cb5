#include "db/surviving_records.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

namespace basalt::db {

SurvivingRecords::SurvivingRecords(base::RecordIterator* source, Rules rules)
    : source_(source), rules_(std::move(rules)) {}

size_t SurvivingRecords::StripeOf(base::SequenceNumber sequence) const noexcept {
  return static_cast<size_t>(std::ranges::lower_bound(rules_.boundaries, sequence) -
                             rules_.boundaries.begin());
}

// The newest range delete over the present key that readers at the stripe's boundary see.
base::SequenceNumber SurvivingRecords::CoverOf(size_t stripe) const {
  base::SequenceNumber cover = 0;
  for (const RangeDeletes* ranges : rules_.range_deletes) {
    if (ranges->empty()) continue;
    cover = std::max(cover, ranges->SequenceAt(present_key_, rules_.boundaries[stripe]));
  }
  return cover;
}

bool SurvivingRecords::IsBottom() {
  if (bottom_ < 0) bottom_ = rules_.is_bottom && rules_.is_bottom(present_key_) ? 1 : 0;
  return bottom_ == 1;
}

void SurvivingRecords::Advance() {
  source_->Next();
  passed_ = false;
}

// The range deletes of its own stripe do not cover it, or it would not be shown.
base::SequenceNumber SurvivingRecords::HiderOf(base::SequenceNumber sequence) const {
  const size_t stripes = rules_.boundaries.size();
  if (present_stripe_ + 1 >= stripes || CoverOf(stripes - 1) <= sequence) return newer_stripes_;
  const auto later = std::views::iota(present_stripe_ + 1, stripes);
  const size_t first = *std::ranges::partition_point(
      later, [&](size_t stripe) { return CoverOf(stripe) <= sequence; });
  const base::SequenceNumber cover = CoverOf(first);
  return newer_stripes_ == 0 ? cover : std::min(cover, newer_stripes_);
}

base::SequenceNumber SurvivingRecords::oldest_reader() const noexcept {
  const base::SequenceNumber sequence = base::TagSequence(tag_);
  const size_t stripe = StripeOf(sequence);
  return stripe == rules_.boundaries.size() ? sequence : rules_.boundaries[stripe];
}

void SurvivingRecords::Show(base::Tag tag, uint64_t time_ms, std::string_view value) {
  key_ = present_key_;
  tag_ = tag;
  time_ms_ = time_ms;
  value_ = value;
  hidden_from_ = HiderOf(base::TagSequence(tag));
  is_built_on_ = base::TagKind(tag) == RecordKind::kMerge;
}

// What is left of a put that has expired. False: nothing.
bool SurvivingRecords::ShowExpired(base::SequenceNumber sequence, uint64_t expiry_ms,
                                   size_t stripe) {
  if (is_built_on_ || rules_.has_merges_above) {
    Show(base::MakeTag(sequence, RecordKind::kPut), expiry_ms, {});
    return true;
  }
  if (stripe == 0 && IsBottom()) return false;
  Show(base::MakeTag(sequence, RecordKind::kDelete), 0, {});
  return true;
}

bool SurvivingRecords::Next() {
  while (true) {
    if (shown_ < waiting_.size()) {
      const Kept& kept = waiting_[shown_++];
      Show(kept.tag, kept.time_ms, kept.value);
      return true;
    }
    waiting_.clear();
    shown_ = 0;
    if (passed_) Advance();
    if (!source_->Valid()) return false;
    if (Take()) return true;
  }
}

// Judges the source's record. True: it is shown, and the source still stands there.
bool SurvivingRecords::Take() {
  ++seen_;
  if (!has_key_ || source_->key() != present_key_) {
    present_key_.assign(source_->key());
    has_key_ = true;
    hidden_stripe_ = kNoStripe;
    bottom_ = -1;
    is_built_on_ = false;
    present_sequence_ = 0;
    present_stripe_ = kNoStripe;
    newer_stripes_ = 0;
  }
  const base::Tag tag = source_->tag();
  passed_ = true;
  const base::SequenceNumber newer = std::exchange(present_sequence_, base::TagSequence(tag));
  if (newer == present_sequence_) return false;
  const size_t stripe = StripeOf(present_sequence_);
  if (stripe != std::exchange(present_stripe_, stripe)) newer_stripes_ = newer;
  if (stripe == rules_.boundaries.size()) {  // above all boundaries
    Show(tag, source_->time_ms(), source_->value());
    return true;
  }
  if (stripe == hidden_stripe_) return false;
  if (CoverOf(stripe) > base::TagSequence(tag)) {
    hidden_stripe_ = stripe;
    return false;
  }
  if (base::TagKind(tag) == RecordKind::kMerge) {
    return TakeMerges(stripe);
  }
  hidden_stripe_ = stripe;
  const uint64_t expiry_ms = source_->time_ms();
  const bool has_expired = expiry_ms != 0 && expiry_ms <= rules_.now_ms;
  if (has_expired) return ShowExpired(base::TagSequence(tag), expiry_ms, stripe);
  if (base::TagKind(tag) == RecordKind::kDelete && stripe == 0 && IsBottom()) return false;
  Show(tag, expiry_ms, source_->value());
  return true;
}

// The source stands at the newest version of its stripe, a merge. Takes all that it builds on in
// this stripe, and leaves the source behind that; what is to be written waits, or is shown (true).
bool SurvivingRecords::TakeMerges(size_t stripe) {
  const base::SequenceNumber cover = CoverOf(stripe);
  std::vector<base::PendingMerge> merges;
  bool base_is_known = false;
  std::optional<std::string> below;
  uint64_t below_expiry_ms = 0;
  base::Tag below_tag = 0;
  bool is_first = true;
  for (; source_->Valid() && source_->key() == present_key_; source_->Next()) {
    const base::Tag tag = source_->tag();
    if (StripeOf(base::TagSequence(tag)) != stripe) break;
    if (!std::exchange(is_first, false)) ++seen_;
    if (cover > base::TagSequence(tag)) {
      base_is_known = true;
      break;
    }
    if (base::TagKind(tag) != RecordKind::kMerge) {
      base_is_known = true;
      below_tag = tag;
      if (base::TagKind(tag) == RecordKind::kPut) {
        below.emplace(source_->value());
        below_expiry_ms = source_->time_ms();
      }
      break;
    }
    waiting_.push_back({tag, source_->time_ms(), std::string(source_->value())});
    merges.push_back({std::string(source_->value()), source_->time_ms()});
  }
  if (!source_->status().ok()) {
    waiting_.clear();
    passed_ = false;
    return false;
  }
  const bool is_end = !source_->Valid() || source_->key() != present_key_;
  if (!base_is_known && stripe == 0 && is_end && IsBottom()) base_is_known = true;
  hidden_stripe_ = stripe;
  passed_ = false;  // the source stands at a record that was not judged, or is hidden
  if (!base_is_known) return false;
  auto merged =
      base::ApplyMerges(merges, below ? std::optional<std::string_view>(*below) : std::nullopt,
                        below_expiry_ms, rules_.now_ms);
  if (merged) {
    const base::SequenceNumber newest = base::TagSequence(waiting_.front().tag);
    waiting_.clear();
    if (merged->expiry_ms == 0 || merged->expiry_ms > rules_.now_ms) {
      waiting_.push_back(
          {base::MakeTag(newest, RecordKind::kPut), merged->expiry_ms, std::move(merged->value)});
    } else {
      return ShowExpired(newest, merged->expiry_ms, stripe);
    }
  } else if (below_tag != 0) {
    // Readers are to be told what does not fit together, so all of it stays.
    waiting_.push_back({below_tag, below_expiry_ms, below.value_or(std::string())});
  }
  return false;
}

}  // namespace basalt::db
