#include "db/retained_versions.h"

#include <algorithm>

namespace basalt::db {

void RetainedVersions::Add(SequenceNumber oldest_reader, SequenceNumber hidden_from,
                           uint64_t bytes) {
  bytes_ += bytes;
  const auto place = std::ranges::lower_bound(groups_, oldest_reader, {}, &Group::oldest_reader);
  if (place != groups_.end() && place->oldest_reader == oldest_reader) {
    place->hidden_from = std::max(place->hidden_from, hidden_from);
    place->bytes += bytes;
    return;
  }
  groups_.insert(place, {oldest_reader, hidden_from, bytes});
  if (groups_.size() > kGroupsMax) JoinSmallest();
}

// The two neighbours that have the fewest bytes together become one group.
void RetainedVersions::JoinSmallest() {
  const auto bytes_with_next = [](const Group& group) { return group.bytes + (&group)[1].bytes; };
  const auto first =
      std::ranges::min_element(groups_.begin(), groups_.end() - 1, {}, bytes_with_next);
  first->hidden_from = std::max(first->hidden_from, first[1].hidden_from);
  first->bytes += first[1].bytes;
  groups_.erase(first + 1);
}

uint64_t RetainedVersions::BytesInVain(std::span<const SequenceNumber> boundaries) const noexcept {
  uint64_t bytes = 0;
  for (const Group& group : groups_) {
    const auto reader = std::ranges::lower_bound(boundaries, group.oldest_reader);
    if (reader == boundaries.end() || *reader >= group.hidden_from) bytes += group.bytes;
  }
  return bytes;
}

}  // namespace basalt::db
