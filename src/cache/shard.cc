#include "cache/shard.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "cache/core.h"
#include "cache/flight.h"
#include "cache/removal_scope.h"

namespace basalt::cache {
namespace {

// Where entries begin (docs/cache.md has what was measured): new ones at 0, or at 1 where recency
// decides; keys that were evicted too early higher.
constexpr uint8_t kFrequencyOfNew = 0;
constexpr uint8_t kFrequencyOfRecent = 1;
constexpr uint8_t kFrequencyAfterGhost = 3;
constexpr uint8_t kFrequencyAfterGhostS3 = 1;

/// A segment is split when it is expected to hold between this and twice as many entries, by a
/// number of its own, so that segments split one after the other and not all at the same size. This
/// leaves 1.1 ghosts or empty slots an entry.
constexpr uint64_t kSplitAt = 224;
/// Fewer than this are not worth a split: other keys' buckets would stay empty.
constexpr size_t kSplitLiveMin = 44;
/// Segments are joined while they hold fewer than this on the mean: two of them stay well below
/// what is split.
constexpr uint64_t kJoinBelow = 84;

/// Of a walk over the table, before it lets go of the lock at the end of a segment.
constexpr size_t kRetiredAtOnce = 256;
/// A full cache keeps this many objects of a size class free where it is in use.
constexpr uint32_t kFreeObjectsMin = 32;
/// Of the rest, a writer does so much each time.
constexpr int kDueMax = 4;
constexpr size_t kFreedMax = 4;

void ReleasePin(Value::Pin* pin) noexcept {
  auto* const entry = static_cast<Entry*>(Entry::OfPinPart(pin));
  static_cast<PinPart*>(pin)->shard->Unpin(entry);
}

}  // namespace

Shard::Shard(const Common& common)
    : index_(base::ProcessEpochs(), common.budget, common.hash_seed),
      common_(common),
      slabs_(common.budget,
             EntryHeap::BlockBytesFor(common.budget->capacity_bytes() / common.shards)),
      retired_(base::ProcessEpochs()),
      wheel_(common.budget, common.clock->CoarseMillis()),
      queue_(common.budget) {
  FitToCapacity();
}

Shard::~Shard() = default;

void Shard::FitToCapacity() noexcept {
  constexpr uint64_t kBlocksMin = 8;
  const uint64_t shard_bytes = common_.budget->capacity_bytes() / common_.shards;
  slabs_.UseHeap(shard_bytes >= kBlocksMin * slabs_.heap().block_bytes());
}

uint64_t Shard::entry_bytes() const noexcept { return slabs_.bytes() + linked_weight_; }
uint64_t Shard::index_bytes() const noexcept {
  return index_.bytes() + wheel_.bytes() + queue_.bytes();
}

Entry* Shard::Allocate(std::string_view key, size_t value_bytes, bool within_budget) noexcept {
  const bool has_pin_part = common_.destroy != nullptr || value_bytes > Value::kInlineBytes;
  const size_t bytes = Entry::ValueOffset(key.size(), has_pin_part) + value_bytes;
  void* const memory = slabs_.Allocate(bytes, within_budget);
  if (memory == nullptr) return nullptr;
  auto* const entry = new (memory) Entry{};
  entry->value_bytes = static_cast<uint32_t>(value_bytes);
  entry->key_bytes = static_cast<uint16_t>(key.size());
  entry->size_class = SlabAllocator::ClassOf(bytes) | (has_pin_part ? Entry::kHasPinPart : 0) |
                      (slabs_.IsLarge(bytes) ? Entry::kIsLarge : 0);
  char* const key_at = const_cast<char*>(entry->key().data());
  if (!key.empty()) std::memcpy(key_at, key.data(), key.size());
  if (has_pin_part) {
    char* const value = entry->value();
    std::memset(key_at + key.size(), 0, static_cast<size_t>(value - key_at) - key.size());
    auto* const part = new (entry->pin_part()) PinPart;
    part->data = value;
    part->release = ReleasePin;
    part->shard = this;
  }
  return entry;
}

// ---- Pins ----

void Shard::Unpin(Entry* entry) noexcept {
  pins_.fetch_sub(1, std::memory_order_relaxed);
  if (!entry->state.Unpin() || common_.IsInherited()) return;
  pinned_bytes_.fetch_sub(ChargedBytes(entry), std::memory_order_relaxed);
  CacheCore* const core = common_.core;
  Free(entry);
  core->DropReference();
}

void Shard::Orphan(Entry* entry) noexcept {
  // Counted first: the last pin may go at any moment from then on.
  const uint64_t bytes = ChargedBytes(entry);
  common_.core->AddReference();
  pinned_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (!entry->state.Orphan()) return;
  pinned_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  CacheCore* const core = common_.core;
  Free(entry);
  core->DropReference();
}

void Shard::Free(Entry* entry) noexcept {
  if (common_.destroy != nullptr) common_.destroy(entry->value() + kWeightBytes);
  FreeUnconstructed(entry);
}

void Shard::FreeUnconstructed(Entry* entry) noexcept {
  common_.budget->Refund(WeightOf(entry));
  if (entry->is_large()) return slabs_.FreeOwn(entry, /*is_large=*/true);
  const std::lock_guard guard(lock_);
  slabs_.Free(entry, entry->slab_class());
}

// ---- Retiring ----

void Shard::Retire(Entry* entry) noexcept {
  retired_bytes_ += ChargedBytes(entry);
  linked_weight_ -= WeightOf(entry);
  linked_bytes_ -= ChargedBytes(entry);
  retired_.Retire(entry);
}

// Objects are destroyed outside the lock, and large memory is given back there.
void Shard::FreeOrDefer(Entry* entry, Aftermath* after) noexcept {
  retired_bytes_ -= ChargedBytes(entry);
  if (entry->state.is_pinned()) {
    common_.core->AddReference();
    pinned_bytes_.fetch_add(ChargedBytes(entry), std::memory_order_relaxed);
    if (!entry->state.Orphan()) return;
    pinned_bytes_.fetch_sub(ChargedBytes(entry), std::memory_order_relaxed);
    common_.core->DropReference();  // Not the last: the caller has one.
  }
  constexpr size_t kQuickBytesMax = size_t{32} << 10;
  if (common_.destroy == nullptr &&
      (entry->slab_class() != 0 || entry->bytes() <= kQuickBytesMax)) {
    if (entry->slab_class() != 0) {
      slabs_.Free(entry, entry->slab_class());
    } else if (common_.budget->IsWithin(common_.headroom_bytes)) {
      slabs_.FreeToSpare(entry, entry->is_large());
    } else {
      slabs_.ReleaseSpares();
      slabs_.FreeOwn(entry, entry->is_large());
    }
    return;
  }
  entry->state.SetNextRetired(after->free);
  after->free = entry;
}

void Shard::Collect(Aftermath* after) noexcept {
  index_.Collect();
  if (retired_.empty()) return;
  retired_.Collect([&](Entry* entry) { FreeOrDefer(entry, after); });
}

void Shard::CollectSome(Aftermath* after) noexcept {
  retired_.CollectSome([&](Entry* entry) { FreeOrDefer(entry, after); }, kFreedMax,
                       /*scans=*/true);
}

void Shard::Finish(Aftermath* after) {
  if (after->removed_count != 0) TellRemovals(*after);
  while (after->free != nullptr) {
    Entry* const entry = after->free;
    after->free = static_cast<Entry*>(entry->state.next_retired());
    Free(entry);
  }
}

void Shard::KeepToTell(Entry* entry, Removal reason, Aftermath* after) noexcept {
  if (!common_.notifies || after->removed_count == Aftermath::kRemovedMax) return;
  entry->state.Pin();
  pins_.fetch_add(1, std::memory_order_relaxed);
  after->removed[after->removed_count++] = {entry, reason};
}

void Shard::TellRemovals(const Aftermath& after) {
  const auto tell = [](Shard* shard, Entry* entry, Removal reason) {
    shard->common_.core->Notify(*entry, reason);
    shard->Unpin(entry);
  };
  const std::span removed(after.removed.data(), after.removed_count);
  if (RemovalScope* const scope = RemovalScope::Of(common_.core)) {
    for (const auto& [entry, reason] : removed) {
      if (scope->Postpone({this, entry, reason})) {
        // It goes as soon as it was told, and does not keep the callback's own put from room.
        common_.budget->Refund(ChargedBytes(entry));
      } else {
        tell(this, entry, reason);
      }
    }
    return;
  }
  RemovalScope scope(common_.core);
  for (const auto& [entry, reason] : removed) tell(this, entry, reason);
  for (auto rest = scope.TakePostponed(); !rest.empty(); rest = scope.TakePostponed()) {
    for (const auto& [shard, entry, reason] : rest) {
      common_.budget->Charge(shard->ChargedBytes(entry));
      tell(shard, entry, reason);
    }
  }
}

// ---- Expiry ----

void Shard::File(Entry* entry, uint64_t hash, uint64_t deadline_ms) noexcept {
  if ((entry->marks & Entry::kFiled) != 0) return;
  if (wheel_.records() == 0) wheel_.SkipTo(common_.clock->CoarseMillis());
  // Where shards are small, a record may take a chunk of its own, which would leave the entries
  // nothing. A full cache of entries below 128 bytes has none for some of them: the hand meets
  // those.
  constexpr uint64_t kWheelShare = 16;
  const uint64_t bytes_max = common_.budget->capacity_bytes() / (kWheelShare * common_.shards);
  if (!wheel_.File(hash, deadline_ms, bytes_max)) return;
  entry->marks |= Entry::kFiled;
  ++filed_;
}

void Shard::FireDue(uint64_t hash, uint64_t coarse_ms, Aftermath* after) noexcept {
  const Index::Found found =
      index_.FindHash(hash, [](const Entry& entry) { return (entry.marks & Entry::kFiled) != 0; });
  if (!found) return;
  if (HasExpired(found, coarse_ms)) return Unlink(found, Removal::kExpired, after);
  --filed_;
  found.entry()->marks &= static_cast<uint8_t>(~Entry::kFiled);
  if ((found.word & Word::kExpires) == 0) return;
  uint64_t deadline_ms = 0;
  found.entry()->state.ReadDeadline(&deadline_ms);
  File(found.entry(), hash, deadline_ms);
}

bool Shard::SweepExpired(uint64_t coarse_ms, Aftermath* after) noexcept {
  const uint64_t expired_before = counts_.removals[static_cast<size_t>(Removal::kExpired)];
  uint64_t hash = 0;
  for (int i = 0; i < kDueMax && !after->is_full() && wheel_.TakeDue(coarse_ms, &hash); ++i) {
    FireDue(hash, coarse_ms, after);
  }
  if (HasManyStaleRecords()) RebuildWheel();
  return counts_.removals[static_cast<size_t>(Removal::kExpired)] != expired_before;
}

void Shard::RebuildWheel() noexcept {
  wheel_.Clear();
  filed_ = 0;
  Index::Cursor cursor;
  do {
    for (Index::AtomicWord& slot : index_.At(cursor)->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (!Word::IsLive(word)) continue;
      Entry* const entry = Index::EntryOf(word);
      entry->marks &= static_cast<uint8_t>(~Entry::kFiled);
      if ((word & Word::kExpires) == 0) continue;
      uint64_t deadline_ms = 0;
      entry->state.ReadDeadline(&deadline_ms);
      File(entry, index_.HashOf(entry->key()), deadline_ms);
    }
  } while (index_.Advance(&cursor));
}

void Shard::SetDeadline(const Index::Found& found, uint64_t hash, uint64_t deadline_ms) noexcept {
  found.entry()->state.SetDeadline(deadline_ms);
  index_.MarkExpiring(found, deadline_ms != 0);
  if (deadline_ms != 0) File(found.entry(), hash, deadline_ms);
}

// ---- Changes ----

Index::Found Shard::Find(uint64_t hash, std::string_view key, Aftermath* after) noexcept {
  Moment now(common_.clock);
  return Find(hash, key, &now, after);
}

Index::Found Shard::Find(uint64_t hash, std::string_view key, Moment* now,
                         Aftermath* after) noexcept {
  const Index::Found found = index_.Find(hash, key);
  if (!found || (found.word & Word::kExpires) == 0) return found;
  if (!HasExpired(found, now->CoarseMillis())) return found;
  Unlink(found, Removal::kExpired, after);
  return {};
}

void Shard::BeatFlight(uint64_t hash, std::string_view key) noexcept {
  for (auto it = flights_.begin(); it != flights_.end(); ++it) {
    if ((*it)->hash != hash || (*it)->key != key) continue;
    // It leaves the list, so that who comes now does not wait for a result that is out of date. Its
    // computing thread holds it.
    (*it)->is_beaten = true;
    flights_.erase(it);
    return;
  }
}

void Shard::BeatFlights() noexcept {
  for (const std::shared_ptr<Flight>& flight : flights_) flight->is_beaten = true;
  flights_.clear();
}

void Shard::Unlink(const Index::Found& found, Removal reason, Aftermath* after) noexcept {
  Entry* const entry = found.entry();
  if (reason == Removal::kDeleted && !flights_.empty()) {
    BeatFlight(index_.HashOf(entry->key()), entry->key());
  }
  index_.Remove(found, reason == Removal::kEvicted ? ++ghost_number_ : 0);
  --entries_;
  ++counts_.removals[static_cast<size_t>(reason)];
  if ((entry->marks & Entry::kFiled) != 0) --filed_;
  if ((entry->marks & Entry::kInQueue) != 0) Dequeue(entry);
  if (entries_ == 0) queue_.Clear();
  KeepToTell(entry, reason, after);
  Retire(entry);
}

void Shard::Delete(const Index::Found& found, Aftermath* after) noexcept {
  const uint64_t bytes = ChargedBytes(found.entry());
  Unlink(found, Removal::kDeleted, after);
  ResetIndexIfEmpty();
  CollectRemoved(/*is_due=*/retired_.is_due(), after);
  EmptyBlocks(bytes, /*evicted_bytes_max=*/0, after);
}

// An object may hold more than its memory (a file, say), and goes with its entry, if that does not
// happen all the time: to look at all readers costs some microseconds, twelve beside one that runs.
void Shard::CollectRemoved(bool is_due, Aftermath* after) noexcept {
  constexpr uint64_t kPauseMs = 64;
  if (common_.destroy != nullptr) {
    const uint64_t coarse_ms = common_.clock->CoarseMillis();
    if (coarse_ms >= collected_ms_ + kPauseMs) {
      collected_ms_ = coarse_ms;
      return Collect(after);
    }
  }
  if (is_due || HasMuchRetired()) CollectSome(after);
}

bool Shard::Link(Entry* entry, uint64_t hash, Condition condition, const Entry* expected,
                 Moment* now, Aftermath* after) noexcept {
  const Index::Found found = Find(hash, entry->key(), now, after);
  const bool holds = condition == Condition::kAlways ||
                     (condition == Condition::kIfAbsent && !found) ||
                     (condition == Condition::kIfPresent && found) ||
                     (condition == Condition::kIfUnchanged && found.entry() == expected);
  if (!holds) return false;
  if (!flights_.empty()) BeatFlight(hash, entry->key());
  // An update keeps the expiry that the key has now.
  if (found && condition == Condition::kIfUnchanged) {
    uint64_t kept_ms = 0;
    found.entry()->state.ReadDeadline(&kept_ms);
    entry->state.SetDeadline(kept_ms);
  }
  uint64_t deadline_ms = 0;
  entry->state.ReadDeadline(&deadline_ms);
  const uint64_t bytes = ChargedBytes(entry);
  linked_weight_ += WeightOf(entry);
  linked_bytes_ += bytes;
  bool joins_queue = false;
  if (found) {
    entry->marks = found.entry()->marks;
    if ((entry->marks & Entry::kInQueue) != 0) {
      queued_bytes_ += bytes - ChargedBytes(found.entry());
    }
    found.entry()->marks = 0;
    index_.Replace(found, entry, deadline_ms != 0);
    ++counts_.removals[static_cast<size_t>(Removal::kReplaced)];
    KeepToTell(found.entry(), Removal::kReplaced, after);
    Retire(found.entry());
  } else {
    const Index::Room room = RoomFor(hash, after);
    const uint8_t frequency = FirstFrequency(room);
    index_.Fill(room, hash, entry, deadline_ms != 0, frequency);
    ++entries_;
    ++counts_.inserts;
    joins_queue = common_.eviction == Eviction::kS3Fifo && frequency == kFrequencyOfNew;
  }
  const uint8_t size_class = entry->slab_class();
  // Room is made for the next ones, but not of this one.
  const bool makes_room = size_class != 0 && slabs_.free_objects(size_class) < kFreeObjectsMin &&
                          common_.budget->IsWithin(SlabAllocator::kSlabBytes);
  if (deadline_ms != 0) File(entry, hash, deadline_ms);
  const uint64_t coarse_ms = wheel_.records() == 0 ? 0 : now->CoarseMillis();
  const bool sweeps = wheel_.MayBeDue(coarse_ms) || HasManyStaleRecords();
  const bool is_kept = (joins_queue || makes_room || sweeps) && entry->state.TryPin();
  if (joins_queue) Enqueue(hash, entry, after);
  const bool has_swept = sweeps && SweepExpired(coarse_ms, after);
  // Ahead of need: a put then finds room at once.
  // Large entries do that where they are allocated, while memory is short.
  bool collects =
      retired_.is_due() && (size_class != 0 || !common_.budget->IsWithin(common_.headroom_bytes));
  if (makes_room) {
    collects |= retired_.young_count() >= kFreeObjectsMin;
    if (!collects && !has_swept) Evict(2 * SlabAllocator::ClassBytes(size_class), after);
  }
  // Before anything is collected: so it is not the pin that frees it, should it have expired.
  if (is_kept) entry->state.Unpin();
  if (found) {
    CollectRemoved(collects, after);
  } else if (collects) {
    CollectSome(after);
  }
  EmptyBlocks(bytes, /*evicted_bytes_max=*/0, after);
  return true;
}

std::optional<bool> Shard::PutAtOnce(uint64_t hash, std::string_view key, std::string_view value,
                                     uint64_t ttl_ms, Condition condition,
                                     Aftermath* after) noexcept {
  // Meanwhile the clock is read, which waits for loads but not for this, and the entry is written.
  __builtin_prefetch(&index_.Home(hash));
  Moment now(common_.clock);
  const uint64_t deadline_ms = DeadlineAfter(ttl_ms, &now);
  if (deadline_ms != 0) wheel_.PrefetchFor(deadline_ms);
  Entry* const entry = Allocate(key, value.size(), /*within_budget=*/true);
  if (entry == nullptr) return std::nullopt;
  entry->state.Start(deadline_ms);
  if (!value.empty()) std::memcpy(entry->value(), value.data(), value.size());
  if (Link(entry, hash, condition, nullptr, &now, after)) return true;
  if (entry->slab_class() == 0) {
    slabs_.FreeOwn(entry, entry->is_large());
  } else {
    slabs_.Free(entry, entry->slab_class());
  }
  return false;
}

uint8_t Shard::FirstFrequency(const Index::Room& room) noexcept {
  if (room.ghost_number != 0) {
    recency_.OnGhost(ghost_number_ - room.ghost_number, entries_);
    return common_.eviction == Eviction::kClock ? kFrequencyAfterGhost : kFrequencyAfterGhostS3;
  }
  // S3-FIFO has its queue for what is new: what began above it would pass it by.
  const bool is_recent = common_.eviction == Eviction::kClock && recency_.Decides();
  return is_recent ? kFrequencyOfRecent : kFrequencyOfNew;
}

Index::Found Shard::FindQueued(uint64_t hash) const noexcept {
  return index_.FindHash(hash,
                         [](const Entry& entry) { return (entry.marks & Entry::kInQueue) != 0; });
}

void Shard::Enqueue(uint64_t hash, Entry* entry, Aftermath* after) noexcept {
  if (HasManyStaleHashes()) CompactQueue();
  entry->marks |= Entry::kInQueue;
  ++queued_;
  queued_bytes_ += ChargedBytes(entry);
  if (queue_.Push(hash)) return;
  // The budget has nothing for a longer queue: its oldest makes room.
  EvictFromQueue(after);
  if (queue_.Push(hash)) return;
  // Then it goes into the main part at once.
  Dequeue(entry);
}

void Shard::Dequeue(Entry* entry) noexcept {
  entry->marks &= static_cast<uint8_t>(~Entry::kInQueue);
  --queued_;
  queued_bytes_ -= ChargedBytes(entry);
}

// A key that came and went many times stands there as often. The first of its hashes is kept: while
// it is, its entry bears no mark, so that the others do not find it.
void Shard::CompactQueue() noexcept {
  queue_.KeepIf([&](uint64_t hash) {
    const Index::Found found = FindQueued(hash);
    if (found) found.entry()->marks &= static_cast<uint8_t>(~Entry::kInQueue);
    return static_cast<bool>(found);
  });
  queue_.KeepIf([&](uint64_t hash) {
    const Index::Found found = index_.FindHash(
        hash, [](const Entry& entry) { return (entry.marks & Entry::kInQueue) == 0; });
    if (found) found.entry()->marks |= Entry::kInQueue;
    return static_cast<bool>(found);
  });
}

// Growth stops where the budget ends: then an entry of the same two buckets has to go. A full cache
// would else go on splitting, here and there, and with the ghosts that came to lie in its index
// nearly every key would seem to come back.
Index::Room Shard::RoomFor(uint64_t hash, Aftermath* after) noexcept {
  const bool is_full = common_.budget->IsWithin(2 * common_.headroom_bytes);
  if (index_.IsCrowded(hash, entries_, kSplitAt)) index_.Split(hash, kSplitLiveMin);
  for (;;) {
    const Index::Room room = index_.FindRoom(hash);
    if (room.slot != nullptr) return room;
    if (is_full || !index_.Split(hash, kSplitLiveMin)) EvictFromBucketsOf(hash, after);
  }
}

bool Shard::ShrinkIndex() noexcept {
  constexpr int kLooksMax = 64;
  constexpr int kJoinsMax = 8;
  // What a reader keeps from being freed would not be given back by more of it.
  if (index_.retired_bytes() > common_.retired_bytes_max) return false;
  int joins = 0;
  for (int looks = 0; looks < kLooksMax && joins < kJoinsMax; ++looks) {
    if (entries_ >= kJoinBelow * index_.segments()) break;
    if (index_.Join(shrinking_.hash)) {
      ++joins;
    } else {
      index_.AdvanceSegment(&shrinking_);
    }
  }
  return joins != 0;
}

bool Shard::UnlinkNext(Clearing* clearing, Removal reason, Aftermath* after) noexcept {
  Index::Cursor& cursor = clearing->cursor;
  // Since the last time another segment may have been joined with this one, and keys may have gone
  // to the other bucket of their pair. What was put into buckets that are behind stays: an
  // on_remove that puts what it hears of would else have it erased again and again.
  cursor.bucket = index_.DepthAt(cursor) < clearing->depth ? 0 : cursor.bucket & ~1U;
  do {
    for (Index::AtomicWord& slot : index_.At(cursor)->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (Word::IsLive(word)) Unlink({&slot, word}, reason, after);
    }
    if (!index_.Advance(&cursor)) {
      ResetIndexIfEmpty();
      Collect(after);
      return false;
    }
  } while (!after->is_full() && (cursor.bucket != 0 || retired_.young_count() < kRetiredAtOnce));
  clearing->depth = index_.DepthAt(cursor);
  Collect(after);
  return true;
}

void Shard::Drain(Aftermath* after) noexcept {
  Index::Cursor cursor;
  do {
    for (Index::AtomicWord& slot : index_.At(cursor)->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (!Word::IsLive(word)) continue;
      slot.store(0, std::memory_order_relaxed);
      Retire(Index::EntryOf(word));
    }
  } while (index_.Advance(&cursor));
  entries_ = 0;
  wheel_.Clear();
  retired_.Drain([&](Entry* entry) { FreeOrDefer(entry, after); });
}

}  // namespace basalt::cache
