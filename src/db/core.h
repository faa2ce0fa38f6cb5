#pragma once

// src/db: the database, from memtables, log and tables. Read Core first; its functions are in
// write.cc, read.cc, open.cc, flush.cc and compaction.cc.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "base/adaptive_lock.h"
#include "base/epoch.h"
#include "base/fork_count.h"
#include "base/hash.h"
#include "base/internal_key.h"
#include "base/merge_operator.h"
#include "base/surviving_records.h"
#include "db/commit_history.h"
#include "db/commit_queue.h"
#include "db/compaction_plan.h"
#include "db/environment.h"
#include "db/flush_pace.h"
#include "db/in_flight.h"
#include "db/job_count.h"
#include "db/keyspaces.h"
#include "db/log_record.h"
#include "db/manifest.h"
#include "db/obsolete_files.h"
#include "db/pacer.h"
#include "db/unnamed_files.h"
#include "db/version.h"
#include "io/expiry_clock.h"
#include "io/posix_descriptor.h"
#include "io/reserve_file.h"
#include "memtable/generation.h"
#include "memtable/merges_of_key.h"
#include "transaction/listener_list.h"
#include "wal/log.h"
#include "wal/log_reader.h"
#include "wal/recovery.h"

// The database itself, shared by its handle, iterators, snapshots and background jobs.
//
// A write (write.cc) reserves space in the active memtable. Under the commit lock it takes sequence
// numbers, logs or stages its record, and joins the commit queue. A staged record waits for its
// group's write(). Then the write inserts its records, becomes visible in queue order, and for
// kPower waits for the sync. A record that cannot be inserted is never logged. A record that is not
// logged is never inserted, except in keyspaces without a log.
//
// A flush (flush.cc) makes the oldest sealed memtable a table of level 0 in each keyspace that it
// has records of. Its range deletes go to the manifest. Compaction (compaction.cc) merges tables by
// the plan of compaction_plan.h. Both change the set of tables by one edit of the manifest
// (install.cc).
//
// Locks, in the order in which they may be taken together:
//     close_mutex_     held by the closing thread; others wait for its end
//     commit_.lock     sequence numbers, the order of the log, which memtable is active
//     install_mutex_   one manifest is written at a time
//     mutex_           everything else; never held during I/O
//
// Readers enter an epoch, load one pointer to a ReadState, then the visible sequence number. The
// order matters: a state that is older than the number still holds everything up to its
// replacement, while a newer one may have dropped versions that an older number needs. Before I/O
// they take a reference to the state and leave the epoch.

namespace basalt::db {

/// A memtable with its place in the log.
struct LoggedGeneration {
  std::shared_ptr<memtable::Generation> table;
  bool sealed = false;                ///< Guarded by the commit lock: takes no further write.
  InFlight in_flight;                 ///< Writes that may insert into it.
  std::atomic<wal::Lsn> last_lsn{0};  ///< The greatest that was inserted; 0: none.
  std::atomic<base::SequenceNumber> last_sequence{0};  ///< The greatest given out; 0: none.
  std::atomic<bool> has_merges{false};
  std::atomic<bool> has_unlogged{false};  ///< Writes of keyspaces without a log.
  std::atomic<uint64_t> deletes{0};       ///< Of single keys, that were given a sequence number.
  // Guarded by Core::mutex_: attempts to flush it, or an older memtable that is flushed first.
  uint64_t failed_flushes = 0;
  Status flush_error;  ///< Of the last of them.

  void RaiseLastLsn(wal::Lsn lsn) noexcept {
    wal::Lsn present = last_lsn.load(std::memory_order_relaxed);
    while (present < lsn &&
           !last_lsn.compare_exchange_weak(present, lsn, std::memory_order_relaxed)) {
    }
  }
};

/// Whether it is one of these.
inline bool IsAmong(const std::vector<std::shared_ptr<LoggedGeneration>>& generations,
                    const LoggedGeneration* generation) noexcept {
  return std::ranges::find(generations, generation, &std::shared_ptr<LoggedGeneration>::get) !=
         generations.end();
}

class LookupKey;
struct ReadState;

/// Keeps a state that has been replaced for those who still look at it. Made with the state: once
/// another one is published in its place, nothing may fail.
struct Retirement {
  Retirement() = default;
  Retirement(const Retirement&) {}  ///< Of a copied state, which is retired by itself.
  Retirement& operator=(const Retirement&) = delete;

  base::RetireList::Note note = base::RetireList::NewNote();
  std::shared_ptr<const ReadState> held;
};

/// What a reader looks at; immutable, but for what retires it.
struct ReadState : std::enable_shared_from_this<ReadState> {
  std::shared_ptr<LoggedGeneration> active;
  std::vector<std::shared_ptr<LoggedGeneration>>
      sealed;  ///< Newest first; the last is flushed next.
  std::shared_ptr<const Version> version;
  std::shared_ptr<const Keyspaces> keyspaces;
  mutable Retirement retirement;
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  enum class Mode : uint8_t { kWrite, kReadOnly };

  /// open.cc: takes the lock, reads the manifest, replays the log. kReadOnly: takes no lock and
  /// writes nothing; what does not fit a memtable fills others.
  static Result<std::shared_ptr<Core>> Open(std::string path, const DBOptions& options,
                                            const Environment& environment, Mode mode);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Opened by a parent process. Nothing of it may be touched but what never changes: the mutexes
  /// may be held, and anything be half done, by threads that are not there.
  bool IsInherited() const noexcept { return fork_count_ != base::ForkCount(); }
  /// Neither closed nor inherited.
  bool IsUsable() const noexcept {
    return !IsInherited() && !closed_.load(std::memory_order_acquire);
  }
  /// FailedPrecondition after Close, or in a forked child.
  Status CheckUsable() const;
  /// The same, and FailedPrecondition when it was opened read-only.
  Status CheckWritable() const;
  static Status CheckKeyspace(const ReadState& state, KeyspaceId keyspace);

  // write.cc
  /// `batch`: without an error.
  Result<Commit> Write(const WriteBatch& batch, const WriteOptions& options);
  Result<Commit> Update(std::string_view key, const UpdateFunction& fn,
                        const WriteOptions& options);
  Result<std::optional<Commit>> PutIfAbsent(std::string_view key, std::string_view value,
                                            const WriteOptions& options);
  /// Writes the batch if nothing in `reads`, which is normalised, was written later than `since`.
  /// A CommitHistory::User must have lived since then.
  Result<Commit> WriteIfUnchanged(const WriteBatch& batch, transaction::ReadSet* reads,
                                  base::SequenceNumber since, const WriteOptions& options);
  /// `listener` is called with every batch that is committed from now on.
  Result<Subscription> AddListener(CommitListener listener);
  CommitHistory* history() noexcept { return &history_; }
  /// Sees to it that later commits are recorded. Once a CommitHistory::User.
  void BeginHistory();
  Status Sync();
  Status WaitDurable(uint64_t lsn);
  /// A reader of the log from this record on. FailedPrecondition, Unsupported: there is no log.
  Result<wal::LogReader> ReadLog(wal::Lsn from) const;

  // read.cc
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) const;
  Result<std::optional<basalt::Entry>> GetEntry(std::string_view key,
                                                const ReadOptions& options) const;
  Result<bool> Contains(std::string_view key, const ReadOptions& options) const;
  Status MultiGet(std::span<const KeyspaceKey> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) const;
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) const;
  /// As base::View::read_merged.
  Result<std::optional<base::MergedValue>> ReadMerged(const ReadState& state, uint32_t keyspace,
                                                      std::string_view key, base::SequenceNumber at,
                                                      uint64_t now_ms) const;
  Result<uint64_t> ApproximateSize(std::optional<std::string_view> begin,
                                   std::optional<std::string_view> end, KeyspaceId keyspace) const;

  // core.cc
  Result<Snapshot> TakeSnapshot();
  /// InvalidArgument: the snapshot is not one of ours.
  Status CheckSnapshot(const Snapshot& snapshot) const;
  Status Close();
  /// Absolute and without links, once it is open.
  const std::string& path() const noexcept { return path_; }
  /// The handle is being destroyed: background work ends, and is waited for, unless this is called
  /// by it.
  void ReleaseHandle();
  DBStats GetStats() const;
  /// Wall time in ms since 1970; never runs backward. An opening begins with the manifest's at
  /// least.
  uint64_t WallMillis() const noexcept { return time_.NowMs(); }

  std::shared_ptr<const ReadState> State() const;
  /// A scan has passed a great many records that it does not show. Where that is the memtable's
  /// deletes, they are flushed, so that compaction can drop them with what they hide. Does not
  /// wait.
  void FlushDeletes();
  base::SequenceNumber visible() const noexcept { return queue_->visible(); }
  /// An iterator merges `saved` sources more than it would if the tree's level 0 were compacted.
  /// When all of them have cost as much as that would, it is scheduled. Does not wait.
  void CountScan(const Tree& tree, size_t saved);

  // keyspace_changes.cc
  Result<KeyspaceId> CreateKeyspace(std::string_view name, const KeyspaceOptions& options);
  Result<KeyspaceId> OpenKeyspace(std::string_view name) const;
  Result<std::vector<KeyspaceInfo>> ListKeyspaces() const;
  Status DropKeyspace(KeyspaceId keyspace);

  /// How long a record of the keyspace lives whose put names no ttl; zero: for ever.
  std::chrono::milliseconds DefaultTtl(KeyspaceId keyspace) const;

  // flush.cc
  Status Flush();
  // compaction.cc
  Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end,
                      KeyspaceId keyspace);

 private:
  class SnapshotState;
  struct NewTables;
  struct Edit;
  struct Installation;
  struct Merge;
  class ReserveUse;
  /// The newest version of a key that a reader may see, as it is stored. Its tag may be that of a
  /// range delete that hides all others; 0: there is no version at all.
  using StoredVersion = table::TableRead;
  static constexpr uint64_t kLogStepMax = uint64_t{4} << 20;
  /// What the directory keeps back at most: of an open database, and of one that was closed.
  static constexpr uint64_t kReserveMax = uint64_t{8} << 20;
  static constexpr uint64_t kReserveOfClosedMax = uint64_t{1} << 20;
  /// What a key has.
  struct Found {
    base::SequenceNumber sequence = 0;  ///< Of what was written last; 0: nothing.
    uint64_t expiry_ms = 0;
    MaybeValue value;
  };
  /// A read's moment, and how it may read.
  struct ReadPoint {
    base::SequenceNumber at = 0;
    bool fill_cache = true;
    bool cached_only = false;     ///< No I/O: inside an epoch.
    mutable uint64_t now_ms = 0;  ///< Asked when something may have expired, once; 0: not yet.
  };
  /// What a write depends on: that nothing in `reads`, which is normalised, was written later than
  /// `since`. That is raised when it was looked at.
  struct Expectations {
    transaction::ReadSet* reads = nullptr;
    base::SequenceNumber since = 0;
    /// Whether a snapshot keeps the versions that were visible at `since`. Else compaction may have
    /// dropped them, together with the delete that hid them.
    bool is_kept = false;
    /// What was found of the only key in `reads`, where no snapshot keeps it. Null: LookForChange
    /// answers with a conflict, and the caller looks again.
    const Found* before = nullptr;
  };
  /// One write on its way.
  struct PendingWrite {
    const LogForm& form;
    size_t count = 0;
    Expectations* expected = nullptr;  ///< Null: nothing.
    bool may_wait = true;
    Commit commit{};  ///< Once it is done.
  };
  /// A write's hold on a memtable.
  struct Entry {
    LoggedGeneration* generation = nullptr;
    InFlight::Counter* counter = nullptr;
  };
  /// What became of one try to write.
  struct Attempt {
    enum class Outcome : uint8_t {
      kDone,
      kAgain,
      kMustLook,  ///< The history cannot tell whether something has changed: LookForChange.
    };

    Status status{};
    Outcome outcome = Outcome::kDone;
    std::shared_ptr<LoggedGeneration> full{};  ///< The active memtable, which has no room.
  };

  Core(std::string path, const DBOptions& options, const Environment& environment, Mode mode);

  // core.cc
  Status CloseOnce();
  void RecordClosing();

  // open.cc
  Status FindDirectory();
  Status Load();
  Status LoadManifest();
  Status TakeManifest();
  Status LoadForReading();
  /// Gives the manifest's bytes once it has read them.
  Status TryLoadForReading(std::string* manifest);
  Status PinTables() const;
  Status ListTables();
  Status RemoveUnnamed(base::SequenceNumber last_sequence);
  Status FlushReplayed(base::SequenceNumber last_sequence);
  Status ReplayLog();
  Status ReplayRecord(const wal::RecordView& record);
  Status StartLog(const wal::RecoveryResult& recovered);

  // write.cc
  /// InvalidArgument: a batch of so many bytes and records can never be written.
  Status CheckBatchSize(size_t bytes, size_t count) const;
  Result<Durability> DurabilityOf(const LogForm& form, const WriteOptions& options) const;
  Result<LogForm> ToLogForm(std::string_view batch, std::string* buffer) const;
  Result<Commit> WriteBytes(std::string_view batch, size_t count, const WriteOptions& options,
                            Expectations* expected);
  Status WriteForm(PendingWrite* write, Durability durability);
  /// Tries until it is written, or refused for another reason than a full memtable.
  Status WriteUntilRefused(PendingWrite* write);
  /// The same, not inlined.
  Status WriteUnsynced(PendingWrite* write);
  Attempt TryWrite(PendingWrite* write, const Entry& entry);
  /// Under the commit lock, without I/O. Aborted: something has changed.
  Attempt CheckUnderLock(const Expectations& expected) const;
  /// Aborted: `changed` names something, or what was read has expired, or its keyspace is dropped.
  Status CheckChange(const Expectations& expected, const std::optional<std::string>& changed) const;
  /// Looks in memtables and tables, without the commit lock, and raises `since`.
  Status LookForChange(Expectations* expected) const;
  Result<std::optional<std::string>> SearchChange(const Expectations& expected,
                                                  base::SequenceNumber to) const;
  /// Looks at a batch's conditions as they are at `at`, and enters them into `reads`. Aborted: one
  /// does not hold.
  Status CheckConditions(const WriteBatch& batch, transaction::ReadSet* reads,
                         base::SequenceNumber* at) const;
  Result<Commit> WriteIfKeyIsUnchanged(const WriteBatch& one, std::string_view key,
                                       const Found& before, base::SequenceNumber at,
                                       const WriteOptions& options);
  /// Of a write that may not wait.
  Status CheckWithoutWaiting(Durability durability) const;
  static Status WouldBlock() noexcept;
  /// The active memtable, which then stays until Leave.
  Entry EnterActive();
  void Leave(const Entry& entry);
  /// Of the batch's merges that change numbers one in kFoldedMin, at random, is a moment to fold
  /// those of its key: so reads need not walk far, also the first one.
  void FoldSome(const LogForm& form, base::SequenceNumber first,
                memtable::Generation* table) const noexcept;
  std::shared_ptr<LoggedGeneration> IfActive(const LoggedGeneration* generation) const;
  /// Seals the full memtable, or waits for the flush that keeps it from being sealed.
  Status MakeRoom(const std::shared_ptr<LoggedGeneration>& full);
  /// The same for a writer that may not wait: WouldBlock instead of waiting.
  Status MakeRoomAtOnce(const std::shared_ptr<LoggedGeneration>& full);
  /// Holds a writer back while compaction lags behind, or a flush.
  void Pace(const PendingWrite& write);
  /// In steps, as long as the active memtable is fuller than the flush allows. Gives the
  /// microseconds.
  uint64_t WaitForFlushPace(const PendingWrite& write);

  // read.cc
  ReadPoint Now() const { return {.at = visible()}; }
  /// A state, and a sequence number up to which it has everything. If a memtable were sealed
  /// between State() and Now(), the state would lack what the next memtable got meanwhile, and a
  /// commit that depends on what was read up to that number would not notice.
  struct Moment {
    std::shared_ptr<const ReadState> state;
    ReadPoint point;
  };
  Moment PresentMoment() const;
  bool HasExpired(uint64_t expiry_ms, const ReadPoint& point) const noexcept {
    return expiry_ms != 0 && expiry_ms <= NowOf(point);
  }
  uint64_t NowOf(const ReadPoint& point) const noexcept {
    if (point.now_ms == 0) point.now_ms = WallMillis();
    return point.now_ms;
  }
  Result<MaybeValue> GetSlowly(std::string_view key, uint64_t hash,
                               const ReadOptions& options) const;
  template <class Look>
  Status Read(const ReadOptions& options, const Look& look) const;
  static void Prefetch(const ReadState& state, uint32_t keyspace,
                       std::span<const std::string_view> keys, const uint64_t* hashes);
  size_t FindSome(const ReadState& state, uint32_t keyspace, std::span<const std::string_view> keys,
                  std::span<Result<MaybeValue>> results, const ReadPoint& point) const;
  Result<Found> Find(const ReadState& state, uint32_t keyspace, std::string_view key,
                     const ReadPoint& point) const {
    return Find(state, keyspace, key, base::Hash(key), point);
  }
  Result<Found> Find(const ReadState& state, uint32_t keyspace, std::string_view key, uint64_t hash,
                     const ReadPoint& point) const;
  /// Aborted: a block would have to be read, which `point` forbids. So for all below.
  Status FindValue(const ReadState& state, uint32_t keyspace, std::string_view key, uint64_t hash,
                   const ReadPoint& point, MaybeValue* value) const;
  /// `version`: as made by default.
  Status FindVersion(const ReadState& state, uint32_t keyspace, std::string_view key, uint64_t hash,
                     const ReadPoint& point, StoredVersion* version) const;
  /// The same below the memtables.
  Status FindFlushed(const ReadState& state, uint32_t keyspace, std::string_view key, uint64_t hash,
                     const ReadPoint& point, StoredVersion* version) const;
  Status FindInTree(const Tree& tree, const LookupKey& lookup, const ReadPoint& point,
                    StoredVersion* version) const;
  Status FindInTables(const Tree& tree, const LookupKey& lookup, const ReadPoint& point,
                      StoredVersion* version) const;
  static Result<bool> FindInTable(const TableFile& file, const LookupKey& lookup,
                                  const ReadPoint& point, StoredVersion* version);
  /// As base::SurvivingRecords::Rules::expiry_below, for what builds on this tree.
  std::optional<uint64_t> ExpiryBelow(const Tree& tree, std::string_view tree_key,
                                      const base::SurvivingRecords::Chain& chain) const;
  Status FindMerges(const ReadState& state, uint32_t keyspace, std::string_view key, uint64_t hash,
                    ReadPoint point, uint64_t expiry_ms, StoredVersion newest,
                    memtable::MergesOfKey* found) const;
  /// `newest`: a merge.
  Result<Found> FindMerged(const ReadState& state, uint32_t keyspace, std::string_view key,
                           uint64_t hash, const ReadPoint& point, StoredVersion newest) const;

  // reserve.cc
  /// The log's files get their space in such steps, and it asks for it two of them ahead at most.
  uint64_t LogStep() const noexcept { return std::min(memtable_bytes_, kLogStepMax); }
  uint64_t LogAhead() const noexcept { return 2 * LogStep(); }
  /// What is to be kept back beside so much log that no table holds.
  uint64_t ReserveFor(uint64_t log_bytes) const noexcept;
  /// Whether as much is kept back and free as `more` bytes of log need. It is owed until then.
  bool FillReserve(uint64_t more) noexcept;
  bool IsFree(uint64_t bytes) const noexcept;
  /// Gives back what was kept back for log that is flushed, and all above `most`.
  void TrimReserve(uint64_t most = kReserveMax) noexcept;
  Status NoRoomForReserve() const;
  Status BeforeLogGrows(uint64_t bytes);
  /// Ends the reasons for which writes stop, if it can.
  Status ResolveWriteStops(const LogForm& form);
  bool FlushWithLog();
  /// Whether the reserve is whole once nobody flushes.
  bool AwaitReserve();
  /// False: there is no reserve, or no room for one that deletes need.
  bool FlushFromReserve();
  /// Whether there are tables that the batch deletes as a whole.
  bool MakesRoom(const LogForm& form) const;
  /// Writes what the disk has refused.
  Status WriteToFullDisk(PendingWrite* write, Status refused);

  // flush.cc
  std::shared_ptr<LoggedGeneration> NewGeneration() const;
  /// Whether a memtable that is newer than `than` (null: any) holds merges.
  static bool HasMerges(const ReadState& state, const LoggedGeneration* than) noexcept;
  /// Whether a memtable holds what only a flush keeps, be it sealed or not.
  static bool HasUnlogged(const ReadState& state) noexcept;
  /// Under the commit lock, when nothing is sealed: a new memtable and log file from here on.
  void Seal();
  bool CanSeal(const ReadState& state) const noexcept;
  /// Under mutex_. Without memory for the job there is none: the next one that needs it tries
  /// again.
  void ScheduleFlush() noexcept;
  void FlushJob();
  /// Flushes the oldest sealed memtable, if there is one and nobody else does.
  void FlushSealed();
  /// Under mutex_: what comes of an attempt to flush the oldest sealed memtable.
  void EndFlush(const LoggedGeneration* generation, const Status& flushed);
  /// On a full disk from the reserve.
  Status FlushGeneration(const std::shared_ptr<LoggedGeneration>& generation);
  Status TryFlush(const std::shared_ptr<LoggedGeneration>& generation);
  /// Makes the tables, for an edit that adds them.
  Status FlushKeyspaces(const LoggedGeneration& generation, Edit* edit, uint64_t* bytes_out);
  /// Those of the keyspaces, which are of one tree and ascend.
  Status FlushTree(const LoggedGeneration& generation, std::vector<uint32_t> keyspaces,
                   const Edit& edit, NewTables* outputs);
  Status DropEmpty(const std::shared_ptr<LoggedGeneration>& generation);
  Status FlushThrough(wal::Lsn lsn);
  /// Ok: what the memtable holds is in tables. An error: an attempt that began during the call
  /// failed.
  Status WaitForFlushOf(const std::shared_ptr<LoggedGeneration>& generation);

  // compaction.cc
  /// No new compaction begins, and a running one stops.
  bool Ending() const noexcept;
  /// Under mutex_. Without memory for it there is none: the next flush or job looks again.
  void ScheduleCompaction() noexcept;
  /// Under mutex_: sees to it that compaction is thought of again when time alone makes a table
  /// due, also if nothing else happens until then.
  void SetTimer();
  /// Under mutex_: the same so much later, if nothing else does it before.
  void LookAgainIn(uint64_t now_ms, uint64_t delay_ms);
  /// Under mutex_. One that has come runs all the same.
  void CancelTimer();
  void TimerTask();
  CompactionLimits Limits() const;
  std::optional<CompactionJob> PickJob() const;
  void CompactionTask();
  /// Aborted: a table went away meanwhile, and the call has to be made again.
  Status CompactOnce(std::optional<std::string_view> begin, std::optional<std::string_view> end,
                     KeyspaceId keyspace);
  /// Under mutex_: marks the job's tables.
  void Begin(CompactionJob* job);
  void End(const CompactionJob& job);
  Status RunCompaction(CompactionJob* job);
  /// Of a job that failed: what range deletes have come to cover while its tables were busy goes.
  void DropWhatIsCovered(const CompactionJob& job);
  Status MergeTables(CompactionJob* job, NewTables* outputs);
  Status MoveTable(const CompactionJob& job);
  /// `key`, which is a new one, is written next: ends the open table where that is due, and
  /// installs a piece.
  Status EndTable(std::string_view key, NewTables* outputs);
  Status InstallPiece(NewTables* outputs);
  /// Puts the finished tables in the place of `replaced`.
  Status InstallOutputs(const CompactionJob& job, const TableFiles& replaced, NewTables* outputs);
  /// Lets go of tables, whose files this may remove.
  void LetGoOf(TableFiles* tables);

  // tables.cc
  TableFile::Resources TableResources() const {
    return {.cache = cache_,
            .metadata = metadata_,
            .descriptors = environment_.descriptors,
            // Another process may remove the files of what this one only reads.
            .closing = mode_ == Mode::kReadOnly ? io::DescriptorPool::Closing::kLast
                                                : io::DescriptorPool::Closing::kAsOthers,
            .obsolete = obsolete_};
  }
  /// What has to be done now and then, here when so many records of the source have been read.
  Status Pause(uint64_t records, const NewTables& outputs);
  /// Writes what of `records` is to be kept into new tables.
  Status WriteTables(base::RecordIterator* source, base::SurvivingRecords::Rules rules,
                     NewTables* outputs);
  /// A record of the shared tree with this key is next.
  Status EnterKeyspace(std::string_view key, NewTables* outputs);
  Status StartTable(NewTables* outputs);
  /// Of the next table: kBlockBytes as long as the records on disk would fit in memory. O(tables).
  size_t BlockBytes() const;
  /// `next_key`: what the next table begins with; unset: nothing follows.
  Status FinishTable(std::optional<std::string_view> next_key, NewTables* outputs);
  /// Replaces the keys of a table's properties by bounds (key_bounds.h).
  static void SetBounds(std::optional<std::string_view> next_key, NewTables* outputs,
                        table::TableProperties* properties);
  void DropTables(NewTables* outputs) const;
  /// Sets where somebody reads, or may come to read (boundaries), and what they see expired
  /// (now_ms): for what is about to be written or dropped.
  void RetainForReaders(base::SurvivingRecords::Rules* rules) const;
  /// Under mutex_: these boundaries, to be looked at.
  std::vector<base::SequenceNumber> BoundariesLocked() const;
  /// What expires at or before it is seen by nobody: the present, or the oldest snapshot's time.
  /// Under mutex_.
  uint64_t ExpiredForAllMs() const noexcept;

  // install.cc
  /// Makes an edit of the present version the new one: writes the manifest, then publishes it.
  Status Install(const Edit& edit);
  /// The same, under install_mutex_.
  Status InstallLocked(const Edit& edit);
  /// Allocates all that the installation of the edit needs.
  Result<Installation> Prepare(const Edit& edit);
  Manifest ManifestOf(const ReadState& state, const Edit& edit) const;
  void Publish(const Edit& edit, Installation next) noexcept;
  std::shared_ptr<const Version> Edited(const Version& present, const Keyspaces& keyspaces,
                                        const Edit& edit, base::SequenceNumber flushed_sequence,
                                        TableFiles* removed) const;
  void PublishState(std::shared_ptr<const ReadState> state);
  /// Under mutex_. What it replaces is to be destroyed after the lock is released.
  std::shared_ptr<const ReadState> Replace(std::shared_ptr<const ReadState> state) noexcept;
  void Retire(std::shared_ptr<const ReadState> state) noexcept;

  /// A job for the executor, which keeps the core alive until it ends. jobs_ has to count it.
  std::function<void()> JobOf(void (Core::*job)());
  /// Under mutex_; false when memory for the job cannot be had.
  bool Schedule(void (Core::*job)()) noexcept;
  /// Waits on changed_ until `done()`, running background jobs here when the executor wants that.
  template <class Done>
  void WaitUntil(std::unique_lock<std::mutex>& lock, Done done) const {
    while (!done()) {
      lock.unlock();
      const bool ran = environment_.executor->RunOne();
      lock.lock();
      if (!ran && !done()) changed_.wait(lock);
    }
  }
  void Notify(const Event& event) const;

  std::string path_;
  const DBOptions options_;
  const Environment environment_;
  const Mode mode_;
  const uint64_t fork_count_;
  const uint64_t memory_budget_;
  const uint64_t memtable_bytes_;
  const uint64_t table_bytes_;
  const uint64_t base_bytes_;  // the least that a level below level 0 aims at
  std::unique_ptr<io::FileLock> lock_;
  std::optional<io::SpareDescriptors> spare_descriptors_;
  std::shared_ptr<Cache> cache_;
  std::shared_ptr<table::MetadataBudget> metadata_;
  std::unique_ptr<io::ReserveFile> reserve_;
  std::shared_ptr<ObsoleteFiles> obsolete_;  // null: opened read-only
  std::mutex full_disk_mutex_;  // of deletes that the disk has refused: each takes all the reserve
  /// Compaction waits until there is room for the reserve again.
  std::atomic<bool> disk_is_full_{false};
  std::unique_ptr<wal::Log> log_;
  std::unique_ptr<CommitQueue> queue_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> handle_gone_{false};
  mutable io::ExpiryClock time_{environment_.clock};

  /// What every write changes, and what guards it: one line.
  struct alignas(64) CommitState {
    mutable base::AdaptiveLock lock;
    CommitQueue::Tail queue;
    base::SequenceNumber last_sequence = 0;  ///< Given out.
    // Of the active memtable, which takes them over when it is sealed; 0: none.
    base::SequenceNumber active_sequence = 0;
    wal::Lsn active_lsn = 0;  ///< Of what was logged at once.
    uint64_t writes = 0;
    uint64_t records_written = 0;
    uint64_t bytes_written = 0;
  };
  static_assert(sizeof(CommitState) == 64);
  CommitState commit_;
  CommitHistory history_;  // under commit_.lock
  const std::shared_ptr<transaction::ListenerList> listeners_ =
      std::make_shared<transaction::ListenerList>();

  std::atomic<wal::Lsn> flushed_lsn_{0};
  std::mutex install_mutex_;
  Manifest manifest_;  // as last written, without tables and range deletes
  std::atomic<uint64_t> manifest_bytes_{0};
  /// The manifest on disk may be that of a change of the keyspaces that failed: no write is
  /// acknowledged until one has been written again.
  static constexpr uint32_t kManifestIsUnsure = 1;
  /// Less is kept back than the log needs: nothing is put until it is there again.
  static constexpr uint32_t kReserveIsOwed = 2;
  std::atomic<uint32_t> write_stops_{0};   ///< Reasons for which writes stop; seldom any.
  std::atomic<uint32_t> reserve_uses_{0};  ///< Writes that may do without the reserve.
  std::atomic<uint64_t> log_granted_{0};   ///< How far beyond what it has the log may have to grow.
  TableFiles orphans_;                     // outputs of installs that failed; the manifest on
                                           // disk may name them
  // What is not above it is in tables or, a range delete, in the version. Raised, under
  // install_mutex_, after that version was published.
  std::atomic<base::SequenceNumber> flushed_sequence_{0};

  Pacer pacer_;
  FlushPace flush_pace_;  // Begun and ended under mutex_.

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::shared_ptr<const ReadState> state_;
  mutable base::RetireList retired_;
  std::atomic<const ReadState*> current_{nullptr};  // state_.get()
  uint64_t next_table_number_ = 1;
  UnnamedFiles unnamed_;  // while it is being opened
  bool flushing_ = false;
  bool flush_scheduled_ = false;
  std::vector<const CompactionJob*> running_;
  bool compaction_scheduled_ = false;
  base::Executor::Timer timer_ = base::Executor::Timer::kNone;  // of the TimerTask that waits
  uint64_t timer_ms_ = 0;                                       // when that is due
  uint32_t manual_compactions_ = 0;  // that wait for tables; no other one begins
  Status flush_error_;               // of the last attempt to flush
  Status background_error_;
  /// Sequence number and wall time; both ascend together.
  std::multiset<std::pair<base::SequenceNumber, uint64_t>> snapshots_;
  mutable base::SequenceNumber last_boundary_ = 0;  // nothing is kept for snapshots behind it
  DBStats counters_;                                // those of background work and recovery

  const std::shared_ptr<JobCount> jobs_ = std::make_shared<JobCount>();

  mutable std::mutex event_mutex_;

  std::mutex close_mutex_;
  std::optional<Status> close_answer_;  // Of the first Close; under close_mutex_.
};

}  // namespace basalt::db
