// A look at all records of a graph, and counts of them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/graph.h"
#include "basalt/iterator.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/out_of_memory.h"
#include "base/printable_key.h"
#include "graph/core.h"
#include "graph/keys.h"
#include "graph/reader.h"
#include "graph/record.h"

namespace basalt {
namespace {

using graph::CatalogueTag;
using graph::Dictionary;
using graph::NodeTag;

/// Compares each record with those that it must agree with.
class Verifier {
 public:
  Verifier(const graph::Reader* reader, size_t faults_max)
      : reader_(reader), faults_max_(faults_max) {}

  Result<std::vector<std::string>> Run() {
    const auto it = reader_->NewIterator();
    for (it->SeekToFirst(); it->Valid() && faults_.size() < faults_max_; it->Next()) {
      BASALT_RETURN_IF_ERROR(Look(*it));
    }
    BASALT_RETURN_IF_ERROR(it->status());
    return std::move(faults_);
  }

 private:
  Status Look(const Iterator& at) {
    const std::string_view key = at.key();
    const std::string_view value = at.value();
    if (key.size() < graph::kNodePrefixBytes) return Fault(key, "the key has no tag");
    const auto owner = graph::LoadBigEndian<uint64_t>(key.data());
    if (owner == graph::kCatalogue) return LookAtCatalogue(key, value);
    const NodeId node{owner};
    if (reader_->IsRemoved(node)) return {};
    if (static_cast<NodeTag>(key[8]) == NodeTag::kNode) return LookAtNode(key, node, value);
    return LookAtEdge(key, value, at.expiry());
  }

  Status LookAtCatalogue(std::string_view key, std::string_view value) {
    const std::string_view rest = key.substr(graph::kNodePrefixBytes);
    switch (static_cast<CatalogueTag>(key[8])) {
      case CatalogueTag::kFormat:
        return rest.empty() ? Status() : Fault(key, "the key of the format is too long");
      case CatalogueTag::kExternalId:
        return LookAtExternalId(key, rest, value);
      case CatalogueTag::kNameId:
        return LookAtNameId(key, rest, value);
      case CatalogueTag::kName:
        return LookAtName(key, rest, value);
      case CatalogueTag::kCounter:
        return LookAtCounter(key, value);
      case CatalogueTag::kRemoval:
        return LookAtRemoval(key);
      case CatalogueTag::kLastRemoval: {
        const bool is_good = rest.empty() && graph::ParseNodeId(value).ok();
        return is_good ? Status() : Fault(key, "the last removal names no node");
      }
    }
    return Fault(key, "the tag is unknown");
  }

  Status LookAtExternalId(std::string_view key, std::string_view id, std::string_view value) {
    const Result<NodeId> node = graph::ParseNodeId(value);
    if (!node) return Fault(key, "the external id names no node");
    BASALT_RETURN_IF_ERROR(
        CheckBelowCounter(key, graph::kNodeCounter, static_cast<uint64_t>(*node)));
    const Result<std::optional<graph::NodeRecord>> record = reader_->GetRecord(*node);
    if (!record) return FaultOrError(key, record.error());
    if (!*record) return Fault(key, "the node of the external id has no record");
    if ((*record)->external_id != id) return Fault(key, "the node has another external id");
    return {};
  }

  Status CheckBelowCounter(std::string_view key, uint8_t counter, uint64_t id) {
    BASALT_ASSIGN_OR_RETURN(const MaybeValue next, reader_->Get(graph::CounterKey(counter)));
    const bool is_good =
        next && next->size() == 8 && id < base::Load<uint64_t>(next->view().data());
    return is_good ? Status() : Fault(key, "the id was not given out yet");
  }

  Status LookAtCounter(std::string_view key, std::string_view value) {
    if (key.size() != graph::kNodePrefixBytes + 1 || value.size() != 8) {
      return Fault(key, "a counter is malformed");
    }
    const auto next = base::Load<uint64_t>(value.data());
    const bool is_good = next <= (static_cast<uint8_t>(key.back()) == graph::kNodeCounter
                                      ? graph::kNodeIdMax
                                      : uint64_t{UINT32_MAX} + 1);
    return is_good ? Status() : Fault(key, "a counter is out of range");
  }

  Status LookAtNameId(std::string_view key, std::string_view rest, std::string_view value) {
    if (rest.empty() || value.size() != 4) return Fault(key, "a name has no id");
    const auto dictionary = static_cast<Dictionary>(rest[0]);
    const auto id = base::Load<uint32_t>(value.data());
    BASALT_RETURN_IF_ERROR(
        CheckBelowCounter(key, static_cast<uint8_t>(1 + static_cast<int>(rest[0])), id));
    BASALT_ASSIGN_OR_RETURN(const MaybeValue name, reader_->Get(graph::NameKey(dictionary, id)));
    if (!name || name->view() != rest.substr(1)) return Fault(key, "its id has another name");
    return {};
  }

  Status LookAtName(std::string_view key, std::string_view rest, std::string_view value) {
    if (rest.size() != 5) return Fault(key, "the id of a name is not of 4 bytes");
    const auto dictionary = static_cast<Dictionary>(rest[0]);
    BASALT_ASSIGN_OR_RETURN(const MaybeValue id, reader_->Get(graph::NameIdKey(dictionary, value)));
    if (!id || id->size() != 4 ||
        base::Load<uint32_t>(id->view().data()) !=
            graph::LoadBigEndian<uint32_t>(rest.data() + 1)) {
      return Fault(key, "its name has another id");
    }
    return {};
  }

  Status LookAtRemoval(std::string_view key) {
    const std::optional<NodeId> node = graph::ParseRemovalKey(key);
    if (!node) return Fault(key, "a removal names no node");
    BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                            reader_->Get(graph::NodeKey(*node, NodeTag::kNode)));
    return found ? Fault(key, "a node that is being removed has a record") : Status();
  }

  Status LookAtNode(std::string_view key, NodeId node, std::string_view value) {
    if (key.size() != graph::kNodePrefixBytes) return Fault(key, "the key of a node is too long");
    Result<graph::NodeRecord> record = graph::DecodeNode(value);
    if (!record) return FaultOrError(key, record.error());
    const Result<std::optional<NodeId>> named = reader_->FindNode(record->external_id);
    if (!named) return FaultOrError(key, named.error());
    if (*named != node) return Fault(key, "the external id of the node does not lead to it");
    return CheckNames(key, reader_->NodeOf(node, *std::move(record)).status());
  }

  Status LookAtEdge(std::string_view key, std::string_view value, std::optional<WallTime> expiry) {
    const auto edge = graph::ParseEdgeKey(key);
    if (!edge) return Fault(key, "the tag is unknown");
    const bool is_out = edge->tag == NodeTag::kOut;
    BASALT_ASSIGN_OR_RETURN(const MaybeValue owner,
                            reader_->Get(graph::NodeKey(edge->owner, NodeTag::kNode)));
    if (!owner) return Fault(key, "the edge belongs to a node that is absent");
    if (reader_->IsRemoved(edge->other)) return {};  // The removal deletes this record, too.
    BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> other, reader_->GetEntry(edge->OtherKey()));
    if (!other) {
      return Fault(key, is_out ? "the edge is missing at the node that it leads to"
                               : "the edge is missing at the node that it comes from");
    }
    if (other->expiry != expiry) return Fault(key, "the two ends of the edge expire apart");
    const std::string_view at_other = other->value.view();
    Result<graph::EdgeRecord> record = graph::DecodeEdge(is_out ? value : at_other);
    if (!record) return FaultOrError(key, record.error());
    if (graph::EncodeHead(record->head) != (is_out ? at_other : value)) {
      return Fault(key, "the two ends of the edge differ");
    }
    if (!is_out) return {};
    BASALT_RETURN_IF_ERROR(CheckNames(
        key, reader_->core().names().NameOf(Dictionary::kEdgeType, edge->type).status()));
    return CheckNames(key, reader_->PropertiesOf(std::move(record->properties)).status());
  }

  Status CheckNames(std::string_view key, const Status& status) {
    return status.ok() ? status : FaultOrError(key, status);
  }

  Status Fault(std::string_view key, std::string_view what) {
    faults_.push_back(std::string(what) + ": record " + base::PrintableKey(key));
    return {};
  }
  /// What is malformed is a fault; what cannot be read is an error.
  Status FaultOrError(std::string_view key, const Status& status) {
    return status.code() == StatusCode::kCorruption ? Fault(key, status.message()) : status;
  }

  const graph::Reader* reader_;
  const size_t faults_max_;
  std::vector<std::string> faults_;
};

void Count(std::string_view key, const graph::Reader& reader, GraphStats* stats) {
  if (key.size() < graph::kNodePrefixBytes) return;
  const auto owner = graph::LoadBigEndian<uint64_t>(key.data());
  if (owner != graph::kCatalogue) {
    if (static_cast<NodeTag>(key[8]) == NodeTag::kNode) ++stats->nodes;
    const auto edge = graph::ParseEdgeKey(key);
    if (edge && edge->tag == NodeTag::kOut && !reader.IsRemoved(edge->owner) &&
        !reader.IsRemoved(edge->other)) {
      ++stats->edges;
    }
    return;
  }
  const auto tag = static_cast<CatalogueTag>(key[8]);
  if (tag == CatalogueTag::kRemoval) ++stats->removals;
  if (tag != CatalogueTag::kName || key.size() == graph::kNodePrefixBytes) return;
  switch (static_cast<Dictionary>(key[graph::kNodePrefixBytes])) {
    case Dictionary::kLabel:
      ++stats->labels;
      break;
    case Dictionary::kEdgeType:
      ++stats->edge_types;
      break;
    case Dictionary::kPropertyName:
      ++stats->property_names;
      break;
  }
}

}  // namespace

Result<std::vector<std::string>> Graph::Verify(size_t faults_max) const {
  return base::OrOutOfMemory([&]() -> Result<std::vector<std::string>> {
    BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Reader> reader,
                            graph::Reader::Open(core_.get()));
    return Verifier(reader.get(), faults_max).Run();
  });
}

Result<GraphStats> Graph::GetStats() const {
  return base::OrOutOfMemory([&]() -> Result<GraphStats> {
    BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Reader> reader,
                            graph::Reader::Open(core_.get()));
    GraphStats stats;
    const auto it = reader->NewIterator({}, /*keys_only=*/true);
    for (it->SeekToFirst(); it->Valid(); it->Next()) Count(it->key(), *reader, &stats);
    BASALT_RETURN_IF_ERROR(it->status());
    if (reader->adjacency() != nullptr) stats.adjacency_bytes = reader->adjacency()->bytes();
    return stats;
  });
}

}  // namespace basalt
