// Ordered maps of std::string to std::string. Keys of 16 bytes and the values lie in blocks of
// malloc: std::string holds 15 bytes itself.

#include <absl/container/btree_map.h>
#include <oneapi/tbb/concurrent_map.h>
#include <tbb/version.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "bench/memtable_subject.h"
#include "bench/text.h"

namespace basalt::bench {

uint64_t MemTableSubject::MultiGet(std::span<const CacheRequest> requests) {
  uint64_t found = 0;
  for (const CacheRequest& request : requests) found += Get(request) ? 1 : 0;
  return found;
}

namespace {

/// From `place` on; the caller keeps writers out, or knows that they do no harm.
template <class Map>
uint64_t ScanFrom(const Map& map, const CacheRequest& from, uint64_t records) {
  auto place = map.lower_bound(from.key.padded());
  if (place == map.end() || place->first != from.key.padded()) return 0;
  uint64_t seen = 0;
  for (; seen < records && place != map.end(); ++place, ++seen) {
    const uint8_t ends = EndsOf(place->second);
    asm volatile("" : : "r"(ends));
  }
  return seen;
}

template <class Map>
Walk WalkOver(const Map& map) {
  Walk walk;
  auto place = map.begin();
  walk.Positioned();
  for (; place != map.end(); ++place) walk.Add(place->first, place->second);
  walk.Finished();
  return walk;
}

/// A map that is not thread-safe, under one lock.
template <class Map, class Mutex, class ReadLock>
class LockedMap final : public MemTableSubject {
 public:
  LockedMap(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return description_; }

  void Open(const StorePlan& /*plan*/) override { map_ = std::make_unique<Map>(); }
  void Close() override { map_.reset(); }

  void Put(const CacheRequest& request) override { PutBatch({&request, 1}); }
  void PutBatch(std::span<const CacheRequest> requests) override {
    const std::scoped_lock lock(mutex_);
    for (const CacheRequest& request : requests) {
      map_->insert_or_assign(std::string(request.key.padded()), ValueOf(request.number));
    }
  }
  std::optional<uint8_t> Get(const CacheRequest& request) override {
    const ReadLock lock(mutex_);
    const auto found = map_->find(request.key.padded());
    if (found == map_->end()) return std::nullopt;
    return EndsOf(found->second);
  }
  uint64_t Scan(const CacheRequest& from, uint64_t records) override {
    const ReadLock lock(mutex_);
    return ScanFrom(*map_, from, records);
  }
  Walk WalkAll() override {
    const ReadLock lock(mutex_);
    return WalkOver(*map_);
  }

 private:
  const std::string name_;
  const std::string description_;
  Mutex mutex_;
  std::unique_ptr<Map> map_;
};

/// Inserting and finding need no lock there, changing a value does: one of many, by the request.
class TbbConcurrentMap final : public MemTableSubject {
 public:
  std::string name() const override { return "tbb"; }
  std::string description() const override {
    return Format("oneTBB %d.%d concurrent_map<std::string, std::string>, %zu locks for values",
                  TBB_VERSION_MAJOR, TBB_VERSION_MINOR, kLocks);
  }

  void Open(const StorePlan& /*plan*/) override { map_ = std::make_unique<Map>(); }
  void Close() override { map_.reset(); }

  void Put(const CacheRequest& request) override {
    const auto [place, is_new] = map_->emplace(request.key.padded(), ValueOf(request.number));
    if (is_new) return;
    const std::scoped_lock lock(LockOf(request));
    place->second = ValueOf(request.number);
  }
  void PutBatch(std::span<const CacheRequest> requests) override {
    for (const CacheRequest& request : requests) Put(request);
  }
  std::optional<uint8_t> Get(const CacheRequest& request) override {
    const auto found = map_->find(request.key.padded());
    if (found == map_->end()) return std::nullopt;
    const std::scoped_lock lock(LockOf(request));
    return EndsOf(found->second);
  }
  uint64_t Scan(const CacheRequest& from, uint64_t records) override {
    return ScanFrom(*map_, from, records);
  }
  Walk WalkAll() override { return WalkOver(*map_); }

 private:
  using Map = oneapi::tbb::concurrent_map<std::string, std::string, std::less<>>;
  struct alignas(64) Lock {
    std::mutex mutex;
  };
  static constexpr size_t kLocks = 1024;

  std::mutex& LockOf(const CacheRequest& request) { return locks_[request.number % kLocks].mutex; }

  std::unique_ptr<Map> map_;
  std::array<Lock, kLocks> locks_;
};

}  // namespace

std::unique_ptr<MemTableSubject> MakeTbbConcurrentMap() {
  return std::make_unique<TbbConcurrentMap>();
}

std::unique_ptr<MemTableSubject> MakeAbslBtree() {
  using Map = absl::btree_map<std::string, std::string, std::less<>>;
  return std::make_unique<LockedMap<Map, std::shared_mutex, std::shared_lock<std::shared_mutex>>>(
      "absl", "absl::btree_map<std::string, std::string>, std::shared_mutex");
}

std::unique_ptr<MemTableSubject> MakeStdMap() {
  using Map = std::map<std::string, std::string, std::less<>>;
  return std::make_unique<LockedMap<Map, std::mutex, std::scoped_lock<std::mutex>>>(
      "std", "std::map<std::string, std::string>, std::mutex");
}

}  // namespace basalt::bench
