#include "db/db_iterator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hidden_stretches.h"
#include "base/merging_iterator.h"
#include "base/visible_iterator.h"
#include "db/core.h"
#include "table/concatenating_iterator.h"

namespace basalt::db {
namespace {

/// What an iterator is opened for.
struct Wanted {
  uint32_t keyspace;
  base::SequenceNumber at;
  const ScanOptions& options;

  /// Whether the table may hold a key within the bounds.
  bool Touches(const TableFile& file) const noexcept {
    const table::TableProperties& properties = file.properties();
    if (options.prefix) {
      return properties.largest_key >= *options.prefix &&
             std::string_view(properties.smallest_key).substr(0, options.prefix->size()) <=
                 *options.prefix;
    }
    return !(options.lower && properties.largest_key < *options.lower) &&
           !(options.upper && properties.smallest_key >= *options.upper);
  }
};

/// `ranges` (null: none) must outlive what is returned.
Result<std::unique_ptr<base::RecordIterator>> NewSource(Core* core, const ReadState& state,
                                                        const Wanted& wanted,
                                                        const base::RangeCovers* ranges) {
  const bool fill_cache = wanted.options.fill_cache;
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  const auto add = [&](const Generation& generation) {
    if (generation.table->record_count() == 0) return;
    children.push_back(generation.table->NewIterator(wanted.keyspace, wanted.at));
  };
  add(*state.active);
  for (const auto& sealed : state.sealed) add(*sealed);
  const Tree* const tree = state.version->tree(wanted.keyspace);
  if (tree == nullptr) return base::NewMergingIterator(std::move(children));
  const size_t above = children.size();
  for (const std::shared_ptr<TableFile>& file : tree->levels[0]) {
    if (!wanted.Touches(*file)) continue;
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
    children.push_back(base::WithoutHiddenStretches(table->NewIterator(fill_cache), ranges,
                                                    file->properties().largest_sequence));
  }
  const size_t level0_end = children.size();
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    std::vector<std::shared_ptr<const table::Table>> sorted;
    base::SequenceNumber newest = 0;
    for (const std::shared_ptr<TableFile>& file : tree->levels[level]) {
      if (!wanted.Touches(*file)) continue;
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      sorted.push_back(table->shared_from_this());
      newest = std::max(newest, file->properties().largest_sequence);
    }
    if (sorted.empty()) continue;
    children.push_back(base::WithoutHiddenStretches(
        table::NewConcatenatingIterator(std::move(sorted), fill_cache), ranges, newest));
  }
  // Compacted, level 0 would be a part of the next one that there is, or be the only one.
  const size_t saved = level0_end - above;
  if (saved != 0) core->CountScan(*tree, saved - (children.size() == level0_end ? 1 : 0));
  return base::NewMergingIterator(std::move(children));
}

/// Of all range deletes up to the iterator's sequence; null: there are none.
std::shared_ptr<const base::RangeCovers> RangesOf(const ReadState& state, const Wanted& wanted) {
  std::vector<const base::RangeCover*> covers;
  std::vector<base::RangeCover::Range> loose;
  const auto add = [&](const Generation& generation) {
    generation.table->range_deletes().Collect(wanted.keyspace, wanted.at, &covers, &loose);
  };
  add(*state.active);
  for (const auto& sealed : state.sealed) add(*sealed);
  const Tree* const tree = state.version->tree(wanted.keyspace);
  if (tree != nullptr) tree->range_deletes.Collect(wanted.at, &covers, &loose);
  return base::NewRangeCovers(std::move(covers), loose);
}

}  // namespace

std::unique_ptr<Iterator> NewDBIterator(const std::shared_ptr<Core>& core,
                                        const ScanOptions& options) {
  if (Status usable = core->CheckUsable(); !usable.ok()) return base::NewErrorIterator(usable);
  if (Status bounds = base::CheckBounds(options); !bounds.ok()) {
    return base::NewErrorIterator(bounds);
  }
  std::shared_ptr<const ReadState> state = core->State();
  if (Status known = Core::CheckKeyspace(*state, options.keyspace); !known.ok()) {
    return base::NewErrorIterator(known);
  }
  base::SequenceNumber at = core->visible();
  if (options.snapshot != nullptr) {
    const auto sequence = core->SnapshotSequence(*options.snapshot);
    if (!sequence) return base::NewErrorIterator(sequence.error());
    at = *sequence;
  }
  const Wanted wanted{static_cast<uint32_t>(options.keyspace), at, options};
  auto ranges = RangesOf(*state, wanted);
  auto source = NewSource(core.get(), *state, wanted, ranges.get());
  if (!source) return base::NewErrorIterator(source.error());
  return base::NewVisibleIterator({.keeps_alive = std::move(state),
                                   .check_usable = [core] { return core->CheckUsable(); },
                                   .ranges = std::move(ranges),
                                   .at = at,
                                   .now_ms = core->WallMillis(),
                                   .source = std::move(*source),
                                   .on_many_hidden = [core] { core->FlushDeletes(); }},
                                  options);
}

}  // namespace basalt::db
