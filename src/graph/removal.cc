// The removal of nodes: the head of core.h says why it is safe.

#include <optional>
#include <string>
#include <vector>

#include "basalt/write_batch.h"
#include "base/check.h"
#include "graph/core.h"
#include "graph/keys.h"

namespace basalt::graph {

Result<bool> Core::RemoveNode(Transaction& tx, std::string_view external_id, bool* is_left) {
  *is_left = false;
  if (external_id.size() > kGraphNameBytesMax) return false;
  const std::string key = ExternalIdKey(external_id);
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found, tx.Get(key, {.keyspace = keyspace_}));
  if (!found) return false;
  BASALT_ASSIGN_OR_RETURN(const NodeId node, ParseNodeId(found->view()));
  BASALT_ASSIGN_OR_RETURN(*is_left, HasManyEdges(node));
  BASALT_RETURN_IF_ERROR(tx.Delete(key, {.keyspace = keyspace_}));
  BASALT_RETURN_IF_ERROR(tx.Delete(NodeKey(node, NodeTag::kNode), {.keyspace = keyspace_}));
  // Loaders, which know the node by number, conflict in this record.
  BASALT_RETURN_IF_ERROR(
      tx.Put(CatalogueKey(CatalogueTag::kLastRemoval), NodeIdBytes(node), {.keyspace = keyspace_}));
  if (*is_left) {
    BASALT_RETURN_IF_ERROR(tx.Put(RemovalKey(node), "", {.keyspace = keyspace_}));
  } else {
    BASALT_RETURN_IF_ERROR(RemoveEdges(tx, node));
  }
  return true;
}

/// By the store as it is: a guess for the transaction, of which either answer is right.
Result<bool> Core::HasManyEdges(NodeId node) {
  const auto it =
      store_->NewIterator({.keyspace = keyspace_, .prefix = NodePrefix(node), .keys_only = true});
  size_t bytes = 0;
  for (it->SeekToFirst(); it->Valid() && bytes <= kStepKeyBytes; it->Next()) {
    bytes += it->key().size();
  }
  BASALT_RETURN_IF_ERROR(it->status());
  return bytes > kStepKeyBytes;
}

Status Core::RemoveEdges(Transaction& tx, NodeId node) {
  std::vector<std::string> keys;
  const std::string prefix = NodePrefix(node);
  const auto it = tx.NewIterator({.keyspace = keyspace_, .prefix = prefix, .keys_only = true});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const auto edge = ParseEdgeKey(it->key());
    if (!edge) continue;
    keys.emplace_back(it->key());
    if (edge->other != node) keys.push_back(edge->OtherKey());
  }
  BASALT_RETURN_IF_ERROR(it->status());
  for (const std::string& key : keys) {
    BASALT_RETURN_IF_ERROR(tx.Delete(key, {.keyspace = keyspace_}));
  }
  return {};
}

Status Core::FinishRemovals() {
  const std::string prefix = CatalogueKey(CatalogueTag::kRemoval);
  std::string from = prefix;
  while (true) {
    {
      const auto it =
          store_->NewIterator({.keyspace = keyspace_, .prefix = prefix, .keys_only = true});
      it->Seek(from);
      if (!it->Valid()) return it->status();
      from = it->key();
    }
    const std::optional<NodeId> node = ParseRemovalKey(from);
    if (node) BASALT_RETURN_IF_ERROR(FinishRemoval(*node));  // Verify names the others.
    from += '\0';
  }
}

Status Core::FinishRemoval(NodeId node) {
  const std::string prefix = NodePrefix(node);
  std::string from = prefix;
  WriteBatch batch;
  for (bool is_done = false; !is_done;) {
    // A new iterator a step, so that no old version is kept for long.
    batch.Clear();
    const auto it =
        store_->NewIterator({.keyspace = keyspace_, .prefix = prefix, .keys_only = true});
    for (it->Seek(from); it->Valid() && batch.byte_size() < kStepKeyBytes; it->Next()) {
      const auto edge = ParseEdgeKey(it->key());
      if (edge && edge->other != node) batch.Delete(edge->OtherKey(), keyspace_);
    }
    BASALT_RETURN_IF_ERROR(it->status());
    is_done = !it->Valid();
    if (is_done) {
      batch.DeleteRange(prefix, NodePrefix(NodeId{static_cast<uint64_t>(node) + 1}), keyspace_);
      batch.Delete(RemovalKey(node), keyspace_);
    } else {
      from = it->key();
    }
    BASALT_RETURN_IF_ERROR(store_->Write(batch));
  }
  return {};
}

}  // namespace basalt::graph
