#include "basalt/graph.h"

#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "graph/core.h"
#include "graph/reader.h"

namespace basalt {

Graph::Graph(std::unique_ptr<graph::Core> core) : core_(std::move(core)) {}
Graph::~Graph() = default;

Result<std::unique_ptr<Graph>> Graph::Open(Store* store, const GraphOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<Graph>> {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<graph::Core> core, graph::Core::Open(store, options));
    return std::unique_ptr<Graph>(new Graph(std::move(core)));
  });
}

Result<NodeId> Graph::PutNode(Transaction& tx, std::string_view external_id,
                              const NodeContent& content) {
  return base::OrOutOfMemory([&] { return core_->PutNode(tx, external_id, content); });
}
Result<bool> Graph::RemoveNode(Transaction& tx, std::string_view external_id) {
  bool is_left = false;
  return base::OrOutOfMemory([&] { return core_->RemoveNode(tx, external_id, &is_left); });
}
Status Graph::PutEdge(Transaction& tx, const EdgeName& name, const EdgeContent& content) {
  return base::OrOutOfMemory([&] { return core_->PutEdge(tx, name, content); });
}
Result<bool> Graph::RemoveEdge(Transaction& tx, const EdgeName& name) {
  return base::OrOutOfMemory([&] { return core_->RemoveEdge(tx, name); });
}

namespace {

/// What `change(tx)` answers in a transaction of its own that commits.
template <class T, class Change>
Result<T> InTransaction(Store& store, const Change& change) {
  return base::OrOutOfMemory([&]() -> Result<T> {
    T answer{};
    BASALT_RETURN_IF_ERROR(Transact(store, [&](Transaction& tx) -> Status {
      BASALT_ASSIGN_OR_RETURN(answer, change(tx));
      return {};
    }));
    return answer;
  });
}

}  // namespace

Result<NodeId> Graph::PutNode(std::string_view external_id, const NodeContent& content) {
  return InTransaction<NodeId>(
      core_->store(), [&](Transaction& tx) { return core_->PutNode(tx, external_id, content); });
}

Result<bool> Graph::RemoveNode(std::string_view external_id) {
  bool is_left = false;
  Result<bool> removed = InTransaction<bool>(core_->store(), [&](Transaction& tx) {
    return core_->RemoveNode(tx, external_id, &is_left);
  });
  if (removed && is_left) BASALT_RETURN_IF_ERROR(FinishRemovals());
  return removed;
}

Status Graph::PutEdge(const EdgeName& name, const EdgeContent& content) {
  return base::OrOutOfMemory([&]() -> Status {
    return Transact(core_->store(),
                    [&](Transaction& tx) { return core_->PutEdge(tx, name, content); });
  });
}

Result<bool> Graph::RemoveEdge(const EdgeName& name) {
  return InTransaction<bool>(core_->store(),
                             [&](Transaction& tx) { return core_->RemoveEdge(tx, name); });
}

Status Graph::FinishRemovals() {
  return base::OrOutOfMemory([&] { return core_->FinishRemovals(); });
}

Status Graph::RebuildAdjacency() {
  return base::OrOutOfMemory([&] { return core_->adjacency().Rebuild(); });
}

Result<GraphView> Graph::Read() const {
  return base::OrOutOfMemory([&]() -> Result<GraphView> {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<graph::Reader> reader,
                            graph::Reader::Open(core_.get()));
    return GraphView(std::move(reader));
  });
}

Result<GraphView> Graph::Read(Transaction& tx) const {
  return base::OrOutOfMemory([&]() -> Result<GraphView> {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<graph::Reader> reader,
                            graph::Reader::Open(core_.get(), &tx));
    return GraphView(std::move(reader));
  });
}

}  // namespace basalt
