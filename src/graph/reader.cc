#include "graph/reader.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "graph/keys.h"

namespace basalt::graph {
namespace {

constexpr int kSnapshotsMax = 4;
constexpr int kLooksMax = 32;

}  // namespace

Result<std::unique_ptr<Reader>> Reader::Open(const Core* core) {
  std::unique_ptr<Reader> reader(new Reader(core, nullptr));
  BASALT_RETURN_IF_ERROR(reader->TakeSnapshot());
  BASALT_RETURN_IF_ERROR(reader->LoadRemoved());
  return reader;
}

Result<std::unique_ptr<Reader>> Reader::Open(const Core* core, Transaction* tx) {
  std::unique_ptr<Reader> reader(new Reader(core, tx));
  BASALT_RETURN_IF_ERROR(reader->LoadRemoved());
  return reader;
}

/// A commit is visible a moment before the adjacency has it, so that the snapshot waits for it. If
/// that takes long, or if the adjacency was made after the snapshot, another snapshot is taken; at
/// last edges are read from the records.
Status Reader::TakeSnapshot() {
  for (int taken = 0; taken < kSnapshotsMax; ++taken) {
    snapshot_.reset();
    BASALT_ASSIGN_OR_RETURN(snapshot_, core_->store().GetSnapshot());
    for (int looks = 0; looks < kLooksMax; ++looks) {
      adjacency_ = core_->adjacency().Current();
      if (adjacency_ == nullptr || adjacency_->Covers(*snapshot_)) return {};
      std::this_thread::yield();
    }
  }
  adjacency_ = nullptr;
  return {};
}

/// A transaction tracks this read. The removal of a node with many edges leaves the records of its
/// edges unchanged at first, so that only the kRemoval record shows the conflict.
Status Reader::LoadRemoved() {
  const std::string prefix = CatalogueKey(CatalogueTag::kRemoval);
  const auto it = NewIterator(prefix, /*keys_only=*/true);
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (const auto node = ParseRemovalKey(it->key())) removed_.insert(*node);
  }
  return it->status();
}

ReadOptions Reader::options() const {
  return {.snapshot = snapshot_ ? &*snapshot_ : nullptr, .keyspace = core_->keyspace()};
}

Result<MaybeValue> Reader::Get(std::string_view key) const {
  return tx_ != nullptr ? tx_->Get(key, options()) : core_->store().Get(key, options());
}

Result<std::optional<Entry>> Reader::GetEntry(std::string_view key) const {
  return tx_ != nullptr ? tx_->GetEntry(key, options()) : core_->store().GetEntry(key, options());
}

std::unique_ptr<Iterator> Reader::NewIterator(const ReadOptions& options) const {
  return tx_ != nullptr ? tx_->NewIterator(options) : core_->store().NewIterator(options);
}
std::unique_ptr<Iterator> Reader::NewIterator(std::string_view prefix, bool keys_only) const {
  ReadOptions read = options();
  read.prefix = prefix;
  read.keys_only = keys_only;
  return NewIterator(read);
}
std::unique_ptr<Iterator> Reader::NewIterator() const { return NewIterator(options()); }

Result<std::optional<uint32_t>> Reader::FindName(Dictionary dictionary,
                                                 std::string_view name) const {
  if (tx_ != nullptr) return core_->names().Find(*tx_, dictionary, name);
  return core_->names().Find(dictionary, name);
}

Result<std::optional<NodeId>> Reader::FindNode(std::string_view external_id) const {
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found, Get(ExternalIdKey(external_id)));
  if (!found) return std::nullopt;
  BASALT_ASSIGN_OR_RETURN(const NodeId node, ParseNodeId(found->view()));
  return std::optional(node);
}

Result<std::optional<NodeRecord>> Reader::GetRecord(NodeId node) const {
  if (static_cast<uint64_t>(node) == kCatalogue) return std::nullopt;
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found, Get(NodeKey(node, NodeTag::kNode)));
  if (!found) return std::nullopt;
  BASALT_ASSIGN_OR_RETURN(NodeRecord record, DecodeNode(found->view()));
  return std::optional(std::move(record));
}

Result<Properties> Reader::PropertiesOf(PropertyList list) const {
  Properties properties;
  for (auto& [id, value] : list) {
    BASALT_ASSIGN_OR_RETURN(const std::string_view name,
                            core_->names().NameOf(Dictionary::kPropertyName, id));
    properties.emplace(name, std::move(value));
  }
  return properties;
}

Result<Node> Reader::NodeOf(NodeId id, NodeRecord record) const {
  Node node{.id = id, .external_id = std::move(record.external_id), .labels = {}, .properties = {}};
  for (const uint32_t label : record.labels) {
    BASALT_ASSIGN_OR_RETURN(const std::string_view name,
                            core_->names().NameOf(Dictionary::kLabel, label));
    node.labels.emplace_back(name);
  }
  std::ranges::sort(node.labels);
  BASALT_ASSIGN_OR_RETURN(node.properties, PropertiesOf(std::move(record.properties)));
  return node;
}

Result<EdgeContent> Reader::ContentOf(EdgeRecord record) const {
  const auto time_of = [](std::optional<int64_t> ms) -> std::optional<WallTime> {
    if (!ms) return std::nullopt;
    return WallTime(std::chrono::milliseconds(*ms));
  };
  BASALT_ASSIGN_OR_RETURN(Properties properties, PropertiesOf(std::move(record.properties)));
  return EdgeContent{.weight = record.head.weight,
                     .properties = std::move(properties),
                     .valid_from = time_of(record.head.valid_from_ms),
                     .valid_to = time_of(record.head.valid_to_ms)};
}

}  // namespace basalt::graph
