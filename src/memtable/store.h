#pragma once

// src/memtable: records in memory, with a hash index and sorted runs. Read Generation
// (generation.h) first, the write buffer of a database; StoreCore is the store of several
// generations.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/epoch.h"
#include "base/fork_count.h"
#include "base/internal_key.h"
#include "base/merge_operator.h"
#include "base/range_cover.h"
#include "io/clock.h"
#include "io/expiry_clock.h"
#include "memtable/batch_form.h"
#include "memtable/generation.h"
#include "memtable/keyspaces.h"
#include "memtable/merges_of_key.h"
#include "memtable/sequencer.h"
#include "memtable/sort_delay.h"
#include "transaction/read_set.h"

// An ordered store of generations, the implementation of basalt::MemTable.
//
// Layout
//
//     state ....... one immutable list {active generation, sealed ones, newest first; keyspaces},
//                   replaced as a whole; readers and writers load it inside an epoch
//     sequencer ... gives each record its sequence number, and knows the running insertions
//     snapshots ... the sequence numbers that compaction has to keep, and the time of each
//     time ........ records that have expired at it are not visible
//
// A write takes its sequence number, then checks that its generation is still the active one. If
// not, it takes its record back and starts again. So all sequence numbers of a generation are below
// all of the next one, and the first version that a lookup finds, newest generation first, is the
// newest. Both the sequence number and the state are read with sequential consistency. The store
// of a new state and the check for running insertions are too. A thread that seals and then settles
// has therefore waited for all insertions into the sealed generation.
//
// A single record becomes visible by one compare-exchange. Each record of a batch is marked. A
// lookup that meets a marked record asks the sequencer whether its batch is complete, and if not
// takes the next older version. It looks again if the batch may just have been completed.
// Snapshots, iterators and MultiGet read at a sequence number below which no insertion is running.
// They wait for running insertions, which never wait themselves.
//
// Lookups in many generations. Each has its own index, so a key in the oldest of n costs n index
// lines. These are fetched at once, and each further generation costs about 20 to 40 ns instead of
// a memory access (docs/memtable.md has the measurement). Compaction merges four generations of
// similar size into one, so that there are few.
//
// Locks, in this order:
//     work_mutex_    sorting and merging, by one thread at a time
//     order_mutex_   shared by batches; exclusive for the last step of Update, of conditional
//                    batches and of transactions, and for drops of keyspaces
//     state_mutex_   replacing the state
// A lookup takes no lock, and a put of one record mostly none (generation.h).
//
// Merges. A lookup that meets one reads the key again, at a sequence number below which no
// insertion is running, and applies the key's merges to their value (merges_of_key.h).
//
// Expiry. A record's time is compared with the snapshot's, or with the clock's, which is read only
// for records that have a time. Merging drops records that have expired for the clock and for all
// snapshots.
//
// Keyspaces. A record names its keyspace by number. A read or write looks the number up in the
// state, except that of the default keyspace. The records of a dropped keyspace stay until they are
// merged.
//
// Conditional batches and transactions are in store_commit.cc, which says why they are
// serializable.
//
// New records are sorted in the background, unless every processor is taken by writers and no
// iterator exists (sort_delay.h).
//
// A quarter of the budget is reserved for merging. When writers have used the rest, the store
// determines what each sealed generation would keep, and merges the neighbours whose result fits
// and that free the most (docs/memtable.md). Deletes may use half of that quarter, because a full
// store has to accept deletes.
//
// Compaction copies the records that are still visible to some reader into a new generation
// (base/surviving_records.h). The new generation replaces the old ones. Iterators and pinned values
// keep theirs.

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

  /// `clock` outlives the store and all that was taken from it.
  static Result<std::shared_ptr<StoreCore>> Create(const basalt::MemTableOptions& options,
                                                   io::Clock* clock = io::Clock::System());
  StoreCore(Private, const basalt::MemTableOptions& options, io::Clock* clock);
  ~StoreCore();
  StoreCore(const StoreCore&) = delete;
  StoreCore& operator=(const StoreCore&) = delete;

  Result<Commit> Put(std::string_view key, std::string_view value, const WriteOptions& options);
  Result<Commit> Delete(std::string_view key, const WriteOptions& options);
  Result<Commit> Merge(std::string_view key, MergeOperator op, std::string_view operand,
                       const WriteOptions& options);
  /// A validated batch.
  Result<Commit> Write(const WriteBatch& batch, const WriteOptions& options);
  Result<Commit> Update(std::string_view key, const UpdateFunction& fn,
                        const WriteOptions& options);
  /// Writes `batch` if nothing in `reads` was written after `snapshot`, which is one of this
  /// store's. Conditions of the batch are added to `reads`. Aborted: something was.
  Result<Commit> WriteIfUnchanged(const WriteBatch& batch, transaction::ReadSet* reads,
                                  const Snapshot& snapshot, const WriteOptions& options);

  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) const;
  Result<std::optional<Entry>> GetEntry(std::string_view key, const ReadOptions& options) const;
  Result<bool> Contains(std::string_view key, const ReadOptions& options) const;
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) const;
  Status MultiGet(std::span<const KeyspaceKey> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) const;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) const;
  Result<Snapshot> TakeSnapshot() const;

  Result<KeyspaceId> CreateKeyspace(std::string_view name, const KeyspaceOptions& options);
  Result<KeyspaceId> OpenKeyspace(std::string_view name) const;
  std::vector<KeyspaceInfo> ListKeyspaces() const;
  Status DropKeyspace(KeyspaceId keyspace);
  /// Zero where it has none or is not there.
  std::chrono::milliseconds DefaultTtl(KeyspaceId keyspace) const noexcept;

  Status Seal();
  /// Sorts everything and merges what is due, on the calling thread, as far as memory allows.
  /// False: not to the end.
  bool WorkIfMemoryAllows() noexcept { return WorkIfMemoryAllows(Sorting::kNow); }
  Status Compact();
  MemTableStats GetStats() const;

  /// Made by a parent process: what a thread of it was changing is left as it is.
  bool IsInherited() const noexcept { return fork_count_ != base::ForkCount(); }
  /// The handle goes: background work ends soon.
  void ReleaseHandle() noexcept { is_released_.store(true, std::memory_order_relaxed); }

 private:
  using Generations = std::vector<std::shared_ptr<Generation>>;
  struct State {
    std::shared_ptr<Generation> active;
    Generations sealed;          ///< Newest first.
    uint64_t active_number = 1;  ///< Rises with each seal.
    bool only_deletes = false;   ///< The active one takes nothing else.
    std::shared_ptr<const Keyspaces> keyspaces{};
  };
  class SnapshotState;
  /// As of when a read looks.
  struct ReadPoint {
    base::SequenceNumber at = base::kMaxSequence;
    uint64_t now_ms = 0;  ///< 0: the present, for which the clock is asked where something expires.
  };
  /// The newest version of a key. Inside an epoch.
  struct Found {
    const Record* record =
        nullptr;  ///< A put, perhaps expired, or a merge; null: the key is absent.
    const Generation* generation = nullptr;
    base::SequenceNumber sequence = 0;  ///< Of that, or of the delete that is newer; 0: of neither.

    explicit operator bool() const noexcept { return record != nullptr; }
    bool is_merge() const noexcept {
      return record != nullptr && record->kind == static_cast<uint8_t>(RecordKind::kMerge);
    }
    // NOLINTNEXTLINE(google-explicit-constructor): the value is made in its place.
    operator Value() const { return generation->ValueOf(*record); }
  };
  /// The same with what merges make of it.
  struct WholeEntry {
    MaybeValue value{};
    base::SequenceNumber sequence = 0;  ///< As Found::sequence.
    uint64_t expiry_ms = 0;
  };
  /// What a write wants to be true of the active generation and the newest version there.
  using Condition = std::function<bool(const Generation& active, base::Tag newest)>;
  struct Attempt {
    Generation::Placed placed = Generation::Placed::kNotAssigned;
    base::SequenceNumber sequence = 0;  ///< Set with kYes.
    std::shared_ptr<Generation> full;   ///< Set with kNoRoom.
    bool has_piled_up = false;
  };
  /// What a batch depends on: nothing in `reads` was written above `since`.
  struct Expectations {
    const transaction::ReadSet* reads = nullptr;
    base::SequenceNumber since = 0;
    /// Set: only what is in it, or a range delete before `known_ranges`, can be above `since`, as
    /// long as the generation `active` is the active one.
    std::optional<Generation::Tail> tail{};
    std::shared_ptr<Generation> active{};
    const RangeDelete* known_ranges = nullptr;
  };
  /// What does not hold of that.
  struct Conflict {
    enum class Kind : uint8_t { kWritten, kDropped, kExpired };
    Kind kind = Kind::kWritten;
    uint32_t keyspace = 0;   ///< Unless something has expired.
    std::string_view key{};  ///< Of the read set, or of a record: valid in the same epoch.
  };
  enum class Outcome : uint8_t {
    kDone,
    kNoRoom,          ///< The generation is full.
    kNotActive,       ///< The generation was sealed meanwhile.
    kOtherKeyspaces,  ///< The form was made for another list of keyspaces.
    kMustLook,        ///< Another generation is active than the expectations say.
    kChanged,         ///< They do not hold: `why`.
  };
  struct Insertion {
    Outcome outcome = Outcome::kNotActive;
    base::SequenceNumber last = 0;
    std::shared_ptr<Generation> full{};  ///< Set with kNoRoom.
    Status why{};
  };

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
  uint64_t NowOf(const ReadPoint& point) const noexcept {
    return point.now_ms != 0 ? point.now_ms : time_.NowMs();
  }
  /// Of a put.
  bool HasExpired(const Record& record, const ReadPoint& point) const noexcept {
    return (record.flags & Record::kFlagTime) != 0 && record.time_ms() <= NowOf(point);
  }
  /// Where a read looks. NotFound, InvalidArgument: there is no such keyspace, or snapshot.
  Result<ReadPoint> PointOf(const State& state, const ReadOptions& options) const;
  Result<ReadPoint> PointOf(const Snapshot& snapshot) const;
  Result<WholeEntry> FindWhole(const State& state, uint32_t keyspace, std::string_view key,
                               uint64_t hash, ReadPoint point) const;
  /// The same of a key whose newest version is a merge. Nothing up to `point.at` is under way.
  Result<WholeEntry> FindMerged(const State& state, uint32_t keyspace, std::string_view key,
                                uint64_t hash, const ReadPoint& point) const;
  /// The same for iterators.
  Result<std::optional<base::MergedValue>> ReadMerged(const State& state, uint32_t keyspace,
                                                      std::string_view key,
                                                      const ReadPoint& point) const;
  /// `key_at(i)`: a KeyspaceKey.
  template <class KeyAt>
  Status MultiGetOf(size_t count, const KeyAt& key_at, std::span<Result<MaybeValue>> results,
                    const ReadOptions& options) const;
  /// Whether all of the record's batch could be seen when `settled` was BatchesSettledBelow. If
  /// that was before the record was found, no record of its batch is newer.
  static bool IsSettled(const Record& record, base::SequenceNumber settled) noexcept {
    return (record.flags & Record::kFlagBatch) == 0 ||
           base::TagSequence(record.tag.load(std::memory_order_acquire)) < settled;
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

  /// A put, delete or merge.
  Result<Commit> WriteOne(const RecordSource& source, const WriteOptions& options);
  /// Of another keyspace than the default one: as it is kept, with its time, or NotFound.
  Result<RecordSource> Completed(const RecordSource& source) const;
  Result<Commit> WriteComplete(const RecordSource& source, const WriteOptions& options);
  Attempt TryOne(const RecordSource& source, uint64_t hash, const Condition* condition);
  /// Null: unconditionally. Conflicts are Aborted.
  Result<Commit> WriteExpecting(const WriteBatch& batch, const WriteOptions& options,
                                Expectations* expected);
  /// kDone, kOtherKeyspaces or kMustLook.
  Result<Insertion> WriteForm(const BatchForm& form, const WriteOptions& options,
                              const Expectations* expected);
  /// Under order_mutex_, held alone if something is expected.
  Insertion TryForm(const BatchForm& form, const Expectations* expected);
  /// The same inside an epoch.
  Insertion Insert(const State& seen, const BatchForm& form, const Expectations* expected,
                   uint32_t thread_number);
  /// `full` has no room for `bytes`: seals it if it is the active one, makes room, or says why not.
  Status MakeRoom(const Generation& full, uint64_t bytes, bool only_deletes, bool may_wait);
  /// Of numbers, now and then: so that reads of many merges are short.
  void FoldSome(const RecordSource& source, uint64_t hash, base::SequenceNumber sequence) noexcept;
  /// Before the first of them is written, and before it has its time.
  void NoteMerges() noexcept {
    if (!has_merges_.load(std::memory_order_acquire)) {
      has_merges_.exchange(true, std::memory_order_acq_rel);
    }
  }
  void NoteExpiring() noexcept {
    if (!has_expiring_.load(std::memory_order_relaxed)) {
      has_expiring_.store(true, std::memory_order_relaxed);
    }
  }

  // store_commit.cc: what depends on what was read.
  /// A batch with conditions.
  Result<Commit> WriteIfTheyHold(const WriteBatch& batch, const WriteOptions& options);
  /// Aborted: a condition does not hold at the snapshot. Adds what they look at to `reads`.
  Status CheckConditions(const WriteBatch& batch, const Snapshot& at,
                         transaction::ReadSet* reads) const;
  /// Looks for changes up to the present without a lock, so that little is left to look at under
  /// it. Aborted: there is one.
  Status LookForChange(Expectations* expected) const;
  /// The first thing in `reads` that was written above `since` and up to `to`, by its name. Not
  /// inside an epoch.
  std::optional<std::string> FindChange(const State& state, const transaction::ReadSet& reads,
                                        base::SequenceNumber since, base::SequenceNumber to) const;
  bool IsLate(const State& state, uint32_t keyspace, std::string_view key, uint64_t hash,
              base::SequenceNumber since, base::SequenceNumber to) const noexcept;
  /// The last look. Under order_mutex_, held alone, and inside an epoch. Nothing up to `to` is
  /// under way.
  std::optional<Conflict> FindLateChange(const State& state, const Expectations& expected,
                                         base::SequenceNumber to) const noexcept;
  static Status StatusOf(const Conflict& conflict);
  /// The time, not before that of any snapshot that was taken before this call.
  uint64_t NowBehindSnapshots() const noexcept {
    const std::lock_guard lock(snapshots_mutex_);
    return time_.NowMs();
  }
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
  /// Whoever may read what is merged: see base::SurvivingRecords::Rules.
  struct Readers {
    std::vector<base::SequenceNumber> boundaries;
    uint64_t now_ms = 0;
    bool has_merges = false;  ///< Newer versions than those that are merged may be merges.
  };
  Readers PresentReaders() const;
  /// Calls `visit(record, sequence, stays)` for each version in the sealed generations [first,
  /// last) that a merge of them keeps; `stays`: its bytes last as long as `seen`. They are settled.
  /// Nothing: `visit` answered false, or the handle goes.
  template <class Visit>
  std::optional<Counts> ForEachKept(const State& seen, size_t first, size_t last,
                                    const Readers& readers, const Visit& visit) const;
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
  std::shared_ptr<Generation> NewGeneration(uint64_t bytes) const;

  const basalt::MemTableOptions options_;
  const uint64_t fork_count_ = base::ForkCount();
  std::atomic<const State*> state_{nullptr};
  mutable base::RetireList retired_;
  mutable Sequencer sequencer_;
  mutable io::ExpiryClock time_;

  std::mutex work_mutex_;
  mutable std::shared_mutex order_mutex_;
  mutable std::mutex state_mutex_;
  mutable std::mutex snapshots_mutex_;
  /// Sequence and time of each: who has the lesser sequence has no greater time.
  mutable std::multiset<std::pair<base::SequenceNumber, uint64_t>> snapshots_;
  uint32_t next_keyspace_id_ = 1;  ///< Under state_mutex_. Never reused.

  // Under work_mutex_.
  SortDelay sort_delay_;
  bool will_look_again_ = false;  ///< At whether sorting is due.
  /// On what it depends whether a merge for room is worth it.
  struct Prospects {
    uint64_t seals = 0;
    uint64_t snapshot_changes = 0;
    uint64_t freed_parts = 0;  ///< All that is taken, in parts of what a merge has to free.
    const RangeDelete* newest_range = nullptr;
    uint64_t keyspaces_number = 0;
    uint64_t expired_until_s = 0;
    friend bool operator==(const Prospects&, const Prospects&) = default;
  };
  /// At the last one that was not; under work_mutex_.
  std::optional<Prospects> futile_;

  std::atomic<bool> is_released_{false};
  std::atomic<bool> wants_room_{false};
  mutable std::atomic<bool> has_merges_{false};  ///< Ever.
  std::atomic<bool> has_expiring_{false};        ///< Ever.
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
