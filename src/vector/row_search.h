#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "basalt/snapshot.h"
#include "basalt/store.h"
#include "basalt/vector.h"
#include "basalt/vector_index.h"
#include "vector/row_filter.h"
#include "vector/row_set.h"
#include "vector/vector_record.h"

// One search of a vector index.
//
// It takes a snapshot of the store, and then a view of the rows (row_set.h). Both are of one
// moment, except that the rows may lack commits whose writers have not returned yet. A record that
// such a commit has changed carries another stamp than its row: the search begins anew. After
// kTries it reads the store alone, which is always of one moment.
//
// What is compared: the rows in blocks, all of them; then the graph, whose walk proposes slots, the
// full vectors of which are read from the store at the snapshot.

namespace basalt::vector {

/// What a search is about.
struct RowSearchTarget {
  const Store& store;
  KeyspaceId keyspace;
  const IndexMetadata& metadata;
  const VectorDistance& distance;
};

class RowSearch {
 public:
  RowSearch(const RowSearchTarget& target, std::shared_ptr<RowSet> rows,
            std::span<const float> query, const VectorSearchOptions& options);

  Result<VectorSearchResult> Run();

 private:
  /// A row, or a record of the store.
  struct Found {
    float distance;
    const IndexRow* row;
  };
  class StoredVectors;

  Result<VectorSearchResult> RunOnRows(bool* is_stale);
  Result<VectorSearchResult> RunOnStore();
  Status LookUp(std::span<IndexRow* const> rows, bool* is_stale);
  void ScanBlocks(const RowBlocks& blocks);
  void ScanBlock(const RowBlock& block);
  Status SearchGraph(const HnswIndex& graph, bool* is_stale);

  bool LooksUpIds() const noexcept;
  bool Passes(const IndexRow& row) const;
  /// The farthest that may still be returned.
  float Bound() const noexcept;
  void Offer(Found found);
  Result<VectorSearchResult> Finish();
  VectorHit MakeHit(float distance, std::string_view id, std::string_view attributes) const;

  const RowSearchTarget target_;
  const std::shared_ptr<RowSet> rows_;
  const std::span<const float> query_;
  const VectorSearchOptions& options_;
  const RowFilter* const filter_;
  std::optional<Snapshot> snapshot_{};
  RowSet::Reader::View view_;
  /// The nearest k so far, those of the graph apart; a heap, the farthest first.
  std::vector<Found> found_;
  VectorSearchPlan plan_;
};

}  // namespace basalt::vector
