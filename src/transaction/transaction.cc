#include "basalt/transaction.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "transaction/state.h"

namespace basalt {
namespace {

Status Ended() noexcept {
  return Status(StatusCode::kFailedPrecondition, "the transaction has ended: begin another one",
                SubCode::kClosed);
}

Status CheckWrite(const WriteOptions& options) {
  if (!options.durability && options.may_wait) return {};
  return Status(StatusCode::kInvalidArgument,
                "a write of a transaction: WriteOptions::durability and may_wait belong to Commit");
}

RecordOptions RecordOptionsOf(const WriteOptions& options) {
  return {.keyspace = options.keyspace, .ttl = options.ttl, .expiry = options.expiry};
}

}  // namespace

Transaction::Transaction(std::unique_ptr<transaction::State> state) noexcept
    : state_(std::move(state)) {}
Transaction::Transaction(Transaction&& other) noexcept = default;
Transaction& Transaction::operator=(Transaction&& other) noexcept = default;
Transaction::~Transaction() = default;

// Reads

Result<MaybeValue> Transaction::Get(std::string_view key, const ReadOptions& options) {
  if (!is_open()) return Ended();
  return base::OrOutOfMemory([&] { return state_->Get(key, options); });
}

Result<std::optional<Entry>> Transaction::GetEntry(std::string_view key,
                                                   const ReadOptions& options) {
  if (!is_open()) return Ended();
  return base::OrOutOfMemory([&] { return state_->GetEntry(key, options); });
}

Result<bool> Transaction::Contains(std::string_view key, const ReadOptions& options) {
  BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> entry, GetEntry(key, options));
  return entry.has_value();
}

Status Transaction::MultiGet(std::span<const std::string_view> keys,
                             std::span<Result<MaybeValue>> results, const ReadOptions& options) {
  if (!is_open()) return Ended();
  return base::OrOutOfMemory([&] { return state_->MultiGet(keys, results, options); });
}

std::unique_ptr<Iterator> Transaction::NewIterator(const ReadOptions& options) {
  if (!is_open()) return base::NewErrorIterator(Ended());
  try {
    return state_->NewIterator(options);
  } catch (const std::bad_alloc&) {
    return base::NewErrorIterator(base::OutOfMemory());
  }
}

// Writes

Status Transaction::Put(std::string_view key, std::string_view value, const WriteOptions& options) {
  if (!is_open()) return Ended();
  BASALT_RETURN_IF_ERROR(CheckWrite(options));
  return base::OrOutOfMemory([&] {
    return state_->AddToBatch(
        [&](WriteBatch* batch) { batch->Put(key, value, RecordOptionsOf(options)); });
  });
}

Result<bool> Transaction::PutIfAbsent(std::string_view key, std::string_view value,
                                      const WriteOptions& options) {
  BASALT_ASSIGN_OR_RETURN(const bool is_there, Contains(key, {.keyspace = options.keyspace}));
  if (is_there) return false;
  BASALT_RETURN_IF_ERROR(Put(key, value, options));
  return true;
}

Status Transaction::Delete(std::string_view key, const WriteOptions& options) {
  if (!is_open()) return Ended();
  BASALT_RETURN_IF_ERROR(CheckWrite(options));
  BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
  return base::OrOutOfMemory([&] {
    return state_->AddToBatch([&](WriteBatch* batch) { batch->Delete(key, options.keyspace); });
  });
}

Status Transaction::DeleteRange(std::string_view begin, std::string_view end,
                                const WriteOptions& options) {
  if (!is_open()) return Ended();
  BASALT_RETURN_IF_ERROR(CheckWrite(options));
  BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
  return base::OrOutOfMemory([&] {
    return state_->AddToBatch(
        [&](WriteBatch* batch) { batch->DeleteRange(begin, end, options.keyspace); });
  });
}

Status Transaction::Merge(std::string_view key, MergeOperator op, std::string_view operand,
                          const WriteOptions& options) {
  if (!is_open()) return Ended();
  BASALT_RETURN_IF_ERROR(CheckWrite(options));
  return base::OrOutOfMemory([&] {
    return state_->AddToBatch(
        [&](WriteBatch* batch) { batch->Merge(key, op, operand, RecordOptionsOf(options)); });
  });
}

Status Transaction::Update(std::string_view key, const UpdateFunction& fn,
                           const WriteOptions& options) {
  if (!is_open()) return Ended();
  BASALT_RETURN_IF_ERROR(CheckWrite(options));
  return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
    return base::OrOutOfMemory([&] { return state_->Update(key, guarded, options); });
  });
}

Status Transaction::Write(const WriteBatch& batch) {
  if (!is_open()) return Ended();
  return base::OrOutOfMemory([&] { return state_->Append(batch); });
}

// Savepoints and the end

Transaction::Savepoint Transaction::SetSavepoint() {
  return is_open() ? state_->SetSavepoint() : Savepoint(0);
}

Status Transaction::RollbackTo(Savepoint savepoint) {
  if (!is_open()) return Ended();
  return base::OrOutOfMemory([&] { return state_->RollbackTo(savepoint); });
}

Result<basalt::Commit> Transaction::Commit(const WriteOptions& options) {
  if (!is_open()) return Ended();
  const std::unique_ptr<transaction::State> ending = std::move(state_);
  return base::OrOutOfMemory([&] { return ending->Commit(options); });
}

void Transaction::Rollback() noexcept { state_.reset(); }

size_t Transaction::count() const noexcept { return is_open() ? state_->count() : 0; }
uint64_t Transaction::memory_bytes() const noexcept {
  return is_open() ? state_->memory_bytes() : 0;
}

Result<Transaction> Store::Begin(const TransactionOptions& options) { return DoBegin(options); }

Result<Commit> Transact(Store& store, const std::function<Status(Transaction& tx)>& fn,
                        const TransactOptions& options) {
  std::chrono::microseconds pause = options.backoff;
  for (uint32_t attempt = 1;; ++attempt) {
    BASALT_ASSIGN_OR_RETURN(Transaction tx, store.Begin(options.transaction));
    Status answer = fn(tx);
    if (answer.ok()) {
      Result<Commit> committed = tx.Commit(options.commit);
      if (committed) return committed;
      answer = committed.error();
    }
    if (answer.code() != StatusCode::kAborted || attempt >= options.attempts) return answer;
    base::Random random(base::RandomSeed());
    const auto longest = static_cast<uint64_t>(std::max<int64_t>(pause.count(), 0));
    std::this_thread::sleep_for(
        std::chrono::microseconds(static_cast<int64_t>(random.Between(0, longest))));
    pause = std::min(2 * pause, options.backoff_max);
  }
}

}  // namespace basalt
