#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "basalt/snapshot.h"
#include "basalt/store.h"
#include "vector/hnsw_index.h"
#include "vector/row_set.h"
#include "vector/vector_record.h"

// The graph of a vector index as records of its own keyspace.
//
//   key                            value
//   "c" "head"                     8  the checkpoint's number, which is random
//                                  8  bytes of the image
//                                  8  bytes of the rows
//                                  8  checksum
//   "c" "part" number u32 part     8  checksum of the number, the part and what follows
//                                  kPartBytes of image and rows, the last part fewer
//
//   image                          hnsw_checkpoint.h
//   rows                           each: u32 slot, u64 stamp, varint bytes of the id, the id
//
// Numbers in keys are big-endian, others little-endian. The head is written when all parts are
// there, so that it changes from one checkpoint to the next as a whole. The parts of other
// checkpoints are removed afterwards.
//
// What is read is never believed beyond its worth. A checksum, the length, or the image's own look
// at itself may find damage: then there is no checkpoint, and the graph is made anew. A row counts
// only where the store has a record with the same id and stamp. So a checkpoint of any age serves,
// also one that was saved beside writers or restored from a copy.

namespace basalt::vector {

/// A graph, and which record each of its slots was made of.
struct LoadedGraph {
  std::unique_ptr<HnswIndex> graph;
  std::unordered_map<std::string, LinkedRow> rows;

  /// The slot that was made of this very record; null: there is none.
  const LinkedRow* Find(std::string_view id, uint64_t stamp) const {
    const auto found = rows.find(std::string(id));
    return found != rows.end() && found->second.stamp == stamp ? &found->second : nullptr;
  }
};

/// Saves the graph of `rows`. Does nothing where there is none. An error is the store's, or
/// ResourceExhausted; the checkpoint before stays.
Status SaveGraph(Store* store, KeyspaceId keyspace, RowSet* rows);

/// Null: there is none that can be believed. An error is the store's. Throws std::bad_alloc.
Result<std::unique_ptr<LoadedGraph>> LoadGraph(const Store& store, KeyspaceId keyspace,
                                               const Snapshot& snapshot,
                                               const IndexMetadata& metadata);

}  // namespace basalt::vector
