#pragma once

// src/transaction: the reads and writes of an open transaction, for any store. Read State first,
// then Backend (backend.h), which a store implements.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "basalt/snapshot.h"
#include "basalt/transaction.h"
#include "base/check.h"
#include "transaction/backend.h"
#include "transaction/own_iterator.h"
#include "transaction/own_writes.h"
#include "transaction/read_set.h"

// The state of a Transaction: the store, the snapshot that it reads from (taken at the first read),
// its reads and its writes. The functions are those of Transaction. If memory runs out, they throw
// std::bad_alloc.

namespace basalt::transaction {

class State {
 public:
  State(std::shared_ptr<Backend> backend, const TransactionOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options);
  Result<std::optional<Entry>> GetEntry(std::string_view key, const ReadOptions& options);
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options);
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options);

  /// `add` puts records or conditions into the batch. They are taken back where the batch refuses
  /// them, or memory_limit does.
  template <class Add>
  Status AddToBatch(const Add& add) {
    one_.Clear();
    add(&one_);
    BASALT_RETURN_IF_ERROR(one_.status());
    return Append(one_);
  }
  /// Adds records and conditions of another batch.
  Status Append(const WriteBatch& batch);
  Status Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options);

  Transaction::Savepoint SetSavepoint();
  Status RollbackTo(Transaction::Savepoint savepoint);
  Result<basalt::Commit> Commit(const WriteOptions& options);

  // For a server whose client has made the reads: they, and the snapshot that they come from.
  /// Before any other call.
  Status ReadAt(Snapshot snapshot);
  ReadSet* reads() noexcept { return &reads_; }
  std::chrono::milliseconds DefaultTtl(KeyspaceId keyspace) const {
    return backend_->DefaultTtl(keyspace);
  }

  size_t count() const noexcept { return own_.batch().count(); }
  uint64_t memory_bytes() const noexcept { return own_.memory_bytes() + reads_.memory_bytes(); }

 private:
  /// The options of a read of the store: those of the caller at the snapshot.
  Result<ReadOptions> AtSnapshot(const ReadOptions& options);
  uint64_t now_ms() const noexcept;
  /// What the transaction's writes make of a key; null: nothing. After AtSnapshot.
  const OwnState* OwnOf(std::string_view key, KeyspaceId keyspace);
  /// The same over what the store has, `stored`.
  Result<std::optional<Entry>> Combine(const OwnState& own, std::optional<Entry> stored) const;
  OwnIterator::Overlay OverlayOf(const ReadOptions& options);

  const std::shared_ptr<Backend> backend_;
  const uint64_t memory_limit_;
  std::optional<Snapshot> snapshot_;
  ReadSet reads_;
  OwnWrites own_;
  WriteBatch one_;  // what AddToBatch fills
  const std::shared_ptr<LiveIterators> iterators_;
  struct Point {
    uint64_t number;
    WriteBatch::Mark mark;
  };
  std::vector<Point> savepoints_;
  uint64_t savepoints_made_ = 0;
};

/// What stores and the server may do with a Transaction, and users may not.
struct TransactionAccess {
  static Transaction Make(std::unique_ptr<State> state) noexcept {
    return Transaction(std::move(state));
  }
  /// Null: it has ended.
  static State* StateOf(Transaction& transaction) noexcept { return transaction.state_.get(); }
};

}  // namespace basalt::transaction
