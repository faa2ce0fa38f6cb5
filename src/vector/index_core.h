#pragma once

// src/vector: nearest-neighbour search. Read IndexCore first, the index in a store; HnswIndex
// (hnsw_index.h) is the graph in memory.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/changes.h"
#include "basalt/store.h"
#include "basalt/vector.h"
#include "basalt/vector_index.h"
#include "vector/row_set.h"
#include "vector/vector_record.h"

// The implementation of VectorIndex: the records of its keyspace, and the rows in memory that
// follow them.
//
// Invariant. The rows are those of a commit C of the store, whole, and every write that has
// returned is at or below C. The store passes each commit to the listener, in order, before its
// write returns (changes.h), and the listener applies it to the rows.
//
// Loading. The listener is registered first, and holds back the commits that it receives. Then a
// snapshot is taken and all its records are read. The held commits that are newer than the snapshot
// follow. If commits cannot be followed (a merge into a record, no memory), the rows are broken:
// searches read the store until the rows have been loaded again.
//
// Upkeep. There is no thread. A caller that writes through the index then links rows of blocks into
// the graph, four for each that it wrote, so blocks become empty even if other callers write the
// keyspace directly.
//
// Locks: follow_mutex_ guards which rows are followed and the held commits. The listener takes it,
// so no thread may call the store under it. load_mutex_ is held by the loading thread.

namespace basalt::vector {

class IndexCore {
 public:
  using ProgressFunction = std::function<void(uint64_t read, uint64_t linked)>;

  IndexCore(Store* store, KeyspaceId keyspace, IndexMetadata metadata, VectorDistance distance,
            const RowSet::Options& row_options)
      : store_(*store),
        keyspace_(keyspace),
        metadata_(std::move(metadata)),
        distance_(distance),
        row_options_(row_options) {}
  IndexCore(const IndexCore&) = delete;
  IndexCore& operator=(const IndexCore&) = delete;

  static Result<std::unique_ptr<IndexCore>> Create(Store* store, std::string_view name,
                                                   const VectorIndexOptions& options,
                                                   const RowSet::Options& row_options = {});
  static Result<std::unique_ptr<IndexCore>> Open(Store* store, std::string_view name,
                                                 const VectorIndexOptions& options,
                                                 const RowSet::Options& row_options = {});

  Store& store() const noexcept { return store_; }
  KeyspaceId keyspace() const noexcept { return keyspace_; }
  const IndexMetadata& metadata() const noexcept { return metadata_; }
  bool is_from_checkpoint() const noexcept {
    return is_from_checkpoint_.load(std::memory_order_relaxed);
  }
  uint64_t unreadable() const noexcept { return unreadable_.load(std::memory_order_relaxed); }

  std::shared_ptr<RowSet> rows() const {
    const std::lock_guard lock(follow_mutex_);
    return rows_;
  }
  Result<VectorSearchResult> Search(std::span<const float> query,
                                    const VectorSearchOptions& options) const;
  Result<uint64_t> Count() const;

  /// After `written` vectors were written. Its errors are for later calls to overcome.
  void Upkeep(size_t written);
  Status Compact();
  Status SaveCheckpoint();

 private:
  struct HeldBatch {
    std::string bytes;
    size_t count;
    Commit commit;
  };

  Status Start(const ProgressFunction& progress);
  /// Does nothing where the rows are there and not broken.
  Status Load(const ProgressFunction& progress);
  Status LoadHolding(const ProgressFunction& progress);
  Status ReadRecords(const Snapshot& snapshot, RowSet* rows, const ProgressFunction& progress);
  void OnCommit(const CommittedBatch& batch) noexcept;
  bool IsAbout(const CommittedBatch& batch) const;
  void Follow(const CommittedBatch& batch, RowSet* rows);
  void FollowRecord(const WriteBatch::Record& record, RowSet::Update* update, bool* is_followed);

  Store& store_;
  const KeyspaceId keyspace_;
  const IndexMetadata metadata_;
  const VectorDistance distance_;
  const RowSet::Options row_options_;
  std::atomic<uint64_t> unreadable_{0};
  std::atomic<bool> is_from_checkpoint_{false};

  std::mutex load_mutex_;
  mutable std::mutex follow_mutex_;
  std::shared_ptr<RowSet> rows_;
  bool is_holding_ = false;
  bool has_lost_held_ = false;
  std::vector<HeldBatch> held_;

  Subscription subscription_;  ///< Last: it ends first.
};

/// Makes a VectorIndex of a core: for tests that choose the core's options.
struct IndexAccess {
  static std::unique_ptr<VectorIndex> Make(std::unique_ptr<IndexCore> core) {
    return std::unique_ptr<VectorIndex>(new VectorIndex(std::move(core)));
  }
};

}  // namespace basalt::vector
