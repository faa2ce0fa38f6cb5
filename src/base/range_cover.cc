#include "base/range_cover.h"

#include <algorithm>
#include <set>

namespace basalt::base {

// A sweep over all begins and ends, with the sequences of the ranges that are open at each.
RangeCover::RangeCover(const std::vector<Range>& ranges) {
  struct Event {
    std::string_view key;
    SequenceNumber sequence;
    bool opens;
  };
  std::vector<Event> events;
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
    const SequenceNumber sequence = open.empty() ? 0 : *open.rbegin();
    newest_ = std::max(newest_, sequence);
    if (pieces_.empty() || pieces_.back().sequence != sequence) {
      pieces_.push_back({std::string(key), sequence});
    }
  }
}

std::vector<RangeCover::Piece>::const_iterator RangeCover::After(
    std::string_view key) const noexcept {
  return std::upper_bound(
      pieces_.begin(), pieces_.end(), key,
      [](std::string_view wanted, const Piece& piece) { return wanted < piece.begin; });
}

SequenceNumber RangeCover::SequenceAt(std::string_view key) const noexcept {
  const auto after = After(key);
  return after == pieces_.begin() ? 0 : std::prev(after)->sequence;
}

RangeCover::Stretch RangeCover::StretchOf(std::string_view key) const noexcept {
  const auto after = After(key);
  Stretch stretch;
  if (after != pieces_.end()) stretch.end = after->begin;
  if (after == pieces_.begin()) return stretch;
  stretch.begin = std::prev(after)->begin;
  stretch.sequence = std::prev(after)->sequence;
  return stretch;
}

}  // namespace basalt::base
