#pragma once

// What a store, its keyspaces and what is kept in them have in common.
//
// A database and its keyspaces are one State and a keyspace's number each. A State is closed by its
// flag and by DB::Close. The store itself lives as long as an object of Python refers to its State,
// so that a thread inside a call without the GIL never loses it. Collections, graphs and corpora
// hold the State too, and are destroyed before the store that they refer to.

#include <map>
#include <memory>
#include <string>

#include "basalt/db.h"
#include "basalt/memtable.h"
#include "basalt/transaction.h"
#include "basalt/vector_index.h"
#include "convert.h"

namespace basalt::python {

struct State {
  std::unique_ptr<Store> store;
  DB* db = nullptr;
  MemTable* memtable = nullptr;
  bool waits = false;  // Each write waits for a disk.
  bool closed = false;
  uint64_t fork_count = ForkCount();
  /// By name. They stay open until the database is closed, because opening one reads all vectors.
  std::map<std::string, std::shared_ptr<VectorIndex>> collections{};

  Store& Use() {
    CheckSameProcess(fork_count);
    if (closed) [[unlikely]] {
      Raise(Status(StatusCode::kFailedPrecondition, "the store is closed", SubCode::kClosed));
    }
    return *store;
  }
};

/// A store, or one of its keyspaces.
struct PyStore {
  std::shared_ptr<State> state;
  KeyspaceId keyspace = KeyspaceId::kDefault;
  std::string name{};

  Store& store() const { return state->Use(); }
  ReadOptions options() const { return {.keyspace = keyspace}; }
};
struct PyDb : PyStore {};

/// A transaction, or a view of it on another keyspace.
struct PyTransaction {
  struct Shared {
    std::shared_ptr<State> state;
    Transaction transaction;
    bool in_use = false;
  };
  std::shared_ptr<Shared> shared;
  KeyspaceId keyspace = KeyspaceId::kDefault;

  Transaction& store() const {
    shared->state->Use();
    if (shared->in_use) throw nb::value_error("the transaction is in use by another thread");
    return shared->transaction;
  }
  ReadOptions options() const { return {.keyspace = keyspace}; }
};

/// Calls `work()` without the GIL. Gives its value, or raises its error.
template <class Work>
auto WithoutGil(const Work& work) {
  auto result = [&] {
    const nb::gil_scoped_release release;
    return work();
  }();
  return Check(std::move(result));
}

/// A change that commits on its own, or is a part of a transaction: calls `work()` or
/// `work(transaction)`, without the GIL.
template <class Work>
auto Change(State& state, PyTransaction::Shared* tx, const Work& work) {
  state.Use();
  if (tx == nullptr) return WithoutGil(work);
  const InUse in_use(&tx->in_use, "the transaction");
  return WithoutGil([&] { return work(tx->transaction); });
}

/// The transaction of `tx`, for something that is kept in the store of `state`.
inline std::shared_ptr<PyTransaction::Shared> TransactionOn(const std::shared_ptr<State>& state,
                                                            const PyTransaction& tx) {
  if (tx.shared->state != state) throw nb::value_error("it is kept in another store");
  return tx.shared;
}

}  // namespace basalt::python
