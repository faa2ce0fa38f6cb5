#include "db/db_iterator.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/merging_iterator.h"
#include "base/visible_iterator.h"
#include "db/core.h"
#include "table/concatenating_iterator.h"

namespace basalt::db {
namespace {

Result<std::unique_ptr<base::RecordIterator>> NewSource(const ReadState& state,
                                                        base::SequenceNumber at, bool fill_cache) {
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  for (const auto& generation : {state.active, state.sealed}) {
    if (generation != nullptr && !generation->table->empty()) {
      children.push_back(generation->table->NewIterator(0, at));
    }
  }
  for (const std::shared_ptr<TableFile>& file : state.version->level(0)) {
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
    children.push_back(table->NewIterator(fill_cache));
  }
  std::vector<std::shared_ptr<const table::Table>> sorted;
  for (const std::shared_ptr<TableFile>& file : state.version->level(1)) {
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
    sorted.push_back(table->shared_from_this());
  }
  if (!sorted.empty()) {
    children.push_back(table::NewConcatenatingIterator(std::move(sorted), fill_cache));
  }
  return base::NewMergingIterator(std::move(children));
}

}  // namespace

std::unique_ptr<Iterator> NewDBIterator(const std::shared_ptr<const Core>& core,
                                        const ScanOptions& options) {
  if (Status usable = core->CheckUsable(); !usable.ok()) return base::NewErrorIterator(usable);
  if (Status known = core->CheckKeyspace(options.keyspace); !known.ok()) {
    return base::NewErrorIterator(known);
  }
  if (Status bounds = base::CheckBounds(options); !bounds.ok()) {
    return base::NewErrorIterator(bounds);
  }
  std::shared_ptr<const ReadState> state = core->State();
  base::SequenceNumber at = core->visible();
  if (options.snapshot != nullptr) {
    const auto sequence = core->SnapshotSequence(*options.snapshot);
    if (!sequence) return base::NewErrorIterator(sequence.error());
    at = *sequence;
  }
  auto source = NewSource(*state, at, options.fill_cache);
  if (!source) return base::NewErrorIterator(source.error());
  return base::NewVisibleIterator({.keeps_alive = std::move(state),
                                   .check_usable = [core] { return core->CheckUsable(); },
                                   .at = at,
                                   .source = std::move(*source)},
                                  options);
}

}  // namespace basalt::db
