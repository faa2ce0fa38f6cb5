#pragma once

// src/cache: the concurrent cache, which is also the block cache. Read CacheCore first, then Shard
// (shard.h), which has the operations on keys.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/epoch.h"
#include "base/short_hash.h"
#include "cache/shard.h"

namespace basalt::cache {

/// An entry that cannot go away: holds one pin of it. Move-only.
class EntryRef {
 public:
  EntryRef() noexcept = default;
  /// Takes over one pin.
  EntryRef(Shard* shard, Entry* entry) noexcept : shard_(shard), entry_(entry) {}
  EntryRef(EntryRef&& other) noexcept
      : shard_(other.shard_), entry_(std::exchange(other.entry_, nullptr)) {}
  EntryRef& operator=(EntryRef&& other) noexcept {
    std::swap(shard_, other.shard_);
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~EntryRef() {
    if (entry_ != nullptr) shard_->Unpin(entry_);
  }

  explicit operator bool() const noexcept { return entry_ != nullptr; }
  Entry* operator->() const noexcept { return entry_; }
  Entry* get() const noexcept { return entry_; }
  Shard* shard() const noexcept { return shard_; }
  /// Gives the pin away.
  Entry* Release() noexcept { return std::exchange(entry_, nullptr); }
  /// A Value of it; throws std::bad_alloc only when it has too many pins.
  Value ToValue() &&;

 private:
  Shard* shard_ = nullptr;
  Entry* entry_ = nullptr;
};

/// An entry on its way into a cache: freed unless it is linked. Move-only.
class NewEntry {
 public:
  NewEntry(Shard* shard, Entry* entry, uint64_t hash) noexcept
      : shard_(shard), entry_(entry), hash_(hash) {}
  NewEntry(NewEntry&& other) noexcept
      : shard_(other.shard_),
        entry_(std::exchange(other.entry_, nullptr)),
        hash_(other.hash_),
        is_constructed_(other.is_constructed_) {}
  NewEntry& operator=(NewEntry&& other) noexcept {
    std::swap(shard_, other.shard_);
    std::swap(entry_, other.entry_);
    std::swap(hash_, other.hash_);
    std::swap(is_constructed_, other.is_constructed_);
    return *this;
  }
  ~NewEntry();

  Entry* operator->() const noexcept { return entry_; }
  Entry* get() const noexcept { return entry_; }
  Shard* shard() const noexcept { return shard_; }
  uint64_t hash() const noexcept { return hash_; }
  Entry* Release() noexcept { return std::exchange(entry_, nullptr); }
  /// An object is in it: from now on it is destroyed with the entry.
  void SetConstructed() noexcept { is_constructed_ = true; }

 private:
  Shard* shard_;
  Entry* entry_;
  uint64_t hash_;
  bool is_constructed_ = false;
};

/// Ends an array of shards.
struct FreeShards {
  size_t count = 0;     ///< Made.
  size_t capacity = 0;  ///< Allocated.
  void operator()(Shard* shards) const noexcept;
};

/// Becomes a Value in the place where that is wanted: pinned already, or short. Inside an epoch.
struct HandedOut {
  Value::Pin* pin;
  const char* bytes;
  size_t size;
  // NOLINTNEXTLINE(google-explicit-constructor): that is what it is for
  [[gnu::always_inline]] operator Value() const noexcept {
    if (pin != nullptr) return Value::Pinned(pin, size);
    if (size > Value::kInlineBytes) __builtin_unreachable();
    return Value::Copy({bytes, size});
  }
};

/// Becomes the Value of an entry in the place where that is wanted. Inside an epoch.
struct ValueOf {
  Shard& shard;
  Entry* entry;
  // NOLINTNEXTLINE(google-explicit-constructor): that is what it is for
  operator Value() const {
    if (entry->has_pin_part() && shard.TryPin(entry)) {
      return Value::Pinned(entry->pin_part(), entry->value_bytes);
    }
    return Value::Copy(entry->value_view());
  }
};

/// Of everything that finds no memory.
Status NoMemory() noexcept;

/// What Cache and TypedCache stand on: entries with keys of bytes, and values of bytes or objects.
///
/// Lives until the handle that Create gave and all orphaned entries with pins are gone.
class CacheCore {
 public:
  using Ttl = std::optional<std::chrono::milliseconds>;

  /// `clock`: for tests; null: the machine's. `destroy`: see Common.
  static Result<std::shared_ptr<CacheCore>> Create(CacheOptions options,
                                                   void (*destroy)(void*) noexcept = nullptr,
                                                   io::Clock* clock = nullptr);
  ~CacheCore();
  CacheCore(const CacheCore&) = delete;
  CacheCore& operator=(const CacheCore&) = delete;

  /// Frees all entries that are not pinned. Nothing else may be called afterwards.
  void Close() noexcept;
  void AddReference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void DropReference() noexcept;

  // Reads.
  /// Inline in its two callers. How long hits take is a matter of how far the processor sees ahead
  /// from the cache misses of one to those of the next: so the way of the most frequent one is some
  /// hundred instructions that call nothing, and all else stands elsewhere.
  template <bool kCounts>
  MaybeValue Get(std::string_view key) noexcept;
  Status MultiGet(std::span<const std::string_view> keys, std::span<MaybeValue> values);
  /// Calls `visit(Shard*, Entry*)` inside an epoch; it must not throw. See visit.h.
  template <class Visitor>
  bool Visit(std::string_view key, const Visitor& visit) noexcept;
  /// `is_refused`: set when the entry may be there, but cannot be pinned.
  EntryRef Find(std::string_view key, bool counts, bool* is_refused = nullptr) noexcept;

  // Writes.
  /// Room for a value. InvalidArgument or ResourceExhausted, which says what is missing.
  /// `beyond_budget`: only the system's memory can be missing.
  Result<NewEntry> Allocate(std::string_view key, size_t value_bytes, Ttl ttl, uint64_t weight = 0,
                            bool beyond_budget = false);
  bool Link(NewEntry entry, Condition condition, const Entry* expected = nullptr);
  /// Links under `condition`, and gives the entry, pinned, whether it was linked or not.
  EntryRef LinkPinned(NewEntry entry, Condition condition);
  /// Bytes, to be linked; beyond the budget where that has no room.
  Result<NewEntry> NewBytes(std::string_view key, std::string_view value, Ttl ttl);
  Result<bool> PutBytes(std::string_view key, std::string_view value, Ttl ttl, Condition condition);
  bool Delete(std::string_view key);
  MaybeValue TakeBytes(std::string_view key);
  /// Nothing, and the object stays, when it has too many pins.
  EntryRef TakeObject(std::string_view key);
  bool Touch(std::string_view key, std::chrono::milliseconds ttl);
  Status Update(std::string_view key, const UpdateFunction& fn);
  /// `update` gets the present entry or null, and gives the one that replaces it; none: it is
  /// erased.
  Status UpdateEntry(std::string_view key,
                     const std::function<Result<std::optional<NewEntry>>(const Entry*)>& update);
  /// `compute` gives an entry for the key, with this time to live.
  Result<EntryRef> GetOrCompute(std::string_view key, Ttl ttl,
                                const std::function<Result<NewEntry>()>& compute);
  void Refuse(std::string_view key);

  // The whole.
  Status ForEach(const std::function<bool(const Entry&)>& visit);
  void Clear();
  Status SetCapacity(uint64_t capacity_bytes);
  Status Reserve(uint64_t bytes);
  void Unreserve(uint64_t bytes) noexcept;
  CacheStats GetStats();

  void Notify(const Entry& entry, Removal reason) const;
  MemoryBudget* budget() noexcept { return &budget_; }

 private:
  /// Lookups of one thread, or of all that come late; a cache line.
  struct alignas(64) Lookups {
    std::atomic<uint64_t> hits{0};
    std::atomic<uint64_t> misses{0};
    std::atomic<uint8_t> nowhere{0};  ///< See Index::Raise.
  };
  /// Threads with a smaller number have one for themselves.
  static constexpr size_t kOwnLookups = 63;
  /// No one else writes it: a locked instruction is not needed.
  static void AddToOwn(std::atomic<uint64_t>* counter, uint64_t count) noexcept {
    counter->store(counter->load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }

  CacheCore(CacheOptions options, void (*destroy)(void*) noexcept, io::Clock* clock,
            uint32_t shards);

  [[gnu::always_inline]] uint64_t HashOf(std::string_view key) const noexcept {
    return base::HashShort(key, common_.hash_seed);
  }
  Shard& ShardOf(uint64_t hash) noexcept { return shards_[Index::ShardBits(hash) & shard_mask_]; }
  std::span<Shard> shards() noexcept { return {shards_.get(), shards_.get_deleter().count}; }
  /// Get of a key of such a size.
  template <bool kCounts, size_t kKeyBytesMin, size_t kKeyBytesMax>
  MaybeValue GetQuickly(std::string_view key) noexcept;
  /// Get of a key of any other size.
  template <bool kCounts>
  MaybeValue GetOther(std::string_view key) noexcept;
  /// GetQuickly of an entry that expires, from the glance on. Inside a suspended guard of a thread
  /// that has lookups of its own.
  template <bool kCounts, size_t kKeyBytesMin, size_t kKeyBytesMax>
  MaybeValue GetExpiring(std::string_view key, uint64_t word,
                         std::atomic<uint8_t>* frequency) noexcept;
  /// The rest of Get after a glance that did not lead to the most frequent hit: of an entry that
  /// expires or can be pinned, that is another key's, or away. Inside a suspended guard.
  template <bool kCounts>
  MaybeValue GetAtGlance(std::string_view key, uint64_t word,
                         std::atomic<uint8_t>* frequency) noexcept;
  /// Get of what is not in its home bucket, of a longer key, or where the epoch has to be entered
  /// with care.
  template <bool kCounts>
  MaybeValue GetSlowly(std::string_view key) noexcept;
  /// Whether the slot's entry is the key's, is alive, and can be handed out at once: a large value
  /// could be pinned, and is. Inside an epoch.
  bool HandOut(uint64_t word, std::string_view key, Moment* now, HandedOut* out) noexcept;
  /// Of an entry with a deadline. False too: it was unlinked meanwhile.
  bool IsAlive(const Entry& entry, Moment* now) const noexcept {
    uint64_t deadline_ms = 0;
    if (!entry.state.ReadDeadline(&deadline_ms)) return false;
    return deadline_ms == 0 || !clock_.HasCome(deadline_ms, now->CoarseMillis());
  }
  /// MultiGet of one of them, where a glance does not do. Inside an epoch.
  bool FindValue(std::string_view key, uint64_t hash, MaybeValue* value) noexcept;
  // Inside the epoch of a guard, whose thread_number this is.
  void Count(uint32_t thread, uint64_t hits, uint64_t misses) noexcept;
  /// Null: the thread has come late and has none for itself.
  Lookups* OwnLookups(uint32_t thread) noexcept {
    return thread < kOwnLookups ? &lookups_[thread] : nullptr;
  }
  /// For Index::Raise: in a line that is about to be written anyway.
  std::atomic<uint8_t>* Nowhere(uint32_t thread) noexcept {
    return &lookups_[std::min<size_t>(thread, kOwnLookups)].nowhere;
  }
  /// The entry of a key, where a glance does not do; null: it has none. Counts. Inside the epoch of
  /// a guard, whose thread_number this is.
  Entry* FindCounted(uint64_t hash, std::string_view key, uint32_t thread) noexcept;
  /// Whether the entry is the key's and alive. Inside an epoch.
  bool IsAt(const Index::Glance& glance, std::string_view key) const noexcept;
  /// Inside an epoch.
  Index::Found FindAlive(Shard& shard, uint64_t hash, std::string_view key, bool counts) noexcept;
  /// 0: it does not expire.
  Result<uint64_t> MillisOf(Ttl ttl) const;
  Result<uint64_t> DeadlineOf(Ttl ttl) const;
  Status CheckKeyAndTtl(std::string_view key, Ttl ttl) const;
  Entry* AllocateWithin(Shard* own, std::string_view key, size_t value_bytes);
  /// Charges what is not an entry, and evicts until there is room for it.
  bool ChargeMakingRoom(uint64_t bytes);
  /// Evicts until no more is charged than the capacity.
  bool ShrinkToCapacity();
  /// After that: moves large entries that lie alone in free memory together.
  void GatherLarge();
  /// A round of the shards, which are asked to give back.
  struct Asking {
    uint32_t next;
    size_t refusals = 0;  ///< One after the other.
    bool waits_for_readers = false;
    int waits = 0;
  };
  /// False: it leads nowhere.
  bool AskNext(Asking* asking);
  /// Null: there is none.
  Result<EntryRef> FindPinnedLocked(Shard& shard, uint64_t hash, std::string_view key,
                                    Aftermath* after);
  static Result<EntryRef> Await(Flight* flight);
  Result<EntryRef> Compute(const std::shared_ptr<Flight>& flight,
                           const std::function<Result<NewEntry>()>& compute);
  /// Removes the entry if `hold(shard, entry)`, which keeps it, gives true.
  template <class Hold>
  void Take(std::string_view key, const Hold& hold);
  bool DeleteIf(uint64_t hash, std::string_view key, const Entry* expected);

  const CacheOptions options_;
  MemoryBudget budget_;
  const ExpiryClock clock_;
  Common common_;
  const uint32_t shard_mask_;  ///< Of as many shards less one.
  std::unique_ptr<Shard[], FreeShards> shards_;
  std::atomic<uint64_t> references_{1};
  std::atomic<uint64_t> reserved_bytes_{0};
  std::atomic<uint64_t> computed_{0};
  std::atomic<uint32_t> next_giver_{0};
  std::atomic<bool> readers_are_stuck_{false};
  std::array<Lookups, kOwnLookups + 1> lookups_;
};

[[gnu::always_inline]] inline bool CacheCore::HandOut(uint64_t word, std::string_view key,
                                                      Moment* now, HandedOut* out) noexcept {
  if (!Word::IsLive(word)) return false;
  Entry* const entry = Index::EntryOf(word);
  if (entry->key_bytes != key.size()) return false;
  if ((word & Word::kExpires) != 0 && !IsAlive(*entry, now)) return false;
  if (entry->has_pin_part()) {
    if (!SameBytes({entry->KeyAt(true), key.size()}, key)) return false;
    if (!entry->pin_part()->shard->TryPin(entry)) return false;
    *out = {.pin = entry->pin_part(), .bytes = nullptr, .size = entry->value_bytes};
  } else {
    if (!SameBytes({entry->KeyAt(false), key.size()}, key)) return false;
    *out = {.pin = nullptr, .bytes = entry->ValueAt(key.size(), false), .size = entry->value_bytes};
  }
  return true;
}

[[gnu::always_inline]] inline void CacheCore::Count(uint32_t thread, uint64_t hits,
                                                    uint64_t misses) noexcept {
  if (thread >= kOwnLookups) [[unlikely]] {
    lookups_.back().hits.fetch_add(hits, std::memory_order_relaxed);
    lookups_.back().misses.fetch_add(misses, std::memory_order_relaxed);
    return;
  }
  Lookups& own = lookups_[thread];
  if (hits != 0) AddToOwn(&own.hits, hits);
  if (misses != 0) AddToOwn(&own.misses, misses);
}

template <bool kCounts, size_t kKeyBytesMin, size_t kKeyBytesMax>
[[gnu::always_inline]] inline MaybeValue CacheCore::GetQuickly(std::string_view key) noexcept {
  if (key.size() < kKeyBytesMin || key.size() > kKeyBytesMax) __builtin_unreachable();
  base::QuickEpochGuard guard;
  if (!guard) [[unlikely]]
    return GetSlowly<kCounts>(key);
  const uint64_t hash = HashOf(key);
  const Index::Glance glance = Index::GlanceAt(ShardOf(hash).index().Home(hash), hash);
  if (glance.is_absent) {
    if (kCounts) Count(guard.thread_number(), 0, 1);
    return std::nullopt;
  }
  Lookups* const own = OwnLookups(guard.thread_number());
  if (own == nullptr || !Word::IsLiveForGood(glance.word)) [[unlikely]] {
    guard.Suspend();
    if (own != nullptr && Word::IsLive(glance.word)) {
      return GetExpiring<kCounts, kKeyBytesMin, kKeyBytesMax>(key, glance.word, glance.frequency);
    }
    return GetAtGlance<kCounts>(key, glance.word, glance.frequency);
  }
  // Before it is known that the entry is the key's, which takes a cache miss: a store behind that
  // would hold back the lookups that follow, and hits take half as long again. So one in some ten
  // thousand raises another key, which has the same tag.
  if (kCounts) Index::Raise(glance.frequency, &own->nowhere);
  const Entry* const entry = Index::EntryOf(glance.word);
  if (entry->key_bytes != key.size() || entry->has_pin_part() ||
      !SameBytes({entry->KeyAt(false), key.size()}, key)) [[unlikely]] {
    guard.Suspend();
    return GetAtGlance<kCounts>(key, glance.word, &own->nowhere);
  }
  if (kCounts) AddToOwn(&own->hits, 1);
  return MaybeValue(std::in_place, HandedOut{.pin = nullptr,
                                             .bytes = entry->ValueAt(key.size(), false),
                                             .size = entry->value_bytes});
}

template <bool kCounts>
[[gnu::always_inline]] inline MaybeValue CacheCore::Get(std::string_view key) noexcept {
  // Where hash and comparison are a few instructions without a branch.
  if (key.size() > 8 && key.size() <= 16) [[likely]]
    return GetQuickly<kCounts, 9, 16>(key);
  return GetOther<kCounts>(key);
}

inline bool CacheCore::IsAt(const Index::Glance& glance, std::string_view key) const noexcept {
  Moment now(&clock_);
  const Entry* const entry = glance.candidate();
  return entry != nullptr && entry->key_bytes == key.size() && SameBytes(entry->key(), key) &&
         ((glance.word & Word::kExpires) == 0 || IsAlive(*entry, &now));
}

template <class Visitor>
bool CacheCore::Visit(std::string_view key, const Visitor& visit) noexcept {
  const uint64_t hash = HashOf(key);
  Shard& shard = ShardOf(hash);
  {
    const base::QuickEpochGuard guard;
    if (guard) [[likely]] {
      const Index::Glance glance = Index::GlanceAt(shard.index().Home(hash), hash);
      if (glance.is_absent) {
        Count(guard.thread_number(), 0, 1);
        return false;
      }
      if (IsAt(glance, key)) [[likely]] {
        Index::Raise(glance.frequency, Nowhere(guard.thread_number()));
        Count(guard.thread_number(), 1, 0);
        visit(&shard, glance.candidate());
        return true;
      }
    }
  }
  try {
    const base::EpochGuard guard;
    // Most often inside another guard: what lies in its home bucket is found as quickly.
    const Index::Glance glance = Index::GlanceAt(shard.index().Home(hash), hash);
    if (IsAt(glance, key)) [[likely]] {
      Index::Raise(glance.frequency, Nowhere(guard.thread_number()));
      Count(guard.thread_number(), 1, 0);
      visit(&shard, glance.candidate());
      return true;
    }
    Entry* const entry = FindCounted(hash, key, guard.thread_number());
    if (entry != nullptr) visit(&shard, entry);
    return entry != nullptr;
  } catch (const std::bad_alloc&) {
    return false;  // A cache may always miss.
  }
}

}  // namespace basalt::cache
