#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "graph/adjacency_base.h"

// What commits have changed since a base was made.
//
//   Directory -> Chunk -> head -> DeltaEntry -> DeltaEntry -> ...
//
// Each node has a chain of entries for each direction, the newest first. A chunk has the heads of
// 1,024 nodes and exists once one of them has an entry. The directory grows by being replaced. An
// entry has the sequence number of its commit and never changes. Nothing is freed before the delta.
//
// A reader at sequence number S passes over the entries above S. Of the others the newest of each
// key counts, and it replaces an edge of the base. What lies behind a kClear does not count, nor
// does the base.
//
// Entries that the base contains already do no harm once all entries up to the base's sequence
// number are there: the newest of each key says what the base says.
//
// Threads: one writer at a time, any number of readers beside it. A reader takes no lock.
//
// Cost: 48 bytes an entry, two entries a changed edge. A node without entries costs two loads. A
// node with k entries costs a sort of k.

namespace basalt::graph {

struct DeltaEntry {
  enum class Kind : uint8_t { kPut, kDelete, kClear };

  const DeltaEntry* older = nullptr;
  uint64_t sequence = 0;
  AdjacentEdge edge{};
  Kind kind = Kind::kPut;
  uint32_t older_count = 0;  ///< Entries behind `older`.
};

class AdjacencyDelta {
 public:
  AdjacencyDelta() = default;
  ~AdjacencyDelta();
  AdjacencyDelta(const AdjacencyDelta&) = delete;
  AdjacencyDelta& operator=(const AdjacencyDelta&) = delete;

  /// The newest entry. Null: there is none.
  const DeltaEntry* Head(uint32_t node, NodeTag tag) const noexcept {
    const Directory* const directory = directory_.load(std::memory_order_acquire);
    const size_t place = node / kNodesOfChunk;
    if (directory == nullptr || place >= directory->size()) return nullptr;
    const Chunk* const chunk = (*directory)[place].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr
                            : (*chunk)[HeadPlace(node, tag)].load(std::memory_order_acquire);
  }
  bool empty() const noexcept { return directory_.load(std::memory_order_acquire) == nullptr; }

  // Only the writer. They throw std::bad_alloc, and then have changed nothing.
  /// `detail`: of the edge, in place of edge.detail.
  void Add(uint32_t node, NodeTag tag, DeltaEntry::Kind kind, const AdjacentEdge& edge,
           EdgeDetail detail, uint64_t sequence);
  void Clear(uint32_t node, NodeTag tag, uint64_t sequence) {
    Add(node, tag, DeltaEntry::Kind::kClear, {}, {}, sequence);
  }

  // What the writer has added so far.
  size_t entries() const noexcept { return entry_count_.load(std::memory_order_relaxed); }
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  /// One more than the greatest node that has an entry.
  uint32_t nodes_end() const noexcept { return nodes_end_.load(std::memory_order_acquire); }

 private:
  static constexpr uint32_t kNodesOfChunk = 1024;
  using Chunk = std::array<std::atomic<const DeltaEntry*>, size_t{2} * kNodesOfChunk>;
  using Directory = std::vector<std::atomic<Chunk*>>;

  static size_t HeadPlace(uint32_t node, NodeTag tag) noexcept {
    return size_t{2} * (node % kNodesOfChunk) + (tag == NodeTag::kOut ? 0 : 1);
  }
  std::atomic<const DeltaEntry*>& HeadToChange(uint32_t node, NodeTag tag);

  std::atomic<const Directory*> directory_{nullptr};
  std::vector<std::unique_ptr<Directory>> directories_;  // The last is the present one.
  std::deque<Chunk> chunks_;
  std::deque<DeltaEntry> entries_;
  std::deque<EdgeDetail> details_;
  std::atomic<size_t> entry_count_{0};
  std::atomic<size_t> bytes_{0};
  std::atomic<uint32_t> nodes_end_{0};
};

/// The edges of a node that a reader at `sequence` sees, in the order of keys. `entries` is
/// scratch.
void MergeEdges(const AdjacencyRows& rows, uint32_t node, const DeltaEntry* head, uint64_t sequence,
                std::vector<const DeltaEntry*>* entries, std::vector<AdjacentEdge>* edges);

}  // namespace basalt::graph
