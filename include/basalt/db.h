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

namespace basalt {

/// What `Check` or `Repair` says of one file.
struct FileFinding {
  std::string file;     ///< Its path.
  uint64_t offset = 0;  ///< Where in it.
  Status status;        ///< Corruption, or why it could not be read.
};

/// The result of reading every byte of a database.
struct CheckReport {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t tables = 0;
  uint64_t blocks = 0;
  uint64_t records = 0;          ///< In tables.
  uint64_t log_records = 0;      ///< That recovery would replay.
  uint64_t torn_tail_bytes = 0;  ///< Unacknowledged bytes after the log's end: no fault.
  std::vector<FileFinding> findings;
  bool ok() const noexcept { return findings.empty(); }
};

/// What Repair changed.
struct RepairReport {
  uint64_t last_lsn_kept = 0;
  uint64_t first_lsn_lost = 0;             ///< 0: nothing of the log was lost.
  uint64_t last_lsn_lost = 0;              ///< The greatest that anything names.
  std::vector<std::string> moved_to_lost;  ///< Files under lost/.
  /// What keeps it from being opened still, and must come back from a copy: tables that are
  /// missing.
  std::vector<FileFinding> findings;
  bool ok() const noexcept { return findings.empty(); }
};

/// Called now and then with bytes done and bytes in all; return false to cancel.
using ProgressFunction = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

/// A durable, ordered store in a directory.
///
///     auto db = basalt::DB::Open("/var/lib/app/db").value();
///     basalt::Status s = db->Put("user/42", "Ada");
///     auto name = db->Get("user/42");          // Result<MaybeValue>
///     if (name && *name) std::cout << (*name)->view() << '\n';
///
/// A write is acknowledged when it is visible to every reader and as durable as its level says.
/// After a crash the database holds a prefix of what was written, with everything that was
/// acknowledged.
///
/// Thread-safe. One process at a time has a database open, and one handle in it; a second opener
/// gets Busy with the holder's name. A handle used in a child after fork() answers
/// FailedPrecondition, and may be destroyed there, which does nothing: its files stay open there,
/// and keep the space of those that the parent removes, until the child ends or executes another
/// program. The child opens databases of its own, whatever threads of its parent were doing.
/// Destroying the handle waits for a flush that is under way and stops a compaction; it never
/// invalidates iterators, snapshots or values: files and lock are let go when the last of them
/// dies. `Close` ends it all at once and reports what could not be saved.
///
/// Tables stay open after their first read, up to half as many in the process as it may have files
/// open (`ulimit -n`); opening a database raises that limit to the most that the process may ask
/// for. Beyond it a table that was not read for long is closed until it is read again: any number
/// of tables works with 64 descriptors, and so do several databases together. Eight more are kept
/// back for the manifest, the log and flushes, for when the program itself takes all others. Where
/// even these are gone, what needs one is ResourceExhausted and says so; nothing is lost, and
/// everything goes on by itself when there are descriptors again.
///
/// A batch has at most an eighth of DBOptions::memory_budget: 8 MiB if that is 64 MiB. This bounds
/// each record, with its key, too. A larger batch is InvalidArgument, and the message has both
/// numbers. While a large value is written, up to three copies of it are in memory, beside the
/// caller's own. A database may be opened with a smaller budget than it was written with: its large
/// values can then be read, and cannot be put.
///
/// On a full disk puts are ResourceExhausted before the last byte is taken. The directory keeps up
/// to 8 MiB back while the database is open, and 1 MiB while it is closed. Beyond that the log
/// grows only while the file system reports enough free space to flush it. So, as long as nobody
/// else fills the disk, such a database can be opened, DeleteRange and Flush make room, and puts go
/// on. docs/database.md lists the limits of this.
class DB : public Store {
 public:
  /// Opens the database in directory `path`, or makes one; recovers what the log holds. ":memory:"
  /// is a database that lives and dies with the process. A relative path or a symbolic link is
  /// followed once: what becomes of it later changes nothing. Errors: NotFound (absent and not to
  /// be made), Busy (open elsewhere), Corruption (file and offset named; see Check and Repair),
  /// Unsupported (written by a newer version), InvalidArgument (path or options), IoError,
  /// ResourceExhausted.
  static Result<std::unique_ptr<DB>> Open(std::string_view path, const DBOptions& options = {});

  /// Opens a database to read what it holds at this moment. Takes no lock and writes nothing;
  /// writes to it are FailedPrecondition.
  ///
  /// Another process may have it open and go on writing. Every write that was acknowledged before
  /// the call is seen; in keyspaces at kMemory, every write that was flushed. Writes made during
  /// the call are seen up to some point in their order, later ones are not. A later opening never
  /// shows less. While files are opened here, the writer postpones their removal, for a minute at
  /// most.
  ///
  /// The files of all tables are opened at once, as far as the process may have them open. What the
  /// log holds is kept in memory beside the budget. Errors: NotFound, and those of Open except
  /// Busy.
  static Result<std::unique_ptr<DB>> OpenReadOnly(std::string_view path,
                                                  const DBOptions& options = {});

  /// Reads every byte of a database that nobody has open: checksums, order, the manifest against
  /// the files, the log's chain. Writes nothing. One that cannot be written is read without its
  /// lock: what a process writes there meanwhile that may, looks like damage. The Result's error is
  /// only for what kept it from looking.
  static Result<CheckReport> Check(std::string_view path, const ProgressFunction& progress = {});

  /// Makes a database openable whose log has a gap: keeps the log before the gap, moves the rest,
  /// and log files of another database, to `lost/` and says what that was. Changes nothing when
  /// Open would succeed. Tables that are missing it cannot make: it names them in the report's
  /// `findings`.
  static Result<RepairReport> Repair(std::string_view path);

  /// Removes the database in directory `path`, which nobody may have open, and the directory if
  /// nothing else is in it. NotFound: there is none; Busy: it is open.
  static Status Destroy(std::string_view path);

  /// Writes the memtable to tables, and waits for it.
  virtual Status Flush() = 0;
  /// Flushes, and merges all tables that hold keys in [begin, end) down to the last level. Tables
  /// that are there already are rewritten if that drops something: what is deleted, has expired, or
  /// was kept for snapshots that are gone. Unset: from the first, or to the last key.
  virtual Status CompactRange(std::optional<std::string_view> begin,
                              std::optional<std::string_view> end, KeyspaceId keyspace) = 0;
  Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end) {
    return CompactRange(begin, end, KeyspaceId::kDefault);
  }
  Status CompactRange() { return CompactRange(std::nullopt, std::nullopt); }
  /// About how many bytes of tables the keys in [begin, end) take on disk, to a block at either
  /// end. Memtables are not counted. Unset: from the first, or to the last key.
  virtual Result<uint64_t> ApproximateSize(std::optional<std::string_view> begin,
                                           std::optional<std::string_view> end,
                                           KeyspaceId keyspace) const = 0;
  Result<uint64_t> ApproximateSize(std::optional<std::string_view> begin,
                                   std::optional<std::string_view> end) const {
    return ApproximateSize(begin, end, KeyspaceId::kDefault);
  }

  /// All figures are zero where there is no memory for them, and in a forked child.
  virtual DBStats GetStats() const = 0;

  /// Finishes background work, syncs the log, lets go of the lock. Another call, also at the same
  /// time, returns when that is done, with the same answer. Snapshots answer FailedPrecondition
  /// from then on, and so do iterators (see Iterator); Values stay valid.
  virtual Status Close() = 0;
};

}  // namespace basalt
