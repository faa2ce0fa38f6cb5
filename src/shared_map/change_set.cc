#include "shared_map/change_set.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"

namespace basalt::shared_map {

ChangeSet::ChangeSet(std::shared_ptr<ChangeIndex> index,
                     std::vector<std::shared_ptr<const LogSegment>> segments)
    : index_(std::move(index)), segments_(std::move(segments)) {
  begins_.reserve(segments_.size());
  for (const auto& segment : segments_) begins_.push_back(segment->begin());
}

bool ChangeSet::At(Location location, Change* change) const noexcept {
  const LogSegment* const segment = SegmentOf(location);
  return segment != nullptr && segment->At(location, change);
}

Result<uint64_t> ChangeSet::VisibleEnd() const {
  if (const std::optional<uint64_t> end = index_->visible_end()) return *end;
  return Status(StatusCode::kCorruption,
                segments_.front()->path() +
                    ": the state of the index over this log is damaged; opening the map to write "
                    "makes a new one");
}

Found ChangeSet::FindWord(uint64_t hash, std::string_view key, uint64_t* position,
                          Change* change) const noexcept {
  const ChangeIndex& index = *index_;
  *position = index.FirstPosition(hash);
  for (uint64_t probes = 0; probes < index.capacity(); ++probes) {
    const uint64_t word = index.WordAt(*position);
    if (word == 0) return Found::kAbsent;
    if (ChangeIndex::Matches(word, hash)) {
      if (!At(ChangeIndex::LocationOf(word), change)) return Found::kCorrupt;
      if (change->record.key() == key) return Found::kPresent;
    }
    *position = index.NextPosition(*position);
  }
  return Found::kCorrupt;  // A free word is always left.
}

Found ChangeSet::Find(uint64_t hash, std::string_view key, ReadLimit* limit,
                      RecordRef* record) const noexcept {
  if (!index_->MayHold(hash)) return Found::kAbsent;
  const Candidate candidate = CandidateOf(hash);
  if (!candidate.is_there) return Found::kAbsent;
  candidate.Prefetch();
  if (candidate.location >= limit->end && limit->follows) {
    // The writer stores this behind all words of a batch: one that is seen to be visible is seen
    // whole.
    const std::optional<uint64_t> end = index_->visible_end();
    if (!end) return Found::kCorrupt;
    limit->end = std::max(limit->end, *end);
  }
  if (candidate.Is(key, limit->end, record)) [[likely]]
    return Found::kPresent;

  Change change;
  uint64_t position = 0;
  const Found found = FindWord(hash, key, &position, &change);
  if (found != Found::kPresent) return found;
  while (change.location >= limit->end) {
    if (change.replaces == 0) return Found::kAbsent;
    // Changes replace earlier ones, so that this ends.
    if (change.replaces >= change.location || !At(change.replaces, &change)) return Found::kCorrupt;
  }
  *record = change.record;
  return Found::kPresent;
}

Status ChangeSet::WalkNewest(const std::function<void(Location, const Change&)>& visit) const {
  // Words ahead of the one that is visited: their changes, which lie anywhere, are asked for.
  constexpr uint64_t kAhead = 32;
  for (uint64_t at = 0; at < index_->capacity(); ++at) {
    if (at + kAhead < index_->capacity()) AtWord(index_->WordAt(at + kAhead)).Prefetch();
    const uint64_t word = index_->WordAt(at);
    if (word == 0) continue;
    const Location location = ChangeIndex::LocationOf(word);
    Change change;
    if (!At(location, &change)) {
      const LogSegment* const segment = SegmentOf(location);
      const std::string& path = (segment != nullptr ? *segment : *segments_.front()).path();
      return Status(
          StatusCode::kCorruption,
          path + ": the change at location " + std::to_string(location) + " of the log is damaged");
    }
    visit(location, change);
  }
  return Status();
}

Status ChangeSet::VerifyIndex(const ChangeSetEntry& entry, Location visible_end,
                              const base::SeededHash& hash_of) const {
  const auto damaged = [this](const std::string& what) {
    return Status(StatusCode::kCorruption,
                  segments_.front()->path() + ": the index over this log " + what +
                      "; opening the map for writing (SharedMap::Open) makes a new one");
  };
  bool any = false;
  Location lost = 0;
  std::vector<bool> is_found(index_->capacity());  // Words to which the changes' keys lead.
  const auto verify = [&](Location location, const Change& change) {
    any = true;
    if (lost != 0) return;
    Change newest;
    const std::string_view key = change.record.key();
    uint64_t position = 0;
    const uint64_t hash = hash_of(key);
    if (!index_->MayHold(hash) || FindWord(hash, key, &position, &newest) != Found::kPresent ||
        newest.location < location) {
      lost = location;
    } else {
      is_found[position] = true;
    }
  };
  BASALT_RETURN_IF_ERROR(WalkVisible(segments_, entry, visible_end, verify));
  // A writer may have made the first change meanwhile.
  if (lost != 0 || (any && !index_->HasChanges())) {
    return damaged("does not lead to location " + std::to_string(lost));
  }
  for (uint64_t at = 0; at < index_->capacity(); ++at) {
    const uint64_t word = index_->WordAt(at);
    if (word == 0 || is_found[at]) continue;
    // Of a key whose first change a writer has made meanwhile, or one that was killed before more
    // than the word could be seen.
    const Location location = ChangeIndex::LocationOf(word);
    Change change;
    uint64_t position = 0;
    const bool is_new = location >= visible_end && At(location, &change) &&
                        FindWord(hash_of(change.record.key()), change.record.key(), &position,
                                 &change) == Found::kPresent &&
                        position == at;
    if (!is_new) return damaged("has a word too many, which leads to " + std::to_string(location));
  }
  return Status();
}

Result<LogEnd> WalkChanges(std::span<const std::shared_ptr<const LogSegment>> segments,
                           const ChangeSetEntry& entry, Location at_least,
                           const std::function<void(Location, const Change&)>& visit) {
  Result<LogEnd> end = LogEnd{};
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentEntry& segment = entry.segments[i];
    if (segment.end != 0) {
      end = WalkSealed(*segments[i], {.end = segment.end, .last_checksum = segment.last_checksum},
                       visit);
    } else {
      end = WalkOpen(*segments[i], at_least, visit);
    }
    if (!end) return end;
  }
  return end;
}

Status WalkVisible(std::span<const std::shared_ptr<const LogSegment>> segments,
                   const ChangeSetEntry& entry, Location visible_end,
                   const std::function<void(Location, const Change&)>& visit) {
  ChangeSetEntry closed = entry;
  if (closed.segments.back().end == 0) closed.segments.pop_back();
  const size_t count = closed.segments.size();
  BASALT_RETURN_IF_ERROR(WalkChanges(segments.first(count), closed, 0, visit).status());
  if (count == segments.size()) return Status();
  return WalkUntil(*segments.back(), visible_end, visit).status();
}

Status FillIndex(const ChangeSet& set, const ChangeSetEntry& entry, Location end,
                 const base::SeededHash& hash_of, const ChangeCount& count) {
  ChangeIndex& index = set.index();
  uint64_t keys = 0;
  bool damaged = false;
  BASALT_RETURN_IF_ERROR(
      WalkVisible(set.segments(), entry, end, [&](Location location, const Change& change) {
        const std::string_view key = change.record.key();
        const uint64_t hash = hash_of(key);
        uint64_t position = 0;
        Change older;
        const Found found = set.FindWord(hash, key, &position, &older);
        if (found == Found::kAbsent) ++keys;
        damaged = damaged || found == Found::kCorrupt || keys > count.keys();
        if (!damaged) index.StoreWord(hash, position, location);
      }));
  if (damaged) {
    return Status(StatusCode::kCorruption,
                  set.segments().front()->path() +
                      " or a later log: its changes do not name the changes that they replace");
  }
  index.StoreState(
      {.visible_end = end, .entries = count.entries(), .changes = count.changes(), .keys = keys});
  return Status();
}

}  // namespace basalt::shared_map
