// The classic design of a concurrent cache: shards of a hash map, a reader-writer lock and a list
// in order of use.
//
// A get looks up under the shared lock. Moving an entry to the front of the list needs the
// exclusive one, so it is done only when worth it: an entry that is still among the first eighth is
// left where it is, and one whose shard is busy waits for its next hit. Keys and values up to 15
// bytes lie in the map's node.
//
//   node of the map   next 8 | key 32 | value 32 | place in the list 8 | moved at 8 | hash 8
//   node of the list  links 16 | key 8

#include <functional>
#include <list>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/cache_subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

constexpr uint32_t kShards = 32;
constexpr uint64_t kSettledPart = 8;

struct Slot {
  std::string value;
  std::list<const std::string*>::iterator place;
  uint64_t moved_at = 0;  ///< The shard's count of moves when this entry came to the front.
};

/// What malloc takes for `size` bytes.
constexpr uint64_t HeapBytes(uint64_t size) { return (size + sizeof(void*) + 15) / 16 * 16; }
constexpr uint64_t kMapNodeBytes =
    HeapBytes(sizeof(void*) + sizeof(std::string) + sizeof(Slot) + sizeof(size_t));
constexpr uint64_t kListNodeBytes = HeapBytes(3 * sizeof(void*));
constexpr uint64_t kBucketBytes = sizeof(void*);

uint64_t Charge(const std::string& key, const std::string& value) {
  static const size_t kInline = std::string().capacity();
  uint64_t bytes = kMapNodeBytes + kListNodeBytes + kBucketBytes;
  if (key.size() > kInline) bytes += HeapBytes(key.capacity() + 1);
  if (value.size() > kInline) bytes += HeapBytes(value.capacity() + 1);
  return bytes;
}

class alignas(64) Shard {
 public:
  void Prepare(uint64_t capacity_bytes, size_t entries) {
    capacity_bytes_ = capacity_bytes;
    if (entries > 0) map_.reserve(entries);
  }

  template <class Visit>
  bool Get(std::string_view key, const Visit& visit) {
    {
      const std::shared_lock lock(mutex_);
      const auto found = map_.find(key);
      if (found == map_.end()) return false;
      visit(found->second.value);
      if (moves_ - found->second.moved_at < map_.size() / kSettledPart) return true;
    }
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return true;
    const auto found = map_.find(key);
    if (found != map_.end()) MoveToFront(&found->second);
    return true;
  }

  void Put(std::string_view key, std::string_view value) {
    const std::unique_lock lock(mutex_);
    auto found = map_.find(key);
    if (found == map_.end()) {
      found = map_.emplace(key, Slot()).first;
      found->second.place = order_.insert(order_.begin(), &found->first);
      found->second.moved_at = ++moves_;
    } else {
      bytes_ -= Charge(found->first, found->second.value);
      MoveToFront(&found->second);
    }
    found->second.value = value;
    bytes_ += Charge(found->first, found->second.value);
    while (bytes_ > capacity_bytes_ && order_.size() > 1) EvictLast();
  }

  uint64_t entries() const {
    const std::shared_lock lock(mutex_);
    return map_.size();
  }
  uint64_t bytes() const {
    const std::shared_lock lock(mutex_);
    return bytes_;
  }

 private:
  void MoveToFront(Slot* slot) {
    order_.splice(order_.begin(), order_, slot->place);
    slot->moved_at = ++moves_;
  }
  void EvictLast() {
    const auto last = map_.find(*order_.back());
    bytes_ -= Charge(last->first, last->second.value);
    order_.pop_back();
    map_.erase(last);
  }

  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, Slot, CacheKeyHash, std::equal_to<>> map_;
  std::list<const std::string*> order_;
  uint64_t moves_ = 0;
  uint64_t bytes_ = 0;
  uint64_t capacity_bytes_ = 0;
};

class ShardedMap final : public DirectSubject<ShardedMap> {
 public:
  std::string name() const override { return "sharded_map"; }
  std::string description() const override {
    return Format("%u shards of std::unordered_map + std::shared_mutex + std::list (LRU)", kShards);
  }
  bool evicts() const override { return true; }
  bool has_shards() const override { return true; }

  void Open(const CachePlan& plan) override {
    shards_ = std::vector<Shard>(plan.shards == 0 ? kShards : plan.shards);
    for (Shard& shard : shards_) {
      shard.Prepare(plan.capacity_bytes / shards_.size(),
                    plan.reserve ? plan.entries / shards_.size() : 0);
    }
  }
  void Close() override { shards_.clear(); }

  bool Get(const CacheKey& key) override {
    return ShardOf(key).Get(key.view(), [](std::string_view value) { Touch(value); });
  }
  void Put(const CacheKey& key, std::string_view value) override {
    ShardOf(key).Put(key.view(), value);
  }

  uint64_t entries() const override {
    uint64_t entries = 0;
    for (const Shard& shard : shards_) entries += shard.entries();
    return entries;
  }
  uint64_t bytes() const override {
    uint64_t bytes = 0;
    for (const Shard& shard : shards_) bytes += shard.bytes();
    return bytes;
  }

 private:
  Shard& ShardOf(const CacheKey& key) {
    return shards_[(CacheKeyHash()(key.view()) >> 32) % shards_.size()];
  }

  std::vector<Shard> shards_;
};

}  // namespace

std::unique_ptr<CacheSubject> MakeShardedMap() { return std::make_unique<ShardedMap>(); }

}  // namespace basalt::bench
