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

namespace basalt {

namespace transaction {
class State;
}  // namespace transaction

/// Reads and writes that take effect together, or not at all, as if no other write ran beside them
/// (serializable).
///
///     basalt::Transaction tx = store->Begin().value();
///     auto from = tx.Get("account/1").value();
///     ...
///     if (basalt::Status s = tx.Put("account/1", less); !s.ok()) return s;
///     auto committed = tx.Commit();        // Aborted: something that was read has changed
///
/// Transact (below) runs a function again when its commit is Aborted; use it unless you retry
/// yourself.
///
/// Nothing is locked. Reads come from one snapshot, taken at the first read, and from the
/// transaction's own writes. The commit looks whether anything that was read has changed since: a
/// key, an absent key, or the keys in a range that an iterator has passed. Any write counts: puts,
/// batches, range deletes, merges, expiry, and a dropped keyspace. A read with
/// ReadOptions::track = false is not looked at. The store's sequence of commits is then a serial
/// order.
///
/// Move-only. One thread at a time. It keeps the store's core alive. Destruction rolls back. While
/// it lives, versions that its snapshot can see are kept.
///
/// Cost: a read as the store's, and a copy of its key; a write a copy of its record; a commit
/// in-memory looks at what was read, and the write of one batch. A commit without tracked reads is
/// that of a batch.
class Transaction {
 public:
  /// A point in a transaction that it can go back to.
  enum class Savepoint : uint64_t {};

  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  // Reads, as Store has them. FailedPrecondition: the transaction has ended.
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options = {});
  /// `version` is 0 for what this transaction has written itself.
  Result<std::optional<Entry>> GetEntry(std::string_view key, const ReadOptions& options = {});
  Result<bool> Contains(std::string_view key, const ReadOptions& options = {});
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options = {});
  /// Sees the transaction's writes up to this call, and not later ones. May be used until the
  /// transaction ends. What it has passed is tracked: from where it was positioned to where it has
  /// come, gaps included.
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options = {});

  // Writes, as Store has them. They are kept in memory until the commit. An error changes nothing.
  // WriteOptions::durability and may_wait belong to Commit and must be unset here.
  Status Put(std::string_view key, std::string_view value, const WriteOptions& options = {});
  /// False: it was there, and stays.
  Result<bool> PutIfAbsent(std::string_view key, std::string_view value,
                           const WriteOptions& options = {});
  Status Delete(std::string_view key, const WriteOptions& options = {});
  Status DeleteRange(std::string_view begin, std::string_view end,
                     const WriteOptions& options = {});
  Status Merge(std::string_view key, MergeOperator op, std::string_view operand,
               const WriteOptions& options = {});
  Status Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options = {});
  /// Adds a batch's records, and its conditions, which the commit looks at.
  Status Write(const WriteBatch& batch);

  /// Marks the present point.
  Savepoint SetSavepoint();
  /// Takes back all writes since. Reads stay tracked. Later savepoints are gone. InvalidArgument:
  /// it is not one of this transaction's, or gone.
  Status RollbackTo(Savepoint savepoint);

  /// Applies the writes, if nothing that was read has changed. The transaction has ended then,
  /// with either answer. Aborted: a conflict; the message names key and keyspace. `options`:
  /// durability and may_wait.
  Result<basalt::Commit> Commit(const WriteOptions& options = {});
  /// Ends it without a change.
  void Rollback() noexcept;

  /// Whether it has neither been committed nor rolled back.
  bool is_open() const noexcept { return state_ != nullptr; }
  /// Records that it would write.
  size_t count() const noexcept;
  /// Its own writes and what it remembers of its reads, in bytes.
  uint64_t memory_bytes() const noexcept;

  /// For store implementations.
  explicit Transaction(std::unique_ptr<transaction::State> state) noexcept;

 private:
  std::unique_ptr<transaction::State> state_;
};

/// How Transact retries.
struct TransactOptions {
  /// Tries in all. The last one's Aborted is the answer.
  uint32_t attempts = 32;
  /// The longest pause before the second try; it doubles with each, up to `backoff_max`. Pauses are
  /// random between nothing and that.
  std::chrono::microseconds backoff{50};
  std::chrono::microseconds backoff_max{std::chrono::milliseconds(20)};
  WriteOptions commit{};
  TransactionOptions transaction{};
};

/// Begins a transaction, calls `fn` and commits; again while that is Aborted. An error of `fn`
/// other than Aborted rolls back and is the answer. `fn` may be called several times and must not
/// commit.
Result<Commit> Transact(Store& store, const std::function<Status(Transaction& tx)>& fn,
                        const TransactOptions& options = {});

}  // namespace basalt
