#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "base/internal_key.h"
#include "base/merge_operator.h"
#include "base/range_cover.h"
#include "base/record_iterator.h"

// From versions in internal order to what a user sees: the newest version of each key at or below a
// sequence number, within the bounds, unless that is a delete, has expired, or lies under a range
// delete; merges are applied to what they find.

namespace basalt::base {

/// What is looked at. Destroyed from the last to the first.
struct View {
  std::shared_ptr<const void> keeps_alive{};    ///< What the source reads from.
  std::function<Status()> check_usable{};       ///< Asked before each move, if set.
  std::shared_ptr<const RangeCovers> ranges{};  ///< Of the range deletes up to `at`; null: none.
  SequenceNumber at = kMaxSequence;
  uint64_t now_ms = 0;  ///< What expires at or before it has expired. Wall ms since 1970.
  std::unique_ptr<RecordIterator> source{};
  /// Called once, by a move that passes this many records which it does not show, if set.
  std::function<void()> on_many_hidden{};
  static constexpr uint64_t kManyHidden = 8192;
  /// What the merges of a key come to at `at` and `now_ms`, found by a shorter way than a walk over
  /// them; nothing: the key is absent. Called where a walk meets many, if set.
  std::function<Result<std::optional<MergedValue>>(std::string_view key)> read_merged{};
  /// The source's keys and values stay where they are when it moves on, for as long as it lives;
  /// and a step forward throws nothing.
  bool records_stay = false;
};

/// Ok, or what is wrong with the bounds.
Status CheckBounds(const ReadOptions& options);

/// `options`: bounds that CheckBounds accepts, and keys_only.
std::unique_ptr<Iterator> NewVisibleIterator(View&& view, const ReadOptions& options);

/// Never Valid; `status` is what went wrong.
std::unique_ptr<Iterator> NewErrorIterator(Status status);

}  // namespace basalt::base
