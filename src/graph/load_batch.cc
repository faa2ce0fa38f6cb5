#include "graph/load_batch.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/keys.h"

namespace basalt::graph {
namespace {

/// Numbers of nodes are forgotten when they take more memory than this.
constexpr size_t kNumbersBytesMax = size_t{256} << 20;
/// Of a node in a hash table, besides a long external id.
constexpr size_t kNumberBytes = 96;

}  // namespace

Status LoadBatch::ReadLastRemoval() {
  if (knows_last_removal_) return {};
  BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> record,
                          core_.store().GetEntry(CatalogueKey(CatalogueTag::kLastRemoval),
                                                 {.keyspace = core_.keyspace()}));
  last_removal_ = record ? std::optional(record->version) : std::nullopt;
  knows_last_removal_ = true;
  return {};
}

void LoadBatch::Remember(std::string_view external_id, NodeId node) {
  if (numbers_bytes_ > kNumbersBytesMax) {
    // Those of new nodes stay in the batch alone: until it is committed they cannot be looked up.
    if (batch_.has_conditions()) return;
    ForgetNumbers();
  }
  Add(external_id, node);
}

void LoadBatch::Add(std::string_view external_id, NodeId node) {
  numbers_.emplace(external_ids_.emplace_back(external_id), node);
  numbers_bytes_ += kNumberBytes + external_id.size();
}

Result<std::optional<NodeId>> LoadBatch::FindNode(std::string_view external_id) {
  if (external_id.size() > kGraphNameBytesMax) return std::nullopt;
  const auto known = numbers_.find(external_id);
  if (known != numbers_.end()) return std::optional(known->second);
  BASALT_RETURN_IF_ERROR(ReadLastRemoval());
  BASALT_ASSIGN_OR_RETURN(
      const MaybeValue found,
      core_.store().Get(ExternalIdKey(external_id), {.keyspace = core_.keyspace()}));
  if (!found) return std::nullopt;
  BASALT_ASSIGN_OR_RETURN(const NodeId node, ParseNodeId(found->view()));
  Remember(external_id, node);
  return std::optional(node);
}

/// A node that the store does not have.
Result<NodeId> LoadBatch::AddNode(std::string_view external_id) {
  BASALT_ASSIGN_OR_RETURN(const NodeId node, core_.NewNodeId());
  const std::string key = ExternalIdKey(external_id);
  batch_.RequireAbsent(key, core_.keyspace());
  batch_.Put(key, NodeIdBytes(node), {.keyspace = core_.keyspace()});
  Add(external_id, node);
  return node;
}

Status LoadBatch::PutNode(std::string_view external_id, const NodeContent& content) {
  BASALT_ASSIGN_OR_RETURN(const NodeRecord record, core_.ToRecord(external_id, content));
  BASALT_ASSIGN_OR_RETURN(std::optional<NodeId> node, FindNode(external_id));
  if (!node) {
    BASALT_ASSIGN_OR_RETURN(node, AddNode(external_id));
  }
  batch_.Put(NodeKey(*node, NodeTag::kNode), EncodeNode(record), {.keyspace = core_.keyspace()});
  return {};
}

Result<NodeId> LoadBatch::FindEnd(std::string_view external_id, bool make_nodes) {
  BASALT_ASSIGN_OR_RETURN(std::optional<NodeId> node, FindNode(external_id));
  if (node) return *node;
  if (!make_nodes) return NoNodeForEdge(external_id);
  BASALT_RETURN_IF_ERROR(PutNode(external_id, {}));
  BASALT_ASSIGN_OR_RETURN(node, FindNode(external_id));
  return *node;
}

Result<uint32_t> LoadBatch::TypeOf(std::string_view name) {
  if (!type_ || name != type_name_) {
    BASALT_ASSIGN_OR_RETURN(const uint32_t type, core_.names().Intern(Dictionary::kEdgeType, name));
    type_name_ = name;
    type_ = type;
  }
  return *type_;
}

Status LoadBatch::PutEdge(const EdgeName& name, const EdgeContent& content, bool make_nodes) {
  BASALT_RETURN_IF_ERROR(CheckLength("the discriminator of an edge", name.discriminator));
  BASALT_ASSIGN_OR_RETURN(const EdgeRecord record, core_.ToRecord(content));
  BASALT_ASSIGN_OR_RETURN(const uint32_t type, TypeOf(name.type));
  BASALT_ASSIGN_OR_RETURN(const NodeId from, FindEnd(name.from, make_nodes));
  BASALT_ASSIGN_OR_RETURN(const NodeId to, FindEnd(name.to, make_nodes));
  RecordOptions write{.keyspace = core_.keyspace(), .expiry = content.expiry};
  if (!content.expiry) write.ttl = std::chrono::milliseconds(0);
  batch_.Put(EdgeKey(from, NodeTag::kOut, type, to, name.discriminator), EncodeEdge(record), write);
  batch_.Put(EdgeKey(to, NodeTag::kIn, type, from, name.discriminator), EncodeHead(record.head),
             write);
  return {};
}

Result<Commit> LoadBatch::Write(const WriteOptions& options) {
  if (batch_.empty()) return Commit{};
  const std::string key = CatalogueKey(CatalogueTag::kLastRemoval);
  if (last_removal_) {
    batch_.RequireUnchanged(key, *last_removal_, core_.keyspace());
  } else {
    batch_.RequireAbsent(key, core_.keyspace());
  }
  Result<Commit> done = core_.store().Write(batch_, options);
  batch_.Clear();
  if (!done) {
    ForgetNumbers();
    knows_last_removal_ = false;
  }
  return done;
}

void LoadBatch::ForgetNumbers() {
  numbers_.clear();
  external_ids_.clear();
  numbers_bytes_ = 0;
}

}  // namespace basalt::graph

namespace basalt {

GraphLoader::GraphLoader(Graph* graph, bool make_nodes)
    : batch_(std::make_unique<graph::LoadBatch>(graph->core_.get())), make_nodes_(make_nodes) {}
GraphLoader::GraphLoader(GraphLoader&&) noexcept = default;
GraphLoader& GraphLoader::operator=(GraphLoader&&) noexcept = default;
GraphLoader::~GraphLoader() = default;

Status GraphLoader::PutNode(std::string_view external_id, const NodeContent& content) {
  return base::OrOutOfMemory([&] { return batch_->PutNode(external_id, content); });
}
Status GraphLoader::PutEdge(const EdgeName& name, const EdgeContent& content) {
  return base::OrOutOfMemory([&] { return batch_->PutEdge(name, content, make_nodes_); });
}
Result<basalt::Commit> GraphLoader::Commit(const WriteOptions& options) {
  return base::OrOutOfMemory([&] { return batch_->Write(options); });
}

}  // namespace basalt
