#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <vector>

#include "basalt/memtable.h"
#include "base/epoch.h"
#include "base/fork_generation.h"
#include "base/internal_key.h"
#include "base/range_cover.h"
#include "memtable/generation.h"
#include "memtable/sequencer.h"
#include "memtable/sort_delay.h"

// An ordered store of generations: what stands behind basalt::MemTable.
//
// Layout
//
//   state ....... one immutable list {active generation, sealed ones, newest first}, replaced as a
//                 whole; readers and writers load it inside an epoch
//   sequencer ... gives each record its sequence, and knows what is under way (sequencer.h)
//   snapshots ... the sequences that compaction has to keep
//
// A write takes its sequence, looks whether the generation that it writes to is still the active
// one, and if not takes its record back and begins anew. So all sequences of a generation are below
// all of the next one, and the first version that a lookup finds, newest generation first, is the
// newest. (Both looks, at the sequence and at the state, are sequentially consistent, as are the
// publication of a state and the look at what is under way: who seals and then settles has waited
// for all that are still inserted into what was sealed.)
//
// Single records appear by one compare-exchange. The records of a batch appear one by one: each is
// marked, and a lookup that meets one asks the sequencer whether its batch is complete, takes the
// next older version while it is not, and looks again when it may just have become so. Snapshots,
// iterators and MultiGet read at a sequence below which nothing is under way: they wait for what
// is, which is never a writer that waits.
//
// Lookups in many generations. Each has its own index, so a key that lies in the oldest of n costs
// n index lines. These do not depend on each other: all are fetched at once, and each further
// generation costs some 20 to 40 ns instead of a memory access (docs/memtable.md has the
// measurement). Compaction merges four generations of like size into one, so that there are few.
//
// Locks, in this order: work_mutex_ (sorting and merging: one at a time, whoever comes), then
// order_mutex_ (shared by batches, alone by Update's last step), then state_mutex_ (replacing the
// state). A lookup takes no lock, and a put of one record mostly none (generation.h).
//
// What is new is sorted in the background, unless every processor is taken by writers and nobody
// iterates (sort_delay.h).
//
// A quarter of the budget is kept for merging. When writers have used the rest, a look ahead tells
// what each sealed generation would keep, and those neighbours are merged whose result fits and
// that free the most (docs/memtable.md). Deletes may use half of that quarter: a full store has to
// take what empties it.
//
// Compaction copies what somebody can still see into a new generation, as the boundaries say (base/
// retention.h), publishes it in place of the old ones, and lets go of these: iterators and pinned
// values keep theirs.

namespace basalt::memtable {

class StoreCore final : public std::enable_shared_from_this<StoreCore>, private BatchWatch {
  struct Private {};

 public:
  static constexpr uint64_t kGenerationMin = uint64_t{64} << 10;
  static constexpr uint64_t kMergedMin = uint64_t{32} << 10;
  /// The part of the budget that is kept for merging.
  static constexpr uint64_t kReserveShare = 4;
  /// What a generation needs for each shard: its first index, a piece of records, one of order.
  static constexpr uint64_t kShardBytesMin = uint64_t{12} << 10;

  static Result<std::shared_ptr<StoreCore>> Create(const basalt::MemTableOptions& options);
  StoreCore(Private, const basalt::MemTableOptions& options);
  ~StoreCore();
  StoreCore(const StoreCore&) = delete;
  StoreCore& operator=(const StoreCore&) = delete;

  /// One put or delete.
  Status Write(const RecordSource& source);
  /// A validated batch.
  Status Write(const WriteBatch& batch);
  Status Update(std::string_view key, const UpdateFunction& fn, uint32_t keyspace);

  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) const;
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) const;
  std::unique_ptr<Iterator> NewIterator(const ScanOptions& options) const;
  Result<Snapshot> TakeSnapshot() const;

  Status Seal();
  /// Sorts everything and merges what is due, on the calling thread, as far as memory allows.
  /// False: not to the end.
  bool WorkIfMemoryAllows() noexcept { return WorkIfMemoryAllows(Sorting::kNow); }
  Status Compact();
  MemTableStats GetStats() const;

  /// Made by a parent process: what a thread of it was changing is left as it is.
  bool IsInherited() const noexcept { return fork_generation_ != base::ForkGeneration(); }
  /// The handle goes: background work ends soon.
  void LetGo() noexcept { is_let_go_.store(true, std::memory_order_relaxed); }

 private:
  using Generations = std::vector<std::shared_ptr<Generation>>;
  struct State {
    std::shared_ptr<Generation> active;
    Generations sealed;          ///< Newest first.
    uint64_t active_number = 1;  ///< Rises with each seal.
    bool only_deletes = false;   ///< The active one takes nothing else.
  };
  class SnapshotState;
  /// What a key has now. Inside an epoch.
  struct Found {
    const Record* record = nullptr;  ///< Of a put; null: the key is absent.
    const Generation* generation = nullptr;
    explicit operator bool() const noexcept { return record != nullptr; }
    // NOLINTNEXTLINE(google-explicit-constructor): the value is made in its place.
    operator Value() const { return generation->ValueOf(*record); }
  };
  /// What a write wants to be true of the active generation and the newest version there.
  using Condition = std::function<bool(const Generation& active, base::Tag newest)>;
  struct Attempt {
    Generation::Placed placed = Generation::Placed::kNotAssigned;
    std::shared_ptr<Generation> full;  ///< Set with kNoRoom.
    bool has_piled_up = false;
  };
  enum class Inserted : uint8_t { kYes, kNoRoom, kNotActive };

  bool IsUnderWay(base::SequenceNumber sequence) const noexcept override {
    return sequencer_.IsUnderWay(sequence);
  }

  base::SequenceNumber SettledBelow() const noexcept override {
    return sequencer_.BatchesSettledBelow();
  }

  // Inside an epoch.
  const State* state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool IsActive(const Generation* generation) const noexcept {
    return state_.load(std::memory_order_seq_cst)->active.get() == generation;
  }
  Found Find(const State& state, uint32_t keyspace, std::string_view key, uint64_t hash,
             base::SequenceNumber at) const;
  /// Whether it is known without a look that all of the record's batch can be seen.
  bool IsSettled(const Record& record) const noexcept {
    return (record.flags & Record::kFlagBatch) == 0 ||
           base::TagSequence(record.tag.load(std::memory_order_acquire)) <
               sequencer_.BatchesSettledBelow();
  }
  /// Get of what one look does not tell.
  [[gnu::noinline]] Result<MaybeValue> GetSlowly(std::string_view key, uint64_t hash,
                                                 const ReadOptions& options) const;
  /// What one generation has of a key.
  struct Seen {
    const Record* record = nullptr;
    base::SequenceNumber covered = 0;  ///< By its newest range delete that covers the key.
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  Seen Look(const Generation& generation, uint32_t keyspace, std::string_view key, uint64_t hash,
            base::SequenceNumber at) const;
  /// The state, and a sequence up to which all that was written is in it, and complete.
  const State* Settled(base::SequenceNumber* at) const;

  State CopyState() const;
  Result<base::SequenceNumber> SequenceOf(const Snapshot& snapshot) const;

  Attempt TryOne(const RecordSource& source, uint64_t hash, const Condition* condition);
  /// Inside an epoch, and under order_mutex_.
  Inserted Insert(Generation& active, const WriteBatch& batch, uint32_t thread_number);
  /// `full` has no room for `bytes`: seals it if it is the active one, makes room, or says why not.
  Status MakeRoom(const Generation& full, uint64_t bytes, bool only_deletes);
  Status NoRoom(uint64_t bytes) const;
  uint64_t MemoryBytes(const State& state) const noexcept;
  /// Of the budget, without what is kept.
  uint64_t BytesLeft(const State& state, uint64_t kept = 0) const noexcept;

  // Under state_mutex_.
  /// What a fresh generation is for.
  enum class Use : uint8_t {
    kAnything,  ///< It leaves all that is kept for merging.
    kMerging,   ///< It may take half of that: the present one cannot be merged before it is sealed.
    kDeletes,   ///< The same, and it takes deletes only, which give back more than they take.
  };
  /// False: the budget has no room for one that holds `bytes_wanted`.
  bool SealUnderLock(uint64_t bytes_wanted, Use use);
  /// The same for merging, if the active generation is most of what there is.
  bool SealMostUnderLock(uint64_t bytes_wanted);
  void Publish(State next);

  /// Whether the active generation may stay unsorted for now (SortDelay).
  enum class Sorting : uint8_t { kNow, kMayWait };
  void ScheduleWork() noexcept;
  /// The active generation's tail.
  bool SortIfMemoryAllows() noexcept;
  /// For writers, now and then, outside of an epoch. When the background is far behind, gives it
  /// the processor: else the next iterator sorts for long, while other processors may be idle.
  void SortSoon() noexcept;
  void RunScheduledWork() noexcept;
  bool WorkIfMemoryAllows(Sorting sorting) noexcept;
  void Work(Sorting sorting);
  // Under work_mutex_.
  void SortUnderLock(Sorting sorting = Sorting::kNow);
  /// Else looks again some milliseconds later.
  bool IsSortDueUnderLock(const Generation& active);
  /// False: there is nothing to merge.
  bool CompactSomeUnderLock();
  struct Counts {
    uint64_t read = 0;
    uint64_t kept = 0;
    uint64_t read_bytes = 0;  // of the records alone
    uint64_t kept_bytes = 0;
    uint64_t delete_bytes = 0;  // of these
  };
  /// Calls `visit(record, sequence)` for each version in the sealed generations [first, last) that
  /// a merge of them keeps. They are settled. Nothing: `visit` answered false, or the handle goes.
  template <class Visit>
  std::optional<Counts> ForEachKept(const State& seen, size_t first, size_t last,
                                    const std::vector<base::SequenceNumber>& boundaries,
                                    const Visit& visit) const;
  /// Merges the sealed generations [first, last) of `seen`, above which others may have been sealed
  /// since. How many bytes that has freed; nothing: the result would pass `limit_bytes`, and
  /// nothing has changed.
  std::optional<uint64_t> MergeUnderLock(const State& seen, size_t first, size_t last,
                                         uint64_t limit_bytes);
  /// What a sealed generation takes, what it would take without what nobody can see, and what of
  /// that would stay if nothing older lay below.
  struct Outlook {
    uint64_t bytes = 0;
    uint64_t kept_bytes = 0;
    uint64_t put_bytes = 0;
    Outlook& operator+=(const Outlook& other) noexcept {
      bytes += other.bytes;
      kept_bytes += other.kept_bytes;
      put_bytes += other.put_bytes;
      return *this;
    }
  };
  /// Of each sealed generation; empty when the handle goes.
  std::vector<Outlook> LookAheadUnderLock(const State& seen) const;
  uint64_t BytesForMerged(uint64_t kept_bytes) const;
  /// Where that should free more than `freed_min` bytes. Whether it has freed any.
  bool MergeForRoomUnderLock(uint64_t freed_min);
  /// Whether it made room that is worth it.
  bool CompactForRoomUnderLock();

  /// What the smallest generation takes.
  uint64_t LeastBytes() const noexcept {
    return std::max(kGenerationMin, options_.shards * kShardBytesMin);
  }
  uint64_t LeastMergedBytes() const noexcept {
    return std::max(kMergedMin, options_.shards * kShardBytesMin);
  }
  std::vector<base::SequenceNumber> Boundaries() const;
  std::shared_ptr<Generation> NewGeneration(uint64_t bytes) const;

  const basalt::MemTableOptions options_;
  const uint64_t fork_generation_ = base::ForkGeneration();
  std::atomic<const State*> state_{nullptr};
  mutable base::RetireList retired_;
  mutable Sequencer sequencer_;

  std::mutex work_mutex_;
  mutable std::shared_mutex order_mutex_;
  mutable std::mutex state_mutex_;
  mutable std::mutex snapshots_mutex_;
  mutable std::multiset<base::SequenceNumber> snapshots_;

  // Under work_mutex_.
  SortDelay sort_delay_;
  bool will_look_again_ = false;  ///< At whether sorting is due.
  /// On what it depends whether a merge for room is worth it.
  struct Prospects {
    uint64_t seals = 0;
    uint64_t snapshot_changes = 0;
    uint64_t freed_parts = 0;  ///< All that is taken, in parts of what a merge has to free.
    const RangeDelete* newest_range = nullptr;
    friend bool operator==(const Prospects&, const Prospects&) = default;
  };
  /// At the last one that was not; under work_mutex_.
  std::optional<Prospects> futile_;

  std::atomic<bool> is_let_go_{false};
  std::atomic<bool> wants_room_{false};
  /// An iterator has come since the background looked.
  mutable std::atomic<bool> was_iterated_{false};
  std::atomic<uint64_t> written_batches_{0};
  mutable std::atomic<uint64_t> snapshot_changes_{0};
  std::atomic<bool> is_work_scheduled_{false};
  std::atomic<uint64_t> seals_{0};
  std::atomic<uint64_t> compactions_{0};
  std::atomic<uint64_t> compacted_records_{0};
  std::atomic<uint64_t> dropped_records_{0};
  std::atomic<uint64_t> waits_{0};
  std::atomic<uint64_t> wait_us_{0};
};

}  // namespace basalt::memtable
