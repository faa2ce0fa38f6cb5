#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "io/file_system.h"
#include "wal/log.h"

// Reads back what a log holds, as far as it goes without a hole. docs/log.md states the rules:
//
//   * Replay starts behind the flushed LSN and goes on while each record follows the one before it,
//   in
//     the file or in the next file of the chain that headers form. What is replayed is always a
//     prefix of what was written.
//   * The first LSN that is missing is where the log ends. If anything names it as durable (a
//   record,
//     a file header, the manifest), that is corruption and refused. Otherwise it is the tail that a
//     power cut tears: it is cut, kept in `lost/`, and reported.
//
// Every step can be repeated after a crash in its middle. One file is in memory at a time.

namespace basalt::wal {

/// What the manifest says of the log.
struct ManifestClaims {
  uint64_t database_id = 0;  ///< 0: not known; then all files are taken for the database's.
  Lsn flushed_lsn = 0;
  Lsn durable_lsn = 0;
};

/// One replayed batch; the payload lasts until the callback returns.
struct RecordView {
  Lsn lsn;
  uint64_t first_sequence;
  uint32_t count;
  std::string_view payload;
  uint64_t greatest_sequence;  ///< Of what is replayed in all: this record and others.
};

enum class RecoveryMode : uint8_t {
  kOpen,    ///< Cuts an unacknowledged tail (to lost/), fails on a gap at or below the greatest
            ///< durable LSN.
  kCheck,   ///< As kOpen, but writes nothing: only reports what would be cut.
  kRepair,  ///< Cuts at any gap, to lost/; moves the files of other databases there.
};

struct RecoveryResult {
  LogStart start;               ///< What a new Log continues with.
  bool closed_cleanly = false;  ///< The last record is the closing one (or there is no log at all).
  Lsn greatest_durable_lsn =
      0;                   ///< That any valid record, header or the manifest names, or is flushed.
  uint64_t records = 0;    ///< Replayed.
  uint64_t log_bytes = 0;  ///< Of the replayed records, with their headers.
  uint64_t last_sequence = 0;  ///< Of the replayed records; 0: none.
  /// The tail that was cut, or would be (kCheck): the non-zero bytes behind the last good record,
  /// in its file and in all later files; where it begins. The file is a path; empty: no tail.
  uint64_t tail_bytes_cut = 0;
  std::string tail_file;
  uint64_t tail_offset = 0;
  /// kRepair: what was cut although it was durable, or though that is not known. 0: nothing.
  Lsn first_lsn_lost = 0;
  Lsn last_lsn_lost = 0;
  std::vector<std::string> moved_to_lost;  ///< Paths of what now lies there.
};

/// A log whose files are open, so that they can be read when they are removed.
struct PinnedLog {
  struct PinnedFile {
    uint64_t number;
    std::unique_ptr<io::File> file;
  };
  std::vector<PinnedFile> files;  ///< By number.
};

/// Opens the files of a log that another process may be writing: all that are there when it is
/// called, and some of those that are made meanwhile, but none with a greater number than one that
/// is left out. NotFound: one was removed meanwhile.
Result<PinnedLog> PinLog(io::FileSystem* fs, const std::string& directory);

/// Calls `replay` for each record with LSN > claims.flushed_lsn, in LSN order; an error of `replay`
/// is returned, and nothing is cut then.
///
/// Corruption: a record that is known to be durable is damaged or missing; the message has file,
/// offset and the lost LSNs. Or what lies behind damage could not all be searched (ScanFile), or a
/// file says that it is of another database; files that name none, as earlier versions wrote them,
/// are taken.
/// Unsupported: a newer format. IoError and others: of the file system,
/// as they are.
///
/// kRepair leaves a log that ends before `claims.durable_lsn`: the caller must lower the
/// manifest's to `start.durable_lsn` before the next recovery.
Result<RecoveryResult> Recover(io::FileSystem* fs, const std::string& directory,
                               const ManifestClaims& claims, RecoveryMode mode,
                               const std::function<Status(const RecordView&)>& replay);

/// The same as kCheck of a log that another process may go on writing. All records are replayed
/// that were written before it was called.
Result<RecoveryResult> RecoverPinned(const PinnedLog& log, const std::string& directory,
                                     const ManifestClaims& claims,
                                     const std::function<Status(const RecordView&)>& replay);

}  // namespace basalt::wal
