#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "basalt/status.h"
#include "basalt/store.h"
#include "basalt/value.h"

// The cache: bytes or objects in memory, within a budget of bytes. Read Cache first, then
// TypedCache for objects. docs/cache.md explains it.

namespace basalt {

class Cache;
template <class V>
class Pinned;
template <class K, class V>
class TypedCache;

namespace cache {
class CacheCore;
class Shard;
struct Entry;
CacheCore& CoreOf(const Cache& cache) noexcept;
}  // namespace cache

/// Which entries are evicted first when memory is short.
enum class Eviction : uint8_t {
  /// CLOCK over the hash table. A hit raises the entry's frequency; the clock hand lowers it and
  /// evicts entries at zero. A key that returns soon after its eviction is recognised and kept
  /// longer. Takes no extra memory.
  kClock = 0,
  /// S3-FIFO (Yang et al., SOSP 2023). New entries pass through a small queue; only entries that
  /// are read again there move to the main part. It has fewer misses if many keys are read once. An
  /// entry takes 8 bytes more while it is in the queue.
  kS3Fifo = 1,
};

/// Why an entry was removed.
enum class Removal : uint8_t {
  kEvicted = 0,   ///< To make room.
  kExpired = 1,   ///< Its time to live has passed.
  kReplaced = 2,  ///< By a newer value.
  kDeleted = 3,   ///< By Delete, Take, Update or Clear; or its replacement found no room.
};

/// Options of a cache. The defaults need no tuning.
struct CacheOptions {
  /// The most memory that the cache may take: entries, index, and entries that readers still hold.
  /// At least 64 KiB.
  uint64_t capacity_bytes = uint64_t{64} << 20;
  /// The number of shards, each with its own writer lock. A power of two up to 128. 0: derived from
  /// the capacity.
  uint32_t shards = 0;
  /// The time to live of entries that are put without one. Zero: they do not expire.
  std::chrono::milliseconds default_ttl{0};
  Eviction eviction = Eviction::kClock;
  /// Called for every removed entry with its key and value, after the removal, on the thread that
  /// removed it, outside all locks. The value is empty for a TypedCache. Not called for the entries
  /// that are left when the cache is destroyed. The callback may use the cache and must not throw.
  /// Removals caused by the callback itself are reported after it returns. A callback that puts an
  /// entry for every eviction therefore never ends if these puts evict again.
  std::function<void(std::string_view key, std::string_view value, Removal)> on_remove{};
};

/// Statistics of a cache. They are read one after the other while the cache is in use. Each is
/// correct, but they may belong to slightly different moments.
struct CacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t inserts = 0;  ///< Of new keys.
  uint64_t evicted = 0;
  uint64_t expired = 0;
  uint64_t replaced = 0;
  uint64_t erased = 0;
  uint64_t refused = 0;   ///< Puts that found no room, conditional ones included.
  uint64_t computed = 0;  ///< Times that GetOrCompute called its function.
  uint64_t entries = 0;
  uint64_t capacity_bytes = 0;
  uint64_t bytes = 0;  ///< All bytes that are charged: the sum of the five below.
  uint64_t entry_bytes =
      0;  ///< Entries, free slots of their slabs, and the weight of typed entries.
  uint64_t index_bytes = 0;     ///< Buckets, directories, queues, expiry records.
  uint64_t retired_bytes = 0;   ///< Replaced or removed entries that may still be read.
  uint64_t pinned_bytes = 0;    ///< Removed entries that a Value or Pinned holds.
  uint64_t reserved_bytes = 0;  ///< By Reserve.
  uint64_t pinned_entries = 0;  ///< Handles (Value, Pinned) that hold an entry now.
  uint32_t shards = 0;

  /// Hits divided by lookups, 0 to 1. 0 before the first lookup.
  double hit_ratio() const noexcept;
  /// The statistics in Prometheus' text format. Each name begins with `prefix` and '_'. A character
  /// of the prefix that a name cannot contain becomes '_'. Allowed are ASCII letters, digits, '_'
  /// and ':'. A prefix that begins with a digit gets a '_' before it.
  std::string ToPrometheus(std::string_view prefix = "basalt_cache") const;
};

/// Options of a put.
struct CachePutOptions {
  /// Unset: the cache's default. Zero: it does not expire. Negative: InvalidArgument.
  std::optional<std::chrono::milliseconds> ttl{};
};

/// An amount of the cache's capacity that is reserved for memory outside the cache. The destructor
/// returns it, and may run after the cache's destructor. Move-only.
class CacheReservation {
 public:
  CacheReservation() noexcept = default;
  CacheReservation(CacheReservation&& other) noexcept;
  CacheReservation& operator=(CacheReservation&& other) noexcept;
  ~CacheReservation();
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  friend class Cache;
  CacheReservation(std::shared_ptr<cache::CacheCore> core, uint64_t bytes) noexcept;
  std::shared_ptr<cache::CacheCore> core_;
  uint64_t bytes_ = 0;
};

/// Space for one value that the caller fills in place, for example by a read from a file. Publish
/// puts it into the cache. Without Publish the cache does not change. Move-only. Used by one thread
/// at a time, and not after the cache is destroyed. After fork() the child may only destroy it.
class CacheAllocation {
 public:
  CacheAllocation(CacheAllocation&& other) noexcept;
  CacheAllocation& operator=(CacheAllocation&& other) noexcept;
  ~CacheAllocation();

  /// The bytes of the value, to be filled; aligned to 8.
  std::span<char> bytes() & noexcept;
  /// Puts the value into the cache, in place of the key's old value, and returns it pinned. Cannot
  /// fail: if the cache has no room for its index slot, the value is returned but not cached.
  Value Publish() &&;

 private:
  friend class Cache;
  CacheAllocation(cache::Shard* shard, cache::Entry* entry, uint64_t hash) noexcept;
  cache::Shard* shard_;
  cache::Entry* entry_;
  uint64_t hash_;
};

/// A concurrent cache of bytes. Keys have up to 65,535 bytes, values up to 4 GiB - 1. A budget of
/// bytes covers all memory that the cache allocates. Expiry is exact to the millisecond.
///
/// Thread-safe: all functions may be called from any thread. Destroy the cache only when no call is
/// running. Returned values stay valid and unchanged until they are destroyed, even if the cache
/// changes or is destroyed. Each operation on a key is atomic. A read never returns a value that
/// was overwritten, deleted or expired before the read began. When memory runs out, puts return
/// ResourceExhausted and reads miss. After fork() the child may create caches of its own. It may
/// only destroy its parent's caches, which does nothing, and may read values that it received
/// before the fork.
///
/// Cost: a hit takes two cache misses (a bucket, then the entry). It takes no lock, allocates
/// nothing, and writes only if the entry's frequency is below 3. A value above Value::kInlineBytes
/// also counts a pin. Writers hold their shard's lock for several hundred nanoseconds; they evict
/// as much as they need, in bounded steps. There are no background threads. An entry takes its key,
/// its value and 16 bytes (40 for values above Value::kInlineBytes), rounded up to its size class.
/// Its index slot takes about 24 bytes, and 8 more if it expires.
///
/// docs/cache.md explains how it works.
class Cache {
 public:
  /// InvalidArgument: an option is out of range; the message names it. ResourceExhausted: there is
  /// no memory for the first shards.
  static Result<std::unique_ptr<Cache>> Create(CacheOptions options = {});
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Sets the value of `key`. InvalidArgument: a key, value or TTL is out of range; the old value
  /// stays. ResourceExhausted: the value is larger than the cache, or the memory that cannot be
  /// evicted leaves no room. Such memory is pinned, reserved, or may be seen by a thread that
  /// stopped in the middle of a read. The old value is then deleted, so that it is not mistaken for
  /// the new one.
  Status Put(std::string_view key, std::string_view value, const CachePutOptions& options = {});
  /// Puts only if the key is absent. Returns whether it did.
  Result<bool> PutIfAbsent(std::string_view key, std::string_view value,
                           const CachePutOptions& options = {});
  /// Puts only if the key is present. Returns whether it did.
  Result<bool> Replace(std::string_view key, std::string_view value,
                       const CachePutOptions& options = {});

  /// The value, or nothing. Counts a hit or a miss. A hit makes the entry stay longer.
  MaybeValue Get(std::string_view key);
  /// Like Get, but counts nothing and does not make the entry stay longer.
  MaybeValue Peek(std::string_view key) const;
  /// Looks up many keys and overlaps their cache misses. With 16 keys or more it is two to five
  /// times as fast as single Gets, depending on the processor. `values[i]` is the answer for
  /// `keys[i]`. The lookups are not one atomic step. InvalidArgument: the spans differ in length.
  Status MultiGet(std::span<const std::string_view> keys, std::span<MaybeValue> values);

  /// Removes the key and returns its value.
  MaybeValue Take(std::string_view key);
  /// Removes the key. Returns whether it was present.
  bool Delete(std::string_view key);
  /// Gives the entry a new time to live, counted from now. Zero: it does not expire. False: the key
  /// is absent, or `ttl` is negative.
  bool Touch(std::string_view key, std::chrono::milliseconds ttl);

  /// Reads, computes and writes one key in one atomic step. The expiry stays. `fn` runs outside all
  /// locks, and runs again if another writer changed the key meanwhile.
  Status Update(std::string_view key, const UpdateFunction& fn);

  /// Returns the value; if the key is absent, computes it with `fn` and keeps it. If several
  /// threads miss a key at once, one computes and the others wait for its result. A concurrent Put
  /// or Delete of the key, or a Clear, wins: the waiting threads get the computed result, but it is
  /// not kept. An error reaches all of them and is not kept. A result that finds no room is
  /// returned but not kept; it may exceed the capacity while it is held. FailedPrecondition: `fn`
  /// asks for the same key again. ResourceExhausted: no memory is left, or 31,744 handles hold the
  /// value already. InvalidArgument: a key or TTL is out of range, and `fn` was not called; or the
  /// result is too large. Two functions that wait for each other's keys never end.
  Result<Value> GetOrCompute(std::string_view key, const std::function<Result<std::string>()>& fn,
                             const CachePutOptions& options = {});

  /// Allocates space for a value of `size` bytes that the caller fills in place. ResourceExhausted:
  /// as for Put, but the old value stays.
  Result<CacheAllocation> Allocate(std::string_view key, size_t size,
                                   const CachePutOptions& options = {});

  /// Calls `visit` for every entry, until it returns false. Entries that are present during the
  /// whole call are visited exactly once; others at most once. `visit` runs outside all locks and
  /// may use the cache. ResourceExhausted: there is no memory for the next entries, or 31,744
  /// handles hold one of them.
  Status ForEach(const std::function<bool(std::string_view key, std::string_view value)>& visit);

  /// Removes all entries, one shard after the other.
  void Clear();
  /// Changes capacity_bytes and evicts down to it. ResourceExhausted: held entries keep more memory
  /// than that; the new capacity applies nevertheless. InvalidArgument: below 64 KiB.
  Status SetCapacity(uint64_t capacity_bytes);
  /// Reserves `bytes` of the capacity for memory outside the cache, and evicts entries to make
  /// room.
  Result<CacheReservation> Reserve(uint64_t bytes);

  CacheStats GetStats() const;

 private:
  friend cache::CacheCore& cache::CoreOf(const Cache& cache) noexcept;
  explicit Cache(std::shared_ptr<cache::CacheCore> core) noexcept;
  std::shared_ptr<cache::CacheCore> core_;
};

namespace cache {

/// Holds an object in a cache. For Pinned only.
class ObjectPin {
 public:
  ObjectPin() noexcept = default;
  ObjectPin(ObjectPin&& other) noexcept { Swap(&other); }
  ObjectPin& operator=(ObjectPin&& other) noexcept {
    Swap(&other);
    return *this;
  }
  ~ObjectPin();

 private:
  template <class V>
  friend class basalt::Pinned;
  friend class ObjectCache;
  ObjectPin(Shard* shard, Entry* entry) noexcept;
  void Swap(ObjectPin* other) noexcept {
    std::swap(shard_, other->shard_);
    std::swap(entry_, other->entry_);
    std::swap(object_, other->object_);
  }

  Shard* shard_ = nullptr;
  Entry* entry_ = nullptr;
  const void* object_ = nullptr;
};

/// The part of TypedCache that does not depend on its types. For TypedCache only.
class ObjectCache {
 public:
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;
  ~ObjectCache();

 private:
  template <class K, class V>
  friend class basalt::TypedCache;

  /// An object that will be moved into the cache.
  struct Source {
    void* object;
    size_t bytes;
    size_t weight;
    void (*move)(void* to, void* from) noexcept;
  };
  enum class When : uint8_t { kAlways, kIfAbsent, kIfPresent };

  explicit ObjectCache(std::shared_ptr<CacheCore> core) noexcept;
  static Result<std::shared_ptr<CacheCore>> CreateCore(CacheOptions options,
                                                       void (*destroy)(void*) noexcept);

  Result<bool> Put(std::string_view key, const Source& source, const CachePutOptions& options,
                   When when);
  /// `update` gets the present object, or null.
  Status Update(std::string_view key,
                const std::function<Result<std::optional<Source>>(const void* present)>& update);
  ObjectPin Get(std::string_view key, bool counts) const;
  ObjectPin Take(std::string_view key);
  bool Delete(std::string_view key);
  bool Touch(std::string_view key, std::chrono::milliseconds ttl);
  Result<ObjectPin> GetOrCompute(std::string_view key,
                                 const std::function<Result<Source>()>& compute,
                                 const CachePutOptions& options);
  Status ForEach(const std::function<bool(std::string_view key, const void* object)>& visit);
  void Clear();
  Status SetCapacity(uint64_t capacity_bytes);
  CacheStats GetStats() const;

  std::shared_ptr<CacheCore> core_;
};

}  // namespace cache

/// An object in a TypedCache. It stays valid and unchanged while the Pinned lives, even after the
/// cache is destroyed. Empty if the key was absent. Move-only.
template <class V>
class Pinned {
 public:
  Pinned() noexcept = default;

  explicit operator bool() const noexcept { return pin_.object_ != nullptr; }
  /// Deleted for a temporary, whose object may be destroyed with it.
  const V* get() const& noexcept { return static_cast<const V*>(pin_.object_); }
  const V& operator*() const& noexcept { return *get(); }
  const V* operator->() const& noexcept { return get(); }
  const V* get() const&& = delete;
  const V& operator*() const&& = delete;
  const V* operator->() const&& = delete;

 private:
  template <class K, class W>
  friend class TypedCache;
  explicit Pinned(cache::ObjectPin pin) noexcept : pin_(std::move(pin)) {}

  cache::ObjectPin pin_;
};

/// A concurrent cache of objects. It is a Cache whose values have type V. An object is constructed
/// once and shared by all handles. It is destroyed, on any thread and outside all locks, when it
/// has left the cache and the last Pinned is gone. After Delete, Take, Clear or a replacing Put
/// this happens at once if no thread is in the middle of a read, but at most every 64 ms in a
/// shard. Otherwise, and after an eviction, later writes destroy it.
///
/// K is a string type (it converts to std::string_view, and keys are passed without an allocation),
/// or a type whose bytes are its value (integers, enums, structs of them without padding). V must
/// move and be destroyed without throwing. Its alignment is at most 8 bytes.
///
/// An entry is charged its own memory and, with `weight`, the memory that its object owns. At most
/// 31,744 handles can hold a value at a time; beyond that a lookup misses, and GetOrCompute returns
/// ResourceExhausted. Everything else is as for Cache. Three of Cache's functions are missing:
/// MultiGet (call Get for each key), Allocate (objects are constructed, not filled) and Reserve
/// (objects are charged by their weight).
template <class K, class V>
class TypedCache {
  static_assert(std::is_nothrow_move_constructible_v<V> && std::is_nothrow_destructible_v<V>,
                "V must move and be destroyed without throwing");
  static_assert(alignof(V) <= 8, "hold what needs a greater alignment by a std::unique_ptr");
  static constexpr bool kIsString = std::is_convertible_v<const K&, std::string_view>;
  static_assert(kIsString || std::has_unique_object_representations_v<K>,
                "K must be a string or a type whose bytes are its value");

 public:
  /// The type of key arguments.
  using Key = std::conditional_t<kIsString, std::string_view, K>;
  /// The bytes that an object owns outside itself.
  using Weight = std::function<size_t(const Key&, const V&)>;

  static Result<std::unique_ptr<TypedCache>> Create(CacheOptions options = {}, Weight weight = {}) {
    Result<std::shared_ptr<cache::CacheCore>> core = cache::ObjectCache::CreateCore(
        std::move(options), [](void* object) noexcept { static_cast<V*>(object)->~V(); });
    if (!core) return core.error();
    std::unique_ptr<TypedCache> made(new (std::nothrow)
                                         TypedCache(std::move(*core), std::move(weight)));
    if (made != nullptr) return made;
    return Status(StatusCode::kResourceExhausted, "create a cache: the system has no memory left");
  }
  ~TypedCache() = default;

  // As the functions of Cache with these names.

  Status Put(const Key& key, V value, const CachePutOptions& options = {}) {
    return objects_.Put(Bytes(key), SourceOf(key, &value), options, When::kAlways).status();
  }
  Result<bool> PutIfAbsent(const Key& key, V value, const CachePutOptions& options = {}) {
    return objects_.Put(Bytes(key), SourceOf(key, &value), options, When::kIfAbsent);
  }
  Result<bool> Replace(const Key& key, V value, const CachePutOptions& options = {}) {
    return objects_.Put(Bytes(key), SourceOf(key, &value), options, When::kIfPresent);
  }
  Pinned<V> Get(const Key& key) { return Pinned<V>(objects_.Get(Bytes(key), true)); }
  Pinned<V> Peek(const Key& key) const { return Pinned<V>(objects_.Get(Bytes(key), false)); }
  Pinned<V> Take(const Key& key) { return Pinned<V>(objects_.Take(Bytes(key))); }
  bool Delete(const Key& key) { return objects_.Delete(Bytes(key)); }
  bool Touch(const Key& key, std::chrono::milliseconds ttl) {
    return objects_.Touch(Bytes(key), ttl);
  }

  /// `fn(const V* present)`, null where the key is absent, gives a Result<std::optional<V>>: what
  /// replaces it, which is another object and keeps its expiry, or nothing, which erases it.
  template <class Function>
  Status Update(const Key& key, const Function& fn) {
    std::optional<V> made;
    const auto update = [&](const void* present) -> Result<std::optional<Source>> {
      Result<std::optional<V>> after = fn(static_cast<const V*>(present));
      if (!after) return after.error();
      if (!*after) return std::optional<Source>();
      made.emplace(std::move(**after));
      return std::optional<Source>(SourceOf(key, &*made));
    };
    // By reference, so that it takes no memory.
    return objects_.Update(Bytes(key), std::cref(update));
  }

  /// `fn()` gives a Result<V>.
  template <class Function>
  Result<Pinned<V>> GetOrCompute(const Key& key, const Function& fn,
                                 const CachePutOptions& options = {}) {
    std::optional<V> computed;
    const auto compute = [&]() -> Result<Source> {
      Result<V> value = fn();
      if (!value) return value.error();
      computed.emplace(std::move(*value));
      return SourceOf(key, &*computed);
    };
    // By reference, so that it takes no memory.
    Result<cache::ObjectPin> pin = objects_.GetOrCompute(Bytes(key), std::cref(compute), options);
    if (!pin) return pin.error();
    return Pinned<V>(std::move(*pin));
  }

  Status ForEach(const std::function<bool(const Key& key, const V& value)>& visit) {
    return objects_.ForEach([&](std::string_view bytes, const void* object) {
      return visit(KeyOf(bytes), *static_cast<const V*>(object));
    });
  }
  void Clear() { objects_.Clear(); }
  Status SetCapacity(uint64_t capacity_bytes) { return objects_.SetCapacity(capacity_bytes); }
  CacheStats GetStats() const { return objects_.GetStats(); }

 private:
  using Source = cache::ObjectCache::Source;
  using When = cache::ObjectCache::When;

  TypedCache(std::shared_ptr<cache::CacheCore> core, Weight weight) noexcept
      : objects_(std::move(core)), weight_(std::move(weight)) {}

  static std::string_view Bytes(const Key& key) noexcept {
    if constexpr (kIsString) {
      return key;
    } else {
      return {reinterpret_cast<const char*>(&key), sizeof key};
    }
  }
  static Key KeyOf(std::string_view bytes) noexcept {
    if constexpr (kIsString) {
      return bytes;
    } else {
      std::array<char, sizeof(Key)> copy;
      __builtin_memcpy(copy.data(), bytes.data(), copy.size());
      return std::bit_cast<Key>(copy);
    }
  }
  Source SourceOf(const Key& key, V* value) const {
    return {.object = value,
            .bytes = sizeof(V),
            .weight = weight_ ? weight_(key, *value) : 0,
            .move = [](void* to, void* from) noexcept {
              ::new (to) V(std::move(*static_cast<V*>(from)));
            }};
  }

  cache::ObjectCache objects_;
  Weight weight_;
};

}  // namespace basalt
