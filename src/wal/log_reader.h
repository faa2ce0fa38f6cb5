#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "basalt/status.h"
#include "io/file_system.h"
#include "wal/log.h"
#include "wal/log_format.h"

// Reads the records of a log while it is written.
//
// The log says which file has an LSN and how far the file counts (Log::FileWith), so that records
// whose write failed, and whose LSNs were given again, are never read. The reader keeps the file
// open: once it has come to a file, the file's removal does not stop it.
//
// Cost: a read of the file for each kChunkBytes of records, or for each new record at the log's
// end; one copy of a record's bytes, and their checksum. Memory: kChunkBytes, or the largest
// record. To begin within a file it passes the records before.

namespace basalt::wal {

/// One thread at a time. `log` and `fs` must outlive it.
class LogReader {
 public:
  static constexpr size_t kChunkBytes = size_t{256} << 10;

  /// The first record is `from`, which must not be 0.
  LogReader(const Log* log, io::FileSystem* fs, Lsn from) : log_(log), fs_(fs), next_lsn_(from) {}

  /// The next record; nothing: it is not written yet, and a later call looks again. OutOfRange: the
  /// log does not have it any more. Corruption, IoError: it cannot be read; the next call tries
  /// again. The payload is valid until the next call.
  Result<std::optional<Record>> Next();
  Lsn next_lsn() const noexcept { return next_lsn_; }

 private:
  /// Goes to the file that has next_lsn_. False: it is not written yet.
  Result<bool> OpenFile();
  /// Makes file_end_ what counts of the file by now, or goes to the next file. False: neither.
  Result<bool> FindMore();
  /// Makes `bytes_` begin at offset_, with at least `wanted` bytes, if the file has so many.
  Status Fill(size_t wanted);
  /// The record at offset_, read into memory.
  Result<Record> ReadHere();
  Status Damaged(const std::string& what) const;

  const Log* const log_;
  io::FileSystem* const fs_;
  Lsn next_lsn_;
  std::unique_ptr<io::File> file_;
  FileHeader header_{};
  uint64_t offset_ = 0;    // of the next record
  uint64_t file_end_ = 0;  // of the records that count
  Lsn file_last_lsn_ = 0;  // of those
  std::string bytes_;
  uint64_t bytes_begin_ = 0;  // their offset in the file
};

}  // namespace basalt::wal
