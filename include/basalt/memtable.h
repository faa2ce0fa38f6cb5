#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/store.h"

// The memtable: the operations of the database in memory, without durability. Read MemTable first;
// its base class Store (store.h) has the reads and writes. docs/memtable.md explains it.

namespace basalt {

namespace memtable {
class StoreCore;
}  // namespace memtable

/// What a write does if the memory budget is used up.
enum class AtBudget : uint8_t {
  kWait,    ///< Waits until compaction has made room. Fails if it cannot.
  kRefuse,  ///< Returns ResourceExhausted at once and starts a compaction.
};

/// Options of a memtable. The defaults need no tuning.
struct MemTableOptions {
  /// Bytes of all generations together: records, index, order, sorted runs. At least 256 KiB. Not
  /// counted are about 15 KiB a generation, and memory that iterators and values hold beyond the
  /// generations. A quarter is reserved for compaction: live keys and values can take about a
  /// third.
  uint64_t memory_budget = uint64_t{256} << 20;
  /// A generation of this size is sealed and a new one takes its place. 0: an eighth of the budget.
  /// At least 64 KiB and 12 KiB a shard, at most half the budget. Above an eighth, less of the
  /// budget can be live.
  uint64_t generation_bytes = 0;
  /// A power of two up to 256. 0: derived from generation_bytes.
  uint32_t shards = 0;
  AtBudget at_budget = AtBudget::kWait;
  /// Whether sealed generations are merged in the background. Merging drops versions and deletes
  /// that no snapshot needs. Without it, generations accumulate until the budget is used up, unless
  /// Compact is called.
  bool compaction = true;
};

/// Statistics of a memtable at one moment. Sizes are in bytes.
struct MemTableStats {
  uint64_t memory_budget = 0;
  uint64_t memory_bytes = 0;   ///< Of all generations.
  uint64_t logical_bytes = 0;  ///< Keys and values of all records, hidden versions included.
  uint64_t records = 0;        ///< Versions and deletes, not keys.
  uint64_t range_deletes = 0;
  /// The highest number that was assigned. With several writing threads some lower numbers stay
  /// unused.
  uint64_t last_sequence = 0;
  uint64_t snapshots = 0;
  uint64_t sealed_generations = 0;
  uint64_t sorted_records = 0;  ///< In sorted runs.
  uint64_t sorted_runs = 0;
  uint64_t seals = 0;
  uint64_t compactions = 0;
  uint64_t compacted_records = 0;  ///< Records that compactions read.
  uint64_t dropped_records = 0;    ///< Of these, records that they did not keep.
  uint64_t waits = 0;              ///< Writes that waited for room.
  uint64_t wait_us = 0;            ///< The total time of these waits.
};

/// An ordered store in memory. Writes and lookups take two cache misses; records are sorted only
/// when an iterator needs it.
///
///     auto table = basalt::MemTable::Create().value();
///     basalt::Status s = table->Put("b", "2");
///     if (s.ok()) s = table->Put("a", "1");
///     auto it = table->NewIterator();
///     for (it->SeekToFirst(); it->Valid(); it->Next()) Use(it->key(), it->value());
///
/// Records lie in append-only generations, each with a hash index. A background thread sorts new
/// records and merges sealed generations. While writers use every processor and no iterator exists,
/// it leaves the newest 500,000 records unsorted. Versions are ordered by sequence number: the
/// newest write wins, on whichever thread. Nothing is on disk: the LSN of a Commit is 0, and
/// durability levels are accepted without effect. Merging frees the memory of expired records and
/// dropped keyspaces.
///
/// A transaction's commit, a batch with conditions and Update wait for batches that are being
/// inserted, and batches wait for them. Single puts and deletes do not wait for them.
///
/// Thread-safe. Lookups take no lock. Values, iterators and snapshots outlive the handle. The
/// handle may be destroyed on any thread, without waiting. After fork() the child may create stores
/// of its own. It may only destroy its parent's stores, which does nothing.
class MemTable final : public Store {
 public:
  /// InvalidArgument: an option is out of range; the message names it. ResourceExhausted.
  static Result<std::unique_ptr<MemTable>> Create(const MemTableOptions& options = {});
  ~MemTable() override;

  Capabilities capabilities() const noexcept override;
  Status Sync() override;
  Status WaitDurable(uint64_t lsn) override;
  Result<KeyspaceId> OpenKeyspace(std::string_view name) const override;
  Result<std::vector<KeyspaceInfo>> ListKeyspaces() const override;
  Status DropKeyspace(KeyspaceId keyspace) override;

  /// Seals the active generation if it has records: writes go to a new one. ResourceExhausted: the
  /// budget has no room for a new generation.
  Status Seal();
  /// Waits until all records that were written before the call are sorted, and merged if
  /// MemTableOptions::compaction is set.
  void WaitForBackgroundWork();
  /// Seals, if there is room, and merges all sealed generations into one without the versions that
  /// no snapshot needs. ResourceExhausted: the budget has no room for the merged generation beside
  /// its sources; records that could be dropped in steps were dropped.
  Status Compact();

  MemTableStats GetStats() const;

 private:
  explicit MemTable(std::shared_ptr<memtable::StoreCore> core);

  Result<MaybeValue> DoGet(std::string_view key, const ReadOptions& options) const override;
  Status DoMultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                    const ReadOptions& options) const override;
  Result<std::optional<Entry>> DoGetEntry(std::string_view key,
                                          const ReadOptions& options) const override;
  Result<bool> DoContains(std::string_view key, const ReadOptions& options) const override;
  Status DoMultiGetOfKeyspaces(std::span<const KeyspaceKey> keys,
                               std::span<Result<MaybeValue>> results,
                               const ReadOptions& options) const override;
  std::unique_ptr<Iterator> DoNewIterator(const ReadOptions& options) const override;
  Result<Snapshot> DoGetSnapshot() const override;
  Result<Commit> DoPut(std::string_view key, std::string_view value,
                       const WriteOptions& options) override;
  Result<std::optional<Commit>> DoPutIfAbsent(std::string_view key, std::string_view value,
                                              const WriteOptions& options) override;
  Result<Commit> DoDelete(std::string_view key, const WriteOptions& options) override;
  Result<Commit> DoDeleteRange(std::string_view begin, std::string_view end,
                               const WriteOptions& options) override;
  Result<Commit> DoMerge(std::string_view key, MergeOperator op, std::string_view operand,
                         const WriteOptions& options) override;
  Result<Commit> DoWrite(const WriteBatch& batch, const WriteOptions& options) override;
  Result<Commit> DoUpdate(std::string_view key, const UpdateFunction& fn,
                          const WriteOptions& options) override;
  Result<Transaction> DoBegin(const TransactionOptions& options) override;
  Result<KeyspaceId> DoCreateKeyspace(std::string_view name,
                                      const KeyspaceOptions& options) override;

  const std::shared_ptr<memtable::StoreCore> core_;
};

}  // namespace basalt
