#include "base/range_cover.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/branchless_search.h"
#include "base/coding.h"

namespace basalt::base {

// A sweep over all begins and ends, with the sequences of the ranges that are open at each.
RangeCover::RangeCover(const std::vector<Range>& ranges) {
  struct Event {
    std::string_view key;
    SequenceNumber sequence;
    bool opens;
  };
  std::vector<Event> events;
  events.reserve(2 * ranges.size());
  for (const Range& range : ranges) {
    if (range.begin >= range.end) continue;
    events.push_back({range.begin, range.sequence, true});
    events.push_back({range.end, range.sequence, false});
  }
  std::ranges::sort(events, {}, &Event::key);
  std::multiset<SequenceNumber> open;
  for (size_t i = 0; i < events.size();) {
    const std::string_view key = events[i].key;
    for (; i < events.size() && events[i].key == key; ++i) {
      if (events[i].opens) {
        open.insert(events[i].sequence);
      } else if (const auto found = open.find(events[i].sequence); found != open.end()) {
        open.erase(found);
      }
    }
    Add(key, open.empty() ? 0 : *open.rbegin());
  }
  IndexPieces();
}

RangeCover RangeCover::Of(std::span<const RangeCover* const> covers) {
  RangeCover all;
  std::vector<size_t> next(covers.size());  // Of each cover, the piece that has not begun yet.
  while (true) {
    std::optional<std::string_view> begin;
    for (size_t i = 0; i < covers.size(); ++i) {
      if (next[i] == covers[i]->pieces_.size()) continue;
      const std::string_view its_begin = covers[i]->pieces_[next[i]].begin;
      if (!begin || its_begin < *begin) begin = its_begin;
    }
    if (!begin) break;
    SequenceNumber sequence = 0;
    for (size_t i = 0; i < covers.size(); ++i) {
      const std::vector<Piece>& pieces = covers[i]->pieces_;
      if (next[i] < pieces.size() && pieces[next[i]].begin == *begin) ++next[i];
      if (next[i] > 0) sequence = std::max(sequence, pieces[next[i] - 1].sequence);
    }
    all.Add(*begin, sequence);
  }
  all.IndexPieces();
  return all;
}

void RangeCover::Add(std::string_view begin, SequenceNumber sequence) {
  newest_ = std::max(newest_, sequence);
  const bool is_new = pieces_.empty() ? sequence != 0 : pieces_.back().sequence != sequence;
  if (is_new) pieces_.push_back({begin, sequence});
}

void RangeCover::IndexPieces() {
  if (pieces_.empty()) return;
  const std::string_view first = pieces_.front().begin;
  shared_ = first.substr(0, SharedBytes(first, pieces_.back().begin));
  prefixes_.reserve(pieces_.size());
  for (const Piece& piece : pieces_) prefixes_.push_back(KeyPrefix(piece.begin, shared_.size()));
  samples_.reserve(prefixes_.size() / kSampled + 1);
  for (size_t i = 0; i < prefixes_.size(); i += kSampled) samples_.push_back(prefixes_[i]);
}

size_t RangeCover::FirstNotBelow(uint64_t prefix) const noexcept {
  // The sample before it is below, so it lies behind that one, and not behind this one.
  const size_t sample = base::FirstNotBelow(samples_.data(), samples_.size(), prefix);
  if (sample == 0) return 0;
  const size_t begin = (sample - 1) * kSampled;
  constexpr size_t kLine = 64 / sizeof(uint64_t);
  for (size_t i = 0; i < kSampled; i += kLine) __builtin_prefetch(prefixes_.data() + begin + i);
  return begin + base::FirstNotBelow(&prefixes_[begin],
                                     std::min(kSampled, prefixes_.size() - begin), prefix);
}

std::vector<RangeCover::Piece>::const_iterator RangeCover::After(
    std::string_view key) const noexcept {
  const int beside = key.substr(0, shared_.size()).compare(shared_);
  if (beside != 0) return beside < 0 ? pieces_.begin() : pieces_.end();
  const uint64_t prefix = KeyPrefix(key, shared_.size());
  const size_t first = FirstNotBelow(prefix);
  size_t last = first;
  if (first < prefixes_.size() && prefixes_[first] == prefix) {
    const size_t more = prefixes_.size() - first;
    last = prefix == UINT64_MAX ? prefixes_.size()
                                : first + base::FirstNotBelow(&prefixes_[first], more, prefix + 1);
  }
  return std::upper_bound(
      pieces_.begin() + static_cast<ptrdiff_t>(first),
      pieces_.begin() + static_cast<ptrdiff_t>(last), key,
      [](std::string_view wanted, const Piece& piece) { return wanted < piece.begin; });
}

SequenceNumber RangeCover::SequenceAt(std::string_view key) const noexcept {
  const auto after = After(key);
  return after == pieces_.begin() ? 0 : std::prev(after)->sequence;
}

CoverStretch RangeCover::StretchOf(std::string_view key) const noexcept {
  const auto after = After(key);
  CoverStretch stretch;
  if (after != pieces_.end()) stretch.end = after->begin;
  if (after == pieces_.begin()) return stretch;
  stretch.begin = std::prev(after)->begin;
  stretch.sequence = std::prev(after)->sequence;
  return stretch;
}

RangeCovers::RangeCovers(std::vector<const RangeCover*> covers,
                         const std::vector<RangeCover::Range>& loose)
    : loose_(loose), covers_(std::move(covers)) {
  covers_.push_back(&loose_);
  std::erase_if(covers_, [](const RangeCover* cover) { return cover->empty(); });
}

CoverStretch RangeCovers::StretchOf(std::string_view key) const noexcept {
  CoverStretch all;
  for (const RangeCover* cover : covers_) {
    const CoverStretch its = cover->StretchOf(key);
    if (its.begin && (!all.begin || *its.begin > *all.begin)) all.begin = its.begin;
    if (its.end && (!all.end || *its.end < *all.end)) all.end = its.end;
    all.sequence = std::max(all.sequence, its.sequence);
  }
  return all;
}

std::shared_ptr<const RangeCovers> NewRangeCovers(std::vector<const RangeCover*> covers,
                                                  const std::vector<RangeCover::Range>& loose) {
  if (covers.empty() && loose.empty()) return nullptr;
  return std::make_shared<const RangeCovers>(std::move(covers), loose);
}

SequenceNumber RangeCovers::newest() const noexcept {
  SequenceNumber newest = 0;
  for (const RangeCover* cover : covers_) newest = std::max(newest, cover->newest());
  return newest;
}

}  // namespace basalt::base
