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
  uint64_t batches_end = 0;    ///< The end of the last batch.
  uint64_t last_sequence = 0;  ///< The greatest of its batches; 0: none.
  uint64_t end = 0;            ///< The same, or the end of the closing record behind it.
  bool is_closed() const noexcept { return end > batches_end; }
};

/// What the records area of one file holds. The first run is the file's sound beginning, possibly
/// empty; the others lie behind damage. LSNs ascend over runs.
struct FileScan {
  std::vector<RecordRun> runs;
  uint64_t running_hash = 0;  ///< Of the first run.
  Lsn durable_lsn = 0;        ///< The greatest that any valid record names.
  /// What it took to look for records behind damage: bytes that were hashed though no record began
  /// there, and kWalkWork for each operation of what may be a batch.
  uint64_t search_work = 0;
  /// Where the search was given up, as it took more than kSearchWorkMax for each byte of the file:
  /// records may lie behind. 0: it was not.
  uint64_t search_given_up_at = 0;
};

inline constexpr uint64_t kWalkWork = 64;
inline constexpr uint64_t kSearchWorkMax = 64;

/// The end of the last byte of `bytes` that is not zero; 0: all are.
uint64_t NonZeroEnd(std::string_view bytes) noexcept;

/// Finds all valid records of the file `path`, whose bytes are `file` (up to the length that
/// counts). Behind damage it looks for the next valid batch or closing record at every offset where
/// one may begin, as far as search_given_up_at says. Never fails on damage: Unsupported is for a
/// valid record of a type that this version does not know, behind another one.
///
/// A checksum is computed only where the payload walks as a batch of as many operations as the
/// record says. Other bytes seldom get through the first one, so that the search costs some steps a
/// byte; a log within a value has payloads that do, but each byte belongs to one of them. Bytes
/// that were made to be many overlapping records, which would cost the square of their number, are
/// what the search is given up for.
Result<FileScan> ScanFile(std::string_view file, const FileHeader& header, std::string_view path);

}  // namespace basalt::wal
