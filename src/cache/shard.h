#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "base/coding.h"
#include "base/fork_count.h"
#include "base/spin_lock.h"
#include "cache/entry.h"
#include "cache/expiry_clock.h"
#include "cache/hash_queue.h"
#include "cache/index.h"
#include "cache/recency.h"
#include "cache/retire_queue.h"
#include "cache/slab_allocator.h"
#include "cache/timing_wheel.h"

namespace basalt::cache {

class CacheCore;
struct Flight;

using Index = BasicIndex<std::atomic, Entry>;
using RetireQueue = BasicRetireQueue<std::atomic, Entry>;

/// The weight that stands before an object.
inline constexpr size_t kWeightBytes = sizeof(uint64_t);

/// What an entry gets for a time to live, of which 0 is none.
inline uint64_t DeadlineAfter(uint64_t ttl_ms, Moment* now) noexcept {
  using State = decltype(Entry::state);
  if (ttl_ms == 0) return State::kNoDeadline;
  return std::min(now->DeadlineAfter(ttl_ms), State::kDeadlineMax);
}

/// What all shards of a cache share.
struct Common {
  CacheCore* core;
  MemoryBudget* budget;
  const ExpiryClock* clock;
  Eviction eviction;
  bool notifies;  ///< There is an on_remove.
  /// Of an object cache: destroys what lies at the value's ninth byte; its first eight are the
  /// object's weight. Null: a cache of bytes.
  void (*destroy)(void* object) noexcept;
  uint64_t hash_seed;
  uint64_t retired_bytes_max;  ///< A shard's, beyond which it evicts no more.
  uint64_t headroom_bytes;     ///< Of the whole budget, kept free for entries with own memory.
  uint32_t shards;
  uint64_t fork_count;

  /// Made by a parent process: what a thread of it was changing is left as it is.
  bool IsInherited() const noexcept { return fork_count != base::ForkCount(); }
};

/// What an operation under a shard's lock leaves to be done after it.
struct Aftermath {
  static constexpr size_t kRemovedMax = 64;
  struct Removed {
    Entry* entry;  ///< Pinned.
    Removal reason;
  };
  /// Whether a loop that removes entries has to stop here.
  bool is_full() const noexcept { return removed_count + 16 > kRemovedMax; }

  Entry* free = nullptr;  ///< Linked as if retired: no reader and no pin is left.
  size_t removed_count = 0;
  std::array<Removed, kRemovedMax> removed;
};

/// What a shard gave back of the budget.
enum class Gave : uint8_t {
  kSome,     ///< Or is about to: it made progress.
  kLater,    ///< Nothing, until readers leave.
  kNothing,  ///< All is held.
};

/// When an entry is linked.
enum class Condition : uint8_t { kAlways, kIfAbsent, kIfPresent, kIfUnchanged };

/// A part of a cache: an index with the memory, the eviction and the expiry of its entries, and one
/// lock for its writers.
///
/// Every change of what the cache holds goes through Link and Unlink, under the lock: together they
/// are the one ordered stream of the shard's changes.
class Shard {
 public:
  /// What happened here.
  struct Counts {
    uint64_t inserts = 0;
    uint64_t refused = 0;
    std::array<uint64_t, 4> removals{};  ///< By Removal.
  };

  explicit Shard(const Common& common);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  base::SpinLock& lock() noexcept { return lock_; }
  const Common& common() const noexcept { return common_; }
  Index& index() noexcept { return index_; }

  // Under the lock.

  /// Makes room for an entry and fills in all but its value. Null: there is none; MakeRoom.
  Entry* Allocate(std::string_view key, size_t value_bytes, bool within_budget) noexcept;
  /// Ahead of need, for an entry with memory of its own: while the budget ends soon, each evicts
  /// what it takes, and frees what is known to be unread.
  void MakeHeadroom(size_t bytes, Aftermath* after) noexcept;
  /// Evicts about `bytes`, in bounded steps, and frees what nobody reads any more. False: there is
  /// nothing to evict.
  bool MakeRoom(size_t bytes, uint8_t size_class, Aftermath* after) noexcept;
  /// Evicts so that some 4 KiB go back to the budget, for whoever needs them.
  Gave GiveBack(Aftermath* after) noexcept;
  /// After a change of the budget's capacity.
  void FitToCapacity() noexcept;
  /// Where entries of middle size are scattered over memory: moves some of them together. False:
  /// there is nothing to do, or it has to wait for readers, pins or room.
  bool TidyHeap(Aftermath* after) noexcept {
    if (!slabs_.heap().is_emptying() && !IsSparse()) return false;
    const bool evicts = common_.budget->IsWithin(common_.headroom_bytes);
    return EmptyBlock(evicts ? slabs_.heap().block_bytes() : 0, after).has_advanced;
  }
  /// Moves large entries that have free memory on both sides: with its neighbours, whole pages of
  /// it are free. Does some of them from the cursor on; false: it has come to the end.
  bool GatherLarge(Index::Cursor* cursor, bool* has_moved, Aftermath* after) noexcept;
  /// Puts an entry, with its deadline set, under its key. False: the condition does not hold.
  bool Link(Entry* entry, uint64_t hash, Condition condition, const Entry* expected, Moment* now,
            Aftermath* after) noexcept;
  /// Allocate and Link in one, for small values. Null: there is no room without making some.
  std::optional<bool> PutAtOnce(uint64_t hash, std::string_view key, std::string_view value,
                                uint64_t ttl_ms, Condition condition, Aftermath* after) noexcept;
  /// The live entry of a key; what has expired is removed.
  Index::Found Find(uint64_t hash, std::string_view key, Aftermath* after) noexcept;
  void Unlink(const Index::Found& found, Removal reason, Aftermath* after) noexcept;
  /// Unlink for a user who wants its memory back: frees some of what he removed before.
  void Delete(const Index::Found& found, Aftermath* after) noexcept;
  void SetDeadline(const Index::Found& found, uint64_t hash, uint64_t deadline_ms) noexcept;
  /// How far a removal of all entries has come.
  struct Clearing {
    Index::Cursor cursor;
    int depth = 0;  ///< Of the cursor's segment, when it came there.
  };
  /// Removes entries until the aftermath is full; false: it has come to the end.
  bool UnlinkNext(Clearing* clearing, Removal reason, Aftermath* after) noexcept;
  /// At the cache's end, when nobody reads any more: frees all that is not pinned.
  void Drain(Aftermath* after) noexcept;
  bool HasExpired(const Index::Found& found, uint64_t coarse_ms) const noexcept {
    if ((found.word & Word::kExpires) == 0) return false;
    uint64_t deadline_ms = 0;
    found.entry()->state.ReadDeadline(&deadline_ms);
    return common_.clock->HasCome(deadline_ms, coarse_ms);
  }
  /// The result of a computation that is under way for this key will not be kept.
  void BeatFlight(uint64_t hash, std::string_view key) noexcept;
  /// The same of all that are under way.
  void BeatFlights() noexcept;
  void CountRefused() noexcept { ++counts_.refused; }
  Counts counts() const noexcept { return counts_; }
  uint64_t entries() const noexcept { return entries_; }
  uint64_t entry_bytes() const noexcept;
  uint64_t index_bytes() const noexcept;
  uint64_t retired_bytes() const noexcept { return retired_bytes_; }
  std::vector<std::shared_ptr<Flight>>& flights() noexcept { return flights_; }

  // Without it.

  /// Tells of removals, destroys and frees.
  void Finish(Aftermath* after);
  /// An entry that nobody can reach: destroys its object and frees it.
  void Free(Entry* entry) noexcept;
  /// The same before an object was made in it.
  void FreeUnconstructed(Entry* entry) noexcept;
  bool TryPin(Entry* entry) noexcept {
    if (!entry->state.TryPin()) return false;
    pins_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void Unpin(Entry* entry) noexcept;
  /// An entry that was never linked, or is not any more, and cannot be found: leaves it to its
  /// pins, or frees it.
  void Orphan(Entry* entry) noexcept;
  uint64_t pins() const noexcept { return pins_.load(std::memory_order_relaxed); }
  uint64_t pinned_bytes() const noexcept { return pinned_bytes_.load(std::memory_order_relaxed); }
  /// Charged, with its weight.
  uint64_t ChargedBytes(const Entry* entry) const noexcept {
    return SlabAllocator::ChargedBytes(entry, entry->slab_class(), entry->is_large()) +
           WeightOf(entry);
  }
  uint64_t WeightOf(const Entry* entry) const noexcept {
    return common_.destroy == nullptr ? 0 : base::Load<uint64_t>(entry->value());
  }

 private:
  /// For on_remove, if there is one.
  void KeepToTell(Entry* entry, Removal reason, Aftermath* after) noexcept;
  void TellRemovals(const Aftermath& after);
  Index::Found Find(uint64_t hash, std::string_view key, Moment* now, Aftermath* after) noexcept;
  void Retire(Entry* entry) noexcept;
  void Collect(Aftermath* after) noexcept;
  void CollectSome(Aftermath* after) noexcept;
  /// After something was removed by name or replaced. `is_due`: so much is retired anyway.
  void CollectRemoved(bool is_due, Aftermath* after) noexcept;
  /// Whether so much was removed that writers free it though no memory is wanted.
  bool HasMuchRetired() const noexcept {
    constexpr uint64_t kShare = 4;
    return retired_bytes_ > common_.retired_bytes_max / kShare;
  }
  void FreeOrDefer(Entry* entry, Aftermath* after) noexcept;
  /// Where the wheel has no room for its record it still expires, but is not swept.
  void File(Entry* entry, uint64_t hash, uint64_t deadline_ms) noexcept;
  /// Whether something had expired.
  bool SweepExpired(uint64_t coarse_ms, Aftermath* after) noexcept;
  void FireDue(uint64_t hash, uint64_t coarse_ms, Aftermath* after) noexcept;
  /// Of entries that have gone: when they are the most, the wheel is made anew.
  bool HasManyStaleRecords() const noexcept {
    constexpr uint64_t kStaleMin = 1024;
    return wheel_.records() > 2 * filed_ + kStaleMin;
  }
  void RebuildWheel() noexcept;
  Index::Room RoomFor(uint64_t hash, Aftermath* after) noexcept;
  /// Where entries have become few: joins some segments. False: there was nothing to join.
  bool ShrinkIndex() noexcept;
  void ResetIndexIfEmpty() noexcept {
    if (entries_ == 0 && index_.Reset()) index_.Collect();
  }
  uint8_t FirstFrequency(const Index::Room& room) noexcept;
  /// S3-FIFO's small queue holds a tenth of the bytes.
  bool QueueIsOverItsShare() const noexcept {
    constexpr uint64_t kQueueShare = 10;
    return queued_bytes_ * kQueueShare > linked_bytes_;
  }
  void Enqueue(uint64_t hash, Entry* entry, Aftermath* after) noexcept;
  /// The entry goes into the main part, or away. Its hash may stay in the queue.
  void Dequeue(Entry* entry) noexcept;
  bool HasManyStaleHashes() const noexcept {
    constexpr uint64_t kStaleMin = 1024;
    return queue_.size() > 2 * queued_ + kStaleMin;
  }
  void CompactQueue() noexcept;
  Index::Found FindQueued(uint64_t hash) const noexcept;
  void EvictFromBucketsOf(uint64_t hash, Aftermath* after) noexcept;
  uint64_t Evict(uint64_t bytes, Aftermath* after) noexcept;
  uint64_t EvictFromQueue(Aftermath* after) noexcept;
  uint64_t StepHand(uint64_t coarse_ms, Aftermath* after, Index::AtomicWord** passed) noexcept;
  void PrefetchVictim() const noexcept;
  uint64_t EvictAt(Index::AtomicWord* slot, Aftermath* after) noexcept;
  bool EmptySlab(uint8_t but, bool movable, Aftermath* after) noexcept;
  bool IsSparse() const noexcept { return slabs_.heap().is_sparse(!slabs_.uses_heap()); }
  struct Emptied {
    uint64_t evicted_bytes = 0;
    bool has_advanced = false;
  };
  /// Moves some entries out of the heap's sparsest block, or evicts them: those that are not read,
  /// up to about `evicted_bytes_max`.
  Emptied EmptyBlock(uint64_t evicted_bytes_max, Aftermath* after) noexcept;
  /// Empties blocks while the heap is sparse, by steps in proportion to `bytes`; the first ones
  /// evict up to about `evicted_bytes_max`.
  uint64_t EmptyBlocks(uint64_t bytes, uint64_t evicted_bytes_max, Aftermath* after) noexcept;
  enum class Leaving : uint8_t { kMoved, kEvicted, kIsGoing, kStays, kHasNoRoom };
  Leaving LeaveBlock(Entry* entry, bool evicts, Aftermath* after) noexcept;
  bool Move(const Index::Found& found, bool within_budget = true) noexcept;

  Index index_;  // Begins with what readers need.
  const Common& common_;
  alignas(64) base::SpinLock lock_;
  SlabAllocator slabs_;
  RetireQueue retired_;
  TimingWheel wheel_;
  HashQueue queue_;
  Recency recency_;
  Index::Cursor hand_;
  size_t hand_slot_ = 0;
  Index::Cursor shrinking_;     ///< Where ShrinkIndex goes on.
  bool reopens_block_ = false;  ///< Something stays in the block that is being emptied.
  uint64_t hand_turns_ = 0;     ///< Over the whole table.
  uint64_t hand_looks_ = 0;     ///< At entries.
  uint64_t ghost_number_ = 0;   ///< Counts evictions.
  uint64_t entries_ = 0;
  uint64_t filed_ = 0;  ///< Linked entries of which the wheel has a record.
  uint64_t linked_bytes_ = 0;
  uint64_t queued_ = 0;        ///< Linked entries in the small queue.
  uint64_t queued_bytes_ = 0;  ///< Theirs.
  uint64_t retired_bytes_ = 0;
  uint64_t collected_ms_ = 0;  ///< When objects were, as soon as they were removed.
  uint64_t linked_weight_ = 0;
  Counts counts_;
  std::vector<std::shared_ptr<Flight>> flights_;
  alignas(64) std::atomic<uint64_t> pins_{0};
  std::atomic<uint64_t> pinned_bytes_{0};  ///< Of orphans.
};

/// Holds a shard's lock, and does the aftermath when it has let go of it.
class ShardGuard {
 public:
  explicit ShardGuard(Shard* shard) noexcept : shard_(shard) { shard_->lock().lock(); }
  ~ShardGuard() {
    shard_->lock().unlock();
    if (after_.free != nullptr || after_.removed_count != 0) shard_->Finish(&after_);
  }
  ShardGuard(const ShardGuard&) = delete;
  ShardGuard& operator=(const ShardGuard&) = delete;

  Aftermath* after() noexcept { return &after_; }

 private:
  Shard* const shard_;
  Aftermath after_;
};

}  // namespace basalt::cache
