#include "graph/core.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/coding.h"
#include "base/printable_key.h"
#include "graph/keys.h"
#include "graph/reader.h"

namespace basalt::graph {
namespace {

constexpr char kFormatVersion = 1;
constexpr uint64_t kNodesPerReservation = 1024;

bool IsReadOnly(const Status& status) {
  return status.sub_code() == SubCode::kReadOnly || status.code() == StatusCode::kUnsupported;
}

}  // namespace

std::string NodeIdBytes(NodeId node) {
  std::string bytes;
  base::Append(&bytes, static_cast<uint64_t>(node));
  return bytes;
}

std::optional<int64_t> MillisOf(std::optional<WallTime> time) {
  if (!time) return std::nullopt;
  return time->time_since_epoch().count();
}

Result<NodeId> ParseNodeId(std::string_view bytes) {
  const uint64_t id = bytes.size() == 8 ? base::Load<uint64_t>(bytes.data()) : kCatalogue;
  if (id != kCatalogue && id <= kNodeIdMax) return NodeId{id};
  return Status(StatusCode::kCorruption,
                "a graph's record of an external id names no node; run basalt graph verify");
}

Status CheckLength(std::string_view what, std::string_view name) {
  if (name.size() <= kGraphNameBytesMax) return {};
  return Status(StatusCode::kInvalidArgument,
                std::string(what) + " of " + std::to_string(name.size()) +
                    " bytes; the maximum is " + std::to_string(kGraphNameBytesMax));
}

Result<std::unique_ptr<Core>> Core::Open(Store* store, const GraphOptions& options,
                                         const Adjacency::Tuning& tuning) {
  const Capabilities can = store->capabilities();
  if (!can.transactions || !can.ordered || !can.keyspaces || !can.snapshots) {
    return Status(StatusCode::kUnsupported,
                  "a graph needs a store with transactions, order, snapshots and keyspaces");
  }
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, options.create_if_missing
                                                         ? store->OpenOrCreateKeyspace(options.name)
                                                         : store->OpenKeyspace(options.name));
  std::unique_ptr<Core> core(new Core(store, keyspace, options.adjacency_bytes_max, tuning));
  BASALT_RETURN_IF_ERROR(core->CheckFormat(options.create_if_missing));
  const Status finished = core->FinishRemovals();
  // What cannot be written can be read: readers pass over what is left.
  if (!finished.ok() && !IsReadOnly(finished)) return finished;
  return core;
}

/// Whether the keyspace has nothing but what another thread or process may have put to open it.
Result<bool> Core::IsEmpty() const {
  const auto it = store_->NewIterator({.keyspace = keyspace_, .keys_only = true});
  it->SeekToFirst();
  const bool is_empty = !it->Valid() || it->key() == CatalogueKey(CatalogueTag::kFormat);
  BASALT_RETURN_IF_ERROR(it->status());
  return is_empty;
}

Status Core::CheckFormat(bool create) {
  const std::string key = CatalogueKey(CatalogueTag::kFormat);
  const std::string version(1, kFormatVersion);
  BASALT_ASSIGN_OR_RETURN(MaybeValue found, store_->Get(key, {.keyspace = keyspace_}));
  if (!found && create) {
    BASALT_ASSIGN_OR_RETURN(const bool is_empty, IsEmpty());
    if (!is_empty) {
      return Status(StatusCode::kInvalidArgument,
                    "the keyspace of the graph holds other data: name another keyspace");
    }
    const auto put = store_->PutIfAbsent(key, version, {.keyspace = keyspace_});
    if (!put) return put.error();
    BASALT_ASSIGN_OR_RETURN(found, store_->Get(key, {.keyspace = keyspace_}));
  }
  if (!found) return Status(StatusCode::kNotFound, "the keyspace holds no graph");
  if (found->view() == version) return {};
  return Status(StatusCode::kUnsupported,
                "the graph is of a format that this version does not "
                "know: use a newer one");
}

/// Ids are reserved many at a time, so that transactions that add nodes do not conflict in the
/// counter. Those that are not used are lost when the process ends.
Result<NodeId> Core::NewNodeId() {
  const std::scoped_lock lock(mutex_);
  if (next_node_ == reserved_nodes_end_) {
    uint64_t first = 0;
    const auto reserve = [&first](EntryUpdate& entry) -> Status {
      if (entry.exists() && entry.value().size() != 8) {
        return Status(StatusCode::kCorruption, "a graph's counter of nodes is not of 8 bytes");
      }
      first = entry.exists() ? base::Load<uint64_t>(entry.value().data()) : 1;
      if (first == kCatalogue || first > kNodeIdMax - kNodesPerReservation) {
        return Status(StatusCode::kCorruption, "a graph's counter of nodes is out of range");
      }
      entry.Set(NodeIdBytes(NodeId{first + kNodesPerReservation}));
      return {};
    };
    BASALT_RETURN_IF_ERROR(
        store_->Update(CounterKey(kNodeCounter), reserve, {.keyspace = keyspace_}));
    next_node_ = first;
    reserved_nodes_end_ = first + kNodesPerReservation;
  }
  return NodeId{next_node_++};
}

Result<PropertyList> Core::InternAll(const Properties& properties) {
  BASALT_RETURN_IF_ERROR(CheckProperties(properties));
  PropertyList list;
  for (const auto& [name, value] : properties) {
    BASALT_ASSIGN_OR_RETURN(const uint32_t id, names_.Intern(Dictionary::kPropertyName, name));
    list.emplace_back(id, value);
  }
  std::ranges::sort(list, {}, [](const auto& each) { return each.first; });
  return list;
}

Result<NodeRecord> Core::ToRecord(std::string_view external_id, const NodeContent& content) {
  BASALT_RETURN_IF_ERROR(CheckLength("the external id of a node", external_id));
  NodeRecord record{.external_id = std::string(external_id)};
  for (const std::string& label : content.labels) {
    BASALT_ASSIGN_OR_RETURN(const uint32_t id, names_.Intern(Dictionary::kLabel, label));
    record.labels.push_back(id);
  }
  std::ranges::sort(record.labels);
  const auto repeated = std::ranges::unique(record.labels);
  record.labels.erase(repeated.begin(), repeated.end());
  BASALT_ASSIGN_OR_RETURN(record.properties, InternAll(content.properties));
  return record;
}

Result<NodeId> Core::PutNode(Transaction& tx, std::string_view external_id,
                             const NodeContent& content) {
  BASALT_ASSIGN_OR_RETURN(const NodeRecord record, ToRecord(external_id, content));
  const std::string key = ExternalIdKey(external_id);
  BASALT_ASSIGN_OR_RETURN(const MaybeValue known, tx.Get(key, {.keyspace = keyspace_}));
  NodeId node{};
  if (known) {
    BASALT_ASSIGN_OR_RETURN(node, ParseNodeId(known->view()));
  } else {
    BASALT_ASSIGN_OR_RETURN(node, NewNodeId());
    BASALT_RETURN_IF_ERROR(tx.Put(key, NodeIdBytes(node), {.keyspace = keyspace_}));
  }
  BASALT_RETURN_IF_ERROR(
      tx.Put(NodeKey(node, NodeTag::kNode), EncodeNode(record), {.keyspace = keyspace_}));
  return node;
}

namespace {

/// The ends of an edge, read so that the transaction conflicts with the removal of one.
struct Ends {
  std::optional<NodeId> from;
  std::optional<NodeId> to;
};
Result<Ends> FindEnds(Transaction& tx, KeyspaceId keyspace, const EdgeName& name) {
  Ends ends;
  for (auto& [id, end] : {std::pair(name.from, &ends.from), std::pair(name.to, &ends.to)}) {
    if (id.size() > kGraphNameBytesMax) continue;
    BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                            tx.Get(ExternalIdKey(id), {.keyspace = keyspace}));
    if (!found) continue;
    BASALT_ASSIGN_OR_RETURN(*end, ParseNodeId(found->view()));
  }
  return ends;
}

}  // namespace

Result<EdgeRecord> Core::ToRecord(const EdgeContent& content) {
  if (!std::isfinite(content.weight) || content.weight < 0) {
    return Status(StatusCode::kInvalidArgument, "the weight of an edge is " +
                                                    std::to_string(content.weight) +
                                                    "; it must be finite and not negative");
  }
  EdgeRecord record{.head = {.weight = content.weight,
                             .valid_from_ms = MillisOf(content.valid_from),
                             .valid_to_ms = MillisOf(content.valid_to)}};
  BASALT_ASSIGN_OR_RETURN(record.properties, InternAll(content.properties));
  return record;
}

Status NoNodeForEdge(std::string_view external_id) {
  return Status(StatusCode::kNotFound, "there is no node " + base::PrintableKey(external_id) +
                                           " for an edge: put the node first");
}

Status Core::PutEdge(Transaction& tx, const EdgeName& name, const EdgeContent& content) {
  BASALT_RETURN_IF_ERROR(CheckLength("the discriminator of an edge", name.discriminator));
  BASALT_ASSIGN_OR_RETURN(const EdgeRecord record, ToRecord(content));
  BASALT_ASSIGN_OR_RETURN(const uint32_t type, names_.Intern(Dictionary::kEdgeType, name.type));
  BASALT_ASSIGN_OR_RETURN(const Ends ends, FindEnds(tx, keyspace_, name));
  if (!ends.from || !ends.to) return NoNodeForEdge(ends.from ? name.to : name.from);
  WriteOptions write{.keyspace = keyspace_, .expiry = content.expiry};
  if (!content.expiry) write.ttl = std::chrono::milliseconds(0);
  BASALT_RETURN_IF_ERROR(
      tx.Put(EdgeKey(*ends.from, NodeTag::kOut, type, *ends.to, name.discriminator),
             EncodeEdge(record), write));
  return tx.Put(EdgeKey(*ends.to, NodeTag::kIn, type, *ends.from, name.discriminator),
                EncodeHead(record.head), write);
}

Result<bool> Core::RemoveEdge(Transaction& tx, const EdgeName& name) {
  BASALT_ASSIGN_OR_RETURN(const std::optional<uint32_t> type,
                          names_.Find(tx, Dictionary::kEdgeType, name.type));
  if (!type || name.discriminator.size() > kGraphNameBytesMax) return false;
  BASALT_ASSIGN_OR_RETURN(const Ends ends, FindEnds(tx, keyspace_, name));
  if (!ends.from || !ends.to) return false;
  const std::string key = EdgeKey(*ends.from, NodeTag::kOut, *type, *ends.to, name.discriminator);
  BASALT_ASSIGN_OR_RETURN(const bool is_there, tx.Contains(key, {.keyspace = keyspace_}));
  if (!is_there) return false;
  BASALT_RETURN_IF_ERROR(tx.Delete(key, {.keyspace = keyspace_}));
  BASALT_RETURN_IF_ERROR(
      tx.Delete(EdgeKey(*ends.to, NodeTag::kIn, *type, *ends.from, name.discriminator),
                {.keyspace = keyspace_}));
  return true;
}

}  // namespace basalt::graph
