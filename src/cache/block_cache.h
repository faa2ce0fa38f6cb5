#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace basalt::cache {

/// What a cache did and holds.
struct BlockCacheStats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;     ///< Charges of the entries, with kEntryBytes each.
  uint64_t capacity = 0;  ///< As given to the constructor; `bytes` never exceeds it.
};

/// Keeps immutable blocks of files in memory, up to a number of bytes; evicts by CLOCK.
///
/// Layout: up to 16 shards by hash bits, each a mutex and one open-addressed table (linear probing,
/// at most 3/4 full, deletion by shifting back, so there are no tombstones):
///
///     slot { value shared_ptr 16 | file id u64 | offset u64 | charge u64 | frequency u8 }  48
///     bytes
///
/// The eviction hand walks the slots themselves; there are no lists. An entry comes in with
/// frequency 0, a hit adds one up to 3, the hand takes one away and evicts what it finds at 0. What
/// is read once, by a scan for instance, therefore leaves before what is read again and again.
///
/// Locks: all of a shard is under its mutex; values are destroyed outside of it. Cost of a hit: one
/// uncontended lock, the slot's cache line, and the value's reference count. Thread-safe.
class BlockCache {
 public:
  /// What an entry is charged on top of its own bytes: its slot at the usual load.
  static constexpr uint64_t kEntryBytes = 96;

  /// 0 keeps nothing.
  explicit BlockCache(uint64_t capacity_bytes);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// The block at `offset` of the file `file_id`, or null. Counts a hit or a miss.
  std::shared_ptr<const void> Lookup(uint64_t file_id, uint64_t offset);

  /// Keeps `block` (not null), which takes `charge` bytes, and evicts others to make room. One that
  /// is there already stays. A block above a shard's share of the capacity is not kept.
  void Insert(uint64_t file_id, uint64_t offset, std::shared_ptr<const void> block,
              uint64_t charge);

  uint64_t capacity() const noexcept { return capacity_; }
  BlockCacheStats stats() const;

 private:
  struct Shard;
  Shard& ShardOf(uint64_t hash) const noexcept;

  uint64_t capacity_;
  std::vector<std::unique_ptr<Shard>> shards_;  // a power of two
};

}  // namespace basalt::cache
