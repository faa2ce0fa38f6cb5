#include "basalt/transaction.h"

#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

Status CheckTransaction(const basalt_transaction* transaction) {
  BASALT_C_REQUIRE(transaction != nullptr, "transaction");
  return transaction->origin.IsInherited() ? Inherited() : Status();
}

/// Ok, and the options of a read in a transaction.
Status PrepareTransactionRead(const basalt_transaction* transaction, const void* key,
                              size_t key_size, const basalt_read_options* options,
                              ReadOptions* to) {
  BASALT_C_RETURN_IF_ERROR(CheckTransaction(transaction));
  BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
  return options == nullptr ? Status() : ToReadOptions(*options, to);
}

Status PrepareTransactionWrite(const basalt_transaction* transaction, const void* key,
                               size_t key_size, const void* value, size_t value_size,
                               const basalt_write_options* options, WriteOptions* to) {
  BASALT_C_RETURN_IF_ERROR(CheckTransaction(transaction));
  BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
  BASALT_C_REQUIRE(IsBytes(value, value_size), "value");
  return options == nullptr ? Status() : ToWriteOptions(*options, to);
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_begin(basalt_store* store, const basalt_transaction_options* options,
                 basalt_transaction** transaction, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(transaction != nullptr, "transaction");
    *transaction = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    TransactionOptions begin;
    BASALT_C_RETURN_IF_ERROR(ToTransactionOptions(options, &begin));
    Result<Transaction> begun = store->store->Begin(begin);
    if (!begun) return begun.error();
    *transaction = new basalt_transaction{*std::move(begun)};
    return {};
  });
}

void basalt_transaction_free(basalt_transaction* transaction) { delete transaction; }

int basalt_transaction_get(basalt_transaction* transaction, const void* key, size_t key_size,
                           const basalt_read_options* options, basalt_value* value,
                           basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(value != nullptr, "value");
    GiveNothing(value);
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareTransactionRead(transaction, key, key_size, options, &read));
    Result<MaybeValue> found = transaction->transaction.Get(ViewOf(key, key_size), read);
    if (!found) return found.error();
    Give(std::move(*found), value);
    return {};
  });
}

int basalt_transaction_contains(basalt_transaction* transaction, const void* key, size_t key_size,
                                const basalt_read_options* options, bool* found,
                                basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(found != nullptr, "found");
    *found = false;
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareTransactionRead(transaction, key, key_size, options, &read));
    Result<bool> contains = transaction->transaction.Contains(ViewOf(key, key_size), read);
    if (!contains) return contains.error();
    *found = *contains;
    return {};
  });
}

int basalt_transaction_iterator(basalt_transaction* transaction, const basalt_read_options* options,
                                basalt_iterator** iterator, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(iterator != nullptr, "iterator");
    *iterator = nullptr;
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareTransactionRead(transaction, nullptr, 0, options, &read));
    std::unique_ptr<Iterator> made = transaction->transaction.NewIterator(read);
    BASALT_C_RETURN_IF_ERROR(made->status());
    *iterator = new basalt_iterator{std::move(made)};
    return {};
  });
}

int basalt_transaction_put(basalt_transaction* transaction, const void* key, size_t key_size,
                           const void* value, size_t value_size,
                           const basalt_write_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareTransactionWrite(transaction, key, key_size, value, value_size, options, &write));
    return transaction->transaction.Put(ViewOf(key, key_size), ViewOf(value, value_size), write);
  });
}

int basalt_transaction_put_if_absent(basalt_transaction* transaction, const void* key,
                                     size_t key_size, const void* value, size_t value_size,
                                     const basalt_write_options* options, bool* created,
                                     basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (created != nullptr) *created = false;
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareTransactionWrite(transaction, key, key_size, value, value_size, options, &write));
    Result<bool> put = transaction->transaction.PutIfAbsent(ViewOf(key, key_size),
                                                            ViewOf(value, value_size), write);
    if (!put) return put.error();
    if (created != nullptr) *created = *put;
    return {};
  });
}

int basalt_transaction_delete(basalt_transaction* transaction, const void* key, size_t key_size,
                              const basalt_write_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareTransactionWrite(transaction, key, key_size, nullptr, 0, options, &write));
    return transaction->transaction.Delete(ViewOf(key, key_size), write);
  });
}

int basalt_transaction_delete_range(basalt_transaction* transaction, const void* begin,
                                    size_t begin_size, const void* end, size_t end_size,
                                    const basalt_write_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareTransactionWrite(transaction, begin, begin_size, end, end_size, options, &write));
    return transaction->transaction.DeleteRange(ViewOf(begin, begin_size), ViewOf(end, end_size),
                                                write);
  });
}

int basalt_transaction_merge(basalt_transaction* transaction, const void* key, size_t key_size,
                             int merge_operator, const void* operand, size_t operand_size,
                             const basalt_write_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    WriteOptions write;
    MergeOperator op = MergeOperator::kAdd;
    BASALT_C_RETURN_IF_ERROR(PrepareTransactionWrite(transaction, key, key_size, operand,
                                                     operand_size, options, &write));
    BASALT_C_RETURN_IF_ERROR(ToMergeOperator(merge_operator, &op));
    return transaction->transaction.Merge(ViewOf(key, key_size), op, ViewOf(operand, operand_size),
                                          write);
  });
}

int basalt_transaction_write(basalt_transaction* transaction, const basalt_batch* batch,
                             basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckTransaction(transaction));
    BASALT_C_REQUIRE(batch != nullptr, "batch");
    return transaction->transaction.Write(batch->batch);
  });
}

int basalt_transaction_savepoint(basalt_transaction* transaction, uint64_t* savepoint,
                                 basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(savepoint != nullptr, "savepoint");
    *savepoint = 0;
    BASALT_C_RETURN_IF_ERROR(CheckTransaction(transaction));
    *savepoint = static_cast<uint64_t>(transaction->transaction.SetSavepoint());
    return {};
  });
}

int basalt_transaction_rollback_to(basalt_transaction* transaction, uint64_t savepoint,
                                   basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckTransaction(transaction));
    return transaction->transaction.RollbackTo(static_cast<Transaction::Savepoint>(savepoint));
  });
}

int basalt_transaction_commit(basalt_transaction* transaction, const basalt_write_options* options,
                              basalt_commit* commit, basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareTransactionWrite(transaction, nullptr, 0, nullptr, 0, options, &write));
    return GiveCommit(transaction->transaction.Commit(write), commit);
  });
}

int basalt_transaction_rollback(basalt_transaction* transaction, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckTransaction(transaction));
    transaction->transaction.Rollback();
    return {};
  });
}
