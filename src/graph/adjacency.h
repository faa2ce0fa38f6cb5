#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "basalt/changes.h"
#include "basalt/iterator.h"
#include "basalt/snapshot.h"
#include "basalt/store.h"
#include "graph/adjacency_base.h"
#include "graph/adjacency_delta.h"

// The edges of a graph in memory, derived from its records and kept current by its commits.
//
// A version is a base and the delta of the commits since. Invariant: a version that has
// applied all commits up to A answers for every snapshot whose sequence number lies between the
// base's and A, exactly as the records do at that snapshot. Reader checks this (Covers) and scans
// the records if it does not hold.
//
// Following. The store hands each commit to the listener, in order, before its write returns
// (changes.h). The listener adds it to the delta.
//
// Building. A new version has an empty delta at first. It is attached: from then on the listener
// adds each commit to its delta, too. Then its base is made, either from the records at a snapshot
// that is taken after that, or from the present version at the last commit that this had applied
// when the new one was attached. Then the new one takes the place of the present one. So no commit
// is lost, whatever is committed meanwhile. Readers keep the version that they have begun with;
// the last one frees it.
//
// When it is built. Nothing is built, and no commit is followed, before reads have scanned the
// edges of several thousand nodes (Tuning), or Rebuild is called. A thread then builds the first
// version, and a further one whenever the delta has grown to a quarter of the base.
//
// Giving up. If a version needs more memory than is allowed, or a commit cannot be followed (a
// malformed record, a merge, a range delete across nodes), the versions are dropped, and reads
// scan the records until Rebuild.
//
// Locks: build_mutex_ is held by the thread that builds, and guards subscription_. follow_mutex_
// guards which versions are followed; the listener takes it, so the store is never called under
// it. current_mutex_ guards the pointer that readers copy. They are taken in this order.

namespace basalt::graph {

struct AdjacencyVersion {
  AdjacencyBase base{};
  uint64_t base_sequence = 0;
  WallTime base_time{};  ///< Edges that had expired by then are not in the base.
  AdjacencyDelta delta{};
  std::atomic<uint64_t> applied{0};  ///< All commits up to this one are in the base or the delta.
  bool is_followed = true;           ///< False: a commit is missing. The listener's.

  bool Covers(const Snapshot& snapshot) const noexcept {
    return base_sequence <= snapshot.sequence() && base_time <= snapshot.time() &&
           snapshot.sequence() <= applied.load(std::memory_order_acquire);
  }
  size_t bytes() const noexcept { return base.bytes() + delta.bytes(); }
};

class Adjacency {
 public:
  using Version = std::shared_ptr<const AdjacencyVersion>;

  struct Tuning {
    uint64_t scanned_nodes_before_build = 4'096;
    size_t delta_entries_min = 65'536;  ///< A smaller delta is not merged.
  };

  /// `bytes_max`: for one version. 0: nothing is ever built.
  Adjacency(Store* store, KeyspaceId keyspace, uint64_t bytes_max, const Tuning& tuning);
  ~Adjacency();
  Adjacency(const Adjacency&) = delete;
  Adjacency& operator=(const Adjacency&) = delete;

  /// Null: reads have to scan the records.
  Version Current() const {
    const std::lock_guard lock(current_mutex_);
    return current_;
  }
  /// Reads report each node whose edges they have scanned.
  void CountScannedNode() noexcept {
    const uint64_t before = scanned_nodes_.fetch_add(1, std::memory_order_relaxed);
    if (before + 1 == tuning_.scanned_nodes_before_build && bytes_max_ != 0) WakeWorker();
  }
  /// Builds a version from the records. ResourceExhausted: it needs more memory than is allowed.
  Status Rebuild();

  // The two steps of a merge of the base and the delta into a new base. The worker takes both;
  // tests put commits between them.
  struct Merge {
    std::unique_lock<std::mutex> building;
    Version from;
    std::shared_ptr<AdjacencyVersion> next;  ///< It is attached.
  };
  /// Null: there is no version.
  std::unique_ptr<Merge> BeginMerge();
  Status FinishMerge(std::unique_ptr<Merge> merge);

 private:
  class RowsBuilder;

  Status RebuildAttached(AdjacencyVersion* next);
  Status ReadRecords(const Snapshot& snapshot, AdjacencyVersion* next) const;
  Status Subscribe();
  uint64_t Attach(std::shared_ptr<AdjacencyVersion> next);
  Status Publish();
  void GiveUp() noexcept;
  Version GiveUpLocked() noexcept;
  Status MergeInto(const Merge& merge);
  bool IsLarge(const AdjacencyVersion& version) const noexcept;
  bool IsStopping() const noexcept { return is_stopping_.load(std::memory_order_relaxed); }

  void OnCommit(const CommittedBatch& batch) noexcept;
  void Follow(const CommittedBatch& batch, AdjacencyVersion* version) noexcept;
  bool FollowRecord(const WriteBatch::Record& record, uint64_t sequence,
                    AdjacencyDelta* delta) const;

  void WakeWorker() noexcept;
  void RunWorker();
  void Work();
  bool EndIfGivenUp();

  Store* const store_;
  const KeyspaceId keyspace_;
  const uint64_t bytes_max_;
  const Tuning tuning_;
  const uint64_t fork_count_;
  std::atomic<uint64_t> scanned_nodes_{0};
  std::atomic<bool> is_stopping_{false};

  std::mutex build_mutex_;
  Subscription subscription_;
  std::mutex follow_mutex_;
  uint64_t delivered_ = 0;                      // The last commit that the listener received.
  std::shared_ptr<AdjacencyVersion> followed_;  // What current_ is.
  std::shared_ptr<AdjacencyVersion> next_;      // It is being built.
  bool has_given_up_ = false;
  mutable std::mutex current_mutex_;
  Version current_;

  std::mutex worker_mutex_;  // Guards the three below.
  std::condition_variable worker_wakes_;
  bool has_work_ = false;
  std::thread worker_;
};

}  // namespace basalt::graph
