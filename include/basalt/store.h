#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "basalt/snapshot.h"
#include "basalt/status.h"
#include "basalt/value.h"
#include "basalt/write_batch.h"

namespace basalt {

namespace internal {
/// InvalidArgument, of a MultiGet.
Status DifferInLength(std::span<const std::string_view> keys,
                      std::span<const Result<MaybeValue>> results);
}  // namespace internal

/// What `Update` calls: gets the present value, or nothing when the key is absent, and returns the
/// new value, nothing (delete the key), or an error (all stays as it was, and Update returns it).
using UpdateFunction =
    std::function<Result<std::optional<std::string>>(std::optional<std::string_view>)>;

/// An ordered map from bytes to bytes: the one interface that everything above a store sees. Keys
/// have up to 65,535 bytes. The largest value depends on the store's memory budget (see DB,
/// MemTable) and has at most 4 GiB - 1 bytes. Both may be empty and hold any bytes; order is
/// bytewise.
///
/// All functions may be called from any thread. No exception of ours leaves them: running out of
/// memory is ResourceExhausted, but for a NewIterator without room even for one that says so
/// (std::bad_alloc). What a user's function throws changes nothing and reaches the caller.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// The key's value, or nothing when it is absent. Errors are for what could not be read.
  Result<MaybeValue> Get(std::string_view key, const ReadOptions& options = {}) const {
    return DoGet(key, options);
  }

  /// Many lookups at once, all of one moment; `results[i]` answers `keys[i]`, each with its own
  /// error. The Status is only for the arguments: InvalidArgument when the spans differ in length.
  Status MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                  const ReadOptions& options = {}) const {
    if (keys.size() != results.size()) return internal::DifferInLength(keys, results);
    return DoMultiGet(keys, results, options);
  }

  /// Applies a batch atomically. Ok: it is visible and as durable as asked.
  Status Write(const WriteBatch& batch, const WriteOptions& options = {}) {
    return DoWrite(batch, options);
  }

  /// Reads, computes and writes one key as one atomic step. `fn` runs outside all locks, and again
  /// when another writer changed the key meanwhile.
  Status Update(std::string_view key, const UpdateFunction& fn,
                KeyspaceId keyspace = KeyspaceId::kDefault) {
    return DoUpdate(key, fn, keyspace);
  }

  /// Never null: what went wrong is in the iterator's status().
  std::unique_ptr<Iterator> NewIterator(const ScanOptions& options = {}) const {
    return DoNewIterator(options);
  }

  /// The present moment, O(1).
  Result<Snapshot> GetSnapshot() const { return DoGetSnapshot(); }

 protected:
  Store() = default;

 private:
  virtual Result<MaybeValue> DoGet(std::string_view key, const ReadOptions& options) const = 0;
  virtual Status DoMultiGet(std::span<const std::string_view> keys,
                            std::span<Result<MaybeValue>> results,
                            const ReadOptions& options) const = 0;
  virtual Status DoWrite(const WriteBatch& batch, const WriteOptions& options) = 0;
  virtual Status DoUpdate(std::string_view key, const UpdateFunction& fn, KeyspaceId keyspace) = 0;
  virtual std::unique_ptr<Iterator> DoNewIterator(const ScanOptions& options) const = 0;
  virtual Result<Snapshot> DoGetSnapshot() const = 0;
};

}  // namespace basalt
