#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/graph.h"
#include "basalt/iterator.h"
#include "graph/adjacency.h"
#include "graph/keys.h"
#include "graph/reader.h"
#include "graph/record.h"

// The edges of one node after another, from the adjacency in memory if the reader has it, otherwise
// by scans of the records. Both give the same edges in the same order. Edges to removed nodes are
// passed over.
//
// Records: one iterator serves all nodes, so that a node costs a seek for each direction and type
// that the filter names. Memory: a node costs a look at its chain of changes. If it has one, its
// edges are merged into an array first.

namespace basalt::graph {

/// One thread at a time. The reader outlives it.
class EdgeScan {
 public:
  static Result<EdgeScan> Open(const Reader* reader, const EdgeFilter& filter) {
    return Make(reader, filter, reader->adjacency() == nullptr ? reader->NewIterator() : nullptr,
                /*is_search=*/true);
  }
  /// For Start and StartAt with `node` alone. In a transaction an iterator costs a copy of the
  /// transaction's own writes in its range, which is here the node's.
  static Result<EdgeScan> OpenAt(const Reader* reader, const EdgeFilter& filter, NodeId node) {
    return Make(reader, filter,
                reader->adjacency() == nullptr ? reader->NewIterator(NodePrefix(node)) : nullptr,
                /*is_search=*/true);
  }
  /// The same from records, so that value() and expiry() may be called.
  static Result<EdgeScan> OpenRecords(const Reader* reader, const EdgeFilter& filter, NodeId node) {
    return Make(reader, filter, reader->NewIterator(NodePrefix(node)), /*is_search=*/false);
  }

  /// Whether edges come from memory: then Start costs no read.
  bool is_in_memory() const noexcept { return it_ == nullptr; }

  /// To the first edge of `node`.
  void Start(NodeId node) { StartAt(node, {}); }
  /// To the first edge from `position` on, which position() gave for an edge of `node`.
  void StartAt(NodeId node, std::string_view position);
  bool Valid() const noexcept { return valid_; }
  void Next();

  // Of the present edge. Only when Valid(). Views last until the next move.
  const EdgeKeyParts& edge() const noexcept { return edge_; }
  double weight() const noexcept { return weight_; }
  std::string_view value() const noexcept { return it_->value(); }
  std::optional<WallTime> expiry() const noexcept { return it_->expiry(); }
  /// Its place among the edges of the node.
  std::string position() const;
  Result<Neighbor> ToNeighbor() const;

  /// How many edges of `node` have a weight above zero; stops counting at `count_max`. In memory,
  /// without a filter and changes, it does not look at the edges. It ends the present scan.
  uint64_t CountWeighted(NodeId node, uint64_t count_max);

  /// Ok, or the error that ended the scan.
  const Status& status() const noexcept { return status_; }

 private:
  EdgeScan(const Reader* reader, std::unique_ptr<Iterator> it, bool is_search)
      : reader_(reader),
        it_(std::move(it)),
        is_search_(is_search),
        adjacency_(reader->adjacency()) {}
  static Result<EdgeScan> Make(const Reader* reader, const EdgeFilter& filter,
                               std::unique_ptr<Iterator> it, bool is_search);
  void SeekRange(std::string_view position);
  void Settle();
  bool Passes();
  void StartRows(std::string_view position);
  void SettleInRows();
  bool PassesInRows(const AdjacentEdge& edge);
  std::optional<uint64_t> EdgesWithoutLooking(NodeId node) const;

  const Reader* reader_;
  std::unique_ptr<Iterator> it_;       // Null: edges come from memory.
  bool is_search_;                     // It would take edges from memory if they were there.
  const AdjacencyVersion* adjacency_;  // Only if there is no iterator.
  std::vector<std::string> ranges_;    // With what keys begin behind the node; ascending.
  std::optional<int64_t> as_of_ms_;
  size_t range_ = 0;    // The present one.
  std::string prefix_;  // The node's id and that range. Only for records.
  NodeId node_{};
  bool valid_ = false;
  EdgeKeyParts edge_;
  double weight_ = 1;
  Status status_;

  // Where the present range is in memory: places of rows_, or of merged_ if rows_ is null.
  const AdjacencyRows* rows_ = nullptr;
  uint32_t at_ = 0;
  uint32_t end_ = 0;
  std::vector<AdjacentEdge> merged_;
  std::vector<const DeltaEntry*> entries_;  // Scratch.
};

}  // namespace basalt::graph
