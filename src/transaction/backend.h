#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "basalt/changes.h"
#include "basalt/iterator.h"
#include "basalt/options.h"
#include "basalt/snapshot.h"
#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/value.h"
#include "basalt/write_batch.h"
#include "transaction/read_set.h"

namespace basalt::transaction {

/// What a store gives to its transactions. It keeps the store's core alive. Reads as Store's
/// functions; they get the transaction's snapshot. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual Result<Snapshot> GetSnapshot() = 0;
  virtual Result<MaybeValue> Get(std::string_view key, const ReadOptions& options) = 0;
  virtual Result<std::optional<Entry>> GetEntry(std::string_view key,
                                                const ReadOptions& options) = 0;
  virtual Status MultiGet(std::span<const std::string_view> keys,
                          std::span<Result<MaybeValue>> results, const ReadOptions& options) = 0;
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) = 0;
  /// Zero where the keyspace has none or is not there.
  virtual std::chrono::milliseconds DefaultTtl(KeyspaceId keyspace) = 0;

  /// Writes `batch` if nothing in `reads`, which is normalised, was written later than `snapshot`.
  /// Aborted: something was; the message names key and keyspace. Without a snapshot there are no
  /// reads. Conditions of the batch may be added to `reads`.
  virtual Result<Commit> CommitIfUnchanged(ReadSet* reads, const Snapshot* snapshot,
                                           const WriteBatch& batch,
                                           const WriteOptions& options) = 0;

 protected:
  Backend() = default;
};

}  // namespace basalt::transaction
