#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/changes.h"
#include "basalt/iterator.h"
#include "basalt/options.h"
#include "basalt/snapshot.h"
#include "basalt/status.h"
#include "basalt/value.h"
#include "basalt/wall_time.h"
#include "basalt/write_batch.h"

// The interface that the database, the memtable and the client share: ordered keys, transactions,
// keyspaces. Read Store first.

namespace basalt {

class Transaction;

/// A record that a read found.
struct Entry {
  Value value;
  /// The sequence number of the newest write to the key. It changes with each write, so it serves
  /// as a version for conditions (WriteBatch::RequireUnchanged) and as an entity tag.
  uint64_t version = 0;
  std::optional<WallTime> expiry{};  ///< Nothing: the record does not expire.
};

/// A key with its keyspace.
struct KeyspaceKey {
  KeyspaceId keyspace = KeyspaceId::kDefault;
  std::string_view key;
};

/// The features of a store. A call that needs a missing one returns Unsupported.
struct Capabilities {
  bool ordered = false;       ///< Iterators.
  bool snapshots = false;     ///< Snapshots, and iterators that see one moment.
  bool transactions = false;  ///< Begin, and conditions in batches.
  bool expiry = false;
  bool merges = false;
  bool keyspaces = false;  ///< More than the default one.
  bool durable = false;    ///< Acknowledged writes survive the end of the process.
  bool changes = false;    ///< AddListener and Watch. With `durable` also Changes.
};

/// One key during an Update. Valid during the call of the update function. If the function changes
/// nothing, the record stays as it is and nothing is written.
class EntryUpdate {
 public:
  /// `value` has no data() if the key is absent.
  EntryUpdate(std::optional<std::string_view> value, uint64_t version,
              std::optional<WallTime> expiry) noexcept
      : value_(value), version_(version), expiry_(expiry) {}
  EntryUpdate(const EntryUpdate&) = delete;
  EntryUpdate& operator=(const EntryUpdate&) = delete;

  // The present record.
  bool exists() const noexcept { return value_.has_value(); }
  /// Empty if the key is absent.
  std::string_view value() const noexcept { return value_.value_or(std::string_view()); }
  uint64_t version() const noexcept { return version_; }
  /// Nothing: it does not expire.
  std::optional<WallTime> expiry() const noexcept { return expiry_; }

  // The new record. The last call of each kind counts.
  /// The expiry stays as it is. A key that was absent gets the default ttl.
  void Set(std::string value) {
    new_value_ = std::move(value);
    outcome_ = Outcome::kSet;
  }
  void Delete() noexcept { outcome_ = Outcome::kDelete; }
  /// From now on. Zero: it never expires. Ignored if the key stays absent.
  void SetTtl(std::chrono::milliseconds ttl) noexcept {
    new_expiry_.reset();
    new_ttl_ = ttl;
  }
  /// Nothing: it never expires.
  void SetExpiry(std::optional<WallTime> expiry) noexcept {
    if (!expiry) return SetTtl(std::chrono::milliseconds(0));
    new_ttl_.reset();
    new_expiry_ = expiry;
  }

  // For stores.
  enum class Outcome : uint8_t { kKeep, kSet, kDelete };
  Outcome outcome() const noexcept { return outcome_; }
  const std::string& new_value() const noexcept { return new_value_; }
  const std::optional<std::chrono::milliseconds>& new_ttl() const noexcept { return new_ttl_; }
  const std::optional<WallTime>& new_expiry() const noexcept { return new_expiry_; }

 private:
  const std::optional<std::string_view> value_;
  const uint64_t version_;
  const std::optional<WallTime> expiry_;
  std::string new_value_;
  std::optional<std::chrono::milliseconds> new_ttl_{};
  std::optional<WallTime> new_expiry_{};
  Outcome outcome_ = Outcome::kKeep;
};

/// The function that Update calls. If it returns an error, nothing changes and Update returns the
/// error.
using UpdateFunction = std::function<Status(EntryUpdate& entry)>;

/// A map from bytes to bytes: the interface that all layers above a store use. Keys have up to
/// 65,535 bytes. The largest value depends on the store's memory budget (see DB, MemTable) and has
/// at most 4 GiB - 1 bytes. Both may be empty and contain any bytes. Keys are ordered bytewise.
///
/// All functions may be called from any thread. They do not throw: if memory runs out they return
/// ResourceExhausted. Only NewIterator throws std::bad_alloc, if there is no memory even for an
/// iterator with an error. An exception of a function of the user changes nothing and reaches the
/// caller. An absent keyspace is NotFound.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  virtual Capabilities capabilities() const noexcept = 0;

  // Reads.

  /// The key's value, or nothing if the key is absent. An error means that the key could not be
  /// read.
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options = {}) const {
    return DoGet(key, options);
  }
  /// Like Get, with the record's version and expiry.
  Result<std::optional<Entry>> GetEntry(std::string_view key,
                                        const ReadOptions& options = {}) const {
    return DoGetEntry(key, options);
  }
  /// Whether the key is present. No value is copied. A value on disk may have to be read.
  Result<bool> Contains(std::string_view key, const ReadOptions& options = {}) const {
    return DoContains(key, options);
  }
  /// Looks up many keys at one moment. `results[i]` is the answer for `keys[i]`, with its own
  /// error. The returned Status is about the arguments only: InvalidArgument if the spans differ in
  /// length.
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options = {}) const;
  /// Like MultiGet, for keys of several keyspaces. `options.keyspace` is ignored.
  Status MultiGet(std::span<const KeyspaceKey> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options = {}) const;
  /// Never null: errors are in the iterator's status().
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options = {}) const {
    return DoNewIterator(options);
  }
  /// The current state, in O(1).
  Result<Snapshot> GetSnapshot() const { return DoGetSnapshot(); }

  // Writes. A Commit means that the write is visible, and as durable as requested. An error means
  // that nothing has changed, unless the message says that only durability is missing.

  /// Sets one key.
  Result<Commit> Put(std::string_view key, std::string_view value,
                     const WriteOptions& options = {}) {
    return DoPut(key, value, options);
  }
  /// Sets the key if it is absent. Nothing: the key was present and stays.
  Result<std::optional<Commit>> PutIfAbsent(std::string_view key, std::string_view value,
                                            const WriteOptions& options = {}) {
    return DoPutIfAbsent(key, value, options);
  }
  /// Removes one key. It may be absent.
  Result<Commit> Delete(std::string_view key, const WriteOptions& options = {}) {
    return DoDelete(key, options);
  }
  /// Removes all keys in [begin, end).
  Result<Commit> DeleteRange(std::string_view begin, std::string_view end,
                             const WriteOptions& options = {}) {
    return DoDeleteRange(begin, end, options);
  }
  /// Combines `operand` with the key's value without reading it (WriteBatch::Merge). EncodeCounter
  /// makes the operand of a number.
  Result<Commit> Merge(std::string_view key, MergeOperator op, std::string_view operand,
                       const WriteOptions& options = {}) {
    return DoMerge(key, op, operand, options);
  }
  /// Applies a batch atomically if its conditions hold. Aborted: a condition does not hold; the
  /// message names key and keyspace.
  Result<Commit> Write(const WriteBatch& batch, const WriteOptions& options = {}) {
    return DoWrite(batch, options);
  }
  /// Reads, computes and writes one key in one atomic step. `fn` runs outside all locks, and runs
  /// again if another writer changed the key meanwhile.
  ///
  ///     store->Update("visits", [](basalt::EntryUpdate& entry) {
  ///       entry.Set(NextOf(entry.value()));
  ///       return basalt::Status();
  ///     });
  Result<Commit> Update(std::string_view key, const UpdateFunction& fn,
                        const WriteOptions& options = {}) {
    return DoUpdate(key, fn, options);
  }
  /// Begins a transaction (basalt/transaction.h). It takes effect when it commits.
  Result<Transaction> Begin(const TransactionOptions& options = {});

  // Durability.

  /// Makes every write acknowledged before the call survive a power cut.
  virtual Status Sync() = 0;
  /// Returns when the log record `lsn` and all earlier ones survive a power cut. Syncs the log if
  /// no other thread does. InvalidArgument: there is no such record yet.
  virtual Status WaitDurable(uint64_t lsn) = 0;

  // Keyspaces.

  /// AlreadyExists: the name is taken. Names are 1 to 255 bytes.
  Result<KeyspaceId> CreateKeyspace(std::string_view name, const KeyspaceOptions& options = {}) {
    return DoCreateKeyspace(name, options);
  }
  /// NotFound: there is no keyspace of this name.
  virtual Result<KeyspaceId> OpenKeyspace(std::string_view name) const = 0;
  /// Opens the keyspace, or creates it with `options` if it is absent.
  Result<KeyspaceId> OpenOrCreateKeyspace(std::string_view name,
                                          const KeyspaceOptions& options = {});
  /// All keyspaces by id, the default one first.
  virtual Result<std::vector<KeyspaceInfo>> ListKeyspaces() const = 0;
  /// Removes a keyspace with all its records. Later reads and writes of it return NotFound; open
  /// iterators keep what they see. A DB frees the keyspace's own tables at once. Compaction frees
  /// the space in tables that it shares with other keyspaces. InvalidArgument: it is the default
  /// keyspace.
  virtual Status DropKeyspace(KeyspaceId keyspace) = 0;

  // Changes (basalt/changes.h).

  /// Calls `listener` with every batch that is committed from now on.
  Result<Subscription> AddListener(CommitListener listener) {
    return DoAddListener(std::move(listener));
  }
  /// Calls `fn` with every change of a key, or of keys with a prefix, from now on.
  Result<Subscription> Watch(const WatchOptions& options, WatchFunction fn);
  /// Reads committed batches from the log, from record `from_lsn` on; the first record is 1.
  /// OutOfRange: the log no longer has the record; or the log ends before `from_lsn` - 1, because a
  /// power cut took records that were not synced.
  virtual Result<std::unique_ptr<ChangeReader>> Changes(uint64_t from_lsn) const;

 protected:
  Store() = default;

 private:
  virtual Result<MaybeValue> DoGet(std::string_view key, const ReadOptions& options) const = 0;
  virtual Result<std::optional<Entry>> DoGetEntry(std::string_view key,
                                                  const ReadOptions& options) const = 0;
  virtual Result<bool> DoContains(std::string_view key, const ReadOptions& options) const = 0;
  virtual Status DoMultiGet(std::span<const std::string_view> keys,
                            std::span<Result<MaybeValue>> results,
                            const ReadOptions& options) const = 0;
  virtual Status DoMultiGetOfKeyspaces(std::span<const KeyspaceKey> keys,
                                       std::span<Result<MaybeValue>> results,
                                       const ReadOptions& options) const = 0;
  virtual std::unique_ptr<Iterator> DoNewIterator(const ReadOptions& options) const = 0;
  virtual Result<Snapshot> DoGetSnapshot() const = 0;

  virtual Result<Commit> DoPut(std::string_view key, std::string_view value,
                               const WriteOptions& options) = 0;
  virtual Result<std::optional<Commit>> DoPutIfAbsent(std::string_view key, std::string_view value,
                                                      const WriteOptions& options) = 0;
  virtual Result<Commit> DoDelete(std::string_view key, const WriteOptions& options) = 0;
  virtual Result<Commit> DoDeleteRange(std::string_view begin, std::string_view end,
                                       const WriteOptions& options) = 0;
  virtual Result<Commit> DoMerge(std::string_view key, MergeOperator op, std::string_view operand,
                                 const WriteOptions& options) = 0;
  virtual Result<Commit> DoWrite(const WriteBatch& batch, const WriteOptions& options) = 0;
  virtual Result<Commit> DoUpdate(std::string_view key, const UpdateFunction& fn,
                                  const WriteOptions& options) = 0;
  virtual Result<Transaction> DoBegin(const TransactionOptions& options) = 0;

  virtual Result<KeyspaceId> DoCreateKeyspace(std::string_view name,
                                              const KeyspaceOptions& options) = 0;
  virtual Result<Subscription> DoAddListener(CommitListener listener);
};

}  // namespace basalt
