#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/arena.h"
#include "base/internal_key.h"
#include "base/spin_lock.h"
#include "memtable/insert_gate.h"
#include "memtable/record.h"

namespace basalt::memtable {

/// What sorting needs of a record: one entry a record, in order of arrival.
struct OrderEntry {
  uint64_t prefix;  ///< base::KeyPrefix(key)
  base::Arena::Position position;
  uint32_t keyspace;
};
static_assert(sizeof(OrderEntry) == 16);

/// Where a thread, or some, lay down their records, one after the other: a place in the table's
/// arena of records, and a column of order entries, in memory that no other segment writes to. Most
/// of a table's segments are never written to, so one is small: its column is made with its first
/// record.
class alignas(64) Segment {
 public:
  using Position = base::Arena::Position;

  /// `chunk_bytes_max`: of `records`. All of them outlive the segment. `is_shared`: by threads, of
  /// which one at a time is let between lock and unlock; else these do nothing.
  Segment(base::ChunkPool* pool, base::ByteBudget* budget, size_t chunk_bytes_max,
          base::Arena* records, size_t shards, bool is_shared);

  void lock() noexcept {
    if (is_shared_) lock_.lock();
  }
  void unlock() noexcept {
    if (is_shared_) lock_.unlock();
  }

  // Locked:

  /// Position 0: none.
  struct Placed {
    Position position = 0;
    Record* record = nullptr;
  };
  /// Space for a record, whose header it writes, unfinished (tag 0), and for its order entry.
  /// None: the budget (if `within_limit`), memory or the positions are used up.
  Placed Place(const RecordSource& source, bool within_limit) noexcept;
  /// Space for a fold, which has no order entry: neither runs nor iterators know of it.
  Placed PlaceFold(const RecordSource& source) noexcept;
  /// Lets the order entries of what has been placed be seen.
  void ShowOrder() noexcept { order_count_.store(placed_count_, std::memory_order_release); }
  /// So many more records of this shard have room in its index, on the segment's account.
  uint8_t& room_in(size_t shard) noexcept { return room_in_[shard]; }
  /// Says which index the segment's thread inserts into.
  InsertGate::Place* place() noexcept { return &place_; }
  /// A record, laid down in this segment or in another one, can be found now.
  void CountFinished(const Record& record) noexcept {
    const auto add = [](std::atomic<uint64_t>* counter, uint64_t count) {
      counter->store(counter->load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    };
    add(&finished_count_, 1);
    add(&logical_bytes_, uint64_t{record.key_size} + record.value_size);
  }

  // Any thread:

  uint64_t finished_count() const noexcept {
    return finished_count_.load(std::memory_order_relaxed);
  }
  /// Of the keys and values of finished records.
  uint64_t logical_bytes() const noexcept { return logical_bytes_.load(std::memory_order_relaxed); }

  /// Copies the rest of a record. Nobody reads it before it is finished.
  static void Fill(Record* record, const RecordSource& source) noexcept;
  static void FillFold(Record* record, const RecordSource& source,
                       const FoldedMerges& folded) noexcept;

  /// Order entries there are; entries below that number never change.
  uint32_t order_count() const noexcept { return order_count_.load(std::memory_order_acquire); }

  /// Calls `visit(entry index, entry, record, tag)` for the order entries [begin, end), in order of
  /// arrival, until it answers false. A tag that is not 0 was loaded with acquire. `begin`: not
  /// below what FreeOrderBefore was called with.
  template <class Visit>
  void VisitOrder(uint32_t begin, uint32_t end, const Visit& visit) const;

  /// The first `count` order entries are not visited any more: gives back what memory is theirs
  /// alone. One thread at a time.
  void FreeOrderBefore(uint32_t count) noexcept {
    if (count != 0) order_->FreeBefore(OrderPosition(count));
  }

 private:
  static constexpr uint32_t kOrderUnits = sizeof(OrderEntry) / base::Arena::kUnitBytes;
  static Position OrderPosition(uint32_t i) noexcept {
    return base::Arena::kFirstPosition + i * kOrderUnits;
  }
  const OrderEntry* OrderAt(uint32_t i) const noexcept {
    return reinterpret_cast<const OrderEntry*>(order_->At(OrderPosition(i)));
  }
  const Record* RecordAt(Position position) const noexcept {
    return reinterpret_cast<const Record*>(records_->At(position));
  }
  [[gnu::noinline]] bool PrepareOrder(bool within_limit) noexcept;
  static Record* Begin(char* at, const RecordSource& source, uint8_t flags) noexcept;

  static constexpr size_t kFewShards = 32;

  // What each record writes: one line, and one at the end.
  const bool is_shared_;
  base::SpinLock lock_;
  std::atomic<uint32_t> order_count_{0};
  uint32_t placed_count_ = 0;
  base::Arena::Cursor record_cursor_;
  base::Arena::Cursor order_cursor_;
  base::Arena* const records_;
  std::unique_ptr<base::Arena> order_;  // a column; null as long as order_count_ is 0
  base::ChunkPool* const pool_;
  base::ByteBudget* const budget_;
  const size_t order_chunk_bytes_max_;
  const std::unique_ptr<uint8_t[]> room_in_many_;  // null where there are few shards
  alignas(64) InsertGate::Place place_;
  std::atomic<uint64_t> finished_count_{0};
  std::atomic<uint64_t> logical_bytes_{0};
  std::array<uint8_t, kFewShards> room_in_few_{};
  uint8_t* const room_in_;
};

template <class Visit>
void Segment::VisitOrder(uint32_t begin, uint32_t end, const Visit& visit) const {
  constexpr size_t kPrefetchDistance = 16;
  for (uint32_t i = begin; i < end;) {
    const OrderEntry* const entries = OrderAt(i);
    const size_t contiguous = order_->ContiguousUnits(OrderPosition(i)) / kOrderUnits;
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
