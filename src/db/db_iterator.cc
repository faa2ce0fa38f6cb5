#include "db/db_iterator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hidden_stretches.h"
#include "base/merging_iterator.h"
#include "base/visible_iterator.h"
#include "db/core.h"
#include "db/tree_iterator.h"
#include "db/tree_key.h"
#include "table/concatenating_iterator.h"

namespace basalt::db {
namespace {

/// What an iterator is opened for.
struct Wanted {
  Wanted(const ReadOptions& scan, base::SequenceNumber sequence)
      : keyspace(static_cast<uint32_t>(scan.keyspace)),
        at(sequence),
        options(scan),
        range(keyspace, scan.prefix ? scan.prefix : scan.lower, scan.upper) {
    if (options.prefix) prefix = range.begin;
  }

  /// All of the table's keys lie before the bounds.
  bool EndsBefore(const TableFile& file) const noexcept {
    return range.begin && file.properties().largest_key < *range.begin;
  }
  /// All of them lie behind the bounds.
  bool BeginsBehind(const TableFile& file) const noexcept {
    const std::string_view smallest = file.properties().smallest_key;
    if (prefix) return smallest.substr(0, prefix->size()) > *prefix;
    return range.end && smallest >= *range.end;
  }

  const uint32_t keyspace;
  const base::SequenceNumber at;
  const ReadOptions& options;
  const TreeRange range;
  std::optional<std::string> prefix{};  ///< Of tree keys.
};

/// The tables of a level below level 0 that may hold wanted keys. `tree` must outlive it.
class TablesOfLevel final : public table::SortedTables {
 public:
  TablesOfLevel(const Tree& tree, size_t level, const Wanted& wanted)
      : tree_(tree), level_(level), files_(tree.levels[level]) {
    const auto first_not = [&](auto is_before) {
      const auto first = std::ranges::partition_point(
          files_, [&](const std::shared_ptr<TableFile>& file) { return is_before(*file); });
      return static_cast<size_t>(first - files_.begin());
    };
    begin_ = first_not([&](const TableFile& file) { return wanted.EndsBefore(file); });
    end_ = std::max(begin_,
                    first_not([&](const TableFile& file) { return !wanted.BeginsBehind(file); }));
  }

  size_t size() const noexcept override { return end_ - begin_; }
  size_t FirstNotBelow(std::string_view key) const noexcept override {
    return std::clamp(tree_.FirstNotBelow(level_, key), begin_, end_) - begin_;
  }
  std::string_view SmallestKey(size_t i) const noexcept override {
    return files_[begin_ + i]->properties().smallest_key;
  }
  Result<std::unique_ptr<base::RecordIterator>> NewIterator(size_t i,
                                                            bool fill_cache) const override {
    return NewTreeIterator(*files_[begin_ + i], fill_cache);
  }

  base::SequenceNumber LargestSequence() const noexcept {
    base::SequenceNumber largest = 0;
    for (size_t i = begin_; i < end_; ++i) {
      largest = std::max(largest, files_[i]->properties().largest_sequence);
    }
    return largest;
  }

 private:
  const Tree& tree_;
  const size_t level_;
  const TableFiles& files_;
  size_t begin_;
  size_t end_;
};

/// `ranges` (null: none) must outlive what is returned.
Result<std::unique_ptr<base::RecordIterator>> NewSource(Core* core, const ReadState& state,
                                                        const Wanted& wanted,
                                                        const base::RangeCovers* ranges) {
  const bool fill_cache = wanted.options.fill_cache;
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  const auto add = [&](const LoggedGeneration& generation) {
    if (generation.table->record_count() == 0) return;
    children.push_back(generation.table->NewIterator(wanted.keyspace, wanted.at));
  };
  add(*state.active);
  for (const auto& sealed : state.sealed) add(*sealed);
  const Tree* const tree = state.version->tree(wanted.keyspace);
  if (tree == nullptr) return base::NewMergingIterator(std::move(children));
  const size_t above = children.size();
  for (const std::shared_ptr<TableFile>& file : tree->levels[0]) {
    if (wanted.EndsBefore(*file) || wanted.BeginsBehind(*file)) continue;
    BASALT_ASSIGN_OR_RETURN(auto records, NewTreeIterator(*file, fill_cache));
    children.push_back(
        base::WithoutHiddenStretches(NewKeyspaceIterator(std::move(records), wanted.keyspace),
                                     ranges, file->properties().largest_sequence));
  }
  const size_t level0_end = children.size();
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    auto tables = std::make_unique<const TablesOfLevel>(*tree, level, wanted);
    if (tables->size() == 0) continue;
    const base::SequenceNumber newest = ranges != nullptr ? tables->LargestSequence() : 0;
    auto records = table::NewConcatenatingIterator(std::move(tables), fill_cache);
    children.push_back(base::WithoutHiddenStretches(
        NewKeyspaceIterator(std::move(records), wanted.keyspace), ranges, newest));
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
  const auto add = [&](const LoggedGeneration& generation) {
    generation.table->range_deletes().Collect(wanted.keyspace, wanted.at, &covers, &loose);
  };
  add(*state.active);
  for (const auto& sealed : state.sealed) add(*sealed);
  const Tree* const tree = state.version->tree(wanted.keyspace);
  if (tree != nullptr) tree->range_deletes.Collect(wanted.keyspace, wanted.at, &covers, &loose);
  return base::NewRangeCovers(std::move(covers), loose);
}

}  // namespace

std::unique_ptr<Iterator> NewDBIterator(const std::shared_ptr<Core>& core,
                                        const ReadOptions& options) {
  if (Status usable = core->CheckUsable(); !usable.ok()) return base::NewErrorIterator(usable);
  if (Status bounds = base::CheckBounds(options); !bounds.ok()) {
    return base::NewErrorIterator(bounds);
  }
  std::shared_ptr<const ReadState> state = core->State();
  if (Status known = Core::CheckKeyspace(*state, options.keyspace); !known.ok()) {
    return base::NewErrorIterator(known);
  }
  base::SequenceNumber at = core->visible();
  uint64_t now_ms = core->WallMillis();
  if (options.snapshot != nullptr) {
    if (Status ours = core->CheckSnapshot(*options.snapshot); !ours.ok()) {
      return base::NewErrorIterator(ours);
    }
    at = options.snapshot->sequence();
    now_ms = static_cast<uint64_t>(options.snapshot->time().time_since_epoch().count());
  }
  const Wanted wanted(options, at);
  auto ranges = RangesOf(*state, wanted);
  auto source = NewSource(core.get(), *state, wanted, ranges.get());
  if (!source) return base::NewErrorIterator(source.error());
  const auto read_merged = [core, state, keyspace = wanted.keyspace, at,
                            now_ms](std::string_view key) {
    return core->ReadMerged(*state, keyspace, key, at, now_ms);
  };
  return base::NewVisibleIterator({.keeps_alive = state,
                                   .check_usable = [core] { return core->CheckUsable(); },
                                   .ranges = std::move(ranges),
                                   .at = at,
                                   .now_ms = now_ms,
                                   .source = std::move(*source),
                                   .on_many_hidden = [core] { core->FlushDeletes(); },
                                   .read_merged = read_merged},
                                  options);
}

}  // namespace basalt::db
