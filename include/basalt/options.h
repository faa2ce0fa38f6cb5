#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/wall_time.h"

namespace basalt {

class Snapshot;

/// How much of an acknowledged write may be lost, weakest first. A stronger write carries all
/// earlier weaker ones with it. Reads may see what is not durable yet.
///
/// | level       | a killed process loses | a power cut loses           |
/// |-------------|------------------------|-----------------------------|
/// | `kMemory`   | all that is not flushed | the same                   |
/// | `kInterval` | the last 10 ms         | what was not synced since   |
/// | `kProcess`  | nothing acknowledged   | what was not synced since   |
/// | `kPower`    | nothing acknowledged   | nothing acknowledged        |
///
/// After either, what a database holds is a prefix of what was written to it, in order.
/// kMemory is a property of a database or keyspace, never of one write; what such keyspaces hold
/// lies outside the rule above. kInterval allows a store to gather writes for that long. A DB does
/// not: its log is written through mapped memory, which costs less than gathering would save, so
/// that kInterval promises what kProcess does.
enum class Durability : uint8_t { kMemory = 0, kInterval = 1, kProcess = 2, kPower = 3 };

/// How table blocks are compressed. kLz4ThenZstd: Zstandard at the last level, where most data
/// lies, LZ4 above.
enum class Compression : uint8_t { kNone = 0, kLz4 = 1, kLz4ThenZstd = 2 };

/// Names a keyspace: a set of keys of its own inside one store. Never reused, never part of the key
/// bytes. Every store has kDefault; a DB makes others (DB::CreateKeyspace).
enum class KeyspaceId : uint32_t { kDefault = 0 };

/// How a read is made: of one key, of many, or by an iterator.
struct ReadOptions {
  /// Read as of this snapshot; null: the newest visible state. An iterator does not need it any
  /// more once it is made.
  const Snapshot* snapshot = nullptr;
  KeyspaceId keyspace = KeyspaceId::kDefault;
  /// False: blocks read from disk for this call are not kept in the cache.
  bool fill_cache = true;
  /// True: the call reads no disk. What would need one is WouldBlock. For event loops, which then
  /// hand the call to a thread that may wait.
  bool memory_only = false;
  /// Of reads in a transaction. False: the commit does not care whether what was read has changed
  /// since. Other reads ignore it.
  bool track = true;

  // Of iterators; other reads ignore them. Bounds are copied. `prefix` excludes the other two.
  std::optional<std::string_view> lower{};   ///< First key of the range, inclusive.
  std::optional<std::string_view> upper{};   ///< End of the range, exclusive.
  std::optional<std::string_view> prefix{};  ///< Only keys that begin with this.
  bool keys_only = false;                    ///< Values are left empty, neither read nor merged.
};

/// How a write is made and acknowledged.
struct WriteOptions {
  /// Unset: the keyspace's level, or else the store's. kMemory is refused: it is a property of a
  /// store, not of a write.
  std::optional<Durability> durability{};
  /// Of functions that write one key or range. The records of a batch name their own: with a batch
  /// it must stay kDefault.
  KeyspaceId keyspace = KeyspaceId::kDefault;
  /// How long after the write the record expires. Unset: the keyspace's default. Zero: never. A
  /// negative one is InvalidArgument. Only for functions that put one key. It lasts as
  /// long also when the wall clock is set back meanwhile.
  std::optional<std::chrono::milliseconds> ttl{};
  /// The moment at which the record expires, instead of `ttl`; for copies of a record. A moment in
  /// the past hides older values and is not visible itself.
  std::optional<WallTime> expiry{};
  /// False: a write that would have to wait for a flush, for compaction or for another write's
  /// disk access is WouldBlock and changes nothing. For event loops.
  bool may_wait = true;
};

/// How a transaction is made.
struct TransactionOptions {
  /// Bytes that the transaction's own writes and what it remembers of its reads may take. Beyond
  /// it reads are remembered more coarsely, so that the commit may be Aborted for a change of
  /// something that was not read; writes are ResourceExhausted.
  uint64_t memory_limit = uint64_t{64} << 20;
};

/// How a keyspace is made. What is unset is as the store's own.
struct KeyspaceOptions {
  /// The level of writes that name none. kMemory: its writes are not logged, and share no batch
  /// with those that are.
  std::optional<Durability> durability{};
  /// How long records live whose put names no ttl. Zero: they never expire. Of a MemTable: a DB has
  /// one for all its keyspaces (DBOptions), and answers Unsupported here.
  std::optional<std::chrono::milliseconds> default_ttl{};
  std::optional<Compression> compression{};  ///< Unsupported by every store so far.
};

/// One of a store's keyspaces.
struct KeyspaceInfo {
  KeyspaceId id = KeyspaceId::kDefault;
  std::string name;  ///< Empty: the default one.
  KeyspaceOptions options{};
};

/// Something that happened in the background, for logs and dashboards.
struct Event {
  enum class Kind : uint8_t {
    kFlush = 0,       ///< A memtable became tables.
    kCompaction = 1,  ///< Tables were merged.
    kLogTailCut = 2,  ///< Recovery cut an unacknowledged torn tail of the log and kept it in lost/.
    kBackgroundError = 3,  ///< A flush or compaction failed and will be retried; `status` says why.
    kRecovery = 4,         ///< The log was replayed at Open.
    /// Recovery found tables that are newer than the manifest and the log, as when an older
    /// manifest was put back, and moved them to lost/.
    kTablesMovedToLost = 5,
  };
  Kind kind = Kind::kFlush;
  uint64_t bytes_in = 0;      ///< Bytes read, replayed or cut.
  uint64_t bytes_out = 0;     ///< Bytes written.
  uint64_t duration_us = 0;   ///< Wall time.
  std::string_view detail{};  ///< One line for people; valid during the call only.
  Status status{};
};

/// How a database is opened. The defaults need no tuning. An invalid combination is refused at Open
/// by a message that names the field.
struct DBOptions {
  bool create_if_missing = true;
  /// Bytes for memtables and cached blocks together; at least 1 MiB. 0: a quarter of what the
  /// process may use (physical memory or its cgroup's limit, whichever is less). A batch may have
  /// at most an eighth of it.
  uint64_t memory_budget = 0;
  /// The level of writes that name none. kMemory: the database has no log.
  Durability durability = Durability::kProcess;
  Compression compression = Compression::kLz4;
  /// How long values live whose put names no ttl; zero: for ever.
  std::chrono::milliseconds default_ttl{0};
  /// Threads for flushes and compactions, shared by all databases of the process: the first one
  /// opened decides. 0: derived (one for two cores, at most four).
  uint32_t background_threads = 0;
  /// Log files whose records all lie in tables are kept up to so many bytes, the newest, for
  /// readers of changes (Store::Changes). A full disk takes them back.
  uint64_t log_keep_bytes = 0;
  /// Called from background threads, one call at a time. It must not throw, block, or call the
  /// database.
  std::function<void(const Event&)> on_event{};
};

}  // namespace basalt
