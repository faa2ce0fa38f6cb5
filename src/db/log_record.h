#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/options.h"
#include "basalt/status.h"
#include "db/keyspaces.h"
#include "wal/recovery.h"

namespace basalt::db {

/// A batch as it is logged and inserted.
struct LogForm {
  std::string_view bytes;
  bool needs_time = false;  ///< It is not a log form yet: it takes the wall time to make it.
  size_t deletes = 0;
  size_t range_deletes = 0;
  bool has_merges = false;
  bool deletes_only = true;                      ///< No record puts anything.
  Durability durability = Durability::kProcess;  ///< The strongest that a record's keyspace has.
  bool is_logged = true;                         ///< False: all its keyspaces are kMemory.
};

/// What turns a batch into that.
struct LogFormRules {
  const Keyspaces& keyspaces;
  Durability durability;  ///< Of the database.
  std::chrono::milliseconds default_ttl;
  uint64_t now_ms;  ///< Wall time of the write; 0: not asked for yet, because it takes a while.
};

/// The log form of a validated batch: times are absolute. `buffer` holds it where it differs from
/// the batch. NotFound: a keyspace that is not there; Unsupported: a record kind that this version
/// does not have; InvalidArgument: logged and unlogged keyspaces in one batch.
Result<LogForm> ToLogForm(std::string_view batch, const LogFormRules& rules, std::string* buffer);

/// A record as it came from the log of the database at `path`: well formed, complete, of kinds that
/// this version has. Keyspaces below `next_keyspace_id` may have been dropped since.
Status CheckLogRecord(const wal::RecordView& record, const std::string& path,
                      uint32_t next_keyspace_id);

}  // namespace basalt::db
