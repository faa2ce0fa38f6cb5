#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memtable/fresh_run.h"
#include "memtable/sorted_run.h"

// What has been sorted of a generation: for each keyspace a few runs of falling size, and what is
// fresh.
//
//   runs of a keyspace    [ 60'000 | 9'000 | 1'200 ] [ 17 ]   oldest first; each record in one run
//                           <- frozen ->               fresh  what a merge is reading at this
//                           moment
//
// A few new records are put into the fresh run, which changes in place (fresh_run.h). More of them,
// or those for which it has no room, become a run of their own together with it. Two neighbours are
// merged when the second has at least a quarter of the first's entries, or the first is tiny. So n
// records lie in at most log4 n + 1 runs, and a record is merged again only when its run grows by a
// quarter: the cost of order is O(log n) a record however often it is asked for. What is merged
// stands there twice meanwhile: so a merge of more than a million entries gives at most a quarter
// of all, and there are some eight runs more, until all are to become one.
//
// Each tail stands for an iterator, which looks into every run. So a run that has been made of many
// tails is merged earlier, with one that has up to eight times as many entries as it has had tails:
// where there is a scan after every insert there are three or four runs, and merges cost each scan
// eight copied entries a level, less than a search. Where tails are large this decides nothing.
//
// A list of runs never changes; an extension makes another one, of the same runs but for the last.
// An iterator holds the list of its keyspace, which keeps the runs.
//
// Locks. None here: the owner has one mutex, under which everything is called but Merge::Run. Small
// merges are made at once, inside Append. A larger one is handed out: its runs are frozen, it is
// made without the mutex, and put in their place afterwards. Meanwhile others append behind the
// frozen runs, and merge what they append. One merge is out at a time.
//
// Cost of one record after each of n, on average: its place among the fresh ones, a sixty-fourth of
// the allocations and the merge that make a run of them, and some ten entries copied for each
// level.

namespace basalt::memtable {

/// Of one keyspace, the oldest and largest first. Never changes once it is shared.
using RunList = std::vector<std::shared_ptr<const SortedRun>>;

class RunSet {
 public:
  /// So many entries are merged at once, by Append: some 10 us.
  static constexpr size_t kMergedAtOnceMax = 4096;
  /// A run is merged with the one before it once that has at most so many times its entries,
  static constexpr size_t kSizeRatio = 4;
  /// or has been made of more tails than an eighth of the other's entries.
  static constexpr size_t kTailRatio = 8;
  /// But a merge gives at most so many entries, or this part of the keyspace's.
  static constexpr size_t kMergedFreelyMax = size_t{1} << 20;
  static constexpr size_t kMergedPart = 4;
  /// Tails up to this are put in their places one by one.
  static constexpr size_t kInsertedMax = 8;

  /// `merged_freely_max` differs for tests.
  explicit RunSet(Sorter sorter, size_t merged_freely_max = kMergedFreelyMax) noexcept
      : sorter_(sorter), merged_freely_max_(merged_freely_max) {}
  RunSet(const RunSet&) = delete;
  RunSet& operator=(const RunSet&) = delete;

  /// Runs that are to take the place of others, all but the last of which are the same.
  struct Extended {
    std::shared_ptr<const RunList> runs;
    size_t kept = 0;  // so many are the same
  };
  /// New records of one keyspace.
  struct Tail {
    uint32_t keyspace = 0;
    std::vector<SortEntry> entries;  // whose prefixes are KeyPrefix(key, 0); not empty
    Extended extended{};             // for Append's own use
  };
  /// Adds all tails, each of another keyspace. Throws std::bad_alloc, and has added none then.
  void Append(std::span<Tail> tails);
  /// The same for one record, if its place is ready. False: it is not.
  bool AppendOne(uint32_t keyspace, const Record& record) noexcept;

  /// Without what is fresh. Null: it never had any.
  std::shared_ptr<const RunList> Of(uint32_t keyspace) const;
  /// A copy of what is fresh. Throws std::bad_alloc.
  SortedRun FreshOf(uint32_t keyspace) const;
  std::vector<uint32_t> Keyspaces() const;

  /// A merge that is out, of two neighbouring runs of one keyspace.
  class Merge {
   public:
    /// Without the mutex. Throws std::bad_alloc; to be put back all the same.
    void Run();

   private:
    friend class RunSet;

    uint32_t keyspace_ = 0;
    size_t first_ = 0;
    std::shared_ptr<const SortedRun> older_;
    std::shared_ptr<const SortedRun> newer_;
    uint64_t charged_bytes_ = 0;
    std::shared_ptr<const SortedRun> merged_;
  };
  /// A merge that Append has left, if any. Not while another is out.
  std::optional<Merge> TakeMerge();
  /// The next step on the way to one run for all of a keyspace; none: it has less than two. Not
  /// while another is out.
  std::optional<Merge> TakeMergeOfAll(uint32_t keyspace);
  /// Puts the merged run in place, or, if Run has failed, leaves everything as it was. Throws
  /// std::bad_alloc, and has done the latter then.
  void PutBack(Merge* merge);

  // Any thread, without the mutex.
  uint64_t entry_count() const noexcept { return entry_count_.load(std::memory_order_relaxed); }
  uint64_t run_count() const noexcept { return run_count_.load(std::memory_order_relaxed); }
  /// Of the runs, and of what a merge that is out takes.
  uint64_t memory_bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct KeyspaceRuns {
    std::shared_ptr<const RunList> runs = std::make_shared<const RunList>();
    size_t frozen = 0;        // runs before this one may be read by the merge that is out
    bool is_waiting = false;  // stands in waiting_
    FreshRun fresh;           // newer than all runs, and in none
  };

  /// Null: no record of that keyspace has come yet.
  KeyspaceRuns* Find(uint32_t keyspace) const;
  void Prepare(Tail* tail);
  /// The first of the last two neighbours that are to be merged.
  std::optional<size_t> FindMergeable(const RunList& runs) const noexcept;
  static Extended Extend(const KeyspaceRuns& held, RunView newest);
  void PutInPlace(uint32_t keyspace, KeyspaceRuns* held, const Extended& extended) noexcept;
  void Commit(const Tail& tail) noexcept;
  void InsertFresh(std::span<const SortEntry> entries, KeyspaceRuns* held) noexcept;
  void Wait(uint32_t keyspace, KeyspaceRuns* held) noexcept;
  Merge HandOut(uint32_t keyspace, KeyspaceRuns* held, size_t first);
  static void Add(std::atomic<uint64_t>* counter, uint64_t by) noexcept {
    counter->store(counter->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  const Sorter sorter_;
  const size_t merged_freely_max_;
  std::unordered_map<uint32_t, std::unique_ptr<KeyspaceRuns>> keyspaces_;
  mutable std::pair<uint32_t, KeyspaceRuns*> latest_{0, nullptr};  // found last
  std::vector<uint32_t> waiting_;  // keyspaces with runs to merge; has room for all keyspaces
  std::atomic<uint64_t> entry_count_{0};
  std::atomic<uint64_t> run_count_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace basalt::memtable
