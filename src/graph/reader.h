#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "basalt/graph.h"
#include "basalt/iterator.h"
#include "basalt/snapshot.h"
#include "basalt/transaction.h"
#include "graph/adjacency.h"
#include "graph/core.h"
#include "graph/node_map.h"
#include "graph/record.h"

namespace basalt::graph {

/// A graph as a snapshot, or a transaction, has it. One thread at a time.
class Reader {
 public:
  /// At a snapshot of the present moment.
  static Result<std::unique_ptr<Reader>> Open(const Core* core);
  /// With the changes of `tx`.
  static Result<std::unique_ptr<Reader>> Open(const Core* core, Transaction* tx);

  const Core& core() const noexcept { return *core_; }
  Result<MaybeValue> Get(std::string_view key) const;
  Result<std::optional<Entry>> GetEntry(std::string_view key) const;
  /// Over keys with `prefix`.
  std::unique_ptr<Iterator> NewIterator(std::string_view prefix, bool keys_only = false) const;
  /// Over all keys.
  std::unique_ptr<Iterator> NewIterator() const;

  /// What covers the snapshot. Null: edges are read from the records.
  const AdjacencyVersion* adjacency() const noexcept { return adjacency_.get(); }
  /// Of the snapshot. Only with an adjacency.
  uint64_t sequence() const noexcept { return snapshot_->sequence(); }
  int64_t time_ms() const noexcept { return snapshot_->time().time_since_epoch().count(); }
  /// For searches: null without an adjacency.
  NodeArrays* node_arrays() const noexcept {
    return adjacency_ == nullptr ? nullptr : &core_->node_arrays();
  }
  /// The edges of a node are scanned. What a transaction reads stays a scan.
  void CountScannedNode() const noexcept {
    if (tx_ == nullptr) core_->adjacency().CountScannedNode();
  }

  bool has_removed() const noexcept { return !removed_.empty(); }
  /// Whether it was removed, though records of its edges are left.
  bool IsRemoved(NodeId node) const { return !removed_.empty() && removed_.contains(node); }
  /// The id of a name. Nothing: it has never been used; a transaction tracks that.
  Result<std::optional<uint32_t>> FindName(Dictionary dictionary, std::string_view name) const;
  /// Nothing: there is no such node.
  Result<std::optional<NodeId>> FindNode(std::string_view external_id) const;
  Result<std::optional<NodeRecord>> GetRecord(NodeId node) const;
  /// With names in place of ids.
  Result<Node> NodeOf(NodeId id, NodeRecord record) const;
  Result<Properties> PropertiesOf(PropertyList properties) const;
  Result<EdgeContent> ContentOf(EdgeRecord record) const;

 private:
  Reader(const Core* core, Transaction* tx) : core_(core), tx_(tx) {}
  Status TakeSnapshot();
  Status LoadRemoved();
  ReadOptions options() const;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) const;

  const Core* core_;
  std::optional<Snapshot> snapshot_;
  Adjacency::Version adjacency_;
  Transaction* tx_;  // Null: the snapshot.
  std::unordered_set<NodeId> removed_;
};

}  // namespace basalt::graph
