#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "basalt/status.h"
#include "basalt/value.h"
#include "base/arena.h"
#include "base/epoch.h"
#include "base/internal_key.h"
#include "base/record_iterator.h"
#include "memtable/range_delete_list.h"
#include "memtable/segment.h"
#include "memtable/shard.h"
#include "memtable/sorter.h"

// The newest writes, in memory: fast to write, fast to look up, ordered only when somebody asks.
//
// Layout
//
//   Generation
//     records ...... an arena of whole records (record.h)
//     Segment ...... where a thread writes: its place in that arena, and a column of 16-byte
//                    order entries {8-byte key prefix, position, keyspace}, one a record, in order
//                    of arrival: what sorting reads, given back when runs cover it. The first
//                    threads of the process, as many as there are shards and up to 16, have one
//                    each; the others share as many more
//     Shard ........ chosen by the highest bits of the key's hash (with the keyspace mixed in): low
//                    bits of the hash -> newest version (hash_index.h); older versions hang off it,
//                    in descending sequence. Folds stand there for many merges (fold.cc)
//     Runs ......... for each keyspace a few sorted runs of falling size (run_set.h), and for each
//                    segment the watermark: how many of its order entries the runs cover
//
// Who writes lays its records down where no other thread writes, and meets the others in the index:
// of all the lines that a put writes, that of the key's bucket alone moves between the cores of two
// writers. Room in the index is taken for 8 to 64 records of a segment at once.
//
// The life of a record. Reserve takes its space and copies it, unfinished (tag 0). Insert stores
// its tag, with release, and then lets the index lead to it, so that who finds it finds it
// finished. Abandon gives it a tag that nobody sees instead. Nothing is removed before the whole
// table goes.
//
// Invariants
//   - Versions are ordered by sequence number alone, never by arrival: a smaller sequence that is
//     late is linked behind the larger ones.
//   - A watermark never passes an unfinished record, because that one could not be added to the run
//     later. Finished records beyond it are sorted into an iterator's own run.
//   - Order entries below a watermark are read by nobody, but by iterators that are gathering what
//     lies beyond an older one: while there are such, no memory of order entries is given back.
//   - Space in index and order is reserved with the record, so that Insert cannot fail.
//   - A segment without a lock belongs to the one thread that has its number, while that is
//     inside an epoch: numbers are handed on like the epochs' slots.
//
// Locks. A shared segment's one-word lock: Reserve (without the copying), Insert and Put. Then that
// of a shard's room, now and then, and the arena's mutex for a new piece. Records enter an index
// side by side, and wait only while its words move into twice as many (hash_index.h). Get takes
// none, and is inside an epoch while it reads the index. A mutex guards the runs: one iterator
// sorts what is new, others that are created meanwhile wait for it, since they need it too. Large
// runs are merged without the mutex, by one thread at a time (run_set.h); the others go on with the
// runs that there are.
//
// Cost. Get: two cache misses, bucket and record. Insert: the bucket, and the older version if
// there is one. An iterator over n new records: some 30 ns a record, once, and some 50 for merges
// over time; then a step and the record's lines, which are fetched ahead.

namespace basalt::memtable {

using base::ChunkPool;

/// What a lookup in one place found. A delete has no value; a merge's is its operator and operand.
struct FoundRecord {
  base::Tag tag = 0;
  uint64_t time_ms = 0;  ///< As in base::RecordIterator.
  Value value;
};

struct GenerationOptions {
  /// Reserve refuses (ResourceExhausted) what would pass it. Words that doublings of the index have
  /// left behind come on top, up to a 64th of it or 64 KiB, until no reader is in them.
  uint64_t budget_bytes = 16 << 20;
  uint32_t shards = 0;                ///< Power of two up to 256; 0: derived from the budget.
  std::shared_ptr<ChunkPool> pool{};  ///< Null: the process's own.
  Sorter sorter = Sorter::kVector;
};

/// Thread-safe. Iterators and large values keep the table alive.
class Generation : public std::enable_shared_from_this<Generation> {
  struct Private {};

 public:
  static std::shared_ptr<Generation> Create(const GenerationOptions& options);
  Generation(Private, const GenerationOptions& options);
  ~Generation();

  /// Space for all records of a batch. Move-only; must end in Insert or Abandon.
  class Reservation;

  /// Takes space for every record of `batch` (validated bytes, see BatchCursor; `count` records):
  /// records are copied, not visible to anyone. ResourceExhausted: it does not fit the budget, and
  /// nothing is taken (a table that is empty accepts any batch that memory can hold). Any thread.
  /// Range deletes in it are passed over; `is_of_several` marks the records (RecordSource).
  Result<Reservation> Reserve(std::string_view batch, size_t count, bool is_of_several = false);
  /// The same for one record.
  Result<Reservation> Reserve(const RecordSource& source);
  /// Makes record i of the batch visible to readers at sequence first_sequence + i and later.
  /// Cannot fail. Any thread.
  void Insert(Reservation reservation, base::SequenceNumber first_sequence) noexcept;
  /// The batch failed: its records never become visible, and block no watermark.
  void Abandon(Reservation reservation) noexcept;

  enum class Placed : uint8_t { kYes, kNoRoom, kNotAssigned };
  /// Reserve and Insert of one small record. `assign(tag)` gives its sequence; 0: the record is not
  /// to be. `tag` is of the newest version that is here, or 0, and still was when the record took
  /// its place: should another version come in between, `assign` is called again. It has to make a
  /// sequentially consistent read-modify-write, unless only one thread writes to this table.
  /// `has_piled_up`: now and then set, when it is time to sort. Any thread, inside an epoch, which
  /// gives its number.
  template <class Assign>
  Placed Put(const RecordSource& source, uint64_t hash, uint32_t thread_number,
             const Assign& assign, bool* has_piled_up);
  static constexpr size_t kSmallBytesMax = 2048;
  static constexpr uint32_t kShardsMax = 256;

  /// The newest version of `key` with a sequence <= `at`; false: none here. `hash` is
  /// base::Hash(key). Values above 112 bytes are copied to the heap, above 64 KiB pinned with the
  /// table.
  bool Get(uint32_t keyspace, std::string_view key, uint64_t hash, base::SequenceNumber at,
           FoundRecord* found) const;
  /// The same without its value; null: none here. Inside an epoch. What `check` hides does not
  /// count.
  const Record* Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                     base::SequenceNumber at, BatchCheck* check) const noexcept {
    hash = MixKeyspace(hash, keyspace);
    return ShardOf(hash).Find(keyspace, key, hash, at, check);
  }
  /// The version before one that Find or this gave; null: none here. In or outside an epoch.
  const Record* Older(const Record& record) const noexcept {
    const base::Arena::Position older = record.previous.load(std::memory_order_acquire);
    return older == 0 ? nullptr : RecordAt(older);
  }
  /// The version behind all that one stands for, which are several if it is a fold.
  const Record* Behind(const Record& record) const noexcept {
    if (!record.is_fold()) return Older(record);
    const uint32_t behind = record.folded().behind;
    return behind == 0 ? nullptr : RecordAt(behind);
  }
  /// fold.cc: makes reads of the key's merges up to `at` short, if they are many. What they build
  /// on expires at `expiry_ms`; 0: never, or it is not known. `at`: nothing up to it is under way.
  /// Where memory for a fold cannot be had, there is none. Any thread.
  void FoldMerges(uint32_t keyspace, std::string_view key, uint64_t hash, base::SequenceNumber at,
                  uint64_t expiry_ms) noexcept;
  /// A walk over so many versions is worth a fold.
  static constexpr size_t kFoldedMin = 16;
  /// Of a put or merge that Find or Older gave.
  Value ValueOf(const Record& record) const;
  /// Starts to load the line where a lookup begins. Inlined by force: g++ takes a function that
  /// only prefetches for one without effects.
  [[gnu::always_inline]] void Prefetch(uint32_t keyspace, uint64_t hash) const noexcept {
    hash = MixKeyspace(hash, keyspace);
    ShardOf(hash).Prefetch(hash);
  }
  /// The record that a lookup in keyspace 0 will look at first; null: no key has this hash. Inside
  /// an epoch.
  [[gnu::always_inline]] const Record* First(uint64_t hash) const noexcept {
    return ShardOf(hash).First(hash);
  }
  /// The same in any keyspace, and starts to load it.
  const Record* Candidate(uint32_t keyspace, uint64_t hash) const noexcept {
    hash = MixKeyspace(hash, keyspace);
    return ShardOf(hash).Candidate(hash);
  }

  /// A range delete that is not visible yet, or null: no memory, or beyond the budget.
  RangeDelete* PrepareRangeDelete(uint32_t keyspace, std::string_view begin, std::string_view end,
                                  bool is_of_several, bool within_limit = true) noexcept;
  /// Takes it over and makes it visible at `sequence`. 0: drops it.
  void Finish(RangeDelete* range, base::SequenceNumber sequence) noexcept;
  const RangeDeleteList& range_deletes() const noexcept { return range_deletes_; }
  /// Makes lookups in many of them short. Whoever has finished one calls it, once its batch is
  /// complete. `check`: as for RangeDeleteList.
  void FlattenRangeDeletes(BatchCheck* check) noexcept { range_deletes_.Flatten(check); }

  /// All finished versions with sequence <= `visible` (every one of which must be finished), in
  /// internal order. Sorts what is new since the last iterator: not to be called inside an epoch.
  std::unique_ptr<base::RecordIterator> NewIterator(uint32_t keyspace,
                                                    base::SequenceNumber visible) const;

  /// The records that no run covers when it is made, and all that come later. While it lives, no
  /// memory of order entries is given back.
  class Tail;
  /// Sorts what is new, so that it is short. Throws std::bad_alloc.
  Tail OpenTail() const;

  /// Sorts what is new, as NewIterator does. Any thread; an iterator that is created meanwhile
  /// waits for the sorting, but not for larger merges. Throws std::bad_alloc.
  void SortTail() const;
  /// The same, and merges all into one run a keyspace. Records that come meanwhile may make others;
  /// so does a lack of memory.
  void SortAll() const;
  /// Records that no run covers yet. Any thread; reads a word of each segment.
  uint64_t unsorted_count() const noexcept;
  /// How many records each segment has taken.
  std::vector<uint32_t> SegmentCounts() const;
  /// Records in runs.
  uint64_t sorted_count() const noexcept;
  /// Of all keyspaces.
  uint64_t run_count() const noexcept;

  uint64_t budget_bytes() const noexcept { return budget_.limit_bytes(); }
  /// Chunks, order entries, index and runs. What iterators hold for themselves is not in it.
  uint64_t memory_bytes() const noexcept;
  /// Inserted records, all versions.
  uint64_t record_count() const noexcept;
  bool empty() const noexcept {
    const auto is_empty = [](const auto& segment) { return segment->finished_count() == 0; };
    return std::all_of(segments_.begin(), segments_.end(), is_empty) && range_deletes_.empty();
  }
  /// The keyspaces of all records.
  void AddKeyspacesTo(std::set<uint32_t>* keyspaces) const;
  /// Of all of them, hidden ones included.
  uint64_t logical_bytes() const noexcept;

  /// Buckets that a lookup of a present key reads, averaged over the index. Only while nothing
  /// writes.
  double MeanIndexProbes() const noexcept;

 private:
  struct Runs;

  // Equal keys of different keyspaces go different ways.
  static uint64_t MixKeyspace(uint64_t hash, uint32_t keyspace) noexcept {
    return hash ^ keyspace * 0x9E37'79B9'7F4A'7C15;
  }
  bool IsFirst() noexcept;
  size_t ShardNumber(uint64_t hash) const noexcept { return hash >> 1 >> shard_shift_; }
  Shard& ShardOf(uint64_t hash) const noexcept { return *shards_[ShardNumber(hash)]; }
  /// Of the thread with this number (EpochGuard::thread_number), while it is inside an epoch.
  Segment& SegmentOf(uint32_t thread_number) const noexcept {
    if (thread_number >= threads_.load(std::memory_order_relaxed)) [[unlikely]] {
      CountThreads(thread_number + 1);
    }
    const size_t own = segments_.size() / 2;
    return *segments_[thread_number < own ? thread_number : own + (thread_number & (own - 1))];
  }
  void CountThreads(uint32_t threads) const noexcept;
  /// So many of the segments, the first ones, may hold records.
  size_t segments_used() const noexcept {
    const uint32_t threads = threads_.load(std::memory_order_relaxed);
    return threads <= segments_.size() / 2 ? threads : segments_.size();
  }
  Record* RecordAt(base::Arena::Position position) const noexcept {
    return reinterpret_cast<Record*>(records_.At(position));
  }
  /// Sees to it that the segment, which is locked, has room for a record in this shard. False: as
  /// for Reserve.
  bool PrepareRoom(Segment* segment, size_t shard, bool within_limit) const noexcept {
    uint8_t& room = segment->room_in(shard);
    if (room == 0) room = shards_[shard]->ReserveSome(within_limit);
    return room != 0;
  }
  /// Room that was not used: some to the segment, which is locked, and to the shard what is too
  /// much.
  void ReturnRoom(Segment* segment, size_t shard, size_t count) const noexcept {
    constexpr size_t kRoomMax = 8;
    uint8_t& room = segment->room_in(shard);
    const size_t kept = room < kRoomMax ? std::min(count, kRoomMax - room) : 0;
    room = static_cast<uint8_t>(room + kept);
    if (count != kept) shards_[shard]->GiveBack(count - kept);
  }
  /// Calls `visit(shard number, its records)` for records that stand by shard, until it answers
  /// false.
  template <class Visit>
  bool ForEachShard(std::span<Shard::Taken> records, const Visit& visit) const;
  /// Copies the records of a batch into the calling thread's segment: `placed` gets one entry each,
  /// without a record for range deletes, and `ends` how many each shard has. False: as for Reserve;
  /// those that are placed are there.
  bool Place(std::string_view batch, bool is_of_several, bool within_limit,
             std::span<Shard::Taken> placed, std::span<uint32_t> ends) const;
  /// Marks a record that has been laid down as never to be seen.
  static void Forget(Record* record) noexcept {
    record->tag.store(Record::kAbandonedTag, std::memory_order_release);
  }
  void LinkFold(const RecordSource& source, uint64_t hash, base::Tag tag,
                const FoldedMerges& folded, uint32_t thread_number) noexcept;
  void Drop(Reservation* reservation) noexcept;
  void CollectRetired() noexcept;
  bool ExtendRuns() const;
  bool ExtendRunsByOne(size_t segment) const noexcept;
  void FreeCovered(size_t segment) const noexcept;
  void MergeRuns(std::unique_lock<std::mutex>* lock, bool all) const;

  const std::shared_ptr<ChunkPool> pool_;
  base::ByteBudget budget_;
  base::RetireList retired_;
  base::Arena records_;
  uint32_t shard_shift_;                            // the shard is hash >> 1 >> shard_shift_
  std::vector<std::unique_ptr<Segment>> segments_;  // one a thread, then as many that threads share
  mutable std::atomic<uint32_t> threads_{0};        // above the number of each that has written
  std::vector<InsertGate::Place*> places_;          // of the segments
  std::vector<std::unique_ptr<Shard>> shards_;
  RangeDeleteList range_deletes_{&budget_};
  std::atomic<bool> first_taken_{false};  // a batch has used the right to pass the budget

  const std::unique_ptr<Runs> runs_;
};

template <class Assign>
Generation::Placed Generation::Put(const RecordSource& source, uint64_t hash,
                                   uint32_t thread_number, const Assign& assign,
                                   bool* has_piled_up) {
  constexpr uint32_t kPile = 32768;
  hash = MixKeyspace(hash, source.keyspace);
  const size_t shard_number = ShardNumber(hash);
  Shard& shard = *shards_[shard_number];
  shard.PrefetchToPut(hash);
  Shard::Outcome outcome{};
  {
    Segment& segment = SegmentOf(thread_number);
    const std::lock_guard lock(segment);
    if (!PrepareRoom(&segment, shard_number, /*within_limit=*/true)) return Placed::kNoRoom;
    const auto [position, record] = segment.Place(source, /*within_limit=*/true);
    if (position == 0) return Placed::kNoRoom;
    Segment::Fill(record, source);
    outcome = shard.Put(source, record, position, hash, &segment, [&](const Record* newest) {
      return assign(newest == nullptr ? 0 : newest->tag.load(std::memory_order_relaxed));
    });
    if (outcome == Shard::Outcome::kNewKey) --segment.room_in(shard_number);
    segment.ShowOrder();
    if (segment.order_count() % kPile == 0) *has_piled_up = true;
  }
  if (!first_taken_.load(std::memory_order_relaxed)) {
    first_taken_.store(true, std::memory_order_relaxed);
  }
  CollectRetired();
  return outcome == Shard::Outcome::kNotAssigned ? Placed::kNotAssigned : Placed::kYes;
}

class Generation::Tail {
 public:
  Tail(Tail&& other) noexcept
      : table_(std::move(other.table_)), watermarks_(std::move(other.watermarks_)) {}
  Tail& operator=(Tail&&) = delete;
  ~Tail();

  /// Calls `visit(record, tag)` for each that can be found, until it answers false.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    bool goes_on = true;
    for (size_t i = 0; i < watermarks_.size() && goes_on; ++i) {
      const Segment& segment = *table_->segments_[i];
      segment.VisitOrder(watermarks_[i], segment.order_count(),
                         [&](uint32_t, const OrderEntry&, const Record* record, base::Tag tag) {
                           if (tag == 0 || tag == Record::kAbandonedTag) return true;
                           goes_on = visit(*record, tag);
                           return goes_on;
                         });
    }
  }

 private:
  friend class Generation;
  Tail(std::shared_ptr<const Generation> table, std::vector<uint32_t> watermarks) noexcept
      : table_(std::move(table)), watermarks_(std::move(watermarks)) {}

  std::shared_ptr<const Generation> table_;  ///< Null: moved from.
  std::vector<uint32_t> watermarks_;         ///< Of each segment.
};

class Generation::Reservation {
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

  /// Records that space was taken for: all of a batch but its range deletes.
  size_t count() const noexcept { return count_; }
  /// The table was empty: it may pass the budget.
  bool is_first() const noexcept { return is_first_; }

 private:
  friend class Generation;

  std::span<Shard::Taken> records() noexcept {
    return {several_ == nullptr ? &only_ : several_.get(), count_};
  }

  size_t count_ = 0;
  bool is_first_ = false;  // was admitted because the table was empty
  Shard::Taken only_{};
  std::unique_ptr<Shard::Taken[]> several_;  // more than one record: by shard, then as they came
};

}  // namespace basalt::memtable
