#include "cache/core.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "base/arena.h"
#include "base/check.h"
#include "base/extent_pool.h"
#include "base/option_value.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "base/update_function.h"

namespace basalt::cache {

namespace {

using base::ErrorThatSays;

constexpr uint64_t kCapacityMin = uint64_t{64} << 10;
constexpr uint32_t kShardsMax = uint32_t{1} << Index::kShardBitsMax;
constexpr uint32_t kShardsDerivedMax = 64;
constexpr uint64_t kShardBytes = uint64_t{2} << 20;
/// What is evicted is free only some time later; so much of it may be on its way.
constexpr uint64_t kHeadroomShare = 512;
constexpr size_t kKeyBytesMax = UINT16_MAX;

uint32_t DerivedShards(uint64_t capacity_bytes) noexcept {
  const uint64_t wanted = std::clamp<uint64_t>(capacity_bytes / kShardBytes, 1, kShardsDerivedMax);
  return static_cast<uint32_t>(std::bit_floor(wanted));
}

Status InvalidOption(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "create a cache: " + what);
}

Status CheckOptions(const CacheOptions& options) {
  if (options.capacity_bytes < kCapacityMin) {
    return InvalidOption("capacity_bytes is " + std::to_string(options.capacity_bytes) +
                         ", and must be at least 65536");
  }
  if (options.shards > kShardsMax || (options.shards & (options.shards - 1)) != 0) {
    return InvalidOption("shards is " + std::to_string(options.shards) +
                         ", and must be a power of two up to 128, or 0 to derive it");
  }
  if (options.default_ttl.count() < 0) return InvalidOption("default_ttl is negative");
  if (options.eviction > Eviction::kS3Fifo) {
    return base::NoSuchValue("create a cache: eviction", options.eviction, "kClock or kS3Fifo");
  }
  return {};
}

Status CheckSizes(std::string_view key, size_t value_bytes) {
  if (key.size() > kKeyBytesMax) {
    return ErrorThatSays(StatusCode::kInvalidArgument, [&] {
      return "put into a cache: a key of " + std::to_string(key.size()) +
             " bytes; keys have at most 65535";
    });
  }
  if (value_bytes > UINT32_MAX) {
    return ErrorThatSays(StatusCode::kInvalidArgument, [&] {
      return "put into a cache: a value of " + std::to_string(value_bytes) +
             " bytes; values have at most 4294967295";
    });
  }
  return {};
}

Status NoRoom(std::string_view what, uint64_t bytes, const MemoryBudget& budget) noexcept {
  return ErrorThatSays(StatusCode::kResourceExhausted, [&] {
    return std::string(what) + ": no room for " + std::to_string(bytes) + " bytes in a cache of " +
           std::to_string(budget.capacity_bytes()) +
           " bytes; release values that are held, or raise capacity_bytes";
  });
}

}  // namespace

Status NoMemory() noexcept {
  return Status(StatusCode::kResourceExhausted, "use a cache: the system has no memory left");
}

// ---- Handles ----

Value EntryRef::ToValue() && {
  if (!entry_->has_pin_part()) return Value::Copy(entry_->value_view());
  Entry* const entry = Release();
  return Value::Pinned(entry->pin_part(), entry->value_bytes);
}

NewEntry::~NewEntry() {
  if (entry_ == nullptr) return;
  if (is_constructed_) {
    shard_->Free(entry_);
  } else {
    shard_->FreeUnconstructed(entry_);
  }
}

// ---- Life ----

CacheCore::CacheCore(CacheOptions options, void (*destroy)(void*) noexcept, io::Clock* clock,
                     uint32_t shards)
    : options_(std::move(options)),
      budget_(options_.capacity_bytes),
      clock_(clock),
      common_{.core = this,
              .budget = &budget_,
              .clock = &clock_,
              .eviction = options_.eviction,
              .notifies = static_cast<bool>(options_.on_remove),
              .destroy = destroy,
              .hash_seed = base::RandomSeed(),
              .retired_bytes_max =
                  std::max<uint64_t>(options_.capacity_bytes / shards / 8, uint64_t{16} << 10),
              .headroom_bytes = options_.capacity_bytes / kHeadroomShare,
              .shards = shards,
              .fork_count = base::ForkCount()},
      shard_mask_(shards - 1) {}

CacheCore::~CacheCore() = default;

void FreeShards::operator()(Shard* shards) const noexcept {
  std::destroy_n(shards, count);
  std::allocator<Shard>().deallocate(shards, capacity);
}

Result<std::shared_ptr<CacheCore>> CacheCore::Create(CacheOptions options,
                                                     void (*destroy)(void*) noexcept,
                                                     io::Clock* clock) {
  try {
    BASALT_RETURN_IF_ERROR(CheckOptions(options));
    const uint32_t shards =
        options.shards != 0 ? options.shards : DerivedShards(options.capacity_bytes);
    std::shared_ptr<CacheCore> core(new CacheCore(std::move(options), destroy, clock, shards),
                                    [](CacheCore* core) { core->DropReference(); });
    core->shards_ = {std::allocator<Shard>().allocate(shards), {.count = 0, .capacity = shards}};
    for (size_t& made = core->shards_.get_deleter().count; made < shards; ++made) {
      auto* const shard = new (&core->shards_[made]) Shard(core->common_);
      if (shard->index().Start()) continue;
      ++made;
      throw std::bad_alloc();
    }
    if (core->budget_.IsWithin(0)) {
      return InvalidOption("capacity_bytes is too small for " + std::to_string(shards) + " shards");
    }
    return core;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

void CacheCore::Close() noexcept {
  if (common_.IsInherited()) return;
  for (Shard& shard : shards()) {
    Aftermath after;
    {
      const std::lock_guard guard(shard.lock());
      shard.Drain(&after);
    }
    shard.Finish(&after);
  }
}

void CacheCore::DropReference() noexcept {
  if (common_.IsInherited()) return;
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// ---- Writes ----

Result<uint64_t> CacheCore::MillisOf(Ttl ttl) const {
  const int64_t ms = ttl.value_or(options_.default_ttl).count();
  if (ms < 0) {
    return ErrorThatSays(StatusCode::kInvalidArgument, [&] {
      return "put into a cache: the ttl is " + std::to_string(ms) +
             " ms, and must not be negative; zero means that it does not expire";
    });
  }
  return std::min(static_cast<uint64_t>(ms), decltype(Entry::state)::kDeadlineMax);
}

Status CacheCore::CheckKeyAndTtl(std::string_view key, Ttl ttl) const {
  BASALT_RETURN_IF_ERROR(CheckSizes(key, 0));
  return MillisOf(ttl).status();
}

Result<uint64_t> CacheCore::DeadlineOf(Ttl ttl) const {
  BASALT_ASSIGN_OR_RETURN(const uint64_t ttl_ms, MillisOf(ttl));
  Moment now(&clock_);
  return DeadlineAfter(ttl_ms, &now);
}

Entry* CacheCore::AllocateWithin(Shard* own, std::string_view key, size_t value_bytes) {
  const bool has_pin_part = common_.destroy != nullptr || value_bytes > Value::kInlineBytes;
  const size_t bytes = Entry::ValueOffset(key.size(), has_pin_part) + value_bytes;
  if (bytes > budget_.capacity_bytes()) return nullptr;
  {
    ShardGuard guard(own);
    const uint8_t size_class = SlabAllocator::ClassOf(bytes);
    if (size_class == 0) own->MakeHeadroom(bytes, guard.after());
    if (Entry* const entry = own->Allocate(key, value_bytes, true)) return entry;
    own->MakeRoom(bytes, size_class, guard.after());
    if (Entry* const entry = own->Allocate(key, value_bytes, true)) return entry;
  }
  // What the own shard does not give in one go, all of them give in turn.
  Asking asking{.next = next_giver_.fetch_add(1, std::memory_order_relaxed)};
  while (AskNext(&asking)) {
    ShardGuard guard(own);
    if (Entry* const entry = own->Allocate(key, value_bytes, true)) return entry;
  }
  return nullptr;
}

// Another thread may take the room that was made before it is charged here: then there is more to
// ask for, until nobody gives any more.
bool CacheCore::ChargeMakingRoom(uint64_t bytes) {
  if (bytes > budget_.capacity_bytes()) return false;
  if (budget_.TryCharge(bytes)) return true;
  Asking asking{.next = next_giver_.fetch_add(1, std::memory_order_relaxed)};
  while (AskNext(&asking)) {
    if (budget_.TryCharge(bytes)) return true;
  }
  return false;
}

bool CacheCore::ShrinkToCapacity() {
  Asking asking{.next = next_giver_.fetch_add(1, std::memory_order_relaxed)};
  while (budget_.IsWithin(0)) {
    if (!AskNext(&asking)) return false;
  }
  return true;
}

// In small pieces, so that all give alike. A reader may have lost its processor in the middle of a
// read, so it waits for readers for about 10 ms; but one may also be stopped
// for good, and then nobody waits for it twice.
bool CacheCore::AskNext(Asking* asking) {
  constexpr int kYields = 16;
  constexpr int kWaitsMax = kYields + 40;
  if (asking->refusals > shards().size()) {
    if (!asking->waits_for_readers || readers_are_stuck_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (++asking->waits > kWaitsMax) {
      readers_are_stuck_.store(true, std::memory_order_relaxed);
      return false;
    }
    if (asking->waits <= kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(250));
    }
    asking->refusals = 0;
    asking->waits_for_readers = false;
  }
  Shard* const giver = &shards()[asking->next++ % shards().size()];
  ShardGuard guard(giver);
  const Gave gave = giver->GiveBack(guard.after());
  asking->waits_for_readers |= gave == Gave::kLater;
  if (gave != Gave::kSome) {
    ++asking->refusals;
  } else {
    asking->refusals = 0;
    readers_are_stuck_.store(false, std::memory_order_relaxed);
  }
  return true;
}

Result<NewEntry> CacheCore::Allocate(std::string_view key, size_t value_bytes, Ttl ttl,
                                     uint64_t weight, bool beyond_budget) {
  BASALT_RETURN_IF_ERROR(CheckSizes(key, value_bytes));
  BASALT_ASSIGN_OR_RETURN(const uint64_t deadline_ms, DeadlineOf(ttl));
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  if (beyond_budget) {
    budget_.Charge(weight);
  } else if (weight != 0 && !ChargeMakingRoom(weight)) {
    return NoRoom("put into a cache", weight, budget_);
  }
  Entry* entry = nullptr;
  if (beyond_budget) {
    const std::lock_guard guard(shard.lock());
    entry = shard.Allocate(key, value_bytes, false);
  } else {
    entry = AllocateWithin(&shard, key, value_bytes);
  }
  if (entry == nullptr) {
    budget_.Refund(weight);
    return NoRoom("put into a cache", key.size() + value_bytes, budget_);
  }
  if (common_.destroy != nullptr) base::Store(entry->value(), weight);
  entry->state.Start(deadline_ms);
  return NewEntry(&shard, entry, hash);
}

bool CacheCore::Link(NewEntry entry, Condition condition, const Entry* expected) {
  ShardGuard guard(entry.shard());
  Moment now(&clock_);
  if (!entry.shard()->Link(entry.get(), entry.hash(), condition, expected, &now, guard.after())) {
    return false;
  }
  entry.Release();
  return true;
}

EntryRef CacheCore::LinkPinned(NewEntry entry, Condition condition) {
  BASALT_CHECK(entry.shard()->TryPin(entry.get()));
  EntryRef ref(entry.shard(), entry.get());
  Shard* const shard = entry.shard();
  bool is_linked = false;
  {
    ShardGuard guard(shard);
    Moment now(&clock_);
    is_linked = shard->Link(entry.get(), entry.hash(), condition, nullptr, &now, guard.after());
  }
  Entry* const unlinked = entry.Release();
  if (!is_linked) shard->Orphan(unlinked);
  return ref;
}

void CacheCore::Refuse(std::string_view key) {
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  {
    const std::lock_guard guard(shard.lock());
    shard.CountRefused();
  }
  Delete(key);
}

Result<bool> CacheCore::PutBytes(std::string_view key, std::string_view value, Ttl ttl,
                                 Condition condition) {
  BASALT_RETURN_IF_ERROR(CheckSizes(key, value.size()));
  BASALT_ASSIGN_OR_RETURN(const uint64_t ttl_ms, MillisOf(ttl));
  if (key.size() + value.size() <= SlabAllocator::kSmallBytesMax) {
    const uint64_t hash = HashOf(key);
    Shard& shard = ShardOf(hash);
    ShardGuard guard(&shard);
    const std::optional<bool> linked =
        shard.PutAtOnce(hash, key, value, ttl_ms, condition, guard.after());
    if (linked) return *linked;
  }
  Result<NewEntry> entry = Allocate(key, value.size(), ttl);
  if (!entry) {
    if (entry.error().code() == StatusCode::kResourceExhausted) {
      if (condition == Condition::kIfAbsent && Find(key, false)) return false;
      Refuse(key);
    }
    return entry.error();
  }
  if (!value.empty()) std::memcpy((*entry)->value(), value.data(), value.size());
  return Link(std::move(*entry), condition);
}

Result<NewEntry> CacheCore::NewBytes(std::string_view key, std::string_view value, Ttl ttl) {
  Result<NewEntry> entry = Allocate(key, value.size(), ttl);
  if (!entry && entry.error().code() == StatusCode::kResourceExhausted) {
    entry = Allocate(key, value.size(), ttl, 0, /*beyond_budget=*/true);
  }
  if (entry && !value.empty()) {
    std::memcpy((*entry)->value(), value.data(), value.size());
  }
  return entry;
}

template <class Hold>
void CacheCore::Take(std::string_view key, const Hold& hold) {
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  ShardGuard guard(&shard);
  const Index::Found found = shard.Find(hash, key, guard.after());
  shard.BeatFlight(hash, key);
  if (found && hold(&shard, found.entry())) {
    shard.Delete(found, guard.after());
  }
}

MaybeValue CacheCore::TakeBytes(std::string_view key) {
  MaybeValue value;
  Take(key, [&](Shard* shard, Entry* entry) {
    try {
      value.emplace(ValueOf{*shard, entry});
    } catch (const std::bad_alloc&) {
      return false;  // It stays.
    }
    return true;
  });
  return value;
}

EntryRef CacheCore::TakeObject(std::string_view key) {
  EntryRef ref;
  Take(key, [&](Shard* shard, Entry* entry) {
    if (!shard->TryPin(entry)) return false;
    ref = EntryRef(shard, entry);
    return true;
  });
  return ref;
}

bool CacheCore::Delete(std::string_view key) {
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  ShardGuard guard(&shard);
  const Index::Found found = shard.Find(hash, key, guard.after());
  shard.BeatFlight(hash, key);
  if (found) shard.Delete(found, guard.after());
  return static_cast<bool>(found);
}

bool CacheCore::DeleteIf(uint64_t hash, std::string_view key, const Entry* expected) {
  Shard& shard = ShardOf(hash);
  ShardGuard guard(&shard);
  const Index::Found found = shard.Find(hash, key, guard.after());
  if (found.entry() != expected) return false;
  shard.BeatFlight(hash, key);
  if (found) shard.Delete(found, guard.after());
  return true;
}

bool CacheCore::Touch(std::string_view key, std::chrono::milliseconds ttl) {
  const Result<uint64_t> deadline_ms = DeadlineOf(ttl);
  if (!deadline_ms) return false;
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  ShardGuard guard(&shard);
  const Index::Found found = shard.Find(hash, key, guard.after());
  if (found) shard.SetDeadline(found, hash, *deadline_ms);
  return static_cast<bool>(found);
}

Status CacheCore::Update(std::string_view key, const UpdateFunction& fn) {
  const auto update = [&](const Entry* present) -> Result<std::optional<NewEntry>> {
    std::optional<std::string_view> before;
    if (present != nullptr) before = present->value_view();
    EntryUpdate update(before, 0, std::nullopt);
    BASALT_RETURN_IF_ERROR(fn(update));
    const std::optional<base::UpdatedRecord> after = base::RecordOf(update, {});
    if (!after) return std::optional<NewEntry>();
    if (!after->value) return std::optional<NewEntry>();
    BASALT_ASSIGN_OR_RETURN(NewEntry entry, Allocate(key, after->value->size(), {}));
    std::memcpy(entry->value(), after->value->data(), after->value->size());
    return std::optional(std::move(entry));
  };
  // By reference, so that it takes no memory.
  return UpdateEntry(key, std::cref(update));
}

Status CacheCore::UpdateEntry(
    std::string_view key,
    const std::function<Result<std::optional<NewEntry>>(const Entry*)>& update) {
  const uint64_t hash = HashOf(key);
  for (;;) {
    bool is_refused = false;
    const EntryRef present = Find(key, false, &is_refused);
    if (is_refused) {
      return Status(StatusCode::kResourceExhausted, "update: too many handles hold the value");
    }
    BASALT_ASSIGN_OR_RETURN(std::optional<NewEntry> entry, update(present.get()));
    const bool is_done = entry ? Link(std::move(*entry), Condition::kIfUnchanged, present.get())
                               : DeleteIf(hash, key, present.get());
    if (is_done) return {};
  }
}

// ---- The whole ----

Status CacheCore::ForEach(const std::function<bool(const Entry&)>& visit) {
  std::vector<EntryRef> batch;
  for (Shard& shard : shards()) {
    Index::Cursor cursor;
    for (bool more = true; more;) {
      try {
        batch.clear();
        batch.reserve(Index::kBuckets * Index::kSlots);
        const std::lock_guard guard(shard.lock());
        const uint64_t coarse_ms = clock_.CoarseMillis();
        Index::Cursor bucket = cursor;
        do {
          for (Index::AtomicWord& slot : shard.index().At(bucket)->slots) {
            const uint64_t word = slot.load(std::memory_order_relaxed);
            if (!Word::IsLive(word)) continue;
            Entry* const entry = Index::EntryOf(word);
            if (shard.HasExpired({&slot, word}, coarse_ms)) continue;
            // Its segment was joined with one that was visited.
            if (shard.index().HashOf(entry->key()) < cursor.hash) continue;
            if (!shard.TryPin(entry)) {
              return Status(StatusCode::kResourceExhausted,
                            "visit a cache: too many handles hold one of its values");
            }
            batch.emplace_back(&shard, entry);
          }
        } while (++bucket.bucket < Index::kBuckets);
        more = shard.index().AdvanceSegment(&cursor);
      } catch (const std::bad_alloc&) {
        return NoMemory();
      }
      for (const EntryRef& ref : batch) {
        if (!visit(*ref.get())) return {};
      }
    }
  }
  return {};
}

void CacheCore::Clear() {
  for (Shard& shard : shards()) {
    {
      const std::lock_guard guard(shard.lock());
      shard.BeatFlights();
    }
    Shard::Clearing clearing;
    for (bool more = true; more;) {
      ShardGuard guard(&shard);
      more = shard.UnlinkNext(&clearing, Removal::kDeleted, guard.after());
    }
  }
}

// One that moves may leave its neighbour alone, so there are some passes.
void CacheCore::GatherLarge() {
  constexpr int kPassesMax = 4;
  bool has_moved = true;
  for (int pass = 0; pass < kPassesMax && has_moved; ++pass) {
    has_moved = false;
    for (Shard& shard : shards()) {
      Index::Cursor cursor;
      for (bool more = true; more;) {
        ShardGuard guard(&shard);
        more = shard.GatherLarge(&cursor, &has_moved, guard.after());
      }
    }
  }
}

Status CacheCore::SetCapacity(uint64_t capacity_bytes) {
  if (capacity_bytes < kCapacityMin) {
    return ErrorThatSays(StatusCode::kInvalidArgument, [&] {
      return "set a cache's capacity: " + std::to_string(capacity_bytes) +
             " bytes, and it must be at least 65536";
    });
  }
  budget_.set_capacity_bytes(capacity_bytes);
  const bool shrinks = budget_.IsWithin(0);
  const bool is_within = ShrinkToCapacity();
  for (Shard& shard : shards()) {
    for (bool more = true; more;) {
      ShardGuard guard(&shard);
      shard.FitToCapacity();
      more = shard.TidyHeap(guard.after());
    }
  }
  if (shrinks) {
    GatherLarge();
    base::ExtentPool::Process()->ReleaseFreePages();
    base::ChunkPool::Process()->ReleaseFreePages();
  }
  if (is_within) return {};
  return ErrorThatSays(StatusCode::kResourceExhausted, [&] {
    return "set a cache's capacity to " + std::to_string(capacity_bytes) +
           " bytes: what is held takes " + std::to_string(budget_.used_bytes()) +
           "; it shrinks when that is released";
  });
}

Status CacheCore::Reserve(uint64_t bytes) {
  if (!ChargeMakingRoom(bytes)) return NoRoom("reserve in a cache", bytes, budget_);
  reserved_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

void CacheCore::Unreserve(uint64_t bytes) noexcept {
  reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  budget_.Refund(bytes);
}

CacheStats CacheCore::GetStats() {
  CacheStats stats;
  for (const Lookups& lookups : lookups_) {
    stats.hits += lookups.hits.load(std::memory_order_relaxed);
    stats.misses += lookups.misses.load(std::memory_order_relaxed);
  }
  for (Shard& shard : shards()) {
    const std::lock_guard guard(shard.lock());
    const Shard::Counts counts = shard.counts();
    const auto removals = [&](Removal reason) {
      return counts.removals[static_cast<size_t>(reason)];
    };
    stats.inserts += counts.inserts;
    stats.refused += counts.refused;
    stats.evicted += removals(Removal::kEvicted);
    stats.expired += removals(Removal::kExpired);
    stats.replaced += removals(Removal::kReplaced);
    stats.erased += removals(Removal::kDeleted);
    stats.entries += shard.entries();
    stats.index_bytes += shard.index_bytes();
    stats.retired_bytes += shard.retired_bytes();
    stats.pinned_bytes += shard.pinned_bytes();
    stats.pinned_entries += shard.pins();
  }
  stats.computed = computed_.load(std::memory_order_relaxed);
  stats.reserved_bytes = reserved_bytes_.load(std::memory_order_relaxed);
  stats.capacity_bytes = budget_.capacity_bytes();
  stats.bytes = budget_.used_bytes();
  const uint64_t others =
      stats.index_bytes + stats.retired_bytes + stats.pinned_bytes + stats.reserved_bytes;
  stats.entry_bytes = stats.bytes > others ? stats.bytes - others : 0;
  stats.shards = static_cast<uint32_t>(shards().size());
  return stats;
}

void CacheCore::Notify(const Entry& entry, Removal reason) const {
  options_.on_remove(entry.key(),
                     common_.destroy == nullptr ? entry.value_view() : std::string_view(), reason);
}

}  // namespace basalt::cache
