#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/wall_time.h"

// Options of databases, keyspaces, reads and writes. Read Durability first, then DBOptions.

namespace basalt {

class Snapshot;

/// How much of an acknowledged write may be lost, weakest level first. A stronger write makes all
/// earlier weaker ones as durable as itself. Reads may see writes that are not durable yet.
///
/// | level       | a killed process loses | a power cut loses           |
/// |-------------|------------------------|-----------------------------|
/// | `kMemory`   | all that is not flushed | the same                   |
/// | `kInterval` | the last 10 ms         | what was not synced since   |
/// | `kProcess`  | nothing acknowledged   | what was not synced since   |
/// | `kPower`    | nothing acknowledged   | nothing acknowledged        |
///
/// After either, a database holds a prefix of the writes to it, in order. kMemory is a property of
/// a database or keyspace, not of one write; the prefix rule does not include such keyspaces.
/// kInterval allows a store to collect writes for that long. A DB does not collect them: it writes
/// its log through mapped memory, which costs less than collecting would save. So with a DB
/// kInterval promises the same as kProcess.
enum class Durability : uint8_t { kMemory = 0, kInterval = 1, kProcess = 2, kPower = 3 };

/// How table blocks are compressed. kLz4ThenZstd uses Zstandard at the last level, which has most
/// data, and LZ4 above.
enum class Compression : uint8_t { kNone = 0, kLz4 = 1, kLz4ThenZstd = 2 };

/// The id of a keyspace, a separate set of keys inside one store. An id is never reused and is not
/// part of the key bytes. Every store has kDefault; Store::CreateKeyspace creates others.
enum class KeyspaceId : uint32_t { kDefault = 0 };

/// Options of reads: of one key, of many, or by an iterator.
struct ReadOptions {
  /// Read as of this snapshot. Null: the newest visible state. An iterator needs the snapshot only
  /// while it is created.
  const Snapshot* snapshot = nullptr;
  KeyspaceId keyspace = KeyspaceId::kDefault;
  /// False: blocks that this call reads from disk are not kept in the cache.
  bool fill_cache = true;
  /// True: the call does not read from disk. If it would have to, it returns WouldBlock. Event
  /// loops then pass the call to a thread that may wait.
  bool memory_only = false;
  /// For reads in a transaction; other reads ignore it. False: the commit does not check whether
  /// the data that was read has changed since.
  bool track = true;

  // For iterators; other reads ignore these. Bounds are copied. `prefix` excludes the other two.
  std::optional<std::string_view> lower{};   ///< First key of the range, inclusive.
  std::optional<std::string_view> upper{};   ///< End of the range, exclusive.
  std::optional<std::string_view> prefix{};  ///< Only keys that begin with this.
  bool keys_only = false;                    ///< Values are left empty, neither read nor merged.
};

/// Options of writes.
struct WriteOptions {
  /// Unset: the level of the keyspace, or else of the store. kMemory is refused: it is a property
  /// of a store, not of a write.
  std::optional<Durability> durability{};
  /// For functions that write one key or range. The records of a batch name their own keyspaces:
  /// with a batch it must be kDefault.
  KeyspaceId keyspace = KeyspaceId::kDefault;
  /// The time from the write until the record expires. Unset: the keyspace's default. Zero: it does
  /// not expire. A negative value is InvalidArgument. Only for functions that put one key. The
  /// record lives as long even if the wall clock is set back meanwhile.
  std::optional<std::chrono::milliseconds> ttl{};
  /// The time at which the record expires, instead of `ttl`. For copies of a record. A record whose
  /// time has passed hides older values and is not visible itself.
  std::optional<WallTime> expiry{};
  /// False: a write that would have to wait for a flush, for compaction or for the disk access of
  /// another write returns WouldBlock and changes nothing. For event loops.
  bool may_wait = true;
};

/// Options of a transaction.
struct TransactionOptions {
  /// The most bytes for the transaction's writes and its record of reads. When it is reached, reads
  /// are recorded more coarsely, so the commit may be Aborted because of a key that was not read.
  /// Writes return ResourceExhausted.
  uint64_t memory_limit = uint64_t{64} << 20;
};

/// Options of a keyspace. Unset options have the store's values.
struct KeyspaceOptions {
  /// The level of writes that name none. kMemory: the writes are not logged, and cannot share a
  /// batch with logged writes.
  std::optional<Durability> durability{};
  /// The time to live of records that are put without one. Zero: they never expire. Only for a
  /// MemTable: a DB has one value for all its keyspaces (DBOptions), and returns Unsupported here.
  std::optional<std::chrono::milliseconds> default_ttl{};
  std::optional<Compression> compression{};  ///< Unsupported by every store so far.
};

/// One of a store's keyspaces.
struct KeyspaceInfo {
  KeyspaceId id = KeyspaceId::kDefault;
  std::string name;  ///< Empty: the default one.
  KeyspaceOptions options{};
};

/// A background event, for logs and dashboards.
struct Event {
  enum class Kind : uint8_t {
    kFlush = 0,       ///< A memtable became tables.
    kCompaction = 1,  ///< Tables were merged.
    kLogTailCut =
        2,  ///< Recovery cut an unacknowledged torn tail off the log and kept it in lost/.
    kBackgroundError =
        3,          ///< A flush or compaction failed and will be retried. `status` has the cause.
    kRecovery = 4,  ///< The log was replayed at Open.
    /// Recovery found tables that are newer than manifest and log, and moved them to lost/. This
    /// happens if an older manifest was put back.
    kTablesMovedToLost = 5,
  };
  Kind kind = Kind::kFlush;
  uint64_t bytes_in = 0;      ///< Bytes read, replayed or cut.
  uint64_t bytes_out = 0;     ///< Bytes written.
  uint64_t duration_us = 0;   ///< Wall time.
  std::string_view detail{};  ///< One line of text. Valid during the call only.
  Status status{};
};

/// Options of a database. The defaults need no tuning. Open refuses an invalid combination with a
/// message that names the field.
struct DBOptions {
  bool create_if_missing = true;
  /// Bytes for memtables and cached blocks together. At least 1 MiB. 0: a quarter of the memory
  /// that the process may use (physical memory or the limit of its cgroup, whichever is less). A
  /// batch may take at most an eighth of it.
  uint64_t memory_budget = 0;
  /// The level of writes that name none. kMemory: the database has no log.
  Durability durability = Durability::kProcess;
  Compression compression = Compression::kLz4;
  /// The time to live of values that are put without one. Zero: they never expire.
  std::chrono::milliseconds default_ttl{0};
  /// Threads for flushes and compactions. All databases of the process share them: the first one
  /// opened decides. 0: derived (one for two cores, at most four).
  uint32_t background_threads = 0;
  /// Log files whose records are all in tables are kept for readers of changes (Store::Changes),
  /// the newest up to this many bytes. They are removed if the disk becomes full.
  uint64_t log_keep_bytes = 0;
  /// Called from background threads, one call at a time. It must not throw, block, or call the
  /// database.
  std::function<void(const Event&)> on_event{};
};

}  // namespace basalt
