// RocksDB's block caches as caches of bytes. They keep pointers: a value is one malloc'd block,
// whose usable size is its charge, as RocksDB charges its own blocks; metadata counts against the
// capacity too (kFullChargeCacheMetadata).

#include <malloc.h>
#include <rocksdb/cache.h>
#include <rocksdb/version.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/cache_subject.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

/// A value's length in front of its bytes.
char* MakeBlock(std::string_view value) {
  const auto size = static_cast<uint32_t>(value.size());
  auto* const block = static_cast<char*>(std::malloc(sizeof size + value.size()));
  if (block == nullptr) Fail("make a value for RocksDB", "no memory");
  std::memcpy(block, &size, sizeof size);
  std::memcpy(block + sizeof size, value.data(), value.size());
  return block;
}

std::string_view ValueIn(const void* block) {
  uint32_t size = 0;
  std::memcpy(&size, block, sizeof size);
  return {static_cast<const char*>(block) + sizeof size, size};
}

void FreeBlock(const rocksdb::Slice&, void* block) { std::free(block); }

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

/// What both have in common; they differ in how they take keys.
template <class Subject>
class RocksDbCache : public DirectSubject<Subject> {
 public:
  bool evicts() const override { return true; }

  void Close() override { cache_.reset(); }

  /// Counted one by one: GetOccupancyCount gives 0.
  uint64_t entries() const override {
    uint64_t entries = 0;
    const auto count = [&entries](const rocksdb::Slice&, void*, size_t, rocksdb::Cache::DeleterFn) {
      ++entries;
    };
    cache_->ApplyToAllEntries(count, {});
    return entries;
  }
  uint64_t bytes() const override { return cache_->GetUsage(); }

 protected:
  bool Lookup(std::string_view key) {
    rocksdb::Cache::Handle* const handle = cache_->Lookup(ToSlice(key));
    if (handle == nullptr) return false;
    CacheSubject::Touch(ValueIn(cache_->Value(handle)));
    cache_->Release(handle);
    return true;
  }
  void Insert(std::string_view key, std::string_view value) {
    char* const block = MakeBlock(value);
    const rocksdb::Status status =
        cache_->Insert(ToSlice(key), block, malloc_usable_size(block), FreeBlock);
    if (!status.ok()) Fail("put into " + this->name(), status.ToString());
  }

  std::shared_ptr<rocksdb::Cache> cache_;

 private:
  friend Subject;
  RocksDbCache() = default;
};

class LruCache final : public RocksDbCache<LruCache> {
 public:
  std::string name() const override { return "lru"; }
  std::string description() const override {
    return Format("RocksDB %d.%d LRUCache", ROCKSDB_MAJOR, ROCKSDB_MINOR);
  }
  void Open(const CachePlan& plan) override {
    rocksdb::LRUCacheOptions options;
    options.capacity = plan.capacity_bytes;
    options.metadata_charge_policy = rocksdb::kFullChargeCacheMetadata;
    cache_ = rocksdb::NewLRUCache(options);
  }
  bool Get(const CacheKey& key) override { return Lookup(key.view()); }
  void Put(const CacheKey& key, std::string_view value) override { Insert(key.view(), value); }
};

/// Its keys are of 16 bytes, its table does not grow, and inserting a key that is there changes
/// nothing: what overwrites erases first.
class HyperClockCache final : public RocksDbCache<HyperClockCache> {
 public:
  std::string name() const override { return "hyperclock"; }
  std::string description() const override {
    return Format(
        "RocksDB %d.%d HyperClockCache, keys padded to 16 bytes, table sized for the most",
        ROCKSDB_MAJOR, ROCKSDB_MINOR);
  }
  void Open(const CachePlan& plan) override {
    char* const sample = MakeBlock(std::string(plan.value_bytes, ' '));
    const size_t charge = malloc_usable_size(sample);
    FreeBlock({}, sample);
    rocksdb::HyperClockCacheOptions options(plan.capacity_bytes,
                                            BestEstimate(plan.capacity_bytes, charge));
    options.metadata_charge_policy = rocksdb::kFullChargeCacheMetadata;
    cache_ = options.MakeSharedCache();
  }
  bool Get(const CacheKey& key) override { return Lookup(key.padded()); }
  void Put(const CacheKey& key, std::string_view value) override {
    cache_->Erase(ToSlice(key.padded()));
    Insert(key.padded(), value);
  }
  void Fill(const CacheKey& key, std::string_view value) override { Insert(key.padded(), value); }

 private:
  /// The table has the least power of two of slots that is not below capacity / (0.7 estimate +
  /// 64), and a slot takes 64 bytes of the capacity. With the entries' true charge as the estimate,
  /// rounding up may leave little room for values; this is the estimate that gives the table in
  /// which the most entries fit.
  static size_t BestEstimate(uint64_t capacity, size_t charge) {
    constexpr double kSlotBytes = 64;
    constexpr double kLoadExpected = 0.7;
    constexpr double kLoadMax = 0.84;
    const auto bytes = static_cast<double>(capacity);
    double best_slots = 1;
    double most = 0;
    for (double slots = 64; slots * kSlotBytes < bytes; slots *= 2) {
      const double fitting =
          std::min(slots * kLoadMax, (bytes - slots * kSlotBytes) / static_cast<double>(charge));
      if (fitting > most) {
        most = fitting;
        best_slots = slots;
      }
    }
    const double estimate = (bytes / best_slots * 1.01 - kSlotBytes) / kLoadExpected;
    return static_cast<size_t>(std::max(estimate, 1.0));
  }
};

}  // namespace

std::unique_ptr<CacheSubject> MakeLruCache() { return std::make_unique<LruCache>(); }
std::unique_ptr<CacheSubject> MakeHyperClockCache() { return std::make_unique<HyperClockCache>(); }

}  // namespace basalt::bench
