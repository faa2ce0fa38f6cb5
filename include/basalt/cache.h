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

namespace basalt {

class Cache;

namespace cache {
class CacheCore;
class Shard;
struct Entry;
CacheCore& CoreOf(const Cache& cache) noexcept;
}  // namespace cache

/// What leaves first when memory is short.
enum class Eviction : uint8_t {
  /// CLOCK over the table itself: a hit raises an entry's frequency, a hand lowers it and evicts at
  /// zero; what comes back soon after its eviction is remembered and kept longer. Takes no memory.
  kClock = 0,
  /// S3-FIFO (Yang et al., SOSP 2023): new entries pass through a small queue, and only what was
  /// read again there enters the main part. Fewer misses where many keys are read once; 8 bytes an
  /// entry more while it is in the queue.
  kS3Fifo = 1,
};

/// Why an entry left.
enum class Removal : uint8_t {
  kEvicted = 0,   ///< To make room.
  kExpired = 1,   ///< Its time had come.
  kReplaced = 2,  ///< By a newer value.
  kDeleted = 3,   ///< By Delete, Take, Update or Clear; or its replacement found no room.
};

/// How a cache is made. The defaults need no tuning.
struct CacheOptions {
  /// All memory that the cache may take: entries, index, what readers still hold. At least 64 KiB.
  uint64_t capacity_bytes = uint64_t{64} << 20;
  /// Parts with a writer lock each: a power of two up to 128; 0: derived from the capacity.
  uint32_t shards = 0;
  /// For what is put without a time of its own; zero: it does not expire.
  std::chrono::milliseconds default_ttl{0};
  Eviction eviction = Eviction::kClock;
  /// Hears of every entry that leaves, after it has left, with its key and value (for a TypedCache
  /// the value is empty), on the thread that removed it, outside all locks. Not called for what is
  /// left when the cache is destroyed. It may use the cache, and must not throw. What its own calls
  /// remove it hears of after it has returned, with the next call; one that puts for every
  /// eviction, those that it caused too, is therefore called without an end.
  std::function<void(std::string_view key, std::string_view value, Removal)> on_remove{};
};

/// A cache's figures. They are read one after the other while the cache is in use: each is right,
/// together they may be of slightly different moments.
struct CacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t inserts = 0;  ///< Of new keys.
  uint64_t evicted = 0;
  uint64_t expired = 0;
  uint64_t replaced = 0;
  uint64_t erased = 0;
  uint64_t refused = 0;   ///< Puts, also conditional ones, that found no room.
  uint64_t computed = 0;  ///< Calls that GetOrCompute made.
  uint64_t entries = 0;
  uint64_t capacity_bytes = 0;
  uint64_t bytes = 0;        ///< All that is charged: the five below.
  uint64_t entry_bytes = 0;  ///< Entries, with free slots in their slabs and what typed ones weigh.
  uint64_t index_bytes = 0;  ///< Buckets, directories, queues, expiry records.
  uint64_t retired_bytes = 0;   ///< Replaced or removed, and perhaps still being read.
  uint64_t pinned_bytes = 0;    ///< Removed, and held by a Value or Pinned.
  uint64_t reserved_bytes = 0;  ///< By Reserve.
  uint64_t pinned_entries = 0;  ///< Handles (Value, Pinned) that hold an entry now.
  uint32_t shards = 0;

  /// Hits of all lookups, 0 to 1; 0 before the first.
  double hit_ratio() const noexcept;
  /// The figures in Prometheus' text format; each name begins with `prefix` and '_'. What of the
  /// prefix cannot stand in a name (letters of ASCII, digits, '_' and ':' can) becomes '_', and
  /// before a digit that begins it stands one.
  std::string ToPrometheus(std::string_view prefix = "basalt_cache") const;
};

/// How a value is put.
struct CachePutOptions {
  /// Unset: the cache's default. Zero: it does not expire. Negative: InvalidArgument.
  std::optional<std::chrono::milliseconds> ttl{};
};

/// Memory of the cache that is charged for something that lies elsewhere; given back on
/// destruction, which may follow the cache's. Move-only.
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

/// Room for one value that the caller fills in place (by a read from a file, say) and then
/// publishes. Without Publish nothing has happened. Move-only; one thread at a time; not after the
/// cache's destruction. After fork() the child may only destroy it.
class CacheAllocation {
 public:
  CacheAllocation(CacheAllocation&& other) noexcept;
  CacheAllocation& operator=(CacheAllocation&& other) noexcept;
  ~CacheAllocation();

  /// The value's bytes, to be filled; aligned to 8.
  std::span<char> bytes() & noexcept;
  /// Puts it into the cache, in place of what is there, and gives the value back, pinned. Cannot
  /// fail: where the cache has no room for its index word the value is given back all the same.
  Value Publish() &&;

 private:
  friend class Cache;
  CacheAllocation(cache::Shard* shard, cache::Entry* entry, uint64_t hash) noexcept;
  cache::Shard* shard_;
  cache::Entry* entry_;
  uint64_t hash_;
};

/// A concurrent cache of bytes: keys up to 65,535 bytes, values up to 4 GiB - 1, within a budget of
/// bytes that covers all it allocates, with expiry that is exact to the millisecond.
///
/// Thread-safe; all functions from any thread, but destruction when no call is running. Values that
/// were handed out stay valid and unchanged until they are destroyed, whatever happens to the cache
/// meanwhile. Each operation on a key is atomic, and a read never returns what was overwritten,
/// erased or expired before it began. Running out of memory is ResourceExhausted from what puts,
/// and a miss from what reads. After fork() the child makes caches of its own; its parent's it may
/// only destroy, which does nothing, and values that it was handed before it may read.
///
/// Cost: a hit is two cache misses (a bucket line, then the entry), takes no lock, allocates
/// nothing, and writes only a frequency below 3; a value above Value::kInlineBytes also counts a
/// pin. Writers take their shard's lock for some hundred nanoseconds; they evict as much as they
/// need room for, in bounded steps. There are no background threads. An entry takes its key and
/// value, 16 bytes (40 for values above Value::kInlineBytes), rounding to its size class, some 24
/// bytes of index, and 8 more while it expires.
///
/// docs/cache.md explains how it works.
class Cache {
 public:
  /// InvalidArgument names the field; ResourceExhausted: no memory for the first parts.
  static Result<std::unique_ptr<Cache>> Create(CacheOptions options = {});
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Keeps `value` under `key`, in place of what was there. InvalidArgument: a key, value or TTL
  /// out of range; what was there stays. ResourceExhausted: what is held (pinned, reserved, or seen
  /// by a thread that was stopped in the middle of a read) leaves no room, or it is larger than the
  /// cache; the old value is erased then, so that it is not taken for the new one.
  Status Put(std::string_view key, std::string_view value, const CachePutOptions& options = {});
  /// Only if the key is absent; gives whether it was.
  Result<bool> PutIfAbsent(std::string_view key, std::string_view value,
                           const CachePutOptions& options = {});
  /// Only if the key is present; gives whether it was.
  Result<bool> Replace(std::string_view key, std::string_view value,
                       const CachePutOptions& options = {});

  /// The value, or nothing. Counts a hit or a miss, and a hit makes the entry stay longer.
  MaybeValue Get(std::string_view key);
  /// The same without either.
  MaybeValue Peek(std::string_view key) const;
  /// Many lookups, overlapped so that their cache misses are waited for together: two to five
  /// times as fast as one by one from 16 keys on, by how much of that the processor does itself.
  /// `values[i]` answers `keys[i]`; not one atomic step. InvalidArgument: the spans differ in
  /// length.
  Status MultiGet(std::span<const std::string_view> keys, std::span<MaybeValue> values);

  /// Removes the key and gives the value that it had.
  MaybeValue Take(std::string_view key);
  /// Removes the key; gives whether it was there.
  bool Delete(std::string_view key);
  /// Gives the present value a new time to live (zero: it does not expire) from now on. False: the
  /// key is absent, or `ttl` is negative.
  bool Touch(std::string_view key, std::chrono::milliseconds ttl);

  /// Reads, computes and writes one key as one atomic step; the expiry stays. `fn` runs outside all
  /// locks, and again when another writer changed the key meanwhile.
  Status Update(std::string_view key, const UpdateFunction& fn);

  /// The value; where there is none, what `fn` computes, which is then kept. Of all threads that
  /// miss a key at once, one computes and the others wait for its result. A Put or Delete of the
  /// key or a Clear meanwhile wins: the result still goes to those who wait, but it is not kept. An
  /// error reaches all of them and is not kept. A result that finds no room is given all the same,
  /// beyond the capacity while it is held, and not kept. FailedPrecondition: `fn` asks for the same
  /// key again. ResourceExhausted: no memory, or 31,744 handles hold the value already.
  /// InvalidArgument: a key or TTL out of range, of which `fn` is not called, or a
  /// result that is too large. (Two functions that wait for each other's keys wait forever.)
  Result<Value> GetOrCompute(std::string_view key, const std::function<Result<std::string>()>& fn,
                             const CachePutOptions& options = {});

  /// Room for a value of `size` bytes that the caller fills in place. ResourceExhausted as for Put,
  /// but the old value stays.
  Result<CacheAllocation> Allocate(std::string_view key, size_t size,
                                   const CachePutOptions& options = {});

  /// Calls `visit` for every entry, until it gives false. Entries that are there all the while are
  /// visited exactly once; those that come or go meanwhile, at most once. `visit` runs outside all
  /// locks and may use the cache. ResourceExhausted: no memory for the next few, or one of them is
  /// held by 31,744 handles.
  Status ForEach(const std::function<bool(std::string_view key, std::string_view value)>& visit);

  /// Removes all that is there when each shard's turn comes.
  void Clear();
  /// Changes capacity_bytes; evicts down to it. ResourceExhausted: what is held keeps more than
  /// that; the new capacity stands all the same. InvalidArgument: below 64 KiB.
  Status SetCapacity(uint64_t capacity_bytes);
  /// Charges `bytes` that lie elsewhere against the capacity, and evicts to make room for them.
  Result<CacheReservation> Reserve(uint64_t bytes);

  CacheStats GetStats() const;

 private:
  friend cache::CacheCore& cache::CoreOf(const Cache& cache) noexcept;
  explicit Cache(std::shared_ptr<cache::CacheCore> core) noexcept;
  std::shared_ptr<cache::CacheCore> core_;
};

namespace cache {

/// Holds an object in a cache. Pinned is this with a type.
class ObjectPin {
 public:
  ObjectPin() noexcept = default;
  ObjectPin(ObjectPin&& other) noexcept { Swap(&other); }
  ObjectPin& operator=(ObjectPin&& other) noexcept {
    Swap(&other);
    return *this;
  }
  ~ObjectPin();

 protected:
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

/// The part of TypedCache that does not depend on its types.
class ObjectCache {
 public:
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

 protected:
  /// An object that will be moved into the cache.
  struct Source {
    void* object;
    size_t bytes;
    size_t weight;
    void (*move)(void* to, void* from) noexcept;
  };
  enum class When : uint8_t { kAlways, kIfAbsent, kIfPresent };

  explicit ObjectCache(std::shared_ptr<CacheCore> core) noexcept;
  ~ObjectCache();
  static Result<std::shared_ptr<CacheCore>> CreateCore(CacheOptions options,
                                                       void (*destroy)(void*) noexcept);

  Result<bool> PutObject(std::string_view key, const Source& source, const CachePutOptions& options,
                         When when);
  /// `update` gets the present object or null.
  Status UpdateObject(
      std::string_view key,
      const std::function<Result<std::optional<Source>>(const void* present)>& update);
  ObjectPin GetObject(std::string_view key, bool counts) const;
  ObjectPin TakeObject(std::string_view key);
  bool DeleteObject(std::string_view key);
  bool TouchObject(std::string_view key, std::chrono::milliseconds ttl);
  Result<ObjectPin> GetOrComputeObject(std::string_view key,
                                       const std::function<Result<Source>()>& compute,
                                       const CachePutOptions& options);
  Status ForEachObject(const std::function<bool(std::string_view key, const void* object)>& visit);
  void ClearObjects();
  Status SetCapacityBytes(uint64_t capacity_bytes);
  CacheStats Stats() const;

 private:
  std::shared_ptr<CacheCore> core_;
};

}  // namespace cache

/// An object in a TypedCache, which stays valid and unchanged while this lives, even beyond the
/// cache. Empty when the key was absent. Move-only.
template <class V>
class Pinned : public cache::ObjectPin {
 public:
  Pinned() noexcept = default;
  explicit Pinned(cache::ObjectPin pin) noexcept : ObjectPin(std::move(pin)) {}

  explicit operator bool() const noexcept { return object_ != nullptr; }
  /// Not of a temporary, with which the object may be gone.
  const V* get() const& noexcept { return static_cast<const V*>(object_); }
  const V& operator*() const& noexcept { return *get(); }
  const V* operator->() const& noexcept { return get(); }
  const V* get() const&& = delete;
  const V& operator*() const&& = delete;
  const V* operator->() const&& = delete;
};

/// A concurrent cache of objects: Cache, with values of type V that are made once, shared by all
/// who hold them, and destroyed when they have left the cache and the last Pinned is gone (on any
/// thread, outside all locks). After Delete, Take, Clear and a replacing Put that is at once while
/// no thread is in the middle of a read, but of many of them only now and then (every 64 ms in a
/// shard); else, and after an eviction, when later writes come.
///
/// K is a type of strings (what converts to std::string_view: keys are then taken as such, without
/// an allocation), or a type whose bytes are its value (integers, enums, structs of them without
/// padding). V moves and is destroyed without throwing, and is aligned to 8 bytes at most.
///
/// An entry is charged its own memory and, with `weight`, what an object owns besides. A value can
/// be held by 31,744 handles at a time; beyond that a lookup misses, and GetOrCompute
/// is ResourceExhausted. All else is as for Cache, of which three functions are not here: MultiGet
/// (call Get for each), Allocate (objects are made, not filled) and Reserve (what objects own is
/// charged by their weight).
template <class K, class V>
class TypedCache : private cache::ObjectCache {
  static_assert(std::is_nothrow_move_constructible_v<V> && std::is_nothrow_destructible_v<V>,
                "V must move and be destroyed without throwing");
  static_assert(alignof(V) <= 8, "hold what needs a greater alignment by a std::unique_ptr");
  static constexpr bool kIsString = std::is_convertible_v<const K&, std::string_view>;
  static_assert(kIsString || std::has_unique_object_representations_v<K>,
                "K must be a string or a type whose bytes are its value");

 public:
  /// How keys are given.
  using Key = std::conditional_t<kIsString, std::string_view, K>;
  /// The bytes that an object owns outside of itself.
  using Weight = std::function<size_t(const Key&, const V&)>;

  static Result<std::unique_ptr<TypedCache>> Create(CacheOptions options = {}, Weight weight = {}) {
    Result<std::shared_ptr<cache::CacheCore>> core = CreateCore(
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
    return PutObject(Bytes(key), SourceOf(key, &value), options, When::kAlways).status();
  }
  Result<bool> PutIfAbsent(const Key& key, V value, const CachePutOptions& options = {}) {
    return PutObject(Bytes(key), SourceOf(key, &value), options, When::kIfAbsent);
  }
  Result<bool> Replace(const Key& key, V value, const CachePutOptions& options = {}) {
    return PutObject(Bytes(key), SourceOf(key, &value), options, When::kIfPresent);
  }
  Pinned<V> Get(const Key& key) { return Pinned<V>(GetObject(Bytes(key), true)); }
  Pinned<V> Peek(const Key& key) const { return Pinned<V>(GetObject(Bytes(key), false)); }
  Pinned<V> Take(const Key& key) { return Pinned<V>(TakeObject(Bytes(key))); }
  bool Delete(const Key& key) { return DeleteObject(Bytes(key)); }
  bool Touch(const Key& key, std::chrono::milliseconds ttl) { return TouchObject(Bytes(key), ttl); }

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
    return UpdateObject(Bytes(key), std::cref(update));
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
    Result<cache::ObjectPin> pin = GetOrComputeObject(Bytes(key), std::cref(compute), options);
    if (!pin) return pin.error();
    return Pinned<V>(std::move(*pin));
  }

  Status ForEach(const std::function<bool(const Key& key, const V& value)>& visit) {
    return ForEachObject([&](std::string_view bytes, const void* object) {
      return visit(KeyOf(bytes), *static_cast<const V*>(object));
    });
  }
  void Clear() { ClearObjects(); }
  Status SetCapacity(uint64_t capacity_bytes) { return SetCapacityBytes(capacity_bytes); }
  CacheStats GetStats() const { return Stats(); }

 private:
  TypedCache(std::shared_ptr<cache::CacheCore> core, Weight weight) noexcept
      : ObjectCache(std::move(core)), weight_(std::move(weight)) {}

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

  Weight weight_;
};

}  // namespace basalt
