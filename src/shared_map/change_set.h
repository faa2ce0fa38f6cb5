#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/seeded_hash.h"
#include "shared_map/base_file.h"
#include "shared_map/change_index.h"
#include "shared_map/change_log.h"
#include "shared_map/version_files.h"

namespace basalt::shared_map {

/// Which of a set's changes a lookup sees: those that lie before a location. That is always one at
/// which a batch ends, so that batches are seen whole.
struct ReadLimit {
  /// Sees all changes.
  static constexpr uint64_t kNone = ~uint64_t{0};

  uint64_t end = kNone;
  /// `end` moves on to where the writer has made changes visible, when a lookup comes to one behind
  /// it: the first lookup may begin with 0.
  bool follows = false;
};

/// A log of changes and the index over it. Thread-safe for readers; the writer's functions belong
/// to it alone.
class ChangeSet {
 public:
  ChangeSet(std::shared_ptr<ChangeIndex> index,
            std::vector<std::shared_ptr<const LogSegment>> segments);

  ChangeIndex& index() const noexcept { return *index_; }
  const std::shared_ptr<ChangeIndex>& shared_index() const noexcept { return index_; }
  const std::vector<std::shared_ptr<const LogSegment>>& segments() const noexcept {
    return segments_;
  }

  /// The record of the newest change of a key within `limit`. kAbsent: there is none; what lies
  /// below this set counts.
  Found Find(uint64_t hash, std::string_view key, ReadLimit* limit,
             RecordRef* record) const noexcept;
  /// The same of a set that gets no more changes, or for its writer.
  Found Find(uint64_t hash, std::string_view key, RecordRef* record) const noexcept {
    ReadLimit all;
    return Find(hash, key, &all, record);
  }
  /// Where the key's word is, or would go: its position, and the word or 0. kCorrupt: a change on
  /// the way to it is damaged.
  Found FindWord(uint64_t hash, std::string_view key, uint64_t* position,
                 Change* change) const noexcept;
  /// The first change that may be of a key of a hash.
  struct Candidate {
    bool is_there;
    Location location;
    const LogSegment* segment;  // Null: the index is damaged.

    [[gnu::always_inline]] void Prefetch() const noexcept {
      if (segment != nullptr) segment->Prefetch(location);
    }
    /// Gives its record if it is the key's newest change, and lies before the location `end`.
    [[gnu::always_inline]] bool Is(std::string_view key, uint64_t end,
                                   RecordRef* record) const noexcept {
      return segment != nullptr && location < end && segment->RecordAt(location, record) &&
             base::SameBytes(record->key(), key);
    }
  };
  Candidate CandidateOf(uint64_t hash) const noexcept { return AtWord(index_->Candidate(hash)); }
  /// The segment that has a location. Null: none has.
  const LogSegment* SegmentOf(Location location) const noexcept {
    // Which of them cannot be predicted, so all are asked.
    size_t before = 0;
    for (const Location begin : begins_) before += begin <= location ? 1 : 0;
    if (before == 0) return nullptr;
    const LogSegment* const segment = segments_[before - 1].get();
    return segment->Holds(location) ? segment : nullptr;
  }
  bool At(Location location, Change* change) const noexcept;
  /// Where the visible changes end, behind a whole batch. Corruption: the index is damaged.
  Result<uint64_t> VisibleEnd() const;

  /// Visits the newest change of every key, each verified, in the index's order: from all over the
  /// log. The visitor must not change the index. Corruption: one of them is damaged.
  Status WalkNewest(const std::function<void(Location, const Change&)>& visit) const;

  /// Verifies that the index leads to the newest change of every key before `visible_end`, and of
  /// others to none before that. It may be written on meanwhile. Of an index whose file has been
  /// read from a disk.
  Status VerifyIndex(const ChangeSetEntry& entry, Location visible_end,
                     const base::SeededHash& hash_of) const;

 private:
  /// Of a word of the index; 0: not there.
  Candidate AtWord(uint64_t word) const noexcept {
    if (word == 0) return {};
    const Location location = ChangeIndex::LocationOf(word);
    return {true, location, SegmentOf(location)};
  }

  std::shared_ptr<ChangeIndex> index_;
  std::vector<std::shared_ptr<const LogSegment>> segments_;
  std::vector<Location> begins_;  // Theirs.
};

/// Walks over the changes of all segments of a set, in order. `at_least`: as WalkOpen, of an open
/// last segment.
Result<LogEnd> WalkChanges(std::span<const std::shared_ptr<const LogSegment>> segments,
                           const ChangeSetEntry& entry, Location at_least,
                           const std::function<void(Location, const Change&)>& visit);

/// The same of those before `visible_end`, which an index of this process's machine says, of a log
/// that may be written on meanwhile.
Status WalkVisible(std::span<const std::shared_ptr<const LogSegment>> segments,
                   const ChangeSetEntry& entry, Location visible_end,
                   const std::function<void(Location, const Change&)>& visit);

/// What the changes of a set come to.
class ChangeCount {
 public:
  /// Of the changes of `set`. The list counts entries as of a place in the newest set, behind all
  /// changes of the one that is being compacted.
  ChangeCount(const VersionFiles& list, const ChangeSetEntry& set)
      : counted_(&set == list.change_sets.data() ? list.counted : kLocationMax),
        entries_(list.entries) {}
  void Add(Location location, const Change& change) noexcept {
    ++changes_;
    if (change.replaces == 0) ++keys_;
    const bool had_value = (change.record.header().flags & kFlagReplacesValue) != 0;
    if (location < counted_ || had_value == change.is_put()) return;
    entries_ += change.is_put() ? 1 : ~uint64_t{0};
  }
  /// How many keys the map has, if they are the newest changes: by its list, and the changes since.
  uint64_t entries() const noexcept { return entries_; }
  uint64_t changes() const noexcept { return changes_; }
  /// How many keys have changes.
  uint64_t keys() const noexcept { return keys_; }

 private:
  const uint64_t counted_;
  uint64_t entries_;
  uint64_t changes_ = 0;
  uint64_t keys_ = 0;
};

/// Fills the index of a set, of which nobody knows yet and whose capacity is for `count`, by the
/// changes before `end`. Corruption: a change is damaged, or they are of more keys.
Status FillIndex(const ChangeSet& set, const ChangeSetEntry& entry, Location end,
                 const base::SeededHash& hash_of, const ChangeCount& count);

}  // namespace basalt::shared_map
