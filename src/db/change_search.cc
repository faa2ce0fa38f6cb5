#include "db/change_search.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/epoch.h"
#include "base/merging_iterator.h"
#include "base/record_iterator.h"
#include "db/commit_history.h"
#include "db/core.h"
#include "db/tree_iterator.h"
#include "db/tree_key.h"

namespace basalt::db {
namespace {

/// One search.
struct Search {
  const ReadState& state;
  base::SequenceNumber from;
  base::SequenceNumber to;

  bool IsLate(base::SequenceNumber sequence) const noexcept {
    return sequence > from && sequence <= to;
  }
  bool MayHaveLate(const TableFile& file) const noexcept {
    return file.properties().largest_sequence > from;
  }
  template <class Visit>
  bool AnyMemtable(const Visit& visit) const {
    if (visit(*state.active->table)) return true;
    for (const auto& sealed : state.sealed) {
      if (visit(*sealed->table)) return true;
    }
    return false;
  }
};

Result<bool> IsLateInTables(const Search& search, const Tree& tree, const LookupKey& lookup) {
  const std::string_view tree_key = lookup.tree_key();
  if (search.IsLate(tree.range_deletes.SequenceAt(tree_key, search.to))) return true;
  for (size_t level = 0; level < Tree::kLevels; ++level) {
    for (const std::shared_ptr<TableFile>& file : tree.Overlapping(level, tree_key, tree_key)) {
      if (!search.MayHaveLate(*file)) continue;
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      const auto [key, hash] = lookup.In(file->properties());
      table::TableRead found;
      BASALT_ASSIGN_OR_RETURN(const bool is_there,
                              table->Get(key, hash, search.to, /*fill_cache=*/true, &found));
      if (is_there && search.IsLate(base::TagSequence(found.tag))) return true;
    }
  }
  return false;
}

Result<bool> IsLate(const Search& search, uint32_t keyspace, std::string_view key, uint64_t hash) {
  const bool in_memory = search.AnyMemtable([&](const memtable::Generation& table) {
    {
      const base::EpochGuard inside;
      const memtable::Record* const record = table.Find(keyspace, key, hash, search.to, nullptr);
      if (record != nullptr &&
          search.IsLate(base::TagSequence(record->tag.load(std::memory_order_acquire)))) {
        return true;
      }
    }
    return !table.range_deletes().empty() &&
           search.IsLate(table.range_deletes().SequenceAt(keyspace, key, search.to, nullptr));
  });
  if (in_memory) return true;
  const Tree* const tree = search.state.version->tree(keyspace);
  if (tree == nullptr) return false;
  return IsLateInTables(search, *tree, LookupKey(keyspace, key, hash));
}

bool Overlaps(const transaction::ReadRange& range, std::string_view begin,
              std::string_view end) noexcept {
  return range.begin < end && (!range.end || begin < *range.end);
}

TreeRange InTree(const transaction::ReadRange& range) {
  std::optional<std::string_view> end;
  if (range.end) end = *range.end;
  return {range.keyspace, range.begin, end};
}

bool HasLateRangeDelete(const Search& search, const transaction::ReadRange& range) {
  const bool in_memory = search.AnyMemtable([&](const memtable::Generation& table) {
    for (const memtable::RangeDelete& deleted : table.range_deletes()) {
      if (deleted.keyspace == range.keyspace &&
          search.IsLate(deleted.sequence.load(std::memory_order_acquire)) &&
          Overlaps(range, deleted.begin, deleted.end)) {
        return true;
      }
    }
    return false;
  });
  if (in_memory) return true;
  const Tree* const tree = search.state.version->tree(range.keyspace);
  if (tree == nullptr) return false;
  const TreeRange wanted = InTree(range);
  return std::ranges::any_of(tree->range_deletes.parts(), [&](const auto& part) {
    return std::ranges::any_of(part->ranges(), [&](const RangeDelete& deleted) {
      const bool overlaps = (!wanted.end || deleted.begin < *wanted.end) &&
                            (!wanted.begin || *wanted.begin < deleted.end);
      return overlaps && search.IsLate(deleted.sequence);
    });
  });
}

/// What may hold records of the range that are later than `from`.
Result<std::unique_ptr<base::RecordIterator>> SourceOf(const Search& search,
                                                       const transaction::ReadRange& range) {
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  search.AnyMemtable([&](const memtable::Generation& table) {
    children.push_back(table.NewIterator(range.keyspace, search.to));
    return false;
  });
  if (const Tree* const tree = search.state.version->tree(range.keyspace)) {
    const TreeRange wanted = InTree(range);
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      for (const std::shared_ptr<TableFile>& file :
           tree->Overlapping(level, wanted.begin, wanted.end)) {
        if (!search.MayHaveLate(*file)) continue;
        BASALT_ASSIGN_OR_RETURN(auto records, NewTreeIterator(*file, /*fill_cache=*/true));
        children.push_back(NewKeyspaceIterator(std::move(records), range.keyspace));
      }
    }
  }
  return base::NewMergingIterator(std::move(children));
}

/// The first late key of the range.
Result<std::optional<std::string>> FindInRange(const Search& search,
                                               const transaction::ReadRange& range) {
  if (HasLateRangeDelete(search, range)) return transaction::NameOfKey(range.begin, range.keyspace);
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<base::RecordIterator> records,
                          SourceOf(search, range));
  for (records->Seek(range.begin, base::kNewestTag);
       records->Valid() && range.Contains(records->key()); records->Next()) {
    if (search.IsLate(base::TagSequence(records->tag()))) {
      return transaction::NameOfKey(records->key(), range.keyspace);
    }
  }
  BASALT_RETURN_IF_ERROR(records->status());
  return std::optional<std::string>();
}

}  // namespace

Result<std::optional<std::string>> FindChange(const ReadState& state,
                                              const transaction::ReadSet& reads,
                                              base::SequenceNumber from, base::SequenceNumber to) {
  const Search search{state, from, to};
  for (const transaction::ReadSet::Key& key : reads.keys()) {
    const std::string_view bytes = reads.BytesOf(key);
    BASALT_ASSIGN_OR_RETURN(const bool is_late, IsLate(search, key.keyspace, bytes, key.hash));
    if (is_late) return transaction::NameOfKey(bytes, key.keyspace);
  }
  for (const transaction::ReadRange& range : reads.ranges()) {
    BASALT_ASSIGN_OR_RETURN(std::optional<std::string> found, FindInRange(search, range));
    if (found) return found;
  }
  return std::optional<std::string>();
}

}  // namespace basalt::db
