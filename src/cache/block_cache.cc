#include "cache/block_cache.h"

#include <mutex>
#include <utility>

#include "base/check.h"

namespace basalt::cache {
namespace {

constexpr uint64_t kShardsMax = 16;
constexpr uint64_t kShardBytesMin = 512 << 10;
constexpr size_t kSlotsMin = 16;
constexpr uint8_t kFrequencyMax = 3;

// File ids are random and offsets are not: one multiplication spreads both over all bits.
uint64_t HashOf(uint64_t file_id, uint64_t offset) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{file_id ^ 0x9E37'79B9'7F4A'7C15} * (offset ^ 0xD6E8'FEB8'6659'FD93);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t ShardCount(uint64_t capacity_bytes) noexcept {
  uint64_t count = kShardsMax;
  while (count > 1 && capacity_bytes / count < kShardBytesMin) count /= 2;
  return count;
}

}  // namespace

struct alignas(64) BlockCache::Shard {
  struct Slot {
    std::shared_ptr<const void> value;  // null: the slot is free
    uint64_t file_id = 0;
    uint64_t offset = 0;
    uint64_t charge = 0;
    uint8_t frequency = 0;
  };

  explicit Shard(uint64_t capacity_bytes) : slots(kSlotsMin), capacity(capacity_bytes) {}

  size_t HomeOf(uint64_t hash) const noexcept { return hash & (slots.size() - 1); }
  size_t After(size_t index) const noexcept { return (index + 1) & (slots.size() - 1); }

  // The slot that holds the key, or the free one where it would go.
  size_t Find(uint64_t hash, uint64_t file_id, uint64_t offset) const noexcept {
    size_t index = HomeOf(hash);
    while (slots[index].value != nullptr &&
           (slots[index].offset != offset || slots[index].file_id != file_id)) {
      index = After(index);
    }
    return index;
  }

  void Grow() {
    std::vector<Slot> old(slots.size() * 2);
    old.swap(slots);
    hand = 0;
    for (Slot& slot : old) {
      if (slot.value == nullptr) continue;
      slots[Find(HashOf(slot.file_id, slot.offset), slot.file_id, slot.offset)] = std::move(slot);
    }
  }

  // Empties a slot and closes the gap: later entries of the probe sequence move back into it.
  std::shared_ptr<const void> Remove(size_t gap) noexcept {
    std::shared_ptr<const void> value = std::move(slots[gap].value);
    bytes -= slots[gap].charge;
    --entries;
    for (size_t index = After(gap); slots[index].value != nullptr; index = After(index)) {
      const size_t home = HomeOf(HashOf(slots[index].file_id, slots[index].offset));
      const size_t mask = slots.size() - 1;
      if (((index - home) & mask) < ((index - gap) & mask)) continue;
      slots[gap] = std::move(slots[index]);
      gap = index;
    }
    slots[gap] = Slot{};
    return value;
  }

  // Evicts until `needed` more bytes fit; at most kFrequencyMax + 1 rounds of the hand.
  void MakeRoom(uint64_t needed, std::vector<std::shared_ptr<const void>>* evicted) {
    while (bytes + needed > capacity) {
      Slot& slot = slots[hand];
      if (slot.value != nullptr && slot.frequency == 0) {
        evicted->push_back(Remove(hand));  // an entry that moved into the gap is looked at next
        ++evictions;
        continue;
      }
      if (slot.value != nullptr) --slot.frequency;
      hand = After(hand);
    }
  }

  std::mutex mutex;
  std::vector<Slot> slots;  // a power of two
  size_t hand = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  const uint64_t capacity;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
};

BlockCache::BlockCache(uint64_t capacity_bytes) : capacity_(capacity_bytes) {
  const uint64_t count = ShardCount(capacity_bytes);
  for (uint64_t i = 0; i < count; ++i) {
    shards_.push_back(std::make_unique<Shard>(capacity_bytes / count));
  }
}

BlockCache::~BlockCache() = default;

BlockCache::Shard& BlockCache::ShardOf(uint64_t hash) const noexcept {
  return *shards_[(hash >> 48) & (shards_.size() - 1)];
}

std::shared_ptr<const void> BlockCache::Lookup(uint64_t file_id, uint64_t offset) {
  const uint64_t hash = HashOf(file_id, offset);
  Shard& shard = ShardOf(hash);
  const std::lock_guard lock(shard.mutex);
  Shard::Slot& slot = shard.slots[shard.Find(hash, file_id, offset)];
  if (slot.value == nullptr) {
    ++shard.misses;
    return nullptr;
  }
  ++shard.hits;
  if (slot.frequency < kFrequencyMax) ++slot.frequency;
  return slot.value;
}

void BlockCache::Insert(uint64_t file_id, uint64_t offset, std::shared_ptr<const void> block,
                        uint64_t charge) {
  BASALT_CHECK(block != nullptr);
  const uint64_t hash = HashOf(file_id, offset);
  Shard& shard = ShardOf(hash);
  if (charge > shard.capacity || shard.capacity - charge < kEntryBytes) return;
  std::vector<std::shared_ptr<const void>> evicted;  // destroyed after the lock is let go
  const std::lock_guard lock(shard.mutex);
  if (shard.slots[shard.Find(hash, file_id, offset)].value != nullptr) return;
  shard.MakeRoom(charge + kEntryBytes, &evicted);
  if ((shard.entries + 1) * 4 > shard.slots.size() * 3) shard.Grow();
  shard.slots[shard.Find(hash, file_id, offset)] = {.value = std::move(block),
                                                    .file_id = file_id,
                                                    .offset = offset,
                                                    .charge = charge + kEntryBytes,
                                                    .frequency = 0};
  ++shard.entries;
  shard.bytes += charge + kEntryBytes;
}

BlockCacheStats BlockCache::stats() const {
  BlockCacheStats total{.capacity = capacity_};
  for (const std::unique_ptr<Shard>& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    total.hits += shard->hits;
    total.misses += shard->misses;
    total.evictions += shard->evictions;
    total.entries += shard->entries;
    total.bytes += shard->bytes;
  }
  return total;
}

}  // namespace basalt::cache
