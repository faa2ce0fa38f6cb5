#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/options.h"
#include "basalt/stats.h"
#include "basalt/status.h"
#include "basalt/store.h"

// The database: durable, ordered keys in a directory. Read DB first; its base class Store (store.h)
// has the reads and writes. docs/database.md explains it.

namespace basalt {

/// One fault that `Check` or `Repair` found in a file.
struct FileFinding {
  std::string file;     ///< Its path.
  uint64_t offset = 0;  ///< The offset of the fault.
  Status status;        ///< Corruption, or why the file could not be read.
};

/// The result of reading every byte of a database.
struct CheckReport {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t tables = 0;
  uint64_t blocks = 0;
  uint64_t records = 0;          ///< In tables.
  uint64_t log_records = 0;      ///< Records that recovery would replay.
  uint64_t torn_tail_bytes = 0;  ///< Unacknowledged bytes after the end of the log. Not an error.
  std::vector<FileFinding> findings;
  bool ok() const noexcept { return findings.empty(); }
};

/// The changes that Repair made.
struct RepairReport {
  uint64_t last_lsn_kept = 0;
  uint64_t first_lsn_lost = 0;             ///< 0: nothing of the log was lost.
  uint64_t last_lsn_lost = 0;              ///< The greatest LSN that any file names.
  std::vector<std::string> moved_to_lost;  ///< Files under lost/.
  /// Faults that still prevent opening: missing tables, which must be restored from a copy.
  std::vector<FileFinding> findings;
  bool ok() const noexcept { return findings.empty(); }
};

/// Called periodically with the bytes done and the bytes in total. Return false to cancel.
using ProgressFunction = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

/// A durable, ordered store in a directory.
///
///     auto db = basalt::DB::Open("/var/lib/app/db").value();
///     basalt::Status s = db->Put("user/42", "Ada");
///     auto name = db->Get("user/42");          // Result<MaybeValue>
///     if (name && *name) std::cout << (*name)->view() << '\n';
///
/// A write is acknowledged when every reader can see it and it is as durable as its level promises.
/// After a crash the database holds a prefix of the writes, with every acknowledged write.
///
/// Thread-safe. One process at a time can open a database, with one handle. A second opener gets
/// Busy with the name of the holder.
///
/// Destroying the handle waits for a running flush and stops a compaction. It does not invalidate
/// iterators, snapshots or values: files and lock are released when the last of them is destroyed.
/// `Close` ends everything at once and reports what could not be saved.
///
/// After fork(), calls on the parent's handle return FailedPrecondition in the child. The child may
/// destroy the handle, which does nothing. The child still holds the parent's files open until it
/// ends or executes another program, so files that the parent removes keep their space until then.
/// The child can open databases of its own, whatever the parent's threads were doing.
///
/// Tables stay open after their first read. All databases of the process together keep at most half
/// of the files open that the process may open (`ulimit -n`). Opening a database raises this limit
/// as far as the process may. When the tables reach their half, a table that was not read for long
/// is closed until it is read again. So any number of tables works with 64 descriptors, also for
/// several databases. Eight more descriptors are reserved for manifest, log and flushes, in case
/// the program uses all others. If even these are used, the operation that needs one returns
/// ResourceExhausted. Nothing is lost, and work continues when descriptors are free again.
///
/// A batch may take at most an eighth of DBOptions::memory_budget: 8 MiB of 64 MiB. This also
/// bounds each record with its key. A larger batch is InvalidArgument, and the message has both
/// sizes. While a large value is written, up to three copies of it are in memory besides the
/// caller's. A database can be opened with a smaller budget than it was written with: its large
/// values can then be read, but not put.
///
/// On a full disk, puts return ResourceExhausted before the last byte is used. The directory
/// reserves up to 8 MiB while the database is open, and 1 MiB while it is closed. Beyond the
/// reserve, the log grows only while the file system reports enough free space to flush it. So the
/// database can still be opened, and DeleteRange and Flush make room for new puts, if no other
/// process fills the disk. docs/database.md lists the limits of this.
class DB : public Store {
 public:
  /// Opens the database in directory `path`, or creates one, and recovers the contents of the log.
  /// ":memory:" is a database that exists until the process ends. A relative path or a symbolic
  /// link is resolved once, at this call. Errors: NotFound (absent and not to be created), Busy
  /// (open elsewhere), Corruption (file and offset named; see Check and Repair), Unsupported
  /// (written by a newer version), InvalidArgument (path or options), IoError, ResourceExhausted.
  static Result<std::unique_ptr<DB>> Open(std::string_view path, const DBOptions& options = {});

  /// Opens a database to read what it holds at this moment. Takes no lock and writes nothing.
  /// Writes return FailedPrecondition.
  ///
  /// Another process may have the database open and continue to write. The reader sees every write
  /// that was acknowledged before the call; in keyspaces at kMemory, every write that was flushed.
  /// Of the writes during the call it sees a prefix. It does not see later writes. A later opening
  /// never shows less. While files are opened here, the writer postpones their removal for at most
  /// a minute.
  ///
  /// All tables are opened at once, as far as the limit of open files allows. The contents of the
  /// log are kept in memory in addition to the budget. Errors: NotFound, and those of Open except
  /// Busy.
  static Result<std::unique_ptr<DB>> OpenReadOnly(std::string_view path,
                                                  const DBOptions& options = {});

  /// Reads every byte of a database that no process has open: checksums, order, the manifest
  /// against the files, the chain of the log. Writes nothing. A database that this process may not
  /// write is read without its lock; concurrent writes of another process then look like damage.
  /// The Result is an error only if the check could not run.
  static Result<CheckReport> Check(std::string_view path, const ProgressFunction& progress = {});

  /// Makes a database with a gap in its log openable. Keeps the log before the gap, moves the rest
  /// and log files of other databases to `lost/`, and reports what it moved. Changes nothing if
  /// Open would succeed. It cannot restore missing tables: it names them in the report's
  /// `findings`.
  static Result<RepairReport> Repair(std::string_view path);

  /// Removes the database in directory `path`, and the directory if it then is empty. NotFound:
  /// there is no database. Busy: it is open.
  static Status Destroy(std::string_view path);

  /// Writes the memtable to tables and waits until that is done.
  virtual Status Flush() = 0;
  /// Flushes, and merges all tables that hold keys in [begin, end) down to the last level. Tables
  /// that are there already are rewritten if that drops something: deleted or expired records, or
  /// versions that were kept for snapshots that no longer exist. An unset `begin` means the first
  /// key, an unset `end` the last.
  virtual Status CompactRange(std::optional<std::string_view> begin,
                              std::optional<std::string_view> end, KeyspaceId keyspace) = 0;
  Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end) {
    return CompactRange(begin, end, KeyspaceId::kDefault);
  }
  Status CompactRange() { return CompactRange(std::nullopt, std::nullopt); }
  /// About how many bytes of tables the keys in [begin, end) take on disk, exact to a block at
  /// either end. Memtables are not counted. An unset `begin` means the first key, an unset `end`
  /// the last.
  virtual Result<uint64_t> ApproximateSize(std::optional<std::string_view> begin,
                                           std::optional<std::string_view> end,
                                           KeyspaceId keyspace) const = 0;
  Result<uint64_t> ApproximateSize(std::optional<std::string_view> begin,
                                   std::optional<std::string_view> end) const {
    return ApproximateSize(begin, end, KeyspaceId::kDefault);
  }

  /// All statistics are zero if there is no memory for them, and in a forked child.
  virtual DBStats GetStats() const = 0;

  /// Finishes background work, syncs the log and releases the lock. Further calls, also concurrent
  /// ones, return after that with the same result. From then on snapshots return
  /// FailedPrecondition, and so do iterators (see Iterator). Values stay valid.
  virtual Status Close() = 0;
};

}  // namespace basalt
