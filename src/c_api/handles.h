#pragma once

// What the opaque handles of the C API hold. Each owns one object of the C++ API, which in turn
// keeps alive what it needs, so that handles may be freed in any order.
//
// Every handle whose object belongs to one process remembers the fork count in which it was
// made: one relaxed load a call, and the answer in a child is Forked for all of them alike.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "basalt/c.h"
#include "basalt/cache.h"
#include "basalt/changes.h"
#include "basalt/db.h"
#include "basalt/graph.h"
#include "basalt/iterator.h"
#include "basalt/memtable.h"
#include "basalt/retrieve.h"
#include "basalt/shared_map.h"
#include "basalt/snapshot.h"
#include "basalt/store.h"
#include "basalt/transaction.h"
#include "basalt/write_batch.h"
#include "base/fork_count.h"

namespace basalt::c_api {

/// The process in which a handle was made.
class Origin {
 public:
  bool IsInherited() const noexcept { return fork_count_ != base::ForkCount(); }

 private:
  uint64_t fork_count_ = base::ForkCount();
};

/// FailedPrecondition: the handle is the parent process's.
Status Inherited();
/// FailedPrecondition: the handle was closed.
Status Closed();

}  // namespace basalt::c_api

struct basalt_store {
  std::shared_ptr<basalt::Store> store;  // shared with graphs and corpora, which need it
  basalt::DB* db = nullptr;              // `store`, where it is one
  basalt::MemTable* memtable = nullptr;  // the same
  // Of a memtable; a database knows it itself.
  std::shared_ptr<std::atomic<bool>> closed = std::make_shared<std::atomic<bool>>(false);
  basalt::c_api::Origin origin{};
};

struct basalt_snapshot {
  basalt::Snapshot snapshot;
};

struct basalt_iterator {
  std::unique_ptr<basalt::Iterator> iterator;
  basalt::Status failure{};  // of a move that was thrown out of the iterator
  basalt::c_api::Origin origin{};
};

struct basalt_batch {
  basalt::WriteBatch batch;
};

struct basalt_transaction {
  basalt::Transaction transaction;
  basalt::c_api::Origin origin{};
};

struct basalt_change_reader {
  std::unique_ptr<basalt::ChangeReader> reader;
  std::vector<basalt_change> changes{};  // of the present batch
  basalt::c_api::Origin origin{};
};

namespace basalt::c_api {

/// What a layer over a store holds of the store's handle, which may be freed before.
struct StoreShare {
  explicit StoreShare(const basalt_store& handle) : store(handle.store), closed(handle.closed) {}

  std::shared_ptr<basalt::Store> store;
  std::shared_ptr<std::atomic<bool>> closed;
  Origin origin{};
};

}  // namespace basalt::c_api

struct basalt_graph {
  basalt::c_api::StoreShare share;
  std::unique_ptr<basalt::Graph> graph;
};

struct basalt_corpus {
  basalt::c_api::StoreShare share;
  std::unique_ptr<basalt::Corpus> corpus;
};

struct basalt_cache {
  std::unique_ptr<basalt::Cache> cache;
  basalt::c_api::Origin origin{};
};

struct basalt_map {
  std::unique_ptr<basalt::SharedMap> map;
};

struct basalt_map_reader {
  // Views go before the reader that they pin.
  basalt::SharedMap::Reader reader;
  std::vector<basalt::Result<basalt::SharedMap::MaybeView>> views{};
};

struct basalt_map_builder {
  std::unique_ptr<basalt::SharedMapBuilder> builder;
};

namespace basalt::c_api {

/// Ok, or why a call with this handle cannot be.
inline Status CheckStore(const basalt_store* store) {
  if (store == nullptr) [[unlikely]]
    return Status(StatusCode::kInvalidArgument, "store is NULL: open one");
  if (store->origin.IsInherited()) [[unlikely]]
    return Inherited();
  if (store->closed->load(std::memory_order_relaxed)) [[unlikely]]
    return Closed();
  return {};
}

inline Status CheckShare(const StoreShare& share) {
  if (share.origin.IsInherited()) [[unlikely]]
    return Inherited();
  if (share.closed->load(std::memory_order_relaxed)) [[unlikely]]
    return Closed();
  return {};
}

/// Ok, or why a call with this transaction, which may be NULL, cannot be.
inline Status CheckOptional(const basalt_transaction* transaction) {
  return transaction != nullptr && transaction->origin.IsInherited() ? Inherited() : Status();
}

}  // namespace basalt::c_api
