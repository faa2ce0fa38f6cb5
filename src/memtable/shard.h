#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/internal_key.h"
#include "base/prefetch.h"
#include "base/spin_lock.h"
#include "memtable/hash_index.h"
#include "memtable/record.h"

namespace basalt::memtable {

/// The index of a part of a memtable, for the keys whose hashes begin alike. Thread-safe; `hash`
/// below is the key's hash with the keyspace mixed in, of which a shard uses the low half.
class alignas(64) Shard {
 public:
  using Position = base::Arena::Position;

  /// `records`: where positions lead. All but the pool outlives the shard.
  Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget, base::RetireList* retired,
        const base::Arena* records);

  /// A record that was laid down, by its place in its batch.
  struct Taken {
    uint64_t hash;
    Record* record;
    Position position;  ///< Of the record.
    uint32_t index;
  };
  /// Makes sure that so many more records can be finished. False: the budget (if `within_limit`) or
  /// memory is used up.
  bool Reserve(size_t count, bool within_limit) noexcept;
  /// Gives records for which there is room their sequences, `first` + index, and lets lookups find
  /// them.
  void Finish(std::span<const Taken> records, base::SequenceNumber first) noexcept;
  /// Marks records for which there is room as never to be seen.
  void Abandon(std::span<const Taken> records) noexcept;
  /// Reserve and Finish under one hold of the lock, of the record at `position`, made of `source`.
  /// `assign(newest)` is called under the lock, with the newest version that is there or null, and
  /// gives the sequence; 0: the record is not to be. False: as for Reserve; the record is
  /// unfinished as before.
  template <class Assign>
  bool Put(const RecordSource& source, Record* record, Position position, uint64_t hash,
           bool within_limit, const Assign& assign) noexcept;

  /// The newest version with a sequence <= `at` that `check`, if there is one, does not hide; null:
  /// none. Inside an epoch; the record itself lives as long as the table.
  const Record* Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                     base::SequenceNumber at, BatchCheck* check) const noexcept;
  void Prefetch(uint64_t hash) const noexcept { index_.Prefetch(static_cast<uint32_t>(hash)); }
  /// The same for who is about to Put.
  void PrefetchToPut(uint64_t hash) noexcept {
    base::PrefetchToWrite(this);
    Prefetch(hash);
  }
  /// The record that a lookup will look at first; null: no key has this hash. Inside an epoch.
  [[gnu::always_inline]] const Record* First(uint64_t hash) const noexcept {
    const Position position =
        index_.Find(static_cast<uint32_t>(hash), [](Position) { return true; });
    return position == 0 ? nullptr : RecordAt(position);
  }
  /// The same, and starts to load it.
  const Record* Candidate(uint64_t hash) const noexcept;

  uint64_t finished_count() const noexcept {
    return finished_count_.load(std::memory_order_relaxed);
  }
  /// Of the keys and values of finished records.
  uint64_t logical_bytes() const noexcept { return logical_bytes_.load(std::memory_order_relaxed); }

  HashIndex::ProbeCounts CountProbes() const noexcept { return index_.CountProbes(); }

 private:
  Record* RecordAt(Position position) const noexcept {
    return reinterpret_cast<Record*>(records_->At(position));
  }
  template <class SameKey>
  HashIndex::Word* WordOf(uint64_t hash, const SameKey& has_same_key) noexcept;
  void Link(Record* record, Position position, uint64_t hash, HashIndex::Word* word) noexcept;

  // One line holds what each put writes, the first words of the index included.
  base::SpinLock lock_;
  uint32_t pending_ = 0;  // has room, neither finished nor abandoned; under lock_
  std::atomic<uint64_t> finished_count_{0};  // written under lock_
  std::atomic<uint64_t> logical_bytes_{0};   // written under lock_
  HashIndex index_;                          // written under lock_
  const base::Arena* const records_;
};

// Asked only of records with the hash's low half: seldom, if the key is new.
template <class SameKey>
HashIndex::Word* Shard::WordOf(uint64_t hash, const SameKey& has_same_key) noexcept {
  return index_.FindOrPlace(static_cast<uint32_t>(hash),
                            [&](Position other) { return has_same_key(*RecordAt(other)); });
}

template <class Assign>
bool Shard::Put(const RecordSource& source, Record* record, Position position, uint64_t hash,
                bool within_limit, const Assign& assign) noexcept {
  const std::lock_guard lock(lock_);
  if (!index_.Prepare(pending_ + 1, within_limit)) return false;
  HashIndex::Word* const word = WordOf(hash, [&source](const Record& other) {
    return other.keyspace() == source.keyspace && base::SameBytes(other.key(), source.key);
  });
  const Position newest = HashIndex::PositionOf(word->load(std::memory_order_relaxed));
  const base::SequenceNumber sequence = assign(newest == 0 ? nullptr : RecordAt(newest));
  if (sequence == 0) {
    record->tag.store(Record::kAbandonedTag, std::memory_order_release);
  } else {
    record->tag.store(base::MakeTag(sequence, source.kind), std::memory_order_release);
    Link(record, position, hash, word);
  }
  return true;
}

}  // namespace basalt::memtable
