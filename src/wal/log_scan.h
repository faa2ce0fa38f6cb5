#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "wal/log_format.h"

namespace basalt::wal {

/// Records that lie one behind the other without a hole, neither in bytes nor in LSNs.
struct RecordRun {
  Lsn first_lsn = 0;
  Lsn last_lsn = 0;  ///< first_lsn - 1: none.
  uint64_t begin = 0;
  uint64_t batches_end = 0;  ///< The end of the last batch.
  uint64_t end = 0;          ///< The same, or the end of the closing record behind it.
  bool is_closed() const noexcept { return end > batches_end; }
};

/// What the records area of one file holds. The first run is the file's sound beginning, possibly
/// empty; the others lie behind damage. LSNs ascend over runs.
struct FileScan {
  std::vector<RecordRun> runs;
  uint64_t running_hash = 0;  ///< Of the first run.
  Lsn durable_lsn = 0;        ///< The greatest that any valid record names.
};

/// The end of the last byte of `bytes` that is not zero; 0: all are.
uint64_t NonZeroEnd(std::string_view bytes) noexcept;

/// Finds all valid records of the file `path`, whose bytes are `file` (up to the length that
/// counts). Behind damage it looks for the next valid record at every offset where one may begin.
/// Never fails on damage: Unsupported is for a valid record of a type that this version does not
/// know.
Result<FileScan> ScanFile(std::string_view file, const FileHeader& header, std::string_view path);

}  // namespace basalt::wal
