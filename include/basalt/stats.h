#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Statistics of a store at one moment. Read DBStats first.

namespace basalt {

/// The tables of one level.
struct LevelStats {
  uint64_t tables = 0;
  uint64_t bytes = 0;    ///< On disk.
  uint64_t records = 0;  ///< Versions and deletes, not keys.
  uint64_t deletes = 0;
};

/// Statistics of a database at one moment. Counters start at Open. Sizes are in bytes unless stated
/// otherwise.
struct DBStats {
  uint64_t last_sequence = 0;    ///< The newest visible operation.
  uint64_t last_lsn = 0;         ///< The newest log record.
  uint64_t durable_lsn = 0;      ///< Records up to here survive a power cut.
  uint64_t flushed_lsn = 0;      ///< Records up to here are in tables.
  uint64_t oldest_snapshot = 0;  ///< The sequence number of the oldest snapshot. 0: there is none.
  uint64_t snapshots = 0;
  uint64_t memory_budget = 0;
  uint64_t memtable_bytes = 0;  ///< Of the active and the sealed memtables.
  uint64_t keyspaces = 0;       ///< Including the default one.
  uint64_t cache_bytes = 0;     ///< Blocks in the cache.
  uint64_t cache_capacity = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t table_metadata_bytes = 0;  ///< Indexes and filters that open tables keep in memory.
  /// Open tables whose index or filter does not fit in memory: it is read in parts, through the
  /// cache.
  uint64_t tables_in_parts = 0;
  uint64_t log_bytes = 0;  ///< Of the log files that recovery would read.
  std::vector<LevelStats> levels;

  uint64_t writes = 0;  ///< Batches.
  uint64_t records_written = 0;
  uint64_t bytes_written = 0;  ///< Keys and values that callers wrote.
  uint64_t log_bytes_written = 0;
  uint64_t syncs = 0;
  uint64_t flushes = 0;
  uint64_t flush_bytes = 0;
  uint64_t compactions = 0;
  uint64_t compaction_bytes_read = 0;
  uint64_t compaction_bytes_written = 0;
  uint64_t compaction_debt = 0;  ///< Bytes that compaction still has to rewrite.
  uint64_t compactions_running = 0;
  uint64_t range_deletes = 0;  ///< Range deletes that a table may still need.
  uint64_t write_waits = 0;    ///< Writes that waited for a flush.
  uint64_t write_wait_us = 0;  ///< The total time of these waits.
  uint64_t write_delays = 0;   ///< Writes slowed down so that compaction or a flush keeps up.
  uint64_t write_delay_us = 0;
  uint64_t background_errors = 0;
  std::string background_error;     ///< The current error. Empty: there is none.
  uint64_t recovered_records = 0;   ///< Log records replayed at Open.
  uint64_t log_tail_bytes_cut = 0;  ///< Unacknowledged bytes that Open moved to lost/.
};

}  // namespace basalt
