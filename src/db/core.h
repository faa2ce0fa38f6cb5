#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "base/internal_key.h"
#include "db/commit_queue.h"
#include "db/environment.h"
#include "db/job_count.h"
#include "db/manifest.h"
#include "db/version.h"
#include "memtable/generation.h"
#include "wal/log.h"
#include "wal/recovery.h"

// The database itself, shared by its handle, iterators, snapshots and background jobs.
//
// A write (core.cc): reserve space in the active memtable; under commit_mutex_ take sequence
// numbers, stage the log record, join the commit queue; wait for the group's write(); insert;
// become visible in queue order; for kPower, wait for the sync. What cannot be inserted is never
// logged, and what is not logged is never inserted.
//
// Locks, in the order in which they may be taken together:
//   commit_mutex_    sequence numbers, the order of the log, which memtable is active
//   install_mutex_   one manifest is written at a time
//   mutex_           everything else below it; never held during I/O
//
// Readers take one shared_ptr to a ReadState under mutex_, then load the visible sequence number.
// The order matters: a state that is older than the number still holds everything up to the point
// where it was replaced, while a newer one may have dropped versions that an older number needs.

namespace basalt::db {

/// A memtable with its place in the log.
struct Generation {
  std::shared_ptr<memtable::Generation> table;
  bool sealed = false;                 ///< Guarded by commit_mutex_: takes no further write.
  std::atomic<uint32_t> in_flight{0};  ///< Writes that have a sequence number and are not inserted.
  std::atomic<wal::Lsn> last_lsn{0};   ///< The greatest that was inserted; 0: none.
};

/// What a reader looks at; immutable.
struct ReadState {
  std::shared_ptr<Generation> active;
  std::shared_ptr<Generation> sealed;  ///< Null, or being flushed.
  std::shared_ptr<const Version> version;
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  /// open.cc: takes the lock, reads the manifest, replays the log.
  static Result<std::shared_ptr<Core>> Open(std::string path, const DBOptions& options,
                                            const Environment& environment);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// FailedPrecondition after Close, or in a forked child.
  Status CheckUsable() const;
  Status CheckKeyspace(KeyspaceId keyspace) const;

  // core.cc
  /// `batch`: validated records of kinds this version writes.
  Status Write(std::string_view batch, size_t count, const WriteOptions& options);
  Status Update(std::string_view key, const UpdateFunction& fn);
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) const;
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options) const;
  Result<Snapshot> TakeSnapshot();
  /// The sequence number of one of our snapshots.
  Result<base::SequenceNumber> SnapshotSequence(const Snapshot& snapshot) const;
  Status Sync();
  Status Close();
  /// The handle is being destroyed: background work ends, and is waited for, unless this is called
  /// by it.
  void LetGo();
  DBStats GetStats() const;

  std::shared_ptr<const ReadState> State() const;
  base::SequenceNumber visible() const noexcept { return queue_->visible(); }

  // background.cc
  Status Flush();
  Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end);

 private:
  class SnapshotState;
  struct NewTables;
  struct Compaction;
  struct Edit;
  struct Found {
    base::Tag tag = 0;  ///< 0: no version at all.
    Value value;
  };

  Core(std::string path, const DBOptions& options, const Environment& environment);

  // open.cc
  Status LockDirectory();
  Status LoadManifest();
  Status ReplayLog();
  Status StartLog(const wal::RecoveryResult& recovered);

  // core.cc
  Status CheckWrite(size_t bytes, const WriteOptions& options, Durability* durability) const;
  Status WriteSequenced(std::string_view batch, size_t count,
                        const std::function<Status()>* precondition, Durability durability);
  /// Seals the full memtable, or waits for the flush that keeps it from being sealed.
  Status MakeRoom(const std::shared_ptr<Generation>& full);
  Status WaitForFlushOf(const std::shared_ptr<Generation>& generation);
  Result<Found> Find(const ReadState& state, std::string_view key, base::SequenceNumber at,
                     bool fill_cache) const;
  Result<Found> FindInTables(const Version& version, std::string_view key, uint64_t hash,
                             base::SequenceNumber at, bool fill_cache) const;

  // background.cc
  std::shared_ptr<Generation> NewGeneration() const;
  /// Under commit_mutex_, when nothing is sealed: a new memtable and log file from here on.
  void Seal();
  /// No new compaction begins, and a running one stops.
  bool Ending() const noexcept;
  /// These three under mutex_. Jobs keep the core alive until they end.
  void ScheduleFlush();
  void ScheduleCompaction();
  /// False when memory for the job cannot be had.
  bool Schedule(void (Core::*job)());
  void FlushJob();
  void CompactionJob();
  /// Flushes the sealed memtable, if there is one and nobody else does.
  void FlushSealed();
  Status FlushGeneration(const std::shared_ptr<Generation>& generation);
  Status FlushThrough(wal::Lsn lsn);
  static Compaction PickCompaction(const Version& version, std::optional<std::string_view> begin,
                                   std::optional<std::string_view> end);
  Status RunCompaction(const Compaction& compaction);
  /// Writes what of `source` is still needed into new tables.
  Status WriteTables(base::RecordIterator* source, bool compaction, NewTables* outputs);
  Status StartTable(NewTables* outputs);
  Status FinishTable(NewTables* outputs);
  std::vector<base::SequenceNumber> RetainedBoundaries() const;
  /// Makes an edit of the present version the new one: writes the manifest, then publishes it.
  Status Install(const Edit& edit);
  void PublishState(std::shared_ptr<const ReadState> state);
  /// Under install_mutex_: `version` is the present one, and `flushed`, if sealed, is in it.
  void PublishVersion(std::shared_ptr<const Version> version,
                      const std::shared_ptr<Generation>& flushed);
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

  const std::string path_;
  const DBOptions options_;
  const Environment environment_;
  const uint64_t fork_generation_;
  const uint64_t memory_budget_;
  const uint64_t memtable_bytes_;
  const uint64_t table_bytes_;
  std::unique_ptr<io::FileLock> lock_;
  std::shared_ptr<Cache> cache_;
  std::unique_ptr<wal::Log> log_;
  std::unique_ptr<CommitQueue> queue_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> handle_gone_{false};

  mutable std::mutex commit_mutex_;
  base::SequenceNumber last_sequence_ = 0;  // given out
  uint64_t writes_ = 0;
  uint64_t records_written_ = 0;
  uint64_t bytes_written_ = 0;

  std::atomic<wal::Lsn> flushed_lsn_{0};
  std::mutex install_mutex_;
  Manifest manifest_;   // as last written, without its tables
  TableFiles orphans_;  // outputs of installs that failed; the manifest on disk may name them

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::shared_ptr<const ReadState> state_;
  uint64_t next_table_number_ = 1;
  bool flushing_ = false;
  bool flush_scheduled_ = false;
  bool compacting_ = false;
  bool compaction_scheduled_ = false;
  uint64_t flush_attempts_ = 0;  // ended, with either outcome
  Status flush_error_;           // of the last attempt
  Status background_error_;
  std::multiset<base::SequenceNumber> snapshots_;
  DBStats counters_;  // those of background work and recovery

  const std::shared_ptr<JobCount> jobs_ = std::make_shared<JobCount>();

  mutable std::mutex event_mutex_;
};

}  // namespace basalt::db
