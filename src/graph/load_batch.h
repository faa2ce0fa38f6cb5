#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "basalt/graph.h"
#include "basalt/write_batch.h"
#include "graph/core.h"

// What a GraphLoader is: a batch that is being filled, and the numbers of the nodes that it has
// met.
//
// Invariant. A number in numbers_ is that of a node which is in the store or in the batch, as long
// as no node has been removed since last_removal_ was read. So a batch requires that the
// kLastRemoval record, which each removal writes, is unchanged. It also requires that the external
// ids of its new nodes are absent. If a requirement does not hold, nothing is written, and the
// numbers are forgotten.
//
// Cost: an edge costs two lookups in a hash table, and its two records in the batch. A node that is
// met first costs one get.

namespace basalt::graph {

class LoadBatch {
 public:
  explicit LoadBatch(Core* core) : core_(*core) {}

  Status PutNode(std::string_view external_id, const NodeContent& content);
  Status PutEdge(const EdgeName& name, const EdgeContent& content, bool make_nodes);
  Result<Commit> Write(const WriteOptions& options);

 private:
  Status ReadLastRemoval();
  Result<std::optional<NodeId>> FindNode(std::string_view external_id);
  Result<NodeId> AddNode(std::string_view external_id);
  Result<NodeId> FindEnd(std::string_view external_id, bool make_nodes);
  Result<uint32_t> TypeOf(std::string_view name);
  void Remember(std::string_view external_id, NodeId node);
  void Add(std::string_view external_id, NodeId node);
  void ForgetNumbers();

  Core& core_;
  WriteBatch batch_;
  std::deque<std::string> external_ids_;  // The keys of numbers_ are views of them.
  std::unordered_map<std::string_view, NodeId> numbers_;
  size_t numbers_bytes_ = 0;
  bool knows_last_removal_ = false;
  std::optional<uint64_t> last_removal_;  // The version of the record. Nothing: it is absent.
  std::optional<uint32_t> type_;          // Of type_name_, which the last edge had.
  std::string type_name_;
};

}  // namespace basalt::graph
