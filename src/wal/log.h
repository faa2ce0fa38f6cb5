#pragma once

// src/wal: the write-ahead log, its files and its recovery. Read Log first, then Recover
// (recovery.h).

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/status.h"
#include "io/file_system.h"
#include "wal/log_format.h"

// The writing side of the write-ahead log. docs/log.md has the bytes and the rules of recovery.
//
//    Stage (any thread)       Wait: one thread leads              Sync: one thread leads
//    ------------------       ------------------------------      -----------------------------
//    write the record, if     take the front group; without       wait for the threads that shared
//    it can be copied into    the lock: frame its records, one    the last round; without the
//    mapped memory; else      write() at the file's end; with     lock: sync every unsynced file,
//    copy it into the         it: count them as written, wake     oldest first, then the directory
//    staging group            the waiting threads
//
// If a write() can be a copy into mapped memory (io::File::WriteThroughMemory), a record is framed
// and copied to the file's end at once, under the lock. Its writer does not take the lock again. A
// second writer waits for several hundred nanoseconds and does not have to be woken. Records that
// begin a file or a mapping, large records, and records behind a group are staged.
//
// A group is a byte buffer with the records staged while the previous group was being written. They
// are framed only then, because their bytes depend on the file and the offset where they will lie.
// Groups queue in LSN order. One is written at a time, by the first thread in Wait that finds none
// being written. A Rotate between two Stage calls separates their groups, and the later one begins
// a new file.
//
// Invariants
// - durable_lsn <= written LSN <= last_lsn. Each LSN <= written lies whole in exactly one file of
//   the chain that file headers form, at an offset below the length that the next header names.
// - `mutex_` guards everything except the bytes of a group that is being written and the calls to
//   the file system. `writing_` and `round_` say which thread may make these calls, other than
//   copies into memory. Neither the lock nor a round is held during `flush_through`.
// - After a failed write to a file, nothing is written to it any more. After a failed sync, it is
//   not synced any more either (a running write may still end). The next group goes to a new file.
// - File numbers are never reused, not even those of files whose creation failed.
// - Groups are recycled. There are at most two more than waiting threads. No allocation per record.
//
// Cost: a record that is written at once takes the lock once, copies the payload twice (to be
// hashed, and into the file), and writes two lines that other writers write. A staged record takes
// the lock three times, besides the write() itself.

namespace basalt::wal {

/// What the first file of a new Log continues. Recovery fills it in.
struct LogStart {
  uint64_t next_file_number = 1;
  uint64_t database_id = 0;  ///< Of the database that it is the log of; 0: not known.
  Lsn next_lsn = 1;
  /// Known durable. Those in (durable_lsn, next_lsn) are in older files and are treated like those
  /// of a file whose sync failed: only tables make them durable.
  Lsn durable_lsn = 0;
  /// What the next header says of its predecessor; 0: none.
  uint64_t previous_file_id = 0;
  Lsn previous_last_lsn = 0;
  uint64_t previous_length = 0;
  uint64_t previous_running_hash = 0;
  /// The log ends with a closing record, or there is none: Close then has nothing to say unless
  /// something was written.
  bool closed_cleanly = false;
};

struct LogOptions {
  /// Space reserved for each new file; a reservation that fails is no error. 0: none.
  uint64_t preallocate_bytes = 0;
  /// Makes all LSNs <= the argument durable in tables (flush), or says why it cannot. Called
  /// without locks held, possibly from several threads at once.
  std::function<Status(Lsn)> flush_through;
  /// Asked before the files grow by so many bytes, the next step of `preallocate_bytes` ahead of
  /// the records; an error refuses these. Called without locks held, by one thread at a time. Null:
  /// they may grow.
  std::function<Status(uint64_t bytes)> before_growth{};
  /// Removes a file that holds nothing but what was flushed, now or later. Null: the file system
  /// does, now.
  std::function<Status(const std::string& path)> remove_file{};
};

/// Thread-safe, except for destruction. Destruction without Close leaves the log as a killed
/// process would.
class Log {
 private:
  struct Group;

 public:
  /// Does no writing: the first file is created with the first record. `fs` must outlive the log.
  static Result<std::unique_ptr<Log>> Start(io::FileSystem* fs, std::string directory,
                                            const LogStart& start, LogOptions options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// One staged record: names it until Wait. Movable. A ticket that is dropped without Wait leaves
  /// its record in the log's hands: it is written with the next group or by Sync or Close. That of
  /// a payload that was not copied (Stage) waits when it is dropped.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : log_(other.log_),
          group_(std::exchange(other.group_, nullptr)),
          lsn_(other.lsn_),
          status_(std::move(other.status_)) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(log_, other.log_);
      std::swap(group_, other.group_);
      std::swap(lsn_, other.lsn_);
      std::swap(status_, other.status_);
      return *this;
    }
    ~Ticket() {
      if (group_ != nullptr) log_->Drop(*this);
    }
    /// Final only when Wait answered ok.
    Lsn lsn() const noexcept { return lsn_; }
    /// Stage has written the record: Wait will answer ok, at once.
    bool is_written() const noexcept { return group_ == nullptr && status_.ok(); }

   private:
    friend class Log;
    Ticket(Log* log, Group* group, Lsn lsn) : log_(log), group_(group), lsn_(lsn) {}
    Log* log_ = nullptr;
    Group* group_ = nullptr;  // Null: what Wait will answer is known.
    Lsn lsn_ = 0;
    Status status_;
  };

  /// Gives a record the next LSN, and writes it when that is a copy into memory and no group is
  /// before it; else copies it into the staging buffer. A payload of 1 MiB or more is not copied:
  /// it must stay where it is until Wait has returned. Short; any thread, but the order of Stage
  /// calls is the order of LSNs (the DB calls it under its commit lock).
  Ticket Stage(uint64_t first_sequence, uint32_t count, std::string_view payload);
  /// Returns when the record's group has been written (one write() a group; the caller may be the
  /// one who writes it), or the group's error: then neither the record nor any staged behind it is
  /// in the log, and their LSNs are given again. Once a ticket.
  Status Wait(Ticket& ticket) noexcept;
  /// Returns when every LSN <= lsn survives a power cut (group commit of syncs), or the failed
  /// sync's error. After that error the records are in the log but only tables can make them
  /// durable: the next Sync calls `flush_through`.
  Status Sync(Lsn lsn);
  /// Records staged later go to a new file. Under the DB's commit lock. Does no I/O itself.
  void Rotate();
  /// Tables now hold every LSN <= lsn durably: unsynced files up to there no longer matter.
  void SetFlushed(Lsn lsn);
  /// Removes log files all of whose LSNs are <= lsn, the present one only after Rotate. Of these
  /// the newest stay that take up to `keep_bytes` together, for LogReader. Files that could not be
  /// removed are tried again by the next call.
  Status RemoveObsolete(Lsn lsn, uint64_t keep_bytes = 0);
  /// Syncs, appends the closing record, syncs. No Stage and no Wait may overlap or follow; what
  /// `flush_through` does may. Again: the same answer.
  Status Close();

  /// Staged or written, not failed.
  Lsn last_lsn() const noexcept { return last_lsn_.load(std::memory_order_acquire); }
  Lsn durable_lsn() const noexcept { return durable_lsn_.load(std::memory_order_acquire); }

  /// Since Start: bytes written to log files, and rounds of syncs.
  uint64_t bytes_written() const noexcept { return bytes_written_.load(std::memory_order_relaxed); }
  uint64_t syncs() const noexcept { return syncs_.load(std::memory_order_relaxed); }
  /// The size of the files that recovery needs, without space that is only reserved.
  uint64_t live_bytes() const;

  /// A file as far as it counts now.
  struct ReadableFile {
    std::string path;  ///< Empty: there is none.
    Lsn last_lsn = 0;  ///< Of its records,
    uint64_t end = 0;  ///< and where these end.
  };
  /// The file that has this record. None: it is not written yet. OutOfRange: it is there no more.
  Result<ReadableFile> FileWith(Lsn lsn) const;
  static Status HasNoMore(Lsn lsn);

 private:
  struct LogFile;
  struct SyncRound;
  using Lock = std::unique_lock<std::mutex>;

  Log(io::FileSystem* fs, std::string directory, const LogStart& start, LogOptions options);
  Status AdoptExistingFiles();
  Status ChainExistingFiles();

  // Under the lock. Those that take the lock give it back during I/O.
  Group* OpenGroup(size_t record_bytes);
  bool CanWriteAtOnce(size_t payload_bytes) const;
  Status WriteAtOnce(const Record& record);
  /// A group that cannot be written, for want of memory too, fails with all behind it.
  void WriteFrontGroup(Lock& lock) noexcept;
  Result<std::shared_ptr<LogFile>> NewFileFor(const Group& group);
  /// `last_lsn` 0: what was written is a closing record alone.
  void RecordWritten(Lsn last_lsn, uint64_t bytes, uint64_t running_hash);
  void FinishGroup(Group* group, const Status& status);
  Status GiveBackFrom(Lsn lsn, const Status& cause);
  void FailFrom(Group* group, const Status& cause);
  void WaitForProgress(Lock& lock);
  void ReleaseLocked(Group* group);
  Status CloseOnce(Lock& lock);
  /// May give the lock back.
  Status SyncLocked(Lock& lock, Lsn lsn);
  /// The last LSN of the files that block a sync of `lsn` until tables hold it; 0: none. Lowers
  /// `target` below the first blocked file behind `lsn`.
  Lsn BlockedThrough(Lsn lsn, Lsn* target) const;
  Status FlushBlocked(Lock& lock, Lsn blocked);
  void GatherSharers(Lock& lock);
  Status LeadSyncRound(Lock& lock, Lsn target);
  void RaiseFlushed(Lsn lsn);
  void DropUselessHandles(Lsn flushed);
  bool IsObsolete(const LogFile& file) const noexcept;

  // Without the lock, by whoever writes.
  static void CutOff(LogFile& file) noexcept;
  Status MayGrow(LogFile* file, uint64_t end) const;
  Status AppendToFile(Group& group, LogFile& file, uint64_t* bytes, uint64_t* running_hash) const;
  Status CreateFileWith(Group& group, LogFile* file, uint64_t* bytes, uint64_t* running_hash);
  Status TryCreateFileWith(Group& group, LogFile* file, uint64_t* bytes, uint64_t* running_hash);

  void Drop(Ticket& ticket) noexcept;
  void Release(Group* group);

  io::FileSystem* const fs_;
  const std::string directory_;
  const LogOptions options_;
  const LogStart start_;

  // What a record that is written at once changes, and nothing else: one line.
  alignas(64) mutable std::mutex mutex_;
  std::atomic<Lsn> last_lsn_;
  Lsn written_lsn_;
  std::atomic<uint64_t> bytes_written_{0};

  alignas(64) std::atomic<Lsn> durable_lsn_;
  std::atomic<uint64_t> syncs_{0};
  uint64_t next_file_number_;

  // Groups: the queue in LSN order (its last may still be open for staging), and recycled ones.
  std::vector<std::unique_ptr<Group>> groups_;
  Group* free_ = nullptr;
  Group* front_ = nullptr;
  Group* back_ = nullptr;
  bool back_is_open_ = false;
  bool rotate_ = false;               ///< The next group to be opened begins a new file.
  std::atomic<bool> writing_{false};  ///< Someone writes a group; set and cleared under the lock.
  uint32_t progress_sleepers_ = 0;
  std::condition_variable progress_;  ///< A group was finished (for those without a ticket in it).

  // Files, ascending; the last one may be `current_`.
  std::vector<std::shared_ptr<LogFile>> files_;
  std::shared_ptr<LogFile> current_;  ///< The last one that records went to; null before the first.
  Lsn obsolete_lsn_ = 0;              ///< RemoveObsolete was called for all up to here.
  std::shared_ptr<SyncRound> round_;  ///< The syncs under way; null: none.
  std::condition_variable round_done_;
  uint64_t rounds_ = 0;                   ///< Begun.
  std::atomic<uint32_t> syncing_{0};      ///< Threads in Sync.
  uint32_t sharers_ = 0;                  ///< Threads in Sync when the last round ended.
  uint32_t gathered_ = 0;                 ///< Threads that have come to begin the next one.
  std::chrono::nanoseconds patience_{0};  ///< How long they wait for the others.

  bool closed_ = false;
  Status close_status_;
};

}  // namespace basalt::wal
