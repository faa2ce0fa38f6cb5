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
#include "graph/keys.h"
#include "graph/reader.h"
#include "graph/record.h"

namespace basalt::graph {

/// The edges of one node after another, by scans of their keys. One iterator serves all nodes, so
/// that a node costs a seek for each direction and type that the filter names. Edges to removed
/// nodes are passed over. One thread at a time. The reader outlives it.
class EdgeScan {
 public:
  static Result<EdgeScan> Open(const Reader* reader, const EdgeFilter& filter) {
    return Make(reader, filter, reader->NewIterator());
  }
  /// For Start and StartAt with `node` alone. In a transaction an iterator costs a copy of the
  /// transaction's own writes in its range, which is here the node's.
  static Result<EdgeScan> OpenAt(const Reader* reader, const EdgeFilter& filter, NodeId node) {
    return Make(reader, filter, reader->NewIterator(NodePrefix(node)));
  }

  /// To the first edge of `node`.
  void Start(NodeId node) { StartAt(node, {}); }
  /// To the first edge from `position` on, which position() gave for an edge of `node`.
  void StartAt(NodeId node, std::string_view position);
  bool Valid() const noexcept { return valid_; }
  void Next();

  // Of the present edge. Only when Valid(). Views last until the next move.
  const EdgeKeyParts& edge() const noexcept { return edge_; }
  const EdgeHead& head() const noexcept { return head_; }
  std::string_view value() const noexcept { return it_->value(); }
  std::optional<WallTime> expiry() const noexcept { return it_->expiry(); }
  /// Its place among the edges of the node.
  std::string_view position() const noexcept { return it_->key().substr(8); }
  Result<Neighbor> ToNeighbor() const;

  /// Ok, or the error that ended the scan.
  const Status& status() const noexcept { return status_; }

 private:
  EdgeScan(const Reader* reader, std::unique_ptr<Iterator> it)
      : reader_(reader), it_(std::move(it)) {}
  static Result<EdgeScan> Make(const Reader* reader, const EdgeFilter& filter,
                               std::unique_ptr<Iterator> it);
  void SeekRange(std::string_view position);
  void Settle();
  bool Passes();

  const Reader* reader_;
  std::unique_ptr<Iterator> it_;
  std::vector<std::string> ranges_;  // With what keys begin behind the node; ascending.
  std::optional<int64_t> as_of_ms_;
  size_t range_ = 0;    // The present one.
  std::string prefix_;  // The node's id and that range.
  NodeId node_{};
  bool valid_ = false;
  EdgeKeyParts edge_;
  EdgeHead head_;
  Status status_;
};

}  // namespace basalt::graph
