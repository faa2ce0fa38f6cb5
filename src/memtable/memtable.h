#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/status.h"
#include "basalt/value.h"
#include "base/arena.h"
#include "base/epoch.h"
#include "base/internal_key.h"
#include "base/record_iterator.h"

// The newest writes, in memory: fast to write, fast to look up, ordered only when somebody asks.
//
// Layout
//
//   MemTable ... shards, chosen by the highest bits of the key's hash (with the keyspace mixed in)
//     Shard ...... records:  an arena of whole records (record.h)
//                  order:    an arena of 16-byte entries {8-byte key prefix, position, keyspace},
//                  one a
//                            record, in order of arrival: what sorting reads
//                  index:    low bits of the hash -> newest version (hash_index.h); older versions
//                  hang
//                            off it, in descending sequence
//   Runs ....... for each keyspace one sorted run, and for each shard the watermark: how many of
//   its
//                order entries the runs cover
//
// The life of a record. Reserve takes its space and copies it, unfinished (tag 0). Insert stores
// its tag, with release, and then lets the index lead to it, so that who finds it finds it
// finished. Abandon gives it a tag that nobody sees instead. Nothing is removed before the whole
// table goes.
//
// Invariants
//   - Versions are ordered by sequence number alone, never by arrival: a smaller sequence that
//   arrives
//     late is linked behind the larger ones.
//   - A watermark never passes an unfinished record, because that one could not be added to the run
//     later. Finished records beyond it are sorted into an iterator's own run.
//   - Space in index and order is reserved with the record, so that Insert cannot fail.
//
// Locks. A shard's one-word lock: Reserve (without the copying) and Insert (without the tag). Get
// takes none, and is inside an epoch while it reads the index. A mutex guards the runs: one
// iterator sorts, others that are created meanwhile wait for what it sorts.
//
// Cost. Get: two cache misses, bucket and record. Insert: the bucket, and the older version if
// there is one. An iterator over n new records: some 30 ns a record, once; then a record's miss,
// prefetched.

namespace basalt::memtable {

class Shard;
class SortedRun;
using base::ChunkPool;

/// What a lookup in one place found. `value` is empty unless the tag's kind is kPut.
struct FoundRecord {
  base::Tag tag = 0;
  Value value;
};

struct MemTableOptions {
  uint64_t budget_bytes = 16 << 20;   ///< Reserve refuses (ResourceExhausted) what would pass it.
  uint32_t shards = 0;                ///< Power of two up to 256; 0: derived from the budget.
  std::shared_ptr<ChunkPool> pool{};  ///< Null: the process's own.
};

/// Thread-safe. Iterators and large values keep the table alive.
class MemTable : public std::enable_shared_from_this<MemTable> {
  struct Private {};

 public:
  static std::shared_ptr<MemTable> Create(const MemTableOptions& options);
  MemTable(Private, const MemTableOptions& options);
  ~MemTable();

  /// Space for all records of a batch. Move-only; must end in Insert or Abandon.
  class Reservation;

  /// Takes space for every record of `batch` (validated bytes, see BatchCursor; `count` records):
  /// records are copied, not visible to anyone. ResourceExhausted: it does not fit the budget, and
  /// nothing is taken (a table that is empty accepts any batch that memory can hold). Any thread.
  Result<Reservation> Reserve(std::string_view batch, size_t count);
  /// Makes record i of the batch visible to readers at sequence first_sequence + i and later.
  /// Cannot fail. Any thread.
  void Insert(Reservation reservation, base::SequenceNumber first_sequence) noexcept;
  /// The batch failed: its records never become visible, and block no watermark.
  void Abandon(Reservation reservation) noexcept;

  /// The newest version of `key` with a sequence <= `at`; false: none here. `hash` is
  /// base::Hash(key). Values above 112 bytes are copied to the heap, above 64 KiB pinned with the
  /// table.
  bool Get(uint32_t keyspace, std::string_view key, uint64_t hash, base::SequenceNumber at,
           FoundRecord* found) const;

  /// All finished versions with sequence <= `visible` (every one of which must be finished), in
  /// internal order. Sorts what is new since the last iterator: not to be called inside an epoch.
  std::unique_ptr<base::RecordIterator> NewIterator(uint32_t keyspace,
                                                    base::SequenceNumber visible) const;

  /// Chunks, order entries, index and runs. What iterators hold for themselves is not in it.
  uint64_t memory_bytes() const noexcept;
  /// Inserted records, all versions.
  uint64_t record_count() const noexcept;
  bool empty() const noexcept { return record_count() == 0; }

  /// Buckets that a lookup of a present key reads, averaged over the index. Only while nothing
  /// writes.
  double MeanIndexProbes() const noexcept;

 private:
  struct Runs;

  Shard& ShardOf(uint64_t hash) const noexcept { return *shards_[hash >> 1 >> shard_shift_]; }
  void Drop(Reservation* reservation) noexcept;
  void CollectRetired() noexcept;
  std::shared_ptr<const Runs> FreshRuns() const;
  std::shared_ptr<const Runs> ExtendRuns(const Runs& old, size_t tail_max) const;

  const std::shared_ptr<ChunkPool> pool_;
  base::ByteBudget budget_;
  base::RetireList retired_;
  uint32_t shard_shift_;  // the shard is hash >> 1 >> shard_shift_
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<bool> first_taken_{false};  // a batch has used the right to pass the budget

  mutable std::mutex runs_mutex_;
  mutable std::shared_ptr<const Runs> runs_;  // under runs_mutex_; never null
  mutable std::atomic<uint64_t> run_bytes_{0};
};

class MemTable::Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : count_(std::exchange(other.count_, 0)),
        is_first_(other.is_first_),
        only_(other.only_),
        several_(std::move(other.several_)) {}
  Reservation& operator=(Reservation&& other) noexcept;
  /// A failed check when it ended in neither Insert nor Abandon.
  ~Reservation();

 private:
  friend class MemTable;

  struct Place {
    uint64_t hash;
    base::Arena::Position position;
  };
  Place& place(size_t i) noexcept { return several_ == nullptr ? only_ : several_[i]; }

  size_t count_ = 0;
  bool is_first_ = false;  // was admitted because the table was empty
  Place only_{};
  std::unique_ptr<Place[]> several_;  // for more than one record
};

}  // namespace basalt::memtable
