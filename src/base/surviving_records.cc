#include "base/surviving_records.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

namespace basalt::base {

SurvivingRecords::SurvivingRecords(RecordIterator* source, Rules rules)
    : source_(source), rules_(std::move(rules)) {}

size_t SurvivingRecords::StripeOf(SequenceNumber sequence) const noexcept {
  return static_cast<size_t>(std::ranges::lower_bound(rules_.boundaries, sequence) -
                             rules_.boundaries.begin());
}

// The newest range delete over the present key that readers at the stripe's boundary see.
SequenceNumber SurvivingRecords::CoverOf(size_t stripe) const {
  return rules_.cover_of ? rules_.cover_of(present_key_, rules_.boundaries[stripe]) : 0;
}

bool SurvivingRecords::IsBottom() {
  if (bottom_ < 0) bottom_ = rules_.is_bottom && rules_.is_bottom(present_key_) ? 1 : 0;
  return bottom_ == 1;
}

bool SurvivingRecords::IsAtPresentKey() const {
  return source_->Valid() && source_->key() == present_key_;
}

void SurvivingRecords::Advance() {
  source_->Next();
  passed_ = false;
}

// The range deletes of its own stripe do not cover it, or it would not be shown.
SequenceNumber SurvivingRecords::HiderOf(SequenceNumber sequence) const {
  const size_t stripes = rules_.boundaries.size();
  if (present_stripe_ + 1 >= stripes || CoverOf(stripes - 1) <= sequence) return newer_stripes_;
  const auto later = std::views::iota(present_stripe_ + 1, stripes);
  const size_t first = *std::ranges::partition_point(
      later, [&](size_t stripe) { return CoverOf(stripe) <= sequence; });
  const SequenceNumber cover = CoverOf(first);
  return newer_stripes_ == 0 ? cover : std::min(cover, newer_stripes_);
}

SequenceNumber SurvivingRecords::oldest_reader() const noexcept {
  const SequenceNumber sequence = TagSequence(tag_);
  const size_t stripe = StripeOf(sequence);
  return stripe == rules_.boundaries.size() ? sequence : rules_.boundaries[stripe];
}

void SurvivingRecords::Show(Tag tag, uint64_t time_ms, std::string_view value) {
  key_ = present_key_;
  tag_ = tag;
  time_ms_ = time_ms;
  value_ = value;
  hidden_from_ = HiderOf(TagSequence(tag));
  is_built_on_ = TagKind(tag) == RecordKind::kMerge;
}

// What is left of a put that has expired; nothing: it goes.
std::optional<SurvivingRecords::Kept> SurvivingRecords::Expired(SequenceNumber sequence,
                                                                uint64_t expiry_ms, size_t stripe,
                                                                bool is_built_on) {
  const bool has_merge_above =
      rules_.has_merges_above &&
      (!rules_.has_merge_above || rules_.has_merge_above(present_key_, expiry_ms));
  if (is_built_on || has_merge_above) {
    return Kept{MakeTag(sequence, RecordKind::kPut), expiry_ms, {}};
  }
  if (stripe == 0 && IsBottom()) return std::nullopt;
  return Kept{MakeTag(sequence, RecordKind::kDelete), 0, {}};
}

bool SurvivingRecords::Next() {
  while (true) {
    if (shown_ < waiting_.size()) {
      const Kept& kept = waiting_[shown_++];
      Enter(TagSequence(kept.tag));
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

// The next version of the present key, in descending order.
void SurvivingRecords::Enter(SequenceNumber sequence) noexcept {
  const SequenceNumber newer = std::exchange(present_sequence_, sequence);
  const size_t stripe = StripeOf(sequence);
  if (stripe != std::exchange(present_stripe_, stripe)) newer_stripes_ = newer;
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
  const Tag tag = source_->tag();
  const SequenceNumber sequence = TagSequence(tag);
  passed_ = true;
  if (sequence == present_sequence_) return false;
  Enter(sequence);
  const size_t stripe = present_stripe_;
  if (stripe == rules_.boundaries.size()) {  // above all boundaries
    Show(tag, source_->time_ms(), source_->value());
    return true;
  }
  if (stripe == hidden_stripe_) return false;
  if (CoverOf(stripe) > sequence) {
    hidden_stripe_ = stripe;
    return false;
  }
  if (TagKind(tag) == RecordKind::kMerge) {
    TakeMerges();
    return false;
  }
  hidden_stripe_ = stripe;
  const uint64_t expiry_ms = source_->time_ms();
  if (expiry_ms != 0 && expiry_ms <= rules_.now_ms) {
    const std::optional<Kept> left = Expired(sequence, expiry_ms, stripe, is_built_on_);
    if (left) Show(left->tag, left->time_ms, {});
    return left.has_value();
  }
  if (TagKind(tag) == RecordKind::kDelete && stripe == 0 && IsBottom()) return false;
  Show(tag, expiry_ms, source_->value());
  return true;
}

// Merges

/// Of merges_, those of one stripe.
struct SurvivingRecords::Group {
  size_t begin;
  size_t end;   ///< Those from here on are covered by a range delete.
  size_t next;  ///< Where the next group begins.
  size_t stripe;
  bool base_is_known;  ///< They build on the source's record, if has_base, else on nothing.
  bool has_base;
};

// The source stands at a merge, the newest version of its stripe. Takes all merges of the key, of
// older stripes too, and leaves the source behind them. What is to be written of them waits.
void SurvivingRecords::TakeMerges() {
  passed_ = false;  // the source will stand at a record that was not judged, or is hidden
  if (!GatherMerges()) return;
  const std::optional<uint64_t> expiry_ms = ExpiryUnderMerges();
  for (size_t at = 0; at < merges_.size();) {
    const Group group = GroupAt(at);
    KeepGroup(group, expiry_ms);
    hidden_stripe_ = group.stripe;
    at = group.next;
  }
  merges_.clear();
}

// False: the source has failed.
bool SurvivingRecords::GatherMerges() {
  merges_.clear();
  while (IsAtPresentKey() && TagKind(source_->tag()) == RecordKind::kMerge) {
    if (!merges_.empty()) ++seen_;
    merges_.push_back({source_->tag(), source_->time_ms(), std::string(source_->value())});
    source_->Next();
  }
  return source_->status().ok();
}

// When what all gathered merges build on expires; 0: it does not, or not between two of them.
// Nothing: nobody knows.
std::optional<uint64_t> SurvivingRecords::ExpiryUnderMerges() {
  if (IsAtPresentKey()) return source_->time_ms();
  if (IsBottom() || merges_.size() == 1) return 0;
  if (!rules_.expiry_below) return std::nullopt;
  Chain chain{.oldest = TagSequence(merges_.back().tag),
              .earliest_ms = merges_.back().time_ms,
              .latest_ms = merges_.back().time_ms,
              .count = merges_.size()};
  for (const Kept& merge : merges_) {
    chain.earliest_ms = std::min(chain.earliest_ms, merge.time_ms);
    chain.latest_ms = std::max(chain.latest_ms, merge.time_ms);
  }
  return rules_.expiry_below(present_key_, chain);
}

SurvivingRecords::Group SurvivingRecords::GroupAt(size_t begin) {
  const auto sequence_at = [&](size_t at) { return TagSequence(merges_[at].tag); };
  const size_t stripe = StripeOf(sequence_at(begin));
  const SequenceNumber cover = CoverOf(stripe);
  const auto in_stripe = [&](size_t at) {
    return at < merges_.size() && StripeOf(sequence_at(at)) == stripe;
  };
  Group group{.begin = begin,
              .end = begin,
              .next = begin,
              .stripe = stripe,
              .base_is_known = false,
              .has_base = false};
  while (in_stripe(group.end) && sequence_at(group.end) >= cover) ++group.end;
  group.next = group.end;
  while (in_stripe(group.next)) ++group.next;
  if (group.next > group.end) {
    group.base_is_known = true;
  } else if (group.next < merges_.size()) {
    group.base_is_known = cover > sequence_at(group.next);
  } else if (IsAtPresentKey()) {
    const SequenceNumber below = TagSequence(source_->tag());
    group.has_base = below >= cover && StripeOf(below) == stripe;
    group.base_is_known = group.has_base || below < cover;
  } else {
    group.base_is_known = IsBottom();
  }
  return group;
}

void SurvivingRecords::KeepGroup(const Group& group, std::optional<uint64_t> expiry_ms) {
  if (group.begin == group.end) return;
  const size_t first = waiting_.size();
  const bool is_built_on =
      first == 0 ? is_built_on_ : TagKind(waiting_.back().tag) == RecordKind::kMerge;
  KeepMerges(group, group.base_is_known && !group.has_base ? 0 : expiry_ms);
  if (!group.base_is_known) return;

  std::vector<PendingMerge> merges;
  for (size_t i = first; i < waiting_.size(); ++i) {
    merges.push_back({waiting_[i].value, waiting_[i].time_ms});
  }
  std::optional<std::string_view> below;
  if (group.has_base && TagKind(source_->tag()) == RecordKind::kPut) {
    below = source_->value();
  }
  // Who sees the newest of these merges reads at its time or later, also where a snapshot of before
  // it makes now_ms an earlier time.
  const uint64_t now_ms = std::max(rules_.now_ms, merges_[group.begin].time_ms);
  auto merged = ApplyMerges(merges, below, group.has_base ? source_->time_ms() : 0, now_ms);
  if (!merged) {
    // Readers are to be told what does not fit together, so all of it stays.
    if (group.has_base) {
      waiting_.push_back({source_->tag(), source_->time_ms(), std::string(source_->value())});
    }
    return;
  }
  const SequenceNumber newest = TagSequence(waiting_[first].tag);
  waiting_.resize(first);
  if (merged->expiry_ms == 0 || merged->expiry_ms > rules_.now_ms) {
    waiting_.push_back(
        {MakeTag(newest, RecordKind::kPut), merged->expiry_ms, std::move(merged->value)});
  } else if (auto left = Expired(newest, merged->expiry_ms, group.stripe, is_built_on)) {
    waiting_.push_back(*std::move(left));
  }
}

// As few merges as do the same. `expiry_ms`: of what they build on, which must not expire between
// two that are combined: those behind the first one that was written before are apart from the
// others. Nothing: it is not known, and only what was written at one moment is combined.
void SurvivingRecords::KeepMerges(const Group& group, std::optional<uint64_t> expiry_ms) {
  MergeRun run;
  Tag newest = 0;  // of the run
  bool is_behind = false;
  const auto keep = [&] {
    if (run.count() == 0) return;
    PendingMerge merge = run.Take();
    waiting_.push_back({newest, merge.time_ms, std::move(merge.value)});
  };
  for (size_t i = group.begin; i < group.end; ++i) {
    const Kept& merge = merges_[i];
    bool may_join = run.count() != 0;
    if (!expiry_ms) {
      may_join = may_join && merge.time_ms == run.latest_ms();
    } else if (!is_behind && merge.time_ms < *expiry_ms) {
      is_behind = true;
      may_join = false;
    }
    if (may_join && run.Add(merge.value, merge.time_ms)) continue;
    keep();
    newest = merge.tag;
    run.Add(merge.value, merge.time_ms);
  }
  keep();
}

}  // namespace basalt::base
