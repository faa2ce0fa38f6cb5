#include "graph/adjacency_delta.h"

#include <algorithm>

namespace basalt::graph {

AdjacencyDelta::~AdjacencyDelta() = default;

std::atomic<const DeltaEntry*>& AdjacencyDelta::HeadToChange(uint32_t node, NodeTag tag) {
  const size_t place = node / kNodesOfChunk;
  if (directories_.empty() || place >= directories_.back()->size()) {
    const size_t known = directories_.empty() ? 0 : directories_.back()->size();
    auto larger = std::make_unique<Directory>(std::max(place + 1, 2 * known));
    for (size_t i = 0; i < known; ++i) {
      (*larger)[i].store((*directories_.back())[i].load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
    }
    directories_.push_back(std::move(larger));
    bytes_.fetch_add(directories_.back()->size() * sizeof(void*), std::memory_order_relaxed);
    directory_.store(directories_.back().get(), std::memory_order_release);
  }
  std::atomic<Chunk*>& slot = (*directories_.back())[place];
  Chunk* chunk = slot.load(std::memory_order_relaxed);
  if (chunk == nullptr) {
    chunk = &chunks_.emplace_back();
    bytes_.fetch_add(sizeof(Chunk), std::memory_order_relaxed);
    slot.store(chunk, std::memory_order_release);
  }
  return (*chunk)[HeadPlace(node, tag)];
}

void AdjacencyDelta::Add(uint32_t node, NodeTag tag, DeltaEntry::Kind kind,
                         const AdjacentEdge& edge, EdgeDetail detail, uint64_t sequence) {
  std::atomic<const DeltaEntry*>& head = HeadToChange(node, tag);
  DeltaEntry entry{.older = head.load(std::memory_order_relaxed),
                   .sequence = sequence,
                   .edge = edge,
                   .kind = kind};
  if (entry.older != nullptr) entry.older_count = entry.older->older_count + 1;
  size_t bytes = sizeof entry;
  entry.edge.detail = nullptr;
  if (!detail.is_empty()) {
    details_.push_back(std::move(detail));
    entry.edge.detail = &details_.back();
    bytes += entry.edge.detail->bytes();
  }
  entries_.push_back(entry);
  if (node >= nodes_end()) nodes_end_.store(node + 1, std::memory_order_release);
  entry_count_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  head.store(&entries_.back(), std::memory_order_release);
}

void MergeEdges(const AdjacencyRows& rows, uint32_t node, const DeltaEntry* head, uint64_t sequence,
                std::vector<const DeltaEntry*>* entries, std::vector<AdjacentEdge>* edges) {
  entries->clear();
  edges->clear();
  auto [at, end] = rows.RangeOf(node);
  for (const DeltaEntry* entry = head; entry != nullptr; entry = entry->older) {
    if (entry->sequence > sequence) continue;
    if (entry->kind == DeltaEntry::Kind::kClear) {
      at = end;
      break;
    }
    entries->push_back(entry);
  }
  // Of one key the newest comes first.
  std::ranges::sort(*entries, [](const DeltaEntry* a, const DeltaEntry* b) {
    const auto order = a->edge.key() <=> b->edge.key();
    return order != 0 ? order < 0 : a->older_count > b->older_count;
  });
  const DeltaEntry* before = nullptr;
  for (const DeltaEntry* const entry : *entries) {
    if (before != nullptr && before->edge.key() == entry->edge.key()) continue;
    before = entry;
    for (; at < end && rows.At(at).key() < entry->edge.key(); ++at) edges->push_back(rows.At(at));
    if (at < end && rows.At(at).key() == entry->edge.key()) ++at;
    if (entry->kind == DeltaEntry::Kind::kPut) edges->push_back(entry->edge);
  }
  for (; at < end; ++at) edges->push_back(rows.At(at));
}

}  // namespace basalt::graph
