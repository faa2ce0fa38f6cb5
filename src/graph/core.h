#pragma once

// src/graph: a property graph in a keyspace. Read Core first for changes, Reader (reader.h) for
// reads.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/graph.h"
#include "basalt/store.h"
#include "basalt/transaction.h"
#include "graph/adjacency.h"
#include "graph/names.h"
#include "graph/node_map.h"
#include "graph/record.h"

// A graph that is open: keys.h and record.h have its bytes, Reader and EdgeScan read it, and Core
// writes it. What the public functions of Graph do is in graph.cc.
//
// Two records of an edge. PutEdge and RemoveEdge write both in one transaction, which has read the
// kExternalId records of both nodes. Removing a node deletes such a record, and so conflicts with
// every transaction that links the node: no edge comes to a node that is gone.
//
// Removal of a node. A node with many edges cannot go in one transaction. So the first transaction
// deletes its kExternalId and kNode records and puts a kRemoval record. Readers load the kRemoval
// records and pass over edges to these nodes; nobody can link such a node any more, because its
// external id leads nowhere, or to a new node with another id. Batches then remove its edges at
// their other ends; the last one deletes all keys of the node as a range, and the kRemoval record.
// A step may run twice, or in two threads: it only deletes.

namespace basalt::graph {

/// Bytes of a node's keys that one batch removes, about. The batch is three times as large, because
/// an edge has two keys and each is a record. The smallest stores take batches of 64 KiB.
inline constexpr size_t kStepKeyBytes = 16 << 10;

class Core {
 public:
  static Result<std::unique_ptr<Core>> Open(Store* store, const GraphOptions& options,
                                            const Adjacency::Tuning& tuning = {});

  Store& store() const noexcept { return *store_; }
  KeyspaceId keyspace() const noexcept { return keyspace_; }
  Names& names() const noexcept { return names_; }
  Adjacency& adjacency() const noexcept { return adjacency_; }
  NodeArrays& node_arrays() const noexcept { return node_arrays_; }

  Result<NodeId> PutNode(Transaction& tx, std::string_view external_id, const NodeContent& content);
  /// `*is_left`: edges are left to FinishRemoval.
  Result<bool> RemoveNode(Transaction& tx, std::string_view external_id, bool* is_left);
  Status PutEdge(Transaction& tx, const EdgeName& name, const EdgeContent& content);
  Result<bool> RemoveEdge(Transaction& tx, const EdgeName& name);
  Status FinishRemovals();

  /// Of a node that has none yet.
  Result<NodeId> NewNodeId();
  /// With numbers for names, which get them if they have none. InvalidArgument.
  Result<NodeRecord> ToRecord(std::string_view external_id, const NodeContent& content);
  Result<EdgeRecord> ToRecord(const EdgeContent& content);

 private:
  Core(Store* store, KeyspaceId keyspace, uint64_t adjacency_bytes_max,
       const Adjacency::Tuning& tuning)
      : store_(store),
        keyspace_(keyspace),
        names_(store, keyspace),
        adjacency_(store, keyspace, adjacency_bytes_max, tuning) {}
  Result<bool> IsEmpty() const;
  Status CheckFormat(bool create);
  Result<PropertyList> InternAll(const Properties& properties);
  Result<bool> HasManyEdges(NodeId node);
  Status RemoveEdges(Transaction& tx, NodeId node);
  Status FinishRemoval(NodeId node);

  Store* const store_;
  const KeyspaceId keyspace_;
  mutable Names names_;
  std::mutex mutex_;  // Guards next_node_ and reserved_nodes_end_.
  uint64_t next_node_ = 0;
  uint64_t reserved_nodes_end_ = 0;
  mutable NodeArrays node_arrays_;
  mutable Adjacency adjacency_;  // Last: its thread ends first.
};

/// Makes a Graph of a core: for tests that choose the core's tuning.
struct GraphAccess {
  static std::unique_ptr<Graph> Make(std::unique_ptr<Core> core) {
    return std::unique_ptr<Graph>(new Graph(std::move(core)));
  }
};

/// The value of a kExternalId record.
std::string NodeIdBytes(NodeId node);
/// The node that a kExternalId record names. Corruption.
Result<NodeId> ParseNodeId(std::string_view bytes);
std::optional<int64_t> MillisOf(std::optional<WallTime> time);
/// The error of an edge one of whose nodes is absent.
Status NoNodeForEdge(std::string_view external_id);
/// InvalidArgument: it is too long.
Status CheckLength(std::string_view what, std::string_view name);

}  // namespace basalt::graph
