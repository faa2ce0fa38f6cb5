#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "base/arena.h"
#include "base/epoch.h"
#include "base/internal_key.h"
#include "base/spin_lock.h"
#include "memtable/hash_index.h"
#include "memtable/record.h"

namespace basalt::memtable {

/// What sorting needs of a record: one entry a record, in order of arrival.
struct OrderEntry {
  uint64_t prefix;  ///< base::KeyPrefix(key)
  base::Arena::Position position;
  uint32_t keyspace;
};
static_assert(sizeof(OrderEntry) == 16);

/// A part of a memtable, for the keys whose hashes begin alike. Thread-safe; `hash` below is the
/// key's hash with the keyspace mixed in, of which a shard uses the low half.
class Shard {
 public:
  using Position = base::Arena::Position;

  /// `chunk_bytes_max` as in base::Arena. All but the pool outlives the shard.
  Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget, base::RetireList* retired,
        size_t chunk_bytes_max);

  /// A record of a batch, by its place in that.
  struct Taken {
    uint64_t hash;
    Position position;  ///< 0: it is not taken.
    uint32_t index;
  };
  /// Takes space for records and copies them, unfinished; `source_of(taken)` gives the
  /// RecordSource. One hold of the lock is for up to kAtOnce of them. False: the budget (if
  /// `within_limit`) or memory is used up; what has been taken has its position.
  template <class SourceOf>
  bool Take(std::span<Taken> records, const SourceOf& source_of, bool within_limit) noexcept;
  /// Gives taken records their sequences, `first` + index, and lets lookups find them.
  void Finish(std::span<const Taken> records, base::SequenceNumber first) noexcept;
  /// Take and Finish under one hold of the lock, for small records. `assign(newest)` is called
  /// under the lock, with the newest version that is there or null, and gives the sequence; 0: the
  /// record is not to be. Gives the position and the number of order entries, or 0: as for Take.
  template <class Assign>
  std::pair<Position, uint32_t> Put(const RecordSource& source, uint64_t hash, bool within_limit,
                                    const Assign& assign) noexcept;
  /// Marks taken records as never to be seen; passes over others.
  void Abandon(std::span<const Taken> records) noexcept;

  /// The newest version with a sequence <= `at` that `check`, if there is one, does not hide; null:
  /// none. Inside an epoch; the record itself lives as long as the shard.
  const Record* Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                     base::SequenceNumber at, BatchCheck* check) const noexcept;
  void Prefetch(uint64_t hash) const noexcept { index_.Prefetch(static_cast<uint32_t>(hash)); }

  /// Order entries there are; entries below that number never change.
  uint32_t order_count() const noexcept { return order_count_.load(std::memory_order_acquire); }
  uint64_t finished_count() const noexcept {
    return finished_count_.load(std::memory_order_relaxed);
  }

  /// Of the keys and values of finished records.
  uint64_t logical_bytes() const noexcept { return logical_bytes_.load(std::memory_order_relaxed); }
  /// The record that a lookup will look at first, or null; starts to load it. Inside an epoch.
  const Record* Candidate(uint64_t hash) const noexcept;

  /// Calls `visit(entry index, entry, record, tag)` for the order entries [begin, end), in order of
  /// arrival, until it answers false. A tag that is not 0 was loaded with acquire. `begin`: not
  /// below what FreeOrderBefore was called with.
  template <class Visit>
  void VisitOrder(uint32_t begin, uint32_t end, const Visit& visit) const;

  /// The first `count` order entries are not visited any more: gives back what memory is theirs
  /// alone. One thread at a time.
  void FreeOrderBefore(uint32_t count) noexcept { order_.FreeBefore(OrderPosition(count)); }

  HashIndex::ProbeCounts CountProbes() const noexcept { return index_.CountProbes(); }

 private:
  static constexpr size_t kAtOnce = 32;
  static constexpr size_t kAhead = 8;  // What is fetched while a group is worked on.

  Record* RecordAt(Position position) const noexcept {
    return reinterpret_cast<Record*>(records_.At(position));
  }
  // Under lock_. Does not count the order entry yet. Starts to load where the record will lie that
  // comes `ahead` records later.
  Position Place(const RecordSource& source, uint64_t prefix, bool within_limit,
                 size_t ahead) noexcept;
  void CountOrder() noexcept {
    order_count_.store(order_count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  HashIndex::Word* WordOf(uint32_t keyspace, std::string_view key, uint64_t hash) noexcept;
  void Link(Record* record, Position position, uint64_t hash, HashIndex::Word* word) noexcept;
  static void Fill(Record* record, const RecordSource& source) noexcept;

  static constexpr uint32_t kOrderUnits = sizeof(OrderEntry) / base::Arena::kUnitBytes;
  static Position OrderPosition(uint32_t i) noexcept {
    return base::Arena::kFirstPosition + i * kOrderUnits;
  }
  const OrderEntry* OrderAt(uint32_t i) const noexcept {
    return reinterpret_cast<const OrderEntry*>(order_.At(OrderPosition(i)));
  }

  base::SpinLock lock_;
  uint32_t pending_ = 0;                     // taken, neither finished nor abandoned; under lock_
  base::Arena records_;                      // Allocate under lock_
  base::Arena order_;                        // Allocate under lock_; a column
  HashIndex index_;                          // written under lock_
  std::atomic<uint32_t> order_count_{0};     // written under lock_
  std::atomic<uint64_t> finished_count_{0};  // written under lock_
  std::atomic<uint64_t> logical_bytes_{0};   // written under lock_
};

template <class Assign>
std::pair<Shard::Position, uint32_t> Shard::Put(const RecordSource& source, uint64_t hash,
                                                bool within_limit, const Assign& assign) noexcept {
  Prefetch(hash);
  const uint64_t prefix = base::KeyPrefix(source.key);
  const std::lock_guard lock(lock_);
  const Position position = Place(source, prefix, within_limit, /*ahead=*/1);
  if (position == 0) return {0, 0};
  Record* const record = RecordAt(position);
  Fill(record, source);
  HashIndex::Word* const word = WordOf(source.keyspace, source.key, hash);
  const Position newest = HashIndex::PositionOf(word->load(std::memory_order_relaxed));
  const base::SequenceNumber sequence = assign(newest == 0 ? nullptr : RecordAt(newest));
  if (sequence == 0) {
    record->tag.store(Record::kAbandonedTag, std::memory_order_release);
  } else {
    record->tag.store(base::MakeTag(sequence, source.kind), std::memory_order_release);
    Link(record, position, hash, word);
  }
  CountOrder();
  return {position, order_count_.load(std::memory_order_relaxed)};
}

template <class SourceOf>
bool Shard::Take(std::span<Taken> records, const SourceOf& source_of, bool within_limit) noexcept {
  const size_t ahead = records.size() == 1 ? 1 : kAhead;
  while (!records.empty()) {
    const std::span<Taken> group = records.first(std::min(records.size(), kAtOnce));
    records = records.subspan(group.size());
    for (const Taken& record : group) Prefetch(record.hash);
    size_t count = 0;
    {
      const std::lock_guard lock(lock_);
      for (; count < group.size(); ++count) {
        const RecordSource source = source_of(group[count]);
        const uint64_t prefix = base::KeyPrefix(source.key);
        group[count].position = Place(source, prefix, within_limit, ahead);
        if (group[count].position == 0) break;
        ++pending_;
        CountOrder();
      }
    }
    // Nobody reads the body of an unfinished record, so it is filled outside the lock.
    for (const Taken& record : group.first(count)) {
      Fill(RecordAt(record.position), source_of(record));
    }
    if (count < group.size()) return false;
  }
  return true;
}

template <class Visit>
void Shard::VisitOrder(uint32_t begin, uint32_t end, const Visit& visit) const {
  constexpr size_t kPrefetchDistance = 16;
  for (uint32_t i = begin; i < end;) {
    const OrderEntry* const entries = OrderAt(i);
    const size_t contiguous = order_.ContiguousUnits(OrderPosition(i)) / kOrderUnits;
    const size_t count = contiguous < end - i ? contiguous : end - i;
    for (size_t j = 0; j < count; ++j, ++i) {
      if (j + kPrefetchDistance < count) {
        __builtin_prefetch(RecordAt(entries[j + kPrefetchDistance].position));
      }
      const Record* const record = RecordAt(entries[j].position);
      if (!visit(i, entries[j], record, record->tag.load(std::memory_order_acquire))) return;
    }
  }
}

}  // namespace basalt::memtable
