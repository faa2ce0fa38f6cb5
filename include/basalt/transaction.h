#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/value.h"
#include "basalt/write_batch.h"

// Transactions over several keys of a store. Read Transact first, then Transaction.
// docs/transactions.md explains them.

namespace basalt {

namespace transaction {
class State;
struct TransactionAccess;
}  // namespace transaction

/// Reads and writes that take effect together or not at all, as if no other write ran at the same
/// time (serializable).
///
///     basalt::Transaction tx = store->Begin().value();
///     auto from = tx.Get("account/1").value();
///     ...
///     if (basalt::Status s = tx.Put("account/1", less); !s.ok()) return s;
///     auto committed = tx.Commit();        // Aborted: a key that was read has changed
///
/// Transact (below) runs a function again if its commit is Aborted. Use it unless you retry
/// yourself.
///
/// Nothing is locked. Reads see one snapshot, taken at the first read, and the transaction's own
/// writes. The commit checks whether any key that was read has changed since: a key, an absent key,
/// or a key in a range that an iterator has passed. Every kind of write counts: puts, batches,
/// range deletes, merges, expiry, and a dropped keyspace. A read with ReadOptions::track = false is
/// not checked. The order of the store's commits is then a serial order.
///
/// Move-only. Used by one thread at a time. It keeps the store's internal state alive. Destruction
/// rolls back. While it lives, the versions that its snapshot sees are kept.
///
/// Cost: a read costs the store's read and a copy of its key; a write costs a copy of its record. A
/// commit costs lookups in memory for the keys that were read, and the write of one batch. A commit
/// without tracked reads costs the same as a batch.
class Transaction {
 public:
  /// A point to which a transaction can be rolled back.
  enum class Savepoint : uint64_t {};

  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  // Reads, as in Store. FailedPrecondition: the transaction has ended.
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options = {});
  /// `version` is 0 for records that this transaction has written.
  Result<std::optional<Entry>> GetEntry(std::string_view key, const ReadOptions& options = {});
  Result<bool> Contains(std::string_view key, const ReadOptions& options = {});
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options = {});
  /// Sees the transaction's writes up to this call, not later ones. Valid until the transaction
  /// ends. The range from its first to its last position is tracked, gaps included.
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options = {});

  // Writes, as in Store. They are kept in memory until the commit. An error changes nothing.
  // WriteOptions::durability and may_wait are arguments of Commit and must be unset here.
  Status Put(std::string_view key, std::string_view value, const WriteOptions& options = {});
  /// False: the key was present and stays.
  Result<bool> PutIfAbsent(std::string_view key, std::string_view value,
                           const WriteOptions& options = {});
  Status Delete(std::string_view key, const WriteOptions& options = {});
  Status DeleteRange(std::string_view begin, std::string_view end,
                     const WriteOptions& options = {});
  Status Merge(std::string_view key, MergeOperator op, std::string_view operand,
               const WriteOptions& options = {});
  Status Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options = {});
  /// Adds the records of a batch, and its conditions, which the commit checks.
  Status Write(const WriteBatch& batch);

  /// Sets a savepoint at the current state.
  Savepoint SetSavepoint();
  /// Undoes all writes since the savepoint. Reads stay tracked. Later savepoints are removed.
  /// InvalidArgument: the savepoint is not of this transaction, or was removed.
  Status RollbackTo(Savepoint savepoint);

  /// Applies the writes if no key that was read has changed. The transaction has ended afterwards,
  /// with either result. Aborted: a conflict; the message names key and keyspace. Of `options`,
  /// durability and may_wait are used.
  Result<basalt::Commit> Commit(const WriteOptions& options = {});
  /// Ends the transaction without a change.
  void Rollback() noexcept;

  /// Whether it has neither been committed nor rolled back.
  bool is_open() const noexcept { return state_ != nullptr; }
  /// The number of records that a commit would write.
  size_t count() const noexcept;
  /// Bytes of its writes and of its record of reads.
  uint64_t memory_bytes() const noexcept;

 private:
  friend struct transaction::TransactionAccess;
  explicit Transaction(std::unique_ptr<transaction::State> state) noexcept;

  std::unique_ptr<transaction::State> state_;
};

/// Options of Transact.
struct TransactOptions {
  /// The number of attempts. If the last is Aborted, Transact returns that.
  uint32_t attempts = 32;
  /// The longest pause before the second attempt. It doubles with each attempt, up to
  /// `backoff_max`. The pauses are random between zero and that.
  std::chrono::microseconds backoff{50};
  std::chrono::microseconds backoff_max{std::chrono::milliseconds(20)};
  WriteOptions commit{};
  TransactionOptions transaction{};
};

/// Begins a transaction, calls `fn` and commits, and repeats this while the commit is Aborted.
/// Another error of `fn` rolls back and is returned. `fn` may be called several times and must not
/// commit.
Result<Commit> Transact(Store& store, const std::function<Status(Transaction& tx)>& fn,
                        const TransactOptions& options = {});

}  // namespace basalt
